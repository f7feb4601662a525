# SPDX-License-Identifier: Apache-2.0
"""A core that starts on Kafka's own files knows what Kafka's tools have said; as leader, it describes the same."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.epochs import LeaderEpochs
from raftlog.log.replicated_log import Isolation
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.roles.roles import Unattached
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.quorum.seam.log_view import control_record_view, log_view
from raftlog.records.files.quorum_state import read_quorum_state
from raftlog.records.messages.raft.endpoints import Listener
from raftlog.records.messages.raft.voter_messages import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterRequestKRaftVersionFeature,
)
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.uuid_text import ZERO_UUID, uuid_from_text
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterSet
from tests.quorum.messages import describe_quorum_request
from tests.quorum.recorded.leader_replay import CONFIG, LeaderReplay, comparable_batch
from tests.quorum.recorded.recording import DYNAMIC, LISTENER, STATIC, WIRE, RecordedQuorum, batches, batches_of
from tests.quorum.single_replica import DictatedDraws

LAST_OUTPUTS: Final = (
    (DYNAMIC, "quorum-3-removed"),
    (STATIC, "quorum-2-upgraded"),
    (WIRE, "quorum-removed"),
)
REPLICAS: Final = [
    pytest.param(quorum, output, path.name, id=f"{quorum.folder.name}-{path.name}")
    for quorum, output in LAST_OUTPUTS
    for path in sorted((quorum.folder / "data").iterdir())
]


def status_output(quorum: RecordedQuorum, name: str) -> dict[str, str]:
    """Return what ``kafka-metadata-quorum describe --status`` has printed."""
    lines = (quorum.folder / "expected" / f"{name}.txt").read_text("utf-8").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def printed_voters(voters: VoterSet) -> list[Any]:
    """Return voters as that command prints them, sorted by id."""
    return [
        (
            node.voter_key.id,
            node.voter_key.directory_id,
            [f"{name}://{address}" for name, address in node.listeners.listeners.items()],
        )
        for node in voters.voters.values()
    ]


def voters_of(output: dict[str, str]) -> list[Any]:
    """Return the voters of an output, sorted by id."""
    found = [(each["id"], _directory(each), each["endpoints"]) for each in json.loads(output["CurrentVoters"])]
    return sorted(found)


def _directory(entry: dict[str, str]) -> uuid.UUID | None:
    return uuid_from_text(entry["directoryId"]) if "directoryId" in entry else None


def recorded_epochs(directory: Path) -> list[tuple[int, int]]:
    """Return the epochs of a log, as Kafka has stored them, without the start of the first.

    Kafka moves that up if the log is cut below it, in the middle of a segment; raftlog reads the segment again.
    """
    lines = (directory / "leader-epoch-checkpoint").read_text("utf-8").splitlines()[2:]
    (first, _), *others = [tuple(map(int, line.split())) for line in lines]
    return [(first, -1), *((epoch, offset) for epoch, offset in others)]


def last_epochs(epochs: LeaderEpochs, directory: Path) -> list[tuple[int, int]]:
    """Return as many of a log's epochs, the last ones, in the same form."""
    (first, *others) = epochs.entries[-len(recorded_epochs(directory)) :]
    return [(first.epoch, -1), *((each.epoch, each.start_offset) for each in others)]


@pytest.mark.parametrize(("quorum", "output", "node"), REPLICAS)
def test_a_replica_knows_what_the_last_output_says(
    quorum: RecordedQuorum, output: str, node: str, tmp_path: Path
) -> None:
    """Its voters, the leader epochs of its log, and the epoch and leader of its quorum-state."""
    source = quorum.log_of(int(node[1:]))
    shutil.copytree(source, tmp_path / node)
    log = FileLog.open(LocalFileSystem(), str(tmp_path / node))
    machine = KRaftControlRecordStateMachine(quorum.static_voters)
    update_state(machine, log)
    stored = read_quorum_state((source / "quorum-state").read_bytes())
    found = StartingPoint(log=log_view(log, control_record_view(machine)), stored=stored)
    raft = Raft(quorum.identity(int(node[1:])), CONFIG, DictatedDraws(), found, monotonic_ms=0, wall_ms=0)

    status, said = raft.status, status_output(quorum, output)

    assert status.epoch == int(said["LeaderEpoch"]) == log.last_fetched_epoch
    assert isinstance(status.role, Unattached) or status.leader_id == int(said["LeaderId"])
    voters = (status.uncommitted_voters or status.committed_voters).voters
    assert printed_voters(voters) == voters_of(said)
    assert status.kraft_version is KRaftVersion.KRAFT_VERSION_1
    assert last_epochs(log.state.epochs, source) == recorded_epochs(source)
    log.close()


