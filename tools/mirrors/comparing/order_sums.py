# SPDX-License-Identifier: Apache-2.0
"""Sums over records that depend on their order, and from which the sums of longer runs of records are composed.

The sum of a run of digests is that of each digest times the power of a base whose exponent is the record's place in the
run: a polynomial. It has four lanes, one for each 32 bits of a digest, with a base of its own; all are numbers below a
prime. Two different runs of records have the same sum with a probability of about 1 in 2**124.

Source: R. M. Karp and M. O. Rabin, "Efficient randomized pattern-matching algorithms", 1987.
"""

import array
import functools
from typing import Final

import numpy as np

from raftlog.records.kernel_choice import kernel
from raftlog.tools.mirrors.comparing.rows import Int64s, UInt64s

LANES: Final = 4
PRIME: Final = (1 << 31) - 1
BASES: Final = tuple(7**exponent % PRIME for exponent in (5, 13, 17, 19))
"""Powers of a generator of the prime's group, with exponents without a common factor with its order: generators too."""
_BASES: Final = memoryview(array.array("q", BASES))
_DIGITS: Final = 3
_DIGIT_BITS: Final = 11
_DIGIT: Final = (1 << _DIGIT_BITS) - 1
"""An exponent below the prime has so many digits, of so many bits, in the tables of powers."""


def powers(exponents: Int64s) -> UInt64s:
    """Return the bases to the power of some exponents, which may be negative: a row per exponent, a column per lane."""
    left = exponents % (PRIME - 1)
    found = _digit_powers()[0][left & _DIGIT]
    for place, table in enumerate(_digit_powers()[1:], 1):
        found = found * table[left >> place * _DIGIT_BITS & _DIGIT] % PRIME
    return np.asarray(found)


def sum_runs(digests: UInt64s, starts: Int64s) -> UInt64s:
    """Return the sums of adjacent runs of records: a row per run, a column per lane.

    Args:
        digests: of all records, in two columns.
        starts: the index of each run's first record, ascending, from 0 on. No run is empty.
    """
    sums = np.empty((len(starts), LANES), np.int64)
    rows = np.ascontiguousarray(digests).view(np.int64).ravel()
    kernel.sum_digests(rows.data, starts.data, _BASES, sums.ravel().data)
    return sums.view(np.uint64)


@functools.cache
def _digit_powers() -> tuple[UInt64s, ...]:
    """Return, for each digit of an exponent, the bases to the power of what each of its values stands for."""
    return tuple(_first_powers(1 << place * _DIGIT_BITS, _DIGIT + 1) for place in range(_DIGITS))


def _first_powers(step: int, count: int) -> UInt64s:
    """Return the bases to the power of each multiple of a step, from 0 on, of so many at least."""
    found = np.ones((1, LANES), np.uint64)
    while len(found) < count:
        found = np.concatenate([found, found * _row(step * len(found)) % PRIME])
    return found


def _row(exponent: int) -> UInt64s:
    return np.array([pow(base, exponent, PRIME) for base in BASES], np.uint64)
