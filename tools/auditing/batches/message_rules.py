# SPDX-License-Identifier: Apache-2.0
"""Checks that each metadata record's value can be decoded as the message type that its first bytes name.

On the way it looks at the attributes of records, which are in no summary of a batch, and collects the registrations of
controllers, which the judgement of the log compares with its voters.

This costs many times as much as all other rules together, so it runs only on request (``--messages``).
"""

from typing import TYPE_CHECKING, Final

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.record import Record
from raftlog.records.columns.record_summaries import RecordSummaries
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import ControllerSeen
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

if TYPE_CHECKING:
    from raftlog.records.messages.metadata import MetadataRecord

_REGISTERED: Final = "RegisterControllerRecord"
_UNREGISTERED: Final = "UnregisterControllerRecord"


class MessageRules:
    """Decodes metadata records as the newest Kafka release does, and reports those that fail.

    Args:
        limit: receives the findings.

    Attributes:
        controllers: the registrations of controllers so far, in order.
    """

    def __init__(self, limit: FindingLimit) -> None:
        from raftlog.records.messages.metadata import read_metadata_record  # Slow to import, so only on request.

        self._read_message = read_metadata_record
        self._limit = limit
        self.controllers: list[ControllerSeen] = []

    def take(self, table: BatchTable, summaries: RecordSummaries) -> None:
        """Check the records of the next batches, except batches that were reported as unsound."""
        unsound = {row for row, _ in summaries.errors}
        for row, batch in enumerate(table.run.batches()):
            if row not in unsound:
                self._read(batch, int(table.positions[row]))

    def _read(self, batch: RecordBatch, position: int) -> None:
        for record in batch.records(check_crc=False):
            if record.attributes:
                self._report(
                    "record-attributes", f"a record has attributes {record.attributes:#04x}", batch, record, position
                )
            if batch.is_control or record.value is None:
                continue  # Control records are read by other rules, and no value is reported as frame-empty.
            try:
                message = self._read_message(record.value)
                if message.type.name in {_REGISTERED, _UNREGISTERED}:
                    self.controllers.append(_controller(message, batch, record.offset, position))
            except DecodeError as error:
                self._report(error.rule or "message-field", error.reason, batch, record, position)

    def _report(self, rule: str, reason: str, batch: RecordBatch, record: Record, position: int) -> None:
        epoch = batch.partition_leader_epoch
        self._limit.add(Finding(self._limit.path, rule, reason, position, offset=record.offset, epoch=epoch))


def _controller(record: "MetadataRecord", batch: RecordBatch, offset: int, position: int) -> ControllerSeen:
    fields, level = record.message, -1
    if record.type.name == _REGISTERED:
        levels = (each["maxSupportedVersion"] for each in fields["features"] if each["name"] == "metadata.version")
        level = next(levels, 0)
    return ControllerSeen(offset, position, batch.partition_leader_epoch, fields["controllerId"], level)
