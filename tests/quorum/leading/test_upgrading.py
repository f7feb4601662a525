# SPDX-License-Identifier: Apache-2.0
"""Upgrading kraft.version: what is written, when it is refused, and what holds if it is committed or truncated."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import BufferExhaustedError, InvalidUpdateVersionError, NotLeaderError, UnknownEpochError
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.leadership import PendingAppend
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.seam.effects import AppendOutcome, FlushLog
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import KRaftVersionRecord, read_control_record
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.voters import voters_record
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.quorum.leading.leaders import SlowDisk
from tests.quorum.leading.static_leaders import (
    LOCAL_ENDPOINTS,
    fetch_all,
    leader_that_was_told,
    static_leader_of,
    static_voters,
    tell,
)
from tests.quorum.messages import LOCAL, begin_quorum_epoch_request, fetch_response
from tests.quorum.single_replica import replica_key, voter_node, voter_set_of

LEVEL_0, LEVEL_1 = KRaftVersion.KRAFT_VERSION_0, KRaftVersion.KRAFT_VERSION_1
BOTH = SupportedVersionRange(0, 1)


def upgrade(
    core: SlowDisk, level: KRaftVersion = LEVEL_1, epoch: int = 1, *, check: bool = False
) -> PendingAppend | None:
    """Ask the leader for an upgrade."""
    written = core.raft.upgrade_kraft_version(level, epoch=epoch, validate_only=check)
    core.settle()
    return written


def number_of(written: PendingAppend | None) -> int:
    """Return the number of an upgrade that was written."""
    assert written is not None
    return written.number


def last_batch(core: SlowDisk) -> RecordBatch:
    """Return the last batch of a log."""
    *_, batch = split(BufferSource(bytes(core.log.read(0, Isolation.UNCOMMITTED).records)))
    assert isinstance(batch, RecordBatch)
    return batch


def told_voters(*voter_ids: int) -> VoterSet:
    """Return the voters as they tell the leader of themselves; the leader, 1, with both of its addresses."""
    return VoterSet.of(
        (VoterNode(LOCAL, LOCAL_ENDPOINTS, BOTH), *(voter_node(replica_key(each)) for each in voter_ids))
    )


# What is written


@pytest.mark.parametrize("voter_ids", [(1,), (1, 2), (1, 2, 3)])
def test_an_upgrade_is_one_batch_with_the_version_and_the_voters(voter_ids: tuple[int, ...]) -> None:
    """It is in force at once, and the voters have the directory ids that they have told."""
    core = leader_that_was_told(voter_ids)
    start = core.log.end_offset.offset
    written = upgrade(core)
    assert written is not None
    assert written.last_offset == start + 1
    batch = last_batch(core)
    values = [read_control_record(each.key, each.value).value for each in batch.records()]
    voters = told_voters(*voter_ids[1:])
    assert (batch.is_control, batch.base_offset, batch.partition_leader_epoch) == (True, start, 1)
    assert values == [KRaftVersionRecord(1), voters_record(voters)]
    status = core.raft.status
    assert status.kraft_version is LEVEL_1
    in_force = status.uncommitted_voters or status.committed_voters
    assert (in_force.voters, in_force.offset) == (voters, start + 1)


def test_an_upgrade_is_committed_by_the_voters_that_it_names() -> None:
    """A voter with another directory id than it told is none of them."""
    core = leader_that_was_told((1, 2, 3))
    written = upgrade(core)
    fetch_all(core, replica_key(2, 9))
    assert core.ended == []
    fetch_all(core, replica_key(2))
    assert [(each.number, each.outcome) for each in core.ended] == [
        (written and written.number, AppendOutcome.COMMITTED)
    ]
    assert core.raft.status.committed_voters.voters == told_voters(2, 3)
    assert core.raft.status.uncommitted_voters is None


def test_the_level_is_told_before_it_is_in_the_log() -> None:
    """As Kafka's client tells it; the voters are those of the log."""
    core = leader_that_was_told((1, 2), slow=FlushLog)
    core.append(b"x")
    core.sleep(25)
    assert upgrade(core) is not None
    assert core.raft.status.kraft_version is LEVEL_1
    assert core.raft.status.committed_voters.voters == static_voters((1, 2))
    assert core.raft.status.uncommitted_voters is None
    core.let_go()
    core.let_go()
    uncommitted = core.raft.status.uncommitted_voters
    assert uncommitted is not None
    assert uncommitted.voters == told_voters(2)


def test_an_upgrade_that_is_there_is_not_written_again() -> None:
    """While it is being written, when it is in the log, and after it is committed."""
    core = leader_that_was_told((1, 2), slow=FlushLog)
    assert upgrade(core) is not None
    end = core.log.end_offset
    assert upgrade(core) is None
    core.let_go()
    assert upgrade(core) is None
    fetch_all(core, replica_key(2))
    assert upgrade(core) is None
    assert core.log.end_offset == end


