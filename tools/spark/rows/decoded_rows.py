# SPDX-License-Identifier: Apache-2.0
"""Makes rows one by one, for control records, records of Kafka's own topics, and messages of magic 0 and 1."""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Protocol, TypeVar

from raftlog.errors import DecodeError
from raftlog.invariants import present
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.messages.control import (
    ControlValue,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from raftlog.records.messages.coordinator import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    UnknownCoordinatorRecord,
    read_coordinator_record,
)
from raftlog.records.messages.releases import DIALECTS
from raftlog.records.messages.schema import NEWEST
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.payloads.message_payloads import CoordinatorDecoder, MetadataDecoder, control_payload
from raftlog.tools.payloads.payloads import AnyRecord, Payload
from raftlog.tools.spark.rows import arrays
from raftlog.tools.spark.rows.coordinator_columns import consumer_offsets_row, transaction_state_row
from raftlog.tools.spark.rows.metadata_columns import METADATA_COLUMNS, metadata_row
from raftlog.tools.spark.rows.parts import FilePart
from raftlog.uuid_text import uuid_to_text

Row = dict[str, Any]
"""Values by the lower-case name of their column."""


AnyBatch = TypeVar("AnyBatch", bound=RecordBatch | LegacyBatch)
_Batch = TypeVar("_Batch", bound=RecordBatch | LegacyBatch, contravariant=True)


class RowMaker(Protocol[_Batch]):
    """Makes the rows of a batch."""

    def rows(self, part: FilePart, batch: _Batch) -> Iterator[Row | Finding]:
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
        names: the wanted columns, in lower case.
        redact: whether to hide secrets.
    """

    def __init__(self, names: Collection[str], *, redact: bool) -> None:
        self._decoder = MetadataDecoder(NEWEST, redact)
        self._has_typed = not _TYPED_METADATA.isdisjoint(names)

    def rows(self, part: FilePart, batch: RecordBatch) -> Iterator[Row | Finding]:
        """Yield a row for each record of a data batch, or a finding if it cannot be decoded."""
        for record in list(batch.records(check_crc=False)):
            payload = self._decoder.decode(record)
            if payload.problem is not None:
                yield _undecoded(part, batch, record, payload)
                continue
            row = _common(part, batch, record) | {
                "type": payload.type_name,
                "version": payload.version,
                "json": payload.value_json,
            }
            if self._has_typed:
                row |= metadata_row(payload.type_name, json.loads(present(payload.value_json, "the record's JSON")))
            yield row


class CoordinatorRowMaker:
    """Makes rows of the records of a coordinator's topic.

    Args:
        topic: ``__consumer_offsets`` or ``__transaction_state``.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._decoder = CoordinatorDecoder(topic, max(DIALECTS.values()), NEWEST)
        self._typed_row = _TYPED_ROWS[topic]

    def rows(self, part: FilePart, batch: RecordBatch | LegacyBatch) -> Iterator[Row | Finding]:
        """Yield a row for each record of a data batch, or a finding if it cannot be decoded."""
        of_batch = {
            "istransactional": isinstance(batch, RecordBatch) and batch.is_transactional,
            "producerid": batch.producer_id if isinstance(batch, RecordBatch) else -1,
        }
        records: list[AnyRecord] = [*batch.records(check_crc=False)]
        for record in records:
            row = self._row(record)
            if isinstance(row, Payload):
                yield _undecoded(part, batch, record, row)
            else:
                yield _common(part, batch, record) | of_batch | row

    def _row(self, record: AnyRecord) -> Row | Payload:
        """Return the columns of a record, or a payload with the problem if it cannot be decoded."""
        try:
            decoded = read_coordinator_record(self._topic, record.key, record.value)
        except DecodeError as error:
            return Payload(problem=error)
        row: Row = {"istombstone": record.value is None}
        if isinstance(decoded, UnknownCoordinatorRecord):  # Not damage: a newer Kafka may have written it.
            return row | {"type": f"UNKNOWN({decoded.type})"}
        payload = self._decoder.payload_of(decoded)
        if payload.problem is not None:
            return payload
        key_json = present(payload.key_json, "the key's JSON")
        value_json = None if record.value is None else present(payload.value_json, "the value's JSON")
        row |= {"type": payload.type_name, "version": decoded.version, "keyjson": key_json, "json": value_json}
        fields = {} if value_json is None else json.loads(value_json)
        return row | self._typed_row(present(payload.type_name, "its type"), json.loads(key_json), fields)


_TYPED_METADATA: Final = frozenset(name.lower() for name, _ in METADATA_COLUMNS)
_TYPED_ROWS: Final[dict[str, Callable[[str, Any, Any], Row]]] = {
    CONSUMER_OFFSETS: consumer_offsets_row,
    TRANSACTION_STATE: transaction_state_row,
}
"""The typed columns of each topic."""


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


def _common(part: FilePart, batch: RecordBatch | LegacyBatch, record: AnyRecord) -> Row:
    return {
        "topic": part.topic,
        "partition": part.partition,
        "offset": record.offset,
        "timestamp": arrays.timestamp_us(record.timestamp),
        "leaderepoch": batch.partition_leader_epoch if isinstance(batch, RecordBatch) else -1,
        "issnapshot": part.is_snapshot,
        "position": batch.position,
        "file": part.file,
    }


def _undecoded(part: FilePart, batch: RecordBatch | LegacyBatch, record: AnyRecord, payload: Payload) -> Finding:
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
