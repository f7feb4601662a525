# SPDX-License-Identifier: Apache-2.0
"""Splits a log into pieces: batches, a torn tail, zero padding and corruption.

Each piece starts where the last one ended, and together they cover the whole input. A length is used only after a check
against the bytes that are present. After damaged bytes, the next piece starts at the next batch whose CRC holds, so
that damage hides no sound batch.
"""

import bisect
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

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
"""A batch above this size is read as a whole only after its CRC was checked chunk by chunk."""
_SECTOR_SIZE: Final = 512
"""The largest unit that every disk writes atomically."""
_FEW_ZEROS: Final = 8
"""So many zeros at the end of a batch may be part of its data."""
_CHECKS_IN_VAIN: Final = 16 * 1024 * 1024
_CHECKS_IN_VAIN_PER_BYTE: Final = 16
"""The budget of bytes whose CRC is computed for false headers: a fixed part, and a part per byte of input."""

_ZEROS: Final = bytes(CHUNK_SIZE)
_FIELD_ENDS: Final = (0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57)
_ALWAYS_CHECKED: Final = 32 * 1024
"""Checking a batch up to this size costs no more than finding its header, so the budget does not apply."""
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
_LOOK_AHEAD: Final = 7
"""How many bytes after the magic the patterns below need."""
_MAGIC_2: Final = rb"(?s:\x02(?=.{4}\x00[\x00-\x7f]{2}))"
_ANY_MAGIC: Final = _MAGIC_2 + rb"|(?s:(?<!\x00{4}.{4})[\x00\x01](?=[\x00-\x0f]))"
"""Excludes zeros in a hole, where the length would be zero too."""


def _view(buffer: Buffer) -> memoryview:
    # attrs reads a function's annotations. Given memoryview itself, it would parse a signature at every startup.
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
    """The input ends inside a batch: a write was cut short, or is still in progress."""

    position: int
    size_bytes: int
    reason: str
    rule: str = "tail-torn"


@attrs.frozen
class ZeroPadding:
    """Only zero bytes up to the end of the input: preallocated space, or the result of a crash."""

    position: int
    size_bytes: int
    rule: str = "tail-zero"


@attrs.frozen
class Corruption:
    """Damaged bytes.

    Attributes:
        position: where they start.
        size_bytes: how many there are.
        reason: what is wrong at ``position``.
        rule: the rule that is broken there.
        batch: the damaged batch, if the bytes after it confirm its length. Do not trust its contents.
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
        start: byte position of the first piece; it need not be the start of a batch.
        stop: byte position to end at, exclusive: a batch that continues past it is neither yielded nor reported. None
            means the end of the input.

    Memory use is that of the largest batch whose CRC holds, or 16 MiB if that is more. Time is linear in the size of
    the input, even for hostile input: CRC checks for false headers have a budget, and a batch above 32 KiB that exceeds
    the rest of the budget is reported as corruption without a check.
    """
    for piece in split_runs(source, start=start, stop=stop):
        if isinstance(piece, BatchRun):
            yield from piece.batches()
        else:
            yield piece


def split_runs(
    source: ByteSource, *, start: int = 0, stop: int | None = None
) -> Iterator[BatchRun | LegacyBatch | TornTail | ZeroPadding | Corruption]:
    """Yield the pieces of a log as ``split`` does, but with batches of magic 2 grouped into runs."""
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


