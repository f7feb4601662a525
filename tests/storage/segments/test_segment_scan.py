# SPDX-License-Identifier: Apache-2.0
"""Which bytes a scan takes for sound, and how it judges bytes after the first problem."""

import sys
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.records.batches import iterator
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.storage.reading.readable_bytes import BLOCK_SIZE
from raftlog.storage.segments.epoch_witnesses import EpochWitnesses
from raftlog.storage.segments.segment_indexes import IndexLimits, SegmentIndexes
from raftlog.storage.segments.segment_scan import FollowingBatches, ScannedFile, SegmentScan, scan_segment
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.strategies import batch_bytes, with_crc


def scan(data: bytes, base_offset: int = 0, last_epoch: int = 0, *witnesses: LeaderEpochs) -> SegmentScan:
    """Scan some bytes."""
    return scanned(CachedFile(data, data), base_offset, last_epoch, *witnesses)


def scanned(
    file: ScannedFile, base_offset: int = 0, last_epoch: int = 0, *witnesses: LeaderEpochs, durable: int = 0
) -> SegmentScan:
    """Scan a file."""
    return scan_segment(file, base_offset, last_epoch, indexes_from(base_offset), EpochWitnesses(witnesses), durable)


@attrs.define
class CachedFile:
    """A file whose bytes in memory may differ from those on the disk, if it has one."""

    memory: bytes
    disk: bytes | None
    dropped_from: int | None = None

    def size(self) -> int:
        """Return the length, which both agree on."""
        return len(self.memory)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return some bytes, as far as was dropped those of the disk."""
        return memoryview(self.memory)[position : position + size]

    def drop_cache(self, position: int) -> bool:
        """Have the disk's bytes from a position on."""
        if self.disk is None:
            return False
        assert self.dropped_from is None
        self.dropped_from = position
        self.memory = self.memory[:position] + self.disk[position:]
        return True


def indexes_from(base_offset: int) -> SegmentIndexes:
    """Empty indexes."""
    return SegmentIndexes(MemoryFileSystem(), ".", base_offset, IndexLimits())


@given(st.integers(0, 100), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=8))
def test_a_sound_segment_is_all_taken(base_offset: int, plan: list[tuple[int, int]]) -> None:
    """Batches end to end, with epochs that do not go down, are sound; each epoch starts where its first batch does."""
    data, epoch, offset = b"", 1, base_offset
    epochs: list[EpochEntry] = []
    for count, more_epochs in plan:
        epoch += more_epochs
        if not epochs or epochs[-1].epoch < epoch:
            epochs.append(EpochEntry(epoch, offset))
        data += raft_batch(offset, epoch, count)
        offset += count
    found = scan(data, base_offset)
    assert (found.next_offset, found.end_position, found.problem) == (offset, len(data), None)
    assert found.epochs == epochs
    assert found.last_epoch == (epoch if plan else 0)


@pytest.mark.parametrize(
    "second",
    [
        raft_batch(2, 1),
        raft_batch(0, 1),
        raft_batch(1, 0),
        batch_bytes(base_offset=1, epoch=1, last_offset_delta=-1),
        batch_bytes(base_offset=1, epoch=1, last_offset_delta=2**31 - 1)[:30],
        batch_bytes(base_offset=2**62, epoch=1),
        batch_bytes(base_offset=40, epoch=1),
    ],
)
def test_what_is_out_of_order_ends_the_sound_part(second: bytes) -> None:
    """A gap, a repeated batch, an older epoch, no offsets: what follows is looked at all the same."""
    found = scan(raft_batch(0, 1) + second + raft_batch(3, 1))
    assert found.problem is not None
    assert (found.next_offset, found.end_position) == (1, len(raft_batch(0, 1)))
    assert found.sound_end_after == 4


def test_the_offsets_of_a_batch_inside_a_record_are_not_trusted() -> None:
    """A torn record may hold the bytes of a batch: low offsets say nothing there, and far ones not where to end."""
    for inner, sound_end_after in ((raft_batch(0, 1), None), (raft_batch(2**40, 9), 5)):
        builder = RecordBatchBuilder(5, partition_leader_epoch=1)
        builder.append(0, None, inner + bytes(100))
        found = scan(builder.build()[:-50], 5)
        assert found.problem is not None
        assert found.problem.may_be_torn
        assert (found.sound_end_after, found.sound_epoch_after) == (sound_end_after, -1)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_batches_after_a_damaged_one_show_the_loss(codec: CompressionType) -> None:
    """However small the records of a damaged batch are, the batches after it belong to this log."""
    builder = RecordBatchBuilder(1, partition_leader_epoch=1, compression_type=codec)
    builder.extend([(0, None, b"v")] * 2000)
    rotten = bytearray(builder.build())
    rotten[-1] ^= 1
    found = scan(raft_batch(0, 1) + rotten + raft_batch(2001, 1) + raft_batch(2002, 2))
    assert found.problem is not None
    assert (found.next_offset, found.sound_end_after, found.sound_epoch_after) == (1, 2003, 2)


