# SPDX-License-Identifier: Apache-2.0
"""Finds what Kafka itself would remove at its next startup, by the names of files alone.

A name shows what Kafka takes a file for. If a compaction was cut off while it replaced segments (``.swap``), Kafka's
startup decides by all names of the directory together, so then nothing of it is offered.

Source: LogLoader, ProducerStateManager.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from raftlog.file_system import join
from raftlog.records.files.file_names import SEGMENT_KINDS, FileKind, FileName, FileState, parse_file_name
from raftlog.storage.segments.damaged_files import is_half_copied
from raftlog.tools.free.offers import Offers
from raftlog.tools.free.rules import DELETED_FILE, HALF_COPIED, ORPHAN_INDEX, PARTIAL_COMPACTION, STRAY_PRODUCERS

COPY_FIRST: Final = "startup removes it: copy it elsewhere first"
"""What to do with a file that may be the last copy, and that Kafka's startup does not keep."""
_SET_ASIDE: Final = re.compile(r".+\.(?:damaged|torn|superseded)-[0-9-]+")
"""Names under which raftlog sets bytes aside (``raftlog.storage.segments.damaged_files``)."""
_VANISHING: Final = frozenset({FileState.DELETED, FileState.PART, FileState.CLEANED})
_INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


@attrs.frozen
class PartitionNames:
    """The names of the files of a partition's directory.

    Attributes:
        directory: its path.
        names: what each name says, by name; names that are not Kafka's are in ``others``.
        others: all other names.
    """

    directory: str
    names: Mapping[str, FileName]
    others: Sequence[str] = ()

    @classmethod
    def of(cls, directory: str, names: Iterable[str]) -> "PartitionNames":
        """Sort names into those of Kafka and others."""
        parsed = {name: parse_file_name(name) for name in sorted(names)}
        known = {name: found for name, found in parsed.items() if found is not None}
        return cls(directory, known, tuple(name for name, found in parsed.items() if found is None))

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return join(self.directory, name)

    def of_state(self, state: FileState, *kinds: FileKind) -> dict[str, FileName]:
        """Return the files of some kinds in a state, by name in order."""
        return {name: each for name, each in self.names.items() if each.state is state and each.kind in kinds}

    @property
    def has_swap_files(self) -> bool:
        """Whether Kafka's startup has to finish the replacement of segments."""
        return bool(self.of_state(FileState.SWAP, *SEGMENT_KINDS))

    @property
    def has_vanishing_files(self) -> bool:
        """Whether Kafka's startup removes some, without a look at what is in them."""
        return any(each.state in _VANISHING for each in self.names.values())

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets of the current segments, ascending."""
        return sorted(_bases(self.of_state(FileState.CURRENT, FileKind.LOG)))

    @property
    def last_base_offset(self) -> int:
        """The base offset of the last current segment; -1 if there is none."""
        return max(self.base_offsets, default=-1)


def offer_left_overs(found: PartitionNames, offers: Offers) -> None:
    """Offer what Kafka removes at startup from a partition's directory, and keep what may be the last copy of records.

    Raises:
        StorageError: a file cannot be looked up.
    """
    for name in found.others:
        if is_half_copied(name) and not found.has_swap_files:
            offers.offer(HALF_COPIED, [found.path(name)])
        elif _SET_ASIDE.fullmatch(name):
            offers.keep(found.path(name), "bytes that raftlog set aside: they may be the last copy of their records")
    _keep_cut_off(found, offers)
    if found.has_swap_files:
        names = found.of_state(FileState.SWAP, *SEGMENT_KINDS)
        for name in names:
            offers.keep(found.path(name), "startup takes this file in place of others: let Kafka finish that first")
        return
    _offer_deleted(found, offers)
    for name in found.of_state(FileState.CLEANED, *SEGMENT_KINDS):
        offers.offer(PARTIAL_COMPACTION, [found.path(name)])
    bases = set(found.base_offsets)
    for name, index in found.of_state(FileState.CURRENT, *_INDEX_KINDS).items():
        if index.base_offset not in bases:
            offers.offer(ORPHAN_INDEX, [found.path(name)])
    producers = found.of_state(FileState.CURRENT, FileKind.PRODUCER_SNAPSHOT)
    for name, snapshot in producers.items():
        if snapshot.base_offset not in bases and name != max(producers):
            offers.offer(STRAY_PRODUCERS, [found.path(name)])


def _offer_deleted(found: PartitionNames, offers: Offers) -> None:
    """Offer segments that were deleted, before the last segment's place.

    Kafka renames segments like this if they were compacted or expired, and also if the log was truncated before them.
    A truncated log's last segment starts at or before the place of the truncation.
    """
    for name, segment in found.of_state(FileState.DELETED, *SEGMENT_KINDS).items():
        if (segment.base_offset or 0) < found.last_base_offset:
            offers.offer(DELETED_FILE, [found.path(name)])


def _keep_cut_off(found: PartitionNames, offers: Offers) -> None:
    """Keep deleted segments from the last segment's place on: they may have what the log has lost."""
    last_base = found.last_base_offset
    reason = f"it was cut off from a log whose last segment starts at {last_base}"
    reason = reason if last_base >= 0 else "its log has no segment"
    for name, segment in found.of_state(FileState.DELETED, FileKind.LOG).items():
        if (segment.base_offset or 0) >= last_base:
            offers.keep(found.path(name), f"{reason}, and may have the last copy of records; {COPY_FIRST}")


def _bases(names: Mapping[str, FileName]) -> Iterable[int]:
    return (each.base_offset for each in names.values() if each.base_offset is not None)