class _Claim(NamedTuple):
    """The size that the header at a position claims, and the rule that the header breaks, if any."""

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
        """Return the run of batches that starts at a position and lies inside the window."""
        claim = self._claim(self._window.view(position, limits.BATCH_OVERHEAD), position)
        if claim.rule is not None or claim.magic != 2 or claim.size > CHUNK_SIZE:
            return None
        self._window.view(position, claim.size)  # Moves the window, so that it holds the whole batch.
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
                    continue  # The file has shrunk meanwhile, and no longer holds the whole batch.
                piece: Piece = self._bad_crc(position, claim)
            else:
                if claim.rule == "tail-torn" and may_have_grown and self._has_grown():
                    may_have_grown = False  # Once only, in case a source always reports growth.
                    continue
                if claim.rule == "tail-torn" and self._continues_past_stop(position):
                    return None
                piece = self._not_a_batch(position, claim)
            return piece if piece.size_bytes > 0 else None  # Empty if the file has shrunk meanwhile.
        return None

    def _has_grown(self) -> bool:
        has_grown = self._window.has_grown()
        if has_grown:
            self._zeros = range(0)
        return has_grown

    def _continues_past_stop(self, position: int) -> bool:
        """Whether a sound batch starts at a position and ends after the stop."""
        if not self._window.stops_inside():
            return False
        self._window.look_past_stop()
        claim = self._claim(self._window.view(position, limits.BATCH_OVERHEAD), position)
        is_sound = claim.rule is None and self._sound_batch(position, claim) is not None
        self._window.end_at_stop()
        return is_sound

    def _claim(self, head: memoryview, position: int) -> _Claim:
        """Check a header by all rules for batches except the CRC."""
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
        """Whether the budget for checks in vain allows a check of so many bytes."""
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
        """Whether the CRC holds, with only one chunk in memory at a time."""
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
        """Classify a batch with a valid header and a wrong CRC, by whether its length can be trusted."""
        end = position + claim.size
        reason = "the stored CRC is not that of the bytes"
        if not self._may_check(claim.size):
            reason = "its CRC was not checked: too many lengths before it were wrong"
        if not self._starts_a_piece(end) or end > self._window.end:
            return self._corruption(position, "batch-crc", reason)
        damage = self._with_length_confirmed(position, claim, "batch-crc", reason)
        if damage.size_bytes == claim.size and self._last_sector_is_missing(position, end):
            return TornTail(position, self._last_data(position, end) - position, "a batch whose end is zeros")
        return damage

    def _with_length_confirmed(self, position: int, claim: _Claim, rule: str, reason: str) -> Corruption:
        """Return damage up to the end that its length gives, unless a separate batch lies inside that range."""
        # If the log has had no message of magic 0 or 1, and what looks like one contains a sound batch, then it is not
        # such a message.
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
        """Whether the bytes at a position could follow a batch: the end, padding, or a likely header."""
        head = self._window.peek(position, limits.BATCH_OVERHEAD)
        if len(head) < limits.HEADER_UP_TO_MAGIC or is_likely_header(head) or self._is_zero(position):
            return True
        claim = self._claim(head, position)
        return claim.rule is None and self._sound_batch(position, claim) is not None

    def _not_a_batch(self, position: int, claim: _Claim) -> Piece:
        """Classify bytes with an invalid header as padding, a torn tail or damage."""
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
        """Whether the CRC of a batch matches all bytes to the end of the input: then only its length is wrong."""
        size = self._window.end - position
        if size < limits.BATCH_OVERHEAD or not self._may_check(size):
            return False
        self._bytes_checked_in_vain += size
        return self._crc_holds_in_parts(position, _Claim(size))

    def _corruption(self, position: int, rule: str, reason: str) -> Corruption:
        """Return damage from a position to the next batch whose CRC holds, or to the padding at the end."""
        end = self._next_batch(position + 1, self._window.end)
        if end is None:
            end = self._last_data(position, self._window.end)
        return Corruption(position, end - position, reason, rule)

    def _next_batch(self, start: int, stop: int, *, in_its_own_right: bool = False) -> int | None:
        """Return the position of the first batch whose CRC holds and that starts before ``stop``, or None.

        Batches of magic 0 and 1 are found only if the input has had one before: their headers have too few checkable
        fields for a blind search.

        Args:
            start: where to begin.
            stop: where to end, exclusive; the batch itself may continue past it.
            in_its_own_right: whether to skip a batch that is not followed by another piece: it may be the content of a
                record.
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
        """Yield positions whose magic and attributes look like those of a batch header."""
        pattern = _ANY_MAGIC if self._seen_legacy else _MAGIC_2
        size = _SECTOR_SIZE  # Most searches end soon.
        while start < stop:
            size = min(size, stop - start)
            chunk = bytes(self._window.view(start + _MAGIC_POSITION, size + _LOOK_AHEAD))
            for found in re.finditer(pattern, chunk):
                if found.start() < size:
                    yield start + found.start()
            # A hole contains neither a magic nor a length.
            start = max(start + size, self._window.after_hole(start + size + _LENGTH_POSITION) - _MAGIC_POSITION)
            size = min(2 * size, CHUNK_SIZE)

    def _is_zero(self, start: int) -> bool:
        """Whether all bytes from a position to the end of the input are zero; true also at the end."""
        if start not in self._zeros:
            self._zeros = range(start, self._first_data(start))
        return self._zeros.stop >= self._window.end

    def _first_data(self, start: int) -> int:
        """Return the position of the first byte that is not zero, or the end of the input."""
        size = _SECTOR_SIZE  # The first byte usually decides; a long run of zeros is read in growing steps.
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
        """Whether all bytes are zero from a sector boundary inside the batch to the end of the input.

        A few zeros prove nothing, since most batches end in some.
        """
        boundary = (end - _FEW_ZEROS) // _SECTOR_SIZE * _SECTOR_SIZE
        return boundary > position and self._is_zero(boundary)


def is_likely_header(head: memoryview | bytes) -> bool:
    """Whether bytes look like a header of magic 2, judged by every field with a limited range.

    Used to find the next batch after damage. If the end of the input cuts the header, only its complete fields are
    judged. Whether the batch fits into the input is not checked.
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
