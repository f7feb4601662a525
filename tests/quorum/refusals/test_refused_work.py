# SPDX-License-Identifier: Apache-2.0
"""A replica whose log refuses work stays up: its appends end, it resigns, votes and fetches, and goes on later."""

import itertools

import pytest

from raftlog.errors import NotLeaderError
from raftlog.invariants import instance_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Follower, Leader, Resigned, Unattached
from raftlog.quorum.seam.effects import AppendAsFollower, AppendOutcome
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from tests.quorum.full_disks import FullDisk
from tests.quorum.leading.leaders import LOG_END, SlowDisk, fetch, leader_of
from tests.quorum.messages import begin_quorum_epoch_request, fetch_response, records_at, remove_voter_request
from tests.quorum.single_replica import replica_key

LINGER_MS = 25


def full_leader(voter_ids: tuple[int, ...] = (1, 2, 3)) -> tuple[SlowDisk, FullDisk]:
    """Return a leader that has committed its epoch, and its disk, which has become full."""
    core = leader_of(voter_ids)
    if voter_ids != (1,):
        fetch(core, replica_key(2), OffsetAndEpoch(LOG_END, 3))
    assert core.raft.high_watermark == LOG_END
    disk = FullDisk(core.log)
    disk.is_full = True
    return core, disk


def outcomes(core: SlowDisk) -> dict[int, AppendOutcome]:
    """Return what became of each append."""
    return {each.number: each.outcome for each in core.ended}


def test_appends_of_a_full_disk_have_failed() -> None:
    """What was written may be committed by the next leader; what was refused, and what was collected, is in no log."""
    core = leader_of((1, 2, 3))
    fetch(core, replica_key(2), OffsetAndEpoch(LOG_END, 3))
    written = core.append(b"a")
    core.sleep(LINGER_MS)
    disk = FullDisk(core.log)
    disk.is_full = True
    refused = [core.append(b"b"), core.append(b"c")]
    core.sleep(LINGER_MS)
    assert outcomes(core) == {
        written.number: AppendOutcome.UNKNOWN,
        **{each.number: AppendOutcome.FAILED for each in refused},
    }
    assert core.log.end_offset.offset == LOG_END + 1
    with pytest.raises(NotLeaderError, match="no space left"):
        core.append(b"d")


def test_a_voter_change_that_does_not_fit_is_answered() -> None:
    """The record is in no log; the leadership ends, and with it the request."""
    core, _ = full_leader()
    core.request("remove", remove_voter_request(replica_key(3)), version=0)
    assert isinstance(core.raft.role, Resigned)
    assert "remove" in [each.token for each in core.take_responses()]
    assert core.machine.last_voter_set.voter_ids == {1, 2, 3}


def test_an_epoch_that_does_not_fit_is_resigned() -> None:
    """A disk that fills up while votes come in: the leader cannot begin its epoch."""
    core, disk = full_leader((1,))
    core.append(b"a")
    core.sleep(LINGER_MS)
    assert isinstance(core.raft.role, Resigned)
    first = core.raft.role.epoch
    core.sleep(1_000)
    assert isinstance(core.raft.role, Resigned)
    assert core.raft.role.epoch == first + 2
    assert core.raft.halt_reason is None
    disk.is_full = False
    core.sleep(2_000)
    assert isinstance(core.raft.role, Leader)
    assert not core.raft.status.is_disk_full
    assert core.raft.status.log_refusal is None


def test_a_full_disk_is_not_tried_without_a_pause() -> None:
    """In a minute, the only voter tries some ten times; it uses no more epochs than that."""
    core, disk = full_leader((1,))
    core.append(b"a")
    for _ in range(60_000 // LINGER_MS):
        core.sleep(LINGER_MS)
    assert 4 <= disk.refusals <= 9
    assert core.raft.status.is_disk_full


def full_follower(config: QuorumConfig | None = None) -> tuple[SlowDisk, FullDisk]:
    """Return a follower of replica 2, and its disk, which is full."""
    core = leader_of((1, 2, 3), config=config)
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    disk = FullDisk(core.log)
    disk.is_full = True
    return core, disk


def fetched(core: SlowDisk, count: int = 1) -> bool:
    """Answer the Fetch that was sent, if there is one, with records; return whether there was."""
    sent = [each for each in core.take_requests() if isinstance(each.message, FetchRequest)]
    for each in sent:
        end = core.log.end_offset.offset
        core.respond(each.number, fetch_response(4, 2, records=records_at(end, 4, count), high_watermark=end))
    return bool(sent)


def test_a_follower_with_a_full_disk_stays_in_touch() -> None:
    """It fetches once a second in the end: the leader counts it as in touch, and it stands against no leader."""
    core, disk = full_follower()
    times = []
    for now in range(0, 30_000, 10):
        if fetched(core):
            times.append(now)
        core.sleep(10)
        assert isinstance(core.raft.role, Follower)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) <= 1_000
    assert len(times) < 40
    assert disk.refusals == len(times)
    disk.is_full = False
    core.sleep(1_000)
    assert fetched(core)
    assert core.log.end_offset.offset == LOG_END + 1
    assert not core.raft.status.is_disk_full
    assert fetched(core)


