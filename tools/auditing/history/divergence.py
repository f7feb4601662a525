# SPDX-License-Identifier: Apache-2.0
"""Finds where two replicas of a partition differ, and how.

Epochs are compared first: sound logs with the same epoch at an offset have the same records up to that offset. Digests
of blocks then prove it. In blocks that differ, batches are compared. In batches that differ, and are not of a raft log,
records are compared, because each replica compacts a topic at a different time.
"""

import enum
import itertools
from collections.abc import Iterable, Iterator, Sequence

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.rules import Severity
from raftlog.tools.auditing.batch_reader import BatchReader
from raftlog.tools.auditing.evidence import BLOCK_SIZE, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.epoch_runs import EpochRun, epoch_runs
from raftlog.tools.catalogue.audit_rules import DISORDER_RULES, TAIL_RULES
from raftlog.tools.catalogue.findings import Finding


class DivergenceKind(enum.Enum):
    """How two logs differ."""

    APART = "no common offsets"
    PREFIX = "prefix"
    TRUNCATED_TAIL = "truncated tail"
    CONFLICTING_EPOCH = "conflicting epoch"
    CONFLICTING_BATCH = "conflicting batch"
    BIT_ROT = "bit rot"
    HEADER_ROT = "header rot"
    LOST_RECORDS = "lost records"
    COMPACTION = "compaction only"


@attrs.frozen
class Side:
    """One of two logs, where they differ.

    Attributes:
        path: path of the segment, or of the log directory if there is no segment.
        epoch: epoch of the batch there; None if there is no batch.
        position: byte position of the batch, or of the damage that replaces it; None if unknown.
        crc: CRC of the batch there, unsigned; None if unknown.
    """

    path: str
    epoch: int | None = None
    position: int | None = None
    crc: int | None = None


@attrs.frozen
class Divergence:
    """A place where two logs differ.

    Attributes:
        kind: how.
        offset: the first offset that differs; for ``APART``, the start offset of the later log.
        left, right: what is there on each side.
        end_offset: end of the contiguous offsets that are known to differ in this way, exclusive.
    """

    kind: DivergenceKind
    offset: int
    left: Side
    right: Side
    end_offset: int

    @property
    def epoch(self) -> int | None:
        """The epoch at the offset in the left log, or in the right one if the left has none there."""
        return self.right.epoch if self.left.epoch is None else self.left.epoch


def divergences(
    left: PartitionEvidence, right: PartitionEvidence, read: BatchReader, end_offset: int | None = None
) -> Iterator[Divergence]:
    """Yield the differences between two replicas of a partition, in order of offsets.

    If one log is longer, that is a difference at the end of the shorter one. The comparison stops at conflicting
    epochs. It also stops after offsets that a survey reported as out of order in one log, if the logs then differ.

    Args:
        left: a replica.
        right: another replica.
        read: reads batches of a surveyed segment again.
        end_offset: end of the comparison, exclusive; the logs' ends are then not compared. None compares everything.
    """
    start = max(left.start_offset, right.start_offset)
    end = min(left.end_offset, right.end_offset)
    if end_offset is not None:
        end = min(end, end_offset)
    stop = _disorder(left, right, start, end, read)
    if stop is not None:
        end = end_offset = stop
    if start < end:
        fork = _fork(left, right, start, end, read)
        yield from _compare_blocks(left, right, start, fork.offset if fork else end, read)
        if fork is not None:
            yield fork
            return
    if end_offset is not None:
        return
    if start >= end and (left.end_offset < right.start_offset or right.end_offset < left.start_offset):
        yield Divergence(
            DivergenceKind.APART, start, _no_side(left), _no_side(right), max(left.end_offset, right.end_offset)
        )
        return
    if left.end_offset != right.end_offset:
        yield _tail(left, right, end)


