# SPDX-License-Identifier: Apache-2.0
"""Judging log directories beside each other."""

import uuid
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters


def found(*evidence: PartitionEvidence) -> list[tuple[str, str]]:
    """Rules and paths of what is wrong."""
    return [(finding.rule, finding.path) for finding in judge_directories(evidence)]


def node(node_id: int, *, name: str = "", directory: int = 0, cluster_id: str = "A") -> list[PartitionEvidence]:
    """A log directory of a node with its metadata log, of voters 1, 2 and 3."""
    path = name or f"n{node_id}"
    key = voter(node_id, directory).voter_key
    log = MadeLog(node=path).bootstrap(voters(1, 2, 3))
    return [log_directory(path, node_id, key.directory_id, cluster_id), log.evidence()]


def test_a_sound_quorum_is_silent() -> None:
    """All voters, most of them, an observer, and one node alone: nothing is wrong."""
    assert found(*node(1), *node(2), *node(3), *node(9)) == []
    assert found(*node(1), *node(3)) == []
    assert found(*node(1)) == []


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2), st.booleans()), max_size=4))
def test_logs_without_a_log_directory(logs: list[tuple[int, int, bool]]) -> None:
    """Without log directories there are no findings, whatever logs contain, since their owners are not known.

    The audit relies on that, and does not run these rules then.
    """
    places = [
        MadeLog(node=f"n{name}").bootstrap(voters(*range(directory, 3 + directory))).evidence()
        if is_raft
        else PartitionEvidence(Place(f"n{name}", "t", directory), ())
        for name, directory, is_raft in logs
    ]

    assert found(*places) == []


def test_several_directories_of_a_broker() -> None:
    """Directories without a metadata log may share a node id."""
    disks = [log_directory(f"disk{number}", 1, uuid.UUID(int=number + 500)) for number in range(3)]

    assert found(*node(1), *disks) == []


def test_a_foreign_cluster() -> None:
    """The directory that is not of most others' cluster is named."""
    assert found(*node(1), *node(2), *node(3, cluster_id="B")) == [("cluster-foreign", "n3/meta.properties")]


def test_a_node_twice() -> None:
    """Two metadata logs of one node are too many."""
    assert found(*node(1), *node(2), *node(1, name="old", directory=5)) == [("node-twice", "old/meta.properties")]


def test_a_copied_disk() -> None:
    """A directory id in two places is one finding, although the node is there twice too."""
    assert found(*node(1), *node(2), *node(1, name="p1")) == [("directory-twice", "p1/meta.properties")]


def test_a_replaced_disk() -> None:
    """A voter whose directory is another one is named, and counts as present."""
    assert found(*node(1), *node(2, directory=5)) == [("directory-id", "n2/meta.properties")]


def test_no_majority() -> None:
    """Where several replicas are given, a majority of the voters should be among them."""
    assert found(*node(1), *node(9)) == [("majority-missing", "n1")]


def test_no_meta_properties() -> None:
    """A log directory that was listed, and holds partitions, says whose it is."""
    place = Place("n1")
    other = FileEvidence(SurveyTask(place, "n1/.lock", FileKind.LOCK))
    log = MadeLog().bootstrap(voters(1)).evidence()

    assert found(PartitionEvidence(place, (other,)), log) == [("meta-missing", "n1/meta.properties")]
    assert found(log) == []


def test_a_partition_in_two_directories_of_a_broker() -> None:
    """A partition may be in one directory of a broker; another broker's replica of it is none of that."""

    def partition(path: str) -> PartitionEvidence:
        place = Place(path, "orders", 0)
        name = f"{path}/orders-0/00000000000000000000.log"
        return PartitionEvidence(place, (FileEvidence(SurveyTask(place, name, FileKind.LOG, base_offset=0)),))

    disks = [
        log_directory(path, node, uuid.UUID(int=500 + index))
        for index, (path, node) in enumerate([("a1", 1), ("a2", 1), ("b1", 2)])
    ]
    assert found(*disks, partition("a1"), partition("b1")) == []
    assert found(*disks, partition("a1"), partition("a2"), partition("b1")) == [
        ("partition-twice", "a2/orders-0/00000000000000000000.log")
    ]


