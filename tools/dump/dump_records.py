# SPDX-License-Identifier: Apache-2.0
"""Dumps files of batches: segments and snapshots."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

import attrs

from raftlog.errors import DecodeError, MissingExtraError, without_frames
from raftlog.invariants import instance_of, present
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import Corruption, Piece, TornTail, ZeroPadding, split, split_runs
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.window import ByteSource
from raftlog.records.kernel_choice import IS_COMPILED
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.dump.kafka_lines import KafkaLines, LinePlace
from raftlog.tools.dump.seek import start_position
from raftlog.tools.dump.selection import Selection
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import AnyRecord, Payload, PayloadDecoder, PlainDecoder, ValueDecoder
from raftlog.tools.terminal.progress import Progress

if TYPE_CHECKING:
    from raftlog.records.columns.columns import Chunk
    from raftlog.tools.dump.rendering import Renderer
    from raftlog.tools.follow.follower import Growth

Line = str | bytes | Finding | MissingExtraError
"""An item of a dump, in order: text to print, a finding to report, or an error because a package is missing."""

_TailPiece = TornTail | ZeroPadding | Corruption
_NOTHING: Final = Payload()


@attrs.define
class RecordsDump:
    """Turns files of batches into lines.

    Attributes:
        renderer: the output format.
        line_writer: writes lines of this format many at a time; None if each is rendered separately.
        deep: whether to read records.
        decodes_payloads: whether the output shows decoded payloads.
        decode_corrupt: whether to read records of batches whose CRC does not match.
        max_bytes: how far into a file to read, or None.
        left: how many more records may be shown, or batches if records are not read; None for any number.
        has_shown_secret: whether a record has been shown with an unhidden secret.
    """

    renderer: "Renderer"
    line_writer: KafkaLines | None
    deep: bool
    decodes_payloads: bool
    decode_corrupt: bool
    max_bytes: int | None
    left: int | None
    has_shown_secret: bool = attrs.field(default=False, init=False)

    def lines(self, file: InputFile, decoder: PayloadDecoder, selection: Selection) -> Iterator[Line]:
        """Yield the lines of one file.

        Raises:
            StorageError: the file cannot be read.
        """
        with open_source(file.path) as source:
            yield self.renderer.begin(file)
            start = 0 if selection.is_everything else start_position(file, source, selection)
            progress = Progress(file.path, source.size())
            coverage = Coverage()
            quick = self._quick_lines(selection)
            tail: list[_TailPiece] = []
            with progress:
                for piece in self._pieces(source, start, is_quick=quick is not None):
                    coverage.add(piece)
                    progress.reached(piece.position)
                    tail = [*tail, piece] if _may_be_tail(piece) else []
                    if isinstance(piece, Piece):
                        yield from self._piece(file, piece, decoder, selection)
                        if self.left == 0 or _is_past(piece, selection):
                            break
                    elif quick is not None:
                        yield from self._many(file, piece, quick, decoder)
            if self.max_bytes is None and (size_bytes := _tail_size(tail)):  # With a limit, Kafka does not report it.
                yield self.renderer.tail(file, size_bytes)
            yield self.renderer.end(file, coverage)

    def lines_of_growth(self, growth: "Growth", decoder: PayloadDecoder, selection: Selection) -> Iterator[Line]:
        """Yield the lines of what a followed segment has more, without its announcement."""
        for piece in growth.pieces:
            yield from self._piece(growth.file, piece, decoder, selection)
            if self.left == 0:
                return
        tail = [piece for piece in growth.pieces if _may_be_tail(piece)]
        if size_bytes := _tail_size(tail):
            yield self.renderer.tail(growth.file, size_bytes)

    def _quick_lines(self, selection: Selection) -> KafkaLines | None:
        """Return the writer of many lines at a time, which can only print all that Kafka prints of a file, or None."""
        return self.line_writer if IS_COMPILED and selection.is_everything and self.left is None else None

    def _pieces(self, source: ByteSource, start: int, *, is_quick: bool) -> "Iterator[Piece | BatchRun | Chunk]":
        if not is_quick:
            return split(source, start=start, stop=self.max_bytes)
        if not self.deep:
            return split_runs(source, start=start, stop=self.max_bytes)
        from raftlog.records.columns.columns import read_columns  # Slow to import, and needed only to show records.

        return read_columns(source, start=start, stop=self.max_bytes, data_only=False)

    def _many(
        self, file: InputFile, found: "BatchRun | Chunk", quick: KafkaLines, decoder: PayloadDecoder
    ) -> Iterator[Line]:
        if not isinstance(found, BatchRun):
            yield from self._chunk(file, found, quick, decoder)
            return
        for line in quick.batches(found):
            if isinstance(line, bytes):
                yield line
            else:
                yield from self._batch(file, found.batch(line.batch), decoder, Selection())

    def _chunk(self, file: InputFile, chunk: "Chunk", quick: KafkaLines, decoder: PayloadDecoder) -> Iterator[Line]:
        run = chunk.batches.run
        unread = dict(chunk.errors)
        for found in self._quick_chunk(quick, chunk, decoder):
            if isinstance(found, bytes):
                yield found
                continue
            batch = run.batch(found.batch)
            if found.row is not None:
                (record,) = present(chunk.records, "what was unpacked").objects(found.row, found.row + 1)
                yield from self._record(file, batch, record, self._payload(record, decoder))
            elif batch.is_control or found.batch in unread:
                yield from self._batch(file, batch, decoder, Selection())
            else:
                yield from self._batch(file, batch, decoder, Selection(), chunk.objects(found.batch))

    def _quick_chunk(self, quick: KafkaLines, chunk: "Chunk", decoder: PayloadDecoder) -> Iterator[bytes | LinePlace]:
        """Yield the lines that can be printed many at a time, and the places of all others."""
        if quick.skips_record_metadata:
            return map(LinePlace, range(len(chunk.batches)))
        if not self.decodes_payloads or decoder == PlainDecoder():
            return quick.chunk(chunk)
        if isinstance(decoder, ValueDecoder):
            records = present(chunk.records, "what was unpacked")
            return quick.chunk(chunk, decoder.value_texts(records.values()))
        return map(LinePlace, range(len(chunk.batches)))

    def _piece(self, file: InputFile, piece: Piece, decoder: PayloadDecoder, selection: Selection) -> Iterator[Line]:
        match piece:
            case RecordBatch() | LegacyBatch():
                yield from self._batch(file, piece, decoder, selection)
            case TornTail():
                yield Finding(file.path, piece.rule, piece.reason, piece.position, piece.size_bytes)
            case ZeroPadding():
                yield Finding(file.path, piece.rule, "nothing but zeros", piece.position, piece.size_bytes)
            case Corruption():
                yield from self._corruption(file, piece, decoder, selection)

    def _corruption(
        self, file: InputFile, piece: Corruption, decoder: PayloadDecoder, selection: Selection
    ) -> Iterator[Line]:
        offset = None
        if piece.batch is not None:
            offset = piece.batch.base_offset
            yield from self._batch(file, piece.batch, decoder, selection)
        yield Finding(file.path, piece.rule, piece.reason, piece.position, piece.size_bytes, offset)

    def _batch(
        self,
        file: InputFile,
        batch: RecordBatch | LegacyBatch,
        decoder: PayloadDecoder,
        selection: Selection,
        records: Iterable[AnyRecord] | None = None,
    ) -> Iterator[Line]:
        """Yield the lines of a batch and its records; ``records`` are those that were read already."""
        if not selection.may_hold(batch):
            return
        is_read = self.deep or selection.by_record
        if selection.is_everything or not is_read:
            yield self._shown(self.renderer.batch(file, batch), counts=not is_read)
        if not is_read:
            yield from self._header_problem(file, batch)
        if not is_read or not (batch.crc_holds or self.decode_corrupt):
            return
        is_announced = selection.is_everything
        decode = _control_decoder() if isinstance(batch, RecordBatch) and batch.is_control else None
        try:
            for record in batch.records(check_crc=not self.decode_corrupt) if records is None else records:
                payload = self._payload(record, decoder) if decode is None else decode(record)
                if not selection.holds(record, payload.type_name):
                    continue
                if not is_announced:
                    is_announced = True
                    yield self._shown(self.renderer.batch(file, batch), counts=not self.deep)
                yield from self._record(file, batch, record, payload)
                if not self.deep or self.left == 0:
                    return
        except DecodeError as error:
            yield Finding.of_error(error, file.path)
        except MissingExtraError as error:
            yield without_frames(error)

    def _header_problem(self, file: InputFile, batch: RecordBatch | LegacyBatch) -> Iterator[Finding]:
        """Yield the errors in a sound batch's header that prevent reading its records."""
        if not batch.crc_holds:
            return  # The damage is reported elsewhere, and the header may be wrong too.
        try:
            batch.ensure_readable()
        except DecodeError as error:
            yield Finding.of_error(error, file.path)

    def _payload(self, record: AnyRecord, decoder: PayloadDecoder) -> Payload:
        return decoder.decode(record) if self.decodes_payloads else _NOTHING

    def _record(
        self, file: InputFile, batch: RecordBatch | LegacyBatch, record: AnyRecord, payload: Payload
    ) -> Iterator[Line]:
        """Yield a record's problem, and its line if records are shown."""
        if payload.problem is not None:
            yield _problem(file, batch, record, payload.problem)
        if not self.deep:
            return
        self.has_shown_secret |= payload.has_secret and not payload.is_redacted
        if isinstance(record, LegacyRecord):
            line = self.renderer.legacy_record(file, record, payload)
        else:
            line = self.renderer.record(file, instance_of(batch, RecordBatch), record, payload)
        yield self._shown(line, counts=True)

    def _shown(self, text: str, *, counts: bool) -> str:
        if counts and self.left is not None:
            self.left -= 1
        return text


