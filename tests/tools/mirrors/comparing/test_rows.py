# SPDX-License-Identifier: Apache-2.0
"""Rows of records, against models that look at one record after the other."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.lockstep import equal_and_all
from raftlog.tools.mirrors.comparing.rows import first_offsets
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, rows_of

CONTENTS = st.lists(st.integers(UNREADABLE, 4), max_size=20)


@given(CONTENTS, CONTENTS, st.integers(1, 5))
def test_the_first_equal_record_is_found(log: list[int], wanted: list[int], at_once: int) -> None:
    """Of each content, wherever it first is; what cannot be read is equal to nothing."""
    rows = MemoryLog([Entry(2 * at, content) for at, content in enumerate(log)], 0, 2 * len(log), at_once)
    found = first_offsets(
        rows.read(0, 2 * len(log)), rows_of([Entry(at, content) for at, content in enumerate(wanted)])
    )
    assert found.tolist() == [2 * log.index(each) if each in log and each != UNREADABLE else -1 for each in wanted]


@given(CONTENTS, CONTENTS, st.integers(1, 5), st.integers(1, 5))
def test_equal_ones_and_all_are_counted_at_once(left: list[int], right: list[int], at_once: int, other: int) -> None:
    """The equal ones at the beginning, and all on both sides."""
    logs = [
        MemoryLog([Entry(at, content) for at, content in enumerate(each)], 0, len(each), size)
        for each, size in ((left, at_once), (right, other))
    ]
    equal = 0
    for one, two in zip(left, right, strict=False):
        if one != two or one == UNREADABLE:
            break
        equal += 1
    assert equal_and_all(*(each.read(0, 99) for each in logs)) == (equal, len(left), len(right))
