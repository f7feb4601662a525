# SPDX-License-Identifier: Apache-2.0
"""Splitting a log into batches, and into what is not a batch: a torn tail, zero padding, corruption.

The pieces stand end to end: each starts where the last one ended, and together they are the whole input. A length is
used only after it was checked against the bytes there are. After bytes that do not check, the next piece starts at the
next batch whose CRC holds, so that damage costs no more than itself.
"""

import bisect
import re
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.errors import InvariantViolation
from raftlog.records import limits
from raftlog.records.batches import legacy
from raftlog.records.batches.batch import CRC_START, HEADER, RecordBatch
from raftlog.records.batches.batch_run import BatchRun, RunFinder
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.window import ByteSource, Window
from raftlog.records.checksum import crc32, crc32c
from raftlog.records.messages.primitives import Buffer

__all__ = [
    "BufferSource",
    "ByteSource",
    "Corruption",
    "Piece",
    "TornTail",
    "ZeroPadding",
    "is_likely_header",
    "split",
    "split_runs",
]

CHUNK_SIZE: Final = 1024 * 1024
"""How many bytes are read at once."""
_IN_ONE_PIECE: Final = 16 * 1024 * 1024
"""A batch above this size is read only after its CRC was found to hold, a chunk at a time."""
_SECTOR_SIZE: Final = 512
"""What a disk writes whole or not at all, at most."""
_FEW_ZEROS: Final = 8
"""Zeros at the end of a batch that may well be its own."""
_CHECKS_IN_VAIN: Final = 16 * 1024 * 1024
_CHECKS_IN_VAIN_PER_BYTE: Final = 16
"""How many bytes may be checked for headers that turn out to be none: at least, and more for each byte of input."""

_ZEROS: Final = bytes(CHUNK_SIZE)
_FIELD_ENDS: Final = (0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57)
_ALWAYS_CHECKED: Final = 32 * 1024
"""What costs no more to check than to find."""
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
_LOOK_AHEAD: Final = 7
"""How far the patterns below look beyond the magic."""
_MAGIC_2: Final = rb"(?s:\x02(?=.{4}\x00[\x00-\x7f]{2}))"
_ANY_MAGIC: Final = _MAGIC_2 + rb"|(?s:(?<!\x00{4}.{4})[\x00\x01](?=[\x00-\x0f]))"
"""Not a hole: there the length would be zero too."""


def _view(buffer: Buffer) -> memoryview:
    # Of a function attrs reads the annotations; of memoryview itself it would parse a signature, at every start.
    return memoryview(buffer)


@attrs.frozen
class BufferSource:
    """Bytes in memory."""

    buffer: memoryview = attrs.field(converter=_view)

    def read_at(self, position: int, size: int) -> memoryview:
        """Return up to ``size`` bytes from a position, without a copy."""
        return self.buffer[position : position + size]

    def size(self) -> int:
        """Return the buffer's length."""
        return len(self.buffer)


@attrs.frozen
class TornTail:
    """The input ends inside a batch: a write that was cut, or is still going on."""

    position: int
    size_bytes: int
    reason: str
    rule: str = "tail-torn"


@attrs.frozen
class ZeroPadding:
    """Nothing but zero bytes to the end of the input: preallocated, or left so by a crash."""

    position: int
    size_bytes: int
    rule: str = "tail-zero"


@attrs.frozen
class Corruption:
    """Bytes that do not check.

    Attributes:
        position: where they start.
        size_bytes: how many they are.
        reason: what does not hold at ``position``.
        rule: the rule that is broken there.
        batch: what claims to be a batch, if what follows confirms its length. Its contents are not to be trusted.
    """

    position: int
    size_bytes: int
    reason: str
    rule: str
    batch: RecordBatch | LegacyBatch | None = None


Piece = RecordBatch | LegacyBatch | TornTail | ZeroPadding | Corruption


