# SPDX-License-Identifier: Apache-2.0
"""Offset syncs as columns, beside a list of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.lifetimes import Sync, Syncs, edges_of

_NUMBERS = st.sampled_from([0, 1, 2, -1, 2**63 - 1, -(2**63)])
_SYNCS = st.lists(st.builds(Sync, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS), max_size=6)


@given(_SYNCS, st.data())
def test_columns_are_a_sequence(syncs: list[Sync], data: st.DataObject) -> None:
    """Each by its index, parts by slices, masks and lists of indices; and what is made of columns is themselves."""
    columns = Syncs.of(syncs)
    assert list(columns) == syncs
    assert len(columns) == len(syncs)
    assert Syncs.of(columns) is columns
    for at in range(-len(syncs), len(syncs)):
        assert columns[at] == syncs[at]
    for at in (len(syncs), -len(syncs) - 1):
        with pytest.raises(IndexError):
            columns[at]
    part = slice(*data.draw(st.tuples(*[st.none() | st.integers(-7, 7)] * 2)))
    assert list(columns[part]) == syncs[part]
    wanted = data.draw(st.lists(st.booleans(), min_size=len(syncs), max_size=len(syncs)))
    kept = [each for each, is_wanted in zip(syncs, wanted, strict=True) if is_wanted]
    assert list(columns.where(np.array(wanted, bool))) == kept
    assert list(columns.where(np.flatnonzero(wanted))) == kept


@given(st.lists(_SYNCS, max_size=3), st.none() | st.builds(Sync, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS))
def test_columns_are_joined(parts: list[list[Sync]], first: Sync | None) -> None:
    """In their order, after a first one if there is one."""
    joined = Syncs.joined(map(Syncs.of, parts))
    everything = [each for part in parts for each in part]
    assert list(joined) == everything
    assert list(joined.after(first)) == [*([] if first is None else [first]), *everything]


@given(_SYNCS)
def test_which_syncs_rise(syncs: list[Sync]) -> None:
    """Both offsets do, whatever the distance is: it may be more than a number of 64 bits."""
    pairs = itertools.pairwise(syncs)
    assert Syncs.of(syncs).do_rise.tolist() == [
        before.upstream < after.upstream and before.downstream < after.downstream for before, after in pairs
    ]


@given(_SYNCS, st.sampled_from([0, 5, 2**63 - 1]))
def test_edges_are_what_syncs_name(syncs: list[Sync], mirrored_end: int) -> None:
    """Ascending, each once; in the source with the end of what was mirrored."""
    upstream, downstream = edges_of(syncs, mirrored_end)
    assert upstream.tolist() == sorted({*(each.upstream for each in syncs), mirrored_end})
    assert downstream.tolist() == sorted({each.downstream for each in syncs})
