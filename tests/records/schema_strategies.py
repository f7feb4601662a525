# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for the messages of any schema, in any version."""

import functools
from typing import Any

from hypothesis import strategies as st

from raftlog.records.messages.schema import FILES, UNKNOWN_TAGS, Message, MessageType, message_types
from raftlog.records.messages.schema_text import Field, Struct, fresh
from raftlog.uuid_text import ZERO_UUID

ALL_TYPES = [each for file in FILES for each in message_types(file).values()]
ALL_VERSIONS = [
    (each, version) for each in ALL_TYPES for version in range(each.versions.lowest, each.versions.highest + 1)
]
"""Each message with each of its versions."""

_FIRST_UNKNOWN_TAG = 100

valid_text = st.text(st.characters(codec="utf-8"), max_size=6)
any_text = valid_text | st.binary(max_size=6).map(lambda data: data.decode("utf-8", "surrogateescape"))
unknown_tags = st.dictionaries(st.integers(_FIRST_UNKNOWN_TAG, 0xFFFFFFFF), st.binary(max_size=5), max_size=2)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(1 << 7), (1 << 7) - 1),
    "int16": st.integers(-(1 << 15), (1 << 15) - 1),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "uint16": st.integers(0, (1 << 16) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "float64": st.floats(allow_nan=False),
    "string": any_text,
    "bytes": st.binary(max_size=6),
    "records": st.binary(max_size=6),
    "uuid": st.uuids() | st.just(ZERO_UUID),
}


@functools.cache
def messages(kind: MessageType, version: int, *, plain: bool = False) -> st.SearchStrategy[Message]:
    """Messages that a version can hold, as reading returns them: with every field, missing ones at their defaults.

    With ``plain`` strings are UTF-8, error codes are known ones, and there are no unknown tagged fields.
    """
    return _structs(kind.schema.struct, version, flexible=version in kind.flexible, plain=plain)


def _structs(struct: Struct, version: int, *, flexible: bool, plain: bool) -> st.SearchStrategy[Message]:
    fields = {field.name: _values(field, version, flexible=flexible, plain=plain) for field in struct.fields}
    known = st.fixed_dictionaries(fields)
    if plain or not flexible:
        return known
    return st.builds(_with_tags, known, st.just({}) | unknown_tags)


def _with_tags(message: Message, tags: dict[int, bytes]) -> Message:
    return {**message, UNKNOWN_TAGS: tags} if tags else message


def _values(field: Field, version: int, *, flexible: bool, plain: bool) -> st.SearchStrategy[Any]:
    if version not in field.versions:
        return st.builds(fresh, st.just(field.default))
    values: st.SearchStrategy[Any]
    if field.struct is not None:
        values = _structs(field.struct, version, flexible=flexible, plain=plain)
    elif plain and field.type == "string":
        values = valid_text
    elif plain and field.name == "errorCode":
        values = st.integers(-1, 100)
    else:
        values = _VALUES[field.type]
    if field.is_array:
        values = st.lists(values, max_size=3)
    if version in field.nullable:
        values = st.none() | values
    return st.builds(fresh, st.just(field.default)) | values if version in field.tagged else values
