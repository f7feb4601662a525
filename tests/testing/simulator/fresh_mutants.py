# SPDX-License-Identifier: Apache-2.0
"""Ten wrong cores and logs, invented from the core alone, before any list of invariants was read.

Each is a bug that a rewrite of one function could bring. They measure what simulated schedules find by themselves: no
invariant, planted bug or schedule was made for them. Their names start with F.
"""

from bisect import bisect_right
from types import SimpleNamespace
from typing import Any, Final

import attrs

from raftlog.log import decisions, snapshots
from raftlog.log.decisions import end_offset_for_epoch
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.state import LogState
from raftlog.offsets import OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.quorum.high_watermark import advanced_high_watermark
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading import leading_epoch, voter_change
from raftlog.quorum.leading.appending import end_committed
from raftlog.quorum.leading.voter_change import note_committed_voters
from raftlog.quorum.listener_context import Delivery, ListenerContext
from raftlog.quorum.pending_reads import PendingReads
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles import transitions
from raftlog.quorum.roles.roles import Candidate, Leader, Prospective, Role
from raftlog.quorum.roles.transitions import RoleEvent, Surroundings
from raftlog.quorum.seam.outbox import Outbox
from raftlog.storage.recovery.recovery_point import StoredDurablePoint
from raftlog.voters.voter_set import ReplicaKey
from tests.mutants.planting import Mutant, Wrong, instead, instead_of_property, swapped


def _keep_pre_votes(right: Wrong) -> Wrong:
    """``_stand`` hands the votes of the role before on to the candidate."""

    def next_role(role: Role, event: RoleEvent, around: Surroundings) -> Role:
        after: Role = right(role, event, around)
        if isinstance(role, Prospective) and isinstance(after, Candidate):
            return attrs.evolve(after, votes=role.votes)
        return after

    return next_role


def _wait_for_oldest(outbox: Any, effect: Any) -> None:
    if outbox._unstored:
        outbox._held.append((outbox._unstored[0], effect))
    else:
        outbox._ready.append(effect)


def _keep_epoch_at_end(epochs: LeaderEpochs, end_offset: int) -> LeaderEpochs:
    count = bisect_right(epochs.entries, end_offset, key=lambda each: each.start_offset)
    return epochs if count == len(epochs.entries) else attrs.evolve(epochs, entries=epochs.entries[:count])


