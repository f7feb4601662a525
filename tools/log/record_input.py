# SPDX-License-Identifier: Apache-2.0
"""Reads records from JSON lines, in the shape of ``dump-log --format jsonl`` or in a simpler one.

::

    {"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"AQIDBAUGBwgJCgsMDQ4PEA"}}
    {"value":"any text"}
    {"value_base64":"AQID"}

A missing field of a message has its default, and a missing version is the highest. Control records are ignored, since
each epoch writes its own, and so are lines of other kinds than ``record``.
"""

import base64
import functools
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from raftlog.errors import DecodeError
from raftlog.records.messages.metadata import MetadataRecord, write_metadata_record
from raftlog.records.messages.schema import Message, MessageType, message_types
from raftlog.records.messages.schema_text import Field, Struct
from raftlog.uuid_text import uuid_from_text

_SHOWN: Final = 60


def read_record_values(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the values of the records in some lines.

    Raises:
        ValueError: a line is not a JSON object, or not a record that a metadata log can have; the message names the
            line.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = _value(_json_object(line))
        except (ValueError, DecodeError) as error:  # From an encoder, a DecodeError is not about damage.
            raise ValueError(f"line {number} of standard input: {error}") from None
        if value is not None:
            yield value


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise ValueError(f"not a JSON object: {line[:_SHOWN]!r}")
    return members


def _value(members: Mapping[str, Any]) -> bytes | None:
    """Return the value of the record in a line, or None if the line has no record to append."""
    if members.get("kind", "record") != "record" or members.get("is_control"):
        return None
    if members.get("redacted"):
        raise ValueError("the record's secrets are hidden: dump it with --no-redact")
    if members.get("key") is not None or "key_base64" in members or members.get("headers"):
        raise ValueError("records of a metadata log have no keys and no headers")
    if "data" in members:
        return _metadata_value(members)
    encoded = members.get("value_base64")
    value = _text(members.get("value")).encode() if encoded is None else _from_base64(encoded)
    if not value:
        raise ValueError("a record without a value")
    return value


def _metadata_value(members: Mapping[str, Any]) -> bytes:
    name = members.get("type")
    kind = _metadata_types().get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"not the type of a metadata record: {str(name)[:_SHOWN]!r}")
    version = _number(members.get("version", kind.versions.highest))
    message = _struct(kind.schema.struct, members["data"])
    return write_metadata_record(MetadataRecord(kind, version, message))


@functools.cache
def _metadata_types() -> dict[str, MessageType]:
    return {MetadataRecord(kind, 0, {}).type_name: kind for kind in message_types("metadata-records").values()}


def _struct(layout: Struct, members: Any) -> Message:
    """Convert JSON to a message; the writer refuses unknown names."""
    if not isinstance(members, dict):
        raise ValueError(f"{layout.name} is not a JSON object")
    fields = {field.name: field for field in layout.fields}
    return {name: _field(fields[name], item) if name in fields else item for name, item in members.items()}


def _field(field: Field, item: Any) -> Any:
    if item is None:
        return None
    if field.is_array:
        if not isinstance(item, list):
            raise ValueError(f"{field.name} is not a JSON array")
        return [_item(field, each) for each in item]
    return _item(field, item)


def _item(field: Field, item: Any) -> Any:
    if field.struct is not None:
        return _struct(field.struct, item)
    return _CONVERSIONS.get(field.type, _as_it_is)(item)


def _as_it_is(item: Any) -> Any:
    return item


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError(f"not text: {str(item)[:_SHOWN]!r}")
    return item


def _number(item: Any) -> int:
    if type(item) is not int:  # JSON's true is refused.
        raise ValueError(f"not a number: {str(item)[:_SHOWN]!r}")
    return item


def _from_base64(item: Any) -> bytes:
    return base64.b64decode(_text(item), validate=True)


def _uuid(item: Any) -> uuid.UUID:
    return uuid_from_text(_text(item))


def _double(item: Any) -> float:
    return float(item) if isinstance(item, int | float) else float(_text(item))


_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = {"bytes": _from_base64, "uuid": _uuid, "float64": _double}
"""Conversions for types that JSON lacks; the writer checks the values of all others."""
