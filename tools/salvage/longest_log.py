# SPDX-License-Identifier: Apache-2.0
"""Finds the longest log that replicas can vouch for together.

Three steps: which batches of each replica can be vouched for, which lineage wins and how far each replica is of it, and
what all of them have of it without a hole. Every log is read twice, and never held in memory.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import RecordBatch
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.tools.salvage.choosing import Chosen, FoundSnapshot, choose
from raftlog.tools.salvage.merging import IMPOSSIBLE, ODD, FoundBatch, IsMajority, Merged, merge_by_sides, read_usable
from raftlog.tools.salvage.runs import NamedSegment, Run, next_bases, read_runs
from raftlog.tools.salvage.vouching import DiskOwner, NumberedRun, VouchedLog, vouch, with_second_copies
from raftlog.tools.salvage.winning import Extent, Known, Winner, parting_offset, winner

_PIECE_BYTES: Final = 1 << 20
_NO_END: Final = (1 << 63) - 1


@attrs.frozen
class ReplicaFiles:
    """What a replica has.

    Attributes:
        directory: of its log.
        segments: by ascending base offset.
        checkpoint: entries of its ``leader-epoch-checkpoint``, ascending; empty if it cannot be read.
        node_id: of its node; None if no file says it. Copies of one node's disk do not vouch for each other, and a
            replica of an unknown node may be such a copy.
        state_epoch: epoch of its quorum-state; None if that cannot be read.
        has_losses: whether something in it is known to be damaged or gone.
        refuted: files and positions of batches that are damaged by what is before them in the log.
        flawed: files and positions of whole batches that no leader can have written: of two at one offset, one that is
            not here is preferred.
        odd: likewise of those that a tool may have written.
    """

    directory: str
    segments: tuple[NamedSegment, ...]
    checkpoint: tuple[EpochEntry, ...] = ()
    node_id: int | None = None
    state_epoch: int | None = None
    has_losses: bool = False
    refuted: frozenset[tuple[str, int]] = frozenset()
    flawed: frozenset[tuple[str, int]] = frozenset()
    odd: frozenset[tuple[str, int]] = frozenset()


@attrs.frozen
class LongestLog:
    """The longest log that can be vouched for, and what was found on the way.

    Attributes:
        logs: what of each replica can be vouched for.
        winner: the lineage.
        merged: what all replicas have of it.
        snapshots: those of the lineage, the preferred ones first.
        misplaced: those of them that do not end where a batch of their epoch does; they are not used.
        chosen: the log; None if every way to begin one is gone.
        ranks: numbers of the replicas, the most up-to-date first; of equal ones, by node id and path.
    """

    logs: tuple[VouchedLog, ...]
    winner: Winner
    merged: Merged
    snapshots: tuple[FoundSnapshot, ...]
    misplaced: tuple[FoundSnapshot, ...]
    chosen: Chosen | None
    ranks: tuple[int, ...]


def find_longest_log(
    replicas: Sequence[ReplicaFiles], snapshots: Sequence[FoundSnapshot], proven: Known, is_majority: IsMajority
) -> LongestLog | None:
    """Return the longest log that can be vouched for; None if nothing can, or all contradicts what is proven.

    Args:
        replicas: of one log. Nothing is written.
        snapshots: the sound ones above offset 0.
        proven: what is proven to be committed.
        is_majority: says whether some replicas, by number, are those of a majority of the voters before an offset.

    Raises:
        StorageError: a file cannot be read.
    """
    replicas = [_without_unseen(each, owner) for each, owner in zip(replicas, _owners(replicas), strict=True)]
    logs = vouched_logs(replicas)
    known = [_known(each, log) for each, log in zip(replicas, logs, strict=True)]
    claims = [claim for each, log in zip(replicas, logs, strict=True) for claim in _claims(each, log)]
    snapshots = [each for each in snapshots if _is_vouched(each, snapshots, replicas, logs)]
    found = winner(known, (each.id for each in snapshots), proven, claims)
    if found is None:
        return None
    ranks = tuple(sorted(_by_identity(replicas), key=lambda number: known[number].end, reverse=True))
    of_lineage = [each for each in snapshots if parting_offset(found.known, Known.of_point(each.id)) is None]
    of_lineage.sort(key=lambda each: (-each.offset, ranks.index(each.source)))

    def read(number: int) -> Iterator[tuple[str, RecordBatch]]:
        return read_usable(replicas[number].directory, logs[number].runs, found.ends[number])

    snapshot_end = max((each.offset for each in of_lineage), default=0)
    committed_end = max(snapshot_end, proven.end.offset)

    def preference(way: tuple[Merged, Chosen | None]) -> tuple[int, list[tuple[int, int]], int, int]:
        """Rank a result by what it reaches of what is committed, as snapshots are; then by the sides it goes on with.

        Of two sides, that of more known nodes is preferred, and then that of the most up-to-date source.
        """
        merged, chosen = way
        sides = [each.kept for each in merged.conflicts if not each.is_settled]
        nodes = ({replicas[number].node_id for number in side} - {None} for side in sides)
        by_side = [(len(each), -min(map(ranks.index, side))) for each, side in zip(nodes, sides, strict=True)]
        end, start = (0, 0) if chosen is None else (chosen.end.offset, chosen.start_offset)
        return _committed_reach(end, committed_end), by_side, end, -start

    def flaw_of(batch: FoundBatch) -> int:
        replica, place = replicas[batch.source], (batch.file, batch.position)
        return IMPOSSIBLE if place in replica.flawed else ODD if place in replica.odd else 0

    offsets = sorted({each.offset for each in of_lineage})
    ways = (
        (each, choose(each, [snapshot for snapshot in of_lineage if not _is_misplaced(snapshot, each)]))
        for each in merge_by_sides(read, ranks, is_majority, flaw_of, offsets)
    )
    merged, chosen = max(ways, key=preference)
    misplaced = tuple(each for each in of_lineage if _is_misplaced(each, merged))
    return LongestLog(logs, found, merged, tuple(of_lineage), misplaced, chosen, ranks)


def _is_misplaced(snapshot: FoundSnapshot, merged: Merged) -> bool:
    """Whether a snapshot ends inside a batch, or after one of another epoch, as one that was renamed does.

    Source: KafkaRaftLog#createNewSnapshot.
    """
    ends = (each for each in merged.ends if each.snapshot_offset == snapshot.offset)
    return any(each.last_offset >= snapshot.offset or each.epoch != snapshot.epoch for each in ends)


def _committed_reach(end_offset: int, committed_end: int) -> int:
    """Return how far a log that ends at an offset reaches in what is committed. Beyond that, length proves nothing."""
    return min(end_offset, committed_end)


def _by_identity(replicas: Sequence[ReplicaFiles]) -> list[int]:
    """Return the numbers of the replicas in an order that does not depend on them: by node id, unknown ones last."""

    def identity(number: int) -> tuple[bool, int, str]:
        replica = replicas[number]
        return replica.node_id is None, replica.node_id or 0, replica.directory

    return sorted(range(len(replicas)), key=identity)


def _is_vouched(
    snapshot: FoundSnapshot,
    snapshots: Sequence[FoundSnapshot],
    replicas: Sequence[ReplicaFiles],
    logs: Sequence[VouchedLog],
) -> bool:
    """Whether something says that a log has reached a snapshot's end: a file's name alone may be wrong.

    A log has records there, or another node has such a snapshot. If the replica has lost what may have been there,
    the name counts; damage elsewhere says nothing of it.
    """
    offset = snapshot.offset
    if _may_have_reached(replicas[snapshot.source], logs[snapshot.source], offset):
        return True
    if any(run.start_offset <= offset <= run.end_offset for log in logs for run in log.runs):
        return True
    owners = _owners(replicas)
    own = owners[snapshot.source]
    return any(each.id == snapshot.id and own.is_other_than(owners[each.source]) for each in snapshots)


def _without_unseen(replica: ReplicaFiles, owner: DiskOwner) -> ReplicaFiles:
    """Leave out entries of a checkpoint whose epoch the node has not seen: no such epoch was in its log."""
    return attrs.evolve(replica, checkpoint=tuple(each for each in replica.checkpoint if owner.has_seen(each.epoch)))


def _may_have_reached(replica: ReplicaFiles, log: VouchedLog, offset: int) -> bool:
    """Whether what a replica has lost may hide that its log has reached an offset at which it has no records.

    The offset is in a hole; or the end of the log is lost: bytes follow what can be vouched for, or a segment does, or
    an epoch that begins there or later.
    """
    if not replica.has_losses:
        return False
    if not log.runs or log.runs[-1].file != replica.segments[-1].file:
        return True
    last = log.runs[-1]
    if last.end_offset >= offset or (replica.checkpoint and replica.checkpoint[-1].start_offset >= last.end_offset):
        return True
    with FileSource(f"{replica.directory}/{last.file}") as source:
        return last.end_position < source.size()


def _owners(replicas: Sequence[ReplicaFiles]) -> list[DiskOwner]:
    """Return the node of each replica, with the latest epoch that any copy of its quorum-state has."""
    return [DiskOwner(each.node_id, _state_epoch(each, replicas)) for each in replicas]


def _state_epoch(replica: ReplicaFiles, replicas: Sequence[ReplicaFiles]) -> int | None:
    if replica.node_id is None:
        return replica.state_epoch
    same = (each.state_epoch for each in replicas if each.node_id == replica.node_id)
    return max((epoch for epoch in same if epoch is not None), default=None)


def vouched_logs(replicas: Sequence[ReplicaFiles]) -> tuple[VouchedLog, ...]:
    """Return what of each replica can be vouched for.

    Raises:
        StorageError: a file cannot be read.
    """
    logs = [vouch(_runs(each), each.checkpoint) for each in replicas]

    def are_equal(one: NumberedRun, other: NumberedRun) -> bool:
        pieces = [_bytes(f"{replicas[number].directory}/{run.file}", run) for number, run in (one, other)]
        return all(left == right for left, right in zip(*pieces, strict=True))

    return with_second_copies(logs, _owners(replicas), are_equal)


def _runs(replica: ReplicaFiles) -> Iterator[Run]:
    for segment, next_base_offset in next_bases(replica.segments):
        with FileSource(f"{replica.directory}/{segment.file}") as source:
            refuted = {position for file, position in replica.refuted if file == segment.file}
            yield from read_runs(source, segment, next_base_offset, refuted)


def _bytes(path: str, run: Run) -> Iterator[memoryview]:
    with FileSource(path) as source:
        for position in range(run.position, run.end_position, _PIECE_BYTES):
            yield source.read_at(position, min(_PIECE_BYTES, run.end_position - position))


def _known(replica: ReplicaFiles, log: VouchedLog) -> Known:
    """Return what is known of a replica's log: what it can vouch for, and epochs between by its checkpoint."""
    known = Known.of_runs(log.runs)
    checkpoint = _checkpoint(replica, log)
    return known if checkpoint is None else known.joined(Known.of_lineage(checkpoint).cut(known.end.offset))


def _checkpoint(replica: ReplicaFiles, log: VouchedLog) -> Lineage | None:
    """Return the epochs up to the start of the last one by a replica's checkpoint; None if its log contradicts that."""
    if not replica.checkpoint:
        return None
    lineage = Lineage(replica.checkpoint, _NO_END)
    offsets = ((run, offset) for run in log.runs for offset in (run.start_offset, run.end_offset - 1))
    if any(lineage.epoch_at(offset) not in {None, run.epoch} for run, offset in offsets):
        return None
    return Lineage(replica.checkpoint, replica.checkpoint[-1].start_offset)


def _claims(replica: ReplicaFiles, log: VouchedLog) -> Iterator[Known]:
    """Yield what a replica's log was, if it had later epochs than those that it can vouch for."""
    known = Known.of_runs(log.runs)
    checkpoint = _checkpoint(replica, log)
    if checkpoint is not None:
        yield Known.of_lineage(checkpoint)
        return
    seen = -1 if replica.state_epoch is None else replica.state_epoch
    for run in log.doubted:
        if known.end.epoch < run.epoch <= seen and run.opens_with_leader and run.is_linked_before:
            yield known.joined(Known({run.epoch: Extent(run.start_offset, run.start_offset)}))
