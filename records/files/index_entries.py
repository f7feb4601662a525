# SPDX-License-Identifier: Apache-2.0
"""The indexes beside a segment, ``.index``, ``.timeindex`` and ``.txnindex``: arrays of entries of a fixed size.

::

    .index      8 bytes   i32 relative offset · i32 position of the batch
    .timeindex  12 bytes  i64 timestamp · i32 relative offset
    .txnindex   34 bytes  i16 version · i64 producer id · i64 first · i64 last · i64 last stable offset

A relative offset counts from the segment's base offset, which is in the file's name. An index is preallocated while its
segment is being written, so a tail of zero bytes is normal after a crash.

Source: OffsetIndex, TimeIndex, AbortedTxn.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

import attrs

from raftlog.errors import DecodeError, UnsupportedVersionError, fresh_copy

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
"""How far an offset may exceed its segment's base offset: indexes store the difference in 32 bits."""


class OffsetIndexEntry(NamedTuple):
    """The **last** offset of a batch, less the base offset, and the byte position of that batch's start."""

    relative_offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """The greatest timestamp so far, in ms, and the last offset, less the base offset, of the batch that has it."""

    timestamp: int
    relative_offset: int


class AbortedTransaction(NamedTuple):
    """An aborted transaction: offsets of its first record and of its marker (inclusive), and the last stable offset."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class IndexPadding(NamedTuple):
    """Whole entries of zeros at the end: where they start, and how many bytes they are. Harmless."""

    position: int
    size_bytes: int


class PartialEntry(NamedTuple):
    """Bytes at the end that do not make a whole entry: where they start, and how many there are."""

    position: int
    size_bytes: int


Entry = TypeVar("Entry", OffsetIndexEntry, TimeIndexEntry, AbortedTransaction)

_CHUNK_SIZE = 65536


@attrs.frozen
class IndexFormat(Generic[Entry]):
    """How one kind of index is laid out, and how it is read and written."""

    _layout: struct.Struct
    _make: Callable[[Iterable[int]], Entry]
    _problem: Callable[[Entry | None, Entry], DecodeError | None]

    @property
    def entry_size(self) -> int:
        """How many bytes an entry takes."""
        return self._layout.size

    @property
    def pack(self) -> Callable[..., bytes]:
        """Encodes an entry from its numbers; raises ``struct.error`` if one does not fit."""
        return self._layout.pack

    def scan(self, buffer: bytes | memoryview) -> Iterator[Entry | IndexPadding | PartialEntry]:
        """Yield every entry, then at most one padding, then at most one partial entry. Together they cover all bytes.

        Contents are not checked: entry ``n`` is at byte position ``n * entry_size``, whatever it holds. Entries of
        zeros at the end count as padding.
        """
        view = memoryview(buffer)
        whole = len(view) - len(view) % self.entry_size
        end = self._end_of_entries(view[:whole])
        yield from self.entries(view[:end])
        if end < whole:
            yield IndexPadding(end, whole - end)
        if whole < len(view):
            yield PartialEntry(whole, len(view) - whole)

    def entries(self, buffer: bytes | memoryview) -> Iterator[Entry]:
        """Yield every whole entry, including zeros at the end."""
        view = memoryview(buffer)
        return map(self._make, self._layout.iter_unpack(view[: len(view) - len(view) % self.entry_size]))

    def read(self, buffer: bytes | memoryview) -> list[Entry]:
        """Return the entries of a sound index; zero padding is dropped.

        Raises:
            DecodeError: the index is not a whole number of entries (rule ``index-size``), or two entries are out of
                order or one is out of range (rule ``index-order``).
            UnsupportedVersionError: a transaction index holds a version that is not 0.
        """
        view = memoryview(buffer)
        left_over = len(view) % self.entry_size
        if left_over:
            raise DecodeError(f"{left_over} bytes after the last entry", "index-size", position=len(view) - left_over)
        entries = list(self.entries(view[: self._end_of_entries(view)]))
        for error in self.check_order(entries):
            raise fresh_copy(error)
        return entries

    def check_order(self, entries: Iterable[Entry]) -> Iterator[DecodeError]:
        """Yield an error for each entry that is out of order or out of range, with its byte position in the index."""
        previous: Entry | None = None
        for index, entry in enumerate(entries):
            problem = self._problem(previous, entry)
            if problem is not None:
                yield problem.located(position=index * self.entry_size)
            previous = entry

    def encode(self, entries: Iterable[Entry]) -> bytes:
        """Return the bytes of some entries.

        Raises:
            ValueError: a number does not fit in its field.
        """
        pack = self._layout.pack
        try:
            return b"".join([pack(*entry) for entry in entries])
        except struct.error as error:
            raise ValueError(f"an index entry does not fit: {error}") from None

    def _end_of_entries(self, view: memoryview) -> int:
        """Find where the last entry that is not zero ends; the view holds whole entries."""
        end = len(view)
        while end > 0:
            start = max(0, end - _CHUNK_SIZE)
            used = len(bytes(view[start:end]).rstrip(b"\0"))
            if used:
                size = self.entry_size
                return (start + used + size - 1) // size * size
            end = start
        return 0


def _disorder(reason: str) -> DecodeError:
    return DecodeError(reason, "index-order")


def _offset_problem(previous: OffsetIndexEntry | None, entry: OffsetIndexEntry) -> DecodeError | None:
    if entry.relative_offset < 0 or entry.position < 0:
        return _disorder(f"relative offset {entry.relative_offset} or position {entry.position} is negative")
    if previous and entry.relative_offset <= previous.relative_offset:
        return _disorder(f"relative offset {entry.relative_offset} follows {previous.relative_offset}")
    if previous and entry.position <= previous.position:
        return _disorder(f"position {entry.position} follows {previous.position}")
    return None


def _time_problem(previous: TimeIndexEntry | None, entry: TimeIndexEntry) -> DecodeError | None:
    if entry.relative_offset < 0:
        return _disorder(f"relative offset {entry.relative_offset} is negative")
    if previous and entry.relative_offset < previous.relative_offset:
        return _disorder(f"relative offset {entry.relative_offset} follows {previous.relative_offset}")
    if previous and entry.timestamp <= previous.timestamp:
        return _disorder(f"timestamp {entry.timestamp} follows {previous.timestamp}")
    return None


def _transaction_problem(previous: AbortedTransaction | None, entry: AbortedTransaction) -> DecodeError | None:
    if entry.version != 0:
        return UnsupportedVersionError(f"unknown version {entry.version} of an aborted transaction", "file-format")
    if previous and entry.last_offset <= previous.last_offset:
        return _disorder(f"last offset {entry.last_offset} follows {previous.last_offset}")
    return None


OFFSET_INDEX: Final = IndexFormat(struct.Struct(">ii"), OffsetIndexEntry._make, _offset_problem)
"""``.index``: relative offsets and positions both increase."""

TIME_INDEX: Final = IndexFormat(struct.Struct(">qi"), TimeIndexEntry._make, _time_problem)
"""``.timeindex``: timestamps increase and relative offsets do not decrease."""

TRANSACTION_INDEX: Final = IndexFormat(struct.Struct(">hqqqq"), AbortedTransaction._make, _transaction_problem)
"""``.txnindex``: last offsets increase. It is never preallocated, so zeros at its end come from a crash."""
