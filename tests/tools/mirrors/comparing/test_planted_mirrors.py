# SPDX-License-Identifier: Apache-2.0
"""Faults in copies of mirrors that a real MirrorMaker made."""

import pytest

from tests.tools.mirrors.comparing.mirror_copies import real_mirrors
from tests.tools.mirrors.comparing.planted_mirrors import KINDS, planted

STEP = 40
SLOW_STEP = 3


def test_real_mirrors_are_sound() -> None:
    """Every record of five real mirrors was compared, every sync holds, and nothing is found."""
    results = [each.compared() for each in real_mirrors()]
    assert [each.differences for each in results] == [()] * 5
    assert sum(each.equal_anchors for each in results) == 52
    assert sum(each.counts.compared for each in results) == 580
    assert sum(each.wrong_anchors + each.unverifiable_anchors + each.counts.lag for each in results) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_found_where_it_is(kind: str) -> None:
    """At some places of each mirror, and at its ends: the right rule, the right places, and nothing else."""
    sampled = [*planted(kind, step=STEP), *planted(kind, step=STEP, first=STEP - 1)]
    assert [each.verdict() for each in sampled] == ["found"] * len(sampled)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_found_at_many_places(kind: str) -> None:
    """At each third record of each mirror; ``planted_table`` takes them all."""
    verdicts = [each.verdict() for each in planted(kind, step=SLOW_STEP)]
    assert verdicts
    assert set(verdicts) == {"found"}