def test_a_replica_with_a_full_disk_stands_in_the_end() -> None:
    """Nobody else may be able to win. The pause is the one after the last refusal."""
    core, _ = full_follower()
    assert fetched(core)
    core.sleep(999)
    core.sleep(1_000)
    assert isinstance(core.raft.role, Follower)
    assert core.raft.deadline_ms is not None
    core.sleep(1)
    assert not isinstance(core.raft.role, Follower)
    assert core.raft.status.is_disk_full


@pytest.mark.parametrize(("ms", "stands"), [(15_999, False), (16_000, True)])
def test_the_longest_pause_before_a_candidacy(ms: int, stands: bool) -> None:
    """It is 16 election timeouts, from the last refusal on."""
    core, _ = full_follower()
    for _ in range(10):
        core.sleep(1_000)
        assert fetched(core)
    core.sleep(ms)
    assert isinstance(core.raft.role, Follower | Unattached) != stands


def test_a_log_that_is_not_cleaned_for_want_of_room_does_not_stop_the_leader() -> None:
    """Nothing depends on it. It is tried again with the next cleaning."""
    core, disk = full_leader((1,))
    disk.is_full = False
    for _ in range(2):
        core.append(b"a")
        core.sleep(LINGER_MS)
        assert core.take_snapshot(core.log.end_offset.offset) is not None
    disk.is_full = True
    core.sleep(60_000)
    assert disk.refusals == 1
    core.sleep(59_999)
    assert disk.refusals == 1
    core.sleep(1)
    assert disk.refusals == 2
    assert isinstance(core.raft.role, Leader)
    assert not core.raft.status.is_disk_full


def test_a_late_refusal_changes_nothing() -> None:
    """Only the next work on the log can be refused."""
    core, _ = full_leader()
    before = core.raft.status
    with pytest.raises(ValueError, match="not the work on the log to be done next"):
        core.raft.log_refused(10_000, core.raft._replica.log, "full", is_full=True)
    assert core.raft.status == before


@pytest.mark.parametrize(
    ("later", "sizes", "taken"),
    [
        (0, (None,), 1),
        (0, (-1,), 0),
        (0, (5,), 0),
        (1, (None,), 0),
        (0, (None, -1), 1),
        (0, (), 0),
    ],
)
def test_records_of_which_nothing_is_left_are_fetched_again_after_a_pause(
    later: int, sizes: tuple[int | None, ...], taken: int
) -> None:
    """A batch that is cut off, or of a later epoch, is dropped without an error; so a leader could make it spin."""
    core = leader_of((1, 2, 3))
    end, epoch = core.log.end_offset.offset, core.raft.role.epoch + 1
    core.request("", begin_quorum_epoch_request(2, epoch), version=1)
    sent = [each for each in core.take_requests() if isinstance(each.message, FetchRequest)][-1]
    records = b"".join(records_at(end + at, epoch + later, 1)[:size] for at, size in enumerate(sizes))
    core.respond(sent.number, fetch_response(epoch, 2, records=records))
    assert core.log.end_offset.offset == end + taken
    if taken or not records:
        assert core.raft.status.log_refusal is None
        assert [type(each.message) for each in core.take_requests()] == [FetchRequest]
        return
    assert core.raft.status.log_refusal == "the leader has sent no whole batch of its epoch"
    core.sleep(core.config.retry_backoff_ms - 1)
    assert core.take_requests() == []
    core.sleep(1)
    again = core.take_requests()[-1]
    core.respond(again.number, fetch_response(epoch, 2, records=records_at(end, epoch, 1)))
    assert core.raft.status.log_refusal is None


@pytest.mark.parametrize("is_other", [False, True])
def test_records_that_the_log_takes_after_bad_ones_are_a_sign_of_their_leader(is_other: bool) -> None:
    """They are once the log has taken them, and only of the leader that has sent them, if it still leads then."""
    core = leader_of((1, 2, 3))
    end, epoch = core.log.end_offset.offset, core.raft.role.epoch + 1
    core.request("", begin_quorum_epoch_request(2, epoch), version=1)
    first = core.take_requests()[-1]
    core.respond(first.number, fetch_response(epoch, 2, records=records_at(end, epoch + 1, 1)))
    core.sleep(500)
    core.slow = AppendAsFollower
    again = core.take_requests()[-1]
    core.respond(again.number, fetch_response(epoch, 2, records=records_at(end, epoch, 1)))
    if is_other:
        core.request("", begin_quorum_epoch_request(3, epoch + 1), version=1)
    before = instance_of(core.raft.role, Follower).fetch_deadline_ms
    core.sleep(200)
    core.let_go()
    assert core.log.end_offset.offset == end + 1
    assert core.raft.status.log_refusal is None
    after = instance_of(core.raft.role, Follower).fetch_deadline_ms
    assert after == (before if is_other else core.now_ms + core.config.fetch_timeout_ms)