def split(source: ByteSource, *, start: int = 0, stop: int | None = None) -> Iterator[Piece]:
    """Yield the pieces of a log, in order, end to end.

    Args:
        source: the log.
        start: byte position of the first piece: of a batch, or of anything.
        stop: byte position to end at, exclusive: a batch that goes on past it is neither given nor reported. None is
            the end.

    Memory is that of the largest batch whose CRC holds, or 16 MiB if that is more. Time is in proportion to the bytes,
    also for bytes that were made to waste it: after many long headers that turned out to be none, a batch above 32 KiB
    that is longer than what may still be checked in vain is not believed.
    """
    for piece in split_runs(source, start=start, stop=stop):
        if isinstance(piece, BatchRun):
            yield from piece.batches()
        else:
            yield piece


def split_runs(
    source: ByteSource, *, start: int = 0, stop: int | None = None
) -> Iterator[BatchRun | LegacyBatch | TornTail | ZeroPadding | Corruption]:
    """Yield the pieces of a log as ``split`` does, but batches of magic 2 in runs."""
    splitter = _Splitter(source, stop)
    position = start
    while True:
        run = splitter.run_at(position)
        if run is not None:
            end = run.end
            if not position == run.start < end:
                raise InvariantViolation(f"position {position}: batches from {run.start} to {end} are read there")
            yield run
            position = end
            continue
        piece = splitter.piece_at(position)
        if piece is None:
            return
        if piece.position != position or piece.size_bytes <= 0:
            raise InvariantViolation(f"position {position}: {piece} of {piece.size_bytes} bytes is read there")
        yield BatchRun.of(piece) if isinstance(piece, RecordBatch) else piece
        position = piece.position + piece.size_bytes


@attrs.frozen
class _Claim:
    """What the header at a position says: a size if it is possible, and the rule that it breaks if it is not."""

    size: int
    magic: int = 2
    rule: str | None = None
    reason: str = ""


