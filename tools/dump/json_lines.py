# SPDX-License-Identifier: Apache-2.0
"""JSON lines: one object a line, its ``kind`` first. ``docs/dump-log-1.schema.json`` is their schema.

Names are Kafka's words in snake case. Keys, values and header values are text where they are UTF-8 without control
characters, else base64 under the same name with ``_base64``; null is null. What a decoder made of a record is under
``data`` (and of its key under ``key_data``), in the shape of Kafka's own JSON converters, names included.
"""

import base64
import functools
import json
import re
from collections.abc import Callable
from typing import Any, Final

import attrs

from raftlog.records.batches.batch import RecordBatch, TimestampType, add_sequence
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from raftlog.records.files.producer_snapshot import ProducerStateEntry
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.dump.kafka_text import codec_label
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import Payload

SCHEMA_VERSION: Final = 1
"""Grows when a name or a meaning changes; new names do not count."""

_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNSAFE: Final = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
"""What some readers of lines take for the end of one, and what UTF-8 cannot say."""
_encode_by_standard_library: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@functools.cache
def _encoder() -> Callable[[dict[str, Any]], str]:
    """Return what writes an object as JSON: the package of the extra ``json`` where it is installed; the same bytes."""
    try:
        import orjson
    except ImportError:
        return _encode_by_standard_library

    def encode(members: dict[str, Any]) -> str:
        try:
            return orjson.dumps(members).decode()
        except TypeError:  # What is no Unicode, in the name of a file.
            return _encode_by_standard_library(members)

    return encode


def _encode(members: dict[str, Any]) -> str:
    return _encoder()(members)


def text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return the member of an object that holds some bytes."""
    if data is None:
        return {name: None}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL_CHARACTER.search(text):
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}
    return {name: text}


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
        """What is left after the last batch is a finding like others."""
        return ""

    def empty_index(self, file: InputFile) -> str:
        """An index without entries has no lines."""
        return ""

    def passed(self, file: InputFile) -> str:
        """A check that finds nothing has no lines."""
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


def finding_line(finding: Finding) -> str:
    """Describe a finding, of whatever verb."""
    return json_line(
        "finding",
        finding.path,
        rule=finding.rule,
        severity=finding.severity.value,
        position=finding.position,
        size=finding.size_bytes,
        offset=finding.offset,
        epoch=finding.epoch,
        reason=finding.reason,
    )


@functools.lru_cache(maxsize=8)
def _named(path: str) -> dict[str, str | None]:
    """Return the member that names a file; a name need not be text."""
    return text_or_base64("file", path.encode("utf-8", "surrogateescape"))


def json_line(kind: str, path: str | None, /, **members: Any) -> str:
    """Return an object as a line that every reader takes for one line.

    Args:
        kind: what it is.
        path: the file that it is about, or None.
        members: what it says.
    """
    if path is None:
        return _one_line(_encode({"kind": kind} | members))
    return _one_line(_encode({"kind": kind} | _named(path) | members))


def _one_line(text: str) -> str:
    """End a line that every reader of lines takes for one line."""
    return (text if text.isascii() else _UNSAFE.sub(_escape, text)) + "\n"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


def _with_payload(path: str, payload: Payload, key: bytes | None, value: bytes | None, **members: Any) -> str:
    members = {"kind": "record"} | _named(path) | members
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
    line = _encode(members)[:-1]
    if payload.key_json is not None:
        line += f',"key_data":{payload.key_json}'
    if payload.value_json is not None:
        line += f',"data":{payload.value_json}'
    return _one_line(line + "}")
