# SPDX-License-Identifier: Apache-2.0
"""Where the records of batches are, once they are unpacked."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvariantViolation
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.records.columns import record_areas
from raftlog.records.columns.record_areas import error_of, unpack_record_areas
from tests.records.kernel_forms import examples
from tests.strategies import batch_bytes, logs


@examples(50)
@given(logs(), st.sampled_from([1, 100, 10**6]))
def test_areas_are_those_of_the_batches(log: list[bytes], arena_size: int) -> None:
    """Each batch's area is what it decompresses to, in order; those of a log without codecs are not copied."""
    for run in split_runs(BufferSource(memoryview(b"".join(log)))):
        assert isinstance(run, BatchRun)
        with mock.patch.object(record_areas, "_ARENA_SIZE", arena_size):
            parts = list(unpack_record_areas(run))
        found = []
        for areas in parts:
            count = len(areas.run)
            found += [bytes(areas.data[areas.columns[at] : areas.columns[count + at]]) for at in range(count)]
        assert found == [batch.record_area() for batch in run.batches()]
        if not any(batch.attributes & 7 for batch in run.batches()):
            assert parts[0].data is run.data


def test_a_batch_that_does_not_decompress_has_no_records() -> None:
    """A batch that a codec refuses is reported by its index, and has no records."""
    good, bad = batch_bytes(b"\x0c\0\0\0\x01\x01\0", count=1), batch_bytes(b"?", attributes=1, count=9)
    run = next(iter(split_runs(BufferSource(memoryview(good + bad)))))
    assert isinstance(run, BatchRun)
    (areas,) = unpack_record_areas(run)
    assert list(areas.failed) == [1]
    assert areas.columns[4:6].tolist() == [1, 0]
    assert areas.capacity == 1


def test_a_rule_that_the_reader_does_not_know_is_our_bug() -> None:
    """The kernel and the reader refuse the same batches."""
    with pytest.raises(InvariantViolation):
        error_of(RecordBatch(batch_bytes()), "record-end")
