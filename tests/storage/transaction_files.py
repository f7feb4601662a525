# SPDX-License-Identifier: Apache-2.0
"""A log of segments with what Kafka writes beside them about transactions."""

from pathlib import Path

from raftlog.records.files.index_entries import TRANSACTION_INDEX, AbortedTransaction
from raftlog.records.files.producer_snapshot import ProducerStateEntry, write_producer_snapshot
from tests.consumer_logs import ConsumerLog
from tests.tools.made_logs import write_log


def write_segments(partition: Path, log: ConsumerLog, rolls: list[int], *, has_files: bool = False) -> list[Path]:
    """Write the segments of a log, and return their paths.

    Args:
        partition: the directory.
        log: what to write.
        rolls: before which batches, by index, a segment begins.
        has_files: whether indexes and producer snapshots are written too.
    """
    count = len(log.batches)
    starts = sorted({0, *(roll for roll in rolls if roll < count)})
    paths = []
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        first = log.base_offsets[start] if start else 0
        behind = log.base_offsets[end] if end < count else log.end_offset
        paths.append(write_log(partition, *log.batches[start:end], name=f"{first:020}.log"))
        if has_files:
            (partition / f"{first:020}.index").write_bytes(b"")
            entries = [AbortedTransaction(0, *each, 0) for each in log.aborted if first <= each[2] < behind]
            if entries:
                (partition / f"{first:020}.txnindex").write_bytes(TRANSACTION_INDEX.encode(entries))
            active = log.open_at[start] if count else {}
            states = [ProducerStateEntry(producer, 0, 0, 0, 0, 0, 0, offset) for producer, offset in active.items()]
            (partition / f"{first:020}.snapshot").write_bytes(write_producer_snapshot(states))
    return paths
