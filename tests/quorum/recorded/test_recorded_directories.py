# SPDX-License-Identifier: Apache-2.0
"""A core opens every directory of a raft log that Kafka has left, killed or stopped, before and after an upgrade.

What it must know is in Kafka's own files beside the log, and in what Kafka's dump tool has printed of its records.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.quorum.raft import Raft, StartingPoint
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Resigned, Role, Unattached
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.quorum.seam.log_view import control_record_view, log_view
from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import Endpoints, ReplicaKey, VoterSet
from tests.golden_files import GOLDEN
from tests.quorum.messages import describe_quorum_request
from tests.quorum.recorded.leader_replay import CONFIG
from tests.quorum.recorded.recording import LISTENER, STATIC
from tests.quorum.recorded.test_recorded_logs import last_epochs, printed_voters, recorded_epochs
from tests.quorum.single_replica import DictatedDraws, SingleReplica

DIRECTORIES: Final = sorted(GOLDEN.glob("*/*/*/__cluster_metadata-0"))
BEFORE_UPGRADE: Final = GOLDEN / "static-upgrade" / "before-upgrade"
ALONE: Final = [each for each in DIRECTORIES if each.parts[-4] in ("killed", "data-topics", "groups", "mirror")]
"""The logs of quorums of one replica."""


def name_of(directory: Path) -> str:
    """Return where a directory is, in a few words."""
    return "-".join(directory.parts[-4:-1])


def last_printed(directory: Path, kind: str) -> Any:
    """Return the last record of a kind that Kafka's dump tool has printed of a quorum's logs, or else of its snapshots.

    A log's records are compared by their offsets, as replicas have deleted different parts.
    """
    texts = (directory.parents[2] / "expected").glob(f"*.{directory.name}.*.deep.txt")
    found: list[tuple[bool, int, str]] = []
    for path in texts:
        is_log = path.name.endswith(".log.deep.txt")
        text = path.read_bytes().decode("utf-8", "replace")
        for offset, record in re.findall(rf"\| offset: (\d+) .* {kind} (\{{.*\}})$", text, re.MULTILINE):
            found.append((is_log, int(offset) if is_log else int(path.name.split(".")[2].split("-")[0]), record))
    return json.loads(max(found)[2])


def meta_properties(directory: Path) -> dict[str, str]:
    """Return what is in the meta.properties beside a log."""
    lines = (directory.parent / "meta.properties").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def identity_of(directory: Path, endpoints: Endpoints) -> ReplicaIdentity:
    """Return who a replica is, according to its meta.properties."""
    meta = meta_properties(directory)
    key = ReplicaKey(int(meta["node.id"]), uuid_from_text(meta["directory.id"]))
    return ReplicaIdentity(key=key, cluster_id=meta["cluster.id"], endpoints=endpoints, listener=LISTENER)


def expected_role(stored: QuorumStateData, own_id: int) -> type[Role]:
    """Return the role to start in."""
    if stored.leader_id >= 0:
        return Resigned if stored.leader_id == own_id else Follower
    return Candidate if stored.voted_id == own_id else Unattached


def opened(directory: Path, scratch: Path) -> tuple[FileLog, QuorumStateData]:
    """Return a copy of a log, and the election state beside it."""
    shutil.copytree(directory, scratch / directory.name)
    stored = read_quorum_state((directory / "quorum-state").read_bytes())
    return FileLog.open(LocalFileSystem(), str(scratch / directory.name)), stored


def test_every_directory_is_there() -> None:
    """26 logs, of which 4 were copied before an upgrade, and 3 after a kill."""
    assert len(DIRECTORIES) == 26
    assert len(list(BEFORE_UPGRADE.glob("*/__cluster_metadata-0"))) == 4
    assert len(ALONE) == 8


@pytest.mark.parametrize("directory", DIRECTORIES, ids=name_of)
def test_a_core_knows_what_is_in_the_directory(directory: Path, tmp_path: Path) -> None:
    """Its epoch, leader and role; the epochs of the log; kraft.version and voters, as the dump tool has printed them.

    Of the mirrored clusters it has printed nothing: each has one voter, whose ids are in its meta.properties.
    """
    log, stored = opened(directory, tmp_path)
    is_static = directory.is_relative_to(STATIC.folder)
    machine = KRaftControlRecordStateMachine(STATIC.static_voters if is_static else VoterSet())
    update_state(machine, log)
    found = StartingPoint(log=log_view(log, control_record_view(machine)), stored=stored)
    own_id = int(meta_properties(directory)["node.id"])
    known = machine.last_voter_set.listeners(own_id) or Endpoints.of({LISTENER: ("localhost", 1)})
    identity = identity_of(directory, known)
    is_alone = directory in ALONE

    raft = Raft(identity, CONFIG, DictatedDraws(), found, monotonic_ms=0, wall_ms=0)

    status = raft.status
    assert last_epochs(log.state.epochs, directory) == recorded_epochs(directory)
    voters = printed_voters((status.uncommitted_voters or status.committed_voters).voters)
    if directory.is_relative_to(BEFORE_UPGRADE):
        assert status.kraft_version == 0
        assert voters == [(each, None, [f"{LISTENER}://127.0.0.1:{STATIC.port(each)}"]) for each in (1, 2, 3)]
    elif directory.is_relative_to(GOLDEN / "mirror"):
        assert status.kraft_version == 1
        assert [each[:2] for each in voters] == [(own_id, identity.key.directory_id)]
    else:
        assert status.kraft_version == last_printed(directory, "KRaftVersion")["kRaftVersion"] == 1
        assert voters == _voters_of(last_printed(directory, "KRaftVoters"))
    # The only voter of a quorum begins an election at once, and wins it.
    assert (status.epoch, type(status.role)) == (
        (stored.leader_epoch + 1, Leader) if is_alone else (stored.leader_epoch, expected_role(stored, own_id))
    )
    log.close()


def _voters_of(record: Any) -> list[Any]:
    found = []
    for each in record["voters"]:
        where = [f"{at['name']}://{at['host']}:{at['port']}" for at in each["endpoints"]]
        found.append((each["voterId"], uuid_from_text(each["voterDirectoryId"]), where))
    return sorted(found)


@pytest.mark.parametrize("directory", ALONE, ids=name_of)
def test_the_only_voter_leads_on(directory: Path, tmp_path: Path) -> None:
    """It describes the quorum that was recorded, in the next epoch; all of its log is committed."""
    log, stored = opened(directory, tmp_path)
    machine = KRaftControlRecordStateMachine(VoterSet())
    update_state(machine, log)
    ((own_id, node),) = machine.last_voter_set.voters.items()
    end = log.end_offset.offset
    core = SingleReplica(identity_of(directory, node.listeners), CONFIG, log=log, stored=stored)

    core.request("", describe_quorum_request(), 2, LISTENER)

    (answer,) = core.take_responses()
    message: Any = answer.message
    described = message.topics[0].partitions[0]
    (voter,) = described.current_voters
    assert (described.leader_id, described.leader_epoch) == (own_id, stored.leader_epoch + 1)
    assert (voter.replica_id, voter.replica_directory_id) == (own_id, node.voter_key.directory_id)
    assert described.high_watermark == voter.log_end_offset == log.end_offset.offset == end + 1
    where = {(at.name, at.host, at.port) for each in message.nodes for at in each.listeners}
    assert where == {(name, *address) for name, address in node.listeners.listeners.items()}
    log.close()
