# SPDX-License-Identifier: Apache-2.0
"""The snapshots in the directory of a log.

Source: Snapshots, KafkaRaftLog#recoverSnapshots.
"""

from raftlog.errors import MissingFileError
from raftlog.file_system import FileSystem, join, remove_if_there
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileState
from raftlog.snapshot.file_raw import FileRawSnapshotReader, FileRawSnapshotWriter
from raftlog.snapshot.paths import SnapshotName, parse_snapshot_name, snapshot_name
from raftlog.snapshot.reader import SnapshotSummary, verify_snapshot


class SnapshotDirectory:
    """Lists, opens, creates and removes the snapshots in a log directory, which also has the segments of the log.

    Args:
        file_system: the file system of the directory.
        directory: the log directory.
    """

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system = file_system
        self._directory = directory
        self._parts_begun = 0

    def snapshot_ids(self) -> tuple[OffsetAndEpoch, ...]:
        """Return the ids of all frozen snapshots, oldest first, judged by their names only.

        Raises:
            StorageError: the directory cannot be read.
        """
        return tuple(sorted(name.snapshot_id for _, name in self._names() if name.state is FileState.CURRENT))

    def clean_up(self) -> tuple[str, ...]:
        """Remove partial and deleted snapshots; return the names of the removed files.

        Call it only as the log's owner, before the log is opened: it would remove the files of active writers.

        Raises:
            StorageError: a file cannot be removed, or the directory cannot be read.
        """
        gone = tuple(text for text, name in self._names() if name.state is not FileState.CURRENT)
        for text in gone:
            remove_if_there(self._file_system, join(self._directory, text))
        return gone

    def create(self, snapshot_id: OffsetAndEpoch) -> FileRawSnapshotWriter:
        """Begin a snapshot. Freezing it replaces an existing snapshot of the same id.

        Raises:
            InvalidSnapshotIdError: no snapshot has such an id.
            StorageError: the disk failed.
        """
        self._parts_begun += 1
        return FileRawSnapshotWriter(self._file_system, self._directory, snapshot_id, str(self._parts_begun))

    def open(self, snapshot_id: OffsetAndEpoch) -> FileRawSnapshotReader | None:
        """Open a frozen snapshot; None if there is none of this id.

        Raises:
            InvalidSnapshotIdError: no snapshot has such an id.
            StorageError: it cannot be opened.
        """
        try:
            return FileRawSnapshotReader(self._file_system, self._directory, snapshot_id)
        except MissingFileError:
            return None

    def verify(self, snapshot_id: OffsetAndEpoch) -> SnapshotSummary:
        """Read all of a frozen snapshot, and return a summary of its contents.

        Raises:
            MissingFileError: there is none of this id.
            InvalidSnapshotIdError, IncompleteSnapshotError, CorruptBatchError, DecodeError, MissingExtraError,
                StorageError: as for ``verify_snapshot``.
        """
        with FileRawSnapshotReader(self._file_system, self._directory, snapshot_id) as reader:
            return verify_snapshot(reader, snapshot_id, path=reader.path)

    def delete(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Remove a frozen snapshot at once; return whether it existed. Open readers of it can continue.

        The removal is not synced. A crash may bring the snapshot back, which is harmless: a newer one is durable.

        Raises:
            InvalidSnapshotIdError: no snapshot has such an id.
            StorageError: it exists and cannot be removed.

        Differs: Kafka renames it to ``.deleted`` and removes it a minute later, so that replicas can finish fetching
        it. Here their readers hold it open, or they fetch the newer one.
        """
        return remove_if_there(self._file_system, join(self._directory, snapshot_name(snapshot_id)))

    def _names(self) -> list[tuple[str, SnapshotName]]:
        """Return the names of all snapshots, of any state, as text and parsed."""
        names = ((text, parse_snapshot_name(text)) for text in self._file_system.list(self._directory))
        return [(text, name) for text, name in names if name is not None]
