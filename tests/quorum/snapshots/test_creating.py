# SPDX-License-Identifier: Apache-2.0
"""Snapshots of the application: at which offsets they are taken, and what they change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidSnapshotIdError, SnapshotError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.log_view import control_record_view
from raftlog.quorum.seam.snapshot_effects import AbandonSnapshot, BeginSnapshot, FreezeSnapshot
from raftlog.voters.voter_set import VoterSet
from tests.quorum.following.followers import DATA, FollowerOfTwo
from tests.quorum.following.observers import voters_batch
from tests.quorum.leading.leaders import LOG_END, leader_of
from tests.quorum.messages import fetch_response
from tests.quorum.single_replica import replica_key

BATCH_ENDS = {3: 1, 5: 2, LOG_END: 3}
"""Where the batches of a leader's log end, with their epochs."""


@given(st.lists(st.integers(-1, LOG_END + 1), max_size=5))
def test_snapshots_are_taken_where_batches_end(offsets: list[int]) -> None:
    """At whatever offsets an application asks, in any order: what is listed is where a committed batch ends."""
    core, expected = leader_of((1,)), [OffsetAndEpoch(0, 0)]
    for offset in offsets:
        try:
            core.take_snapshot(offset, b"x")
        except InvalidSnapshotIdError:
            assert offset > LOG_END or offset < expected[-1].offset
            continue
        if offset in BATCH_ENDS and offset > expected[-1].offset:
            expected.append(OffsetAndEpoch(offset, BATCH_ENDS[offset]))
    assert list(core.log.snapshot_ids) == expected
    assert core.raft._replica.log.state.snapshot_ids == core.log.snapshot_ids


def test_what_is_not_committed_is_in_no_snapshot() -> None:
    """A leader of two that alone has its records refuses; so does a follower that does not know of more."""
    core = leader_of((1, 2))
    with pytest.raises(InvalidSnapshotIdError, match="above the high watermark 0"):
        core.raft.create_snapshot(3)
    follower = FollowerOfTwo()
    follower.respond(follower.requests[-1].number, fetch_response(2, 2, high_watermark=3))
    with pytest.raises(InvalidSnapshotIdError, match="above the high watermark 3"):
        follower.raft.create_snapshot(4)
    assert follower.take_snapshot(3) == OffsetAndEpoch(3, 1)


def test_one_snapshot_is_written_at_a_time() -> None:
    """A second one is refused until the first is frozen, abandoned, or refused by the log."""
    raft = leader_of((1,)).raft
    number = raft.create_snapshot(3)
    assert number is not None
    with pytest.raises(SnapshotError, match="is being written"):
        raft.create_snapshot(5)
    raft.abandon_snapshot(number)
    number = raft.create_snapshot(3)
    assert number is not None
    raft.snapshot_refused(number, "no batch ends there")
    number = raft.create_snapshot(3)
    assert number is not None
    raft.freeze_snapshot(number)
    raft.snapshot_frozen(number)
    assert raft.create_snapshot(3) is None
    effects = [type(each) for each in raft.take_effects()]
    assert effects == [BeginSnapshot, AbandonSnapshot, BeginSnapshot, BeginSnapshot, FreezeSnapshot]


def test_results_for_another_snapshot_are_misuse() -> None:
    """A number that is not that of the snapshot, or comes in the wrong order, is refused and changes nothing."""
    raft = leader_of((1,)).raft
    number = raft.create_snapshot(3)
    assert number is not None
    for call in (raft.freeze_snapshot, raft.abandon_snapshot, raft.snapshot_frozen):
        with pytest.raises(ValueError, match="is not the snapshot"):
            call(number + 1)
    with pytest.raises(ValueError, match="was not to be frozen"):
        raft.snapshot_frozen(number)
    raft.freeze_snapshot(number)
    for call in (raft.freeze_snapshot, raft.abandon_snapshot):
        with pytest.raises(ValueError, match="being frozen"):
            call(number)
    raft.snapshot_frozen(number)
    assert raft._replica.log.state.latest_snapshot_id == OffsetAndEpoch(3, 1)


def test_a_snapshot_that_the_log_has_passed_is_not_listed() -> None:
    """While the application writes, the log restarts at a later snapshot of the leader."""
    core = FollowerOfTwo()
    core.respond(core.requests[-1].number, fetch_response(2, 2, high_watermark=3))
    number = core.raft.create_snapshot(3)
    assert number is not None
    core.settle()
    core.name()
    core.send_chunk(0, DATA)
    core.raft.freeze_snapshot(number)
    core.settle()
    assert core.raft._replica.log.state.snapshot_ids == core.log.snapshot_ids == (OffsetAndEpoch(10, 2),)


@given(st.sampled_from(sorted(BATCH_ENDS)))
def test_control_records_are_trimmed_to_a_snapshot(offset: int) -> None:
    """The core's view of the voters equals that of a state machine that was trimmed, and of one that reads anew."""
    core = leader_of((1,))
    core.take_snapshot(offset, b"x")
    view = core.raft._replica.log.control_records
    assert view == control_record_view(core.machine)
    fresh = KRaftControlRecordStateMachine(VoterSet())
    update_state(fresh, core.log)
    assert view.last_voter_set == fresh.last_voter_set


def test_voters_of_a_record_that_begins_where_a_snapshot_ends_can_be_truncated() -> None:
    """The set before is in force again. The snapshot does not have the record; Kafka forgets the set before it."""
    core = FollowerOfTwo()
    before = core.machine.last_voter_set
    added = voters_batch(3, map(replica_key, (1, 2, 3, 4)), epoch=2)
    core.respond(core.requests[-1].number, fetch_response(2, 2, records=added, high_watermark=3))
    assert core.raft._replica.voters == core.machine.last_voter_set != before
    assert core.take_snapshot(3) == OffsetAndEpoch(3, 1)
    assert core.raft._replica.log.control_records == control_record_view(core.machine)
    core.respond(core.requests[-1].number, fetch_response(2, 2, diverging=OffsetAndEpoch(3, 1)))
    assert core.log.end_offset.offset == 3
    assert core.raft._replica.voters == core.machine.last_voter_set == before
