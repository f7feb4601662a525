# SPDX-License-Identifier: Apache-2.0
"""The states that a disk may be in after a crash: the model behind ``MemoryFileSystem``, as plain values.

**A file** is sectors and a length. A sector is written whole or not at all; nothing else about a write is whole.

- Each write since the last sync gives every sector that it touches a new version. The disk holds any one of these
  versions, or the one before them, independently of other sectors: the page cache is written back in any order, and the
  power may fail between two sectors.
- Lengths and truncations go through the file system's journal, hence in order: the disk has the length of one moment
  since the last sync, and the truncations up to that moment. Sectors may be newer or older than that moment. So a file
  may have its full length and hold zeros (delayed allocation), or hold data after its length.

**Names.** Creating, renaming and removing each happen completely or not at all; a rename is never half done. The disk
has any subset of these operations since the last sync of their directory, but an operation includes all earlier ones on
the same name or the same file. ext4 and XFS journal names in one order, which gives fewer states (``ordered_names``);
btrfs does reorder unrelated names. A name may be durable before the bytes of its file (the zero-length file after a
rename), and syncing a file does not make its name durable.

A state is legal if some choice above gives it. All of them are enumerated, unless there are more than ``max_choices``
for one file, for the names, or for all files together. Then two kinds of states are tried: all choices up to some point
new and the rest old, or the reverse; and each single choice against all others old, or all others new.

Source: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014); Rebello et al., "Can Applications Recover
from fsync Failures?" (ATC 2020).
"""

import enum
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from raftlog.file_system import parent_directory

T = TypeVar("T")

DIRECTORY: Final = 0
"""The inode number that stands for a directory; files have other numbers."""
ROOTS: Final = frozenset({".", "/"})
_MAX_TEARS: Final = 64
"""How many sectors of a file are torn independently; if there are more, neighbours are grouped."""


@attrs.frozen
class CrashModel:
    """How much a crash may mix up.

    Attributes:
        sector_size_bytes: the unit that a disk writes atomically.
        max_choices: up to this many combinations are all tried; of more, a selection.
        ordered_names: whether names become durable in the order of their changes, as on ext4 and XFS.
        ordered_writes: whether the writes to a file reach the disk in their order, as if each were whole: the file then
            has what it had at one moment since the last sync that has succeeded. Only a write may be missing whose sync
            failed before that.
    """

    sector_size_bytes: int = 512
    max_choices: int = 4096
    ordered_names: bool = False
    ordered_writes: bool = False


class Fate(enum.Enum):
    """Whether a change is durable."""

    OPEN = "open"
    """There was no sync since."""
    DOUBTFUL = "doubtful"
    """A sync failed: the change may be on disk or not, and no later sync changes that."""
    SETTLED = "settled"
    """A sync has returned. The change is still listed because it follows a doubtful one."""


@attrs.frozen
class Write:
    """Bytes that were written at a position."""

    position: int
    data: bytes


@attrs.frozen
class Truncate:
    """A truncation to a length."""

    size_bytes: int


Change = Write | Truncate


@attrs.frozen(eq=False)
class FileImage:
    """A file at one moment: the bytes that are durable, and what was done since, in order."""

    durable: bytes
    changes: tuple[Change, ...] = ()
    fates: tuple[Fate, ...] = ()
    read_only: bool = False


@attrs.frozen(eq=False)
class NameChange:
    """Names that changed in one step.

    Attributes:
        names: each name with its file's number now, or ``DIRECTORY``; None if the name was removed.
        files: the numbers of all files concerned.
    """

    names: tuple[tuple[str, int | None], ...]
    files: frozenset[int]

    def conflicts(self, other: "NameChange") -> bool:
        """Return whether both concern the same file or name, so that they cannot be reordered."""
        if self.files & other.files:
            return True
        return not {name for name, _ in self.names}.isdisjoint(name for name, _ in other.names)


@attrs.frozen(eq=False)
class DiskImage:
    """A disk at one moment: the names that are durable, what was done to names since, and the files by number."""

    names: Mapping[str, int]
    changes: tuple[NameChange, ...]
    fates: tuple[Fate, ...]
    files: Mapping[int, FileImage]


DiskState = tuple[tuple[str, bytes | None, bool], ...]
"""The content of a disk after a crash: per path, the path, the bytes (None for a directory), and whether it is
read-only."""


