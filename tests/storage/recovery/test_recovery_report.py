# SPDX-License-Identifier: Apache-2.0
"""The findings and actions of startup can be printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.replicated_log import Quarantine
from raftlog.storage.recovery.recovery_report import ActionKind, RecoveryAction, RecoveryReport

actions = st.builds(RecoveryAction, st.sampled_from(ActionKind), st.just("log/a.index"), st.just("why"))
quarantines = st.builds(
    Quarantine, st.integers(0, 99), st.integers(0, 99), st.just("bad"), st.just("log/0.log"), st.integers(0, 99)
)


@given(st.lists(actions, max_size=4), st.none() | quarantines)
def test_a_line_for_each_thing(done: list[RecoveryAction], quarantine: Quarantine | None) -> None:
    """First what the log holds, then a line an action, in order, and last what is damaged, with its place."""
    lines = RecoveryReport(3, 9, None, None, tuple(done), quarantine).lines()
    assert lines[0] == "the log holds offsets 3 to 9 (exclusive)"
    assert lines[1 : len(done) + 1] == tuple(f"log/a.index: {each.kind.value}: why" for each in done)
    last = lines[len(done) + 1 :]
    if quarantine is None:
        assert last == ()
    else:
        (line,) = last
        assert line.startswith(
            f"log/0.log: quarantined from offset {quarantine.first_bad_offset} (position {quarantine.position})"
        )
        assert f"reaches {quarantine.durable_end_offset} again: bad" in line


@pytest.mark.parametrize(
    ("was_closed", "durable_end_offset", "ending"),
    [
        (True, 9, ", known to be durable up to 9, closed in order"),
        (False, 7, ", known to be durable up to 7, not closed in order"),
        (None, None, ""),
    ],
)
def test_rules_known_before(was_closed: bool | None, durable_end_offset: int | None, ending: str) -> None:
    """How far the log was durable, and whether it was closed, is said where it was known."""
    report = RecoveryReport(0, 9, durable_end_offset, was_closed, (), None)
    assert report.lines() == (f"the log holds offsets 0 to 9 (exclusive){ending}",)
