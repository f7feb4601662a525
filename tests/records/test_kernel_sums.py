# SPDX-License-Identifier: Apache-2.0
"""Sums of digests: both forms of the kernel, beside plain integers, and with columns that are wrong."""

import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.kernel_forms import BUILT_FORMS, FORMS, examples

_forms = pytest.mark.parametrize("kernel", FORMS)
_PRIME = 2**31 - 1
_LONGS = st.sampled_from([0, 1, -1, _PRIME, 2**32 - 1, 2**32, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
_RUNS = st.lists(st.lists(st.tuples(_LONGS, _LONGS), min_size=1, max_size=40), max_size=5)
_BASES = st.lists(st.sampled_from([0, 1, 2, 7, _PRIME - 1]) | st.integers(0, _PRIME - 1), min_size=4, max_size=4)


def _longs(*numbers: int) -> memoryview:
    return memoryview(array.array("q", numbers))


def _sum_of(run: list[tuple[int, int]], bases: list[int]) -> list[int]:
    rows = [[half >> shift & 0xFFFFFFFF for half in each for shift in (0, 32)] for each in run]
    lanes = [enumerate(lane) for lane in zip(*rows, strict=True)]
    return [sum(part * base**at for at, part in lane) % _PRIME for lane, base in zip(lanes, bases, strict=True)]


@examples(300)
@given(_RUNS, _BASES)
def test_both_forms_sum_as_integers_do(runs: list[list[tuple[int, int]]], bases: list[int]) -> None:
    """Whatever the digests, the runs and the bases are; a column with more room keeps what is in the rest."""
    digests = _longs(*(half for run in runs for each in run for half in each))
    starts = _longs(*(sum(map(len, runs[:number])) for number in range(len(runs))))
    for kernel in BUILT_FORMS:
        sums = _longs(*[5] * (4 * len(runs) + 1))
        kernel.sum_digests(digests, starts, _longs(*bases), sums)
        assert sums.tolist() == [*(lane for run in runs for lane in _sum_of(run, bases)), 5]


@_forms
@pytest.mark.parametrize("starts", [(0, 0), (0, 3), (1, 0), (-1,), (2**62,), (-(2**63),)])
def test_each_run_has_a_record(kernel: Any, starts: tuple[int, ...]) -> None:
    """A run is not empty, starts where a record is, and before the next one; the last record is one, too."""
    with pytest.raises(ValueError):
        kernel.sum_digests(_longs(*range(6)), _longs(*starts), _longs(1, 2, 3, 4), _longs(*[0] * 8))
    kernel.sum_digests(_longs(*range(6)), _longs(0, 2), _longs(1, 2, 3, 4), _longs(*[0] * 8))


@_forms
def test_half_a_digest_is_none(kernel: Any) -> None:
    """A run that starts at the first half of a digest without its second one is refused."""
    with pytest.raises(ValueError):
        kernel.sum_digests(_longs(1, 2, 3), _longs(1), _longs(1, 2, 3, 4), _longs(*[0] * 4))


@_forms
def test_sums_have_room(kernel: Any) -> None:
    """One number too few is refused, of the bases and of the sums; then no sum is filled."""
    for bases, room in ((3, 8), (4, 7)):
        sums = _longs(*[5] * room)
        with pytest.raises(ValueError):
            kernel.sum_digests(_longs(*range(4)), _longs(0, 1), _longs(*[1] * bases), sums)
        assert set(sums.tolist()) == {5}


@_forms
@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("base", [-1, _PRIME, 2**62])
def test_a_base_is_below_the_modulus(kernel: Any, lane: int, base: int) -> None:
    """The greatest that is below it is taken; a negative one is refused."""
    bases = [_PRIME - 1] * 4
    kernel.sum_digests(_longs(1, 2), _longs(0), _longs(*bases), _longs(*[0] * 4))
    bases[lane] = base
    with pytest.raises(ValueError):
        kernel.sum_digests(_longs(1, 2), _longs(0), _longs(*bases), _longs(*[0] * 4))