class PossibleStates:
    """All legal states of a disk after a crash at one moment, in a deterministic order.

    Attributes:
        is_complete: whether all states are yielded, rather than a selection of too many.
    """

    def __init__(self, image: DiskImage, model: CrashModel) -> None:
        self._model = model
        self._image = image
        contents = {number: possible_contents(file, model) for number, file in image.files.items()}
        self._contents = {number: each for number, (each, _) in contents.items()}
        self._names, names_are_complete = _possible_names(image, model)
        self.is_complete = (
            names_are_complete
            and all(whole for _, whole in contents.values())
            and all(_is_few(self._sites(names), model.max_choices) for names in self._names)
        )

    def __iter__(self) -> Iterator[DiskState]:
        found: set[DiskState] = set()
        for names in self._names:
            kept = [(path, self._is_read_only(number)) for path, number in names]
            for contents in choices(self._sites(names), self._model.max_choices):
                state = tuple((path, data, flag) for (path, flag), data in zip(kept, contents, strict=True))
                if state not in found:
                    found.add(state)
                    yield state

    def _sites(self, names: "_Names") -> list[Sequence[bytes | None]]:
        return [(None,) if number == DIRECTORY else self._contents[number] for _, number in names]

    def _is_read_only(self, number: int) -> bool:
        return number != DIRECTORY and self._image.files[number].read_only


def picked_state(image: DiskImage, choose: Callable[[int], int], model: CrashModel) -> DiskState:
    """Return one legal state.

    Args:
        image: the disk before the crash.
        choose: returns a number from 0 up to, not including, its argument: ``random.Random(seed).randrange``.
        model: what is legal.
    """
    picks = [site[choose(len(site))] for site in _name_sites(image, model)]
    entries: list[tuple[str, bytes | None, bool]] = []
    for path, number in _names_after(image, picks):
        if number == DIRECTORY:
            entries.append((path, None, False))
            continue
        file = image.files[number]
        moments = _moments(file)
        torn = _torn_file(file, moments[choose(len(moments))], model)
        data = torn.content([site[choose(len(site))] for site in torn.versions])
        entries.append((path, data, file.read_only))
    return tuple(entries)


def choices(sites: Sequence[Sequence[T]], max_choices: int) -> Iterator[tuple[T, ...]]:
    """Yield every way to choose one version per site; if there are too many, the selection that the module describes.

    Args:
        sites: the versions to choose from at each site, oldest first.
        max_choices: up to this many combinations are all yielded.
    """
    if _is_few(sites, max_choices):
        yield from itertools.product(*sites)
        return
    oldest, newest = tuple(site[0] for site in sites), tuple(site[-1] for site in sites)
    for index in range(len(sites) + 1):
        yield newest[:index] + oldest[index:]
        yield oldest[:index] + newest[index:]
    for index, site in enumerate(sites):
        for around in (oldest, newest):
            for value in site:
                yield (*around[:index], value, *around[index + 1 :])


def _is_few(sites: Sequence[Sequence[T]], max_choices: int) -> bool:
    return math.prod(map(len, sites)) <= max_choices


@functools.lru_cache(maxsize=1024)  # most files are the same from one moment to the next
def possible_contents(image: FileImage, model: CrashModel) -> tuple[Sequence[bytes], bool]:
    """Return the contents that a file may have after a crash, each once, and whether these are all."""
    if not image.changes:
        return (image.durable,), True
    found: dict[bytes, None] = {}
    is_complete = True
    for moment in _moments(image):
        torn = _torn_file(image, moment, model)
        is_complete = is_complete and not torn.is_coarse and _is_few(torn.versions, model.max_choices)
        found.update((torn.content(picked), None) for picked in choices(torn.versions, model.max_choices))
    return list(found), is_complete


def _moments(image: FileImage) -> range:
    """Return the moments, as numbers of changes, whose length the file may have."""
    settled = [index for index, fate in enumerate(image.fates) if fate is Fate.SETTLED]
    return range(settled[-1] + 1 if settled else 0, len(image.changes) + 1)


@attrs.frozen(eq=False)
class _TornFile:
    """The content of a file, and the spans of it that may be older: where each starts, and its versions."""

    newest: bytes
    starts: list[int]
    versions: list[Sequence[bytes]]
    is_coarse: bool

    def content(self, picked: Sequence[bytes]) -> bytes:
        """Return the content with these versions of its spans."""
        parts, end = [], 0
        for start, data in zip(self.starts, picked, strict=True):
            parts += [self.newest[end:start], data]
            end = start + len(data)
        return b"".join([*parts, self.newest[end:]])


