# SPDX-License-Identifier: Apache-2.0
"""Clean copies of what a real Kafka wrote, to plant faults in."""

import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from tests.golden_files import GOLDEN

SOURCES: Final = {
    "dynamic": "dynamic-quorum/data",
    "wire": "wire/data",
    "static": "static-upgrade/data",
    "topics": "data-topics/data",
    "mirror": "mirror/data/n1",
}
"""Directories of log directories by the name of their ground; the last one is a log directory itself."""

QUORUMS: Final = ("dynamic", "wire", "static")
TOPICS: Final = ("topics", "mirror")
DYNAMIC: Final = ("dynamic", "wire")
"""Quorums whose voters changed."""
METADATA: Final = "__cluster_metadata-0"


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=_Comparable)


class Ground:
    """A clean copy that a fault is planted in.

    Args:
        root: directory of the copy.
        seed: another one is another place for the fault.
    """

    def __init__(self, root: Path, seed: str) -> None:
        self.root: Final = root
        self._random = random.Random(seed)

    def pick(self, values: Iterable[T]) -> T:
        """Return one of some values, which must be there."""
        return self._random.choice(sorted(values))

    def shuffled(self, values: Iterable[T]) -> list[T]:
        """Return values in another order."""
        found = sorted(values)
        self._random.shuffle(found)
        return found

    def below(self, end: int) -> int:
        """Return a number from 0 to below an end."""
        return self._random.randrange(end)

    def between(self, start: int, end: int) -> int:
        """Return a number from a start to below an end."""
        return self._random.randrange(start, end)

    def file(self, pattern: str) -> Path:
        """Return one of the files of a pattern, such as ``*/__cluster_metadata-0/quorum-state``."""
        return self.pick(self.files(pattern))

    def files(self, pattern: str) -> list[Path]:
        """Return all files of a pattern, in order."""
        return sorted(self.root.glob(pattern))

    def log(self, least_batches: int = 4, pattern: str = "**/*.log") -> Path:
        """Return a segment that has so many batches."""
        return self.pick(path for path in self.files(pattern) if has_batches(path, least_batches))

    def alone(self) -> Path:
        """Take all log directories away but one that votes and starts at 0, and return that.

        A history that is forged there is contradicted by no other replica.
        """
        kept = self.pick(
            path.parent.parent
            for path in self.files(f"*/{METADATA}/00000000000000000000.log")
            if "n101" not in path.relative_to(self.root).parts
        )
        away = _away_from(self.root)
        away.mkdir(exist_ok=True)  # Of two faults, either may take them away.
        for directory in list(self.root.iterdir()):
            if directory != kept:
                directory.rename(away / directory.name)
        return kept

    def data_logs(self) -> str:
        """Return a pattern of segments with uncompressed data that no other replica contradicts.

        These are segments of one voter's metadata log (``alone``), or, on the ground of topics, of topics.
        """
        if self.root.name in TOPICS:
            return "**/c-none-0/*.log"
        self.alone()
        return f"**/{METADATA}/*.log"


def has_batches(path: Path, least: int) -> bool:
    """Whether a segment has so many batches."""
    data, position = path.read_bytes(), 0
    for _ in range(least):
        if position + 12 > len(data):
            return False
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return position <= len(data)


def put_back(root: Path) -> None:
    """Put back the log directories that were taken away from a ground, in place of any that are there by now."""
    away = _away_from(root)
    if away.exists():
        for directory in list(away.iterdir()):
            shutil.rmtree(root / directory.name, ignore_errors=True)
            directory.rename(root / directory.name)
        away.rmdir()


def _away_from(root: Path) -> Path:
    return root.with_name(f"{root.name}-away")


class CleanCopy:
    """A clean copy of a ground's source, which can be made clean again.

    Args:
        name: of the ground.
        root: to copy to; is not there yet.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.root: Final = root
        self._source: Final = GOLDEN / SOURCES[name]
        self._inodes: dict[Path, int] = {}
        for path in sorted(self._source.rglob("*")):
            copied = root / path.relative_to(self._source)
            if path.is_dir():
                copied.mkdir(parents=True)
            else:
                self._copy(copied)

    def restore(self) -> None:
        """Make it clean: copy changed and missing files again, and remove new ones."""
        put_back(self.root)
        for path in sorted(self.root.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                if not (self._source / path.relative_to(self.root)).is_dir():
                    path.rmdir()  # What was in it came before it.
            elif path not in self._inodes:
                path.unlink()
        for path, inode in list(self._inodes.items()):
            status = path.lstat() if path.is_symlink() or path.exists() else None
            if status is None or status.st_mtime_ns != 0 or status.st_ino != inode:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                self._copy(path)

    def _copy(self, path: Path) -> None:
        """Copy a file, with a time that shows later writes."""
        shutil.copyfile(self._source / path.relative_to(self.root), path)
        os.utime(path, ns=(0, 0))
        self._inodes[path] = path.stat().st_ino