def _count_by_electors(replica: LocalReplica, leadership: Leadership) -> None:
    """``advance_high_watermark`` with the majority of the voters that the election had."""
    start, role = leadership.epoch_start_offset, replica.role
    if start is None or not isinstance(role, Leader):
        return
    ends = []
    for node in replica.voters.voters.values():
        known = leadership.progress_of(node)
        if node.is_voter(replica.identity.key):
            ends.append(replica.log.flushed_offset)
        elif known is not None:
            ends.append(known.end_offset)
    before = -1 if replica.high_watermark is None else replica.high_watermark
    reached = advanced_high_watermark(before, ends, len(role.voters) // 2 + 1, start)
    if reached > before:
        replica.raise_high_watermark(reached)
        end_committed(replica, leadership)
        note_committed_voters(replica, leadership)


def _refuse_until_any_commit(replica: LocalReplica, leadership: Leadership) -> Any:
    if replica.committed_offset == 0:
        return voter_change.not_now(f"the leader has committed nothing in epoch {leadership.epoch} yet")
    return None


def take_any_epoch_at_start(log: LogState, offset: int, epoch: int) -> ValidOffsetAndEpoch:
    """``validate_offset_and_epoch`` without a look at the epoch of a log that ends where the leader's starts."""
    if log.start_offset == 0 and offset == 0:
        return ValidOffsetAndEpoch.valid(OffsetAndEpoch(0, 0))
    earliest, latest = log.earliest_snapshot_id, log.latest_snapshot_id
    if earliest is not None and latest is not None and (offset < log.start_offset or epoch < earliest.epoch):
        return ValidOffsetAndEpoch.snapshot(latest)
    end = end_offset_for_epoch(log, epoch)
    if end.epoch != epoch or end.offset < offset:
        return ValidOffsetAndEpoch.diverging(end)
    return ValidOffsetAndEpoch.valid(OffsetAndEpoch(offset, epoch))


def _name_last_voters(right: Wrong) -> Wrong:
    """A snapshot names the voters in force at the log end, and not those at its own end."""

    def begin_snapshot(log: Any, machine: Any, end_offset: int, **options: Any) -> Any:
        at_log_end = SimpleNamespace(
            kraft_version_at_offset=machine.kraft_version_at_offset,
            voter_set_at_offset=lambda _: machine.voters_in_force or None,
            truncate_old_entries=machine.truncate_old_entries,
        )
        return right(log, at_log_end, end_offset, **options)

    return begin_snapshot


def _confirm_by_any_fetch(reads: Any, voter_key: ReplicaKey, end_offset: int) -> None:
    """A voter confirms a read by what it could have fetched before the read began."""
    first = reads.pending[0]
    if first.begun is None or first.log_end_offset > end_offset:
        return
    for each in reversed(reads.pending):
        if each.begun is not None and each.log_end_offset <= end_offset:
            reads._confirm(voter_key, each.begun)
            return


def _close_whole(right: Wrong) -> Wrong:
    def close(listener: ListenerContext, delivery: Delivery, _: int) -> None:
        right(listener, delivery, delivery.end_offset)

    return close


def _durable_by_point(stored: StoredDurablePoint) -> int | None:
    """The marks count only if there is no recovery point."""
    if stored.recovery_point is not None:
        return stored.recovery_point.durable_end_offset
    last = max((mark.generation for mark in stored.marks), default=0)
    return max((mark.durable_end_offset for mark in stored.marks if mark.generation == last), default=None)


_SOURCE: Final = "invented from the core"

FRESH_MUTANTS: Final = tuple(
    Mutant(name, rule, _SOURCE, plant, ())
    for name, rule, plant in (
        (
            "F1-pre-votes-count",
            "a candidate begins to count with its own vote alone",
            swapped(transitions, "next_role", _keep_pre_votes),
        ),
        (
            "F2-oldest-state",
            "a message waits for all election states that were handed out before it",
            instead(Outbox, "_send", _wait_for_oldest),
        ),
        (
            "F3-epoch-at-the-end",
            "an epoch without records is dropped with what the leader does not have",
            instead(LeaderEpochs, "truncated_from_end", _keep_epoch_at_end),
        ),
        (
            "F4-majority-of-election",
            "the high watermark goes by the voters in force, not by those of the election",
            instead(leading_epoch, "advance_high_watermark", _count_by_electors),
        ),
        (
            "F5-voters-before-commit",
            "a leader changes no voters before it has committed a record of its own epoch",
            instead(voter_change, "leader_refusal", _refuse_until_any_commit),
        ),
        (
            "F6-epoch-at-the-start",
            "a log whose last record differs from the snapshot that the leader starts at has diverged",
            instead(decisions, "validate_offset_and_epoch", take_any_epoch_at_start),
        ),
        (
            "F7-snapshot-of-last-voters",
            "a snapshot names the voters in force at its own end",
            swapped(snapshots, "begin_snapshot", _name_last_voters),
        ),
        (
            "F8-read-by-old-fetch",
            "a voter confirms a read by a record that was appended after the read began",
            instead(PendingReads, "note_fetch", _confirm_by_any_fetch),
        ),
        (
            "F9-stopped-listener",
            "a listener goes on where it has stopped",
            swapped(ListenerContext, "close", _close_whole),
        ),
        (
            "F10-marks-ignored",
            "what was reported as flushed is durable, and its loss is a loss",
            instead_of_property(StoredDurablePoint, "durable_end_offset", _durable_by_point),
        ),
    )
)
"""Each with the rule that it breaks. None has killers of its own: simulated schedules are to find them."""
