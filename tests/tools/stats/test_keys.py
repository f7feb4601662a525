# SPDX-License-Identifier: Apache-2.0
"""Prefixes of keys, and overwritten records, in any chunks and up to any limit."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.stats.counting import RECORD_SUMS, Groups
from raftlog.tools.stats.keys import KeyPrefix, OverwrittenKeys, add_prefixes

KEYS = st.none() | st.binary(max_size=3)
RECORDS = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 99)), max_size=6), max_size=5)


def columns(chunk: list[tuple[bytes | None, int]]) -> tuple[pa.Array, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """The keys and sizes of a chunk."""
    return pa.array([key for key, _ in chunk], pa.binary()), np.array([size for _, size in chunk], dtype=np.int64)


@given(RECORDS, st.integers(1, 4))
def test_overwritten_records_are_those_before_the_last_of_a_key(
    chunks: list[list[tuple[bytes | None, int]]], most: int
) -> None:
    """Exact without a limit; with one, never more, and it is said when a key was left out."""
    whole = [record for chunk in chunks for record in chunk]
    last = {key: index for index, (key, _) in enumerate(whole) if key is not None}
    gone = [size for index, (key, size) in enumerate(whole) if key is not None and last[key] != index]
    exact, bounded = OverwrittenKeys(), OverwrittenKeys(most)
    for chunk in chunks:
        exact.add(*columns(chunk))
        bounded.add(*columns(chunk))
    assert (exact.overwritten_records, exact.overwritten_bytes, exact.key_count) == (len(gone), sum(gone), len(last))
    assert exact.without_key == sum(key is None for key, _ in whole)
    assert (exact.records, exact.record_bytes) == (len(whole), sum(size for _, size in whole))
    assert exact.is_exact
    assert bounded.overwritten_records <= len(gone)
    assert bounded.overwritten_bytes <= sum(gone)
    assert bounded.is_exact == (len(last) <= most)
    assert bounded.key_count == min(most, len(last))


@given(RECORDS, st.integers(1, 3) | st.binary(min_size=1, max_size=2))
def test_prefixes_are_those_of_each_key(chunks: list[list[tuple[bytes | None, int]]], wanted: int | bytes) -> None:
    """The first bytes, or what comes before a separator; all of a key without it."""
    prefix = KeyPrefix(wanted) if isinstance(wanted, int) else KeyPrefix(separator=wanted)
    groups, expected = Groups(RECORD_SUMS), dict[bytes | None, list[int]]()
    for chunk in chunks:
        add_prefixes(groups, columns(chunk)[0], prefix, columns(chunk)[1])
        for key, size in chunk:
            part = key if key is None else key[:wanted] if isinstance(wanted, int) else key.split(wanted)[0]
            sums = expected.setdefault(part, [0, 0])
            sums[:] = sums[0] + 1, sums[1] + size
    assert {key: list(sums) for key, sums in groups.rows()} == expected


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        (b"a:b:c", b"a"),
        (b":b", b""),
        (b"ab", b"ab"),
        (b"", b""),
        *((b"k" * size, b"k" * min(size, 1024)) for size in (1023, 1024, 1025)),
        (b"k" * 1024 + b":", b"k" * 1024),
        (b"k" * 1025 + b":", b"k" * 1024),
    ],
    ids=["first", "empty", "without", "none", "below", "at", "beyond", "before", "long"],
)
def test_the_separator_ends_the_prefix(key: bytes, prefix: bytes) -> None:
    """The first one counts; a key without it is its own prefix."""
    assert KeyPrefix(separator=b":").of(pa.array([key], pa.binary())).to_pylist() == [prefix]
