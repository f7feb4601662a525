# SPDX-License-Identifier: Apache-2.0
"""Histories against a plain dict."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from raftlog.voters.history import HistoryEntry, TreeMapLogHistory

offsets = st.integers(-1, 60)


class HistoryAgainstADict(RuleBasedStateMachine):
    """After any operations a history says what a dict of offsets and values says."""

    def __init__(self) -> None:
        super().__init__()
        self.history: TreeMapLogHistory[int] = TreeMapLogHistory()
        self.model: dict[int, int] = {}

    @rule(gap=st.integers(1, 9), value=st.integers())
    def add(self, gap: int, value: int) -> None:
        """Append an entry."""
        offset = max(self.model, default=-2) + gap
        self.history.add(offset, value)
        self.model[offset] = value

    @rule(end_offset=offsets)
    def truncate_new_entries(self, end_offset: int) -> None:
        """Forget the entries from an offset on."""
        self.history.truncate_new_entries(end_offset)
        self.model = {offset: value for offset, value in self.model.items() if offset < end_offset}

    @rule(start_offset=offsets)
    def truncate_old_entries(self, start_offset: int) -> None:
        """Forget values that are no longer in force at an offset."""
        self.history.truncate_old_entries(start_offset)
        floor = max((offset for offset in self.model if offset <= start_offset), default=-1)
        self.model = {offset: value for offset, value in self.model.items() if offset >= floor}

    @rule()
    def clear(self) -> None:
        """Forget everything."""
        self.history.clear()
        self.model.clear()

    @invariant()
    def says_the_same(self) -> None:
        """At every offset, and as a whole."""
        self.history.check_invariants()
        assert list(self.history.entries()) == [HistoryEntry(*item) for item in sorted(self.model.items())]
        assert len(self.history) == len(self.model)
        last = max(self.model, default=None)
        assert self.history.last_entry() == (None if last is None else HistoryEntry(last, self.model[last]))
        for offset in range(-2, (last or 0) + 2):
            below = [each for each in self.model if each <= offset]
            assert self.history.value_at_or_before(offset) == (self.model[max(below)] if below else None)


TestHistoryAgainstADict = HistoryAgainstADict.TestCase
TestHistoryAgainstADict.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
