# SPDX-License-Identifier: Apache-2.0
"""A log directory is made once, for one node, and held by one owner."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.errors import (
    AlreadyFormattedError,
    BatchTooLargeError,
    DecodeError,
    DirectoryLockedError,
    ForeignDirectoryError,
    NotFormattedError,
    StorageError,
    UnsupportedVersionError,
)
from raftlog.file_system import replace_file
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.property_files import (
    MetaProperties,
    PartitionMetadata,
    write_meta_properties,
    write_partition_metadata,
)
from raftlog.snapshot.directory import SnapshotDirectory
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.reader import RecordsSnapshotReader, SnapshotHeader
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.log_directory import (
    METADATA_DIRECTORY_NAME,
    METADATA_TOPIC_ID,
    DirectoryFormat,
    LogDirectory,
    format_log_directory,
)
from raftlog.testing.crash_points import Promise, enumerate_crashes
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import DynamicVoter, VoterSet
from tests.golden_files import GOLDEN
from tests.strategies import TIMESTAMP

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
KAFKAS = GOLDEN / "dynamic-quorum/data/n1"
NODES = [
    DynamicVoter.parse(text).to_voter_node("CONTROLLER")
    for text in (
        "1@127.0.0.1:19091:3PbC-lOLRFo6CVJVw2Qd_A",
        "2@127.0.0.1:19092:tDM8jPouu6fvIOxsMmWQKw",
        "3@127.0.0.1:19093:5_Wp38SKlmI15kjtncBbcA",
    )
]
DIRECTORY_ID = NODES[0].voter_key.directory_id or uuid.UUID(int=0)
STANDALONE = DirectoryFormat.standalone(CLUSTER, NODES[0], [b"one", b"two"])
CHECKPOINT = f"node/{METADATA_DIRECTORY_NAME}/00000000000000000000-0000000000.checkpoint"


def formatted(directory_format: DirectoryFormat = STANDALONE) -> MemoryFileSystem:
    """Return a disk with a formatted directory, ``node``."""
    file_system = MemoryFileSystem()
    format_log_directory(file_system, "node", directory_format, TIMESTAMP)
    return file_system


def bootstrap(file_system: MemoryFileSystem) -> tuple[SnapshotHeader, list[bytes | None]]:
    """Return what the bootstrap snapshot says, and the values of the records that ``bootstrap.checkpoint`` has."""
    snapshots = SnapshotDirectory(file_system, f"node/{METADATA_DIRECTORY_NAME}")
    assert snapshots.snapshot_ids() == (BOOTSTRAP_SNAPSHOT_ID,)
    snapshots.verify(BOOTSTRAP_SNAPSHOT_ID)
    raw = snapshots.open(BOOTSTRAP_SNAPSHOT_ID)
    assert raw is not None
    with raw:
        reader = RecordsSnapshotReader.of(raw)
        assert not [batch for batch in reader if isinstance(batch, RecordBatch)]
        return reader.header, bootstrap_records(file_system)


def bootstrap_records(file_system: MemoryFileSystem) -> list[bytes | None]:
    """Return the values of the records that ``bootstrap.checkpoint`` has."""
    data = file_system.contents().get("node/bootstrap.checkpoint")
    if data is None:
        return []
    snapshot = RecordsSnapshotReader(BufferSource(data), BOOTSTRAP_SNAPSHOT_ID)
    return [record.value for batch in snapshot if isinstance(batch, RecordBatch) for record in batch.records()]


def test_a_standalone_node() -> None:
    """It gets its properties, a bootstrap snapshot of kraft.version 1 and itself as the voter, and its records."""
    file_system = formatted()
    header, values = bootstrap(file_system)
    assert header == SnapshotHeader(TIMESTAMP, KRaftVersion.KRAFT_VERSION_1, VoterSet.of(NODES[:1]))
    assert values == [b"one", b"two"]
    assert file_system.contents()["node/meta.properties"] == (
        b"#\nnode.id=1\ndirectory.id=3PbC-lOLRFo6CVJVw2Qd_A\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
    )


@pytest.mark.parametrize(
    ("kraft_version", "voters"),
    [(KRaftVersion.KRAFT_VERSION_1, VoterSet.of(NODES)), (KRaftVersion.KRAFT_VERSION_1, None), (KRaftVersion(0), None)],
    ids=["initial-controllers", "no-initial-controllers", "static"],
)
def test_other_beginnings(kraft_version: KRaftVersion, voters: VoterSet | None) -> None:
    """Several voters, a node that joins later, or static voters: the snapshot says just that."""
    header, values = bootstrap(formatted(DirectoryFormat(CLUSTER, 1, DIRECTORY_ID, kraft_version, voters)))
    assert (header.kraft_version, header.voter_set, values) == (kraft_version, voters, [])


def test_without_records_there_is_no_file_of_them() -> None:
    """Kafka takes its newest levels where ``bootstrap.checkpoint`` is missing, and would find none in an empty one."""
    file_system = formatted(DirectoryFormat.standalone(CLUSTER, NODES[0]))
    assert "node/bootstrap.checkpoint" not in file_system.contents()


def test_bootstrap_records_are_as_kafkas() -> None:
    """``bootstrap.checkpoint`` has the bytes of Kafka's for the same records, except the times and thus the CRCs."""
    theirs = (KAFKAS / "bootstrap.checkpoint").read_bytes()
    snapshot = RecordsSnapshotReader(BufferSource(theirs), BOOTSTRAP_SNAPSHOT_ID)
    values = [r.value or b"" for each in snapshot if isinstance(each, RecordBatch) for r in each.records()]
    file_system = formatted(DirectoryFormat.standalone(CLUSTER, NODES[0], values))
    ours = file_system.contents()["node/bootstrap.checkpoint"]
    assert _without_times(ours) == _without_times(theirs)


