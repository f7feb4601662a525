# SPDX-License-Identifier: Apache-2.0
"""Stories of logs can be replayed by any log, and say what is there at the end."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.replicated_log import contents
from raftlog.testing.log_stories import Append, Commit, CutOff, LogStory, TakeSnapshot, log_stories
from tests.contracts.log_harnesses import HARNESSES


@pytest.mark.parametrize("implementation", HARNESSES)
@settings(max_examples=30)
@given(log_stories())
def test_every_log_goes_through_a_story(implementation: str, story: LogStory) -> None:
    """At the end the log has the offsets and the bytes of the story, and at each offset its voters."""
    make: Callable[..., LogHarness] = HARNESSES[implementation]
    harness = make(KEEP_ALL)
    machine = KRaftControlRecordStateMachine(story.static_voters)
    story.replay(harness.log, machine)
    log = harness.log
    assert (log.start_offset, log.end_offset.offset) == (story.start_offset, story.end_offset)
    assert log.high_watermark.offset == max(story.high_watermark, story.start_offset)
    left = b"".join(step.data for step in story.batches if step.next_offset > story.start_offset)
    assert contents(log) == left
    for offset, voters in story.voter_sets().items():
        assert machine.voter_set_at_offset(offset) == voters


@settings(max_examples=40)
@given(log_stories(), st.data())
def test_stories_are_of_sound_quorums(story: LogStory, data: st.DataObject) -> None:
    """Nothing committed is truncated, snapshots are of committed records, and voters change one at a time."""
    high_watermark, latest = 0, None
    for step in story.steps:
        match step:
            case Append():
                if step.voters is not None:
                    if latest is not None:
                        assert len(latest.voter_ids ^ step.voters.voter_ids) <= 1
                    latest = step.voters
            case Commit():
                assert step.high_watermark >= high_watermark
                high_watermark = step.high_watermark
            case CutOff():
                assert step.end_offset >= high_watermark
                latest = None
            case TakeSnapshot():
                assert step.end_offset <= high_watermark


def test_every_kind_of_step_occurs() -> None:
    """Voter changes, truncations and snapshots that take the place of records all come up."""
    seen: set[object] = set()

    @settings(max_examples=100, database=None, derandomize=True)
    @given(log_stories())
    def collect(story: LogStory) -> None:
        for step in story.steps:
            seen.add(type(step))
            seen.add(getattr(step, "takes_place", None))
            seen.add(getattr(step, "voters", None) is not None)

    collect()
    assert {Append, Commit, CutOff, TakeSnapshot, True, False} <= seen