def _disorder(left: PartitionEvidence, right: PartitionEvidence, start: int, end: int, read: BatchReader) -> int | None:
    """Return the offset from which two logs differ because offsets in one of them are out of order, or None."""
    found = (
        _diverges_after(segment, finding, other, read)
        for mine, other in ((left, right), (right, left))
        for segment in mine.segments
        for finding in segment.findings
        if finding.rule in DISORDER_RULES and finding.path == segment.task.path
    )
    return min((offset for offset in found if offset is not None and start <= offset < end), default=None)


def _diverges_after(segment: FileEvidence, finding: Finding, other: PartitionEvidence, read: BatchReader) -> int | None:
    """Return the offset where a segment continues after a finding, unless the other log has the same batch there."""
    offset, position = finding.offset or 0, finding.position or 0
    start = position + 1 if finding.rule == "offset-order" else position  # A gap's position is that of the next batch.
    batches = read(segment, offset, offset + BLOCK_SIZE)
    mine = next((batch for batch in batches if batch.position >= start), None)
    if mine is None:
        return None
    theirs = _holder(other, mine.base_offset)
    found = None if theirs is None else _batch_at(theirs, mine.base_offset, read)
    return None if found is not None and _key(found) == _key(mine) else min(offset, mine.base_offset)


def _tail(left: PartitionEvidence, right: PartitionEvidence, end: int) -> Divergence:
    shorter = left if left.end_offset == end else right
    is_cut = any(finding.rule in TAIL_RULES for file in shorter.segments[-1:] for finding in file.findings)
    kind = DivergenceKind.TRUNCATED_TAIL if is_cut else DivergenceKind.PREFIX
    end_offset = max(left.end_offset, right.end_offset)
    return Divergence(kind, end, _side_by_epoch(left, end), _side_by_epoch(right, end), end_offset)


def _no_side(replica: PartitionEvidence) -> Side:
    segments = replica.segments
    return Side(segments[-1].task.path if segments else replica.place.log_directory)


def _side_by_epoch(replica: PartitionEvidence, offset: int) -> Side:
    """Return the epoch and place of the batch at an offset, if there is one."""
    for run in epoch_runs(replica):
        if run.seen.start_offset <= offset < run.seen.end_offset:
            position = run.seen.position if run.seen.start_offset == offset else None
            return Side(run.file.task.path, run.seen.epoch, position)
    return _no_side(replica)


def _fork(
    left: PartitionEvidence, right: PartitionEvidence, start: int, end: int, read: BatchReader
) -> Divergence | None:
    """Return the first offset where epochs differ, unless it is one batch whose header was changed."""
    for mine, other in _overlaps(epoch_runs(left), epoch_runs(right)):
        offset = max(mine.seen.start_offset, other.seen.start_offset, start)
        run_end = min(mine.seen.end_offset, other.seen.end_offset, end)
        if offset >= run_end or mine.seen.epoch == other.seen.epoch:
            continue
        ours, theirs = _batch_at(mine.file, offset, read), _batch_at(other.file, offset, read)
        if ours is not None and theirs is not None and ours.crc == theirs.crc:
            continue  # The bytes differ only in the epoch, which no CRC covers; comparing batches reports it.
        left_side, right_side = _side_of_run(mine, ours), _side_of_run(other, theirs)
        return Divergence(DivergenceKind.CONFLICTING_EPOCH, offset, left_side, right_side, end)
    return None


def _side_of_run(run: EpochRun, batch: RecordBatch | None) -> Side:
    return Side(run.file.task.path, run.seen.epoch) if batch is None else _side(run.file, batch)


def _overlaps(left: Sequence[EpochRun], right: Sequence[EpochRun]) -> Iterator[tuple[EpochRun, EpochRun]]:
    """Yield pairs of runs that may have offsets in common; both lists must be in order."""
    left_index = right_index = 0
    while left_index < len(left) and right_index < len(right):
        ours, theirs = left[left_index], right[right_index]
        yield ours, theirs
        if ours.seen.end_offset <= theirs.seen.end_offset:
            left_index += 1
        else:
            right_index += 1


def _batch_at(segment: FileEvidence, offset: int, read: BatchReader) -> RecordBatch | None:
    return next(read(segment, offset, offset + 1), None)