def _without_times(data: bytes) -> list[object]:
    batches = [each for each in split(BufferSource(data)) if isinstance(each, RecordBatch)]
    return [
        (each.position, each.base_offset, each.partition_leader_epoch, each.attributes, list(_pairs(each)))
        for each in batches
    ]


def _pairs(batch: RecordBatch) -> Iterator[tuple[bytes | None, bytes | None]]:
    return ((record.key, record.value) for record in batch.records())


def test_it_is_as_kafkas() -> None:
    """The bootstrap snapshot says what that of a real Kafka says for the same controllers, in as many bytes."""
    file_system = formatted(DirectoryFormat(CLUSTER, 1, DIRECTORY_ID, voters=VoterSet.of(NODES)))
    kafkas = SnapshotDirectory(LocalFileSystem(), str(KAFKAS / METADATA_DIRECTORY_NAME))
    summary = kafkas.verify(BOOTSTRAP_SNAPSHOT_ID)
    header, _ = bootstrap(file_system)
    assert (header.kraft_version, header.voter_set) == (summary.header.kraft_version, summary.header.voter_set)
    assert len(file_system.contents()[CHECKPOINT]) == summary.size_bytes


@pytest.mark.parametrize(
    "arguments",
    [
        ("", 1, DIRECTORY_ID),
        (CLUSTER, -1, DIRECTORY_ID),
        (CLUSTER, 2**31, DIRECTORY_ID),
        (CLUSTER, 1, uuid.UUID(int=0)),
        (CLUSTER, 1, uuid.UUID(int=99)),
        (CLUSTER, 4, DIRECTORY_ID, KRaftVersion.KRAFT_VERSION_1, VoterSet.of(NODES)),
        (CLUSTER, 2, DIRECTORY_ID, KRaftVersion.KRAFT_VERSION_1, VoterSet.of(NODES)),
        (CLUSTER, 1, DIRECTORY_ID, KRaftVersion.KRAFT_VERSION_0, VoterSet.of(NODES)),
    ],
)
def test_a_format_that_makes_no_sense(arguments: tuple[object, ...]) -> None:
    """Ids that mean something else, and voters that do not go with node or version, are refused."""
    with pytest.raises(ValueError):
        DirectoryFormat(*arguments)  # type: ignore[arg-type]


