# SPDX-License-Identifier: Apache-2.0
"""What the log directory of a broker shows that it has acted on: a registration, topics, leader epochs of partitions.

A broker acts on committed records only. It creates the directory of a partition, with the topic's id in
``partition.metadata``, when it has read the topic's record; it writes a leader epoch into ``leader-epoch-checkpoint``
when it leads in that epoch, or has records of its leader; and it keeps the broker epoch that the answer to its
registration named, once the controller had committed it, in ``.kafka_cleanshutdown``.

Source: BrokerMetadataPublisher, ReplicaManager#applyDelta, LeaderEpochFileCache#assign, CleanShutdownFileHandler.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Final, TypeVar
from uuid import UUID

from raftlog.errors import RaftLogError
from raftlog.file_paths import join_path
from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from raftlog.records.files.file_names import (
    METADATA_TOPIC,
    DirectoryName,
    FileKind,
    parse_directory_name,
)
from raftlog.records.files.property_files import read_meta_properties, read_partition_metadata
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.storage.reading.file_source import read_file
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES

T = TypeVar("T")

LARGEST_REGISTRATION_BYTES: Final = 4096
"""A larger ``.kafka_cleanshutdown`` is not read."""


class BrokerDirectory:
    """The log directory of a node, which may be a broker. Files that cannot be read show nothing.

    Args:
        path: of the directory.

    Attributes:
        path: as given.
    """

    def __init__(self, path: str) -> None:
        self.path: Final = path
        self._partitions: dict[str, list[tuple[DirectoryName, str]]] = {}
        self._topic_ids: dict[str, UUID | None] = {}
        self._has_registration = False
        with contextlib.suppress(RaftLogError):
            self._list()

    def _list(self) -> None:
        for entry in DirectoryListing().entries(self.path):
            self._has_registration |= entry.name == FileKind.CLEAN_SHUTDOWN.value
            name = parse_directory_name(entry.name)
            if name is not None and name.topic != METADATA_TOPIC and entry.is_directory():
                self._partitions.setdefault(name.topic, []).append((name, join_path(self.path, entry.name)))

    @property
    def is_of_broker(self) -> bool:
        """Whether there is anything that a broker may have acted on."""
        return self._has_registration or bool(self._partitions)

    def registration(self, broker_id: int, broker_epoch: int) -> str | None:
        """Return the file that shows that this broker was registered with an epoch, or None."""
        if not self._has_registration:
            return None
        path = join_path(self.path, FileKind.CLEAN_SHUTDOWN.value)
        meta = _read(join_path(self.path, FileKind.META_PROPERTIES.value), read_meta_properties)
        known_epoch = _read(path, registered_epoch, LARGEST_REGISTRATION_BYTES)
        return path if meta is not None and (meta.node_id, known_epoch) == (broker_id, broker_epoch) else None

    def topic(self, name: str, topic_id: UUID) -> str | None:
        """Return a ``partition.metadata`` of a topic, or None."""
        return next((join_path(path, FileKind.PARTITION_METADATA.value) for _, path in self._of(name, topic_id)), None)

    def leader_epoch(self, name: str, topic_id: UUID, partition: int, leader_epoch: int) -> str | None:
        """Return the ``leader-epoch-checkpoint`` of a partition with that leader epoch or a later one, or None."""
        for directory, path in self._of(name, topic_id):
            file = join_path(path, FileKind.LEADER_EPOCH_CHECKPOINT.value)
            if directory.partition == partition:
                entries = _read(file, read_leader_epoch_checkpoint) or ()
                if max((entry.epoch for entry in entries), default=-1) >= leader_epoch:
                    return file
        return None

    def _of(self, name: str, topic_id: UUID) -> Iterator[tuple[DirectoryName, str]]:
        """Yield the directories of a topic's partitions, in any state of their life."""
        for directory, path in self._partitions.get(name, ()):
            if path not in self._topic_ids:
                file = join_path(path, FileKind.PARTITION_METADATA.value)
                self._topic_ids[path] = _read(file, lambda data: read_partition_metadata(data).topic_id)
            if self._topic_ids[path] == topic_id:
                yield directory, path


def _read(path: str, read: Callable[[bytes], T], max_size: int = LARGEST_SMALL_FILE_BYTES) -> T | None:
    """Return what a small file says; None if it cannot be read."""
    try:
        return read(read_file(path, max_size))
    except RaftLogError:
        return None


def registered_epoch(data: bytes) -> int | None:
    """Return the broker epoch in a ``.kafka_cleanshutdown``; the empty file of older releases has none."""
    try:
        contents = json.loads(data)
    except (ValueError, RecursionError):
        return None
    epoch = contents.get("brokerEpoch") if isinstance(contents, dict) else None
    return epoch if type(epoch) is int else None
