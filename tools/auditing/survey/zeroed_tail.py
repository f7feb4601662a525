# SPDX-License-Identifier: Apache-2.0
"""Telling what a power loss leaves from damage: a last batch of which only the first part reached the disk."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from raftlog.errors import StorageError
from raftlog.records.batches.iterator import Corruption, TornTail, ZeroPadding
from raftlog.storage.reading.readable_bytes import ReadableBytes

T = TypeVar("T")

_LEAST_ZEROS: Final = 16
"""With fewer at its end, a broken batch may be one that was whole and ended so: every record ends in a zero or two."""
_LEAST_BEFORE_PADDING: Final = 4
"""Where zeros follow, so many are enough."""
_LENGTH_END: Final = 12
"""Where a batch's length ends, before which nothing says how far the batch was to reach."""


def join_zeroed_tail(pieces: Iterable[T], source: ReadableBytes) -> "Iterator[T | Corruption | TornTail]":
    """Yield pieces; a broken batch that ends in zeros, as all that follows it is, as one torn tail with those.

    A file may be as long as it was to become before what is in it was written. With something behind it that is no
    zero, such a batch stays what it is.

    Args:
        pieces: of a segment, in order.
        source: its bytes; those that the disk does not give back are no zeros.
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
    """Say whether damage is the first part of a batch, if zeros follow."""
    return piece.size_bytes < _LENGTH_END or _has_zeros(piece, source, _LEAST_BEFORE_PADDING)


def _has_zeros(piece: Corruption, source: ReadableBytes, count: int) -> bool:
    """Say whether damage ends in so many zeros."""
    if piece.size_bytes < count or not _is_there(piece, source):
        return False
    return source.read_at(piece.position + piece.size_bytes - count, count) == bytes(count)


def _torn(broken: Corruption | TornTail, padding_bytes: int = 0) -> TornTail:
    reason = f"zeros from within a batch to the end of the file, as a power loss leaves them: {broken.reason}"
    return TornTail(broken.position, broken.size_bytes + padding_bytes, reason)
