# SPDX-License-Identifier: Apache-2.0
"""Bugs to plant in changes of voters, snapshots and listeners, so that the simulator is seen to find them."""

from typing import Any, Final

import attrs

from raftlog.log import decisions, snapshots
from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.log.memory_log import MemoryLog
from raftlog.quorum.following import fetching
from raftlog.quorum.leading import removing_voters, voter_change
from raftlog.quorum.listening import delivering, leader_changes
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import RaiseHighWatermark
from raftlog.quorum.seam.outbox import Outbox
from raftlog.records.batches import accumulator
from tests.mutants.planting import Mutant, Wrong, all_of, instead, swapped


def _without_one_more(right: Wrong) -> Wrong:
    def write_voters(core: Any, leadership: Any, after: Any) -> Any:
        fewer = after.remove_voter(max(after.voter_keys))
        return right(core, leadership, fewer or after)

    return write_voters


def _before_the_records(core: Any) -> None:
    known = core.fetched_high_watermark
    if isinstance(core.role, Follower) and known > (core.high_watermark or 0):
        core.outbox.on_log(lambda number: RaiseHighWatermark(number, known))


def _one_record_back(right: Wrong) -> Wrong:
    def close_delivery(core: Any, number: int, next_offset: int | None) -> None:
        right(core, number, next_offset)
        for each in core.listeners.values():
            each.next_offset -= each.next_offset == next_offset and each.next_offset > core.log.state.start_offset

    return close_delivery


def _twice(right: Wrong) -> Wrong:
    def respond(outbox: Any, *arguments: Any) -> None:
        right(outbox, *arguments)
        right(outbox, *arguments)

    return respond


def _up_to_the_log_end(right: Wrong) -> Wrong:
    return lambda core, listener, known: right(core, listener, core.log.state.end_offset)


def _of_the_oldest(right: Wrong) -> Wrong:
    return lambda log, snapshot_id: right(log, log.snapshot_ids[0])


def _at_the_log_end(right: Wrong) -> Wrong:
    return lambda machine, offset: machine.last_voter_set


class _LogInItsLastEpoch:
    """A log that takes all its records to be of the last epoch."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def epoch_at_offset(self, offset: int) -> Any:
        """Return the last epoch."""
        return self._log.last_fetched_epoch


def _in_the_last_epoch(right: Wrong) -> Wrong:
    return lambda log, *arguments, **options: right(_LogInItsLastEpoch(log), *arguments, **options)


def _that_one_too(right: Wrong) -> Wrong:
    def delete_snapshots_before(log: Any, snapshot_id: Any) -> None:
        log._keep_snapshots(lambda each: each > snapshot_id)

    return delete_snapshots_before


def _without_voters(right: Wrong) -> Wrong:
    def handle_snapshot(machine: Any, snapshot: Any) -> None:
        right(machine, snapshot)
        machine._voter_sets.clear()

    return handle_snapshot


def _of_the_first_replica(right: Wrong) -> Wrong:
    def tell_when_stored(outbox: Any, effect: Any) -> None:
        right(outbox, effect if effect.leader_id is None else attrs.evolve(effect, leader_id=1))

    return tell_when_stored


def _bug(name: str, rule: str, plant: Any) -> Mutant:
    return Mutant(name, rule, "", plant, ())


LIFE: Final = (
    _bug(
        "voters-uncommitted",
        "voters are changed when the last set is committed",
        all_of(
            *(
                instead(voter_change, name, lambda *_: None)
                for name in ("pending_refusal", "leader_refusal", "voters_refusal")
            )
        ),
    ),
    _bug(
        "two-removed",
        "one voter is removed at a time",
        all_of(
            instead(voter_change, "voter_set_change_problems", lambda *_: ()),
            instead(accumulator, "check_voter_set_change", lambda *_: None),
            swapped(removing_voters, "write_voters", _without_one_more),
        ),
    ),
    _bug(
        "high-watermark-past-end",
        "a follower learns the high watermark when the records are in its log",
        instead(fetching, "learn_high_watermark", _before_the_records),
    ),
    _bug("answered-twice", "a request is answered once", swapped(Outbox, "respond", _twice)),
    _bug("delivered-twice", "a record is delivered once", swapped(delivering, "close_delivery", _one_record_back)),
    _bug(
        "delivered-early",
        "only committed records are delivered",
        swapped(delivering, "_deliver_next", _up_to_the_log_end),
    ),
    _bug("wrong-snapshot", "a snapshot is read by its id", swapped(MemoryLog, "read_snapshot", _of_the_oldest)),
    _bug(
        "snapshot-voters",
        "a snapshot has the voters at its end",
        swapped(KRaftControlRecordStateMachine, "voter_set_at_offset", _at_the_log_end),
    ),
    _bug(
        "snapshot-epoch",
        "a snapshot is of the epoch of its last record",
        all_of(
            instead(decisions, "check_new_snapshot_id", lambda *_: True),
            swapped(snapshots, "begin_snapshot", _in_the_last_epoch),
        ),
    ),
    _bug(
        "snapshots-all-deleted",
        "the log starts at a snapshot",
        swapped(MemoryLog, "_delete_snapshots_before", _that_one_too),
    ),
    _bug(
        "snapshot-without-voters",
        "the voters of a snapshot are in force",
        swapped(KRaftControlRecordStateMachine, "handle_snapshot", _without_voters),
    ),
    _bug(
        "leader-told-early",
        "a leader acts when it has read what earlier leaders have committed",
        instead(leader_changes, "_may_be_told", lambda *_: True),
    ),
    _bug("leader-told-again", "a leader is told once", instead(leader_changes, "_is_news", lambda *_: True)),
    _bug(
        "leader-told-wrong", "the leader that is told leads", swapped(Outbox, "tell_when_stored", _of_the_first_replica)
    ),
)
"""The bugs."""
