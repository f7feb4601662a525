# SPDX-License-Identifier: Apache-2.0
"""Wrong deliveries to listeners: uncommitted, twice, out of order, or told to lead too early."""

from typing import Any, Final

from raftlog.quorum.listener_context import ListenerContext
from raftlog.quorum.listening import delivering, leader_changes
from raftlog.quorum.roles.roles import Leader, Resigned, Unattached
from raftlog.quorum.seam.effects import DeliverSnapshot
from raftlog.quorum.seam.outbox import Outbox
from tests.mutants.planting import Mutant, Wrong, instead, swapped

DELIVERING: Final = "tests/quorum/listening/test_delivering.py"
LEADER_CHANGES: Final = "tests/quorum/listening/test_leader_changes.py"
FETCHING: Final = "tests/quorum/following/test_fetching_snapshot.py"
SCENARIOS: Final = "tests/scenarios/test_scenarios.py::test_scenario"


def _up_to_the_log_end(right: Wrong) -> Wrong:
    def deliver_next(core: Any, listener: Any, _: int) -> None:
        right(core, listener, core.log.state.end_offset)

    return deliver_next


def _without_waiting(right: Wrong) -> Wrong:
    def deliver_next(core: Any, listener: Any, high_watermark: int) -> None:
        right(core, listener, high_watermark)
        given = listener.delivery
        if given is not None and given.snapshot_id is None:
            listener.next_offset, listener.delivery = given.end_offset, None

    return deliver_next


def _as_if_it_had_read_all(right: Wrong) -> Wrong:
    def close(listener: Any, delivery: Any, _: int) -> None:
        right(listener, delivery, delivery.end_offset)

    return close


def _from_the_log_alone(right: Wrong) -> Wrong:
    def deliver_next(core: Any, listener: Any, high_watermark: int) -> None:
        before = listener.next_offset
        listener.next_offset = max(before, core.log.state.start_offset)
        right(core, listener, high_watermark)
        if listener.delivery is not None:
            listener.delivery = listener.delivery._replace(offset=listener.next_offset)

    return deliver_next


def _before_the_restart(right: Wrong) -> Wrong:
    def deliver_next(core: Any, listener: Any, high_watermark: int) -> None:
        latest = core.log.state.latest_snapshot_id
        right(core, listener, high_watermark if latest is None else max(high_watermark, latest.offset))

    return deliver_next


def _at_once(right: Wrong) -> Wrong:
    def close_delivery(core: Any, *arguments: Any) -> None:
        right(core, *arguments)
        for each in core.listeners.values():
            each.resume_ms = None

    return close_delivery


def _of_registered_ones(right: Wrong) -> Wrong:
    def snapshots_being_read(core: Any) -> Any:
        kept = core.listeners
        core.listeners = {number: each for number, each in kept.items() if each.is_registered}
        found = right(core)
        core.listeners = kept
        return found

    return snapshots_being_read


def _whatever_it_has_read(core: Any, listener: Any) -> bool:
    return not isinstance(core.role, Leader) or core.leadership.epoch_start_offset is not None


def _in_any_role(right: Wrong) -> Wrong:
    def tell_leader(core: Any) -> None:
        role = core.role
        if isinstance(role, Resigned):
            core.role = Unattached(role.epoch, role.id)
        right(core)
        core.role = role

    return tell_leader


def _every_time(right: Wrong) -> Wrong:
    return lambda listener, epoch, leader: epoch >= listener.told_epoch and leader is not None


def _epochs_alone(right: Wrong) -> Wrong:
    return lambda listener, epoch, leader: epoch > listener.told_epoch


def _told_at_once(outbox: Any, effect: Any) -> None:
    outbox._ready.append(effect)


