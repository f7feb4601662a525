# SPDX-License-Identifier: Apache-2.0
"""Says which runs of a partition's log can be vouched for.

No CRC covers the base offset and the epoch of a batch. So both must follow from a second thing, as in a raft log; but
no control record begins an epoch, so that only a neighbour of the same epoch, ``leader-epoch-checkpoint``, or the same
bytes on the disk of another node vouch for an epoch. A checkpoint that contradicts batches which need no witness
vouches for nothing.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from raftlog.offsets import EpochEntry
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.tools.salvage.partitions.partition_runs import TopicRun
from raftlog.tools.salvage.vouching import chained, fitted, keep_agreeing, numbers_of

_NO_END: Final = (1 << 63) - 1

NumberedRun: TypeAlias = tuple[int, TopicRun]
"""A run with the number of its log."""
Compare: TypeAlias = Callable[[NumberedRun, NumberedRun], bool]
"""Says whether two runs have the same bytes."""


@attrs.frozen
class VouchedPartition:
    """The runs of one replica's log.

    Attributes:
        runs: those that can be vouched for. Neither offsets nor epochs decrease along them, and none overlap.
        doubted: the others, in any order.
        contradicted: those of the doubted that have a place, and whose offsets or epochs contradict others that have
            more support.
        checkpoint: the entries of ``leader-epoch-checkpoint``; none if the runs contradict it.
        has_false_checkpoint: whether they do.
    """

    runs: tuple[TopicRun, ...]
    doubted: tuple[TopicRun, ...]
    checkpoint: tuple[EpochEntry, ...] = ()
    has_false_checkpoint: bool = False
    contradicted: tuple[TopicRun, ...] = ()


def vouch_partition(runs: Iterable[TopicRun], checkpoint: tuple[EpochEntry, ...]) -> VouchedPartition:
    """Divide the runs of one log.

    Args:
        runs: in the order of its files and their bytes.
        checkpoint: the entries of its ``leader-epoch-checkpoint``, ascending; none if that cannot be read.
    """
    lineage = Lineage(checkpoint, _NO_END)
    kept, doubted = keep_agreeing(chained(runs, _follows), lambda chain: _weight(chain, lineage), _agree)
    contradicted = tuple(run for run in doubted if _has_place(run))
    needless = [run for run, beside in _with_neighbours(kept) if _has_place(run) and _is_confirmed(run, beside)]
    is_false = any(_contradicts(lineage, run) for run in needless)
    certain = [
        run
        for run, beside in _with_neighbours(kept)
        if _has_place(run) and (_is_confirmed(run, beside) or (not is_false and _is_of(lineage, run)))
    ]
    known = set(certain)
    doubted += [run for run in kept if run not in known]
    trusted = () if is_false else checkpoint
    return VouchedPartition(tuple(certain), tuple(doubted), trusted, is_false, contradicted)


def _weight(chain: Sequence[TopicRun], lineage: Lineage) -> int:
    """How much supports a chain: its batches, twice if the checkpoint has them; nothing if it is alone among damage."""
    return sum(run.batch_count * (1 + _is_of(lineage, run)) for run in chain if _has_place(run))


def _agree(before: TopicRun, after: TopicRun) -> bool:
    return after.start_offset >= before.end_offset and after.epoch >= before.epoch


def _has_place(run: TopicRun) -> bool:
    return run.batch_count > 1 or run.is_linked_before or run.is_linked_after


def _with_neighbours(runs: Sequence[TopicRun]) -> list[tuple[TopicRun, list[TopicRun]]]:
    """Return each run with those that follow it, or that it follows, without a hole."""
    found: list[tuple[TopicRun, list[TopicRun]]] = [(run, []) for run in runs]
    for (before, beside), (after, others) in itertools.pairwise(found):
        if (
            after.is_linked_before
            and before.is_linked_after
            and min(after.covers_from, after.perhaps_from) <= before.end_offset
        ):
            beside.append(after)
            others.append(before)
    return found


def _follows(before: TopicRun, after: TopicRun) -> bool:
    """Whether a run goes on in the epoch of another, and nothing is known to be gone between; a file may end there."""
    is_linked = before.is_linked_after and after.is_linked_before and before.epoch == after.epoch
    return is_linked and min(after.covers_from, after.perhaps_from) <= before.end_offset <= after.start_offset


def _is_confirmed(run: TopicRun, beside: Iterable[TopicRun]) -> bool:
    return run.batch_count > 1 or any(each.epoch == run.epoch for each in beside)


def _is_of(lineage: Lineage, run: TopicRun) -> bool:
    return lineage.epoch_at(run.start_offset) == run.epoch == lineage.epoch_at(run.end_offset - 1)


def _contradicts(lineage: Lineage, run: TopicRun) -> bool:
    offsets = (run.start_offset, run.end_offset - 1)
    return any(lineage.epoch_at(offset) not in {None, run.epoch} for offset in offsets)


def with_copies_elsewhere(
    logs: Sequence[VouchedPartition], node_ids: Sequence[int | None], are_equal: Compare
) -> tuple[VouchedPartition, ...]:
    """Add the batches that nothing in their own log vouches for, and that another node has too, byte for byte.

    Args:
        logs: of one partition.
        node_ids: the node of each log; None if it is not known: it may be a copy of any disk, and is no witness.
        are_equal: compares the bytes of two runs whose numbers are equal.
    """
    alone: dict[tuple[int, ...], list[NumberedRun]] = {}
    for number, log in enumerate(logs):
        for run in log.doubted:
            if run.batch_count == 1 and node_ids[number] is not None:
                alone.setdefault(numbers_of(run), []).append((number, run))
    found: list[list[TopicRun]] = [[] for _ in logs]
    for group in alone.values():
        for each in group:
            if any(node_ids[each[0]] != node_ids[other[0]] and are_equal(each, other) for other in group):
                found[each[0]].append(each[1])
    return tuple(_with(log, more) for log, more in zip(logs, found, strict=True))


def _with(log: VouchedPartition, found: Collection[TopicRun]) -> VouchedPartition:
    """Return a log with more runs, where they fit between those that it has."""
    runs, added = fitted(log.runs, found, _agree)
    return attrs.evolve(log, runs=runs, doubted=tuple(run for run in log.doubted if run not in added))
