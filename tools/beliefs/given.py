# SPDX-License-Identifier: Apache-2.0
"""What the log directories of brokers say, as values: who they belong to, and the partitions in them."""

from uuid import UUID

import attrs

from raftlog.records.files.file_names import DirectoryName, DirectoryState

PartitionKey = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""


@attrs.frozen
class GivenPartition:
    """A partition's directory.

    Attributes:
        path: of the directory.
        name: its name, with the stage of its life.
        topic_id: from ``partition.metadata``; None if there is no such file.
        leader_epoch: the highest one in ``leader-epoch-checkpoint``; -1 if there is none.
        epoch_path: that file; empty if there is none.
        is_unread: whether ``partition.metadata`` cannot be read, so that nothing is known of the topic.
        unconfirmed_epoch: the highest one in the headers of the last batches whose CRC holds, if it is above that of
            the checkpoint; else -1.
        unconfirmed_path: the file that has it; empty if there is none.
        unread_files: the names of damaged files and of those that cannot be read.
    """

    path: str
    name: DirectoryName
    topic_id: UUID | None = None
    leader_epoch: int = -1
    epoch_path: str = ""
    is_unread: bool = False
    unconfirmed_epoch: int = -1
    unconfirmed_path: str = ""
    unread_files: tuple[str, ...] = ()

    @property
    def key(self) -> PartitionKey | None:
        """The partition; None if the topic's id is not known."""
        return None if self.topic_id is None else (self.topic_id, self.name.partition)

    @property
    def is_current(self) -> bool:
        """Whether the partition's replica is there, not one that was set aside, deleted or is a copy in the making."""
        return self.name.state is DirectoryState.CURRENT


@attrs.frozen
class GivenDirectory:
    """A log directory.

    Attributes:
        path: of the directory.
        cluster_id, node_id, directory_id: from ``meta.properties``; None for what it does not have.
        broker_epoch: from ``.kafka_cleanshutdown``: that of the registration with which the broker ran last, if it shut
            down cleanly; else None.
        partitions: the partitions' directories, by name, without that of the metadata log.
        unread_files: the names of its own files, and of those of its metadata log, that are damaged or cannot be read.
        metadata_end: the offset after the last sound batch of its own metadata log, exclusive; -1 if it has none.
    """

    path: str
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: UUID | None = None
    broker_epoch: int | None = None
    partitions: tuple[GivenPartition, ...] = ()
    unread_files: tuple[str, ...] = ()
    metadata_end: int = -1
