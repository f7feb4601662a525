# SPDX-License-Identifier: Apache-2.0
"""Drivers over real logs and stores: nothing that was acknowledged is lost when replicas are killed."""

import concurrent.futures
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from raftlog.quorum.driving.ports import Executor
from raftlog.quorum.seam.effects import AppendOutcome, SendRequest, SendResponse
from raftlog.records.files.property_files import MetaProperties, write_meta_properties
from raftlog.records.messages.raft.election_messages import BeginQuorumEpochRequest, VoteRequest, VoteResponse
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.leading import open_quorum_state
from raftlog.testing.file_system.crash_states import CrashModel, picked_state
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.quorum.driving.driven_replicas import ByHand
from tests.quorum.driving.file_cluster import SMALL, FileCluster
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import replica_key
from tests.tools.console import run


@pytest.fixture(params=["blocking", "threads"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    """Disk work on the caller's thread, or on two others."""
    if request.param == "blocking":
        yield None
        return
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        yield threads


def test_nothing_acknowledged_is_lost_when_leaders_are_killed(tmp_path: Path, executor: Executor | None) -> None:
    """Each leader is killed in turn and started again from its files; every acknowledged record is in every log, once.

    The files that are left are those of a sound quorum, as ``raftlog verify`` and ``raftlog quorum`` see it.
    """
    cluster = FileCluster(str(tmp_path), LocalFileSystem(), (1, 2, 3), executor)
    acknowledged, killed = [], []
    for round_number in range(4):
        leader = cluster.elect()
        for count in range(5):
            value = f"{round_number}/{count}".encode()
            assert cluster.append(leader, value).outcome is AppendOutcome.COMMITTED
            acknowledged.append(value)
        leader.driver.raft.append([b"in doubt"], epoch=leader.driver.raft.role.epoch)
        leader.driver.settle()
        cluster.kill(leader.id)
        killed.append(leader.id)
        other = cluster.elect()
        assert other.id != leader.id
        cluster.start(leader.id)
    assert len(set(killed)) > 1
    cluster.equalize()
    for replica in cluster.running.values():
        values = replica.values()
        assert [each for each in values if each in acknowledged] == acknowledged
    assert len({bytes(repr(each.values()), "utf-8") for each in cluster.running.values()}) == 1
    cluster.close()
    for each in cluster.voter_ids:  # As a node has it: the directory of the log in a directory that names the node.
        node = tmp_path / "nodes" / f"{each}"
        shutil.copytree(cluster.directory(each), node / "__cluster_metadata-0")
        key = replica_key(each)
        meta = MetaProperties(1, cluster_id=CLUSTER, node_id=key.id, directory_id=key.directory_id)
        (node / "meta.properties").write_bytes(write_meta_properties(meta))
    for verb in ("verify", "quorum"):
        done = run(verb, tmp_path / "nodes")
        assert done.exit_code == 0, done.text


class PowerCuts:
    """Compares each message with what the sender's disk would have if all that is not synced were lost now.

    Attributes:
        seen: how many messages of each kind were compared.
    """

    def __init__(self, files: MemoryFileSystem) -> None:
        self._files, self.seen = files, Counter[str]()
        self._pre_votes: set[object] = set()

    def check(self, sender_id: int, effect: SendRequest | SendResponse) -> None:
        """Check a message."""
        after = MemoryFileSystem(picked_state(self._files.image(), lambda _: 0, CrashModel()))
        directory = FileCluster.directory_of("c", sender_id)
        log = FileLog.open(after, directory, SMALL)
        state = open_quorum_state(after, directory, log).state
        assert state is not None
        message = effect.message
        self.seen[type(message).__name__] += 1
        match message:
            case VoteRequest():
                asked = message.topics[0].partitions[0]
                assert state.leader_epoch >= asked.replica_epoch
                if asked.pre_vote:
                    self._pre_votes.add((sender_id, effect.number))
                else:
                    assert (state.leader_epoch, state.voted_id) == (asked.replica_epoch, sender_id)
            case VoteResponse() if isinstance(effect, SendResponse) and effect.token not in self._pre_votes:
                answer = message.topics[0].partitions[0]
                assert state.leader_epoch >= answer.leader_epoch
                if answer.vote_granted:
                    candidate_id, _ = cast("tuple[int, int]", effect.token)
                    assert (state.leader_epoch, state.voted_id) == (answer.leader_epoch, candidate_id)
                    self.seen["vote"] += 1
            case FetchRequest():
                fetched = message.topics[0].partitions[0]
                assert state.leader_epoch >= fetched.current_leader_epoch
                assert log.end_offset.offset >= fetched.fetch_offset
            case BeginQuorumEpochRequest():
                begun = message.topics[0].partitions[0]
                assert (state.leader_epoch, state.leader_id) == (begun.leader_epoch, sender_id)


def test_every_message_promises_what_survives_a_power_cut() -> None:
    """A vote, an epoch, a leadership, and the records that a Fetch says the sender has: all are synced before.

    The disk does nothing until all that may be sent meanwhile is sent.
    """
    made = MemoryFileSystem()
    for each in (1, 2, 3):
        made.make_directory(FileCluster.directory_of("c", each))
    files = made.settled()
    cuts = PowerCuts(files)
    cluster = FileCluster("c", files, (1, 2, 3), ByHand(), watch=cuts.check)
    for _ in range(3):
        leader = cluster.elect()
        for _ in range(3):
            assert cluster.append(leader, b"value").outcome is AppendOutcome.COMMITTED
        cluster.kill(leader.id)
        cluster.elect()
        cluster.start(leader.id)
    cluster.equalize()
    assert cuts.seen["vote"] >= 3
    assert min(cuts.seen[each] for each in ("VoteRequest", "FetchRequest", "BeginQuorumEpochRequest")) >= 3