class _Splitter:
    """Reads through a window of the source, which moves forward."""

    def __init__(self, source: ByteSource, stop: int | None) -> None:
        self._window = Window(source, stop, CHUNK_SIZE)
        self._zeros = range(0)
        self._bytes_checked_in_vain = 0
        self._seen_legacy = False
        self._runs = RunFinder()

    def run_at(self, position: int) -> BatchRun | None:
        """Return the run of batches that starts at a position, as far as the window goes."""
        claim = self._claim(self._window.view(position, limits.BATCH_OVERHEAD), position)
        if claim.rule is not None or claim.magic != 2 or claim.size > CHUNK_SIZE:
            return None
        self._window.view(position, claim.size)  # Whole, also where it goes on past the window that was.
        window = self._window.rest(position)
        if not self._may_check(len(window)):
            return None
        run, checked_in_vain = self._runs.find(window, position)
        self._bytes_checked_in_vain += checked_in_vain
        return run

    def piece_at(self, position: int) -> Piece | None:
        """Return the piece that starts at a position, or None at the end."""
        may_have_grown = True
        while head := self._window.view(position, limits.BATCH_OVERHEAD):
            claim = self._claim(head, position)
            if claim.rule is None:
                if (batch := self._sound_batch(position, claim)) is not None:
                    return batch
                if position + claim.size > self._window.end:
                    continue  # The file has shrunk under the batch.
                piece: Piece = self._bad_crc(position, claim)
            else:
                if claim.rule == "tail-torn" and may_have_grown and self._has_grown():
                    may_have_grown = False  # Once: a size that is not true must not hold us here.
                    continue
                if claim.rule == "tail-torn" and self._goes_on_past_stop(position):
                    return None
                piece = self._not_a_batch(position, claim)
            return piece if piece.size_bytes > 0 else None  # Not so where the file has shrunk meanwhile.
        return None

    def _has_grown(self) -> bool:
        has_grown = self._window.has_grown()
        if has_grown:
            self._zeros = range(0)
        return has_grown

    def _goes_on_past_stop(self, position: int) -> bool:
        """Whether a sound batch starts at a position and ends after the stop."""
        if not self._window.stops_inside():
            return False
        self._window.look_past_stop()
        claim = self._claim(self._window.view(position, limits.BATCH_OVERHEAD), position)
        is_sound = claim.rule is None and self._sound_batch(position, claim) is not None
        self._window.end_at_stop()
        return is_sound

    def _claim(self, head: memoryview, position: int) -> _Claim:
        """Judge a header by what every batch must keep, its CRC apart."""
        left = self._window.end - position
        if left < limits.HEADER_UP_TO_MAGIC:
            return _Claim(left, rule="tail-torn", reason=f"{left} bytes are no batch header")
        length = int.from_bytes(head[8:12], "big", signed=True)
        magic = head[16]
        if length < limits.MIN_LEGACY_LENGTH:
            return _Claim(left, magic, "batch-length", f"a batch length of {length}")
        size = length + limits.LOG_OVERHEAD
        if size > left:
            return _Claim(left, magic, "tail-torn", f"a batch of {size} bytes, {left} of them there")
        if size > limits.MAX_STORED_BATCH_SIZE:
            return _Claim(left, magic, "batch-length", f"a batch of {size} bytes")
        if magic > 2:
            return _Claim(size, magic, "batch-magic", f"magic {magic}")
        least = limits.BATCH_OVERHEAD - limits.LOG_OVERHEAD if magic == 2 else legacy.min_length(magic)
        if length < least:
            return _Claim(left, magic, "batch-length", f"a batch length of {length} with magic {magic}")
        return _Claim(size, magic)

    def _may_check(self, size: int) -> bool:
        """Whether checking so many bytes is in proportion: it is not after many that were checked in vain."""
        allowed = _CHECKS_IN_VAIN + _CHECKS_IN_VAIN_PER_BYTE * self._window.end
        return size <= _ALWAYS_CHECKED or self._bytes_checked_in_vain + size <= allowed

    def _sound_batch(self, position: int, claim: _Claim) -> RecordBatch | LegacyBatch | None:
        """Return the batch at a position if its CRC holds."""
        if not self._may_check(claim.size):
            return None
        batch = self._checked_batch(position, claim)
        if batch is None:
            self._bytes_checked_in_vain += claim.size
        return batch

    def _checked_batch(self, position: int, claim: _Claim) -> RecordBatch | LegacyBatch | None:
        if claim.size > _IN_ONE_PIECE and not self._crc_holds_in_parts(position, claim):
            return None
        view = self._window.view(position, claim.size)
        if len(view) < claim.size:
            return None
        if claim.magic == 2:
            if crc32c(view[CRC_START:]) != int.from_bytes(view[17:21], "big"):
                return None
            return RecordBatch(view, position, crc_is_checked=True)
        message = LegacyBatch(view, position)
        if not message.crc_holds:
            return None
        self._seen_legacy = True
        return message

    def _crc_holds_in_parts(self, position: int, claim: _Claim) -> bool:
        """Whether the CRC holds, in the memory of a chunk."""
        at, checksum = (CRC_START, crc32c) if claim.magic == 2 else (legacy.CRC_START, crc32)
        stored = int.from_bytes(self._window.view(position, limits.BATCH_OVERHEAD)[at - 4 : at], "big")
        crc = 0
        at, end = position + at, position + claim.size
        while at < end:
            part = self._window.view(at, min(CHUNK_SIZE, end - at))
            if not part:
                return False
            crc = checksum(part, crc)
            at += len(part)
        return crc == stored

    def _bad_crc(self, position: int, claim: _Claim) -> TornTail | Corruption:
        """The header is possible and the CRC does not hold: is the length to be believed?"""
        end = position + claim.size
        reason = "the stored CRC is not that of the bytes"
        if not self._may_check(claim.size):
            reason = "its CRC was not checked: too many lengths before it were wrong"
        if not self._starts_a_piece(end) or end > self._window.end:
            return self._corruption(position, "batch-crc", reason)
        damage = self._with_length_confirmed(position, claim, "batch-crc", reason)
        if damage.size_bytes == claim.size and self._last_sector_is_missing(position, end):
            return TornTail(position, self._last_data(position, end) - position, "a batch of which the end is zeros")
        return damage

    def _with_length_confirmed(self, position: int, claim: _Claim, rule: str, reason: str) -> Corruption:
        """Damage that ends where its length says, unless that would cost a batch inside it that is not part of it."""
        # Where no message of magic 0 or 1 has been, a sound batch inside what looks like one says that it is none.
        may_hold_batches = claim.magic >= 2 or self._seen_legacy
        if self._next_batch(position + 1, position + claim.size, in_its_own_right=may_hold_batches) is not None:
            return self._corruption(position, rule, reason)
        batch: RecordBatch | LegacyBatch | None = None
        if claim.size <= _IN_ONE_PIECE and len(view := self._window.view(position, claim.size)) == claim.size:
            if claim.magic < 2:
                batch = LegacyBatch(view, position)
            elif claim.size >= limits.BATCH_OVERHEAD:
                batch = RecordBatch(view, position)
        return Corruption(position, claim.size, reason, rule, batch)

    def _starts_a_piece(self, position: int) -> bool:
        """Whether what stands at a position could follow a batch: the end, padding, or a likely header."""
        head = self._window.peek(position, limits.BATCH_OVERHEAD)
        if len(head) < limits.HEADER_UP_TO_MAGIC or is_likely_header(head) or self._is_zero(position):
            return True
        claim = self._claim(head, position)
        return claim.rule is None and self._sound_batch(position, claim) is not None

    def _not_a_batch(self, position: int, claim: _Claim) -> Piece:
        """The header is not possible: padding, a torn tail, or damage."""
        if self._is_zero(position):
            return ZeroPadding(position, self._window.end - position)
        end = position + claim.size
        if claim.rule == "batch-magic" and self._starts_a_piece(end) and end <= self._window.end:
            return self._with_length_confirmed(position, claim, claim.rule, claim.reason)
        if claim.rule != "tail-torn":
            return self._corruption(position, str(claim.rule), claim.reason)
        damage = self._corruption(position, "batch-overrun", claim.reason)
        head = self._window.view(position, limits.BATCH_OVERHEAD)
        is_likely = len(head) < limits.HEADER_UP_TO_MAGIC or is_likely_header(head)
        if is_likely and self._is_zero(damage.position + damage.size_bytes) and not self._is_all_there(position):
            return TornTail(position, self._window.end - position, claim.reason)
        return damage

    def _is_all_there(self, position: int) -> bool:
        """Whether the CRC of a batch holds for all bytes to the end of the input: then its length is what is wrong."""
        size = self._window.end - position
        if size < limits.BATCH_OVERHEAD or not self._may_check(size):
            return False
        self._bytes_checked_in_vain += size
        return self._crc_holds_in_parts(position, _Claim(size))

    def _corruption(self, position: int, rule: str, reason: str) -> Corruption:
        """Damage from a position to the next batch whose CRC holds, or to the padding at the end."""
        end = self._next_batch(position + 1, self._window.end)
        if end is None:
            end = self._last_data(position, self._window.end)
        return Corruption(position, end - position, reason, rule)

    def _next_batch(self, start: int, stop: int, *, in_its_own_right: bool = False) -> int | None:
        """Return the position of the first batch whose CRC holds and that starts before ``stop``, or None.

        Batches of magic 0 and 1 count where the input has had one: their headers say too little to look for them
        blindly.

        Args:
            start: where to begin.
            stop: where to end, exclusive; the batch may go on past it.
            in_its_own_right: whether to pass over a batch that nothing like a piece follows: a record may hold one.
        """
        for position in self._candidates(start, stop):
            head = self._window.view(position, limits.BATCH_OVERHEAD)
            if len(head) > _MAGIC_POSITION and head[_MAGIC_POSITION] == 2 and not is_likely_header(head):
                continue
            claim = self._claim(head, position)
            if claim.rule is not None or self._sound_batch(position, claim) is None:
                continue
            if not in_its_own_right or self._starts_a_piece(position + claim.size):
                return position
        return None

    def _candidates(self, start: int, stop: int) -> Iterator[int]:
        """Yield the positions of what may be batch headers, by the look of their magic and attributes."""
        pattern = _ANY_MAGIC if self._seen_legacy else _MAGIC_2
        size = _SECTOR_SIZE  # Most searches end soon.
        while start < stop:
            size = min(size, stop - start)
            chunk = bytes(self._window.view(start + _MAGIC_POSITION, size + _LOOK_AHEAD))
            for found in re.finditer(pattern, chunk):
                if found.start() < size:
                    yield start + found.start()
            # In a hole, there are neither magics nor lengths.
            start = max(start + size, self._window.after_hole(start + size + _LENGTH_POSITION) - _MAGIC_POSITION)
            size = min(2 * size, CHUNK_SIZE)

    def _is_zero(self, start: int) -> bool:
        """Whether all bytes from a position to the end of the input are zero; so, if there are none."""
        if start not in self._zeros:
            self._zeros = range(start, self._first_data(start))
        return self._zeros.stop >= self._window.end

    def _first_data(self, start: int) -> int:
        """Return the position of the first byte that is not zero, or the end of the input."""
        size = _SECTOR_SIZE  # Mostly the first byte will do; a long run of zeros is read in growing steps.
        while chunk := bytes(self._window.peek(start, size)):
            if chunk != _ZEROS[: len(chunk)]:
                return start + len(chunk) - len(chunk.lstrip(b"\0"))
            start = self._window.after_hole(start + len(chunk))
            size = min(2 * size, CHUNK_SIZE)
        return start

    def _last_data(self, start: int, end: int) -> int:
        """Return the position after the last byte that is not zero, or ``start``."""
        while end > start:
            first = max(start, end - CHUNK_SIZE)
            if data := bytes(self._window.peek(first, end - first)).rstrip(b"\0"):
                return first + len(data)
            end = start + bisect.bisect_left(range(start, first), first, key=self._window.after_hole)
        return start

    def _last_sector_is_missing(self, position: int, end: int) -> bool:
        """Whether all is zero to the end of the input, from a sector boundary inside the batch on.

        A few zeros prove nothing: most batches end in some.
        """
        boundary = (end - _FEW_ZEROS) // _SECTOR_SIZE * _SECTOR_SIZE
        return boundary > position and self._is_zero(boundary)


def is_likely_header(head: memoryview | bytes) -> bool:
    """Judge a header of magic 2 as a reader that has lost its way must: by every field that has a range.

    A header that is cut by the end of the input is judged by its whole fields; whether the batch fits is not judged.
    """
    if len(head) < limits.BATCH_OVERHEAD:
        whole = max(end for end in _FIELD_ENDS if end <= len(head))
        head = bytes(head[:whole]).ljust(limits.BATCH_OVERHEAD, b"\0")
    (
        base_offset,
        length,
        epoch,
        magic,
        _,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = HEADER.unpack(head)
    area = length + limits.LOG_OVERHEAD - limits.BATCH_OVERHEAD
    is_likely: bool = (
        magic == 2
        and base_offset >= 0
        and area >= 0
        and 0 <= attributes < 128
        and attributes & 7 <= 4
        and last_offset_delta >= 0
        and 0 <= count <= last_offset_delta + 1
        and (attributes & 7 != 0 or count * limits.MIN_RECORD_SIZE <= area)
        and min(epoch, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence) >= -1
    )
    return is_likely