def test_a_formatted_directory_is_not_formatted_again() -> None:
    """A directory with a ``meta.properties``, or with a log but without one, is in use."""
    file_system = formatted()
    before = file_system.contents()
    with pytest.raises(AlreadyFormattedError):
        format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
    assert file_system.contents() == before
    file_system.remove("node/meta.properties")
    format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
    assert file_system.contents() == before
    for name in ("00000000000000000000.log", "quorum-state", "00000000000000000007-0000000001.checkpoint"):
        other = formatted()
        other.remove("node/meta.properties")
        other.open(f"node/{METADATA_DIRECTORY_NAME}/{name}", create=True).close()
        with pytest.raises(AlreadyFormattedError):
            format_log_directory(other, "node", STANDALONE, TIMESTAMP)


def test_a_format_that_fails_can_be_done_again() -> None:
    """Whatever step fails, the error is typed, the directory is not taken for a whole one, and can be formatted."""
    reached_the_end = False
    for skip in range(40):
        file_system = MemoryFileSystem()
        file_system.faults.append(Fault(skip=skip))
        try:
            format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
        except StorageError:
            if not file_system.exists("node/meta.properties"):
                format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
        else:
            reached_the_end = not file_system.faults.pop().is_spent
        LogDirectory.open(file_system, "node", cluster_id=CLUSTER).close()
    assert reached_the_end


def test_records_that_do_not_fit() -> None:
    """Records that no batch can hold are refused before there is a snapshot of them."""
    file_system = MemoryFileSystem()
    huge = DirectoryFormat.standalone(CLUSTER, NODES[0], [bytes(9 * 1024 * 1024)])
    with pytest.raises(BatchTooLargeError):
        format_log_directory(file_system, "node", huge, TIMESTAMP)
    assert file_system.contents() == {}


def test_every_crash_leaves_a_directory_or_none() -> None:
    """Whenever power goes, there is a whole directory, or one that can be formatted; and a whole one after it."""

    def scenario(file_system: MemoryFileSystem, promise: Promise) -> None:
        format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
        promise(True)

    def check(file_system: MemoryFileSystem, promised: bool | None) -> None:
        if not file_system.exists("node/meta.properties"):
            assert promised is None
            format_log_directory(file_system, "node", STANDALONE, TIMESTAMP)
        with LogDirectory.open(file_system, "node", cluster_id=CLUSTER, node_id=1):
            assert bootstrap(file_system)[1] == [b"one", b"two"]

    assert enumerate_crashes(scenario, check).is_complete


def test_an_open_directory_is_held() -> None:
    """Until it is closed no one else can open it; closing twice is harmless."""
    file_system = formatted()
    held = LogDirectory.open(file_system, "node", cluster_id=CLUSTER, node_id=1, directory_id=DIRECTORY_ID)
    assert (held.path, held.log_path) == ("node", f"node/{METADATA_DIRECTORY_NAME}")
    assert held.meta == MetaProperties(1, CLUSTER, 1, DIRECTORY_ID)
    with pytest.raises(DirectoryLockedError):
        LogDirectory.open(file_system, "node")
    held.close()
    held.close()
    with LogDirectory.open(file_system, "node"):
        pass


def test_the_topic_is_noted_when_it_is_opened() -> None:
    """A directory that was only formatted gets the ``partition.metadata`` that Kafka writes at startup."""
    file_system = formatted()
    LogDirectory.open(file_system, "node").close()
    written = file_system.contents()[f"node/{METADATA_DIRECTORY_NAME}/partition.metadata"]
    assert written == (KAFKAS / METADATA_DIRECTORY_NAME / "partition.metadata").read_bytes()


