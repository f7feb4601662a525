# SPDX-License-Identifier: Apache-2.0
"""Secrets in the configurations that Connect's workers keep: the session key, and properties of connectors and tasks.

A session key signs what workers send to each other. Connectors may be anybody's, so a property counts as a secret if
its name or its value looks like one.
"""

import re
from typing import Any, Final

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.mirrors.connect_records import ConfigType, ConnectConfig, JsonObject, read_json
from raftlog.tools.payloads.redaction import REDACTED, has_secret_word

_PLAIN_OF_SESSION_KEY: Final = frozenset({"algorithm", "creation-timestamp"})
_MORE_WORDS: Final = r"passwd|pwd|private.?key|(api|access|account|shared|signing|encryption)[._-]?key|user\.info"
"""What the names of properties of connectors have, beside the words of Kafka's own configs."""
_REVEALING: Final = r"(passw(or)?d|pwd|passphrase|secret|token)\s*=|://[^/@\s]*:[^/@\s]*@|-----BEGIN"
"""What values have: options of a JAAS module or a connection, a URL with a password, a key in PEM."""


def redacted_config(config: ConnectConfig) -> tuple[JsonObject | None, bool]:
    """Return a configuration record's value without its secrets, and whether it has any."""
    if config.value is None:
        return None, False
    if config.type is ConfigType.SESSION_KEY:
        hidden = dict.fromkeys(config.value.keys() - _PLAIN_OF_SESSION_KEY, REDACTED)
        return {**config.value, **hidden}, bool(hidden)
    return _redacted(config.value)


def is_config_secret(value: bytes, *, is_config: bool) -> bool:
    """Whether bytes are a configuration record's value with a secret.

    Args:
        value: the value of a record.
        is_config: whether it comes from a topic of configurations: then any member may be a secret, and so may a value
            that cannot be read. Else only the session key and configurations that name a class of Connect count.
    """
    try:
        members = read_json(value, "the value")
    except InvalidRecordError:
        return True
    if not isinstance(members, dict) or not (is_config or _is_config(members)):
        return is_config
    return _redacted(members)[1]


def _redacted(members: JsonObject) -> tuple[JsonObject, bool]:
    """Return a JSON object without what looks like a secret, and whether there is any."""
    hidden = _hidden({**members})
    if "key" in hidden:  # Of the session key; no other record has a member of that name.
        hidden["key"] = REDACTED
    return hidden, hidden != members


def _is_config(members: JsonObject) -> bool:
    if members.keys() == {"key", *_PLAIN_OF_SESSION_KEY}:
        return True
    properties = members.get("properties")
    return isinstance(properties, dict) and not {"connector.class", "task.class"}.isdisjoint(properties)


def _hidden(value: Any) -> Any:
    """Return JSON without secrets; as deep as its reader allows."""
    if isinstance(value, dict):
        return {name: _hidden_member(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, str) and re.search(_REVEALING, value, re.IGNORECASE):
        return REDACTED
    return value


def _hidden_member(name: str, value: Any) -> Any:
    is_secret = has_secret_word(name) or re.search(_MORE_WORDS, name, re.IGNORECASE) is not None
    return REDACTED if is_secret and value is not None else _hidden(value)