@pytest.mark.parametrize("shift", [-1, 1, 5, 6400, 2**40])
@pytest.mark.parametrize("rotten", range(2, 7))
def test_a_rotten_base_offset_among_others_says_nothing(rotten: int, shift: int) -> None:
    """No CRC covers it, but the batches next to it say what it must be, wherever in the run it is."""
    batches = [bytearray(raft_batch(offset, 1)) for offset in range(7)]
    batches[1][-1] ^= 1
    batches[rotten][:8] = (rotten + shift).to_bytes(8, "big")
    found = scan(b"".join(batches))
    assert (found.next_offset, found.sound_end_after) == (1, 7)


Claim = tuple[int, int, int, bool]
"""How many bytes before a batch are of none, its base offset, its number of records, and whether that is possible."""


def naive_end(claims: list[Claim]) -> int:
    """Where most batches of each run say that the log ended: of all runs, the greatest."""
    runs: list[list[Claim]] = []
    for claim in claims:
        if claim[0] or not runs:
            runs.append([])
        runs[-1].append(claim)
    ends = [0]
    for run in runs:
        starts, records = [], 0
        for _, base_offset, count, _ in run:
            starts.append(base_offset - records)
            records += count
        most = max(starts, key=starts.count)
        is_majority = 2 * starts.count(most) > len(starts)
        possible = [each for each, (*_, is_possible) in zip(starts, run, strict=True) if is_possible]
        if not is_majority:
            ends += [base_offset + count for _, base_offset, count, is_possible in run if is_possible]
        elif most in possible:
            ends.append(most + records)
    return max(ends)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 0, 9]), st.integers(0, 12), st.integers(1, 2), st.booleans()), max_size=9)
)
def test_most_batches_of_a_run_decide(claims: list[Claim]) -> None:
    """As a count of what each of them says shows; without a majority, the greatest end counts."""
    batches, position = FollowingBatches(), 0
    for gap, base_offset, count, is_possible in claims:
        position += gap
        batches.take(range(position, position + 10), base_offset, count, is_possible=is_possible)
        position += 10
    assert batches.end_offset == naive_end(claims)


@pytest.mark.parametrize("number", [63, 64, 65])
def test_many_claims_of_one_run_are_all_believed(number: int) -> None:
    """Whatever a run says, and however often: no more than 64 different claims are kept."""
    batches = FollowingBatches()
    for index in range(number):
        batches.take(range(index, index + 1), 3 * index, 1, is_possible=True)
    assert batches.end_offset == 3 * (number - 1) + 1
    assert len(batches.claims) == min(number, 64)


def batch_of_many(base_offset: int, count: int, last_offset_delta: int, value: bytes = b"v") -> bytes:
    """A batch whose header says that it has so many records."""
    batch = bytearray(raft_batch(base_offset, 1, 1, value))
    batch[23:27], batch[57:61] = last_offset_delta.to_bytes(4, "big"), count.to_bytes(4, "big")
    return with_crc(bytes(batch))


def test_offsets_that_no_index_can_name_are_a_problem() -> None:
    """Batches that reach further than an index entry does end the sound part, whether or not one gets an entry."""
    most = 2**31 - 1
    for value in (b"v", bytes(5000)):
        for number in (1, 2, 3):
            found = scan(b"".join(batch_of_many(index * most, most, most - 1, value) for index in range(number)))
            assert (found.problem is None) == (number == 1)
            assert found.next_offset == most
            assert found.sound_end_after == (None if number == 1 else number * most)


@pytest.mark.parametrize(("count", "last_offset_delta"), [(1, 4), (5, 3), (0, 0)])
def test_a_batch_has_a_record_for_each_offset(count: int, last_offset_delta: int) -> None:
    """Where it has not, no state machine gets past it: it is a problem, though its CRC holds."""
    found = scan(raft_batch(0, 1) + batch_of_many(1, count, last_offset_delta))
    assert found.problem is not None
    assert (found.next_offset, found.problem.may_be_torn) == (1, False)


