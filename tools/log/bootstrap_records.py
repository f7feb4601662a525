# SPDX-License-Identifier: Apache-2.0
"""The records that a Kafka cluster begins with, which the first leader copies from ``bootstrap.checkpoint``.

Kafka writes them only to an empty log. On a log with other records and without these, a Kafka controller crashes, or
never leads. So the first append to such a log must write them first.

Source: QuorumController.CompleteActivationEvent, ActivationRecordsGenerator#recordsForEmptyLog.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from raftlog.errors import DecodeError
from raftlog.file_system import FileSystem, join, read_file
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.snapshot.reader import RecordsSnapshotReader, verify_snapshot
from raftlog.storage.log.file_log import FileLog
from raftlog.tools.payloads.format_features import METADATA_VERSION, sets_the_version

_MAX_SIZE_BYTES: Final = 16 * 1024 * 1024
_WITH_TRANSACTIONS: Final = METADATA_VERSIONS["3.6-IV1"]
"""From this level on the records are in a metadata transaction; before, in a single batch."""
_ELIGIBLE_LEADER_REPLICAS: Final = "eligible.leader.replicas.version"
_BROKER_RESOURCE: Final = 4


def has_bootstrap_file(file_system: FileSystem, directory: str) -> bool:
    """Whether a log directory has ``bootstrap.checkpoint``, like those made for Kafka."""
    return file_system.exists(join(directory, FileKind.BOOTSTRAP_SNAPSHOT.value))


def first_records(file_system: FileSystem, directory: str) -> list[bytes]:
    """Return the records that Kafka's first leader would write to a log, one value per record, for one batch.

    Args:
        file_system: the file system of the directory.
        directory: the log directory; if it has no ``bootstrap.checkpoint``, there are no records.

    Raises:
        DecodeError: ``bootstrap.checkpoint`` is damaged or incomplete, or sets no metadata.version.
        MissingExtraError: it is compressed, and the codec's package is not installed.
        StorageError: the disk failed.
    """
    if not has_bootstrap_file(file_system, directory):
        return []
    path = join(directory, FileKind.BOOTSTRAP_SNAPSHOT.value)
    source = BufferSource(read_file(file_system, path, _MAX_SIZE_BYTES))
    try:
        verify_snapshot(source, BOOTSTRAP_SNAPSHOT_ID, path=path)
        values = list(_values(RecordsSnapshotReader(source, BOOTSTRAP_SNAPSHOT_ID, path=path)))
        levels = _levels(values)
    except DecodeError as error:
        raise error.located(path=path) from None
    if METADATA_VERSION not in levels:
        raise DecodeError(f"no record sets {METADATA_VERSION}", path=path)
    if levels.get(_ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        values.append(_default_of_min_insync_replicas())
    if levels[METADATA_VERSION] < _WITH_TRANSACTIONS:
        return values
    return [_record("BeginTransactionRecord", name="Bootstrap records"), *values, _record("EndTransactionRecord")]


def _levels(values: list[bytes]) -> dict[str, int]:
    records = map(read_metadata_record, values)
    messages = [record.message for record in records if record.type.name == "FeatureLevelRecord"]
    return {message["name"]: message["featureLevel"] for message in messages}


def has_data(log: FileLog) -> bool:
    """Whether Kafka would not treat a log as empty: it has a snapshot, or a record that is not a control record."""
    return _newest_snapshot(log) is not None or any(True for _ in _data_batches(log))


def sets_metadata_version(log: FileLog) -> bool:
    """Whether a record of a log, or of its newest snapshot, sets metadata.version.

    Raises:
        DecodeError: a batch does not decode.
        MissingExtraError: one is compressed, and the codec's package is not installed.
        StorageError: the disk failed.
    """
    return any(map(sets_the_version, itertools.chain(_of_snapshot(log), _values(_data_batches(log)))))


def _newest_snapshot(log: FileLog) -> OffsetAndEpoch | None:
    return None if log.latest_snapshot_id == BOOTSTRAP_SNAPSHOT_ID else log.latest_snapshot_id


def _of_snapshot(log: FileLog) -> Iterator[bytes]:
    snapshot_id = _newest_snapshot(log)
    raw = None if snapshot_id is None else log.read_snapshot(snapshot_id)
    if raw is not None:
        with raw:
            yield from _values(RecordsSnapshotReader.of(raw))


def _data_batches(log: FileLog) -> Iterator[RecordBatch]:
    offset, end_offset = log.start_offset, log.end_offset.offset
    while offset < end_offset:
        for batch in split(BufferSource(log.read(offset, Isolation.UNCOMMITTED).records)):
            if isinstance(batch, RecordBatch):  # The last one may be cut off.
                offset = batch.next_offset
                if not batch.is_control:
                    yield batch


def _values(batches: Iterable[object]) -> Iterator[bytes]:
    for batch in batches:
        if isinstance(batch, RecordBatch):
            yield from (record.value for record in batch.records() if record.value)


def _default_of_min_insync_replicas() -> bytes:
    """Return the record that accompanies eligible leader replicas, with the default value of Kafka's configuration."""
    fields = {"resourceType": _BROKER_RESOURCE, "resourceName": "", "name": "min.insync.replicas", "value": "1"}
    return _record("ConfigRecord", **fields)


def _record(type_name: str, **fields: object) -> bytes:
    return write_metadata_record(metadata_record(type_name, fields, version=0))
