# SPDX-License-Identifier: Apache-2.0
"""Copies of a real mirror whose files have other records, with right CRCs."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from raftlog.records.batches.batch import TimestampType
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.record import Header, Record, RecordView
from raftlog.records.messages.mirrors.mirror_records import (
    MirrorRecordType,
    OffsetSync,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.storage.reading.segment_reader import open_segment
from tests.golden_files import GOLDEN

MIRROR: Final = GOLDEN / "mirror/data"
SYNCS: Final = "mm2-offset-syncs.B.internal-0"
_BATCH: Final = 20

Entry = tuple[int, RecordView | Record]
"""The offset that a record is to have, and the record."""


def copied(directory: Path) -> tuple[Path, Path]:
    """Copy both clusters, and return their log directories."""
    for node in ("n1", "n2"):
        shutil.copytree(MIRROR / node, directory / node)
    return directory / "n1", directory / "n2"


def rewrite(
    partition: Path,
    change: Callable[[list[RecordView]], Iterable[Entry]],
    producer_id: int = 2,
    *,
    append_time_ms: int | None = None,
) -> None:
    """Write the records of a partition again, at other offsets or with others between, in one segment.

    Args:
        partition: its directory.
        change: takes the records, and returns those to write.
        producer_id: of all batches.
        append_time_ms: the time with which a broker has stamped them, instead of their producer.
    """
    (log,) = partition.glob("*.log")
    with open_segment(str(log)) as segment:
        entries = list(change(list(segment.records())))
    log.write_bytes(log_bytes(entries, producer_id, append_time_ms=append_time_ms))
    remove_indexes(partition)


def log_bytes(
    entries: Sequence[Entry], producer_id: int = 2, *, append_time_ms: int | None = None, end: int | None = None
) -> bytes:
    """Return batches of records, as ``rewrite`` writes them; the last one covers all offsets below an end."""
    written = []
    for first in range(0, len(entries), _BATCH):
        batch = entries[first : first + _BATCH]
        builder = RecordBatchBuilder(
            batch[0][0],
            partition_leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            timestamp_type=TimestampType(append_time_ms is not None),
            max_timestamp=append_time_ms,
            last_offset_delta=end - 1 - batch[0][0] if end is not None and batch[-1] is entries[-1] else None,
        )
        for offset, record in batch:
            builder.append(record.timestamp, record.key, record.value, record.headers, offset=offset)
        written.append(builder.build())
    return b"".join(written)


def remove_indexes(partition: Path) -> None:
    """Remove what does not fit other records."""
    for each in ("*.index", "*.timeindex", "*.txnindex"):
        for path in partition.glob(each):
            path.unlink()


def move_syncs(source: Path, topic: str, change: Callable[[OffsetSync], OffsetSync | None]) -> None:
    """Change the offset syncs of a topic, or take them out; the others keep their offsets."""

    def changed(records: list[RecordView]) -> Iterator[Entry]:
        for record in records:
            sync = read_mirror_record(MirrorRecordType.OFFSET_SYNC, record.key, record.value)
            assert isinstance(sync, OffsetSync)
            new = change(sync) if sync.key.topic == topic else sync
            if new is not None:
                key, value = write_mirror_record(new)
                yield record.offset, with_contents(record, key, value)

    rewrite(source / SYNCS, changed)


def with_contents(record: RecordView, key: bytes | None, value: bytes | None) -> Record:
    """Return a record with another key and value."""
    return Record(record.offset, record.timestamp, key, value, tuple(Header(*each) for each in record.headers))
