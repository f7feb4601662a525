# SPDX-License-Identifier: Apache-2.0
"""The protocol of ``dump-log``'s output formats, which turn values into text. An empty text prints nothing.

A format shows the payload, not the bytes of the record: the type and the JSON of the decoded value, and bytes only if
there is no JSON. It never shows the bytes of a redacted value (``Payload.is_redacted``).
"""

from typing import TYPE_CHECKING, Any, Protocol

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.legacy import LegacyBatch, LegacyRecord
from raftlog.records.batches.record import RecordView
from raftlog.records.files.file_names import FileKind
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.input.inputs import InputFile
from raftlog.tools.payloads.payloads import Payload

if TYPE_CHECKING:
    from raftlog.records.files.index_entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
    from raftlog.records.files.producer_snapshot import ProducerStateEntry
    from raftlog.tools.follow.notices import Notice


class Renderer(Protocol):
    """An output format."""

    def begin(self, file: InputFile) -> str:
        """Announce a file."""
        ...

    def gone(self, path: str, reason: str) -> str:
        """Report that the output lacks a file or directory, because a running node changed it after it was listed."""
        ...

    def notice(self, notice: "Notice") -> str:
        """Say what has become of a followed log."""
        ...

    def end(self, file: InputFile, coverage: Coverage) -> str:
        """Account for every byte of a file of batches."""
        ...

    def batch(self, file: InputFile, batch: RecordBatch | LegacyBatch) -> str:
        """Describe a batch."""
        ...

    def record(self, file: InputFile, batch: RecordBatch, record: RecordView, payload: Payload) -> str:
        """Describe a record of a batch of magic 2."""
        ...

    def legacy_record(self, file: InputFile, record: LegacyRecord, payload: Payload) -> str:
        """Describe a message of magic 0 or 1."""
        ...

    def tail(self, file: InputFile, size_bytes: int) -> str:
        """Report how many bytes follow the last whole batch."""
        ...

    def offset_entry(self, file: InputFile, entry: "OffsetIndexEntry", base_offset: int) -> str:
        """Describe an entry of an offset index."""
        ...

    def time_entry(self, file: InputFile, entry: "TimeIndexEntry", base_offset: int) -> str:
        """Describe an entry of a time index."""
        ...

    def aborted_transaction(self, file: InputFile, entry: "AbortedTransaction") -> str:
        """Describe an entry of a transaction index."""
        ...

    def producer_state(self, file: InputFile, entry: "ProducerStateEntry") -> str:
        """Describe a producer in a producer snapshot."""
        ...

    def small_file(self, file: InputFile, kind: FileKind, value: dict[str, Any]) -> str:
        """Describe one of the small files beside a log."""
        ...

    def empty_index(self, file: InputFile) -> str:
        """Report that an offset index has no entries."""
        ...

    def passed(self, file: InputFile) -> str:
        """Report that an index has passed a broker's startup check."""
        ...

    def finding(self, finding: Finding) -> str:
        """Describe a finding."""
        ...
