# SPDX-License-Identifier: Apache-2.0
"""Finds the files that a tool reads, from the paths that a user names."""

import os
import re
from collections.abc import Iterable, Iterator
from glob import glob
from typing import Final, NamedTuple

from raftlog.errors import StorageError, without_frames
from raftlog.file_paths import directory_of, is_remote, join_path, local_or_remote, name_of, split_path
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import (
    SEGMENT_KINDS,
    DirectoryName,
    FileKind,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from raftlog.storage.reading.directory_listing import DirectoryListing, Entry, EntryKind
from raftlog.storage.reading.file_source import STANDARD_INPUT, open_source

RECORD_KINDS: Final = frozenset({FileKind.LOG, FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})
"""The kinds of files that contain batches."""
INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
"""The kinds of files that are surveyed together with their segment."""
LARGEST_SMALL_FILE_BYTES: Final = 16 * 1024 * 1024
"""Larger files are not read as small files: a checkpoint of a hundred thousand partitions has a few MiB."""
_KINDS_BY_SUFFIX: Final = {kind.value: kind for kind in (*SEGMENT_KINDS, FileKind.SNAPSHOT)}
_SNAPSHOT_KINDS: Final = frozenset({FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})


class InputFile(NamedTuple):
    """A file to read.

    Attributes:
        path: as the user named it, or as it was found; ``-`` is standard input.
        kind: its kind by its name, or None if the name does not show one.
        state: the stage of its life.
        base_offset: for the files of a segment, else None.
        snapshot_id: for a KRaft snapshot, else None.
        was_listed: whether it was found in a directory, and so may have been deleted since.
    """

    path: str
    kind: FileKind | None = None
    state: FileState = FileState.CURRENT
    base_offset: int | None = None
    snapshot_id: OffsetAndEpoch | None = None
    was_listed: bool = False

    @property
    def file_name(self) -> str:
        """The name without the directory."""
        return name_of(self.path)

    @property
    def directory(self) -> str:
        """The path without the name."""
        return directory_of(self.path)

    @property
    def is_standard_input(self) -> bool:
        """Whether it is not a file, but a log piped to standard input."""
        return self.path == STANDARD_INPUT

    @property
    def holds_records(self) -> bool:
        """Whether the file holds batches."""
        return self.is_standard_input or self.kind in RECORD_KINDS

    def check_readable(self) -> None:
        """Open and close the file.

        Raises:
            StorageError: it cannot be opened.
        """
        if not self.is_standard_input:
            open_source(self.path).close()

    @property
    def partition(self) -> DirectoryName | None:
        """Topic and partition by the directory's name, or None."""
        path = self.path if is_remote(self.path) else os.path.abspath(self.path)  # noqa: PTH100 - links are not followed
        return parse_directory_name(name_of(directory_of(path)))

    @property
    def topic(self) -> str | None:
        """The topic by the directory's name; for a snapshot, always that of the metadata log."""
        if self.kind in _SNAPSHOT_KINDS:
            return "__cluster_metadata"
        return None if self.partition is None else self.partition.topic

    def sibling(self, kind: FileKind) -> str | None:
        """Return the path of the same segment's file of another kind, or None if this is not a segment's file."""
        if self.kind not in SEGMENT_KINDS or self.is_standard_input:
            return None
        directory, name = split_path(self.path)
        stem = os.path.splitext(name.removesuffix(self.state.value))[0]  # noqa: PTH122
        return join_path(directory, stem + kind.value + self.state.value)


def find_files(paths: Iterable[str], *, all_kinds: bool) -> Iterator[InputFile | StorageError]:
    """Yield the files that paths refer to, in the order given; an error for a path without any.

    Args:
        paths: files, directories of partitions, directories of those, patterns with ``*``, ``?`` or ``[``, and ``-``.
        all_kinds: whether to yield all files of directories, or only snapshots and segments.
    """
    listing = DirectoryListing()
    for path in paths:
        try:
            yield from _meant(listing, local_or_remote(path), all_kinds=all_kinds)
        except StorageError as error:  # For a URI; errors of a local file are reported when it is opened.
            yield without_frames(error)


def _meant(listing: DirectoryListing, path: str, *, all_kinds: bool) -> Iterator[InputFile | StorageError]:
    """Yield the files that one path refers to.

    Raises:
        StorageError: a remote file system cannot be reached, or there are no such files.
    """
    if path == STANDARD_INPUT:
        yield InputFile(path)
    elif _is_directory(listing, path):
        found = list(_in_directory(listing, path, all_kinds=all_kinds))
        yield from found or [StorageError(path, "read", "the directory holds no logs")]
    elif not is_remote(path) and not listing.exists(path) and any(character in path for character in "*?["):
        matches = sorted(glob(path))  # noqa: PTH207
        if not matches:
            yield StorageError(path, "open", "no file matches")
        yield from find_files(matches, all_kinds=all_kinds)
    else:
        file = input_file(path)
        is_piped = file.kind is None and _kind_of(listing, path) is EntryKind.OTHER
        yield InputFile(path, FileKind.LOG) if is_piped else file


def check_names_segments(paths: Iterable[str]) -> None:
    """Refuse an index whose segment is not named too, for what reads no indexes.

    Args:
        paths: as for ``find_files``.

    Raises:
        StorageError: there is one.
    """
    named = set(map(local_or_remote, paths))
    for path in sorted(named):
        file = input_file(path)
        if file.kind in INDEX_KINDS and file.sibling(FileKind.LOG) not in named:
            raise StorageError(path, "read", "an index has no batches: name the segment beside it, or the directory")


def _is_directory(listing: DirectoryListing, path: str) -> bool:
    return _kind_of(listing, path) is EntryKind.DIRECTORY


def _kind_of(listing: DirectoryListing, path: str) -> EntryKind | None:
    """Return what a path leads to; None if that is not known.

    Raises:
        StorageError: a remote file system cannot be reached, or has no such file.
    """
    try:
        return listing.status(path).kind
    except StorageError:
        if is_remote(path):
            raise
        return None


def input_file(path: str, *, was_listed: bool = False) -> InputFile:
    """Return the input file of a path, with the properties that its name, or at least its suffix, shows."""
    file_name = name_of(path)
    name = parse_file_name(file_name)
    if name is not None:
        return InputFile(path, name.kind, name.state, name.base_offset, name.snapshot_id, was_listed)
    stem, suffix = os.path.splitext(file_name)  # noqa: PTH122
    # Like Kafka's tool, go by the suffix of a renamed copy.
    kind = _KINDS_BY_SUFFIX.get(suffix)
    is_offset = kind in SEGMENT_KINDS and re.fullmatch(r"-?[0-9]{1,19}", stem, re.ASCII) is not None
    return InputFile(path, kind, base_offset=int(stem) if is_offset else None, was_listed=was_listed)


def _in_directory(
    listing: DirectoryListing, path: str, *, all_kinds: bool, with_partitions: bool = True
) -> Iterator[InputFile | StorageError]:
    """Yield the files of a partition's directory, or of a log directory and the partitions in it."""
    try:
        entries = sorted(listing.entries(path), key=_name_of_entry)
    except StorageError as error:
        yield without_frames(error)
        return
    directories = {entry.name for entry in entries if entry.is_directory()}
    names = [entry.name for entry in entries if entry.name not in directories]
    files = [input_file(join_path(path, name), was_listed=True) for name in names]
    wanted = [file for file in files if all_kinds or _is_current_log(file)]
    yield from sorted(wanted, key=_reading_order)
    for name in sorted(directories) if with_partitions else ():
        if parse_directory_name(name) is not None:
            yield from _in_directory(listing, join_path(path, name), all_kinds=all_kinds, with_partitions=False)


def _name_of_entry(entry: Entry) -> str:
    return entry.name


def _is_current_log(file: InputFile) -> bool:
    return file.kind in {FileKind.LOG, FileKind.SNAPSHOT} and file.state is FileState.CURRENT


def _reading_order(file: InputFile) -> tuple[bool, bool, int, str]:
    """Sort key: snapshots before segments, each by offset; small files last."""
    if not file.holds_records:
        return True, False, 0, file.path
    if file.snapshot_id is not None:
        return False, False, file.snapshot_id.offset, file.path
    return False, True, file.base_offset or 0, file.path
