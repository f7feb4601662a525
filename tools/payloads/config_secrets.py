# SPDX-License-Identifier: Apache-2.0
"""Whether a value may be a configuration of Connect with a secret: a quick look, as it is asked of every record."""

from typing import Final

CONFIG_MARKS: Final = (b'"creation-timestamp"', b'.class"')
"""What values have that may be configurations of Connect with secrets: the session key, connectors and tasks."""


def may_be_config_secret(value: bytes | None, *, is_config: bool = False) -> bool:
    """Whether some bytes are a configuration record of Connect with a secret, whatever their topic.

    Args:
        value: the value of a record.
        is_config: whether the topic is one of configurations: then a value that cannot be read counts as secret too.
    """
    if value is None or not (is_config or _looks_like_config(value)):
        return False
    from raftlog.tools.payloads.config_redaction import is_config_secret  # Slow to import, and rarely needed.

    return is_config_secret(value, is_config=is_config)


def _looks_like_config(value: bytes) -> bool:
    """Whether bytes begin like a JSON object, and have names that are in configurations: this is asked of any value."""
    return value[:1] == b"{" and any(mark in value for mark in CONFIG_MARKS)
