# SPDX-License-Identifier: Apache-2.0
"""The lines of kafka-dump-log, many at a time: what ``KafkaText`` prints one by one, written by the kernel.

Whatever the kernel leaves to others, such as a batch with a delete horizon or a key that is not ASCII, is printed by
``KafkaText``: the templates that both use are the one definition of each line.
"""

import functools
from collections.abc import Iterator
from typing import Final

from raftlog.records.batch import DELETE_HORIZON_FLAG, RecordBatch, TimestampType
from raftlog.records.batch_run import BatchRun
from raftlog.records.columns import Chunk, RecordColumns
from raftlog.records.kernel_choice import kernel
from raftlog.tools.inputs import InputFile
from raftlog.tools.kafka_text import KafkaText, batch_template, record_template
from raftlog.tools.payloads import Payload, PlainDecoder

_OUTPUT_SIZE: Final = 256 * 1024
_NOTHING: Final = Payload()


class KafkaLines:
    """Renders runs of sound batches, and chunks of their records, in the words of a ``KafkaText``.

    Args:
        text: what prints a single line.

    Attributes:
        has_shown_secret: whether a record that was rendered is a metadata record with a secret.
    """

    def __init__(self, text: KafkaText) -> None:
        self.has_shown_secret = False
        self._text = text
        self._output = memoryview(bytearray(_OUTPUT_SIZE))

    def batches(self, file: InputFile, run: BatchRun) -> Iterator[str | bytes]:
        """Yield the lines of all batches."""
        index = 0
        while index < len(run):
            index, size = kernel.batch_lines(
                run.data, run.positions, run.sizes, index, run.position, _batch_templates(), self._output
            )
            if size:
                yield bytes(self._output[:size])
            else:
                yield self._text.batch(file, run.batch(index))
                index += 1

    def records(self, file: InputFile, batch: RecordBatch, chunk: Chunk, index: int) -> Iterator[str | bytes]:
        """Yield the lines of all records of one batch: of data, as plain text.

        Args:
            file: where it is.
            batch: the batch.
            chunk: all columns of it and others.
            index: of the batch in the chunk.
        """
        records = chunk.records
        assert records is not None
        row = records.ends[index - 1] if index else 0
        end = records.ends[index]
        template = _record_template(batch.timestamp_type)
        while row < end:
            row, size = kernel.record_lines(
                records.data,
                row,
                end,
                records.capacity,
                records.longs,
                records.ints,
                batch.base_offset,
                batch.base_sequence,
                template,
                self._text.print_payloads,
                self._output,
            )
            if size:
                yield bytes(self._output[:size])
            elif row < end:
                yield self._one_record(file, batch, records, row)
                row += 1

    def _one_record(self, file: InputFile, batch: RecordBatch, records: RecordColumns, row: int) -> str:
        (record,) = records.objects(row, row + 1)
        payload = PlainDecoder().decode(record) if self._text.print_payloads else _NOTHING
        self.has_shown_secret |= payload.has_secret
        return self._text.record(file, batch, record, payload)


@functools.cache
def _batch_templates() -> bytes:
    """Make the template of a batch's line for each value of its attributes; one of an unknown codec is left empty."""
    templates = bytearray()
    for attributes in range(DELETE_HORIZON_FLAG):
        template = b"" if attributes & 7 > 4 else _marked(batch_template(attributes) + "\n{}")
        templates += template.ljust(kernel.TEMPLATE_SIZE, kernel.MARK)
    return bytes(templates)


@functools.cache
def _record_template(timestamp_type: TimestampType) -> bytes:
    return _marked(record_template(timestamp_type) + "{} key: {} payload: {}")


def _marked(template: str) -> bytes:
    return template.encode().replace(b"{}", kernel.MARK)