def _may_be_tail(piece: "Piece | BatchRun | Chunk") -> TypeGuard[_TailPiece]:
    return isinstance(piece, TornTail | ZeroPadding) or (isinstance(piece, Corruption) and piece.batch is None)


def _tail_size(tail: Sequence[_TailPiece]) -> int:
    """Return how many bytes after the last batch Kafka reports as invalid; 0 if it crashes on them."""
    size_bytes = sum(piece.size_bytes for piece in tail)
    is_cut = bool(tail) and tail[0].rule in {"tail-torn", "batch-overrun"}
    # Kafka reports any bytes that are too few for a header as invalid.
    return size_bytes if is_cut or size_bytes <= limits.HEADER_UP_TO_MAGIC else 0


def _control_decoder() -> Callable[[AnyRecord], Payload]:
    from raftlog.tools.payloads.message_payloads import (
        control_payload,  # Slow to import, and needed only for control records.
    )

    return control_payload


def _problem(file: InputFile, batch: RecordBatch | LegacyBatch, record: AnyRecord, problem: DecodeError) -> Finding:
    return Finding(file.path, problem.rule or "message-field", problem.reason, batch.position, offset=record.offset)


def _is_past(piece: Piece, selection: Selection) -> bool:
    """Whether no selected record can follow, since offsets increase."""
    return (
        isinstance(piece, RecordBatch) and selection.to_offset is not None and piece.next_offset >= selection.to_offset
    )
