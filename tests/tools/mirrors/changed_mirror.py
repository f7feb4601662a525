# SPDX-License-Identifier: Apache-2.0
"""Copies of a real mirror whose files have other records, with right CRCs."""

import shutil
from collections.abc import Callable, Iterable, Iterator
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

Entry = tuple[int, RecordView]
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
    with log.open("wb") as file:
        for batch in _batches(entries):
            builder = RecordBatchBuilder(
                batch[0][0],
                partition_leader_epoch=0,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                timestamp_type=TimestampType(append_time_ms is not None),
                max_timestamp=append_time_ms,
            )
            for offset, record in batch:
                builder.append(record.timestamp, record.key, record.value, record.headers, offset=offset)
            file.write(builder.build())
    for each in ("*.index", "*.timeindex", "*.txnindex"):
        for path in partition.glob(each):
            path.unlink()


def _batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    for first in range(0, len(entries), _BATCH):
        yield entries[first : first + _BATCH]


def move_syncs(source: Path, topic: str, change: Callable[[OffsetSync], OffsetSync | None]) -> None:
    """Change the offset syncs of a topic, or take them out; the others keep their offsets."""

    def changed(records: list[RecordView]) -> Iterator[Entry]:
        for record in records:
            sync = read_mirror_record(MirrorRecordType.OFFSET_SYNC, record.key, record.value)
            assert isinstance(sync, OffsetSync)
            new = change(sync) if sync.key.topic == topic else sync
            if new is not None:
                key, value = write_mirror_record(new)
                yield record.offset, _with(record, key, value)

    rewrite(source / SYNCS, changed)


def _with(record: RecordView, key: bytes | None, value: bytes | None) -> Record:
    return Record(record.offset, record.timestamp, key, value, tuple(Header(*each) for each in record.headers))
