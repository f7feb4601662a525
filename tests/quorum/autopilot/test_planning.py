# SPDX-License-Identifier: Apache-2.0
"""Each step of the autopilot keeps the rules, whatever replicas do; each window and limit is exact."""

import itertools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.autopilot.memory import AutopilotMemory, AutopilotStep, VoterStepKind
from raftlog.quorum.autopilot.planning import plan
from raftlog.quorum.autopilot.spec import AutopilotSpec, PromotionPolicy
from raftlog.quorum.describing.raft_status import RaftStatus, VotersStatus
from raftlog.voters.kraft_version import KRaftVersion
from tests.quorum.autopilot.worlds import (
    AGE_MS,
    CONTACT_MS,
    DEMOTE_MS,
    LAG,
    LOOK_MS,
    STABILIZE_MS,
    START_MS,
    World,
    fetcher,
    spec_of,
)
from tests.quorum.single_replica import replica_key, voter_set_of

ADD, REMOVE = VoterStepKind.ADD, VoterStepKind.REMOVE
MIN_SYNC, LED_BY_OBSERVER = PromotionPolicy.UNDER_MIN_SYNC, PromotionPolicy.LEADER_IS_OBSERVER


def ids(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def world(spec: AutopilotSpec | None = None, down: frozenset[int] = frozenset()) -> World:
    spec = spec_of() if spec is None else spec
    everyone = frozenset(each.id for each in spec.replicas)
    return World(spec, spec.configured, everyone - down)


def steps_of(a_world: World) -> list[tuple[VoterStepKind, int]]:
    return [(step.kind, step.key.id) for _, step, _ in a_world.steps]


def tolerated(voters: frozenset[int], up: frozenset[int]) -> int:
    return len(voters & up) - (len(voters) // 2 + 1)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("toggle"), st.integers(1, 7)),
        st.tuples(st.just("lead"), st.integers(1, 7)),
        st.tuples(st.just("operator"), st.integers(1, 7)),
        st.tuples(st.just("pass"), st.sampled_from((1, 4, 9, 10, 11, 12, 31, 45))),
    ),
    min_size=1,
    max_size=25,
)
SPECS = st.sampled_from(
    (
        spec_of(),
        spec_of(observers=1),
        spec_of(5, 2),
        spec_of(5, 2, MIN_SYNC, 4),
        spec_of(4, 2),
        spec_of(3, 3, MIN_SYNC, 3),
        spec_of(3, 2, LED_BY_OBSERVER, 3),
        spec_of(2, 3, LED_BY_OBSERVER, 2),
    )
)


@given(SPECS, EVENTS)
def test_every_step_keeps_the_rules(spec: AutopilotSpec, events: list[tuple[str, int]]) -> None:
    """Never a failed replica is added or a healthy configured voter removed; tolerated failures never fall."""
    a_world = world(spec)
    since = dict.fromkeys(a_world.ids, (True, START_MS))
    for event, number in events:
        replica_id = min(number, len(a_world.ids))
        if event == "toggle" and replica_id != a_world.leader:
            a_world.up ^= {replica_id}
        elif event == "lead" and replica_id in a_world.voters & a_world.up:
            a_world.lead(replica_id)
            since = {each: (each in a_world.up, a_world.now_ms) for each in a_world.ids}
        elif event == "operator" and replica_id != a_world.leader:
            a_world.change_voters(a_world.voters ^ {replica_id})
        for _ in range(number if event == "pass" else 0):
            now_ms, voters, up, epoch = a_world.now_ms, a_world.voters, a_world.up, a_world.epoch
            for each in a_world.ids:
                if since[each][0] != (each in up):
                    since[each] = (each in up, now_ms)
            offset, count = a_world.offset, len(a_world.steps)
            a_world.look()
            if len(a_world.steps) == count:
                continue
            step = a_world.steps[-1][1]
            changed, (is_up, since_ms) = step.key.id, since[step.key.id]
            after = voters ^ {changed}
            assert step.expected_voters_offset == offset
            assert tolerated(voters, up) >= 0
            assert tolerated(after, up) >= tolerated(voters, up)
            assert now_ms - since_ms >= STABILIZE_MS
            assert (step.kind is ADD) == (changed not in voters)
            assert is_up or step.kind is REMOVE
            if step.kind is REMOVE and changed in spec.configured:
                assert not is_up
            if a_world.epoch != epoch:
                since = {each: (each in a_world.up, a_world.now_ms) for each in a_world.ids}


