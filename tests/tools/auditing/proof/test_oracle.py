# SPDX-License-Identifier: Apache-2.0
"""The judgement on a quorum equals what brute force says, for pasts of small quorums, and contradicts no honest one."""

from collections import Counter

import pytest

from raftlog.tools.auditing.proof.verdict import Reason
from tests.tools.auditing.proof.compare import contradictions, disagreements, judged
from tests.tools.auditing.proof.past import Past, make_past
from tests.tools.auditing.proof.simulated import pasts_of

FEW, MANY, RENAMED, PART = 400, 20_000, 2_000, 500
SCHEDULES, MOMENTS = 100, 25


def in_tiers(numbers: range, of_slow: int) -> list[object]:
    """Numbers of which so many are of slow tests, and the rest of those of the volume tier."""
    return [
        *(pytest.param(number, marks=pytest.mark.slow) for number in numbers[:of_slow]),
        *(pytest.param(number, marks=pytest.mark.volume) for number in numbers[of_slow:]),
    ]


def check(past: Past, name: str) -> None:
    """Compare the judgement on a past with the oracle's answer and with what really happened."""
    found = [*disagreements(past), *contradictions(past)]
    assert found == [], f"{name}: {found}"


def compare(seeds: range) -> None:
    """Compare the judgements on some pasts."""
    for seed in seeds:
        check(make_past(seed), f"past {seed}")


def test_some_pasts() -> None:
    """What is proven, the seed, the verdict, and who could be elected are those of brute force."""
    compare(range(FEW))


@pytest.mark.parametrize("first", in_tiers(range(0, MANY, PART), 8))
def test_many_pasts(first: int) -> None:
    """So they are for 20,000 pasts."""
    compare(range(first, first + PART))


@pytest.mark.parametrize("first", in_tiers(range(MANY, MANY + RENAMED, PART), 1))
def test_pasts_with_renamed_snapshots(first: int) -> None:
    """So they are for pasts of which each has a snapshot of a wrong name, if it has a snapshot."""
    for seed in range(first, first + PART):
        check(make_past(seed, renaming=1), f"past {seed} with a renamed snapshot")


@pytest.mark.parametrize("seed", range(3))
def test_some_simulated_pasts(seed: int) -> None:
    """So they are for quorums of the consensus core, with networks and disks that fail, stopped at some moments."""
    for moment, past in enumerate(pasts_of(seed, 10)):
        check(past, f"schedule {seed}, moment {moment}")


@pytest.mark.parametrize("seed", in_tiers(range(3, SCHEDULES), 20))
def test_many_simulated_pasts(seed: int) -> None:
    """So they are at 2,500 moments of a hundred schedules."""
    for moment, past in enumerate(pasts_of(seed, MOMENTS)):
        check(past, f"schedule {seed}, moment {moment}")


def test_the_pasts_are_of_all_kinds() -> None:
    """Each reason of a verdict occurs among them, and no reason is nearly all of them."""
    reasons = Counter(judged(make_past(seed)).ruling.reason for seed in (1678, *range(FEW)))

    assert set(reasons) == set(Reason)
    assert reasons[Reason.ENOUGH_VOTERS] < 0.8 * reasons.total()
