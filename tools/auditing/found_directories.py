# SPDX-License-Identifier: Apache-2.0
"""From the paths that a user names to the directories that hold the files of logs.

A path may be a file, a partition's directory, a log directory, or a directory of such at any depth. Names alone do not
tell: ``kraft-1`` may be partition 1 of a topic, or a node's log directory. What is inside decides.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Set
from glob import glob
from typing import Final

import attrs

from raftlog.file_system import join
from raftlog.records.file_names import (
    METADATA_TOPIC,
    SEGMENT_KINDS,
    DirectoryName,
    DirectoryState,
    FileKind,
    parse_directory_name,
    parse_file_name,
)
from raftlog.storage.file_source import STANDARD_INPUT
from raftlog.tools.auditing.evidence import Place
from raftlog.tools.findings import Finding
from raftlog.tools.inputs import input_file

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
"""Files that stand in a partition's directory; all others stand in the log directory."""


@attrs.frozen
class FoundDirectory:
    """A directory whose files are to be surveyed.

    Attributes:
        place: what it is.
        path: where it is.
        names: the files in it that the user named one by one; None for all that are there.
    """

    place: Place
    path: str
    names: frozenset[str] | None = None

    @property
    def is_partition(self) -> bool:
        """Whether it is a partition's, and not a log directory itself."""
        return self.place.topic != ""


@attrs.frozen
class _Listing:
    """What one directory holds, by the types that its entries have."""

    path: str
    directories: Set[str]
    kinds: Set[FileKind]

    @property
    def is_log_directory(self) -> bool:
        """Whether it says so itself; under another directory, partitions may stand beside anything."""
        return bool(self.kinds - _PARTITION_KINDS) or _METADATA_DIRECTORY in self.directories

    @property
    def is_partition(self) -> bool:
        """Whether it holds files of a partition, or none at all under a partition's name."""
        return bool(self.kinds) or (_directory_name(self.path) is not None and not self.directories)

    def partition_paths(self) -> Iterator[str]:
        """Yield the directories of partitions in this log directory."""
        for name in sorted(self.directories):
            if parse_directory_name(name) is not None and not _looks_like_log_directory(path := join(self.path, name)):
                yield path


class DirectorySearch:
    """Finds the directories that paths mean. None is given twice, so links that lead in a circle do no harm.

    Attributes:
        problems: what could not be looked at, and what is on its way out; in the order in which it was met.
    """

    def __init__(self) -> None:
        self.problems: list[Finding] = []
        self._found: dict[str, FoundDirectory] = {}
        self._named: dict[str, set[str]] = {}
        self._seen: set[tuple[int, int]] = set()

    def add(self, paths: Iterable[str]) -> None:
        """Look at what some paths mean: files, directories, patterns with ``*``, ``?`` or ``[``, and ``-``."""
        for path in paths:
            if path == STANDARD_INPUT:
                self._named.setdefault(path, set())
                continue
            try:
                status = os.stat(path)  # noqa: PTH116 - the path is kept as it was named
            except (OSError, ValueError) as error:  # A ValueError, if there is a zero byte in the path.
                self._add_pattern(path, error)
                continue
            if stat.S_ISDIR(status.st_mode):
                self._add_directory(path.rstrip("/") or "/")
            else:
                directory, name = os.path.split(path)
                self._named.setdefault(directory, set()).add(name)

    def directories(self) -> list[FoundDirectory]:
        """Return what was found: log directories, then partitions so that the replicas of one follow each other."""
        found = list(self._found.values())
        for path, names in self._named.items():
            if path not in self._found:
                found += _of_named_files(path, names)
        return sorted(found, key=lambda each: (*each.place.topic_partition, each.place.log_directory, each.path))

    def _add_pattern(self, path: str, error: OSError | ValueError) -> None:
        is_pattern = isinstance(error, FileNotFoundError) and any(character in path for character in "*?[")
        matches = sorted(glob(path)) if is_pattern else []  # noqa: PTH207
        if not matches:
            self._complain(path, "opened", error)
        self.add(matches)

    def _add_directory(self, path: str) -> None:
        """Look at a directory that was named, and at those below it until each is one of Kafka's."""
        is_empty, waiting = True, [path]
        while waiting:
            below = waiting.pop()
            listing = None if below != path and self._is_on_its_way_out(below) else self._listing(below)
            if listing is None:
                is_empty = False  # What was seen before, be it by another name, has had its say.
            elif listing.is_log_directory:
                is_empty = False
                self._add_log_directory(listing)
            elif listing.is_partition:
                is_empty = False
                self._add_partition(below, has_election=FileKind.QUORUM_STATE in listing.kinds)
                self._name_meta_properties(below)
            else:
                waiting += (join(below, name) for name in sorted(listing.directories, reverse=True))
        if is_empty:
            self.problems.append(Finding(path, "directory-empty", "no file of Kafka's is in it, nor in those below it"))

    def _add_log_directory(self, listing: _Listing) -> None:
        self._found[listing.path] = FoundDirectory(Place(listing.path), listing.path)
        for path in listing.partition_paths():
            if not self._is_on_its_way_out(path) and self._is_new(path):
                self._add_partition(path, log_directory=listing.path)

    def _is_on_its_way_out(self, path: str) -> bool:
        """Whether the directory is that of a deleted partition, which is said."""
        name = _directory_name(path)
        if name is None or name.state is not DirectoryState.DELETE:
            return False
        reason = "the partition was deleted, and its directory is gone after a while: it is not looked into"
        self.problems.append(Finding(path, "file-left-over", reason))
        return True

    def _add_partition(self, path: str, *, has_election: bool = False, log_directory: str | None = None) -> None:
        self._found[path] = FoundDirectory(_place_of_partition(path, log_directory, has_election=has_election), path)

    def _name_meta_properties(self, path: str) -> None:
        """Take in the file that says whose a partition's directory is, though only that was named."""
        parent, name = _parent(path), FileKind.META_PROPERTIES.value
        if os.path.lexists(join(parent, name)):
            self._named.setdefault(parent, set()).add(name)

    def _listing(self, path: str) -> _Listing | None:
        """Return what a directory holds; None if it was seen before, or cannot be listed, which is said."""
        if not self._is_new(path):
            return None
        directories, kinds = set(), set()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if _is_directory(entry):
                        directories.add(entry.name)
                    elif (name := parse_file_name(entry.name)) is not None:
                        kinds.add(name.kind)
        except OSError as error:
            self._complain(path, "listed", error)
            return None
        return _Listing(path, directories, kinds)

    def _is_new(self, path: str) -> bool:
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError as error:
            self._complain(path, "listed", error)
            return False
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self._seen
        self._seen.add(identity)
        return is_new

    def _complain(self, path: str, what: str, error: OSError | ValueError) -> None:
        cause = getattr(error, "strerror", None) or str(error)
        self.problems.append(Finding(path, "file-unreadable", f"it cannot be {what}: {cause}"))


