# SPDX-License-Identifier: Apache-2.0
"""Says which runs of a log can be vouched for.

No CRC covers the base offset and the epoch of a batch. So both must follow from something else: from the batch directly
before or after it, from the name of a file, from an entry of ``leader-epoch-checkpoint``, or from the same bytes in the
directory of another node. A directory of an unknown node may be a copy of any disk, and is never such a second witness.
"""

import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias, TypeVar

import attrs

from raftlog.offsets import EpochEntry
from raftlog.tools.salvage.runs import Run

R = TypeVar("R", bound=Run)
NumberedRun: TypeAlias = tuple[int, Run]
"""A run with the number of its log."""
Compare: TypeAlias = Callable[[NumberedRun, NumberedRun], bool]
"""Says whether two runs have the same bytes."""


@attrs.frozen
class DiskOwner:
    """The node that a log is of.

    Attributes:
        node_id: None if no file says it.
        state_epoch: the latest that a quorum-state of this node has; None if none can be read.
    """

    node_id: int | None
    state_epoch: int | None = None

    def is_other_than(self, other: "DiskOwner") -> bool:
        """Whether both nodes are known and differ, so that one log is no copy of the other's disk."""
        return self.node_id is not None and other.node_id is not None and self.node_id != other.node_id

    def has_seen(self, epoch: int) -> bool:
        """Whether the node's quorum-state allows for records of an epoch."""
        return self.state_epoch is None or epoch <= self.state_epoch


@attrs.frozen
class VouchedLog:
    """The runs of one log.

    Attributes:
        runs: those that can be vouched for. Neither offsets nor epochs decrease along them, and none overlap.
        doubted: the others, in any order.
    """

    runs: tuple[Run, ...]
    doubted: tuple[Run, ...]


def vouch(runs: Iterable[Run], checkpoint: Sequence[EpochEntry]) -> VouchedLog:
    """Divide the runs of one log.

    Args:
        runs: in the order of its files and their bytes.
        checkpoint: the entries of its ``leader-epoch-checkpoint``, ascending; empty if it cannot be read.
    """
    kept, doubted = keep_agreeing(chained(runs, _follows), lambda chain: _weight(chain, checkpoint), _agree)
    certain: list[Run] = []
    for run, before, after in _with_neighbours(kept):
        (certain if _is_certain(run, before, after, checkpoint) else doubted).append(run)
    return VouchedLog(tuple(certain), tuple(doubted))


def chained(runs: Iterable[R], follows: Callable[[R, R], bool]) -> Iterator[list[R]]:
    """Yield the runs of a log in chains: each but the first of a chain follows the one before it."""
    chain: list[R] = []
    for run in runs:
        if chain and not follows(chain[-1], run):
            yield chain
            chain = []
        chain.append(run)
    if chain:
        yield chain


def keep_agreeing(
    chains: Iterable[list[R]], weight: Callable[[list[R]], int], agree: Callable[[R, R], bool]
) -> tuple[list[R], list[R]]:
    """Divide the runs of a log into those that agree with each other, and the others.

    Args:
        chains: that are kept or not as a whole, in the order of the log.
        weight: how much supports a chain. Of two that do not agree, the one with more stays; with as much, none.
        agree: whether one run can stand before another.
    """
    kept: list[list[R]] = []
    doubted: list[R] = []
    for chain in chains:
        _push(chain, kept, doubted, weight, agree)
    return [run for chain in kept for run in chain], doubted


def _push(
    chain: list[R],
    kept: list[list[R]],
    doubted: list[R],
    weight: Callable[[list[R]], int],
    agree: Callable[[R, R], bool],
) -> None:
    support = weight(chain)
    while kept and not agree(kept[-1][-1], chain[0]):
        before = weight(kept[-1])
        if before <= support:
            doubted += kept.pop()
        if before >= support:
            doubted += chain
            return
    kept.append(chain)


def _follows(before: Run, after: Run) -> bool:
    is_linked = before.is_linked_after and after.is_linked_before and before.end_offset == after.start_offset
    return is_linked and before.epoch == after.epoch and not after.opens_with_leader


def _agree(before: Run, after: Run) -> bool:
    """Whether one run can follow another. A LeaderChange begins an epoch, and nothing else does."""
    if after.start_offset < before.end_offset or after.epoch < before.epoch:
        return False
    if after.opens_with_leader:
        return after.epoch > before.epoch
    return after.epoch == before.epoch or after.start_offset > before.end_offset


