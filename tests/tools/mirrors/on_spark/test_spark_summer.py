# SPDX-License-Identifier: Apache-2.0
"""Logs that are read in parts, as tasks of Spark read them, are the same as logs that are read as a whole.

A function that goes over all inputs takes the place of Spark here; everything is pickled, as it is there.
"""

import random
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.columns.transactions import AbortedRange, Transactions
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.rows import UNKNOWN, DigestRows
from raftlog.tools.mirrors.on_spark import spark_summer
from raftlog.tools.mirrors.on_spark.log_parts import packed, parts_of
from raftlog.tools.mirrors.on_spark.spark_summer import SparkSummer
from raftlog.tools.mirrors.reading.log_reading import LogReading, SumsRequest, read_log
from raftlog.tools.mirrors.reading.log_rows import LogRows, LogTransactions, SegmentPlace
from tests.tools.made_logs import batch, write_log
from tests.tools.mirrors.on_spark.parts_here import over_all, summer_here, without_spark
from tests.tools.mirrors.planted_clusters import FAULTS, plant, read_by, rules_by_topic, verified

SEEDS = st.integers(0, 1 << 32)
PRODUCER = 7


@pytest.fixture
def here() -> Iterator[Callable[[int], SparkSummer]]:
    """Make summers of parts of a size."""
    with without_spark():
        yield summer_here


