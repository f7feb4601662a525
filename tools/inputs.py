# SPDX-License-Identifier: Apache-2.0
"""From the paths that a user names to the files that a tool reads."""

import os
import re
from collections.abc import Iterable, Iterator
from glob import glob
from typing import Final

import attrs

from raftlog.errors import StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.file_names import (
    SEGMENT_KINDS,
    DirectoryName,
    FileKind,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from raftlog.storage.file_source import STANDARD_INPUT, FileSource

RECORD_KINDS: Final = frozenset({FileKind.LOG, FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})
"""Files that hold batches."""
LARGEST_SMALL_FILE_BYTES: Final = 16 * 1024 * 1024
"""Larger ones are none: a checkpoint of a hundred thousand partitions has a few MiB."""
_KINDS_BY_SUFFIX: Final = {kind.value: kind for kind in (*SEGMENT_KINDS, FileKind.SNAPSHOT)}
_SNAPSHOT_KINDS: Final = frozenset({FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})


@attrs.frozen
class InputFile:
    """A file to read.

    Attributes:
        path: as the user named it, or as it was found; ``-`` is standard input.
        kind: what its name says that it holds, or None if it says nothing.
        state: where it is in its life.
        base_offset: of the files of a segment, or None.
        snapshot_id: of a KRaft snapshot, or None.
        was_listed: whether it was found in a directory, and so may be gone by now.
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
        return os.path.basename(self.path)  # noqa: PTH119 - the path is kept as it was named

    @property
    def directory(self) -> str:
        """The path without the name."""
        return os.path.dirname(self.path)  # noqa: PTH120

    @property
    def is_standard_input(self) -> bool:
        """Whether it is no file at all, but a log that is piped in."""
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
            FileSource(self.path).close()

    @property
    def partition(self) -> DirectoryName | None:
        """Topic and partition that the directory's name says, or None."""
        directory = os.path.dirname(os.path.abspath(self.path))  # noqa: PTH100, PTH120
        return parse_directory_name(os.path.basename(directory))  # noqa: PTH119

    @property
    def topic(self) -> str | None:
        """The topic that the directory's name says; a snapshot is always of the metadata log."""
        if self.kind in _SNAPSHOT_KINDS:
            return "__cluster_metadata"
        return None if self.partition is None else self.partition.topic

    def sibling(self, kind: FileKind) -> str | None:
        """Return the path of a segment's file of another kind, or None if this file is no segment's."""
        if self.kind not in SEGMENT_KINDS or self.is_standard_input:
            return None
        stem = os.path.splitext(self.path.removesuffix(self.state.value))[0]  # noqa: PTH122
        return stem + kind.value + self.state.value


def find_files(paths: Iterable[str], *, all_kinds: bool) -> Iterator[InputFile | StorageError]:
    """Yield the files that some paths mean, in the order given; an error for a path that means none.

    Args:
        paths: files, directories of partitions, directories of those, patterns with ``*``, ``?`` or ``[``, and ``-``.
        all_kinds: whether directories give all their files, or only snapshots and segments.
    """
    for path in paths:
        if path == STANDARD_INPUT:
            yield InputFile(path)
        elif os.path.isdir(path):  # noqa: PTH112
            found = list(_in_directory(path, all_kinds=all_kinds))
            yield from found or [StorageError(path, "read", "the directory holds no logs")]
        elif not os.path.lexists(path) and any(character in path for character in "*?["):
            matches = sorted(glob(path))  # noqa: PTH207
            if not matches:
                yield StorageError(path, "open", "no file matches")
            yield from find_files(matches, all_kinds=all_kinds)
        else:
            yield input_file(path)


def input_file(path: str, *, was_listed: bool = False) -> InputFile:
    """Return what the name of a file says about it, be it only its suffix."""
    file_name = os.path.basename(path)  # noqa: PTH119
    name = parse_file_name(file_name)
    if name is not None:
        return InputFile(path, name.kind, name.state, name.base_offset, name.snapshot_id, was_listed)
    stem, suffix = os.path.splitext(file_name)  # noqa: PTH122
    # Like Kafka's tool, take a copy that somebody renamed for what its suffix says.
    kind = _KINDS_BY_SUFFIX.get(suffix)
    is_offset = kind in SEGMENT_KINDS and re.fullmatch(r"-?[0-9]{1,19}", stem, re.ASCII) is not None
    return InputFile(path, kind, base_offset=int(stem) if is_offset else None, was_listed=was_listed)


def _in_directory(path: str, *, all_kinds: bool, with_partitions: bool = True) -> Iterator[InputFile | StorageError]:
    """Yield the files of a partition's directory, or of a log directory and the partitions in it."""
    try:
        names = sorted(os.listdir(path))  # noqa: PTH208
    except OSError as error:
        yield StorageError(path, "list", error.strerror or str(error))
        return
    children = [os.path.join(path, name) for name in names]  # noqa: PTH118
    files = [input_file(child, was_listed=True) for child in children if not os.path.isdir(child)]  # noqa: PTH112
    wanted = [file for file in files if all_kinds or _is_current_log(file)]
    yield from sorted(wanted, key=_reading_order)
    for child in children if with_partitions else ():
        if os.path.isdir(child) and parse_directory_name(os.path.basename(child)) is not None:  # noqa: PTH112, PTH119
            yield from _in_directory(child, all_kinds=all_kinds, with_partitions=False)


def _is_current_log(file: InputFile) -> bool:
    return file.kind in {FileKind.LOG, FileKind.SNAPSHOT} and file.state is FileState.CURRENT


def _reading_order(file: InputFile) -> tuple[bool, bool, int, str]:
    """Snapshots before segments, each by offset; small files last."""
    if not file.holds_records:
        return True, False, 0, file.path
    if file.snapshot_id is not None:
        return False, False, file.snapshot_id.offset, file.path
    return False, True, file.base_offset or 0, file.path
