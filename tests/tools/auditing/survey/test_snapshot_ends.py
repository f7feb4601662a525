# SPDX-License-Identifier: Apache-2.0
"""Finding the batches that snapshots end at."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.records.columns.columns import BatchColumns
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import BatchSeen
from raftlog.tools.auditing.survey.snapshot_ends import SnapshotEnds
from tests.strategies import TIMESTAMP


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=6), st.sets(st.integers(0, 24)))
def test_the_batch_before_each_end_is_found(batches: list[tuple[int, int]], offsets: set[int]) -> None:
    """For each offset it is the batch that holds the one before, if there is one, with the time of the one at it."""
    expected: dict[int, BatchSeen] = {}
    starts: dict[int, int] = {}
    ends = SnapshotEnds(offsets)
    base_offset = position = 0
    for count, gap in batches:
        data = raft_batch(base_offset, 3, count)
        last_offset = base_offset + count - 1
        for offset in range(base_offset + 1, last_offset + 2):
            seen = BatchSeen(offset, base_offset, last_offset, 3, TIMESTAMP + base_offset, position)
            expected[offset] = seen
        starts[base_offset] = TIMESTAMP + base_offset
        base_offset += count + gap
        position += len(data)
        (run,) = split_runs(BufferSource(data))
        assert isinstance(run, BatchRun)
        run = BatchRun(run.data, position - len(data), run.positions, run.sizes)
        ends.take(BatchTable(BatchColumns(run)))
    assert list(ends.batches()) == [
        attrs.evolve(expected[offset], next_timestamp=starts.get(offset, -1))
        for offset in sorted(offsets)
        if offset in expected
    ]
