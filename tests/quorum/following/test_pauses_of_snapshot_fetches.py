# SPDX-License-Identifier: Apache-2.0
"""A leader that refuses to send a snapshot, or says nothing new, is asked again after a pause; no fetch begins anew."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchSnapshotRequest
from raftlog.voters.voter_set import HostPort
from tests.quorum.following.followers import DATA, SNAPSHOT, FollowerOfTwo

CONFIG = QuorumConfig()
LEADER = HostPort("localhost", 9992)


def refused(config: QuorumConfig = CONFIG, bootstrap_servers: tuple[HostPort, ...] = ()) -> FollowerOfTwo:
    """Return a follower that has 100 bytes of the snapshot, as the leader refuses the next ones."""
    core = FollowerOfTwo(config=config, bootstrap_servers=bootstrap_servers)
    core.name()
    core.send_chunk(0, DATA[:100])
    core.send_chunk(0, b"", error=ErrorCode.BROKER_NOT_AVAILABLE)
    return core


def test_errors_of_the_leader_keep_what_was_fetched() -> None:
    """An error that is not about the snapshot delays the fetch, and no more."""
    core = refused()
    core.sleep(CONFIG.retry_backoff_ms)
    assert core.asked_position == 100


@pytest.mark.parametrize("does_pause", [False, True])
def test_a_leader_that_has_resigned_is_asked_after_a_pause(*, does_pause: bool) -> None:
    """It names itself in the same epoch, so nothing changes; as in Kafka it could be asked as fast as it answers."""
    core = FollowerOfTwo(config=QuorumConfig(pause_after_refusal=does_pause))
    core.name()
    sent = len(core.requests)
    core.send_chunk(0, b"", error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert len(core.requests) == (sent if does_pause else sent + 1)
    core.sleep(CONFIG.retry_backoff_ms)
    assert len(core.requests) == sent + 1


@pytest.mark.parametrize("does_pause", [False, True])
def test_a_leader_that_is_a_bootstrap_server_names_the_snapshot_once_in_each_pause(*, does_pause: bool) -> None:
    """While it is not asked as a leader, and the fetch goes on after that where it was; in Kafka it begins anew."""
    config = QuorumConfig(pause_after_refusal=does_pause)
    core = refused(config, (LEADER,))
    assert (core.asked_offset, core.requests[-1].destination.id) == (3, -2)
    count = len(core.requests)
    core.name()
    assert len(core.requests) == (count if does_pause else count + 1)
    core.sleep(config.retry_backoff_ms)
    if not does_pause:
        core.name()
    assert (core.asked_position, core.requests[-1].destination.id) == (100 if does_pause else 0, 2)


def test_another_snapshot_takes_the_place_of_the_one_that_is_being_fetched() -> None:
    """A leader has written a later one meanwhile, and names it where it is asked as a bootstrap server."""
    core = refused(bootstrap_servers=(LEADER,))
    later = OffsetAndEpoch(SNAPSHOT.offset + 1, SNAPSHOT.epoch)
    core.name(later)
    core.name(later)
    core.sleep(CONFIG.retry_backoff_ms)
    message = core.last_request
    assert isinstance(message, FetchSnapshotRequest)
    assert message.topics[0].partitions[0].snapshot_id.end_offset == later.offset
    assert core.asked_position == 0
