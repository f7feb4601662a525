# SPDX-License-Identifier: Apache-2.0
"""The files of a followed log, listed anew at each look."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import join_path, name_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.window import ByteSource
from raftlog.records.files.file_names import (
    DirectoryState,
    FileKind,
    FileName,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from raftlog.storage.reading.directory_listing import DirectoryListing, Entry, EntryKind
from raftlog.storage.reading.file_source import FileSource
from raftlog.storage.reading.index_seek import IndexSeek
from raftlog.tools.input.inputs import InputFile, input_file


@attrs.frozen
class FoundFiles:
    """What a log has at one look.

    Attributes:
        segments: base offsets, ascending.
        snapshots: ids, ascending.
    """

    segments: tuple[int, ...] = ()
    snapshots: tuple[OffsetAndEpoch, ...] = ()

    def after(self, segment: int) -> int | None:
        """Return the first segment after one, or None."""
        return next((each for each in self.segments if each > segment), None)

    def holding(self, offset: int) -> int:
        """Return the segment that has an offset if the log has it: the first one for offsets before the log."""
        return max((each for each in self.segments if each <= offset), default=self.segments[0])


class LogFiles(Protocol):
    """The files of one log."""

    @property
    def path(self) -> str:
        """What is followed, for messages."""
        ...

    def listed(self) -> FoundFiles:
        """Return what is there now; nothing if there is no log.

        Raises:
            StorageError: it cannot be listed.
        """
        ...

    def opened(self, segment: int) -> AbstractContextManager[ByteSource]:
        """Open a segment, for one look.

        Raises:
            MissingFileError: it was deleted meanwhile.
            StorageError: it cannot be opened, or is not a regular file.
        """
        ...

    def position_before(self, segment: int, source: ByteSource, offset: int) -> int:
        """Return the byte position of a batch that starts at or below an offset, as far as indexes say; else 0."""
        ...

    def end_of(self, segment: int, source: ByteSource) -> int:
        """Return the offset after the last sound batch of a segment; its first one if there is none."""
        ...

    def input_file(self, segment: int) -> InputFile:
        """Return a segment as a file to print."""
        ...


class PathFiles:
    """The log at a path: the directory of a partition, a directory with one such directory in it, or one segment.

    The path may not exist yet. What it is, is decided once a log is there. Nothing is locked, mapped or written.

    Args:
        path: a local path.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory: str | None = None

    def listed(self) -> FoundFiles:
        """Return what is there now.

        Raises:
            StorageError: it cannot be listed, is neither a file nor a directory, or is a directory of several logs.
        """
        try:
            if self._directory is not None:
                return self._found(self._directory)
            listing = DirectoryListing()
            kind = listing.status(self.path).kind
            if kind is EntryKind.FILE:
                return FoundFiles((self._own_base_offset(),))
            if kind is EntryKind.OTHER:
                raise StorageError(self.path, "follow", "it is neither a file nor a directory")
            return self._first_found(list(listing.entries(self.path)))
        except MissingFileError:
            return FoundFiles()

    def opened(self, segment: int) -> FileSource:
        """Open a segment."""
        path = self._path_of(segment)
        if DirectoryListing().status(path).kind is not EntryKind.FILE:
            raise StorageError(path, "follow", "it is not a regular file")
        try:
            return FileSource(path)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise MissingFileError(path, "open", "it was deleted") from error
            raise

    def position_before(self, segment: int, source: ByteSource, offset: int) -> int:
        """Return where to begin to read for an offset, by the index beside the segment."""
        file = self.input_file(segment)
        return IndexSeek(file.path, file.base_offset).position_before(source, offset)

    def end_of(self, segment: int, source: ByteSource) -> int:
        """Return the offset after the last sound batch of a segment; its first one if there is none."""
        file = self.input_file(segment)
        last = IndexSeek(file.path, file.base_offset).end(source).batch
        return segment if last is None else last.last_offset + 1

    def input_file(self, segment: int) -> InputFile:
        """Return a segment as a file to print."""
        return input_file(self._path_of(segment), was_listed=self._directory is not None)

    def _own_base_offset(self) -> int:
        file = input_file(self.path)
        if not file.holds_records:
            raise StorageError(self.path, "follow", "it is not a segment: it has no name of one")
        return file.base_offset or 0

    def _path_of(self, segment: int) -> str:
        if self._directory is None:
            return self.path
        return join_path(self._directory, str(FileName(FileKind.LOG, base_offset=segment)))

    def _first_found(self, entries: list[Entry]) -> FoundFiles:
        """Decide which directory is the log's, if any has a log yet."""
        found = _files_among(entries)
        is_partition = parse_directory_name(name_of(self.path)) is not None
        logs = [] if found.segments or is_partition else sorted(filter(_is_log, entries), key=_name)
        if len(logs) > 1:
            names = ", ".join(entry.name for entry in logs[:3])
            more = f" and {len(logs) - 3} more" if len(logs) > 3 else ""
            raise StorageError(self.path, "follow", f"it has several logs, name one of them: {names}{more}")
        if logs:
            self._directory = join_path(self.path, logs[0].name)
            return self._found(self._directory)
        if found.segments:
            self._directory = self.path
        return found

    @staticmethod
    def _found(directory: str) -> FoundFiles:
        return _files_among(DirectoryListing().entries(directory))


def _files_among(entries: Iterable[Entry]) -> FoundFiles:
    segments: list[int] = []
    snapshots: list[OffsetAndEpoch] = []
    for entry in entries:
        name = parse_file_name(entry.name)
        if name is None or name.state is not FileState.CURRENT:
            continue
        if name.kind is FileKind.LOG and name.base_offset is not None:
            segments.append(name.base_offset)
        elif name.snapshot_id is not None:
            snapshots.append(name.snapshot_id)
    return FoundFiles(tuple(sorted(segments)), tuple(sorted(snapshots)))


def _is_log(entry: Entry) -> bool:
    name = parse_directory_name(entry.name)
    return name is not None and name.state is DirectoryState.CURRENT and entry.is_directory()


def _name(entry: Entry) -> str:
    return entry.name
