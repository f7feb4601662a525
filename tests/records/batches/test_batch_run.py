# SPDX-License-Identifier: Apache-2.0
"""Runs of batches: what is found of a log at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun, RunFinder
from raftlog.records.batches.builder import RecordBatchBuilder
from tests.records.kernel_forms import FORMS, examples, using
from tests.strategies import TIMESTAMP, batch_bytes, legacy_message, logs

_forms = pytest.mark.parametrize("form", FORMS)


def _large(size: int = 600) -> bytes:
    builder = RecordBatchBuilder(0)
    builder.append(TIMESTAMP, None, b"v" * size)
    return builder.build()


@_forms
@examples(30)
@given(log=logs(), position=st.integers(0, 2**40))
def test_a_run_is_all_sound_batches(form: Any, log: list[bytes], position: int) -> None:
    """A log that is sound is one run, of its batches in order, each at its position; its CRCs are known to hold."""
    data = b"".join(log)
    with using(form):
        run, in_vain = RunFinder().find(memoryview(data), position)
    assert run is not None
    assert (len(run), run.start, run.end, in_vain) == (len(log), position, position + len(data), 0)
    at = position
    for index, (batch, stored) in enumerate(zip(run.batches(), log, strict=True)):
        assert batch == RecordBatch(stored) == run.batch(index)
        assert (batch.position, batch.crc_holds) == (at, True)
        at += len(stored)


@_forms
@pytest.mark.parametrize("size", [0, 100, 440, 441, 442, 443, 444, 445, 446, 5000], ids=str)
def test_a_run_ends_before_a_crc_that_does_not_hold(form: Any, size: int) -> None:
    """Whatever the size of a batch, a byte that was changed in it ends the run before it: it was checked in vain."""
    sound = _large(size)
    with using(form):
        for changed in (21, 60, len(sound) - 1, 17):
            bad = bytearray(sound)
            bad[changed] ^= 0x10
            run, in_vain = RunFinder().find(memoryview(sound + _large() + bad + sound), 0)
            assert run is not None
            assert list(run.batches()) == [RecordBatch(sound), RecordBatch(_large())]
            assert len(bad) <= in_vain <= 2 * len(bad)
            assert RunFinder().find(memoryview(bytes(bad) + sound), 0) == (None, in_vain)


@_forms
@pytest.mark.parametrize(
    "rest",
    [b"", b"\0", b"\0" * 61, _large()[:-1], _large()[:16], legacy_message(1, 3, b"k", b"v"), b"\xff" * 100],
    ids=["end", "byte", "zeros", "cut", "cut header", "legacy", "ones"],
)
def test_a_run_ends_where_no_batch_follows(form: Any, rest: bytes) -> None:
    """Bytes that are not a whole batch of magic 2 are not part of a run, nor a run of their own."""
    with using(form):
        finder = RunFinder()
        assert finder.find(memoryview(rest), 7) == (None, 0)
        run, _ = finder.find(memoryview(batch_bytes() * 3 + rest), 7)
    assert run is not None
    assert (len(run), run.end) == (3, 7 + 3 * 61)


@_forms
def test_runs_do_not_share_what_a_finder_keeps(form: Any) -> None:
    """A run that was found stays as it is when the same finder finds others, larger and smaller."""
    with using(form):
        finder = RunFinder()
        runs = [finder.find(memoryview(batch_bytes(base_offset=count) * count), 0)[0] for count in (3, 50, 1)]
    for run, count in zip(runs, (3, 50, 1), strict=True):
        assert run is not None
        assert [batch.base_offset for batch in run.batches()] == [count] * count
        assert [batch.position for batch in run.batches()] == list(range(0, 61 * count, 61))


def test_a_part_of_a_run() -> None:
    """A part has the batches from the first to before the last, where they are."""
    run, _ = RunFinder().find(memoryview(b"".join(batch_bytes(base_offset=index) for index in range(5))), 1000)
    assert run is not None
    part = run.part(1, 3)
    assert [(batch.base_offset, batch.position) for batch in part.batches()] == [(1, 1061), (2, 1122)]
    assert (part.start, part.end, len(part)) == (1061, 1183, 2)


def test_a_run_of_one_batch() -> None:
    """A single batch is a run, at its position."""
    batch = RecordBatch(_large(), 77)
    run = BatchRun.of(batch)
    assert list(run.batches()) == [batch]
    assert (len(run), run.start, run.end, run.batch(0).position) == (1, 77, 77 + batch.size_bytes, 77)
