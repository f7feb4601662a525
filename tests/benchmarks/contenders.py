# SPDX-License-Identifier: Apache-2.0
"""What is measured: raftlog and its peers, each doing the same work in the quickest way that its interface has.

All check the CRC of every batch. An operation takes its input and returns how many batches or records it has seen,
with the time that it took where it had to make something ready first.
Packages are imported by the operation that needs them, so that no other pays for them in memory.
"""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.columns.columns import (
    RECORD_COLUMNS,
    Chunk,
    RecordColumns,
    read_columns,
    read_records,
    record_digests,
)
from raftlog.storage.reading.segment_reader import map_segments, open_segment
from tests.benchmarks import machine
from tests.benchmarks.inputs import Row
from tests.benchmarks.measure import Timing
from tests.benchmarks.segment_records import count_records

_LARGEST_BATCH: Final = 16 * 1024 * 1024
_ARROW_COLUMNS: Final = ("offset", "timestamp", "key", "value")
_SEGMENTS: Final = 24
"""How many segments many are."""


@attrs.frozen
class Operation:
    """A function, and what it is given: a log in memory or its path, or batches as bytes or as lists of rows."""

    function: Callable[[Any], int | Timing]
    needs: Literal["log", "path", "batches", "rows"] = "log"


def _scan(log: bytes) -> int:
    return sum(len(piece.batches) for piece in read_columns(log, ()) if isinstance(piece, Chunk))


def _records(log: bytes, columns: tuple[str, ...] = RECORD_COLUMNS) -> Iterator[RecordColumns]:
    for piece in read_columns(log, columns):
        assert isinstance(piece, Chunk)
        assert piece.records is not None
        assert not piece.errors
        yield piece.records


def _columns(log: bytes) -> int:
    return sum(records.count for records in _records(log))


def _digests(log: bytes) -> int:
    return sum(len(record_digests(records)) for records in _records(log))


def _arrow(log: bytes) -> int:
    return sum(records.to_arrow().num_rows for records in _records(log, _ARROW_COLUMNS))


def _attributes(log: bytes) -> int:
    count = 0
    for record in read_records(log):
        _ = record.offset
        _ = record.timestamp
        _ = record.key
        _ = record.value
        count += 1
    return count


def _encode(batches: list[list[Row]]) -> int:
    for rows in batches:
        builder = RecordBatchBuilder(0)
        builder.extend(rows)
        builder.build()
    return sum(map(len, batches))


def _segment(path: Path) -> int:
    with open_segment(str(path)) as segment:
        return count_records(segment)


def _many_segments(path: Path, processes: int) -> int:
    # The same one many times: all of them would be in the page cache anyway.
    return sum(map_segments(count_records, [str(path)] * _SEGMENTS, processes=processes))


def _one_process(path: Path) -> int:
    return _many_segments(path, 1)


def _two_processes(path: Path) -> int:
    return _many_segments(path, 2)


def _batches(log: bytes, memory_records: Any) -> Iterator[Any]:
    """Yield the batches of aiokafka or kafka-python, whose interfaces are the same."""
    source = memory_records(log)
    while (batch := source.next_batch()) is not None:
        assert batch.validate_crc()
        yield batch


def _peer_scan(log: bytes, memory_records: Any) -> int:
    return sum(1 for _ in _batches(log, memory_records))


def _peer_decode(log: bytes, memory_records: Any) -> int:
    count = 0
    for batch in _batches(log, memory_records):
        for _ in batch:
            count += 1
    return count


def _peer_attributes(log: bytes, memory_records: Any) -> int:
    count = 0
    for batch in _batches(log, memory_records):
        for record in batch:
            _ = record.offset
            _ = record.timestamp
            _ = record.key
            _ = record.value
            count += 1
    return count


def _peer_encode(batches: list[list[Row]], batch_builder: Any) -> int:
    for rows in batches:
        builder = batch_builder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=_LARGEST_BATCH,
        )
        for offset, (timestamp, key, value) in enumerate(rows):
            builder.append(offset, timestamp, key, value, [])
        builder.build()
    return sum(map(len, batches))