@given(st.integers(1, STABILIZE_MS // LOOK_MS - 1), st.integers(1, STABILIZE_MS // LOOK_MS - 1), st.integers(2, 5))
def test_a_replica_that_oscillates_fast_never_changes_a_role(up: int, down: int, replica_id: int) -> None:
    """Whatever replica it is, and however long it goes on."""
    a_world = world(down=ids(3))
    steady = ids(1, 2) if replica_id != 2 else ids(1, 3)
    for _ in range(12):
        a_world.up = steady | {replica_id}
        a_world.pass_ms(up * LOOK_MS)
        a_world.up = steady
        a_world.pass_ms(down * LOOK_MS)
    assert steps_of(a_world) == []


def test_an_observer_takes_the_place_of_a_voter_until_it_is_back() -> None:
    """It is promoted, the failed voter is removed; later it is added again, and the observer demoted."""
    a_world = world(down=ids(3))
    a_world.pass_ms(2 * STABILIZE_MS)
    assert steps_of(a_world) == [(ADD, 4), (REMOVE, 3)]
    a_world.up |= ids(3)
    a_world.pass_ms(STABILIZE_MS + DEMOTE_MS + 1_000)
    assert steps_of(a_world)[2:] == [(ADD, 3), (REMOVE, 4)]
    assert a_world.voters == ids(1, 2, 3)


def test_a_demotion_that_would_cost_a_tolerated_failure_is_not_made() -> None:
    """Five voters tolerate two failures, the four that are configured only one."""
    a_world = world(spec_of(4, 2))
    a_world.voters = ids(1, 2, 3, 4, 5)
    a_world.pass_ms(2 * DEMOTE_MS)
    assert a_world.steps == []


@pytest.mark.parametrize(("configured", "observers"), [(3, 2), (3, 3), (4, 2), (5, 2)])
def test_whatever_voters_a_leader_finds_the_configured_ones_come_back(configured: int, observers: int) -> None:
    """Of every set of voters that autopilots may have left, once all replicas are up.

    Observers remain only where one voter fewer would tolerate fewer failures.

    With two observers promoted, one of four voters missing and all others in sync, no observer can be spared before the
    missing one is back.
    """
    spec = spec_of(configured, observers)
    everyone = frozenset(range(1, configured + observers + 1))
    found = 0
    for size in range(2, len(everyone) + 1):
        for chosen in itertools.combinations(sorted(everyone), size):
            voters = frozenset(chosen)
            missing, promoted = spec.configured - voters, voters - spec.configured
            if len(missing) > len(promoted) or (size == 2 and min(voters) in promoted):
                continue
            found += 1
            a_world = World(spec, voters, everyone, leader=min(voters))
            while a_world.now_ms - max((START_MS, *(each[0] for each in a_world.steps))) <= STABILIZE_MS + DEMOTE_MS:
                a_world.look()
            assert spec.configured <= a_world.voters, str(voters)
            assert a_world.voters == spec.configured or len(a_world.voters) % 2, str(voters)
            assert len(a_world.voters) <= max(configured + 1, size + 1), str(voters)
    assert found > 10


def test_of_two_observers_the_one_out_of_sync_is_demoted() -> None:
    """Else the other one would be needed again as soon as that one counts as down."""
    a_world = World(spec_of(3, 2), ids(1, 2, 4, 5), ids(1, 2, 4, 5))
    a_world.pass_ms(DEMOTE_MS)
    a_world.up -= ids(5)
    a_world.pass_ms(2 * STABILIZE_MS)
    assert steps_of(a_world)[:1] == [(REMOVE, 5)]
    assert (ADD, 4) not in steps_of(a_world)


def test_a_configured_voter_does_not_wait_for_one_that_flaps() -> None:
    """No observer is demoted while a voter goes in and out of sync faster than the windows."""
    a_world = World(spec_of(3, 2), ids(1, 3, 4, 5), ids(1, 2, 3, 4, 5))
    for _ in range(4 * STABILIZE_MS // LOOK_MS):
        a_world.look()
        a_world.up ^= ids(3)
    assert steps_of(a_world)[:1] == [(ADD, 2)]


def test_a_failed_voter_without_a_stand_in_is_not_removed() -> None:
    """Though the other three would tolerate one failure more than four voters do of which one is down."""
    a_world = world(spec_of(4, 1), down=ids(4, 5))
    a_world.pass_ms(2 * DEMOTE_MS)
    assert a_world.steps == []


def test_a_new_leader_without_memory_demotes() -> None:
    """The spec and the voters say which replica was promoted."""
    a_world = world(down=ids(3))
    a_world.pass_ms(2 * STABILIZE_MS)
    a_world.lead(2)
    a_world.up |= ids(3)
    a_world.pass_ms(STABILIZE_MS + DEMOTE_MS + 1_000)
    assert a_world.voters == ids(1, 2, 3)


@pytest.mark.parametrize("early_ms", [-1, 0, 1])
def test_a_promotion_waits_for_the_window(early_ms: int) -> None:
    """At its end, not before; counted from the first look of the epoch."""
    a_world = world(down=ids(3))
    while a_world.now_ms < START_MS + STABILIZE_MS - LOOK_MS:
        assert a_world.look().step is None
    a_world.look()
    a_world.now_ms = START_MS + STABILIZE_MS + early_ms
    assert (a_world.look().step is not None) == (early_ms >= 0)


@pytest.mark.parametrize("early_ms", [-1, 0, 1])
def test_a_demotion_waits_for_its_window(early_ms: int) -> None:
    """At its end, not before."""
    a_world = world()
    a_world.voters = ids(1, 2, 3, 4)
    while a_world.now_ms < START_MS + DEMOTE_MS - LOOK_MS:
        assert a_world.look().step is None
    a_world.look()
    a_world.now_ms = START_MS + DEMOTE_MS + early_ms
    found = a_world.look().step
    assert (None if found is None else (found.kind, found.key.id)) == ((REMOVE, 4) if early_ms >= 0 else None)


@pytest.mark.parametrize(
    ("lag", "age_ms", "contact_ms", "is_in_sync"),
    [
        (LAG, AGE_MS, 0, True),
        (LAG - 1, AGE_MS - 1, 0, True),
        (LAG + 1, 0, 0, False),
        (0, AGE_MS + 1, 0, False),
        (0, 0, CONTACT_MS, False),  # it was caught up when it fetched, which is longer ago than the other limit
        (0, -1, 0, False),
    ],
)
def test_limits_of_being_in_sync(lag: int, age_ms: int, contact_ms: int, is_in_sync: bool) -> None:
    """An observer at a limit is counted as caught up, one beyond is not; a time in the future counts for nothing."""
    a_world = world(spec_of(observers=1))
    known = fetcher(4, START_MS - contact_ms, lag=lag, age_ms=age_ms)
    status = a_world.status()
    status = attrs.evolve(status, fetchers=(*(each for each in status.fetchers if each.key.id != 4), known))
    counters = plan(a_world.spec, status, AutopilotMemory(), START_MS).counters
    assert counters is not None
    assert counters.caught_up_replicas_count == 3 + is_in_sync
    assert counters.named()["IsNotCaughtUp"] == (not is_in_sync)


@pytest.mark.parametrize(
    ("ago_ms", "is_in_sync"), [(CONTACT_MS - 1, True), (CONTACT_MS, True), (CONTACT_MS + 1, False)]
)
def test_the_limit_of_the_last_contact(ago_ms: int, is_in_sync: bool) -> None:
    """A voter at the limit is in sync, one beyond is not."""
    spec = attrs.evolve(spec_of(), max_age_ms=10 * CONTACT_MS)
    a_world = world(spec)
    status = a_world.status()
    counters = plan(spec, status, AutopilotMemory(), START_MS + ago_ms).counters
    assert counters is not None
    assert counters.in_sync_replicas_count == (3 if is_in_sync else 1)


def test_without_the_last_voters_record_no_replica_is_in_sync() -> None:
    """KAFKA-19933: it could stand for election among voters of the past."""
    a_world = world()
    a_world.offset = 100
    counters = a_world.look().counters
    assert counters is not None
    assert (counters.in_sync_replicas_count, counters.caught_up_replicas_count) == (1, 1)


def blocked(status: RaftStatus, which: str) -> RaftStatus:
    voters = VotersStatus(voter_set_of(map(replica_key, (1, 2, 3, 4))), 99)
    changes = {
        "committed nothing": {"high_watermark": None},
        "not committed": {"uncommitted_voters": voters},
        "kraft.version": {"kraft_version": KRaftVersion.KRAFT_VERSION_0},
        "not one of them": {"is_voter": False},
        "static": {"committed_voters": attrs.evolve(status.committed_voters, offset=None)},
        "does not lead": {"role": None},
    }
    return attrs.evolve(status, **changes[which])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "which", ["committed nothing", "not committed", "kraft.version", "not one of them", "static", "does not lead"]
)
def test_a_leader_that_cannot_change_the_voters_plans_nothing(which: str) -> None:
    """Its reason says so, though a voter has failed and an observer is steady."""
    a_world = world(down=ids(3))
    a_world.pass_ms(STABILIZE_MS)
    assert plan(a_world.spec, a_world.status(), a_world.memory, a_world.now_ms).step is not None
    found = plan(a_world.spec, blocked(a_world.status(), which), a_world.memory, a_world.now_ms)
    assert found.found is None
    assert which in found.reason


def test_after_a_total_loss_nothing_is_done() -> None:
    """Two of three have failed: no record can be committed, and the reason says so."""
    a_world = world(down=ids(2, 3))
    a_world.pass_ms(5 * STABILIZE_MS)
    assert a_world.steps == []
    assert a_world.last is not None
    assert "1 of 3 voters are in sync, and 2 are needed" in a_world.last.reason


def test_an_operators_removal_is_remembered_until_it_is_forgotten() -> None:
    """A configured voter that an operator removed is not added; one who tells the memory to forget it gets it back."""
    a_world = world()
    a_world.look()
    a_world.change_voters(ids(1, 2))
    a_world.pass_ms(5 * STABILIZE_MS)
    assert (a_world.steps, a_world.memory.removed) == ([], ids(3))
    a_world.memory = a_world.memory.forget_removal(3)
    a_world.pass_ms(LOOK_MS)
    assert steps_of(a_world) == [(ADD, 3)]


def test_an_operators_removal_of_a_promoted_observer_is_remembered() -> None:
    """The observer is not promoted again, though a voter is still down."""
    a_world = world(spec_of(observers=1), down=ids(3))
    a_world.pass_ms(STABILIZE_MS + LOOK_MS)
    assert steps_of(a_world) == [(ADD, 4)]
    a_world.look(does=False)
    a_world.memory = attrs.evolve(a_world.memory, steps=())
    a_world.change_voters(ids(1, 2, 3))
    a_world.pass_ms(5 * STABILIZE_MS)
    assert len(a_world.steps) == 1


def test_a_step_under_way_is_the_autopilots_own_whatever_was_planned_since() -> None:
    """Its removal is committed late, after another step was given out in vain: the replica may come back."""
    a_world = world(spec_of(5, 2), down=ids(5))
    a_world.voters = ids(1, 2, 3, 4, 5, 6)
    a_world.look(does=False)
    a_world.up -= ids(4)
    while a_world.look(does=False).step is None:
        pass
    a_world.up |= ids(5)
    a_world.look(does=False)
    assert [(each.kind, each.key.id) for each in a_world.memory.steps] == [(REMOVE, 5), (REMOVE, 4)]
    a_world.change_voters(ids(1, 2, 3, 4, 6))
    a_world.look(does=False)
    assert a_world.memory.removed == frozenset()
    assert {each.expected_voters_offset for each in a_world.memory.steps} == {a_world.offset}


def test_a_leader_that_is_one_of_two_voters_does_not_remove_itself() -> None:
    """It would leave the other one without its vote (decision 66): once that one leads, it does."""
    a_world = world()
    a_world.voters, a_world.leader = ids(1, 4), 4
    a_world.pass_ms(2 * DEMOTE_MS)
    assert a_world.steps == []
    assert a_world.last is not None
    assert "once the other one of the two voters leads" in a_world.last.reason
    a_world.lead(1)
    a_world.pass_ms(DEMOTE_MS + LOOK_MS)
    assert steps_of(a_world) == [(REMOVE, 4)]


def test_a_lost_memory_takes_missing_voters_for_removed() -> None:
    """Unless as many promoted observers stand in for them; the docs say what that costs."""
    a_world = world()
    a_world.voters = ids(1, 2)
    a_world.pass_ms(5 * STABILIZE_MS)
    assert (a_world.steps, a_world.memory.removed) == ([], ids(3))
    a_world = world()
    a_world.voters = ids(1, 2, 4)
    a_world.pass_ms(5 * STABILIZE_MS)
    assert steps_of(a_world) == [(ADD, 3), (REMOVE, 4)]


def test_windows_start_anew_with_each_leader_and_after_a_pause() -> None:
    """Neither a new epoch nor a gap between looks counts what was before."""
    a_world = world(down=ids(3))
    a_world.pass_ms(STABILIZE_MS)
    a_world.epoch += 1
    assert a_world.look().step is None
    a_world.pass_ms(STABILIZE_MS - 2 * LOOK_MS)
    a_world.now_ms += CONTACT_MS + 1
    assert a_world.look().step is None
    assert a_world.steps == []


@pytest.mark.parametrize(
    ("policy", "min_sync", "down", "promoted"),
    [
        (PromotionPolicy.UNDER_REPLICATED, None, ids(5), True),
        (MIN_SYNC, 5, ids(5), True),
        (MIN_SYNC, 4, ids(5), False),
        (MIN_SYNC, 4, ids(4, 5), True),
        (LED_BY_OBSERVER, 5, ids(5), False),
    ],
)
def test_policies(policy: PromotionPolicy, min_sync: int | None, down: frozenset[int], promoted: bool) -> None:
    """Each promotes below its number, not at it."""
    a_world = world(spec_of(5, 2, policy, min_sync), down)
    a_world.pass_ms(STABILIZE_MS + LOOK_MS)
    assert steps_of(a_world) == ([(ADD, 6)] if promoted else [])


def test_an_observer_that_leads_is_joined_by_others() -> None:
    """After an operator has made it the only voter."""
    a_world = world(spec_of(3, 3, LED_BY_OBSERVER, 3), ids(1, 2, 3))
    a_world.voters, a_world.leader = ids(4), 4
    a_world.pass_ms(2 * STABILIZE_MS)
    assert steps_of(a_world) == [(ADD, 5), (ADD, 6)]


def test_a_dry_run_has_the_step_and_does_nothing() -> None:
    """The step is found and explained, and neither given out nor remembered."""
    a_world = world(spec_of(dry_run=True), down=ids(3))
    a_world.pass_ms(STABILIZE_MS + LOOK_MS)
    assert a_world.last is not None
    assert a_world.last.found == AutopilotStep(ADD, replica_key(4), 50)
    assert (a_world.last.step, a_world.memory.steps) == (None, ())
    assert a_world.last.reason.startswith("dry run")


def test_an_observer_in_the_rack_with_the_fewest_voters_is_promoted() -> None:
    """Voters that are down do not count."""
    spec = spec_of()
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "c"}
    replicas = tuple(attrs.evolve(each, rack=racks[each.id]) for each in spec.replicas)
    a_world = world(attrs.evolve(spec, replicas=replicas), down=ids(3))
    a_world.pass_ms(STABILIZE_MS + LOOK_MS)
    assert steps_of(a_world) == [(ADD, 5)]
