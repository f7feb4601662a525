# SPDX-License-Identifier: Apache-2.0
"""The kernel's facts about many headers at once, in both forms, beside a plain model."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from tests.records.kernel_forms import BUILT_FORMS, COMPILED, FORMS, INTERPRETED, examples, longs, needs_compiled
from tests.strategies import batch_bytes

_longs = st.sampled_from([-(2**63), -2, -1, 0, 1, 5000, 2**62, 2**63 - 2, 2**63 - 1]) | st.integers(0, 40)
_ints = st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]) | st.integers(0, 9)
_shorts = st.sampled_from([-(2**15), -1, 0, 0x10, 0x20, 2**15 - 1])
_batches = st.lists(
    st.builds(
        batch_bytes,
        base_offset=_longs,
        epoch=_ints,
        attributes=_shorts,
        last_offset_delta=_ints,
        base_timestamp=_longs,
        max_timestamp=_longs,
        producer_id=_longs,
        producer_epoch=_shorts,
        base_sequence=_ints,
        count=_ints,
    ),
    max_size=8,
)
_forms = pytest.mark.parametrize("kernel", FORMS)


def _positions(batches: list[bytes]) -> memoryview:
    positions = longs(len(batches))
    for index in range(len(batches)):
        positions[index] = index * 61
    return positions


def _disorder(batches: list[RecordBatch]) -> int:
    bits = 0
    for batch in batches:
        start, delta = batch.base_offset, batch.last_offset_delta
        if not (start >= 0 and delta >= 0 and start + delta + 1 < 2**63):
            bits |= 1
        if batch.record_count != delta + 1:
            bits |= 8
    for before, batch in itertools.pairwise(batches):
        if batch.base_offset < before.next_offset:
            bits |= 2
        if batch.base_offset != before.next_offset:
            bits |= 4
        if batch.partition_leader_epoch < before.partition_leader_epoch:
            bits |= 16
        if batch.max_timestamp < before.max_timestamp:
            bits |= 32
    return bits


@examples(60)
@given(stored=_batches)
def test_facts_are_those_of_the_headers(stored: list[bytes]) -> None:
    """Bits in common, bounds, the total of records and the disorder of batches are what a plain loop says."""
    log, positions = b"".join(stored), _positions(stored)
    batches = [RecordBatch(data) for data in stored]
    expected_attributes, expected_producers = 0, -1
    for batch in batches:
        expected_attributes |= batch.attributes
        expected_producers &= batch.producer_id & batch.producer_epoch & batch.base_sequence
    times = [(min(batch.base_timestamp, batch.max_timestamp), batch.max_timestamp) for batch in batches]
    expected = (
        expected_attributes,
        expected_producers,
        min((batch.partition_leader_epoch for batch in batches), default=2**31 - 1),
        min((time for time, _ in times), default=2**63 - 1),
        max((time for _, time in times), default=-(2**63)),
        sum(max(0, batch.record_count) for batch in batches),
    )
    for kernel in BUILT_FORMS:
        *facts, disorder = kernel.header_facts(log, positions)
        assert (*facts,) == expected
        order_counts = 0 if disorder & 1 else 6  # Offsets that cannot be have no order.
        assert disorder & (57 | order_counts) == _disorder(batches) & (57 | order_counts)


@examples(40)
@given(stored=_batches)
def test_last_offsets_are_those_of_the_headers(stored: list[bytes]) -> None:
    """Each is the base offset and the delta, in 64 bits."""
    for kernel in BUILT_FORMS:
        column = longs(len(stored))
        kernel.last_offsets(b"".join(stored), _positions(stored), column)
        assert column.tolist() == [RecordBatch(data).last_offset for data in stored]


@examples(40)
@given(stored=_batches, before=_longs)
def test_steps_back_are_counted(stored: list[bytes], before: int) -> None:
    """Each max timestamp from 0 on that is below one before it counts."""
    found = [kernel.timestamp_steps(b"".join(stored), _positions(stored), before) for kernel in BUILT_FORMS]
    steps = []
    for index, data in enumerate(stored):
        timestamp = RecordBatch(data).max_timestamp
        if 0 <= timestamp < before:
            steps.append((index, before - timestamp))
        before = max(before, timestamp)
    expected = len(steps), max((step for _, step in steps), default=0), steps[0][0] if steps else 0
    assert found == [expected] * len(BUILT_FORMS)


@needs_compiled
@examples(40)
@given(_batches, st.sampled_from([0, 1, 12]))
def test_both_forms_digest_alike(stored: list[bytes], block_bits: int) -> None:
    """Rows of blocks are the same in both forms, number for number."""
    rows = []
    for form in (INTERPRETED, COMPILED):
        blocks = longs(6 * len(stored))
        count = form.digest_blocks(b"".join(stored), _positions(stored), block_bits, blocks)
        rows.append([blocks[at : at + count].tolist() for at in range(0, len(blocks), max(1, len(stored)))])
    assert rows[0] == rows[1]


@_forms
def test_a_digest_is_the_one_that_it_was(kernel: Any) -> None:
    """Digests are kept with the results of audits: these are their numbers."""
    stored = [batch_bytes(base_offset=offset, epoch=offset // 2) for offset in (0, 1, 2, 1)]
    blocks = longs(24)
    assert kernel.digest_blocks(b"".join(stored), _positions(stored), 1, blocks) == 3
    numbers, counts, digests, starts, lasts, indexes = (blocks[at : at + 3].tolist() for at in range(0, 24, 4))
    assert numbers == [0, 1, 0]  # Blocks of two offsets: 0 and 1; 2; and 1 again.
    assert counts == [2, 1, 1]
    assert (starts, lasts) == ([0, 2, 1], [1, 2, 1])
    assert indexes == [0, 2, 3]
    assert digests == [-2875552247596914751, -6736680304219120173, -1303170511264143912]
