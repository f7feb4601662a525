# SPDX-License-Identifier: Apache-2.0
"""``leader-epoch-checkpoint``, in which a log stores where its epochs start.

Everything in it can be derived from the batches: if the file is missing or damaged, recovery rebuilds it from them.

Source: LeaderEpochCheckpointFile.
"""

from typing import Final

from raftlog.errors import CorruptFileError, DecodeError
from raftlog.file_system import FileSystem, join, read_file, replace_file
from raftlog.log.epochs import LeaderEpochs
from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint, write_leader_epoch_checkpoint
from raftlog.records.files.file_names import FileKind

_MAX_SIZE_BYTES: Final = 16 * 1024 * 1024
"""Enough for about half a million epochs."""


class LeaderEpochCheckpoint:
    """Reads and replaces the file of one log directory.

    Args:
        file_system: where the directory is.
        directory: of the log.
    """

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system = file_system
        self.path: Final = join(directory, FileKind.LEADER_EPOCH_CHECKPOINT.value)

    def load(self) -> LeaderEpochs:
        """Return the epochs in the file.

        Raises:
            MissingFileError: there is no file.
            DecodeError: it is malformed, or its epochs and offsets do not increase.
            StorageError: it cannot be read.
        """
        try:
            entries = read_leader_epoch_checkpoint(read_file(self._file_system, self.path, _MAX_SIZE_BYTES))
        except DecodeError as error:
            raise error.located(path=self.path) from None
        try:
            return LeaderEpochs(entries)
        except ValueError as error:
            raise CorruptFileError(str(error), "file-format", path=self.path) from None

    def store(self, epochs: LeaderEpochs) -> None:
        """Replace the file durably and atomically.

        Raises:
            StorageError: the old or the new file may be there.
        """
        replace_file(self._file_system, self.path, write_leader_epoch_checkpoint(epochs.entries))
