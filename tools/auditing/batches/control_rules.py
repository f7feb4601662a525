# SPDX-License-Identifier: Apache-2.0
"""Rules about control records of a raft log: whether they can be decoded, and whether a raft log may contain them.

Source: ControlRecordType, ControlRecordUtils, KRaftControlRecordStateMachine.
"""

from collections.abc import Collection
from typing import Final

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import CONTROL_FLAG, RecordBatch
from raftlog.records.batches.record import Record
from raftlog.records.messages.control import ControlRecord, ControlRecordType, read_control_record
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import ControlSeen
from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding

_OUT_OF_PLACE: Final = {
    ControlRecordType.ABORT,
    ControlRecordType.COMMIT,
    ControlRecordType.SNAPSHOT_HEADER,
    ControlRecordType.SNAPSHOT_FOOTER,
}


class ControlRules:
    """Collects and checks the control records of a raft log's segment.

    Args:
        limit: receives the findings.

    Attributes:
        seen: the control records that could be decoded, in order.
        openings: byte positions of the batches that start with a LeaderChange.
    """

    def __init__(self, limit: FindingLimit) -> None:
        self._limit = limit
        self.seen: list[ControlSeen] = []
        self.openings: set[int] = set()

    def take(self, table: BatchTable, unread: Collection[int]) -> None:
        """Check the control batches among the next batches.

        Args:
            table: the batches.
            unread: rows of the batches whose records are not sound; they are skipped.
        """
        if not table.all_attributes & CONTROL_FLAG:
            return
        for row in table.are_control.nonzero()[0].tolist():
            if row not in unread:
                self._read(table.run.batch(row))

    def _read(self, batch: RecordBatch) -> None:
        for index, record in enumerate(batch.records(check_crc=False)):
            try:
                found = read_control_record(record.key, record.value)
            except DecodeError as error:
                self._report(error.rule or "control-value", error.reason, batch, record)
                continue
            self._judge(found, batch, record)
            if index == 0 and found.type == ControlRecordType.LEADER_CHANGE:
                self.openings.add(batch.position)
            self.seen.append(
                ControlSeen(
                    record.offset,
                    batch.partition_leader_epoch,
                    record.timestamp,
                    batch.base_offset,
                    batch.position,
                    found.raw_key,
                    found.raw_value or b"",
                )
            )

    def _judge(self, found: ControlRecord, batch: RecordBatch, record: Record) -> None:
        if not isinstance(found.type, ControlRecordType):
            self._report("control-type", f"a control record of type {found.type}", batch, record)
            return
        version = 0 if found.value is None else found.value.version
        if found.key_version or version:
            reason = f"a {found.type.name} record of key version {found.key_version}, value version {version}"
            self._report("control-version", reason, batch, record)
        if found.type in _OUT_OF_PLACE:
            self._report("control-place", f"a {found.type.name} record in a log of raft", batch, record)

    def _report(self, rule: str, reason: str, batch: RecordBatch, record: Record) -> None:
        text = reason if record.offset == batch.base_offset else f"{reason}, at offset {record.offset}"
        epoch = batch.partition_leader_epoch
        self._limit.add(Finding(self._limit.path, rule, text, batch.position, offset=batch.base_offset, epoch=epoch))
