# SPDX-License-Identifier: Apache-2.0
"""The generated reader of messages, beside the reader that says what is right."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records.messages.generated_source import NOT_USUAL
from raftlog.records.messages.releases import LEVELS
from raftlog.records.messages.schema import NEWEST, MessageType, message_type, message_types
from raftlog.tools.image.values_reader import compile_values_reader
from tests.records.schema_strategies import messages

ALL = [
    (kind, version)
    for kind in message_types("metadata-records").values()
    for version in range(kind.versions.lowest, kind.versions.highest + 1)
]
every_version = pytest.mark.parametrize(
    ("kind", "version"), ALL, ids=[f"{kind.name}-{version}" for kind, version in ALL]
)


def usual(kind: MessageType, version: int, data: bytes, position: int, level: str = NEWEST) -> Any:
    """What the generated reader makes of a message; None if it leaves it to the other one."""
    try:
        message, end = compile_values_reader(kind.schema, version, level)(data, position)
    except NOT_USUAL:
        return None
    return (message, end) if end <= len(data) else None


@every_version
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_usual_messages_are_read_and_are_the_same(kind: MessageType, version: int, data: st.DataObject) -> None:
    """At any position, and none of UTF-8 strings and known tags is left to the other reader."""
    message = data.draw(messages(kind, version, plain=True))
    written = b"ab" + kind.write(message, version=version) + b"c"
    found = usual(kind, version, written, 2)
    assert found == kind.reader(version)(written, 2)
    assert list(found[0]) == list(kind.reader(version)(written, 2)[0])


@every_version
@settings(max_examples=20, deadline=None)
@given(data=st.data(), level=st.sampled_from(LEVELS))
def test_any_bytes_are_the_same_or_are_left(kind: MessageType, version: int, data: st.DataObject, level: str) -> None:
    """Unusual messages, damaged ones and those that are cut off; for readers of each release that know the version."""
    if not kind.is_known(level) or version not in kind.schema.versions_at(level):
        return
    written = bytearray(kind.write(data.draw(messages(kind, version)), version=version))
    if written and data.draw(st.booleans()):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(written[: data.draw(st.integers(0, len(written)))])
    found = usual(kind, version, cut, 0, level)
    try:
        expected = kind.reader(version, level)(cut, 0)
    except DecodeError:
        expected = None
    assert found in (None, expected)


@every_version
def test_defaults_are_made_anew(kind: MessageType, version: int) -> None:
    """A message that says nothing is the same, and no list is shared by two of them."""
    written = kind.write({}, version=version)
    read = compile_values_reader(kind.schema, version)
    one, other = read(written, 0)[0], read(written, 0)[0]
    assert one == other == kind.reader(version)(written, 0)[0]
    assert not any(isinstance(value, list) and value is other[name] for name, value in one.items())


def test_an_unknown_tag_is_left_to_the_other_reader() -> None:
    """That one keeps it."""
    kind = message_type("TopicRecord")
    written = kind.write({"name": "t"}, version=0)[:-1] + bytes([1, 9, 1, 5])
    assert usual(kind, 0, written, 0) is None
    assert kind.reader(0)(written, 0)[1] == len(written)
