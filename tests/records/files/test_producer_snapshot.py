# SPDX-License-Identifier: Apache-2.0
"""Producer snapshots: round trips, CRC, counts that lie, and every one that Kafka wrote."""

import struct

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.checksum import crc32c
from raftlog.records.files.producer_snapshot import ProducerStateEntry, read_producer_snapshot, write_producer_snapshot
from tests.golden_files import KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
EMPTY = bytes.fromhex("000148674bc700000000")

int16, int32, int64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
entries = st.builds(ProducerStateEntry, int64, int16, int32, int64, int32, int64, int32, int64)


def entry(*, last_sequence: int, offset_delta: int, last_offset: int = 99) -> ProducerStateEntry:
    """Make the state of a producer that wrote one batch."""
    return ProducerStateEntry(7, 0, last_sequence, last_offset, offset_delta, 1700000000000, -1, -1)


@given(st.lists(entries))
@settings(deadline=None)
def test_snapshots_round_trip(given_entries: list[ProducerStateEntry]) -> None:
    """The entries that are written are read, in order."""
    assert read_producer_snapshot(write_producer_snapshot(given_entries)) == tuple(given_entries)


@given(st.lists(entries, max_size=3), st.data())
@settings(deadline=None)
def test_a_changed_byte_never_passes(given_entries: list[ProducerStateEntry], data: st.DataObject) -> None:
    """Any change of one byte, and any cut, is a typed error with rule and position."""
    written = bytearray(write_producer_snapshot(given_entries))
    index = data.draw(st.integers(0, len(written) - 1))
    cut = bytes(written[:index])
    written[index] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(written), cut):
        with pytest.raises(DecodeError) as caught:
            read_producer_snapshot(damaged)
        assert caught.value.rule in ("file-format", "file-crc")
        assert caught.value.position is not None


@given(st.integers(-1, 3) | int32, st.binary(max_size=150))
@settings(deadline=None)
def test_the_count_is_not_trusted(count: int, body: bytes) -> None:
    """A count that is not that of the bytes is refused, though the CRC holds, however large it is."""
    counted = struct.pack(">i", count) + body
    data = struct.pack(">hI", 1, crc32c(counted)) + counted
    if count * 46 == len(body):
        assert len(read_producer_snapshot(data)) == count
    else:
        with pytest.raises(DecodeError, match=f"do not hold {count} producers"):
            read_producer_snapshot(data)
    if 0 <= count * 46 <= len(body):
        assert len(read_producer_snapshot(data, allow_trailing_bytes=True)) == count
    else:
        with pytest.raises(DecodeError, match=f"do not hold {count} producers"):
            read_producer_snapshot(data, allow_trailing_bytes=True)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
@settings(deadline=None)
def test_the_first_sequence_wraps(last_sequence: int, offset_delta: int) -> None:
    """Counting back from the last sequence number, the one before 0 is 2**31 - 1."""
    first = entry(last_sequence=last_sequence, offset_delta=offset_delta).first_sequence
    assert first is not None
    assert 0 <= first < 2**31
    assert (first + offset_delta) % 2**31 == last_sequence


def test_first_sequences() -> None:
    """A plain one, one that wraps, and none where no batch is remembered."""
    assert entry(last_sequence=9, offset_delta=9).first_sequence == 0
    assert entry(last_sequence=1, offset_delta=3).first_sequence == 2**31 - 2
    assert entry(last_sequence=-1, offset_delta=0, last_offset=-1).first_sequence is None


def test_kafkas_empty_snapshot() -> None:
    """No producers are these ten bytes."""
    assert write_producer_snapshot([]) == EMPTY
    assert read_producer_snapshot(EMPTY) == ()


def test_another_version_is_refused() -> None:
    """The only version is 1."""
    with pytest.raises(UnsupportedVersionError, match="version 2") as caught:
        read_producer_snapshot(b"\0\2" + EMPTY[2:])
    assert (caught.value.rule, caught.value.position) == ("file-format", 0)


def test_a_number_that_does_not_fit_is_refused() -> None:
    """Writing says ValueError, not struct.error."""
    with pytest.raises(ValueError):
        write_producer_snapshot([entry(last_sequence=2**31, offset_delta=0)])


def test_every_producer_snapshot_of_kafka_reads_and_writes_back() -> None:
    """All 105 golden files are written back byte for byte, and some of them have producers."""
    compared = producers = 0
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("*.snapshot")):
        state = read_producer_snapshot(path.read_bytes())
        assert write_producer_snapshot(state) == path.read_bytes()
        compared += 1
        producers += len(state)
    assert compared == 105
    assert producers == 9


def line_of(state: ProducerStateEntry) -> str:
    """Write a producer's state as kafka-dump-log does."""
    first = state.current_transaction_first_offset
    line = (
        f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
        f"coordinatorEpoch: {state.coordinator_epoch} "
        f"currentTxnFirstOffset: {'OptionalLong.empty' if first < 0 else f'OptionalLong[{first}]'} "
        f"lastTimestamp: {state.timestamp}"
    )
    if state.last_offset < 0:
        return line
    return (
        f"{line} firstSequence: {state.first_sequence} lastSequence: {state.last_sequence} "
        f"lastOffset: {state.last_offset} offsetDelta: {state.offset_delta} timestamp: {state.timestamp}"
    )


def test_entries_are_what_kafkas_own_dump_says() -> None:
    """Every line of kafka-dump-log about a producer snapshot is said by the entry that is read here."""
    compared = 0
    for folder in KAFKA_FOLDERS:
        for expected in sorted((folder / "expected").glob("*.snapshot.shallow.txt")):
            path_line, *lines = expected.read_text().splitlines()
            state = read_producer_snapshot((folder / path_line.removeprefix("Dumping ")).read_bytes())
            assert [line_of(each) for each in state] == [line.rstrip() for line in lines]
            compared += len(lines)
    assert compared == 5


def test_entries_are_values() -> None:
    """Equal fields make equal entries."""
    one = entry(last_sequence=1, offset_delta=0)
    assert attrs.evolve(one) == one
    assert attrs.evolve(one, producer_epoch=1) != one
