# SPDX-License-Identifier: Apache-2.0
"""Owners of log directories, and directories that count as one: at each limit, before and after it."""

import uuid

import pytest

from raftlog.errors import ForeignDirectoryError, NotFormattedError
from raftlog.file_system import join
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.storage.state.log_directory import (
    METADATA_DIRECTORY_NAME,
    METADATA_TOPIC_ID,
    DirectoryFormat,
    LogDirectory,
    format_log_directory,
)
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode
from tests.strategies import TIMESTAMP

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
DIRECTORY_ID = uuid.UUID(int=100)


def _formatted(path: str) -> MemoryFileSystem:
    file_system = MemoryFileSystem()
    format_log_directory(file_system, path, DirectoryFormat(CLUSTER, 0, DIRECTORY_ID), TIMESTAMP)
    return file_system


@pytest.mark.parametrize("node_id", [0, 1, 2**30 - 1, 2**30, 2**31 - 2, 2**31 - 1])
def test_every_node_id_can_own_a_directory(node_id: int) -> None:
    """Ids go from 0 to the greatest int32."""
    assert DirectoryFormat(CLUSTER, node_id, DIRECTORY_ID).node_id == node_id


@pytest.mark.parametrize("node_id", [-1, 2**31, 2**31 + 1])
def test_other_numbers_are_no_node_ids(node_id: int) -> None:
    """Node ids are not negative, and at most the greatest int32."""
    with pytest.raises(ValueError, match="node id"):
        DirectoryFormat(CLUSTER, node_id, DIRECTORY_ID)


@pytest.mark.parametrize(("number", "is_reserved"), [(0, True), (1, True), (99, True), (100, False), (101, False)])
def test_the_first_hundred_directory_ids_are_reserved(number: int, is_reserved: bool) -> None:
    """Source: DirectoryId#reserved, the first 100 ids."""
    if is_reserved:
        with pytest.raises(ValueError, match="reserved"):
            DirectoryFormat(CLUSTER, 0, uuid.UUID(int=number))
    else:
        assert DirectoryFormat(CLUSTER, 0, uuid.UUID(int=number)).directory_id.int == number


def test_a_lone_voter_has_a_directory_id() -> None:
    """A voter whose directory id is not known cannot be distinguished from another."""
    node = VoterNode(ReplicaKey(1), Endpoints.of({"C": ("h", 1)}), SupportedVersionRange(0, 1))
    with pytest.raises(ValueError, match="without a directory id"):
        DirectoryFormat.standalone(CLUSTER, node)


@pytest.mark.parametrize("name", ["node", "orders-0", "__cluster_metadata-0", "__cluster_metadata-1", "orders-x"])
def test_a_directory_may_have_any_name(name: str) -> None:
    """A log directory that is named like a partition is one all the same: it is not a partition's."""
    file_system = _formatted(name)
    with LogDirectory.open(file_system, name) as directory:
        assert directory.log_path == join(name, METADATA_DIRECTORY_NAME)


@pytest.mark.parametrize("has_meta", [False, True])
def test_a_partition_of_another_topic_is_foreign(has_meta: bool) -> None:
    """A directory with a ``partition.metadata`` that is named for another topic is refused, whatever else it has."""
    file_system = _formatted("orders-0") if has_meta else MemoryFileSystem((("orders-0", None, False),))
    data = write_partition_metadata(PartitionMetadata(0, uuid.UUID(int=1)))
    file_system.open("orders-0/partition.metadata", create=True).append(data)
    with pytest.raises(ForeignDirectoryError, match="orders"):
        LogDirectory.open(file_system, "orders-0")


@pytest.mark.parametrize("is_partition", [False, True])
def test_the_directory_above_is_named_where_that_is_meant(is_partition: bool) -> None:
    """Of the metadata log's own directory the error says where to look; of any other it says what is missing."""
    file_system = MemoryFileSystem((("node", None, False), (f"node/{METADATA_DIRECTORY_NAME}", None, False)))
    path = f"node/{METADATA_DIRECTORY_NAME}"
    if is_partition:
        data = write_partition_metadata(PartitionMetadata(0, METADATA_TOPIC_ID))
        file_system.open(f"{path}/partition.metadata", create=True).append(data)
    with pytest.raises(NotFormattedError) as caught:
        LogDirectory.open(file_system, path)
    assert ("the one above it" in str(caught.value)) == is_partition


def test_the_logs_own_directory_is_made_again() -> None:
    """If it is missing, opening makes it; it is synced even if it exists, since that may not have been done."""
    meta = _formatted("node").contents()["node/meta.properties"]
    file_system = MemoryFileSystem((("node", None, False),))
    file_system.open("node/meta.properties", create=True).append(meta)
    for _ in range(2):
        start = file_system.step_count
        LogDirectory.open(file_system, "node").close()
        steps = [step for step in file_system.steps if step.number > start]
        assert list(file_system.list(f"node/{METADATA_DIRECTORY_NAME}")) == ["partition.metadata"]
        assert (Operation.SYNC_DIRECTORY, "node") in {(step.operation, step.path) for step in steps}


def test_a_formatted_directory_is_durable() -> None:
    """After a crash that loses everything unsynced, the directory exists and can be opened."""
    file_system = _formatted("above/node").crash(lambda count: 0)
    LogDirectory.open(file_system, "above/node").close()
