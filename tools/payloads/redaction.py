# SPDX-License-Identifier: Apache-2.0
"""Secrets in metadata records: SCRAM credentials, delegation tokens, and configs that hold passwords or keys."""

import re
from typing import TYPE_CHECKING, Any, Final

from raftlog.errors import DecodeError

if TYPE_CHECKING:
    from raftlog.records.messages.metadata import MetadataRecord

REDACTED: Final = "[redacted]"
"""Replaces a secret text; secret bytes are replaced by empty bytes."""

_SECRET_FIELDS: Final = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
_SECRET_TYPE_NAMES: Final = frozenset(
    {"USER_SCRAM_CREDENTIAL_RECORD", "DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"}
)
_CONFIG_WORDS: Final = (
    r"password|passphrase|secret|credential|token|jaas\.config|private\.key"
    r"|keystore\.key|keystore\.certificate\.chain|truststore\.certificates"
)
SECRET_API_KEYS: Final = frozenset({4, 10, 11, 26})
"""The types of records that may have a secret: configs, delegation tokens and their removal, SCRAM credentials."""


def redacted(record: "MetadataRecord") -> tuple[dict[str, Any], bool]:
    """Return a record's message without its secrets, and whether it has any."""
    name, message = record.type.name, record.message
    if name == "ConfigRecord":
        if message["value"] is None or not has_secret_word(message["name"]):
            return message, False
        return message | {"value": REDACTED}, True
    fields = _SECRET_FIELDS.get(name)
    if fields is None:
        return message, False
    return message | {field: REDACTED if isinstance(message[field], str) else b"" for field in fields}, True


def has_secret_word(text: str) -> bool:
    """Whether a config of this name may hold a secret, or the text has such a name in it."""
    return re.search(_CONFIG_WORDS, text, re.IGNORECASE) is not None  # Compiled on first use, as few dumps need it.


def may_show_secret(type_name: str, message_json: str) -> bool:
    """Whether the JSON of a metadata record may have a secret; if not, ``redacted`` finds none either."""
    if type_name == "CONFIG_RECORD":
        return has_secret_word(message_json)
    return type_name in _SECRET_TYPE_NAMES


def may_be_secret(value: bytes | None, *, if_unreadable: bool = True) -> bool:
    """Whether some bytes are a metadata record with a secret, whatever their topic.

    Args:
        value: the value of a record.
        if_unreadable: whether bytes that start like such a record, but cannot be read as one, count as secret too.
    """
    if value is None or len(value) < 3 or value[0] != 1 or value[1] not in SECRET_API_KEYS:
        return False
    from raftlog.records.messages.metadata import read_metadata_record  # Slow to import, and rarely needed.

    try:
        return redacted(read_metadata_record(value))[1]
    except DecodeError:
        return if_unreadable
