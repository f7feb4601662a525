# SPDX-License-Identifier: Apache-2.0
"""Metadata logs that are made for a test, and what was found in their files."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from raftlog.invariants import present
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.metadata import MetadataRecord, metadata_record, write_metadata_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.audit_verbs.quorum_files import read_quorum_files
from raftlog.tools.auditing.history.quorum_view import quorum_view
from raftlog.tools.state.state_search import StateSource, copies
from tests.tools.made_logs import write_log

ORDERS = UUID(int=77)


def record(kind: str, /, **fields: Any) -> MetadataRecord:
    """A record in its highest version; fields that are not given have their defaults."""
    return metadata_record(kind, message_types("metadata-records")[kind].default() | fields)


VERSION = record("FeatureLevelRecord", name="metadata.version", featureLevel=25)
TOPIC = record("TopicRecord", name="orders", topicId=ORDERS)
PARTITION = record(
    "PartitionRecord", partitionId=0, topicId=ORDERS, replicas=[1, 2], isr=[1, 2], leader=1, leaderEpoch=0
)
SHRINK = record("PartitionChangeRecord", partitionId=0, topicId=ORDERS, isr=[1])
BEGIN = record("BeginTransactionRecord", name="topic")
END = record("EndTransactionRecord")
ABORT = record("AbortTransactionRecord")


def metadata_batch(
    base_offset: int, records: Sequence[MetadataRecord | bytes], timestamp: int, epoch: int = 1
) -> bytes:
    """A batch as raft writes it; bytes stand for a record that we cannot write."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
    for each in records:
        builder.append(timestamp, None, each if isinstance(each, bytes) else write_metadata_record(each))
    return builder.build()


def metadata_log(
    directory: Path, *batches: Sequence[MetadataRecord | bytes], times: Sequence[int] = (), start: int = 0
) -> Path:
    """Write a metadata log of these batches, each at its time in ms or a second after the one before it."""
    offset, data = start, []
    for number, records in enumerate(batches):
        data.append(metadata_batch(offset, records, times[number] if times else 1_000_000 + 1000 * number))
        offset += len(records)
    write_log(directory / "__cluster_metadata-0", *data, name=f"{start:020}.log")
    return directory


def found_copies(*directories: Path) -> tuple[list[StateSource], int]:
    """The replicas in some directories, as the verb finds them, and the offset up to which they prove records."""
    given = argparse.Namespace(paths=list(map(str, directories)), processes=1)
    (log,) = read_quorum_files(given, "test").logs
    view = present(quorum_view(log), "a quorum")
    return copies(log, view), view.high_watermark
