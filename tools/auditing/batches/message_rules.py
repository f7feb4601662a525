# SPDX-License-Identifier: Apache-2.0
"""What the values of metadata records say: whether each reads as the message that its first bytes name.

It costs many times what all other rules do, so it is done where somebody asks for it.
"""

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.columns.record_summaries import RecordSummaries
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding


class MessageRules:
    """Reads metadata records as the newest Kafka release does.

    Args:
        limit: takes the findings.
    """

    def __init__(self, limit: FindingLimit) -> None:
        from raftlog.records.messages.metadata import read_metadata_record  # Only for those who ask: it takes its time.

        self._read_message = read_metadata_record
        self._limit = limit

    def take(self, table: BatchTable, summaries: RecordSummaries) -> None:
        """Read the records of the batches that come next, but for those that were reported not to be sound."""
        unsound = {row for row, _ in summaries.errors}
        for row, batch in enumerate(table.run.batches()):
            if row not in unsound and not batch.is_control:
                self._read(batch, int(table.positions[row]))

    def _read(self, batch: RecordBatch, position: int) -> None:
        for record in batch.records(check_crc=False):
            if record.value is None:
                continue  # Which is reported as that.
            try:
                self._read_message(record.value)
            except DecodeError as error:
                rule = error.rule or "message-field"
                epoch = batch.partition_leader_epoch
                self._limit.add(
                    Finding(self._limit.path, rule, error.reason, position, offset=record.offset, epoch=epoch)
                )
