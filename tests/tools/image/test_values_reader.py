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
from raftlog.tools.image.shaped_reader import ShapedReader, has_shapes
from raftlog.tools.image.values_reader import ValuesReader, _Arrays, compile_values_reader
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
    """What the generated reader makes of a message, with lists for tuples; None if it leaves it to the other one."""
    return read_by(compile_values_reader(kind.schema, version, level), data, position)


def read_by(read: ValuesReader, data: bytes, position: int) -> Any:
    """What a reader makes of a message, with lists for tuples; None if it leaves it to the plain reader."""
    try:
        message, end = read(data, position)
    except NOT_USUAL:
        return None
    return (with_lists(message), end) if end <= len(data) else None


def with_lists(value: Any) -> Any:
    """A value with lists for all tuples."""
    if isinstance(value, dict):
        return {name: with_lists(each) for name, each in value.items()}
    return list(map(with_lists, value)) if isinstance(value, list | tuple) else value


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
    assert with_lists(one) == with_lists(other) == kind.reader(version)(written, 0)[0]
    assert not any(isinstance(value, list) and value is other[name] for name, value in one.items())


def test_an_unknown_tag_is_left_to_the_other_reader() -> None:
    """That one keeps it."""
    kind = message_type("TopicRecord")
    written = kind.write({"name": "t"}, version=0)[:-1] + bytes([1, 9, 1, 5])
    assert usual(kind, 0, written, 0) is None
    assert kind.reader(0)(written, 0)[1] == len(written)


SHAPED = [(kind, version) for kind, version in ALL if has_shapes(kind.schema, version)]
every_shaped_version = pytest.mark.parametrize(
    ("kind", "version"), SHAPED, ids=[f"{kind.name}-{version}" for kind, version in SHAPED]
)


def test_records_of_partitions_have_shapes() -> None:
    """In all versions; those with strings have none."""
    named = {f"{kind.name}-{version}" for kind, version in SHAPED}
    of_partitions = {
        f"{name}-{version}" for name in ("PartitionRecord", "PartitionChangeRecord") for version in range(3)
    }
    assert of_partitions <= named
    assert not named & {"TopicRecord-0", "ConfigRecord-0", "RegisterBrokerRecord-3"}


def learned(kind: MessageType, version: int, taught: list[bytes]) -> ShapedReader:
    """A reader that has seen each of some messages after a prefix of three bytes as often as it takes to learn them."""
    reader = ShapedReader(kind.schema, version, compile_values_reader(kind.schema, version), 3)
    for data in taught:
        for _ in range(64):
            read_by(reader, b"abc" + data, 3)
    return reader


@every_shaped_version
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_has_a_learned_shape_is_the_same(kind: MessageType, version: int, data: st.DataObject) -> None:
    """And so is what has another one of the same size: any byte of a message is another one, or it is cut off."""
    one, other = (kind.write(data.draw(messages(kind, version)), version=version) for _ in range(2))
    reader, general = learned(kind, version, [one, other]), compile_values_reader(kind.schema, version)
    changed = bytearray(one)
    changed[data.draw(st.integers(0, len(one) - 1))] = data.draw(st.integers(0, 255))
    cut = one[: data.draw(st.integers(0, len(one)))]
    for each in (one, other, bytes(changed), cut, one + b"x"):
        expected, found = read_by(general, b"abc" + each, 3), read_by(reader, b"abc" + each, 3)
        if expected is not None and expected[1] == 3 + len(each):
            assert found == expected
            assert list(found[0]) == list(expected[0])
        else:
            assert found == expected


@pytest.mark.parametrize("seen", [63, 64, 65])
def test_a_shape_is_learned_when_it_is_worth_it(seen: int) -> None:
    """After 64 messages of its size; then the general reader is not asked any more, but for other shapes."""
    kind, asked = message_type("PartitionChangeRecord"), 0
    general = compile_values_reader(kind.schema, 2)

    def counting(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        nonlocal asked
        asked += 1
        return general(data, position)

    reader = ShapedReader(kind.schema, 2, counting, 0)
    one, other = (kind.write({"partitionId": 1, name: [1, 2]}, version=2) for name in ("isr", "replicas"))
    for _ in range(seen):
        reader(one, 0)
    assert asked == min(seen, 64)
    assert with_lists(reader(other, 0)) == with_lists(general(other, 0))
    assert asked == min(seen, 64) + 1


def test_only_so_many_shapes_are_kept() -> None:
    """A log of ever new shapes is read to the end, by the general reader."""
    kind = message_type("PartitionChangeRecord")
    reader = ShapedReader(kind.schema, 2, compile_values_reader(kind.schema, 2), 0)
    for count in range(300):
        data = kind.write({"isr": list(range(count % 18)), "replicas": list(range(count // 18))}, version=2)
        for _ in range(64):
            assert reader(data, 0)[0]["partitionId"] == -1
    assert sum(map(len, reader._shapes.values())) == 256


def test_equal_arrays_are_one_object_and_few_are_kept() -> None:
    """Small ones, of as many kinds as are kept; all are right."""
    arrays = _Arrays("int32")
    assert arrays[(7).to_bytes(4)] is arrays[(7).to_bytes(4)]
    long = b"".join(number.to_bytes(4) for number in range(65))
    assert arrays[long] == tuple(range(65))
    assert arrays[long[:-4]] is arrays[long[:-4]]
    assert arrays[long] is not arrays[long]
    for number in range(70_000):
        assert arrays[number.to_bytes(4)] == (number,)
    assert len(arrays) <= 1 << 16
