# SPDX-License-Identifier: Apache-2.0
"""Sums that depend on the order of records: as plain integers make them, and composed."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.order_sums import BASES, LANES, PRIME, powers, sum_runs
from raftlog.tools.mirrors.comparing.rows import Int64s, UInt64s

HALF = st.sampled_from([0, 1, PRIME, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]) | st.integers(0, (1 << 64) - 1)
DIGESTS = st.lists(st.tuples(HALF, HALF), max_size=12)
Digests = Sequence[tuple[int, int]]


def array(digests: Digests) -> UInt64s:
    """The digests as columns."""
    return np.array(digests, np.uint64).reshape(-1, 2)


def naive(digests: Digests) -> list[int]:
    """The sum of a run, as it is defined."""
    lanes = [[half >> shift & 0xFFFFFFFF for half in each for shift in (0, 32)] for each in digests]
    return [sum(each[lane] * BASES[lane] ** place for place, each in enumerate(lanes)) % PRIME for lane in range(LANES)]


def indices(*numbers: int) -> Int64s:
    """Some indices as a column."""
    return np.array(numbers, np.int64)


@given(st.lists(DIGESTS.filter(bool), min_size=1, max_size=5))
def test_runs_have_the_sums_that_integers_give(runs: list[Digests]) -> None:
    """Whatever the runs are."""
    starts = np.cumsum([0, *map(len, runs)])[:-1]
    found = sum_runs(array([each for run in runs for each in run]), starts)
    assert found.tolist() == [naive(run) for run in runs]


@given(DIGESTS.filter(bool), DIGESTS.filter(bool))
def test_sums_are_composed(first: Digests, second: Digests) -> None:
    """The sum of a run is that of its beginning, and that of its rest times the power of the beginning's length."""
    starts = indices(0)
    whole = sum_runs(array([*first, *second]), starts)
    parts = sum_runs(array(first), starts) + sum_runs(array(second), starts) * powers(indices(len(first)))
    assert (whole == parts % PRIME).all()


@given(st.integers(-(1 << 62), 1 << 62), st.integers(-(1 << 62), 1 << 62))
def test_powers_are_those_of_integers(exponent: int, other: int) -> None:
    """Positive and negative ones, one by one and several at once."""
    assert powers(indices(exponent, other)).tolist() == [
        [pow(base, each, PRIME) for base in BASES] for each in (exponent, other)
    ]


def test_bases_are_generators() -> None:
    """No power of a base below that of the prime minus one is 1: no two near places have the same weight."""
    factors = (2, 3, 7, 11, 31, 151, 331)
    assert math.prod((*factors, 3)) == PRIME - 1
    assert all(pow(base, (PRIME - 1) // factor, PRIME) != 1 for base in BASES for factor in factors)
    assert len(set(BASES)) == LANES