@given(st.permutations((2, 3, 4)), st.integers(0, 3), st.booleans())
def test_a_check_writes_nothing_and_says_what_an_upgrade_would(order: list[int], count: int, again: bool) -> None:
    """Until all voters have told the leader of themselves, both are refused; a check leaves all as it was."""
    core = static_leader_of((1, 2, 3, 4))
    for each in order[:count]:
        tell(core, replica_key(each))
    before, end = core.raft.status, core.log.end_offset
    if count < 3:
        for check in (True, False):
            with pytest.raises(InvalidUpdateVersionError):
                upgrade(core, check=check)
    else:
        assert upgrade(core, check=True) is None
    assert (core.raft.status, core.log.end_offset) == (before, end)
    if count == 3 and not again:
        assert upgrade(core) is not None


# Refusals


def test_only_the_leader_of_the_epoch_can_upgrade() -> None:
    """Not a follower, nor the leader of another epoch, nor a leader that has stopped."""
    core = leader_that_was_told((1, 2))
    for epoch, error in ((0, NotLeaderError), (2, UnknownEpochError)):
        with pytest.raises(error):
            upgrade(core, epoch=epoch)
    core.request("", begin_quorum_epoch_request(2, 5), version=1)
    for epoch in (1, 5):
        with pytest.raises(NotLeaderError):
            upgrade(core, epoch=epoch)
    stopped = leader_that_was_told((1,))
    stopped.raft.effect_failed(1, "no disk")
    with pytest.raises(NotLeaderError):
        upgrade(stopped)


def test_the_level_is_not_lowered() -> None:
    """Neither after an upgrade, nor while it is being written."""
    core = leader_that_was_told((1, 2), slow=FlushLog)
    upgrade(core)
    with pytest.raises(InvalidUpdateVersionError, match="cannot be downgraded to 0"):
        upgrade(core, LEVEL_0)
    core.let_go()
    with pytest.raises(InvalidUpdateVersionError, match="cannot be downgraded to 0"):
        upgrade(core, LEVEL_0)


def test_the_level_in_force_needs_no_upgrade() -> None:
    """Level 0 of a static quorum: there is nothing to do."""
    assert upgrade(static_leader_of((1, 2)), LEVEL_0) is None


@pytest.mark.parametrize(
    ("levels", "answer", "is_refused"),
    [
        ((0, 0), ErrorCode.NONE, True),
        ((0, 1), ErrorCode.NONE, False),
        ((1, 1), ErrorCode.INVALID_REQUEST, True),
        ((0, 2), ErrorCode.NONE, False),
    ],
    ids=str,
)
def test_each_voter_must_support_the_level(levels: tuple[int, int], answer: ErrorCode, is_refused: bool) -> None:
    """The one that does not is named; so is one that does not support the level that is to be upgraded from."""
    core = static_leader_of((1, 2, 3))
    tell(core, replica_key(2))
    assert tell(core, replica_key(3), SupportedVersionRange(*levels)) is answer
    if is_refused:
        with pytest.raises(InvalidUpdateVersionError, match=r"supported by voters \[3\]"):
            upgrade(core)
    else:
        assert upgrade(core) is not None


def test_the_leader_must_support_the_level_itself() -> None:
    """It may run with fewer levels than this version of raftlog has."""
    core = static_leader_of((1,), levels=SupportedVersionRange(0, 0))
    with pytest.raises(InvalidUpdateVersionError, match=r"supported by voters \[1\]"):
        upgrade(core)


def test_each_directory_id_must_be_known() -> None:
    """A voter without one would be any replica of its id, once the log names it."""
    core = static_leader_of((1, 2, 3))
    tell(core, replica_key(2))
    leadership = core.raft._replica.leadership
    assert leadership is not None
    voters = leadership.upgrade.voters
    assert voters is not None
    nameless = VoterNode(type(LOCAL)(3), voters.listeners(3), BOTH)
    leadership.upgrade = leadership.upgrade._replace(voters=voters.update_voter_ignoring_directory_id(nameless))
    with pytest.raises(InvalidUpdateVersionError, match=r"no directory id is known of voters \[3\]"):
        upgrade(core)


# What voters tell the leader


def test_what_a_voter_tells_last_is_kept() -> None:
    """Its directory id, addresses and levels; a replica that is no voter is refused."""
    core = static_leader_of((1, 2))
    assert tell(core, replica_key(2, 9), SupportedVersionRange(0, 0)) is ErrorCode.NONE
    assert tell(core, replica_key(2, 8)) is ErrorCode.NONE
    assert tell(core, replica_key(3)) is ErrorCode.VOTER_NOT_FOUND
    upgrade(core)
    in_force = core.raft.status.uncommitted_voters
    assert in_force is not None
    assert in_force.voters.voter_keys == {LOCAL, replica_key(2, 8)}


def test_a_voter_that_comes_while_an_upgrade_is_written_may_come_again() -> None:
    """What it tells can no longer be part of the upgrade: neither while that waits for the disk, nor in the log."""
    core = leader_that_was_told((1, 2), slow=FlushLog)
    core.append(b"x")
    core.sleep(25)
    upgrade(core)
    assert core.raft.status.uncommitted_voters is None
    assert tell(core, replica_key(2, 9)) is ErrorCode.REQUEST_TIMED_OUT
    core.let_go()
    core.let_go()
    assert core.raft.status.uncommitted_voters is not None
    assert tell(core, replica_key(2, 9)) is ErrorCode.REQUEST_TIMED_OUT
    assert core.machine.last_voter_set.voter_keys == {LOCAL, replica_key(2)}