@pytest.mark.parametrize("part_size", [1 << 40, 4_096, 1])
def test_faults_are_found_alike_in_parts(
    part_size: int, tmp_path: Path, here: Callable[[int], SparkSummer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster with a fault of each kind: output is the same to the byte, and each fault is among what is found."""
    source, target = plant(tmp_path)
    texts = [verified(source, target), verified(source, target, "--format", "jsonl")]
    found = rules_by_topic(texts[1])
    assert found == {name: list(fault.rules) for name, fault in FAULTS.items() if fault.rules}
    assert "[batch-crc]" in texts[0].messages
    read_by(monkeypatch, here(part_size))
    assert [verified(source, target), verified(source, target, "--format", "jsonl")] == texts


def batches_of(chance: random.Random, start: int) -> tuple[list[bytes], int]:
    """Batches with offsets left out, control batches and offsets between, which at times fall; and the end."""
    found, offset = [], start
    for _ in range(chance.randrange(1, 9)):
        builder = RecordBatchBuilder(offset, partition_leader_epoch=0, producer_id=PRODUCER)
        if chance.random() < 0.2:
            builder = RecordBatchBuilder(offset, partition_leader_epoch=0, is_control=True)
            builder.append(1, bytes(4), bytes(6))
            offset += 1
        else:
            for _ in range(chance.randrange(1, 6)):
                builder.append(1, b"k", bytes([chance.randrange(3)]), offset=offset)
                offset += chance.choice((1, 1, 1, 2, 5))
        found.append(builder.build())
        offset = max(0, offset + chance.choice((0, 0, 0, 0, 1, 1 << 21, -2)))
    return found, offset


def made(chance: random.Random, folder: Path) -> LogRows:
    """A log of some segments, of which at times bytes are damaged, and at times the first offsets are gone."""
    offset, segments = 0, []
    for _ in range(chance.randrange(1, 4)):
        batches, end = batches_of(chance, offset)
        data = bytearray(b"".join(batches))
        if chance.random() < 0.3:
            data[chance.randrange(len(data))] ^= 0x55
        if chance.random() < 0.2:
            data += bytes(chance.randrange(1, 200))
        path = folder / f"{offset:020}.log"
        path.write_bytes(data)
        segments.append(SegmentPlace(str(path), offset))
        offset = max(end, offset + 1)
    aborted = [AbortedRange(PRODUCER, at, at + 3) for at in chance.sample(range(30), chance.randrange(3))]
    return LogRows(segments, chance.choice((0, 0, 3)), offset, LogTransactions(Transactions(tuple(aborted))))


def whole_rows(log: LogRows) -> DigestRows:
    """All rows of a log that is not too long for that."""
    return DigestRows.joined(log.read(log.start_offset, min(log.end_offset, 300)))


def facts_of(reading: LogReading, offsets: Sequence[int]) -> list[object]:
    """What is known of a log: its ranks, whether records are there, and what cannot be read."""
    places = np.array(offsets, np.int64)
    views = reading.summed.all, reading.summed.committed
    found = [[view.rank(each) for each in offsets] + view.have(places).tolist() for view in views]
    return [*found, reading.holes, reading.damage]


@given(SEEDS)
@settings(max_examples=60)
def test_parts_make_up_their_log(seed: int) -> None:
    """Any log, cut after any batch: ranks, contents, holes and damage are those of the whole, and of its rows."""
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(spark_summer, "run_on_workers", over_all)
        log = made(chance, Path(folder))
        edges = np.array(sorted(chance.sample(range(40), 5)), np.int64)
        offsets = [*range(60), log.end_offset - 1, log.end_offset]
        whole = read_log(SumsRequest(log, edges, wants_holes=True))
        (parts,) = summer_here(chance.choice([1, 200, 1 << 40])).summed([SumsRequest(log, edges, wants_holes=True)])
        assert facts_of(parts, offsets) == facts_of(whole, offsets)
        rows = whole_rows(log)
        bounds = np.array(sorted({*chance.sample(range(60), 8), log.end_offset}), np.int64)
        for ours, theirs, kept in zip(
            (whole.summed.all, whole.summed.committed),
            (parts.summed.all, parts.summed.committed),
            (rows, rows.without_aborted()),
            strict=True,
        ):
            assert [ours.rank(each) for each in range(60)] == kept.offsets.searchsorted(range(60)).tolist()
            are_equal, _ = ours.equal_windows(bounds, theirs, bounds)
            for start, end, is_equal in zip(bounds[:-1], bounds[1:-1], are_equal, strict=False):
                inside = kept.between(int(start), int(end))
                is_known = not (inside.flags & UNKNOWN).any()
                assert is_equal == (is_known and len(inside) > 0 and inside.offsets[0] == start)
            digests = [np.array([1, 2], np.uint64), *kept.where(kept.flags & UNKNOWN == 0).digests[:9]]
            assert theirs.first_offsets(digests, 50) == ours.first_offsets(digests, 50)


@pytest.mark.parametrize("damage", [b"\x7f\xff\xff\xff", bytes(4)], ids=["too long a batch", "no length"])
def test_damage_where_a_segment_is_divided_is_that_of_the_whole(
    damage: bytes, tmp_path: Path, here: Callable[[int], SparkSummer]
) -> None:
    """An index leads to a batch after it, so that a part ends within what looks like a longer batch."""
    batches = [batch(base_offset=number, values=[bytes(100)]) for number in range(8)]
    data, size = bytearray(b"".join(batches)), len(batches[0])
    data[4 * size + 8 : 4 * size + 12] = damage
    path = write_log(tmp_path, data)
    path.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", each, each * size) for each in range(1, 8)))
    log = LogRows([SegmentPlace(str(path), 0)], 0, 8, LogTransactions())
    request = SumsRequest(log, np.zeros(0, np.int64), wants_holes=True)
    assert [each.part.position for each in parts_of(request, 3 * size)] == [0, 3 * size, 6 * size]
    (parts,) = here(3 * size).summed([request])
    assert facts_of(parts, range(9)) == facts_of(read_log(request), range(9))
    assert parts.holes == (OffsetRange(4, 5),)
    (found,) = parts.damage
    assert (found.position, found.size_bytes) == (4 * size, size)


@given(SEEDS)
def test_holes_are_what_has_no_record(seed: int) -> None:
    """Each unknown offset is in a hole, and no other one is."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        log = made(chance, Path(folder))
        reading = read_log(SumsRequest(log, np.zeros(0, np.int64), wants_holes=True))
        rows = whole_rows(log)
        holes = {each for hole in reading.holes for each in range(hole.start, min(hole.end, 300))}
        assert holes == set(rows.offsets[rows.flags & UNKNOWN != 0].tolist())
        assert all(left.end < right.start for left, right in zip(reading.holes, reading.holes[1:], strict=False))
        assert OffsetRange(0, 0) not in reading.holes


@given(st.lists(st.integers(0, 200_000), max_size=9), st.integers(1, 400_000))
def test_parts_are_divided_among_tasks(sizes: list[int], most: int) -> None:
    """Each is in one task, in order; a task without its last part is below the size."""
    tasks = list(packed(sizes, most))
    assert [number for each in tasks for number in each] == list(range(len(sizes)))
    for each in tasks:
        assert sum(sizes[number] + 64 * 1024 for number in each[:-1]) < most