def _peer(package: str, work: Callable[[Any, Any], int]) -> Callable[[Any], int]:
    """Return work of aiokafka or kafka-python, which have the same classes in the same places."""

    def run(source: Any) -> int:
        module, name = ("memory_records", "MemoryRecords")
        if work is _peer_encode:
            module, name = ("default_records", "DefaultRecordBatchBuilder")
        return work(source, getattr(importlib.import_module(f"{package}.record.{module}"), name))

    return run


def _of_log(name: str) -> Callable[[Any], int | Timing]:
    """Return a function of ``log_operations``."""

    def run(source: Any) -> int | Timing:
        seen: int | Timing = getattr(importlib.import_module("tests.benchmarks.log_operations"), name)(source)
        return seen

    return run


def _of_quorum(name: str) -> Callable[[Any], Timing]:
    """Return a function of ``quorum_operations``."""

    def run(source: Any) -> Timing:
        seen: Timing = getattr(importlib.import_module("tests.benchmarks.quorum_operations"), name)(source)
        return seen

    return run


def _verify(path: Path) -> int:
    from tests.benchmarks.audit_operations import verify

    return verify(path)


def _kio_decode(log: bytes) -> int:
    from kio.records.readers import read_batch

    count = position = 0
    while position < len(log):
        batch, size = read_batch(log, position)
        count += len(batch.records)
        position += size
    return count


OPERATIONS: Final = {
    "raftlog scan": Operation(_scan),
    "raftlog columns": Operation(_columns),
    "raftlog digests": Operation(_digests),
    "raftlog arrow": Operation(_arrow),
    "raftlog attributes": Operation(_attributes),
    "raftlog encode": Operation(_encode, "rows"),
    "raftlog segment": Operation(_segment, "path"),
    "raftlog verify": Operation(_verify, "path"),
    "raftlog append": Operation(_of_log("append"), "batches"),
    "raftlog append as follower": Operation(_of_log("follow"), "batches"),
    "raftlog append and sync": Operation(_of_log("append_and_sync"), "batches"),
    "raftlog recovery": Operation(_of_log("recover"), "path"),
    "raftlog take over": Operation(_of_log("take_over"), "path"),
    "raftlog open": Operation(_of_log("reopen"), "path"),
    "raftlog control records": Operation(_of_log("read_control_records")),
    "raftlog voter set at offset": Operation(_of_log("look_up_voter_sets")),
    "raftlog snapshot": Operation(_of_log("write_snapshot"), "batches"),
    "raftlog verify snapshot": Operation(_of_log("verify"), "batches"),
    "raftlog accumulate": Operation(_of_log("accumulate"), "rows"),
    "raftlog encode as one": Operation(_of_log("encode_as_one"), "rows"),
    "raftlog lead in one call": Operation(_of_quorum("lead_in_one_call"), "rows"),
    "raftlog lead in 64 calls": Operation(_of_quorum("lead_in_many_calls"), "rows"),
    "raftlog lead one at a time": Operation(_of_quorum("lead_one_at_a_time"), "rows"),
    "raftlog one process": Operation(_one_process, "path"),
    "raftlog two processes": Operation(_two_processes, "path"),
    "aiokafka scan": Operation(_peer("aiokafka", _peer_scan)),
    "aiokafka decode": Operation(_peer("aiokafka", _peer_decode)),
    "aiokafka attributes": Operation(_peer("aiokafka", _peer_attributes)),
    "aiokafka encode": Operation(_peer("aiokafka", _peer_encode), "rows"),
    "kafka-python scan": Operation(_peer("kafka", _peer_scan)),
    "kafka-python decode": Operation(_peer("kafka", _peer_decode)),
    "kafka-python attributes": Operation(_peer("kafka", _peer_attributes)),
    "kafka-python encode": Operation(_peer("kafka", _peer_encode), "rows"),
    "kio decode": Operation(_kio_decode),
    "machine memory read": Operation(machine.read_memory),
    "machine crc": Operation(machine.check_memory),
    "machine sync": Operation(machine.sync_appends, "path"),
    "machine write all and sync": Operation(_of_log("write_all_and_sync"), "batches"),
    "machine read all and crc": Operation(_of_log("read_all_and_check"), "path"),
}
"""Everything that can be measured in a process of its own, by contender and work."""