# DescribeQuorum


def described_by(replayed: LeaderReplay) -> Any:
    """Return what the leader describes."""
    core = replayed.core
    core.take_responses()
    core.request("", describe_quorum_request(), 2, LISTENER)
    (answer,) = core.take_responses()
    return answer.message


def told_by(identity: ReplicaIdentity, epoch: int) -> UpdateRaftVoterRequest:
    """Return what a voter tells its leader of itself."""
    return UpdateRaftVoterRequest(
        cluster_id=identity.cluster_id,
        current_leader_epoch=epoch,
        voter_id=identity.key.id,
        voter_directory_id=identity.key.directory_id or ZERO_UUID,
        listeners=tuple(
            Listener(name=name, host=at.host, port=at.port) for name, at in identity.endpoints.listeners.items()
        ),
        kraft_version_feature=UpdateRaftVoterRequestKRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )


@pytest.mark.parametrize(
    ("quorum", "output"),
    [
        (DYNAMIC, "quorum-1-start"),
        (DYNAMIC, "quorum-3-removed"),
        (STATIC, "quorum-1-static"),
        (STATIC, "quorum-2-upgraded"),
    ],
)
def test_a_leader_describes_what_kafkas_tool_has_printed(quorum: RecordedQuorum, output: str) -> None:
    """Our leader has written the bytes of Kafka's, and its replicas have fetched them: it describes the same quorum."""
    said = status_output(quorum, output)
    leader, epoch, mark = (int(said[name]) for name in ("LeaderId", "LeaderEpoch", "HighWatermark"))
    observers = [ReplicaKey(each["id"], _directory(each)) for each in json.loads(said["CurrentObservers"])]
    replayed = LeaderReplay(quorum, leader, epoch)
    others = [quorum.identity(each) for each in replayed.voter_ids if each != leader]
    for other in others:
        replayed.fetch_end(other.key)
        if replayed.core.raft.status.kraft_version is KRaftVersion.KRAFT_VERSION_0:
            replayed.core.request("", told_by(other, epoch), 0, LISTENER)
    replayed.write_up_to(mark)
    for key in {*(each.key for each in others), *observers}:
        replayed.fetch_end(key)

    answer = described_by(replayed)

    found = answer.topics[0].partitions[0]
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (leader, epoch, mark)
    nodes = {each.node_id: [f"{at.name}://{at.host}:{at.port}" for at in each.listeners] for each in answer.nodes}
    voters = [
        (each.replica_id, each.replica_directory_id if each.replica_directory_id.int else None, nodes[each.replica_id])
        for each in found.current_voters
    ]
    assert voters == voters_of(said)
    assert {ReplicaKey(each.replica_id, each.replica_directory_id) for each in found.observers} == set(observers)
    assert {each.log_end_offset for each in (*found.current_voters, *found.observers)} == {mark}
    written = batches_of(replayed.core.log.read(0, Isolation.UNCOMMITTED).records)
    recorded = [each for each in batches(quorum.whole_log) if each.base_offset < mark]
    assert list(map(comparable_batch, written)) == list(map(comparable_batch, recorded))


def test_a_leader_describes_what_kafkas_table_has_printed() -> None:
    """After a voter was added: the voters, the observers, and how far each of them is."""
    lines = (DYNAMIC.folder / "expected" / "quorum-2-added.txt").read_text("utf-8").splitlines()[1:]
    rows = [line.split() for line in lines]
    said = {(int(row[0]), uuid_from_text(row[1]), int(row[2]), row[-1] == "Observer") for row in rows}
    (leader,) = [int(row[0]) for row in rows if row[-1] == "Leader"]
    replayed = LeaderReplay(DYNAMIC, leader, 3)

    replayed.write_up_to(117)
    for replica_id, directory_id, _, _ in said:
        if replica_id != leader:
            replayed.fetch_end(ReplicaKey(replica_id, directory_id))
    found = described_by(replayed).topics[0].partitions[0]

    assert found.high_watermark == 117
    assert said == {
        (each.replica_id, each.replica_directory_id, each.log_end_offset, is_observer)
        for is_observer, side in ((False, found.current_voters), (True, found.observers))
        for each in side
    }