def test_an_empty_meta_properties() -> None:
    """A file of zeros, as a crash leaves it, reads as one without properties."""
    contents: dict[str, Any] = {"version": 0, "cluster_id": None, "node_id": None, "directory_id": None, "others": []}
    task = SurveyTask(Place("n1"), "n1/meta.properties", FileKind.META_PROPERTIES)
    directory = PartitionEvidence(Place("n1"), (FileEvidence(task, contents=contents),))

    (finding,) = judge_directories([directory, node(1)[1]])

    assert (finding.rule, finding.path) == ("meta-missing", "n1/meta.properties")
    assert finding.reason == "it has no cluster.id and no node.id: Kafka does not start on it"


def test_a_forgotten_vote() -> None:
    """A voter by whose vote another one leads was wiped, or restored from an old copy, if it knows nothing of that."""
    leader = MadeLog(node="n1").bootstrap(voters(1, 2, 3))
    leader.lead(1, (1, 2, 3), epoch=4)
    here = [log_directory("n1", 1, voter(1).voter_key.directory_id), leader.state(4, leader_id=1).evidence()]
    old = MadeLog(node="n2").bootstrap(voters(1, 2, 3)).state(1, leader_id=1)
    follower = [log_directory("n2", 2, voter(2).voter_key.directory_id), old.evidence()]
    wiped = [log_directory("n2", 2, voter(2).voter_key.directory_id), MadeLog(node="n2").evidence()]
    caught_up = [follower[0], MadeLog(node="n2").bootstrap(voters(1, 2, 3)).state(4, leader_id=1).evidence()]

    stale = "n2/__cluster_metadata-0/quorum-state"
    assert found(*here, *follower) == [("election-stale", stale)]
    assert found(*here, *wiped) == [("election-missing", stale)]
    assert found(*here, *caught_up) == []
    assert found(*here, *caught_up, *node(3, directory=5)) == [("directory-id", "n3/meta.properties")]


def test_a_voter_without_a_metadata_log() -> None:
    """A voter's directory without a metadata log was emptied, or is not what it was."""
    emptied = log_directory("n3", 3, voter(3).voter_key.directory_id)

    assert found(*node(1), *node(2), emptied) == [("election-missing", "n3/meta.properties")]


def test_a_voter_without_a_directory_id() -> None:
    """A voter that has a directory id in the voter set has it in meta.properties; an observer need not."""
    unnamed = log_directory("n2", 2, None)
    log = node(2)[1]
    assert found(*node(1), *node(3), unnamed, log) == [("directory-unnamed", "n2/meta.properties")]
    assert found(unnamed, log) == [("directory-unnamed", "n2/meta.properties")]
    observer = log_directory("n9", 9, None)
    assert found(*node(1), *node(3), observer, node(9)[1]) == []
    static = MadeLog(node="n2")
    static.lead(1, (1, 2, 3))
    assert found(unnamed, static.evidence()) == []


def test_a_node_id_that_is_not_that_of_the_directory_id() -> None:
    """A voter's directory id with another node id is one finding, also where that node is there twice."""
    directory_id = voter(2).voter_key.directory_id
    log = node(2)[1]
    assert found(*node(1), *node(3), log_directory("n2", 7, directory_id), log) == [("node-id", "n2/meta.properties")]
    assert found(log_directory("n2", 7, directory_id), log) == [("node-id", "n2/meta.properties")]
    assert found(*node(1), *node(3), log_directory("n2", 3, directory_id), log) == [
        ("node-twice", "n3/meta.properties")
    ]
    negative = log_directory("n2", -7, directory_id)
    reported = Finding("n2/meta.properties", "file-format", "")
    files = tuple(attrs.evolve(file, findings=(reported,)) for file in negative.files)
    assert found(*node(1), *node(3), PartitionEvidence(negative.place, files), log) == []


@pytest.mark.parametrize(
    ("cluster_id", "expected"),
    [("", []), ("A", []), ("B", [("election-cluster", "n2/__cluster_metadata-0/quorum-state")])],
)
def test_a_quorum_state_of_another_cluster(cluster_id: str, expected: list[tuple[str, str]]) -> None:
    """A quorum-state of version 0 may name a cluster, which is that of its directory; Kafka leaves it empty."""
    log = MadeLog(node="n2").bootstrap(voters(1, 2, 3)).state(1, data_version=0, cluster_id=cluster_id)
    directory = log_directory("n2", 2, voter(2).voter_key.directory_id)
    assert found(directory, log.evidence()) == expected
    assert found(log.evidence()) == []
