# SPDX-License-Identifier: Apache-2.0
"""The lines of kafka-dump-log, byte for byte. Source: DumpLogSegments."""

import functools
from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, RecordBatch, TimestampType, add_sequence
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.java_text import decode_utf8
from raftlog.records.messages.releases import DIALECTS, Release
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import Payload
from raftlog.tools.terminal.standard_error import printable

if TYPE_CHECKING:
    from raftlog.records.files.index_entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
    from raftlog.records.files.producer_snapshot import ProducerStateEntry
    from raftlog.tools.follow.notices import Notice

_BOOLEAN: Final = ("false", "true")


@functools.cache
def batch_template(attributes: int, magic: int = 2, *, crc_holds: bool = True) -> str:
    """Return the line of a batch without a delete horizon, with a ``{}`` for each of its numbers.

    They are: base offset, last offset, count, base sequence, last sequence, producer id, producer epoch, leader epoch,
    position, max timestamp, size and CRC.
    """
    return (
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} "
        "partitionLeaderEpoch: {} "
        f"isTransactional: {_BOOLEAN[bool(attributes & TRANSACTIONAL_FLAG)]} "
        f"isControl: {_BOOLEAN[bool(attributes & CONTROL_FLAG)]} deleteHorizonMs: {optional_long(None)} position: {{}} "
        f"{TimestampType.of_attributes(attributes).label}: {{}} size: {{}} magic: {magic} "
        f"compresscodec: {codec_label(attributes)} crc: {{}} isvalid: {_BOOLEAN[crc_holds]}"
    )


def batch_line(batch: RecordBatch) -> str:
    """Describe a batch of magic 2."""
    template = batch_template(batch.attributes & 0xFF, batch.magic, crc_holds=batch.crc_holds)
    if batch.delete_horizon_ms is not None:
        template = template.replace(optional_long(None), optional_long(batch.delete_horizon_ms))
    return template.format(
        batch.base_offset,
        batch.last_offset,
        batch.record_count,
        batch.base_sequence,
        batch.last_sequence,
        batch.producer_id,
        batch.producer_epoch,
        batch.partition_leader_epoch,
        batch.position,
        batch.max_timestamp,
        batch.size_bytes,
        batch.crc,
    )


@functools.lru_cache(256)
def record_template(timestamp_type: TimestampType, header_keys: str = "") -> str:
    """Return the text before a record's key and payload, with a ``{}`` for each of its numbers.

    They are: offset, timestamp, key size, value size and sequence.
    """
    keys = header_keys.replace("{", "{{").replace("}", "}}")
    return (
        f"| offset: {{}} {timestamp_type.label}: {{}} keySize: {{}} valueSize: {{}} sequence: {{}} headerKeys: [{keys}]"
    )


def legacy_batch_line(batch: LegacyBatch) -> str:
    """Describe a message of magic 0 or 1."""
    return (
        f"offset: {batch.base_offset} position: {batch.position} {batch.timestamp_type.label}: {batch.max_timestamp} "
        f"size: {batch.size_bytes} magic: {batch.magic} compresscodec: {codec_label(batch.attributes)} "
        f"crc: {batch.crc} isvalid: {_BOOLEAN[batch.crc_holds]}"
    )


def codec_label(attributes: int) -> str:
    """Return the name of the codec in a batch's attributes, even if it is unknown."""
    try:
        return CompressionType.of_attributes(attributes).label
    except DecodeError:
        return f"unknown({attributes & 7})"


