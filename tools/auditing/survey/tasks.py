# SPDX-License-Identifier: Apache-2.0
"""Lists the files to survey under the paths that a user names. No file is opened."""

import bisect
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import directory_of, join_path, name_of
from raftlog.records.files.file_names import (
    METADATA_TOPIC,
    OFFSET_CHECKPOINTS,
    DirectoryState,
    FileKind,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.storage.reading.directory_listing import DirectoryListing, Entry, EntryKind, EntryStatus
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.survey.found_directories import DirectorySearch, FoundDirectory
from raftlog.tools.auditing.unread_files import DELETED
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import INDEX_KINDS, InputFile, input_file

_SEGMENT_PARTS: Final = (FileKind.LOG, *INDEX_KINDS)


def find_tasks(paths: Iterable[str]) -> Iterator[SurveyTask | Finding]:
    """Yield the files to survey, and findings about the directories themselves.

    Log directories come first, then partitions by topic and number, so that all replicas of one follow each other.
    Only directories are held in memory. Each file is yielded only once, even if several paths lead to it. A directory
    that is being deleted is not read, unless it was named.

    Args:
        paths: files, directories of partitions, log directories, directories that contain these at any depth, patterns,
            and ``-`` for standard input. A file of a segment means the segment with its indexes. Each may be the URI of
            a remote file system, which is not a pattern.

    Raises:
        StorageError: a URI holds credentials.
        MissingExtraError: a package of an extra is not installed.
    """
    listing = DirectoryListing()
    search = DirectorySearch(listing)
    search.add(paths)
    yield from search.problems
    for directory in search.directories():
        yield from _Files(directory, listing).tasks()


def find_again(tasks: Sequence[SurveyTask]) -> Iterator[SurveyTask | Finding]:
    """List the directory of some tasks again, and yield what ``find_tasks`` would: what there is to survey now.

    Args:
        tasks: all those of one local directory, or of the files in it that were named; at least one.
    """
    first = tasks[0]
    path = directory_of(first.path)
    names = {name_of(path) for task in tasks for path in (task.path, *task.indexes.values())}
    directory = FoundDirectory(
        first.place, path, frozenset(names) if first.was_named else None, first.directory_was_named
    )
    for found in _Files(directory, DirectoryListing()).tasks():
        yield attrs.evolve(found, reads_messages=first.reads_messages) if isinstance(found, SurveyTask) else found


def _is_set_aside(name: str) -> bool:
    parsed = parse_directory_name(name)
    return parsed is not None and parsed.state in {DirectoryState.DELETE, DirectoryState.STRAY}


class _Files:
    """The files of a directory, listed once."""

    def __init__(self, directory: FoundDirectory, listing: DirectoryListing) -> None:
        self._directory = directory
        self._listing = listing
        self._statuses: dict[str, EntryStatus | None] = {}
        self._was_listed = True
        self._set_aside: list[str] = []

    def tasks(self) -> Iterator[SurveyTask | Finding]:
        """Yield the tasks: segments, and then the small files and snapshots that speak of them.

        While a node writes, a file that is read later knows at least as much.
        """
        yield from self._list()
        yield from self._second_names()
        segments: dict[str, dict[FileKind, InputFile]] = {}
        others: list[InputFile] = []
        for name in sorted(self._statuses):
            file = self._file(name)
            if file.kind in _SEGMENT_PARTS and file.state is FileState.CURRENT:
                segments.setdefault(name.removesuffix(file.kind.value), {})[file.kind] = file
            else:
                others.append(file)
        stems = sorted(segments)
        for stem, next_stem in itertools.zip_longest(stems, stems[1:]):
            yield self._segment_task(segments[stem], segments.get(next_stem))
        for file in others:
            yield self._task(file, {})
        if not segments and self._should_have_segments():
            yield Finding(self._directory.path, "directory-empty", "the directory of a partition has no segment")

    def _list(self) -> Iterator[Finding]:
        """Get the status of each file; a path that is not a file or no longer exists is a finding."""
        directory = self._directory
        if directory.names is not None:
            for name in sorted(directory.names):
                yield from self._add_named(name)
            return
        try:
            for entry in self._listing.entries(directory.path):
                yield from self._add(entry.name, entry)
        except StorageError as error:
            self._was_listed = False
            rule = "file-gone" if directory.was_deleted(error) else "file-unreadable"
            yield Finding(directory.path, rule, f"it cannot be listed: {error.cause}")

    def _add_named(self, name: str) -> Iterator[Finding]:
        yield from self._add(name, None)
        kind = self._file(name).kind
        if kind in _SEGMENT_PARTS and name != STANDARD_INPUT:
            stem = name.removesuffix(kind.value)
            for sibling in (stem + other.value for other in _SEGMENT_PARTS):
                if sibling not in self._statuses and self._listing.exists(self._path(sibling)):
                    yield from self._add(sibling, None)

    def _add(self, name: str, entry: Entry | None) -> Iterator[Finding]:
        path = self._path(name)
        try:
            status = self._listing.status(path) if entry is None else entry.status()
        except StorageError as error:
            if isinstance(error, MissingFileError):
                yield Finding(path, "file-gone", DELETED)
            elif entry is None or parse_directory_name(name) is not None:
                yield Finding(path, "file-unreadable", f"it cannot be opened: {error.cause}")
            else:
                self._statuses[name] = None  # Its survey reports the error; other files are judged by its presence.
            return
        if entry is None or status.kind is EntryKind.FILE:
            self._statuses[name] = status
        elif self._is_partition_elsewhere(name, status):
            self._set_aside += [name] if _is_set_aside(name) else []
        else:
            yield Finding(path, "file-unknown", f"a {status.kind.value} that is not Kafka's: it is not read")

    def _second_names(self) -> Iterator[Finding]:
        """Report a file that Kafka takes for a segment although the segment exists under its full name.

        Source: LogFileUtils#offsetFromFile, which takes any number of digits.
        """
        for name in sorted(self._statuses):
            stem, _, suffix = name.partition(".")
            whole = f"{stem.zfill(20)}.{suffix}"
            if f".{suffix}" == FileKind.LOG.value and stem.isdecimal() and name != whole and whole in self._statuses:
                reason = f"Kafka takes it for the segment of base offset {int(stem)}, which is beside it as {whole}"
                yield Finding(self._path(name), "segment-twice", reason, offset=int(stem))

    def _is_partition_elsewhere(self, name: str, status: EntryStatus) -> bool:
        """Whether this is a directory of a partition in a log directory, which has tasks of its own."""
        is_directory = status.kind is EntryKind.DIRECTORY
        return is_directory and not self._directory.is_partition and parse_directory_name(name) is not None

    def _path(self, name: str) -> str:
        is_elsewhere = self._directory.path not in {"", STANDARD_INPUT}
        return join_path(self._directory.path, name) if is_elsewhere else name

    def _file(self, name: str) -> InputFile:
        path = self._path(name)
        if (found := parse_file_name(name)) is not None:
            return InputFile(path, found.kind, found.state, found.base_offset, found.snapshot_id)
        if self._directory.names is None:
            return InputFile(path)  # Kafka does not take it for a segment either.
        file = input_file(path)
        status = self._statuses.get(name)
        is_piped = file.kind is None and status is not None and status.kind is not EntryKind.FILE
        return InputFile(path, FileKind.LOG) if is_piped or file.is_standard_input else file

    def _segment_task(
        self, files: Mapping[FileKind, InputFile], next_files: Mapping[FileKind, InputFile] | None
    ) -> SurveyTask:
        first = next(kind for kind in _SEGMENT_PARTS if kind in files)
        file = files[first]
        ends = self._snapshot_offsets
        first_end = bisect.bisect_right(ends, -1 if file.base_offset is None else file.base_offset)
        next_offset = None if next_files is None else next(iter(next_files.values())).base_offset
        last_end = len(ends) if next_offset is None else bisect.bisect_right(ends, next_offset)
        indexes = {kind: index.path for kind, index in files.items() if kind is not first}
        return self._task(file, indexes, ends[first_end:last_end], next_offset)

    def _task(
        self,
        file: InputFile,
        indexes: Mapping[FileKind, str],
        snapshot_offsets: Sequence[int] = (),
        next_base_offset: int | None = None,
    ) -> SurveyTask:
        found = [self._statuses[name_of(path)] for path in (file.path, *indexes.values())]
        statuses = [status for status in found if status is not None]
        sizes = [0 if status is None else status.size_bytes for status in found]
        return SurveyTask(
            place=self._directory.place,
            path=file.path,
            kind=file.kind,
            state=file.state,
            base_offset=file.base_offset,
            snapshot_id=file.snapshot_id,
            is_raft=self._is_raft,
            indexes=indexes,
            size_bytes=sizes[0],
            index_sizes_bytes=dict(zip(indexes, sizes[1:], strict=True)),
            was_named=self._directory.names is not None,
            directory_was_named=self._directory.was_named,
            snapshot_offsets=snapshot_offsets,
            next_base_offset=next_base_offset,
            fingerprint="|".join(status.fingerprint for status in statuses),
            has_bootstrap=self._has_bootstrap,
            set_aside=tuple(sorted(self._set_aside)) if file.kind in OFFSET_CHECKPOINTS else (),
        )

    @functools.cached_property
    def _snapshot_offsets(self) -> tuple[int, ...]:
        files = map(self._file, self._statuses)
        current = (file.snapshot_id for file in files if file.state is FileState.CURRENT)
        return tuple(sorted(snapshot_id.offset for snapshot_id in current if snapshot_id is not None))

    @functools.cached_property
    def _is_raft(self) -> bool:
        if self._directory.place.topic == METADATA_TOPIC:
            return True
        name = FileKind.QUORUM_STATE.value
        if self._directory.names is None:
            return name in self._statuses
        return self._listing.exists(self._path(name))

    @functools.cached_property
    def _has_bootstrap(self) -> bool:
        directory = self._directory
        if directory.names is not None or directory.place.topic != METADATA_TOPIC:
            return False  # Irrelevant unless the whole log directory is audited.
        name = FileKind.BOOTSTRAP_SNAPSHOT.value
        return self._listing.exists(join_path(directory.place.log_directory, name))

    def _should_have_segments(self) -> bool:
        """Whether a directory without a segment is a problem. After formatting, until the first startup, it is not.

        If files show how far the log once reached, the judgement of the partition reports it in more detail.
        """
        directory = self._directory
        if directory.names is not None or not directory.is_partition or not self._was_listed:
            return False
        from raftlog.tools.auditing.survey.log_witnesses import is_witness  # Rarely needed.

        files = {name: self._file(name) for name in self._statuses}
        has_witness = any(is_witness(name, file.kind, file.state) for name, file in files.items())
        return not has_witness and {file.snapshot_id for file in files.values()} != {BOOTSTRAP_SNAPSHOT_ID}
