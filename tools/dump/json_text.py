# SPDX-License-Identifier: Apache-2.0
"""The output format ``jsonl`` of ``raftlog dump-log``; ``docs/dump-log-1.schema.json`` is its schema.

Names are Kafka's words in snake case. Keys, values, header values and file names have the form of
``raftlog.tools.terminal.json_lines``. A decoded value is under ``data`` (a decoded key under ``key_data``), in the
shape of Kafka's own JSON converters, names included.
"""

from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.records.batches.batch import RecordBatch, TimestampType, add_sequence
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from raftlog.records.files.producer_snapshot import ProducerStateEntry
from raftlog.tools.catalogue.findings import Finding, finding_line
from raftlog.tools.dump.kafka_text import codec_label
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import Payload
from raftlog.tools.terminal.json_lines import encode, json_line, one_line, path_member, text_or_base64

if TYPE_CHECKING:
    from raftlog.tools.follow.notices import Notice

SCHEMA_VERSION: Final = 1
"""Increases when a name or a meaning changes, but not for new names."""


@attrs.frozen
class JsonLines:
    """Renders values as JSON lines."""

    def begin(self, file: InputFile) -> str:
        """Announce a file."""
        return json_line(
            "file",
            file.path,
            schema=SCHEMA_VERSION,
            type=file.kind.name.lower() if file.kind is not None else None,
            state=file.state.name.lower(),
            base_offset=file.base_offset,
            end_offset=file.snapshot_id.offset if file.snapshot_id is not None else None,
            epoch=file.snapshot_id.epoch if file.snapshot_id is not None else None,
        )

    def gone(self, path: str, reason: str) -> str:
        """Say in its place that a file is not in the output."""
        return finding_line(Finding(path, "file-gone", reason))

    def notice(self, notice: "Notice") -> str:
        """Say what has become of a followed log."""
        return json_line("notice", notice.path, **notice.members)

    def end(self, file: InputFile, coverage: Coverage) -> str:
        """Account for every byte of a file of batches."""
        return json_line("coverage", file.path, **attrs.asdict(coverage))

    def batch(self, file: InputFile, batch: RecordBatch | LegacyBatch) -> str:
        """Describe a batch."""
        common = {
            "position": batch.position,
            "size": batch.size_bytes,
            "magic": batch.magic,
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "timestamp_type": batch.timestamp_type.label,
            "max_timestamp": batch.max_timestamp,
            "compress_codec": codec_label(batch.attributes),
            "crc": batch.crc,
            "is_valid": batch.crc_holds,
        }
        if isinstance(batch, LegacyBatch):
            return json_line("batch", file.path, **common)
        return json_line(
            "batch",
            file.path,
            **common,
            count=batch.record_count,
            partition_leader_epoch=batch.partition_leader_epoch,
            base_timestamp=None if batch.delete_horizon_ms is not None else batch.base_timestamp,
            delete_horizon_ms=batch.delete_horizon_ms,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            last_sequence=batch.last_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
        )

    def record(self, file: InputFile, batch: RecordBatch, record: RecordView, payload: Payload) -> str:
        """Describe a record of a batch of magic 2."""
        return _with_payload(
            file.path,
            payload,
            record.key,
            record.value,
            offset=record.offset,
            timestamp_type=batch.timestamp_type.label,
            timestamp=record.timestamp,
            partition_leader_epoch=batch.partition_leader_epoch,
            sequence=add_sequence(batch.base_sequence, record.offset - batch.base_offset),
            is_control=batch.is_control,
            headers=[text_or_base64("key", key) | text_or_base64("value", value) for key, value in record.headers],
        )

    def legacy_record(self, file: InputFile, record: LegacyRecord, payload: Payload) -> str:
        """Describe a message of magic 0 or 1."""
        return _with_payload(
            file.path,
            payload,
            record.key,
            record.value,
            offset=record.offset,
            timestamp_type=record.timestamp_type.label,
            timestamp=None if record.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE else record.timestamp,
            crc=record.crc,
            is_valid=record.crc_holds,
            headers=[],
        )

    def tail(self, file: InputFile, size_bytes: int) -> str:
        """Print nothing: bytes after the last batch are reported as a finding."""
        return ""

    def empty_index(self, file: InputFile) -> str:
        """Print nothing: an index without entries has no lines."""
        return ""

    def passed(self, file: InputFile) -> str:
        """Print nothing: a check without findings has no lines."""
        return ""

    def offset_entry(self, file: InputFile, entry: OffsetIndexEntry, base_offset: int) -> str:
        """Describe an entry of an offset index."""
        offset = base_offset + entry.relative_offset
        return json_line("offset_index_entry", file.path, offset=offset, position=entry.position)

    def time_entry(self, file: InputFile, entry: TimeIndexEntry, base_offset: int) -> str:
        """Describe an entry of a time index."""
        offset = base_offset + entry.relative_offset
        return json_line("time_index_entry", file.path, timestamp=entry.timestamp, offset=offset)

    def aborted_transaction(self, file: InputFile, entry: AbortedTransaction) -> str:
        """Describe an entry of a transaction index."""
        return json_line("aborted_transaction", file.path, **entry._asdict())

    def producer_state(self, file: InputFile, entry: ProducerStateEntry) -> str:
        """Describe a producer in a producer snapshot."""
        return json_line("producer_state", file.path, **attrs.asdict(entry), first_sequence=entry.first_sequence)

    def small_file(self, file: InputFile, kind: FileKind, value: dict[str, Any]) -> str:
        """Describe one of the small files beside a log."""
        return json_line(kind.name.lower(), file.path, **value)

    def finding(self, finding: Finding) -> str:
        """Describe a finding."""
        return finding_line(finding)


def _with_payload(path: str, payload: Payload, key: bytes | None, value: bytes | None, **members: Any) -> str:
    members = {"kind": "record"} | path_member("file", path) | members
    members["key_size"] = -1 if key is None else len(key)
    members["value_size"] = -1 if value is None else len(value)
    if payload.key_json is None:
        members |= text_or_base64("key", key)
    if payload.is_redacted:
        members["redacted"] = True
    elif payload.value_json is None:
        members |= text_or_base64("value", value)
    if payload.type_name is not None:
        members |= {"type": payload.type_name, "version": payload.version}
    line = encode(members)[:-1]
    if payload.key_json is not None:
        line += f',"key_data":{payload.key_json}'
    if payload.value_json is not None:
        line += f',"data":{payload.value_json}'
    return one_line(line + "}")
