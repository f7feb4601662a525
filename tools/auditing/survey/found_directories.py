# SPDX-License-Identifier: Apache-2.0
"""Finds the directories with files of logs from the paths that a user names.

A path may be a file, a partition's directory, a log directory, or a directory that contains these at any depth. Names
are ambiguous: ``kraft-1`` may be partition 1 of a topic, or a node's log directory. The contents decide.
"""

import os
from collections.abc import Hashable, Iterable, Iterator, Set
from glob import glob
from typing import Final

import attrs

from raftlog.errors import MissingFileError, StorageError
from raftlog.file_paths import directory_of, is_remote, join_path, local_or_remote, name_of, split_path
from raftlog.records.files.file_names import (
    METADATA_TOPIC,
    SEGMENT_KINDS,
    DirectoryName,
    DirectoryState,
    FileKind,
    parse_directory_name,
    parse_file_name,
)
from raftlog.storage.reading.directory_listing import DirectoryListing, EntryKind
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import Place
from raftlog.tools.auditing.unread_files import DELETED
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.inputs import input_file

_METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
_PARTITION_KINDS: Final = frozenset(
    {
        *SEGMENT_KINDS,
        FileKind.SNAPSHOT,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.PARTITION_METADATA,
        FileKind.QUORUM_STATE,
    }
)
"""The kinds of files in a partition's directory; all other kinds are in the log directory."""
_NO_NAMES: Final = frozenset({"", ".", ".."})
"""The name of a directory whose real name must be looked up."""


@attrs.frozen
class FoundDirectory:
    """A directory to survey.

    Attributes:
        place: what it contains.
        path: its path.
        names: the files in it that the user named one by one; None for all files.
        was_named: whether the user named the directory itself.
    """

    place: Place
    path: str
    names: frozenset[str] | None = None
    was_named: bool = False

    @property
    def is_partition(self) -> bool:
        """Whether it is a partition's directory, not a log directory itself."""
        return self.place.topic != ""

    def was_deleted(self, error: StorageError) -> bool:
        """Whether an error of listing it says that a running node has deleted it.

        A disk that was unmounted, or a path that means another place now, looks alike. Nodes delete partitions only,
        and then other things are still beside it.
        """
        is_missing = isinstance(error, MissingFileError) and self.is_partition and not self.was_named
        return is_missing and has_entries(_parent(self.path))


@attrs.frozen
class _Listing:
    """The entries of one directory, by type."""

    path: str
    directories: Set[str]
    kinds: Set[FileKind]
    listing: DirectoryListing

    @property
    def is_log_directory(self) -> bool:
        """Whether files in it show that it is a log directory; other directories may contain partitions too."""
        return bool(self.kinds - _PARTITION_KINDS) or _METADATA_DIRECTORY in self.directories

    @property
    def is_partition(self) -> bool:
        """Whether it has files of a partition, or no files and a partition's name."""
        return bool(self.kinds) or (_directory_name(self.path) is not None and not self.directories)

    def partition_paths(self) -> Iterator[str]:
        """Yield the directories of partitions in this log directory."""
        for name in sorted(self.directories):
            path = join_path(self.path, name)
            if parse_directory_name(name) is not None and not _looks_like_log_directory(self.listing, path):
                yield path


