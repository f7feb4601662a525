# SPDX-License-Identifier: Apache-2.0
"""The judgement on a quorum equals what brute force says, for pasts of small quorums, and contradicts no honest one."""

from collections import Counter

import pytest

from raftlog.tools.auditing.proof.verdict import Reason
from tests.tools.auditing.proof.compare import contradictions, disagreements, judged
from tests.tools.auditing.proof.past import make_past

FEW, MANY, PART = 400, 20_000, 500


def compare(seeds: range) -> None:
    """Compare the judgement on each past with the oracle's answer and with what really happened."""
    for seed in seeds:
        past = make_past(seed)
        found = [*disagreements(past), *contradictions(past)]
        assert found == [], f"past {seed}: {found}"


def test_some_pasts() -> None:
    """What is proven, the seed, the verdict, and who could be elected are those of brute force."""
    compare(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, PART))
def test_many_pasts(first: int) -> None:
    """So they are for 20,000 pasts."""
    compare(range(first, first + PART))


def test_the_pasts_are_of_all_kinds() -> None:
    """Each reason of a verdict occurs among them, and no reason is nearly all of them."""
    reasons = Counter(judged(make_past(seed)).ruling.reason for seed in (1678, *range(FEW)))

    assert set(reasons) == set(Reason)
    assert reasons[Reason.ENOUGH_VOTERS] < 0.8 * reasons.total()