def optional_long(value: int | None) -> str:
    """Format a number that may be missing as Java's OptionalLong does."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


@attrs.frozen
class KafkaText:
    """Renders values as lines of kafka-dump-log.

    Attributes:
        dialect: the release whose output to follow.
        print_payloads: whether to print keys and payloads.
        skip_record_metadata: whether to leave out all but keys and payloads.
    """

    dialect: Release
    print_payloads: bool = False
    skip_record_metadata: bool = False

    def begin(self, file: InputFile) -> str:
        """Announce a file."""
        lines = [f"Dumping {file.path}"]
        if file.kind is FileKind.LOG and file.base_offset is not None:
            lines.append(f"Log starting offset: {file.base_offset}")
        elif file.snapshot_id is not None:
            lines.append(f"Snapshot end offset: {file.snapshot_id.offset}, epoch: {file.snapshot_id.epoch}")
        elif file.kind is FileKind.BOOTSTRAP_SNAPSHOT:
            lines.append("KRaft bootstrap snapshot")
        return "\n".join(lines) + "\n"

    def gone(self, path: str, reason: str) -> str:
        """Say in its place that a file is not in the output."""
        return f"Dumping {path}\n{reason}\n"

    def notice(self, notice: "Notice") -> str:
        """Say what has become of a followed log, in a line that Kafka does not print."""
        return f"raftlog: {printable(notice.path)}: {notice.text}\n"

    def batch(self, file: InputFile, batch: RecordBatch | LegacyBatch) -> str:
        """Describe a batch."""
        return (batch_line(batch) if isinstance(batch, RecordBatch) else legacy_batch_line(batch)) + "\n"

    def record(self, file: InputFile, batch: RecordBatch, record: RecordView, payload: Payload) -> str:
        """Describe a record of a batch of magic 2."""
        if self.skip_record_metadata:
            line = "| "
        else:
            header_keys = ",".join([decode_utf8(key) for key, _ in record.headers])
            line = record_template(batch.timestamp_type, header_keys).format(
                record.offset,
                record.timestamp,
                _size(record.key),
                _size(record.value),
                add_sequence(batch.base_sequence, record.offset - batch.base_offset),
            )
        if batch.is_control:
            return "\n" if self.skip_record_metadata else f"{line}{self._control_text(payload)}\n"
        return self._with_payload(line, payload)

    def _control_text(self, payload: Payload) -> str:
        from raftlog.tools.payloads.message_payloads import control_text  # Slow to import.

        return control_text(payload, self.dialect)

    def legacy_record(self, file: InputFile, record: LegacyRecord, payload: Payload) -> str:
        """Describe a message of magic 0 or 1."""
        line = "| "
        if not self.skip_record_metadata:
            stray = "}" if self.dialect < DIALECTS["4.3"] else ""
            line = (
                f"| offset: {record.offset} {record.timestamp_type.label}: {record.timestamp} "
                f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
                f"isValid: {_BOOLEAN[record.crc_holds]} crc: {record.crc}{stray}"
            )
        return self._with_payload(line, payload)

    def _with_payload(self, line: str, payload: Payload) -> str:
        parts = []
        if self.print_payloads:
            if payload.key_text is not None:
                parts.append(f"key: {payload.key_text}")
            if payload.value_text is not None:
                parts.append(f"payload: {payload.value_text}")
        if not self.skip_record_metadata:
            return " ".join([line, *parts]) + "\n"
        if not parts:
            return "\n"
        # Up to 4.2 the bar is part of the key, so that a record without a key has no bar.
        bar = "| " if payload.key_text is not None or not self.dialect < DIALECTS["4.3"] else " "
        return f"{bar}{' '.join(parts)}\n"

    def tail(self, file: InputFile, size_bytes: int) -> str:
        """Report how many bytes follow the last whole batch."""
        return f"Found {size_bytes} invalid bytes at the end of {file.file_name}\n"

    def end(self, file: InputFile, coverage: Coverage) -> str:
        """Print nothing: Kafka does not account for bytes."""
        return ""

    def small_file(self, file: InputFile, kind: FileKind, value: dict[str, Any]) -> str:
        """Print nothing: Kafka ignores the small files, and so does the caller."""
        return ""

    def empty_index(self, file: InputFile) -> str:
        """Report that an offset index has no entries."""
        return f"{file.path} is empty.\n"

    def passed(self, file: InputFile) -> str:
        """Report that an index has passed a broker's startup check."""
        return f"{file.path} passed sanity check.\n"

    def offset_entry(self, file: InputFile, entry: "OffsetIndexEntry", base_offset: int) -> str:
        """Describe an entry of an offset index."""
        return f"offset: {base_offset + entry.relative_offset} position: {entry.position}\n"

    def time_entry(self, file: InputFile, entry: "TimeIndexEntry", base_offset: int) -> str:
        """Describe an entry of a time index."""
        return f"timestamp: {entry.timestamp} offset: {base_offset + entry.relative_offset}\n"

    def aborted_transaction(self, file: InputFile, entry: "AbortedTransaction") -> str:
        """Describe an entry of a transaction index; Kafka prints 0 for any version that is not negative."""
        return (
            f"version: {min(0, entry.version)} producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}\n"
        )

    def producer_state(self, file: InputFile, entry: "ProducerStateEntry") -> str:
        """Describe a producer in a producer snapshot."""
        first_offset = entry.current_transaction_first_offset
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {optional_long(None if first_offset < 0 else first_offset)} "
            f"lastTimestamp: {entry.timestamp}"
        )
        if entry.last_offset < 0:
            return line + (" \n" if self.dialect < DIALECTS["4.3"] else "\n")
        return (
            f"{line} firstSequence: {entry.first_sequence} lastSequence: {entry.last_sequence} "
            f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}\n"
        )

    def finding(self, finding: Finding) -> str:
        """Print nothing: Kafka's output has no findings, so they go to standard error."""
        return ""


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
