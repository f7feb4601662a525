# SPDX-License-Identifier: Apache-2.0
"""Damage to what is durable on a disk: one file at a time, or all copies of the election state.

As by bit rot, firmware, or repairs of a file system.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.storage.state.quorum_state_store import COPY_NAMES
from raftlog.testing.file_system.crash_states import DiskState
from raftlog.testing.simulator.choices import Choices

SECTOR_BYTES: Final = 512
OF_ONE_FILE: Final = ("bit-rot", "lost-sectors", "misdirected-write", "lost-write", "lost-tail", "lost-file")
"""The kinds of damage to a single file."""
LOST_VOTE: Final = "lost-vote"
"""The loss of all copies of the election state, without which a replica votes no more. The log must have records: an
empty directory without a state is a new one."""
DAMAGES: Final = (*OF_ONE_FILE, LOST_VOTE)
_VOTE_NAMES: Final = frozenset((FileKind.QUORUM_STATE.value, *COPY_NAMES))
_LOST_VOTES: Final = 0.15


class Damaged(NamedTuple):
    """A disk after damage.

    Attributes:
        state: the names and bytes.
        kind: one of ``DAMAGES``.
        words: what has happened to which file.
    """

    state: DiskState
    kind: str
    words: str


def damage_disk(state: DiskState, before: Mapping[str, bytes], choices: Choices, replica_id: int) -> Damaged | None:
    """Damage one file, half of the time a segment of the log, or lose the election state. None if all files are empty.

    Args:
        state: the disk.
        before: what files had some time ago, by path: what a lost write leaves.
        choices: decide which file, how and where.
        replica_id: of the disk.
    """
    files = {path: data for path, data, _ in state if data}
    if not files:
        return None
    segments = [path for path in files if _is_segment(path)]
    if segments and choices.happens(_LOST_VOTES, "lost-vote", replica_id):
        kept = tuple(each for each in state if _name(each[0]) not in _VOTE_NAMES)
        return Damaged(kept, LOST_VOTE, "loses all copies of quorum-state") if kept != state else None
    is_segment = bool(segments) and not choices.happens(0.5, "damaged-other", replica_id)
    path = choices.pick(segments if is_segment else list(files), "damaged-file", replica_id)
    kind = choices.pick(OF_ONE_FILE, "damage", replica_id)
    damage = _Damage(files, before, choices, replica_id)
    data, words = damage.done(kind, path)
    return with_damaged_file(state, path, data, kind, words)


def with_damaged_file(state: DiskState, path: str, data: bytes | None, kind: str, words: str) -> Damaged:
    """Return a disk of which one file has other bytes, or is gone.

    Args:
        state: the disk.
        path: of the file.
        data: its bytes; None if it is gone.
        kind: one of ``DAMAGES``.
        words: what has happened to it.
    """
    changed = tuple(
        (each, data if each == path else held, is_read_only)
        for each, held, is_read_only in state
        if each != path or data is not None
    )
    return Damaged(changed, kind, f"{words} of {_name(path)}")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_segment(path: str) -> bool:
    name = parse_file_name(_name(path))
    return name is not None and name.kind is FileKind.LOG


class _Damage:
    """Makes damage of each kind. It may change nothing: a lost write may have been of the same bytes."""

    def __init__(
        self, files: Mapping[str, bytes], before: Mapping[str, bytes], choices: Choices, replica_id: int
    ) -> None:
        self._files = files
        self._before = before
        self._choices = choices
        self._id = replica_id

    def done(self, kind: str, path: str) -> tuple[bytes | None, str]:
        """Return the bytes of a file after damage of a kind, None if it is gone; and what has happened."""
        data = self._files[path]
        if kind == "lost-file":
            return None, "loses the name"
        if kind == "lost-tail":
            lost = self._choices.number(1, min(len(data), 4 * SECTOR_BYTES) + 1, "lost-bytes", self._id)
            return data[: len(data) - lost], f"loses the last {lost} bytes"
        position = self._choices.number(0, len(data), "damaged-position", self._id)
        if kind == "bit-rot":
            flipped = data[position] ^ (1 << self._choices.number(0, 8, "flipped-bit", self._id))
            return _replaced(data, position, bytes([flipped])), f"flips a bit in byte {position}"
        start = position - position % SECTOR_BYTES
        size = min(SECTOR_BYTES, len(data) - start)
        if kind == "lost-sectors":
            return _replaced(data, start, bytes(size)), f"reads zeros in the sector at {start}"
        if kind == "lost-write":
            old = self._before.get(path, b"")[start : start + size]
            return _replaced(data, start, old), f"has old bytes in the sector at {start}"
        other = self._choices.pick(list(self._files), "misdirected-file", self._id)
        place = self._choices.number(0, len(self._files[other]), "misdirected-position", self._id)
        place -= place % SECTOR_BYTES
        found = self._files[other][place : place + size]
        return _replaced(data, start, found), f"has bytes of {_name(other)} in the sector at {start}"


def _replaced(data: bytes, position: int, other: bytes) -> bytes:
    return data[:position] + other + data[position + len(other) :]
