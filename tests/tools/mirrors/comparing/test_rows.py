# SPDX-License-Identifier: Apache-2.0
"""Rows of records, against models that look at one record after the other."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.mirrors.comparing.rows import first_offsets
from tests.tools.mirrors.comparing.made_mirrors import UNREADABLE, Entry, MemoryLog, rows_of

CONTENTS = st.lists(st.integers(UNREADABLE, 4), max_size=20)
KNOWN = st.lists(st.integers(0, 4), max_size=20)


@given(CONTENTS, KNOWN, st.integers(1, 5))
def test_the_first_equal_record_is_found(log: list[int], wanted: list[int], at_once: int) -> None:
    """Of each content, wherever it first is; what cannot be read is equal to nothing."""
    rows = MemoryLog([Entry(2 * at, content) for at, content in enumerate(log)], 0, 2 * len(log), at_once)
    digests = list(rows_of([Entry(at, content) for at, content in enumerate(wanted)]).digests)
    found = first_offsets(rows.read(0, 2 * len(log)), digests)
    assert found == [2 * log.index(each) if each in log else None for each in wanted]
