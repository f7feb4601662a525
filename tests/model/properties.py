# SPDX-License-Identifier: Apache-2.0
"""The invariants of the model, each a function of what it needs, and none of what replicas believe.

What is committed is recorded at the moment when some replica's high watermark first covers it.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.model.logs import VOTERS, Log, common_length, epoch_of, is_voters, majority, members, voters_in_force
from tests.model.replica import GONE, LEADER, Replica

ONE_LEADER: Final = "one leader per epoch"
ONE_VOTE: Final = "one vote per epoch"
EPOCHS_GROW: Final = "epochs do not go back"
HIGH_WATERMARKS_GROW: Final = "high watermarks do not fall"
COMMITTED_STAYS: Final = "flushed committed entries stay"
ON_A_MAJORITY: Final = "what is committed is flushed on a majority"
LOGS_MATCH: Final = "logs match"
COMMITTED_AGREES: Final = "committed entries agree"
LEADER_COMPLETE: Final = "a leader has all that is committed"
ONE_CHANGE: Final = "at most one voter set is uncommitted"
SETS_OVERLAP: Final = "majorities of consecutive voter sets overlap"
POINTERS_IN_ORDER: Final = "log start, high watermark and end are in order"
EPOCHS_IN_ORDER: Final = "epochs of a log are in order, up to the replica's"

INVARIANTS: Final = (
    ONE_LEADER,
    ONE_VOTE,
    EPOCHS_GROW,
    HIGH_WATERMARKS_GROW,
    COMMITTED_STAYS,
    ON_A_MAJORITY,
    LOGS_MATCH,
    COMMITTED_AGREES,
    LEADER_COMPLETE,
    ONE_CHANGE,
    SETS_OVERLAP,
    POINTERS_IN_ORDER,
    EPOCHS_IN_ORDER,
)


class History(NamedTuple):
    """What happened so far, which no replica knows.

    Attributes:
        committed: the entries that were committed at some time.
        leaders: for each epoch from 0 on, the replicas that have led it, as bits.
        used: how much of each budget is used.
    """

    committed: Log
    leaders: tuple[int, ...]
    used: tuple[int, ...]


def step_faults(before: Replica, after: Replica, committed: Log, *, is_crash: bool) -> Iterator[str]:
    """Yield the invariants that one step of a replica breaks."""
    if after.epoch < before.epoch:
        yield EPOCHS_GROW
    if after.epoch == before.epoch and before.vote not in (-1, after.vote):
        yield ONE_VOTE
    if after.high_watermark < before.high_watermark and not is_crash:
        yield HIGH_WATERMARKS_GROW
    if safely_kept(after, committed) < safely_kept(before, committed):
        yield COMMITTED_STAYS


def safely_kept(replica: Replica, committed: Log) -> int:
    """Return how many committed entries a replica has flushed."""
    return min(replica.flushed, common_length(replica.log, committed))


def commit_faults(leader: Replica, replicas: Sequence[Replica], initial: int) -> Iterator[str]:
    """Yield whether the high watermark to which a leader has come is not on the disks of a majority."""
    voters = voters_in_force(leader.log, initial)
    committed = leader.log[: leader.high_watermark]
    having = [each for each in members(voters) if safely_kept(replicas[each], committed) >= len(committed)]
    if len(having) < majority(voters):
        yield ON_A_MAJORITY


def replica_faults(replica: Replica, history: History, initial: int) -> Iterator[str]:
    """Yield the invariants that a replica breaks, given the history."""
    committed, length = history.committed, common_length(replica.log, history.committed)
    if replica.role == GONE:
        return
    if not replica.start <= replica.high_watermark <= len(replica.log):
        yield POINTERS_IN_ORDER
    if not replica.start <= replica.flushed <= len(replica.log):
        yield POINTERS_IN_ORDER
    epochs = [*map(epoch_of, replica.log), replica.epoch]
    if epochs != sorted(epochs):
        yield EPOCHS_IN_ORDER
    if length < min(replica.high_watermark, len(committed)):
        yield COMMITTED_AGREES
    newest = max(epoch for epoch, leaders in enumerate(history.leaders) if leaders or not epoch)
    if replica.role == LEADER and replica.epoch == newest and length < len(committed):
        yield LEADER_COMPLETE
    if sum(is_voters(each) for each in replica.log[length:]) > 1:
        yield ONE_CHANGE
    if not all(itertools.starmap(have_overlapping_majorities, itertools.pairwise(voter_sets(replica.log, initial)))):
        yield SETS_OVERLAP


def voter_sets(log: Log, initial: int) -> list[int]:
    """Return the voter sets of a log, in order."""
    return [initial, *(each & (VOTERS - 1) for each in log if is_voters(each))]


def have_overlapping_majorities(one: int, other: int) -> bool:
    """Look at every majority of the one beside every majority of the other."""
    ours, theirs = (itertools.combinations(members(each), majority(each)) for each in (one, other))
    return all(set(mine) & set(yours) for mine, yours in itertools.product(ours, theirs))


def pair_faults(one: Replica, other: Replica) -> Iterator[str]:
    """Yield whether two logs have an entry of one epoch at one offset, but differ there or before."""
    length = common_length(one.log, other.log)
    rest = zip(one.log[length:], other.log[length:], strict=False)
    if any(epoch_of(mine) == epoch_of(theirs) for mine, theirs in rest):
        yield LOGS_MATCH
