# SPDX-License-Identifier: Apache-2.0
"""A spec whose policy can never act is refused: tried against all states of small clusters."""

import contextlib
import itertools
from collections.abc import Iterator

import attrs
import pytest

from raftlog.quorum.autopilot.memory import AutopilotMemory, VoterStepKind
from raftlog.quorum.autopilot.planning import plan
from raftlog.quorum.autopilot.spec import AutopilotReplica, AutopilotSpec, PromotionPolicy
from tests.quorum.autopilot.worlds import DEMOTE_MS, STABILIZE_MS, World, spec_of

ADD = VoterStepKind.ADD
MIN_SYNC, LED_BY_OBSERVER = PromotionPolicy.UNDER_MIN_SYNC, PromotionPolicy.LEADER_IS_OBSERVER


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": ()},
        {"replicas": spec_of().replicas * 2},
        {"replicas": (*spec_of().replicas, AutopilotReplica(id=-1, role=spec_of().replicas[0].role))},
        {"min_sync": 3},
        {"policy": MIN_SYNC},
        {"policy": MIN_SYNC, "min_sync": 2},
        {"policy": MIN_SYNC, "min_sync": 4},
        {"policy": LED_BY_OBSERVER, "min_sync": 0},
        {"policy": LED_BY_OBSERVER, "min_sync": 1},
        {"policy": LED_BY_OBSERVER, "min_sync": 4},
        {"policy": LED_BY_OBSERVER, "min_sync": 2, "replicas": spec_of().replicas[:4]},
        {"replicas": spec_of().replicas[:3]},
        {"replicas": spec_of().replicas[:3], "policy": MIN_SYNC, "min_sync": 3},
        {"replicas": spec_of().replicas[1:]},
        {"max_lag": -1},
        {"max_age_ms": -1},
        {"last_contact_ms": 0},
        {"stabilize_ms": 0},
        {"demote_after_ms": STABILIZE_MS - 1},
    ],
)
def test_refused_specs(change: dict[str, object]) -> None:
    """Among them policies that could act only after the quorum is lost."""
    with pytest.raises(ValueError):
        attrs.evolve(spec_of(), **change)  # type: ignore[arg-type]


def test_specs_at_their_limits() -> None:
    """Each number at its limit is taken."""
    attrs.evolve(spec_of(), max_lag=0, max_age_ms=0, last_contact_ms=1, stabilize_ms=1, demote_after_ms=1)
    spec_of(3, 1, MIN_SYNC, 3)
    spec_of(2, 2, LED_BY_OBSERVER, 2)
    spec_of(3, 2, LED_BY_OBSERVER, 2)


def splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide a number into so many parts of 0 or more."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *others) for others in splits(total - first, parts - 1))


def parted(replicas: list[int], counts: tuple[int, ...]) -> list[set[int]]:
    """Return the voters that are up, the voters that are down, and the others that are up."""
    rest = iter(replicas)
    return [set(itertools.islice(rest, count)) for count in counts[:3]]


def states(spec: AutopilotSpec) -> Iterator[World]:
    """Yield all states of a small cluster in which a majority of its voters is in sync, but for equal replicas.

    Each replica is a voter or not, up or down, and any voter that is up may lead. With the first two policies, no
    operator has removed voters: at least as many promoted observers are voters as configured ones are missing. Another
    quorum would be meant by the numbers of the spec. The third policy is for voters that an operator has chosen.
    """
    configured = sorted(spec.configured)
    others = sorted({each.id for each in spec.replicas} - spec.configured)
    for here, there in itertools.product(splits(len(configured), 4), splits(len(others), 4)):
        up, down, spare = parted(configured, here)
        other_up, other_down, other_spare = parted(others, there)
        voters, live = up | down | other_up | other_down, up | other_up
        is_chosen = len(spec.configured - voters) > len(other_up | other_down)
        if 2 * len(live) <= len(voters) or (is_chosen and spec.policy is not LED_BY_OBSERVER):
            continue
        for leader in {min(group) for group in (up, other_up) if group}:
            yield World(spec, frozenset(voters), frozenset(live | spare | other_spare), leader)


def promotes(a_world: World) -> bool:
    """Whether an observer is promoted if all has been as it is now for long, and the leader is a new one."""
    memory = plan(a_world.spec, a_world.status(), AutopilotMemory(), a_world.now_ms).memory
    long_ms = DEMOTE_MS + STABILIZE_MS
    windows = tuple(attrs.evolve(each, since_ms=each.since_ms - long_ms) for each in memory.windows)
    found = plan(a_world.spec, a_world.status(), attrs.evolve(memory, windows=windows), a_world.now_ms).found
    return found is not None and found.kind is ADD and found.key.id not in a_world.spec.configured


@pytest.mark.parametrize("policy", PromotionPolicy)
@pytest.mark.parametrize("configured", [1, 2, 3, 4, 5])
def test_a_policy_is_refused_if_it_can_never_act(
    policy: PromotionPolicy, configured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By trying all states of small clusters: one that is taken promotes in some, one that is refused in none."""
    checked = AutopilotSpec._check_policy
    for observers in (0, 1, 2):
        for min_sync in (None,) if policy is PromotionPolicy.UNDER_REPLICATED else range(1, configured + 1):
            with monkeypatch.context() as patched:
                patched.setattr(AutopilotSpec, "_check_policy", lambda _: None)
                spec = spec_of(configured, observers, policy, min_sync)
            found = any(map(promotes, states(spec)))
            with contextlib.nullcontext() if found else pytest.raises(ValueError, match="can never act"):
                checked(spec)
