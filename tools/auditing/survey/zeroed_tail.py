# SPDX-License-Identifier: Apache-2.0
"""Distinguishes a last batch that was only partly written before a power loss from damage."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding
from raftlog.storage.reading.readable_bytes import ReadableBytes

T = TypeVar("T")

_LEAST_ZEROS: Final = 16
"""Least number of zeros at the end of a torn batch. A complete one may end in a few: records end in one or two."""
_LEAST_BEFORE_PADDING: Final = 4
"""Minimum of zeros if only zeros follow the batch."""
_LENGTH_END: Final = 12
"""Position of the end of a batch's length field; in a batch cut before it, the intended size is not known."""


def join_zeroed_tail(pieces: Iterable[T], source: ReadableBytes) -> "Iterator[T | Corruption | TornTail]":
    """Yield the pieces; a broken batch that ends in zeros, followed only by zeros, becomes one torn tail with these.

    A file may already have its full length before its contents are written. If a nonzero byte follows, such a batch
    remains a broken one.

    Args:
        pieces: of a segment, in order.
        source: its bytes; bytes that the disk cannot read do not count as zeros.
    """
    held: Corruption | TornTail | None = None
    try:
        for piece in pieces:
            if held is not None and isinstance(piece, ZeroPadding) and _is_there(piece, source):
                yield _torn(held, piece.size_bytes)
                held = None
                continue
            if held is not None:
                yield held
                held = None
            if isinstance(piece, TornTail) or (isinstance(piece, Corruption) and _may_be_cut(piece, source)):
                held = piece
            else:
                yield piece
    except StorageError:
        if held is not None:
            yield held
        raise
    if held is not None:
        is_cut = isinstance(held, Corruption) and _has_zeros(held, source, _LEAST_ZEROS)
        yield _torn(held) if is_cut else held


def _is_there(piece: Corruption | ZeroPadding, source: ReadableBytes) -> bool:
    return not source.has_gap(piece.position, piece.size_bytes)


def _may_be_cut(piece: Corruption, source: ReadableBytes) -> bool:
    """Whether damage is the first part of a batch, given that zeros follow."""
    return piece.size_bytes < _LENGTH_END or _has_zeros(piece, source, _LEAST_BEFORE_PADDING)


def _has_zeros(piece: Corruption, source: ReadableBytes, count: int) -> bool:
    """Whether damage ends in at least a number of zeros."""
    if piece.size_bytes < count or not _is_there(piece, source):
        return False
    return source.read_at(piece.position + piece.size_bytes - count, count) == bytes(count)


def _torn(broken: Corruption | TornTail, padding_bytes: int = 0) -> TornTail:
    reason = f"zeros from within a batch to the end of the file, as a power loss leaves them: {broken.reason}"
    return TornTail(broken.position, broken.size_bytes + padding_bytes, reason)
