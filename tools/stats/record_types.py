# SPDX-License-Identifier: Apache-2.0
"""The types of records, from the first bytes of keys and values: no message is decoded.

::

    control record       key: version (16 bits), type (16 bits)
    metadata record      value: frame version 1, api key, ... (each a varint; api keys so far have one byte)
    coordinator's record key: type (16 bits), ...
    other records        no type: "data"

Source: ControlRecordType, AbstractApiMessageSerde, CoordinatorRecordSerde.
"""

import functools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from raftlog.records.columns.columns import RecordColumns
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.messages.control import ControlRecordType
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from raftlog.records.messages.metadata import FRAME_VERSION, MetadataRecord
from raftlog.records.messages.schema import message_types

if TYPE_CHECKING:
    Longs = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_COORDINATORS: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
_CONTROL: Final = 1 << 32
"""Added to the codes of control records."""
_NO_CODE: Final = -1
_DATA: Final = -2


def type_codes(topic: str, records: RecordColumns, are_control: "Flags") -> "Longs":
    """Return a code for the type of each record, which ``type_name`` names.

    Args:
        topic: the name of the topic, which decides how data records are read.
        records: with keys and values.
        are_control: which of the records are control records.
    """
    if topic == METADATA_TOPIC:
        codes = _numbers(records, "value", 0)
    elif topic in _COORDINATORS:
        codes = _numbers(records, "key", 0)
    else:
        codes = np.full(records.count, _DATA, dtype=np.int64)
    if are_control.any():
        types = _numbers(records, "key", 2)
        codes = np.where(are_control, np.where(types < 0, types, types + _CONTROL), codes)
    return codes


def type_name(topic: str, code: int) -> str:
    """Return the name of a type's code, as Kafka's tools print it; a number if the type is not known."""
    if code == _DATA:
        return "data"
    if code == _NO_CODE:
        return "unreadable"
    if code >= _CONTROL:
        number = code - _CONTROL
        known = number in set(ControlRecordType)
        return f"control {ControlRecordType(number).name}" if known else f"control {number}"
    return (_metadata_name if topic == METADATA_TOPIC else functools.partial(_coordinator_name, topic))(code)


def _numbers(records: RecordColumns, field: str, position: int) -> "Longs":
    """Return two bytes of each key or value as a number, or ``_NO_CODE`` if it is too short or null."""
    sizes = records.to_numpy(f"{field}_size")
    has_bytes = sizes >= position + 2
    found = np.full(records.count, _NO_CODE, dtype=np.int64)
    at = records.to_numpy(f"{field}_position")[has_bytes].astype(np.int64) + position
    data = np.frombuffer(records.data, dtype=np.uint8)
    found[has_bytes] = (data[at].astype(np.int64) << 8) | data[at + 1]
    return found


def _metadata_name(code: int) -> str:
    frame, api_key = code >> 8, code & 0xFF
    name = _metadata_names().get(api_key) if frame == FRAME_VERSION else None
    return name or (f"metadata {api_key}" if frame == FRAME_VERSION else "unreadable")


@functools.cache
def _metadata_names() -> dict[int, str]:
    types = message_types("metadata-records").values()
    return {each.api_key or 0: MetadataRecord(each, 0, {}).type_name for each in types}


@functools.cache
def _coordinator_names(topic: str) -> dict[int, str]:
    keys = (each for each in message_types("coordinator-records").values() if each.name.endswith("Key"))
    return {each.api_key or 0: each.name.removesuffix("Key") for each in keys if each.schema.topic == topic}


def _coordinator_name(topic: str, code: int) -> str:
    return _coordinator_names(topic).get(code, f"type {code}")