def _weight(chain: Sequence[Run], checkpoint: Sequence[EpochEntry]) -> int:
    """How much supports a chain: its batches, and an entry of the checkpoint; nothing if it is alone among damage."""
    first, count = chain[0], sum(run.batch_count for run in chain)
    if count == 1 and not (first.is_linked_before or first.is_linked_after):
        return 0
    return count + _is_of_its_epoch(first, checkpoint)


def _with_neighbours(runs: Sequence[Run]) -> Iterator[tuple[Run, Run | None, Run | None]]:
    """Yield each run with those that are directly before and after it in the log."""
    for index, run in enumerate(runs):
        before = runs[index - 1] if index and run.is_linked_before else None
        after = runs[index + 1] if index + 1 < len(runs) and run.is_linked_after else None
        yield (
            run,
            before if before is not None and before.end_offset == run.start_offset else None,
            after if after is not None and after.start_offset == run.end_offset else None,
        )


def _is_certain(run: Run, before: Run | None, after: Run | None, checkpoint: Sequence[EpochEntry]) -> bool:
    if run.batch_count > 1:
        return True  # Each has a neighbour, with the same epoch.
    if not (run.is_linked_before or run.is_linked_after):
        return False
    if any(each is not None and each.epoch == run.epoch for each in (before, after)):
        return True
    if _is_of_its_epoch(run, checkpoint):
        return True
    is_between = before is not None and after is not None and before.epoch + 1 == run.epoch == after.epoch - 1
    return run.opens_with_leader and is_between


def _is_of_its_epoch(run: Run, checkpoint: Sequence[EpochEntry]) -> bool:
    """Whether a checkpoint says so: the epoch begins with the run, or began before it, and the next one after it."""
    later = bisect.bisect_right(checkpoint, run.start_offset, key=lambda entry: entry.start_offset)
    if not later or checkpoint[later - 1].epoch != run.epoch:
        return False
    if run.opens_with_leader:
        return checkpoint[later - 1].start_offset == run.start_offset
    return later < len(checkpoint) and run.end_offset <= checkpoint[later].start_offset


# Second copies


def with_second_copies(
    logs: Sequence[VouchedLog], owners: Sequence[DiskOwner], are_equal: Compare
) -> tuple[VouchedLog, ...]:
    """Add the batches that nothing in their own log vouches for, and that another node has too, byte for byte.

    A batch of a later epoch than its node has seen is not added: a node writes an epoch to its quorum-state before it
    appends a record of it.

    Args:
        logs: of one quorum.
        owners: the node of each log. A copy of the same node's disk is no second copy.
        are_equal: compares the bytes of two runs whose numbers are equal.
    """
    alone = [
        (number, run)
        for number, log in enumerate(logs)
        for run in log.doubted
        if run.batch_count == 1 and owners[number].has_seen(run.epoch)
    ]
    alone.sort(key=lambda each: (numbers_of(each[1]), each[0]))
    found: dict[int, list[Run]] = {}
    for _, group in groupby(alone, key=lambda each: numbers_of(each[1])):
        for number, run in _with_equals(list(group), owners, are_equal):
            found.setdefault(number, []).append(run)
    return tuple(_with(log, found.get(number, ())) for number, log in enumerate(logs))


def numbers_of(run: Run) -> tuple[int, ...]:
    """Return what two copies of a run have in common."""
    return run.start_offset, run.end_offset, run.epoch, run.crc, run.size_bytes


def _with_equals(
    group: Sequence[NumberedRun], owners: Sequence[DiskOwner], are_equal: Compare
) -> Iterator[NumberedRun]:
    for each in group:
        if any(owners[each[0]].is_other_than(owners[other[0]]) and are_equal(each, other) for other in group):
            yield each


def _with(log: VouchedLog, found: Collection[Run]) -> VouchedLog:
    runs, added = fitted(log.runs, found, _agree)
    return VouchedLog(runs, tuple(run for run in log.doubted if run not in added))


def fitted(runs: Iterable[R], more: Iterable[R], agree: Callable[[R, R], bool]) -> tuple[tuple[R, ...], set[R]]:
    """Return runs with others, where these fit between them; and those that did.

    Args:
        runs: that agree with each other, by ascending offset.
        more: others; of two that do not agree, the first one is taken.
        agree: whether one run can stand before another.
    """
    all_runs, added = list(runs), set[R]()
    for run in more:
        index = bisect.bisect_left(all_runs, run.end_offset, key=lambda each: each.start_offset)
        fits_before = index == 0 or agree(all_runs[index - 1], run)
        if fits_before and (index == len(all_runs) or agree(run, all_runs[index])):
            all_runs.insert(index, run)
            added.add(run)
    return tuple(all_runs), added
