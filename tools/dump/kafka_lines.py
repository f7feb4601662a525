# SPDX-License-Identifier: Apache-2.0
"""Writes the lines of kafka-dump-log by the kernel, many at a time; ``KafkaText`` prints the same lines one by one.

``KafkaText`` must print what the kernel does not handle, such as a batch with a delete horizon or a possible secret.
Both use the same templates, which are the only definition of each line.
"""

import functools
import itertools
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from raftlog.invariants import present
from raftlog.records.batches.batch import CONTROL_FLAG, DELETE_HORIZON_FLAG, TimestampType
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.kernel_choice import kernel
from raftlog.tools.dump.kafka_text import KafkaText, batch_template, record_template
from raftlog.tools.payloads.redaction import SECRET_API_KEYS

if TYPE_CHECKING:
    from raftlog.records.columns.columns import Chunk

_OUTPUT_SIZE: Final = 256 * 1024
_NO_ENDS: Final = array("q")
_TIMESTAMP_TYPES: Final = (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)
_SECRET_KINDS: Final = bytes(kind in SECRET_API_KEYS for kind in range(256))


class LinePlace(NamedTuple):
    """A batch of a chunk, by its index; or one of its records, by row."""

    batch: int
    row: int | None = None


class KafkaLines:
    """Renders runs of sound batches, and chunks of their records, with the same result as a ``KafkaText``.

    Args:
        text: the renderer of single lines.
    """

    def __init__(self, text: KafkaText) -> None:
        self._text = text
        self._output = memoryview(bytearray(_OUTPUT_SIZE))

    @property
    def skips_record_metadata(self) -> bool:
        """Whether records are printed without their metadata, which must be done one by one."""
        return self._text.skip_record_metadata

    def batches(self, run: BatchRun) -> Iterator[bytes | LinePlace]:
        """Yield the lines of all batches, and the places of those that the caller must render."""
        index = 0
        while index < len(run):
            index, size = kernel.batch_lines(
                run.data, run.positions, run.sizes, index, run.position, _batch_templates(), self._output
            )
            if size:
                yield bytes(self._output[:size])
            else:
                yield LinePlace(index)
                index += 1

    def chunk(self, chunk: "Chunk", value_texts: list[bytes] | None = None) -> Iterator[bytes | LinePlace]:
        """Yield the lines of all batches and their records, and the places of those that the caller must render.

        Args:
            chunk: all columns of some batches.
            value_texts: the text to show instead of each record's key and value; empty bytes leave the record to the
                caller.
        """
        stops = [batch for batch, _ in chunk.errors]
        first = 0
        for stop in stops:
            yield from self._sound_batches(chunk, first, stop, value_texts)
            yield LinePlace(stop)
            first = stop + 1
        yield from self._sound_batches(chunk, first, len(chunk.batches), value_texts)

    def _sound_batches(
        self, chunk: "Chunk", first: int, last: int, value_texts: list[bytes] | None
    ) -> Iterator[bytes | LinePlace]:
        run, records = chunk.batches.run, present(chunk.records, "what was unpacked")
        texts, text_ends = b"", _NO_ENDS
        if value_texts is not None:
            texts, text_ends = b"".join(value_texts), array("q", itertools.accumulate(map(len, value_texts)))
        batch, row = first, -1
        while batch < last:
            batch, row, size = kernel.chunk_lines(
                run.data,
                run.positions,
                run.sizes,
                batch,
                last,
                run.position,
                _batch_templates(with_control=False),
                records.data,
                row,
                records.ends,
                records.capacity,
                records.longs,
                records.ints,
                _record_templates(),
                self._text.print_payloads,
                _SECRET_KINDS,
                texts,
                text_ends,
                self._output,
            )
            if size:
                yield bytes(self._output[:size])
            elif row >= 0:
                yield LinePlace(batch, row)
                row += 1
            elif batch < last:
                yield LinePlace(batch)
                batch += 1


@functools.cache
def _batch_templates(*, with_control: bool = True) -> bytes:
    """Return the templates of a batch's line, one per value of its attributes; empty for an unknown codec."""
    templates = bytearray()
    for attributes in range(DELETE_HORIZON_FLAG):
        is_left = attributes & 7 > 4 or (attributes & CONTROL_FLAG and not with_control)
        template = b"" if is_left else _marked(batch_template(attributes) + "\n{}")
        templates += template.ljust(kernel.TEMPLATE_SIZE, kernel.MARK)
    return bytes(templates)


@functools.cache
def _record_templates() -> bytes:
    """Return the templates of a record's line, for CreateTime and for LogAppendTime."""
    mark = kernel.MARK.decode()
    templates = (record_template(each, mark) + "{} key: {} payload: {}" for each in _TIMESTAMP_TYPES)
    return b"".join(_marked(template).ljust(kernel.TEMPLATE_SIZE, kernel.MARK) for template in templates)


def _marked(template: str) -> bytes:
    return template.encode().replace(b"{}", kernel.MARK)
