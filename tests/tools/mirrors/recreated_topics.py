# SPDX-License-Identifier: Apache-2.0
"""A real mirror whose source topic was deleted and made anew, or whose retention was quicker than MirrorMaker."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import split
from raftlog.records.batches.record import Record, RecordView
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.records.messages.mirrors.mirror_records import OffsetSync
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.mirrors.reading.metadata import read_metadata
from tests.tools.mirrors.changed_mirror import Entry, move_syncs, rewrite
from tests.tools.state.made_metadata import metadata_batch, record

NEWER: Final = uuid.UUID(int=0xABCDEF)
LATER_MS: Final = 1_795_300_000_000
"""A time after all that the real mirror has written."""
LOG_START: Final = 200
"""The log start of ``orders-0`` where retention was quicker than MirrorMaker, which had mirrored up to 100."""
MIRRORED: Final = 100


def recreate_orders(source: Path, records: int) -> None:
    """Delete ``orders`` and make it anew in the metadata and the files of a cluster, with other records."""
    found = read_metadata([str(source)])
    assert found is not None
    old = found.tables.topic_ids["orders"]
    (log,) = (source / "__cluster_metadata-0").glob("*.log")
    with open_source(str(log)) as read:
        last = [each for each in split(read) if isinstance(each, RecordBatch)][-1]
    partitions = [
        record("PartitionRecord", partitionId=number, topicId=NEWER, replicas=[1], isr=[1], leader=1, leaderEpoch=0)
        for number in (0, 1)
    ]
    made = [record("TopicRecord", name="orders", topicId=NEWER), *partitions]
    epoch = last.partition_leader_epoch
    removal = metadata_batch(last.next_offset, [record("RemoveTopicRecord", topicId=old)], LATER_MS - 1, epoch)
    creation = metadata_batch(last.next_offset + 1, made, LATER_MS, epoch)
    log.write_bytes(log.read_bytes() + removal + creation)

    def anew(_: list[RecordView]) -> Iterator[Entry]:
        for offset in range(records):
            yield offset, Record(offset, LATER_MS + offset, b"new", b"%d" % offset)

    for number in (0, 1):
        rewrite(source / f"orders-{number}", anew)
        metadata = write_partition_metadata(PartitionMetadata(0, NEWER))
        (source / f"orders-{number}/partition.metadata").write_bytes(metadata)


def outrun_by_retention(source: Path, target: Path) -> None:
    """Let retention remove records of ``orders-0`` before they were mirrored. Consumer groups are taken out."""

    def mirrored(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate([*records[:MIRRORED], *records[LOG_START:]])

    def moved(sync: OffsetSync) -> OffsetSync | None:
        if sync.key.partition != 0 or sync.upstream_offset < MIRRORED:
            return sync
        if sync.upstream_offset == first[0]:
            return attrs.evolve(sync, upstream_offset=LOG_START, downstream_offset=MIRRORED)
        downstream = sync.downstream_offset - LOG_START + MIRRORED
        return attrs.evolve(sync, downstream_offset=downstream) if sync.upstream_offset > LOG_START else None

    first: list[int] = []

    def note(sync: OffsetSync) -> OffsetSync:
        if sync.key.partition == 0 and sync.upstream_offset >= MIRRORED:
            first.append(sync.upstream_offset)
        return sync

    move_syncs(source, "orders", note)
    move_syncs(source, "orders", moved)
    rewrite(target / "A.orders-0", mirrored)
    rewrite(source / "orders-0", lambda records: ((each.offset, each) for each in records[LOG_START:]))
    (log,) = (source / "orders-0").glob("*.log")
    log.rename(log.with_name(f"{LOG_START:020}.log"))
    for directory in (source / "__consumer_offsets-0", target / "__consumer_offsets-0"):
        shutil.rmtree(directory)
    shutil.rmtree(target / "A.checkpoints.internal-0")
