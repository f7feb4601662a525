# SPDX-License-Identifier: Apache-2.0
"""Which batches and records of a part are wanted, by a plain model, at every bound of a small log."""

import itertools
from typing import Any, Final

import numpy as np
import pytest

from raftlog.invariants import present
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.records.columns.columns import BatchColumns
from raftlog.records.columns.transactions import AbortedRange
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.spark.rows import selection
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.parts import FilePart
from raftlog.tools.spark.rows.selection import wanted_batches, wanted_rows
from tests.tools.made_logs import TIMESTAMP, batch

SPANS: Final = ((0, 0), (1, 3), (4, 4), (5, 8))
"""First and last offset of each batch."""
PRODUCED: Final = (
    ("transactional", 1),
    ("transactional", 2),
    ("plain", 1),
    ("transactional", 1),
    ("marker", 1),
    ("transactional", 1),
    ("transactional", 2),
)
"""Kind and producer of a batch at each offset."""
BOUNDS: Final = (None, *range(11))


def _table(*batches: bytes) -> BatchTable:
    [run] = split_runs(BufferSource(b"".join(batches)))
    assert isinstance(run, BatchRun)
    return BatchTable(BatchColumns(run))


def _flags(found: Any, count: int) -> list[bool]:
    return [True] * count if found is None else list(map(bool, found))


@pytest.fixture(scope="module")
def table() -> BatchTable:
    """A batch per span, a minute apart."""
    return _table(
        *(
            batch(first, [b"v"] * (1 + last - first), timestamp=TIMESTAMP + 60_000 * number)
            for number, (first, last) in enumerate(SPANS)
        )
    )


def test_batches_at_every_bound(table: BatchTable) -> None:
    """A batch is wanted if one of its offsets is: from the first one on, and before the end."""
    for first, end in itertools.product(BOUNDS, BOUNDS):
        part = FilePart("log", first_offset=first, end_offset=end)
        expected = [(first is None or b >= first) and (end is None or a < end) for a, b in SPANS]
        assert _flags(wanted_batches(table, part, Hints()), len(SPANS)) == expected, (first, end)


def test_batches_at_every_hint(table: BatchTable) -> None:
    """The first and the last offset of a hint are wanted, and of two starts the later one counts."""
    for first, last, start in itertools.product(BOUNDS, BOUNDS, (None, 0, 4, 5)):
        hints = Hints(first_offset=first, last_offset=last)
        expected = [
            (first is None or b >= first) and (start is None or b >= start) and (last is None or a <= last)
            for a, b in SPANS
        ]
        assert _flags(wanted_batches(table, FilePart("log", first_offset=start), hints), len(SPANS)) == expected


def test_batches_at_every_time(table: BatchTable) -> None:
    """A batch is wanted if its newest record is as new as the hint."""
    newest = [TIMESTAMP + 60_000 * number + last - first for number, (first, last) in enumerate(SPANS)]
    for time in {each + change for each in newest for change in (-1, 0, 1)}:
        found = wanted_batches(table, FilePart("log"), Hints(since_ms=time))
        assert _flags(found, len(SPANS)) == [each >= time for each in newest]


def test_rows_at_every_bound() -> None:
    """The same for records."""
    offsets = np.array([2, 3, 5], dtype=np.int64)
    for first, end in itertools.product(BOUNDS, BOUNDS):
        found = wanted_rows(FilePart("log", first_offset=first, end_offset=end), offsets)
        expected = [(first is None or each >= first) and (end is None or each < end) for each in offsets]
        assert _flags(found, 3) == expected, (first, end)


def test_batches_of_aborted_transactions() -> None:
    """Data of a producer's transaction, from its first offset to its marker; no markers, and nobody else's."""
    table = _table(*(_of_producer(offset, *each) for offset, each in enumerate(PRODUCED)))
    ranges = [AbortedRange(*each) for each in itertools.product((1, 2), range(-1, 8), range(-1, 8))]
    for aborted in [*((each,) for each in ranges), *itertools.pairwise(ranges), ()]:
        part = FilePart("log", aborted=aborted)
        expected = [
            kind == "transactional" and any(p == producer and a <= offset <= b for p, a, b in aborted)
            for offset, (kind, producer) in enumerate(PRODUCED)
        ]
        assert list(map(bool, present(selection.are_aborted(table, part), "flags"))) == expected, aborted
        assert _flags(wanted_batches(table, part, Hints()), len(PRODUCED)) == [not each for each in expected]


def test_no_batch_can_be_aborted() -> None:
    """Without data of transactions there is nothing to compare."""
    table = _table(_of_producer(0, "plain", 1), _of_producer(1, "marker", 1))
    assert selection.are_aborted(table, FilePart("log", aborted=(AbortedRange(1, 0, 9),))) is None


def _of_producer(offset: int, kind: str, producer: int) -> bytes:
    ids: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "is_transactional": kind != "plain"}
    if kind == "marker":
        return batch(offset, (bytes(6),), key=bytes(4), is_control=True, **ids)
    return batch(offset, base_sequence=offset, **ids)
