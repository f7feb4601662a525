# SPDX-License-Identifier: Apache-2.0
"""Bytes straight to JSON, beside the reader and the renderer that say what is right."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.messages.releases import LEVELS
from raftlog.records.messages.schema import NEWEST, Message, MessageType, message_type
from raftlog.records.messages.schema_text import Field
from tests.records.outcome import outcome
from tests.records.schema_strategies import ALL_VERSIONS, messages

every_version = pytest.mark.parametrize(
    ("kind", "version"), ALL_VERSIONS, ids=[f"{kind.name}-{version}" for kind, version in ALL_VERSIONS]
)
versions = st.sampled_from(ALL_VERSIONS)


def in_two_steps(kind: MessageType, version: int, data: bytes, position: int, level: str) -> tuple[str, int]:
    """Read a message into a dict, and render that."""
    message, end = kind.reader(version, level)(data, position)
    return kind.to_json(message, version=version), end


@settings(max_examples=30, deadline=None)
@given(st.data(), versions)
def test_messages_are_the_same_text(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """A message of UTF-8 strings gives the text that reader and renderer make of it, at any position."""
    check_written(*chosen, data.draw(messages(*chosen, plain=True)))


@pytest.mark.slow
@every_version
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_message_is_the_same_text(kind: MessageType, version: int, data: st.DataObject) -> None:
    """The same holds for each version of each message."""
    check_written(kind, version, data.draw(messages(kind, version, plain=True)))


@every_version
def test_every_message_is_the_same_text_at_its_defaults(kind: MessageType, version: int) -> None:
    """The same holds for messages that say nothing, of each version."""
    check_written(kind, version, {})


def check_written(kind: MessageType, version: int, message: Message) -> None:
    """Write a message, and read it in both ways; only one with a struct in a tagged field may be left."""
    written = b"ab" + kind.write(message, version=version) + b"c"
    read = kind.json_reader(version)(written, 2)
    if read is None:
        assert has_tagged_structs(kind.schema.struct.fields, version)
    else:
        assert read == in_two_steps(kind, version, written, 2, NEWEST)


def has_tagged_structs(fields: tuple[Field, ...], version: int) -> bool:
    """Whether a version has tagged structs anywhere."""
    return any(
        field.struct is not None
        and ((version in field.tagged and not field.is_array) or has_tagged_structs(field.struct.fields, version))
        for field in fields
    )


@settings(max_examples=40, deadline=None)
@given(st.data(), versions, st.sampled_from(LEVELS))
def test_mutated_bytes_are_the_same_text_or_left(
    data: st.DataObject, chosen: tuple[MessageType, int], level: str
) -> None:
    """Whatever the bytes are, and whatever release reads them: the same text and end, or None; no error comes out."""
    check_mutated(data, chosen, level)


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(st.data(), versions, st.sampled_from(LEVELS))
def test_mutated_bytes_are_the_same_text_or_left_at_length(
    data: st.DataObject, chosen: tuple[MessageType, int], level: str
) -> None:
    """Whatever the bytes are, and whatever release reads them: the same text and end, or None; no error comes out."""
    check_mutated(data, chosen, level)


def check_mutated(data: st.DataObject, chosen: tuple[MessageType, int], level: str) -> None:
    """Write a message, change some bytes, and read what is there then in both ways."""
    kind, version = chosen
    written = bytearray(kind.write(data.draw(messages(kind, version)), version=version))
    for position in data.draw(st.lists(st.integers(0, max(0, len(written) - 1)), max_size=3)):
        written[position:] = data.draw(st.binary(max_size=2)) + written[position + data.draw(st.integers(0, 2)) :]
    mutated = bytes(written)
    if version not in kind.schema.versions_at(level):
        with pytest.raises(UnsupportedVersionError):
            kind.json_reader(version, level)
        return
    read = kind.json_reader(version, level)(mutated, 0)
    expected = outcome(lambda: in_two_steps(kind, version, mutated, 0, level))
    assert read is None if isinstance(expected, DecodeError) else read in (expected, None)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=80), versions)
def test_any_bytes_are_the_same_text_or_left(data: bytes, chosen: tuple[MessageType, int]) -> None:
    """Bytes that were not written as a message give the same text, or are left to the reader."""
    kind, version = chosen
    read = kind.json_reader(version)(data, 0)
    expected = outcome(lambda: in_two_steps(kind, version, data, 0, NEWEST))
    assert read is None if isinstance(expected, DecodeError) else read in (expected, None)


TOPIC = message_type("TopicRecord")
UUID = bytes(range(16))


@pytest.mark.parametrize(
    "name",
    ["", "a", 'quote " backslash \\ slash /', "\b\f\n\r\t", "\x00\x1f\x7f", "\\u001f", "\u00e9\u2028\ud55c\U0001f600"],
)
def test_text_is_escaped_as_kafka_does(name: str) -> None:
    """Quotes, backslashes and controls are escaped, the latter with capital digits; nothing else is."""
    written = TOPIC.write({"name": name}, version=0)
    assert TOPIC.json_reader(0)(written, 0) == in_two_steps(TOPIC, 0, written, 0, NEWEST)


@pytest.mark.parametrize("size", [126, 127, 128, 16_383, 16_384, 0x7FFF])
def test_lengths_of_more_than_a_byte(size: int) -> None:
    """Strings and arrays of any length that Kafka takes are read."""
    for kind, message in (
        (TOPIC, {"name": "n" * size}),
        (message_type("PartitionRecord"), {"replicas": [7] * size, "directories": [TOPIC.default()["topicId"]] * size}),
    ):
        written = kind.write(message, version=kind.versions.highest)
        read = kind.json_reader(kind.versions.highest)(written, 0)
        assert read == in_two_steps(kind, kind.versions.highest, written, 0, NEWEST)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02a" + UUID,  # no tags
        b"\x02a" + UUID[1:] + b"\0",
        b"\x00" + UUID + b"\0",  # a null
        b"\x02\xff" + UUID + b"\0",  # no UTF-8
        b"\x81\x80\x02" + b"n" * 0x8000 + UUID + b"\0",  # too long for a string
        b"\xff\xff\xff\xff\x0f" + UUID + b"\0",
        b"\x80\x80\x80\x80\x08" + UUID + b"\0",
        b"\xff\xff\xff\xff\xff" + UUID + b"\0",
        b"\x02a" + UUID + b"\xff\xff\xff\xff\x07",  # tags without end
        b"\x02a" + UUID + b"\x01\x07\x05a",  # a tag past the end
        b"\x02a" + UUID + b"\x01\x07\xff\xff\xff\xff\x0f",
    ],
)
def test_unusual_entries_are_left_alone(data: bytes) -> None:
    """Null, cut, endless and malformed: None."""
    assert TOPIC.json_reader(0)(data, 0) is None


@pytest.mark.parametrize(("count", "rest"), [(0xFFFFFFFE, b""), (0x7FFFFFFF, b"\0" * 40), (90, b"\0" * 40)])
def test_counts_beyond_the_bytes_are_left(count: int, rest: bytes) -> None:
    """An array of more items than there are bytes is not begun."""
    partition = message_type("PartitionRecord")
    groups = [count >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)]
    data = struct.pack(">i16s", 1, UUID) + bytes([*groups, count >> 28]) + rest
    assert partition.json_reader(2)(data, 0) is None


def test_tags_in_any_order_and_twice() -> None:
    """Of a tag that comes twice the last holds; one at its default is not shown; unknown ones are skipped."""
    change = message_type("PartitionChangeRecord")
    leader, other, default = (struct.pack(">bbi", 1, 4, number) for number in (5, 6, -2))
    state, unknown = b"\x05\x01\x01", b"\x63\x02ab"
    cases: list[tuple[list[bytes], Any]] = [
        ([state, leader], ',"leader":5,"leaderRecoveryState":1'),
        ([leader, other], ',"leader":6'),
        ([leader, default], ""),
        ([unknown, leader], ',"leader":5'),
    ]
    for tags, shown in cases:
        data = struct.pack(">i16s", 1, UUID) + bytes([len(tags)]) + b"".join(tags)
        text = f'{{"partitionId":1,"topicId":"AAECAwQFBgcICQoLDA0ODw"{shown}}}'
        assert change.json_reader(2)(data, 0) == (text, len(data)) == in_two_steps(change, 2, data, 0, NEWEST)
