# SPDX-License-Identifier: Apache-2.0
"""A step that an autopilot must not plan is a violation; one that it may plan is none."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.autopilot.memory import AutopilotStep, VoterStepKind
from raftlog.quorum.describing.raft_status import RaftStatus
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.records.messages.voters import voters_record
from raftlog.testing.simulator.checks.autopilot_rules import AutopilotLook, AutopilotRules
from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters, StoredBatch
from raftlog.testing.simulator.operating.membership import removal
from raftlog.testing.simulator.violation import ViolationError
from raftlog.uuid_text import ZERO_UUID
from tests.quorum.autopilot.worlds import (
    CONTACT_MS,
    DEMOTE_MS,
    LAG,
    LOOK_MS,
    STABILIZE_MS,
    START_MS,
    spec_of,
    status_of,
)
from tests.quorum.single_replica import replica_key, voter_set_of
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

ADD, REMOVE = VoterStepKind.ADD, VoterStepKind.REMOVE
EPOCH, COUNT = 3, 5
IDS = range(1, COUNT + 1)


def ids(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


class Watch:
    """Replica 1 of three voters and two observers leads epoch 3; the rules follow its autopilot."""

    def __init__(self, voters: frozenset[int] = ids(1, 2, 3), configured: int = 3) -> None:
        self.disks = QuorumDisks(COUNT)
        self.disks.lead(1, EPOCH)
        self.spec = spec_of(configured, max(1, COUNT - configured))
        first = frozenset(map(replica_key, voters))
        self.rules = AutopilotRules(self.spec, self.disks.witness.history, first)
        self.now_ms = START_MS
        self.owner: object = "memory"
        self.disks.append((1, 2, 3), EPOCH)
        self.disks.sync(1, 2, 3)
        self.ledger.voter_sets = [NamedVoters(-1, first)]
        self.disks.witness.raised_high_watermark(self.ledger, 1)
        self.voters = voters

    @property
    def ledger(self) -> Ledger:
        return self.disks.ledgers[1]

    def status(self, up: frozenset[int] = frozenset(IDS)) -> RaftStatus:
        status = status_of(self.voters, up, IDS, self.now_ms, 1, -1)
        return attrs.evolve(status, epoch=EPOCH, log_end=OffsetAndEpoch(self.ledger.end_offset, EPOCH))

    def look(
        self,
        kind: VoterStepKind | None = None,
        replica_id: int = 0,
        *,
        up: frozenset[int] = frozenset(IDS),
        added: Ledger | None = None,
        status: RaftStatus | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        step = None if kind is None else AutopilotStep(kind, replica_key(replica_id), -1)
        seen = self.status(up) if status is None else status
        self.rules.looked(AutopilotLook(ledger or self.ledger, self.owner, seen, self.now_ms, step), added)

    def pass_ms(self, duration_ms: int, up: frozenset[int] = frozenset(IDS)) -> None:
        """Look again and again, without a step; the time is then so much later, and nobody has looked yet."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.look(up=up)
            self.now_ms = min(end_ms, self.now_ms + LOOK_MS)

    def plan(self, kind: VoterStepKind, replica_id: int) -> None:
        step = AutopilotStep(kind, replica_key(replica_id), -1)
        self.rules.planned(EPOCH, step, frozenset(map(replica_key, self.voters)))

    def operator_asks(self, kind: VoterStepKind, replica_id: int) -> None:
        key = replica_key(replica_id)
        request: AddRaftVoterRequest | RemoveRaftVoterRequest = removal(key)
        if kind is ADD:
            directory_id = key.directory_id or ZERO_UUID
            request = AddRaftVoterRequest(
                cluster_id=None, timeout_ms=1, voter_id=key.id, voter_directory_id=directory_id, listeners=()
            )
        self.rules.asked_by_operator(EPOCH, request)

    def commit(self, voters: frozenset[int]) -> None:
        """Let a voter set be committed."""
        record = voters_record(voter_set_of(map(replica_key, sorted(voters))))
        data = write_control_batch([record], base_offset=7, epoch=EPOCH, timestamp=0)
        self.rules.committed(StoredBatch(7, EPOCH, 8, 0), RecordBatch(data))
        self.voters = voters
        self.ledger.voter_sets = [NamedVoters(-1, frozenset(map(replica_key, voters)))]