def _torn_file(image: FileImage, moment: int, model: CrashModel) -> _TornFile:
    """Work out the versions of each span, for a disk that has the length after ``moment`` changes."""
    if not image.changes:
        return _TornFile(image.durable, [], [], is_coarse=False)
    sector_size, first_moment = model.sector_size_bytes, _moments(image)[0]
    written = {
        sector
        for change in image.changes
        if isinstance(change, Write)
        for sector in _units(change.position, change.position + len(change.data), sector_size)
    }
    sectors_a_span = -(-len(written) // _MAX_TEARS) or 1
    span = sector_size * sectors_a_span
    content, size, versions = bytearray(image.durable), len(image.durable), dict[int, list[bytes]]()
    for index, (change, fate) in enumerate(zip(image.changes, image.fates, strict=True)):
        if isinstance(change, Write):
            is_certain = fate is Fate.SETTLED
            if model.ordered_writes:
                if index >= moment:
                    continue
                is_certain = fate is not Fate.DOUBTFUL or index >= first_moment
            _write_spans(content, change, span, versions, is_certain=is_certain)
            if index < moment:
                size = max(size, change.position + len(change.data))
        elif index < moment:
            cut(content, change.size_bytes)
            _cut_versions(versions, change.size_bytes, span)
            size = change.size_bytes
    cut(content, size)
    content.extend(bytes(size - len(content)))
    shown = [number for number in sorted(versions) if number * span < size]
    return _TornFile(
        bytes(content),
        [number * span for number in shown],
        [tuple(dict.fromkeys(each[: size - number * span] for each in versions[number])) for number in shown],
        sectors_a_span > 1,
    )


def _units(start: int, stop: int, size: int) -> range:
    return range(start // size, -(-stop // size))


def _write_spans(
    content: bytearray, change: Write, span: int, versions: dict[int, list[bytes]], *, is_certain: bool
) -> None:
    touched = _units(change.position, change.position + len(change.data), span)
    for number in touched:
        versions.setdefault(number, [_span(content, number, span)])
    write(content, change)
    for number in touched:
        if is_certain:
            versions[number].clear()
        versions[number].append(_span(content, number, span))


def _span(content: bytearray, number: int, span: int) -> bytes:
    return bytes(content[number * span : (number + 1) * span]).ljust(span, b"\0")


def _cut_versions(versions: dict[int, list[bytes]], size: int, span: int) -> None:
    for number, each in versions.items():
        kept = max(0, size - number * span)
        versions[number] = [data[:kept].ljust(span, b"\0") for data in each]


def write(content: bytearray, change: Write) -> None:
    """Write into the content of a file; a gap before the position becomes zeros."""
    if change.position > len(content):
        content.extend(bytes(change.position - len(content)))
    content[change.position : change.position + len(change.data)] = change.data


def cut(content: bytearray, size_bytes: int) -> None:
    """Truncate the content of a file, if it is longer."""
    del content[size_bytes:]


def rename(names: dict[str, int], change: NameChange) -> None:
    """Change names as an operation did."""
    for name, number in change.names:
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


_Names = tuple[tuple[str, int], ...]


def _possible_names(image: DiskImage, model: CrashModel) -> tuple[Sequence[_Names], bool]:
    sites = _name_sites(image, model)
    found = dict.fromkeys(_names_after(image, picks) for picks in choices(sites, model.max_choices))
    return list(found), _is_few(sites, model.max_choices)


def _name_sites(image: DiskImage, model: CrashModel) -> list[Sequence[Sequence[int]]]:
    """Return the choices to be made: per site, the sets of changes that each alternative keeps."""
    count = len(image.changes)
    if model.ordered_names:
        settled = [index for index, fate in enumerate(image.fates) if fate is Fate.SETTLED]
        return [[range(kept) for kept in range(settled[-1] + 1 if settled else 0, count + 1)]]
    return [[(index,)] if fate is Fate.SETTLED else [(), (index,)] for index, fate in enumerate(image.fates)]


def _names_after(image: DiskImage, picks: Sequence[Sequence[int]]) -> _Names:
    """Return the names after some of the changes, by path, without those whose directory is missing."""
    kept = {index for pick in picks for index in pick}
    for index in range(len(image.changes) - 1, -1, -1):
        if index in kept:
            kept |= {before for before in range(index) if image.changes[before].conflicts(image.changes[index])}
    names = dict(image.names)
    for index in sorted(kept):
        rename(names, image.changes[index])
    return _reachable(tuple(names.items()))


@functools.lru_cache(maxsize=1024)  # names seldom change from one moment to the next
def _reachable(names: _Names) -> _Names:
    """Return the names by path, without those whose directory is missing."""
    reached: dict[str, int] = {}
    for name, number in sorted(names):  # a directory sorts before what is in it
        above = parent_directory(name)
        if above in ROOTS or reached.get(above) == DIRECTORY:
            reached[name] = number
    return tuple(reached.items())
