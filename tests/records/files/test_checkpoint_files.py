# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files: round trips, damage, and every one that Kafka wrote."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import (
    PartitionOffset,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
    write_leader_epoch_checkpoint,
    write_offset_checkpoint,
)
from tests.golden_files import KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
READERS: list[Callable[[bytes], Any]] = [read_leader_epoch_checkpoint, read_offset_checkpoint]

epoch_entries = st.builds(EpochEntry, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
topics = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20)
offsets = st.builds(PartitionOffset, topics, st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(epoch_entries))
@settings(deadline=None)
def test_epochs_round_trip(entries: list[EpochEntry]) -> None:
    """What is written is what is read."""
    assert read_leader_epoch_checkpoint(write_leader_epoch_checkpoint(entries)) == tuple(entries)


@given(st.lists(offsets))
@settings(deadline=None)
def test_offsets_round_trip(entries: list[PartitionOffset]) -> None:
    """What is written is what is read."""
    assert read_offset_checkpoint(write_offset_checkpoint(entries)) == tuple(entries)


def refusal(read: Callable[[bytes], object], data: bytes) -> DecodeError | None:
    """Return the typed error of a reader; any other exception goes on."""
    try:
        read(data)
    except DecodeError as error:
        return error
    return None


mutated = st.tuples(
    st.sampled_from([b"0\n2\n3 24\n5 48\n", b"0\n2\norders 0 42\nclicks 1 7\n"]),
    st.integers(0, 30),
    st.binary(max_size=4),
).map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :])


@given(st.sampled_from(READERS), mutated | st.binary(max_size=60) | st.text("0123 \r\n-a", max_size=40).map(str.encode))
@settings(deadline=None, max_examples=120)
def test_any_bytes_are_a_value_or_a_typed_error(read: Callable[[bytes], Any], data: bytes) -> None:
    """Of any bytes, reading returns entries or raises a DecodeError with rule and position."""
    error = refusal(read, data)
    if error is not None:
        assert error.rule == "file-format"
        assert error.position is not None
        assert 0 <= error.position <= len(data)


def test_kafkas_example() -> None:
    """The example of the facts page is these two epochs, and no entries are a file of two lines."""
    assert write_leader_epoch_checkpoint([EpochEntry(3, 24), EpochEntry(5, 48)]) == b"0\n2\n3 24\n5 48\n"
    assert write_leader_epoch_checkpoint([]) == b"0\n0\n"


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n", b"0\n0"])
def test_a_file_without_entries_is_empty(data: bytes) -> None:
    """A file of no bytes, of a version alone, and of a count of zero are all empty, as they are to Kafka."""
    assert [read(data) for read in READERS] == [(), ()]


def test_other_line_ends_and_blanks_are_read() -> None:
    """Lines end as Java ends them, and any white space separates."""
    assert read_leader_epoch_checkpoint(b"0\r\n1\r3\t 24 ") == (EpochEntry(3, 24),)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"x\n0\n", 0),
        (b"\n0\n", 0),
        (b"0\n\n", 2),
        (b"0\n-1\n", 2),
        (b"0\n1\n", 2),
        (b"0\n99999999999999999999\n", 2),
        (b"0\n2147483648\n", 2),
        (b"0\n2147483647\n", 2),
        (b"0\n1\n3\n", 4),
        (b"0\n1\n\n", 4),
        (b"0\n1\na -1 2 3\n", 4),
        (b"0\n1\n -1 2\n", 4),
        (b"0\n1\n1_0 2_0 3\n", 4),
        (b"0\n1\n\xff 1 1\n", 4),
        (b"0\n1\n1 9223372036854775808\n", 4),
        (b"0\n1\na 1 9223372036854775808\n", 4),
        (b"0\n1\n2147483648 1\n", 4),
        (b"0\n1\n-1 0\n", 4),
    ],
)
def test_a_malformed_line_is_named(read: Callable[[bytes], Any], data: bytes, position: int) -> None:
    """A line that does not fit, or a count that is not that of the lines, is a DecodeError at that line."""
    with pytest.raises(DecodeError) as caught:
        read(data)
    assert (caught.value.rule, caught.value.position) == ("file-format", position)


@pytest.mark.parametrize("read", READERS)
def test_another_version_is_refused(read: Callable[[bytes], Any]) -> None:
    """There is no version but 0."""
    with pytest.raises(UnsupportedVersionError, match="version 1"):
        read(b"1\n0\n")


@pytest.mark.parametrize("topic", ["", "a b", "a\n", " a"])
def test_a_topic_of_several_words_is_not_written(topic: str) -> None:
    """A topic that would read back as something else is refused."""
    with pytest.raises(ValueError):
        write_offset_checkpoint([PartitionOffset(topic, 0, 0)])


def test_every_epoch_checkpoint_of_kafka_reads_and_writes_back() -> None:
    """All 88 golden leader-epoch-checkpoints, whose epochs increase, are written back byte for byte."""
    compared = 0
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("leader-epoch-checkpoint")):
        data = path.read_bytes()
        entries = read_leader_epoch_checkpoint(data)
        assert (write_leader_epoch_checkpoint(entries) if entries else b"") == data
        assert [entry.epoch for entry in entries] == sorted({entry.epoch for entry in entries})
        compared += 1
    assert compared == 88


def test_every_offset_checkpoint_of_kafka_reads_and_writes_back() -> None:
    """All 36 golden offset checkpoints of log directories are written back byte for byte."""
    compared = 0
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("*-offset-checkpoint")):
        data = path.read_bytes()
        entries = read_offset_checkpoint(data)
        assert write_offset_checkpoint(entries) == data or (entries, data) == ((), b"")
        compared += 1
    assert compared == 36


@pytest.mark.parametrize("number", [-(2**31) - 1, -(2**31), -1, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32])
@pytest.mark.parametrize("line", [0, 1])
def test_a_number_out_of_range_differs_from_a_malformed_one(number: int, line: int) -> None:
    """A version or a count is an int: one that is, and is wrong, is told otherwise than one that is none."""
    data = f"{number}\n0\n".encode() if line == 0 else f"0\n{number}\n".encode()
    is_int = -(2**31) <= number < 2**31
    with pytest.raises((DecodeError, UnsupportedVersionError)) as caught:
        read_leader_epoch_checkpoint(data)
    assert ("out of range" in str(caught.value)) == (not is_int)
    assert isinstance(caught.value, UnsupportedVersionError) == (is_int and line == 0)


@pytest.mark.parametrize(
    ("partition", "offset", "is_taken"),
    [
        (0, 0, True),
        (2**31 - 1, 2**63 - 1, True),
        (0, -(2**63), True),
        (2**31, 0, False),
        (-1, 0, False),
        (0, 2**63, False),
        (0, -(2**63) - 1, False),
    ],
)
def test_a_partition_and_an_offset_fit_in_their_fields(partition: int, offset: int, is_taken: bool) -> None:
    """A partition is an int from 0 on, and an offset any long: one more on either side is refused."""
    data = f"0\n1\norders {partition} {offset}\n".encode()
    if is_taken:
        assert read_offset_checkpoint(data) == (PartitionOffset("orders", partition, offset),)
    else:
        with pytest.raises(DecodeError, match="out of range"):
            read_offset_checkpoint(data)