def _of_named_files(path: str, names: set[str]) -> Iterator[FoundDirectory]:
    """Yield a directory of which only some files are wanted; those of a partition and of a log directory apart."""
    if path == STANDARD_INPUT:
        yield FoundDirectory(Place(path), path, frozenset({path}))
        return
    outside = {name for name in names if _stands_in_log_directory(name)}
    if outside:
        yield FoundDirectory(Place(path or "."), path, frozenset(outside))
    if names - outside:
        has_election = os.path.lexists(join(path or ".", FileKind.QUORUM_STATE.value))
        place = _place_of_partition(path or ".", None, has_election=has_election)
        yield FoundDirectory(place, path, frozenset(names - outside))


def _stands_in_log_directory(name: str) -> bool:
    kind = input_file(name).kind
    return kind is not None and kind not in _PARTITION_KINDS


def _place_of_partition(path: str, log_directory: str | None, *, has_election: bool) -> Place:
    """Say which partition a directory is; under an odd name it is one of its own, or raft's if a vote is in it."""
    name = _directory_name(path)
    parent = _parent(path) if log_directory is None else log_directory
    if name is not None and name.state is DirectoryState.CURRENT:
        return Place(parent, name.topic, name.partition)
    if name is None and has_election:
        return Place(path, METADATA_TOPIC, 0)
    return Place(parent, _name(path))


def _looks_like_log_directory(path: str) -> bool:
    """Whether a directory of a partition's name is a node's; the first entry that tells is taken at its word."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if (name := parse_file_name(entry.name)) is not None:
                    return name.kind not in _PARTITION_KINDS
                if parse_directory_name(entry.name) is not None and _is_directory(entry):
                    return True
    except OSError:
        pass  # Who lists its files will say so.
    return False


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # A link that leads to itself.
        return False


def _directory_name(path: str) -> DirectoryName | None:
    return parse_directory_name(_name(path))


def _name(path: str) -> str:
    return os.path.split(os.path.abspath(path))[1] or "/"  # noqa: PTH100 - links are not followed


def _parent(path: str) -> str:
    parent, name = os.path.split(path)
    if name in {"", ".", ".."}:
        parent = os.path.split(os.path.abspath(path))[0]  # noqa: PTH100
    return parent or "."