def violates(invariant: str) -> "pytest.RaisesExc[ViolationError]":
    return pytest.raises(ViolationError, match=f"^autopilot-{invariant}:|'autopilot-{invariant}'")


def found_by(watch: Watch, kind: VoterStepKind, replica_id: int, up: frozenset[int]) -> str | None:
    """Return the invariant that a step violates, or None."""
    try:
        watch.look(kind, replica_id, up=up)
    except ViolationError as error:
        return error.invariant
    return None


def test_steps_that_may_be_planned() -> None:
    """Each kind of step, when its time has come."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS, ids(1, 2, 4))
    watch.look(ADD, 4, up=ids(1, 2, 4))
    watch.commit(ids(1, 2, 3, 4))
    watch.look(REMOVE, 3, up=ids(1, 2, 4))
    watch.plan(REMOVE, 3)
    watch.commit(ids(1, 2, 4))
    watch.pass_ms(DEMOTE_MS + LOOK_MS)
    watch.look(ADD, 3)
    watch.commit(ids(1, 2, 3, 4))
    watch.look(REMOVE, 4)
    assert watch.rules.counts["plans"] == 4


def test_only_a_leader_that_has_committed_plans() -> None:
    """Not a replica that does not lead, nor one before a record of its epoch is committed as far as it knows."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS)
    watch.look(ADD, 4)
    with violates("leads"):
        watch.look(ADD, 4, status=attrs.evolve(watch.status(), epoch=EPOCH + 1))
    with violates("leads"):
        watch.look(ADD, 4, ledger=watch.disks.ledgers[2])
    watch.ledger.high_watermark = 0
    with violates("leads"):
        watch.look(ADD, 4)


@pytest.mark.parametrize(("offset", "is_right"), [(0, True), (1, False)])
def test_a_change_waits_for_the_one_before(offset: int, is_right: bool) -> None:
    """With the high watermark at 1, a voter set at offset 0 is committed, and one at 1 is not."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS)
    watch.ledger.voter_sets[-1] = watch.ledger.voter_sets[-1]._replace(offset=offset)
    if is_right:
        watch.look(ADD, 4)
        return
    with violates("one-change"):
        watch.look(ADD, 4)


@pytest.mark.parametrize(("kind", "replica_id"), [(ADD, 3), (REMOVE, 4)])
def test_a_change_changes_something(kind: VoterStepKind, replica_id: int) -> None:
    """A voter is not added, and an observer not removed."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS)
    with violates("one-change"):
        watch.look(kind, replica_id)