def _side(segment: FileEvidence, batch: RecordBatch) -> Side:
    return Side(segment.task.path, batch.partition_leader_epoch, batch.position, batch.crc)


def _compare_blocks(
    left: PartitionEvidence, right: PartitionEvidence, start: int, end: int, read: BatchReader
) -> Iterator[Divergence]:
    """Yield the differences of two logs in a range of offsets, where epochs do not fork."""
    found: Divergence | None = None
    for lowest, highest in _differing_blocks(left, right, start, end):
        for divergence in _compare_batches(left, right, lowest, highest, read):
            if found is not None and found.kind is divergence.kind:
                found = attrs.evolve(found, end_offset=divergence.end_offset)
                continue
            if found is not None:
                yield found
            found = divergence
    if found is not None:
        yield found


def _differing_blocks(
    left: PartitionEvidence, right: PartitionEvidence, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the blocks of a range of offsets whose digests differ: start (inclusive) and end (exclusive) of each."""
    ours, theirs = _digests(left), _digests(right)
    for number in sorted(ours.keys() | theirs.keys()):
        lowest, highest = max(start, number * BLOCK_SIZE), min(end, (number + 1) * BLOCK_SIZE)
        if lowest < highest and ours.get(number) != theirs.get(number):
            yield lowest, highest


def first_differing_block(left: PartitionEvidence, right: PartitionEvidence) -> int | None:
    """Return the first offset of the first block whose digests differ, of those that both logs have as a whole.

    Logs without differences have such a block if batches are out of order, or doubled. None if there is none.
    """
    start, end = max(left.start_offset, right.start_offset), min(left.end_offset, right.end_offset)
    for lowest, highest in _differing_blocks(left, right, start, end):
        is_whole_at_start = lowest % BLOCK_SIZE == 0 or left.start_offset == right.start_offset
        if is_whole_at_start and (highest % BLOCK_SIZE == 0 or left.end_offset == right.end_offset):
            return lowest
    return None


def _digests(replica: PartitionEvidence) -> dict[int, tuple[int, int]]:
    """Return the batch count and the digest of each block of a log, over its segments."""
    digests: dict[int, tuple[int, int]] = {}
    for block in (block for segment in replica.segments for block in segment.blocks):
        count, digest = digests.get(block.number, (0, 0))
        digests[block.number] = count + block.batch_count, (digest + block.digest) & (1 << 64) - 1
    return digests


def _compare_batches(
    left: PartitionEvidence, right: PartitionEvidence, start: int, end: int, read: BatchReader
) -> Iterator[Divergence]:
    ours, theirs = _by_base_offset(left, start, end, read), _by_base_offset(right, start, end, read)
    are_raft = left.is_raft or right.is_raft
    for offset in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(offset), theirs.get(offset)
        if mine is None or other is None:
            there, lacking = (theirs[offset], left) if mine is None else (mine, right)
            kind = _kind_of_missing(there[1], lacking, are_raft=are_raft)
        elif _key(mine[1]) == _key(other[1]):
            continue
        else:
            kind = _kind_of_pair(mine[1], other[1], are_raft=are_raft)
        last_offset = max(found[1].last_offset for found in (mine, other) if found is not None)
        left_side = _side(*mine) if mine else _side_of_missing(left, offset)
        right_side = _side(*other) if other else _side_of_missing(right, offset)
        yield Divergence(kind, offset, left_side, right_side, last_offset + 1)


_Found = tuple[FileEvidence, RecordBatch]


def _by_base_offset(replica: PartitionEvidence, start: int, end: int, read: BatchReader) -> dict[int, _Found]:
    found: dict[int, _Found] = {}
    for segment in replica.segments:
        extent = segment.extent
        if extent is not None and extent.start_offset < end and extent.end_offset > start:
            for batch in _in_sequence(segment, read(segment, start, end)):
                if extent.start_offset <= batch.base_offset < extent.end_offset:  # Otherwise it is out of order.
                    found.setdefault(batch.base_offset, (segment, batch))
    return found


def _in_sequence(segment: FileEvidence, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield batches without those that were reported as out of order: their offsets are not those that they say."""
    path, findings = segment.task.path, segment.findings
    stray = {each.position for each in findings if each.rule == "offset-order" and each.path == path}
    reached = stray_end = -1
    for batch in batches:
        start = batch.base_offset
        continues_stray = start == stray_end and start != reached
        if stray and (batch.position in stray or start < reached or continues_stray):
            stray_end = batch.next_offset
            continue
        reached = batch.next_offset
        yield batch


def _key(batch: RecordBatch) -> tuple[int, int, int]:
    return batch.last_offset, batch.partition_leader_epoch, batch.crc


def _kind_of_pair(mine: RecordBatch, other: RecordBatch, *, are_raft: bool) -> DivergenceKind:
    """Return how two batches with the same base offset differ."""
    if mine.crc == other.crc:
        return DivergenceKind.HEADER_ROT
    is_compacted = not are_raft and _only_compacted(mine, other)
    return DivergenceKind.COMPACTION if is_compacted else DivergenceKind.CONFLICTING_BATCH


def _kind_of_missing(there: RecordBatch, lacking: PartitionEvidence, *, are_raft: bool) -> DivergenceKind:
    """Return why a replica lacks a batch that another one has."""
    if _is_damaged_at(lacking, there.base_offset):
        return DivergenceKind.BIT_ROT
    return DivergenceKind.LOST_RECORDS if are_raft or _has_keyless(there) else DivergenceKind.COMPACTION


def _is_damaged_at(replica: PartitionEvidence, offset: int) -> bool:
    """Return whether a replica is damaged in the segment that would hold an offset, or has a gap in its place."""
    gaps = (finding for segment in replica.segments for finding in segment.findings if finding.rule == "segment-gap")
    is_in_gap = any(gap.offset is not None and gap.offset <= offset for gap in gaps)
    holder = _holder(replica, offset)
    is_in_damaged = holder is not None and any(each.severity is not Severity.HARMLESS for each in holder.findings)
    return is_in_gap or is_in_damaged


def _holder(replica: PartitionEvidence, offset: int) -> FileEvidence | None:
    """Return the segment that would hold an offset, or None."""
    before = [segment for segment in replica.segments if (segment.task.base_offset or 0) <= offset]
    return before[-1] if before else None


def _side_of_missing(replica: PartitionEvidence, offset: int) -> Side:
    """Return the place in a log where a batch is missing, with the position of the damage that replaces it, if any."""
    holder = _holder(replica, offset)
    if holder is None:
        return _no_side(replica)
    damaged = [finding.position for finding in holder.findings if finding.offset == offset]
    return Side(holder.task.path, position=damaged[0] if damaged else None)


def _only_compacted(left: RecordBatch, right: RecordBatch) -> bool:
    """Whether the records that two batches share are equal, and compaction could have removed all other records."""
    try:
        ours, theirs = _records(left), _records(right)
    except RaftLogError:
        return False
    common = ours.keys() & theirs.keys()
    extra = itertools.chain(ours.keys() - common, theirs.keys() - common)
    return all(ours[offset] == theirs[offset] for offset in common) and all(
        (ours.get(offset) or theirs[offset])[0] is not None for offset in extra
    )


_Content = tuple[bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]], int]


def _records(batch: RecordBatch) -> dict[int, _Content]:
    """Return key, value, headers and timestamp of each record by its offset: compaction keeps all four."""
    return {
        record.offset: (_bytes(record.key), _bytes(record.value), record.headers, record.timestamp)
        for record in batch.records()
    }


def _bytes(field: Iterable[int] | None) -> bytes | None:
    return None if field is None else bytes(field)


def _has_keyless(batch: RecordBatch) -> bool:
    """Return whether a batch has a record without a key, which compaction would have kept."""
    try:
        return not batch.is_control and any(key is None for key, *_ in _records(batch).values())
    except RaftLogError:
        return True