@pytest.mark.parametrize(
    ("expected", "subject", "found"),
    [
        ({"cluster_id": "another"}, "cluster.id", CLUSTER),
        ({"node_id": 2}, "node.id", "1"),
        ({"directory_id": uuid.UUID(int=2**100)}, "directory.id", "3PbC-lOLRFo6CVJVw2Qd_A"),
    ],
)
def test_a_directory_of_another_program(expected: dict[str, object], subject: str, found: str) -> None:
    """Another cluster's, another node's or an exchanged directory is refused, by name, and released."""
    file_system = formatted()
    with pytest.raises(ForeignDirectoryError) as caught:
        LogDirectory.open(file_system, "node", **expected)  # type: ignore[arg-type]
    assert (caught.value.path, caught.value.subject, caught.value.found) == ("node/meta.properties", subject, found)
    assert found in str(caught.value)
    LogDirectory.open(file_system, "node").close()


def test_a_log_of_another_topic() -> None:
    """A log whose topic is not the metadata topic is refused, by its id or by its directory's name."""
    file_system = formatted()
    other = write_partition_metadata(PartitionMetadata(0, uuid.UUID(int=2**100)))
    replace_file(file_system, f"node/{METADATA_DIRECTORY_NAME}/partition.metadata", other)
    with pytest.raises(ForeignDirectoryError, match="topic_id"):
        LogDirectory.open(file_system, "node")
    file_system.make_directory("node/orders-0")
    replace_file(file_system, "node/orders-0/partition.metadata", other)
    before = file_system.contents()
    with pytest.raises(ForeignDirectoryError, match="topic is orders"):
        LogDirectory.open(file_system, "node/orders-0/")
    assert file_system.contents() == before
    assert METADATA_TOPIC_ID.int == 1


@pytest.mark.parametrize("path", ["nowhere", "empty", f"node/{METADATA_DIRECTORY_NAME}"])
def test_what_is_not_formatted(path: str) -> None:
    """A directory without ``meta.properties`` is refused, and nothing is written to it."""
    file_system = formatted()
    file_system.make_directory("empty")
    before = file_system.contents()
    with pytest.raises(NotFormattedError):
        LogDirectory.open(file_system, path)
    assert file_system.contents() == before


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("meta.properties", b"version=1\nnode.id=one\ncluster.id=c\n", DecodeError),
        ("meta.properties", b"version=1\nnode.id=1\n", DecodeError),
        ("meta.properties", b"#" * 100_000, DecodeError),
        ("meta.properties", b"version=7\n", UnsupportedVersionError),
        ("meta.properties", write_meta_properties(MetaProperties(0, CLUSTER, 1)), UnsupportedVersionError),
        (f"{METADATA_DIRECTORY_NAME}/partition.metadata", b"version: 0\n", DecodeError),
    ],
)
def test_damaged_properties(name: str, data: bytes, error: type[DecodeError]) -> None:
    """An unreadable file is an error that names it, and the directory is released."""
    file_system = formatted()
    replace_file(file_system, f"node/{name}", data)
    for _ in range(2):
        with pytest.raises(error) as caught:
            LogDirectory.open(file_system, "node")
        assert caught.value.path == f"node/{name}"


def test_a_failing_disk_releases_the_directory() -> None:
    """A disk that fails while a directory is opened leaves no lock."""
    file_system = formatted()
    file_system.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        LogDirectory.open(file_system, "node")
    LogDirectory.open(file_system, "node").close()


def test_kafkas_directory(tmp_path: Path) -> None:
    """The directory of a real Kafka opens, and is unchanged except for the lock."""
    copy = tmp_path / "n1"
    shutil.copytree(KAFKAS, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with LogDirectory.open(LocalFileSystem(), str(copy), cluster_id=CLUSTER, node_id=1, directory_id=DIRECTORY_ID):
        pass
    (copy / ".lock").unlink()
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
