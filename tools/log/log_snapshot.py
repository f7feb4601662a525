# SPDX-License-Identifier: Apache-2.0
"""``raftlog log snapshot``: write a snapshot of the log, and let it replace the log.

Kafka writes the state of its state machine. This tool has no state machine: its snapshot has every data record of the
previous snapshot and of the log after that, unchanged except for metadata transactions, which a snapshot must not have.
It represents the same state, and is hardly smaller than the log.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

from raftlog.errors import InvalidSnapshotIdError, SnapshotNotFoundError
from raftlog.log.replicated_log import Isolation
from raftlog.log.snapshots import begin_snapshot
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.open_batch import KeyedRecord
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.storage.log.file_log import FileLog
from raftlog.tools.log.opened_log import opened_local_log
from raftlog.tools.log.snapshot_records import without_transactions
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts

_APPENDED_AT_ONCE: Final = 1024 * 1024
"""In bytes: the records of one append, which fit in a batch even if their batch in the log was compressed."""
_RECORD_OVERHEAD: Final = 32


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``raftlog log snapshot``."""
    parser.epilog = (
        "The snapshot has the log's records, not a compacted image of them; control records give it its voters and"
        f" kraft.version. {parser.epilog}"
    )
    parser.add_argument(
        "--at", type=int, metavar="OFFSET", help="its end, exclusive, at the end of a batch (default: the log end)"
    )
    parser.add_argument(
        "--delete-before", action="store_true", help="delete the records and snapshots that it replaces"
    )
    parser.add_argument("--force", action="store_true", help="treat the whole log as committed, even with other voters")
    add_format_option(parser)


def run(given: argparse.Namespace, now_ms: int) -> int:
    """Write the snapshot, and return the exit code.

    Raises:
        InvalidSnapshotIdError, OffsetOutOfRangeError: no snapshot can end there. Nothing was changed.
        VoterSetError: what is committed is not known, because this is not the only voter. Nothing was changed.
        RaftLogError: as for ``opened_local_log`` and ``FileLog``.
    """
    with opened_local_log(given.directory) as opened:
        opened.check_is_only_voter(is_forced=given.force)
        opened.commit_all()
        offset = opened.log.end_offset.offset if given.at is None else given.at
        source = opened.log.latest_snapshot_id
        writer = begin_snapshot(opened.log, opened.state_machine, offset, now_ms=now_ms)
        if writer is None:
            raise InvalidSnapshotIdError(
                f"offset {offset}: the log starts at {opened.log.start_offset}, and its latest snapshot is {source}"
            )
        record_count, size_bytes = _write(opened.log, writer, source, now_ms)
        has_moved = given.delete_before and opened.log.delete_before_snapshot(writer.snapshot_id)
        write_facts(
            given.format, [_fact(opened.log, writer.snapshot_id, record_count, size_bytes, has_moved=has_moved)]
        )
    return EXIT_CLEAN


def _write(log: FileLog, writer: RecordsSnapshotWriter, source: OffsetAndEpoch | None, now_ms: int) -> tuple[int, int]:
    """Write the snapshot, and return how many data records and how many bytes it has."""
    record_count = 0
    with writer:
        data_batches = _data_batches(log, source, writer.snapshot_id.offset)
        records = without_transactions(record for batch in data_batches for record in batch.records())
        for portion in _in_portions(records):
            writer.append_records(portion, now_ms)
            record_count += len(portion)
        return record_count, writer.freeze(now_ms)


def _data_batches(log: FileLog, source: OffsetAndEpoch | None, end_offset: int) -> Iterator[RecordBatch]:
    """Yield the data batches of a snapshot, and of the log from there on."""
    start_offset = 0
    if source is not None:
        start_offset = source.offset
        raw = log.read_snapshot(source)
        if raw is None:
            raise SnapshotNotFoundError(f"{source} is listed, and cannot be opened")
        with raw:
            yield from (batch for batch in RecordsSnapshotReader.of(raw) if isinstance(batch, RecordBatch))
    yield from (batch for batch in _batches(log, start_offset, end_offset) if not batch.is_control)


def _batches(log: FileLog, start_offset: int, end_offset: int) -> Iterator[RecordBatch]:
    while start_offset < end_offset:
        records = log.read(start_offset, Isolation.COMMITTED).records
        for batch in split(BufferSource(records)):
            if isinstance(batch, RecordBatch) and batch.base_offset < end_offset:  # The last one may be cut off.
                yield batch
                start_offset = batch.next_offset


def _in_portions(records: Iterable[KeyedRecord]) -> Iterator[list[KeyedRecord]]:
    portion: list[KeyedRecord] = []
    size_bytes = 0
    for record in records:
        size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
        if portion and size_bytes + size > _APPENDED_AT_ONCE:
            yield portion
            portion, size_bytes = [], 0
        portion.append(record)
        size_bytes += size
    if portion:
        yield portion


def _fact(log: FileLog, snapshot_id: OffsetAndEpoch, record_count: int, size_bytes: int, *, has_moved: bool) -> Fact:
    text = f"snapshot up to offset {snapshot_id.offset} (exclusive), epoch {snapshot_id.epoch}: {record_count} records"
    if has_moved:
        text += f"; the log starts at offset {log.start_offset} now"
    members = {
        "end_offset": snapshot_id.offset,
        "epoch": snapshot_id.epoch,
        "record_count": record_count,
        "size_bytes": size_bytes,
        "log_start_offset": log.start_offset,
    }
    return Fact(text, "snapshot", members)