MUTANTS: Final = (
    Mutant(
        "K-deliver-uncommitted",
        "listeners get committed records only",
        "RaftClient.Listener#handleCommit",
        swapped(delivering, "_deliver_next", _up_to_the_log_end),
        (f"{DELIVERING}::test_a_listener_gets_every_committed_record_once_and_in_order", SCENARIOS),
    ),
    Mutant(
        "R26-core",
        "a listener's progress is what it has closed",
        "etcd 3.5 post-mortem",
        swapped(delivering, "_deliver_next", _without_waiting),
        (f"{DELIVERING}::test_a_listener_gets_every_committed_record_once_and_in_order", SCENARIOS),
    ),
    Mutant(
        "K-deliver-part",
        "a listener that has read a part gets the rest",
        "KafkaRaftClient.ListenerContext#onClose",
        swapped(ListenerContext, "close", _as_if_it_had_read_all),
        (f"{DELIVERING}::test_a_listener_gets_every_committed_record_once_and_in_order", SCENARIOS),
    ),
    Mutant(
        "K-deliver-gap",
        "a snapshot replaces records that the log has deleted",
        "KafkaRaftClient#updateListenersProgress",
        swapped(delivering, "_deliver_next", _from_the_log_alone),
        (f"{DELIVERING}::test_a_listener_gets_every_committed_record_once_and_in_order", SCENARIOS),
    ),
    Mutant(
        "K-deliver-early",
        "a snapshot that was fetched is delivered when the log starts at it",
        "KafkaRaftClient#handleFetchSnapshotResponse",
        swapped(delivering, "_deliver_next", _before_the_restart),
        (f"{FETCHING}::test_a_snapshot_is_delivered_when_the_log_starts_at_it",),
    ),
    Mutant(
        "K-deliver-bootstrap",
        "the bootstrap snapshot is no committed state",
        "RaftClient.Listener#handleLoadBootstrap",
        instead(delivering, "DeliverBootstrap", DeliverSnapshot),
        (f"{DELIVERING}::test_the_bootstrap_snapshot_comes_first_and_is_no_committed_state", SCENARIOS),
    ),
    Mutant(
        "K20-listener",
        "a listener that takes nothing is given it again after a pause",
        "KAFKA-19605",
        swapped(delivering, "close_delivery", _at_once),
        (f"{DELIVERING}::test_a_listener_that_takes_nothing_is_given_it_again_after_a_pause", SCENARIOS),
    ),
    Mutant(
        "K-deliver-pin",
        "a snapshot stays while any listener reads it",
        "RaftClient.Listener#handleLoadSnapshot",
        swapped(delivering, "snapshots_being_read", _of_registered_ones),
        (f"{DELIVERING}::test_unregistered_listeners_get_nothing_more",),
    ),
    Mutant(
        "K3",
        "a listener learns that its replica leads after the start of the epoch",
        "KAFKA-17333",
        instead(leader_changes, "_may_be_told", _whatever_it_has_read),
        (f"{LEADER_CHANGES}::test_a_listener_learns_that_its_replica_leads_after_the_start_of_the_epoch", SCENARIOS),
    ),
    Mutant(
        "K3-resigned",
        "a resigned leader tells no listener that it leads",
        "KAFKA-17333",
        swapped(leader_changes, "tell_leader", _in_any_role),
        (f"{LEADER_CHANGES}::test_a_resigned_leader_tells_nothing", SCENARIOS),
    ),
    Mutant(
        "K-told-once",
        "a leader is told once",
        "KafkaRaftClient.ListenerContext#shouldFireLeaderChange",
        swapped(leader_changes, "_is_news", _every_time),
        (f"{LEADER_CHANGES}::test_a_listener_is_told_the_leader_when_it_is_registered", SCENARIOS),
    ),
    Mutant(
        "K-told-known",
        "a leader is told when it becomes known",
        "KafkaRaftClient.ListenerContext#shouldFireLeaderChange",
        swapped(leader_changes, "_is_news", _epochs_alone),
        (f"{LEADER_CHANGES}::test_a_listener_is_told_of_an_epoch_and_then_of_its_leader", SCENARIOS),
    ),
    Mutant(
        "K-told-durable",
        "listeners are told of a leader when the election state is durable",
        "PySyncObj 84",
        instead(Outbox, "tell_when_stored", _told_at_once),
        (f"{LEADER_CHANGES}::test_listeners_are_told_when_the_election_state_is_durable",),
    ),
)
