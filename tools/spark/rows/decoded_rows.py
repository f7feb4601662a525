# SPDX-License-Identifier: Apache-2.0
"""Makes rows one by one, for control records, metadata records, and messages of magic 0 and 1."""

from collections.abc import Iterator
from typing import Any, Protocol

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.batches.record import RecordView
from raftlog.records.messages.control import (
    ControlValue,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from raftlog.records.messages.schema import NEWEST
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.payloads.message_payloads import MetadataDecoder, control_payload
from raftlog.tools.payloads.payloads import Payload
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.parts import FilePart
from raftlog.uuid_text import uuid_to_text

Row = dict[str, Any]
"""Values by the lower-case name of their column."""


class RowMaker(Protocol):
    """Makes the rows of a batch."""

    def rows(self, part: FilePart, batch: RecordBatch) -> Iterator[Row | Finding]:
        """Yield a row for each record, or a finding if it cannot be decoded.

        Raises:
            DecodeError: the batch cannot be read.
            MissingExtraError: a codec's package is not installed.
        """
        ...


class ControlRowMaker:
    """Makes rows of control records."""

    def rows(self, part: FilePart, batch: RecordBatch) -> Iterator[Row | Finding]:
        """Yield a row for each record of a control batch, or a finding if it cannot be decoded."""
        for record in list(batch.records(check_crc=False)):
            payload = control_payload(record)
            row = _common(part, batch, record) | {
                "type": payload.type_name,
                "version": payload.version,
                "json": payload.value_json,
                "producerid": batch.producer_id,
                "producerepoch": batch.producer_epoch,
            }
            if payload.control is None:
                yield _undecoded(part, batch, record, payload)
            elif payload.control.value is None:
                yield row  # An unknown type is not damage: a newer Kafka may have written it.
            else:
                yield row | _control_fields(payload.control.value)


class MetadataRowMaker:
    """Makes rows of the records of ``__cluster_metadata``.

    Args:
        redact: whether to hide secrets.
    """

    def __init__(self, *, redact: bool) -> None:
        self._decoder = MetadataDecoder(NEWEST, redact)

    def rows(self, part: FilePart, batch: RecordBatch) -> Iterator[Row | Finding]:
        """Yield a row for each record of a data batch, or a finding if it cannot be decoded."""
        for record in list(batch.records(check_crc=False)):
            payload = self._decoder.decode(record)
            if payload.problem is not None:
                yield _undecoded(part, batch, record, payload)
                continue
            yield _common(part, batch, record) | {
                "type": payload.type_name,
                "version": payload.version,
                "json": payload.value_json,
            }


def legacy_rows(part: FilePart, batch: LegacyBatch) -> list[Row]:
    """Return the records of a message of magic 0 or 1, as rows of the views ``records`` and ``records_ext``.

    Raises:
        DecodeError: the message cannot be read.
        MissingExtraError: a codec's package is not installed.
    """
    shared = {
        "topic": part.topic,
        "partition": part.partition,
        "leaderepoch": -1,
        "batchbaseoffset": batch.base_offset,
        "sequence": -1,
        "producerid": -1,
        "producerepoch": -1,
        "istransactional": False,
        "iscontrol": False,
        "codec": arrays.codec_label(batch.attributes),
        "position": batch.position,
        "file": part.file,
        "crcok": True,
    }
    return [
        shared
        | {
            "key": record.key,
            "value": record.value,
            "offset": record.offset,
            "timestamp": arrays.timestamp_us(record.timestamp),
            "timestamptype": int(record.timestamp_type),
        }
        for record in batch.records(check_crc=False)
    ]


def _common(part: FilePart, batch: RecordBatch, record: RecordView) -> Row:
    return {
        "topic": part.topic,
        "partition": part.partition,
        "offset": record.offset,
        "timestamp": arrays.timestamp_us(record.timestamp),
        "leaderepoch": batch.partition_leader_epoch,
        "issnapshot": part.is_snapshot,
        "position": batch.position,
        "file": part.file,
    }


def _undecoded(part: FilePart, batch: RecordBatch, record: RecordView, payload: Payload) -> Finding:
    problem = payload.problem or DecodeError("it cannot be decoded", "message-field")
    return Finding(part.path, problem.rule or "message-field", problem.reason, batch.position, offset=record.offset)


def _control_fields(value: ControlValue) -> Row:
    match value:
        case LeaderChangeMessage():
            return {
                "leaderid": value.leader_id,
                "voters": [{"id": voter.id, "directoryId": _text(voter.directory_id)} for voter in value.voters],
                "grantingvoters": [voter.id for voter in value.granting_voters],
            }
        case VotersRecord():
            return {"voters": [_voter(voter) for voter in value.voters]}
        case KRaftVersionRecord():
            return {"kraftversion": value.kraft_version}
        case SnapshotHeaderRecord():
            return {"lastcontainedlogtimestamp": arrays.timestamp_us(value.last_contained_log_timestamp)}
        case EndTxnMarker():
            return {"committed": value.committed, "coordinatorepoch": value.coordinator_epoch}
    return {}


def _voter(voter: VotersRecordVoter) -> Row:
    return {
        "id": voter.id,
        "directoryId": _text(voter.directory_id),
        "endpoints": [{"name": each.name, "host": each.host, "port": each.port} for each in voter.endpoints],
        "minKraftVersion": voter.min_supported_version,
        "maxKraftVersion": voter.max_supported_version,
    }


def _text(directory_id: Any) -> str | None:
    return None if directory_id is None else uuid_to_text(directory_id)
