# SPDX-License-Identifier: Apache-2.0
"""Aligned columns for people: one line per batch or entry, and indented lines for records."""

from typing import TYPE_CHECKING, Any, Final

import attrs

from raftlog.records.batches.batch import NO_PRODUCER_ID, RecordBatch
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from raftlog.records.files.producer_snapshot import ProducerStateEntry
from raftlog.records.messages.java_text import decode_utf8
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.dump.kafka_text import codec_label
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import Payload
from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.text_width import cut_line, output_width, wrap_line
from raftlog.tools.terminal.value_text import time_text

if TYPE_CHECKING:
    from raftlog.tools.follow.notices import Notice

_TIME_WIDTH: Final = 24
_PAYLOAD_INDENT: Final = 20


@attrs.frozen
class TableText:
    """Renders values as aligned columns. On a terminal, rows are cut to its width, and records are wrapped."""

    _width: int | None = attrs.field(factory=output_width, init=False)

    def begin(self, file: InputFile) -> str:
        """Announce a file, and name the columns if it has batches."""
        title = f"{printable(file.path)}\n"
        if not file.holds_records:
            return title
        return title + self._row(
            f"{'OFFSETS':>17} {'EPOCH':>5} {'TIME':{_TIME_WIDTH}} {'COUNT':>6} {'POSITION':>10} {'SIZE':>8} KIND"
        )

    def gone(self, path: str, reason: str) -> str:
        """Say in its place that a file is not in the output."""
        return f"{printable(path)}\n{self._wrapped(f'  {reason}')}"

    def notice(self, notice: "Notice") -> str:
        """Say what has become of a followed log."""
        return self._wrapped(f"raftlog: {printable(notice.path)}: {notice.text}")

    def end(self, file: InputFile, coverage: Coverage) -> str:
        """Account for every byte of a file of batches."""
        return self._wrapped(
            f"  {coverage.explained_bytes} bytes explained, {coverage.damaged_bytes} damaged, "
            f"{coverage.padding_bytes} padding"
        )

    def batch(self, file: InputFile, batch: RecordBatch | LegacyBatch) -> str:
        """Describe a batch."""
        offsets = str(batch.base_offset)
        if batch.last_offset != batch.base_offset:
            offsets += f"..{batch.last_offset}"
        epoch, count = (
            (batch.partition_leader_epoch, batch.record_count) if isinstance(batch, RecordBatch) else ("-", "-")
        )
        return self._row(
            f"{offsets:>17} {epoch:>5} {time_text(batch.max_timestamp):{_TIME_WIDTH}} {count:>6} "
            f"{batch.position:>10} {batch.size_bytes:>8} {', '.join(_kind(batch))}"
        )

    def record(self, file: InputFile, batch: RecordBatch, record: RecordView, payload: Payload) -> str:
        """Describe a record of a batch of magic 2."""
        headers = "".join(f" {printable(key.decode('utf-8', 'replace'))}=…" for key, _ in record.headers)
        return self._wrapped(f"{record.offset:>17}   {_payload_text(record.key, record.value, payload)}{headers}")

    def legacy_record(self, file: InputFile, record: LegacyRecord, payload: Payload) -> str:
        """Describe a message of magic 0 or 1."""
        return self._wrapped(f"{record.offset:>17}   {_payload_text(record.key, record.value, payload)}")

    def tail(self, file: InputFile, size_bytes: int) -> str:
        """Print nothing: bytes after the last batch are reported as a finding."""
        return ""

    def offset_entry(self, file: InputFile, entry: OffsetIndexEntry, base_offset: int) -> str:
        """Describe an entry of an offset index."""
        return self._wrapped(f"{base_offset + entry.relative_offset:>17} at position {entry.position}")

    def time_entry(self, file: InputFile, entry: TimeIndexEntry, base_offset: int) -> str:
        """Describe an entry of a time index."""
        return self._wrapped(f"{base_offset + entry.relative_offset:>17} {time_text(entry.timestamp)}")

    def aborted_transaction(self, file: InputFile, entry: AbortedTransaction) -> str:
        """Describe an entry of a transaction index."""
        span = f"{entry.first_offset}..{entry.last_offset}"
        return self._wrapped(f"{span:>17} producer {entry.producer_id}, last stable offset {entry.last_stable_offset}")

    def producer_state(self, file: InputFile, entry: ProducerStateEntry) -> str:
        """Describe a producer in a producer snapshot."""
        return self._wrapped(
            f"{'producer ' + str(entry.producer_id):>17} {_members(attrs.asdict(entry), 'producer_id')}"
        )

    def small_file(self, file: InputFile, kind: FileKind, value: dict[str, Any]) -> str:
        """Describe one of the small files beside a log."""
        return "".join(self._wrapped(f"{printable(name):>25}  {printable(str(item))}") for name, item in value.items())

    def empty_index(self, file: InputFile) -> str:
        """Report that an offset index has no entries."""
        return "  no entries\n"

    def passed(self, file: InputFile) -> str:
        """Report that an index has passed a broker's startup check."""
        return "  passed\n"

    def _row(self, line: str) -> str:
        return f"{cut_line(line, self._width)}\n"

    def _wrapped(self, line: str) -> str:
        parts = wrap_line(line, self._width, indent=_PAYLOAD_INDENT, breaks_words=True)
        return "".join(f"{part}\n" for part in parts)

    def finding(self, finding: Finding) -> str:
        """Print nothing: findings go to standard error."""
        return ""


def _kind(batch: RecordBatch | LegacyBatch) -> list[str]:
    words = [codec_label(batch.attributes)] if batch.attributes & 7 else []
    if isinstance(batch, LegacyBatch):
        words.append(f"magic {batch.magic}")
    else:
        words += ["control"] * batch.is_control + ["transactional"] * batch.is_transactional
        if batch.producer_id != NO_PRODUCER_ID:
            words.append(f"producer {batch.producer_id}/{batch.producer_epoch} from {batch.base_sequence}")
    if not batch.crc_holds:
        words.append("CRC DOES NOT HOLD")
    return words or ["data"]


def _payload_text(key: bytes | None, value: bytes | None, payload: Payload) -> str:
    parts = [payload.type_name] if payload.type_name is not None else []
    if payload.key_json is not None:
        parts.append(payload.key_json)
    elif key is not None and payload.control is None:
        parts.append(f"{_text(payload.key_text, key)} =")
    if payload.value_json is not None:
        parts.append(payload.value_json)
    elif payload.is_redacted:
        parts.append("[redacted]")
    elif payload.control is None:
        parts.append("null" if value is None else _text(payload.value_text, value))
    return printable(" ".join(parts))


def _text(decoded: str | None, data: bytes) -> str:
    """Return the decoded text, or the bytes as text."""
    return decode_utf8(data) if decoded is None else decoded


def _members(members: dict[str, Any], *left_out: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in members.items() if name not in left_out)