@given(st.frozensets(st.sampled_from(IDS), min_size=1), st.frozensets(st.sampled_from(IDS)), st.sampled_from(IDS))
def test_no_step_costs_a_tolerated_failure(voters: frozenset[int], up: frozenset[int], changed: int) -> None:
    """A step is a violation of that if fewer voters may fail after it, or too many have failed; no other one is."""
    voters, up = voters | {1}, up | {1}
    watch = Watch(voters)
    kind = REMOVE if changed in voters else ADD
    after = voters ^ {changed}
    before_count, after_count = (len(each & up) - len(each) // 2 - 1 for each in (voters, after))
    assert (found_by(watch, kind, changed, up) == "autopilot-tolerance") == (not 0 <= before_count <= after_count)


@pytest.mark.parametrize("early_ms", [-1, 0, 1])
def test_an_addition_waits_for_its_window(early_ms: int) -> None:
    """A replica is in sync for the whole window, counted from the first look of the epoch."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS + early_ms)
    if early_ms >= 0:
        watch.look(ADD, 4)
        return
    with violates("windows"):
        watch.look(ADD, 4)


@pytest.mark.parametrize(("gap_ms", "is_right"), [(CONTACT_MS - 1, True), (CONTACT_MS, True), (CONTACT_MS + 1, False)])
def test_a_gap_between_looks_begins_windows_anew(gap_ms: int, is_right: bool) -> None:
    """If it is longer than the last contact may be ago."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS)
    watch.look()
    watch.now_ms += gap_ms
    if is_right:
        watch.look(ADD, 4)
        return
    with violates("windows"):
        watch.look(ADD, 4)


@pytest.mark.parametrize("early_ms", [-1, 0, 1])
def test_a_demotion_waits_for_its_window(early_ms: int) -> None:
    """All configured voters in the set are in sync for that long."""
    watch = Watch(ids(1, 2, 3, 4))
    watch.pass_ms(DEMOTE_MS + early_ms)
    if early_ms >= 0:
        watch.look(REMOVE, 4)
        return
    with violates("windows"):
        watch.look(REMOVE, 4)


def test_no_healthy_configured_voter_is_removed() -> None:
    """Nor one that is down without a promoted observer beside it."""
    watch = Watch(ids(1, 2, 3, 4))
    watch.pass_ms(2 * DEMOTE_MS)
    with violates("windows"):
        watch.look(REMOVE, 3)
    watch = Watch(ids(1, 2, 3), configured=5)
    watch.commit(ids(1, 2, 3, 4))
    watch.pass_ms(STABILIZE_MS, ids(1, 2, 3))
    with violates("windows"):
        watch.look(REMOVE, 4, up=ids(1, 2, 3))


@pytest.mark.parametrize("early_ms", [-1, 0, 1])
def test_a_replica_does_not_come_and_go(early_ms: int) -> None:
    """One that was taken out is not added again within the window."""
    watch = Watch(ids(1, 2, 3, 4))
    watch.pass_ms(DEMOTE_MS)
    watch.look(REMOVE, 4)
    watch.plan(REMOVE, 4)
    watch.commit(ids(1, 2, 3))
    watch.pass_ms(STABILIZE_MS + early_ms)
    if early_ms >= 0:
        watch.look(ADD, 4)
        return
    with violates("hysteresis"):
        watch.look(ADD, 4)
    watch.operator_asks(REMOVE, 3)
    watch.commit(ids(1, 2))
    watch.look(ADD, 4)  # An operator has changed the voters since: others are needed.


def removed_by_operator(*, is_planned: bool = False) -> Watch:
    """Return what is left after an operator has removed voter 3; the autopilot may have asked for it, too."""
    watch = Watch()
    watch.pass_ms(STABILIZE_MS)
    watch.operator_asks(REMOVE, 3)
    if is_planned:
        watch.plan(REMOVE, 3)
    watch.commit(ids(1, 2))
    watch.pass_ms(STABILIZE_MS)
    return watch


def test_an_operators_removal_is_kept() -> None:
    """While the memory is, and until the operator adds the replica."""
    watch = removed_by_operator()
    with violates("operator"):
        watch.look(ADD, 3)
    watch.owner = "another memory"
    watch.pass_ms(STABILIZE_MS)
    watch.look(ADD, 3)
    watch = removed_by_operator()
    watch.operator_asks(ADD, 3)
    watch.commit(ids(1, 2, 3))
    watch.pass_ms(STABILIZE_MS)
    watch.plan(REMOVE, 3)
    watch.commit(ids(1, 2))
    watch.pass_ms(STABILIZE_MS)
    watch.look(ADD, 3)
    assert watch.rules.operator_changes == 3


def test_a_removal_that_both_asked_for_may_be_undone() -> None:
    """Nobody can tell whose it was; it counts as a change of the operator."""
    watch = removed_by_operator(is_planned=True)
    watch.look(ADD, 3)
    assert watch.rules.operator_changes == 1


def test_a_removal_that_was_planned_before_the_operator_asked_may_be_undone() -> None:
    """An autopilot's process asks some time after it has planned, and knows from then on that it may be its own."""
    watch = Watch(ids(1, 2, 3, 4))
    watch.pass_ms(DEMOTE_MS)
    watch.look(REMOVE, 4)
    watch.operator_asks(REMOVE, 4)
    watch.commit(ids(1, 2, 3))
    watch.pass_ms(STABILIZE_MS)
    watch.look(ADD, 4)
    assert watch.rules.operator_changes == 1


@pytest.mark.parametrize(("lag", "is_right"), [(LAG - 1, True), (LAG, True), (LAG + 1, False)])
def test_an_added_replica_has_nearly_all_records(lag: int, is_right: bool) -> None:
    """On its disk, and the last voter set; unless the disk has lost them since."""
    watch, added = Watch(), Ledger(replica_key(4))
    watch.disks.append((1,), EPOCH, LAG + 1)
    watch.pass_ms(STABILIZE_MS)
    added.synced_to(watch.ledger.end_offset - lag)
    added.voter_sets.append(NamedVoters(-1, frozenset([replica_key(1)])))
    if is_right:
        watch.look(ADD, 4, added=added)
        return
    with violates("caught-up"):
        watch.look(ADD, 4, added=added)
    added.is_vote_lost = True
    watch.look(ADD, 4, added=added)


@pytest.mark.parametrize(("end", "is_right"), [(0, False), (1, True)])
def test_an_added_replica_has_the_last_voters(end: int, is_right: bool) -> None:
    """Their record is at offset 0."""
    watch, added = Watch(), Ledger(replica_key(4))
    watch.ledger.voter_sets[-1] = watch.ledger.voter_sets[-1]._replace(offset=0)
    watch.pass_ms(STABILIZE_MS)
    added.voter_sets.append(NamedVoters(-1, frozenset([replica_key(1)])))
    added.synced_to(end)
    if is_right:
        watch.look(ADD, 4, added=added)
        return
    with violates("caught-up"):
        watch.look(ADD, 4, added=added)


def test_a_step_is_for_the_voters_that_it_was_planned_for() -> None:
    """It is counted; for others it is a violation."""
    watch = Watch()
    watch.plan(ADD, 4)
    watch.commit(ids(1, 2, 3, 4))
    watch.plan(REMOVE, 3)
    watch.commit(ids(1, 2, 4))
    watch.plan(ADD, 3)
    watch.commit(ids(1, 2, 3, 4))
    watch.plan(REMOVE, 4)
    watch.commit(ids(1, 2, 3))
    assert watch.rules.counts == {"promotions": 1, "returns": 1, "demotions": 1}
    assert watch.rules.operator_changes == 0
    watch.plan(ADD, 5)
    watch.operator_asks(ADD, 4)
    watch.commit(ids(1, 2, 3, 4))
    with violates("as-planned"):
        watch.commit(ids(1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("voters", "configured", "is_settled"),
    [
        (ids(1, 2, 3), 3, True),
        (ids(1, 2, 3, 4), 3, False),
        (ids(1, 2), 3, False),
        (ids(1, 2, 4), 3, False),
        (ids(1, 2, 3, 4), 4, True),
        (ids(1, 2, 3, 4, 5), 4, True),
        (ids(1, 2, 3, 5), 4, False),
    ],
)
def test_in_the_end_the_configured_voters_vote(voters: frozenset[int], configured: int, is_settled: bool) -> None:
    """One promoted observer remains beside an even number of them; any set will do if the operator changed one."""
    watch = Watch(voters, configured)
    others = frozenset(map(replica_key, IDS)) - {replica_key(1)}
    watch.pass_ms(DEMOTE_MS)
    watch.look()
    assert watch.rules.is_settled(watch.ledger, others, watch.now_ms) == is_settled
    watch.operator_asks(ADD, 5)
    watch.commit(voters ^ {5})
    assert watch.rules.is_settled(watch.ledger, others, watch.now_ms)


def test_nothing_is_settled_before_all_have_been_in_sync_for_long() -> None:
    """Nor while the leader plans steps, or a replica is missing."""
    watch = Watch()
    others = frozenset(map(replica_key, IDS)) - {replica_key(1)}
    assert not watch.rules.is_settled(watch.ledger, others, watch.now_ms)
    watch.pass_ms(DEMOTE_MS - 1)
    assert not watch.rules.is_settled(watch.ledger, others, watch.now_ms)
    watch.pass_ms(1)
    assert watch.rules.is_settled(watch.ledger, others, watch.now_ms)
    assert not watch.rules.is_settled(watch.disks.ledgers[2], others, watch.now_ms)
    watch.look(ADD, 4)
    assert not watch.rules.is_settled(watch.ledger, others, watch.now_ms)
    watch.look(up=ids(1, 2, 3, 4))
    assert not watch.rules.is_settled(watch.ledger, others, watch.now_ms)
