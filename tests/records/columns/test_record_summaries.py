# SPDX-License-Identifier: Apache-2.0
"""Summaries of records, in both forms of the kernel, beside what the reader of one batch says."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.records.columns.record_summaries import (
    HAS_HEADERS,
    HAS_KEY,
    HAS_TIME_DELTA,
    LACKS_VALUE,
    MAX_TIMESTAMP_DIFFERS,
    OFFSETS_GO_BACK,
    OFFSETS_GO_BEYOND,
    OFFSETS_HAVE_GAPS,
    RecordSummaries,
    summarize_records,
)
from tests.records.extreme_batches import extreme_batches
from tests.records.kernel_forms import FORMS, examples, using
from tests.strategies import logs, with_mutated_area

Summary = tuple[int, int, int, int]


def _runs(log: bytes) -> list[BatchRun]:
    return [piece for piece in split_runs(BufferSource(memoryview(log))) if isinstance(piece, BatchRun)]


def _expected(batch: RecordBatch) -> Summary | DecodeError:
    try:
        records = list(batch.records())
    except DecodeError as error:
        return error
    if not records:
        return 0, -1, -1, 0
    offsets = [record.offset for record in records]
    pairs = list(itertools.pairwise(offsets))
    greatest = max(record.timestamp for record in records)
    is_within = batch.base_offset <= offsets[0] and offsets[-1] <= batch.last_offset
    has_gaps = offsets[0] > batch.base_offset or any(later > earlier + 1 for earlier, later in pairs)
    traits = {
        OFFSETS_GO_BACK: any(later <= earlier for earlier, later in pairs),
        OFFSETS_HAVE_GAPS: has_gaps,
        OFFSETS_GO_BEYOND: not is_within,
        HAS_TIME_DELTA: any(record.timestamp_delta != 0 for record in records),
        MAX_TIMESTAMP_DIFFERS: greatest != batch.max_timestamp,
        HAS_HEADERS: any(record.headers for record in records),
        HAS_KEY: any(record.key is not None for record in records),
        LACKS_VALUE: any(not record.value for record in records),
    }
    return offsets[0], offsets[-1], greatest, sum(trait for trait, is_so in traits.items() if is_so)


def _check(kernel: Any, log: bytes, arena_size: int | None = None) -> None:
    with using(kernel, arena_size=arena_size):
        for run in _runs(log):
            _check_run(run, summarize_records(run))
            if not any(batch.attributes & 7 for batch in run.batches()):
                _check_run(run, summarize_records(run, may_be_compressed=False))


def _check_run(run: BatchRun, summaries: RecordSummaries) -> None:
    errors = dict(summaries.errors)
    all_traits = 0
    for index, batch in enumerate(run.batches()):
        expected = _expected(batch)
        if isinstance(expected, DecodeError):
            assert str(errors.pop(index)) == str(expected)
            continue
        all_traits |= expected[3]
        columns = summaries.first_offsets, summaries.last_offsets, summaries.max_timestamps, summaries.traits
        assert tuple(column[index] for column in columns) == expected
    assert errors == {}
    assert summaries.all_traits == all_traits


@examples(25)
@given(log=logs(), arena_size=st.sampled_from([None, 1]))
@pytest.mark.parametrize("kernel", FORMS)
def test_summaries_are_those_of_the_records(kernel: Any, log: list[bytes], arena_size: int | None) -> None:
    """Of each batch, compressed or not, a summary says what its records do, however many are unpacked together."""
    _check(kernel, b"".join(log), arena_size)


@examples(30)
@given(batches=st.lists(with_mutated_area() | extreme_batches(), min_size=1, max_size=3))
@pytest.mark.parametrize("kernel", FORMS)
def test_batches_that_do_not_read_are_errors(kernel: Any, batches: list[bytes]) -> None:
    """A batch that the reader refuses is an error, in the reader's words, and those beside it are summarized."""
    _check(kernel, b"".join(batches))