def test_a_new_leader_has_been_told_nothing() -> None:
    """What voters told the one before, it kept in memory."""
    core = leader_that_was_told((1, 2))
    core.request("", begin_quorum_epoch_request(2, 5), version=1)
    assert core.raft.status.kraft_version is LEVEL_0
    leadership = static_leader_of((1, 2)).raft._replica.leadership
    assert leadership is not None
    assert leadership.upgrade.voters == VoterSet.of(
        (VoterNode(LOCAL, LOCAL_ENDPOINTS, BOTH), static_voters((1, 2)).voters[2])
    )


# Commit and truncation


@pytest.mark.parametrize(("is_handed", "is_kept"), list(itertools.product((False, True), (False, True))))
def test_an_upgrade_of_a_leader_that_loses_its_epoch(is_handed: bool, is_kept: bool) -> None:
    """Its end is told. Without it in the log, kraft.version is 0 again, and so is the version of the stored state."""
    core = leader_that_was_told((1, 2, 3), slow=FlushLog)
    committed = core.log.end_offset.offset
    if not is_handed:
        core.append(b"x")
        core.sleep(25)
    written = upgrade(core)
    core.take_requests()
    core.request("", begin_quorum_epoch_request(2, 5), version=1)
    outcome = AppendOutcome.UNKNOWN if is_handed else AppendOutcome.FAILED
    assert (number_of(written), outcome) in [(each.number, each.outcome) for each in core.ended]
    core.slow = None
    core.let_go()
    sent = core.take_requests()[-1]
    diverging = None if is_kept else OffsetAndEpoch(committed, 1)
    core.respond(sent.number, fetch_response(5, 2, diverging=diverging))
    is_upgraded = is_handed and is_kept
    status = core.raft.status
    assert status.kraft_version is (LEVEL_1 if is_upgraded else LEVEL_0)
    voters = (status.uncommitted_voters or status.committed_voters).voters
    assert voters == (told_voters(2, 3) if is_upgraded else static_voters((1, 2, 3)))
    core.request("", begin_quorum_epoch_request(3, 6), version=1)
    assert core.stored is not None
    assert (core.stored.leader_epoch, core.stored.data_version) == (6, int(is_upgraded))


def test_an_upgraded_leader_starts_its_next_epoch_with_kraft_version_1() -> None:
    """Its log says so: it needs to be told nothing, and cannot upgrade again."""
    core = leader_that_was_told((1,))
    upgrade(core)
    again = SlowDisk(core.identity, QuorumConfig(), static_voters=static_voters((1,)), log=core.log, stored=core.stored)
    assert again.raft.status.role.epoch == 2
    assert again.raft.status.kraft_version is LEVEL_1
    assert again.raft.status.committed_voters.voters == told_voters()
    assert upgrade(again, epoch=2) is None


def test_two_static_voters_cannot_tell_the_same_directory() -> None:
    """Their set could not be written: the second one is refused, and the upgrade waits for another directory."""
    core = static_leader_of((1, 2, 3))
    assert tell(core, replica_key(2)) is ErrorCode.NONE
    assert tell(core, ReplicaKey(3, replica_key(2).directory_id)) is ErrorCode.INVALID_REQUEST
    with pytest.raises(InvalidUpdateVersionError, match=r"\[3\]"):
        core.raft.upgrade_kraft_version(KRaftVersion.KRAFT_VERSION_1, epoch=core.raft.role.epoch)
    assert tell(core, replica_key(3)) is ErrorCode.NONE
    assert core.raft.upgrade_kraft_version(KRaftVersion.KRAFT_VERSION_1, epoch=core.raft.role.epoch) is not None


def test_voters_that_cannot_be_written_are_not_upgraded() -> None:
    """The configuration may name directories: if two are the same, the leader's log would refuse the set."""
    core = static_leader_of((1, 2, 3), voters=voter_set_of([LOCAL, replica_key(2, 7), replica_key(3, 7)]))
    before = core.raft.status
    with pytest.raises(InvalidUpdateVersionError, match="two voters have directory"):
        upgrade(core, check=True)
    with pytest.raises(InvalidUpdateVersionError, match="two voters have directory"):
        upgrade(core)
    assert core.raft.status == before


@pytest.mark.parametrize("waiting", [0, 1, 2])
def test_an_upgrade_waits_to_be_committed_as_an_append_does(waiting: int) -> None:
    """Below the limit it is written; at the limit it is refused, and nothing has changed. A check needs no room."""
    core = leader_that_was_told((1, 2), config=QuorumConfig(max_uncommitted_appends=2))
    for _ in range(waiting):
        core.append(b"a")
    before = core.raft.status
    assert upgrade(core, check=True) is None
    if waiting < 2:
        assert upgrade(core) is not None
        return
    with pytest.raises(BufferExhaustedError, match="2 appends"):
        upgrade(core)
    assert core.raft.status == before