class DirectorySearch:
    """Finds the directories under paths. Each is found only once, so circular links do no harm.

    Args:
        listing: lists directories.

    Attributes:
        problems: findings for paths that could not be read, and for directories being deleted, in the order met.
    """

    def __init__(self, listing: DirectoryListing) -> None:
        self._listing = listing
        self.problems: list[Finding] = []
        self._found: dict[str, FoundDirectory] = {}
        self._named: dict[str, set[str]] = {}
        self._seen: set[Hashable] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Search some paths: files, directories, patterns with ``*``, ``?`` or ``[``, and ``-``.

        Raises:
            StorageError: a URI holds credentials.
        """
        for path in map(local_or_remote, paths):
            if path == STANDARD_INPUT:
                self._named.setdefault(path, set())
                continue
            try:
                status = self._listing.status(path)
            except StorageError as error:
                self._add_pattern(path, error)
                continue
            if status.kind is EntryKind.DIRECTORY:
                self._add_directory(path if is_remote(path) else path.rstrip("/") or "/")
            else:
                directory, name = split_path(path)
                self._named.setdefault(directory, set()).add(name)

    def directories(self) -> list[FoundDirectory]:
        """Return the directories: log directories first, then partitions, the replicas of one next to each other."""
        found = list(self._found.values())
        for path, names in self._named.items():
            if path not in self._found:
                found += _of_named_files(self._listing, path, names)
        return sorted(found, key=lambda each: (*each.place.topic_partition, each.place.log_directory, each.path))

    def _add_pattern(self, path: str, error: StorageError) -> None:
        is_missing = isinstance(error, MissingFileError) and not is_remote(path)
        is_pattern = is_missing and any(character in path for character in "*?[")
        matches = sorted(glob(path)) if is_pattern else []  # noqa: PTH207
        if not matches:
            self._complain(path, "opened", error)
        self.add(matches)

    def _add_directory(self, path: str) -> None:
        """Search a named directory and those below it, down to the directories that Kafka writes."""
        is_empty, waiting = True, [path]
        while waiting:
            below = waiting.pop()
            listing = None if below != path and self._is_on_its_way_out(below) else self._look_into(below)
            if listing is None:
                is_empty = False  # A directory that was seen before, perhaps by another name, is handled already.
            elif listing.is_log_directory:
                is_empty = False
                self._add_log_directory(listing)
            elif listing.is_partition:
                is_empty = False
                has_election = FileKind.QUORUM_STATE in listing.kinds
                self._add_partition(below, has_election=has_election, was_named=below == path)
                self._name_meta_properties(below)
            else:
                waiting += (join_path(below, name) for name in sorted(listing.directories, reverse=True))
        if is_empty:
            self.problems.append(Finding(path, "directory-empty", "there is no file of Kafka in it or below it"))

    def _add_log_directory(self, listing: _Listing) -> None:
        self._found[listing.path] = FoundDirectory(Place(listing.path), listing.path)
        for path in listing.partition_paths():
            if not self._is_on_its_way_out(path) and self._is_new(path, log_directory=listing.path):
                self._add_partition(path, log_directory=listing.path)

    def _is_on_its_way_out(self, path: str) -> bool:
        """Whether the directory is that of a deleted partition, which is then reported; a stray one is, and read."""
        name = _directory_name(path)
        if name is not None and name.state is DirectoryState.STRAY:
            reason = "a stray partition, which no topic has on this broker: Kafka has set its directory aside"
            self.problems.append(Finding(path, "file-left-over", reason))
        if name is None or name.state is not DirectoryState.DELETE:
            return False
        reason = "the partition was deleted, and its directory will be removed: it is not read"
        self.problems.append(Finding(path, "file-left-over", reason))
        return True

    def _add_partition(
        self, path: str, *, has_election: bool = False, log_directory: str | None = None, was_named: bool = False
    ) -> None:
        place = _place_of_partition(path, log_directory, has_election=has_election)
        self._found[path] = FoundDirectory(place, path, was_named=was_named)

    def _name_meta_properties(self, path: str) -> None:
        """Add the meta.properties beside a partition's directory, although only the directory was named."""
        parent, name = _parent(path), FileKind.META_PROPERTIES.value
        if self._listing.exists(join_path(parent, name)):
            self._named.setdefault(parent, set()).add(name)

    def _look_into(self, path: str) -> _Listing | None:
        """Return the entries of a directory; None if it was seen before, or cannot be listed, which is reported."""
        if not self._is_new(path):
            return None
        directories, kinds = set(), set()
        try:
            for entry in self._listing.entries(path):
                if entry.is_directory():
                    directories.add(entry.name)
                elif (name := parse_file_name(entry.name)) is not None:
                    kinds.add(name.kind)
        except StorageError as error:
            self._complain(path, "listed", error)
            return None
        return _Listing(path, directories, kinds, self._listing)

    def _is_new(self, path: str, *, log_directory: str | None = None) -> bool:
        """Whether a directory is met for the first time; False if it cannot be listed, which is reported."""
        try:
            identity = self._listing.identity(path)
        except StorageError as error:
            if log_directory is not None and FoundDirectory(Place(log_directory, path), path).was_deleted(error):
                self.problems.append(Finding(path, "file-gone", DELETED))
            else:
                self._complain(path, "listed", error)
            return False
        is_new = identity not in self._seen
        self._seen.add(identity)
        return is_new

    def _complain(self, path: str, what: str, error: StorageError) -> None:
        self.problems.append(Finding(path, "file-unreadable", f"it cannot be {what}: {error.cause}"))


def has_entries(path: str) -> bool:
    """Whether a directory can be listed, and has anything in it. A remote one is taken for unchanged."""
    try:
        return is_remote(path) or next(DirectoryListing().entries(path), None) is not None
    except StorageError:
        return False


def _of_named_files(listing: DirectoryListing, path: str, names: set[str]) -> Iterator[FoundDirectory]:
    """Yield a directory with only the named files, separately for files of a partition and of a log directory."""
    if path == STANDARD_INPUT:
        yield FoundDirectory(Place(path), path, frozenset({path}))
        return
    outside = {name for name in names if _stands_in_log_directory(name)}
    if outside:
        yield FoundDirectory(Place(path or "."), path, frozenset(outside))
    if names - outside:
        has_election = listing.exists(join_path(path or ".", FileKind.QUORUM_STATE.value))
        place = _place_of_partition(path or ".", None, has_election=has_election)
        yield FoundDirectory(place, path, frozenset(names - outside))


def _stands_in_log_directory(name: str) -> bool:
    kind = input_file(name).kind
    return kind is not None and kind not in _PARTITION_KINDS


def _place_of_partition(path: str, log_directory: str | None, *, has_election: bool) -> Place:
    """Return the partition of a directory. With an unusual name it is one of its own, or raft's if it has a vote."""
    name = _directory_name(path)
    parent = _parent(path) if log_directory is None else log_directory
    if name is not None and name.state is DirectoryState.CURRENT:
        return Place(parent, name.topic, name.partition)
    if name is None and has_election:
        return Place(path, METADATA_TOPIC, 0)
    return Place(parent, _name(path))


def _looks_like_log_directory(listing: DirectoryListing, path: str) -> bool:
    """Whether a directory with a partition's name is a node's; the first entry that shows it decides."""
    try:
        for entry in listing.entries(path):
            if (name := parse_file_name(entry.name)) is not None:
                return name.kind not in _PARTITION_KINDS
            if parse_directory_name(entry.name) is not None and entry.is_directory():
                return True
    except StorageError:
        pass  # Listing its files will report the error.
    return False


def _directory_name(path: str) -> DirectoryName | None:
    return parse_directory_name(_name(path))


def _name(path: str) -> str:
    if is_remote(path):
        return name_of(path) or "/"
    name = path.rpartition("/")[2]
    if name in _NO_NAMES:
        return os.path.split(os.path.abspath(path))[1] or "/"  # noqa: PTH100 - links are not followed
    return name


def _parent(path: str) -> str:
    if is_remote(path):
        return directory_of(path)
    parent, name = os.path.split(path)
    if name in _NO_NAMES:
        parent = os.path.split(os.path.abspath(path))[0]  # noqa: PTH100
    return parent or "."