class FailingSource:
    """Bytes that the disk can read except for one of them, or not at all."""

    def __init__(self, data: bytes, bad_position: int | None = None) -> None:
        self.data = data
        self.bad_position = bad_position

    def size(self) -> int:
        """Return their number."""
        return len(self.data)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return some of them."""
        if self.bad_position is None or position <= self.bad_position < position + size:
            raise StorageError("x.log", f"read at {position}", f"no {size} bytes")
        return memoryview(self.data)[position : position + size]

    def drop_cache(self, position: int) -> bool:
        """Say that the disk is not asked."""
        return False


def test_unreadable_bytes_are_reported_at_their_place() -> None:
    """Scanning continues before and after the range, which is never a torn tail."""
    batches = [raft_batch(offset, 1, 1, bytes([offset]) * 3000) for offset in range(10)]
    data, size = b"".join(batches), len(batches[0])
    for position in range(0, len(data), 1000):
        block = position - position % BLOCK_SIZE
        found = scanned(FailingSource(data, position))
        assert found.problem is not None
        assert not found.problem.may_be_torn
        assert f"read at {block}" in found.problem.reason
        assert found.next_offset == block // size
        assert found.end_position == found.problem.position == found.next_offset * size
        is_last = block + BLOCK_SIZE > 9 * size
        assert found.sound_end_after == (None if is_last else 10)


def test_zeros_that_are_right_are_no_bytes_of_the_disk() -> None:
    """Zeros replace unreadable bytes, which count as unreadable even if zeros were there and the checks succeed."""
    data = raft_batch(0, 1) + raft_batch(1, 1, 1, bytes(3 * BLOCK_SIZE)) + raft_batch(2, 1)
    found = scanned(FailingSource(data, BLOCK_SIZE + 1))
    assert found.problem is not None
    assert (found.next_offset, found.problem.may_be_torn, found.sound_end_after) == (1, False, 3)


@given(st.data())
def test_unsynced_bytes_may_or_may_not_be_on_the_disk(draw: st.DataObject) -> None:
    """Whatever memory says from the durable point on, a scan finds what the disk has, and reads no less from memory."""
    log = [raft_batch(offset, 1 + offset // 5, 1, b"%d" % offset) for offset in range(draw.draw(st.integers(0, 9)))]
    durable = draw.draw(st.integers(0, len(log)))
    size = len(b"".join(log[:durable]))
    memory = b"".join(log)
    tail = memory[size:]
    at = draw.draw(st.integers(0, len(tail)))
    lost = draw.draw(st.sampled_from([bytes(len(tail) - at), b"\xff" * (len(tail) - at), tail[at:]]))
    disk = memory[:size] + tail[:at] + lost
    chunk_size = draw.draw(st.sampled_from([61, 200, 1000]))
    with mock.patch.object(iterator, "CHUNK_SIZE", chunk_size):
        file = CachedFile(memory, disk)
        found = scanned(file, durable=durable)
        expected = scan(disk)
        assert attrs.asdict(found, filter=_is_reported) == attrs.asdict(expected, filter=_is_reported)
    assert (file.dropped_from is None) == (durable == len(log))
    if file.dropped_from is not None:
        assert size - chunk_size < file.dropped_from <= size
        assert found.from_disk_offset <= durable
    else:
        assert found.from_disk_offset == sys.maxsize
    undroppable = scanned(CachedFile(memory, None), durable=durable)
    assert undroppable.from_disk_offset == sys.maxsize
    assert attrs.asdict(undroppable, filter=_is_reported) == attrs.asdict(scan(memory), filter=_is_reported)


def _is_reported(attribute: "attrs.Attribute[Any]", _: Any) -> bool:
    return attribute.name not in {"indexes", "witnesses", "from_disk_offset"}


def test_a_failing_disk_is_a_problem_at_the_end_of_what_was_read() -> None:
    """An error of a read is damage, and never a torn tail."""
    found = scanned(FailingSource(raft_batch(0, 1)))
    assert found.problem is not None
    assert (found.problem.position, found.problem.may_be_torn) == (0, False)


@pytest.mark.parametrize("key", [b"", b"\0\0\0", None])
def test_a_control_batch_must_have_structure(key: bytes | None) -> None:
    """A control record without a type is damage, and no torn tail; one of an unknown type is sound."""
    assert scan(control_batch(b"\0\0\0\x63")).problem is None
    usual = write_control_batch([LeaderChangeMessage(1)], base_offset=0, epoch=1, timestamp=0)
    found = scan(usual + control_batch(key, base_offset=1))
    assert found.problem is not None
    assert (found.next_offset, found.problem.position, found.problem.may_be_torn) == (1, len(usual), False)


def control_batch(key: bytes | None, base_offset: int = 0) -> bytes:
    """Return a batch of a control record with a key."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=1, is_control=True)
    builder.append(0, key, b"")
    return builder.build()


def cache(*entries: tuple[int, int]) -> LeaderEpochs:
    """A list of epochs and their starts."""
    return LeaderEpochs(EpochEntry(*entry) for entry in entries)


def test_an_epoch_is_doubted_where_two_witnesses_have_another() -> None:
    """No CRC covers the epoch. One witness alone may be wrong itself; one that says nothing is none."""
    data = raft_batch(0, 1) + raft_batch(1, 3) + raft_batch(2, 3)
    true, other = cache((1, 0), (3, 1)), cache((1, 0), (2, 1))
    assert scan(data, 0, 0, true, true).problem is None
    assert scan(data, 0, 0, true, other).problem is None
    assert scan(data, 0, 0, other).problem is None
    assert scan(data, 0, 0, other, other).next_offset == 1
    late = cache((1, 0), (3, 2))
    assert scan(data, 0, 0, late, late).next_offset == 1
    early = raft_batch(0, 1) + raft_batch(1, 1)
    assert scan(early, 0, 0, true, true).next_offset == 1
