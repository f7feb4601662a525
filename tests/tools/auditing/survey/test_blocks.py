# SPDX-License-Identifier: Apache-2.0
"""Digests of blocks say whether batches are the same."""

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.tools.auditing.evidence import BLOCK_SIZE, Block
from tests.tools.auditing.made_segments import TINY_CHUNK, data_batch, survey, with_base_offset, with_epoch

_gaps = st.lists(st.sampled_from([0, 1, 1000, BLOCK_SIZE, 10 * BLOCK_SIZE]), min_size=1, max_size=12)


def _batches(gaps: list[int]) -> list[bytes]:
    batches, offset = [], 0
    for gap in gaps:
        batches.append(data_batch(offset + gap, count=2))
        offset += gap + 2
    return batches


def _blocks(batches: list[bytes], chunk_size: int | None = None) -> tuple[Block, ...]:
    return survey(b"".join(batches), is_raft=False, chunk_size=chunk_size).blocks


@settings(max_examples=50, deadline=None)
@given(_gaps, st.sampled_from([TINY_CHUNK, 450]))
def test_blocks_are_those_of_the_batches(gaps: list[int], chunk_size: int) -> None:
    """Each block counts the batches that start in it and says where they are, wherever chunks end."""
    batches = _batches(gaps)
    expected: dict[int, tuple[int, int, int, int]] = {}
    position = 0
    for batch in batches:
        offset = int.from_bytes(batch[:8], "big")
        count, start, _, first = expected.get(offset // BLOCK_SIZE, (0, offset, 0, position))
        expected[offset // BLOCK_SIZE] = count + 1, start, offset + 2, first
        position += len(batch)
    blocks = _blocks(batches)
    found = {each.number: (each.batch_count, each.start_offset, each.end_offset, each.position) for each in blocks}
    assert found == expected
    assert _blocks(batches, chunk_size) == blocks


@settings(max_examples=50, deadline=None)
@given(_gaps, st.integers(0, 12))
def test_digests_add_up_over_files(gaps: list[int], cut: int) -> None:
    """However batches are divided into files, the sums of their digests are the same."""
    batches = _batches(gaps)
    sums: dict[int, int] = {}
    for part in (batches[:cut], batches[cut:]):
        for block in _blocks(part):
            sums[block.number] = (sums.get(block.number, 0) + block.digest) % 2**64
    assert sums == {block.number: block.digest % 2**64 for block in _blocks(batches)}


@settings(max_examples=50, deadline=None)
@given(_gaps, st.data())
def test_another_batch_has_another_digest(gaps: list[int], data: st.DataObject) -> None:
    """A batch of another epoch, other bytes or another offset in the same block changes its block's digest alone."""
    batches = _batches(gaps)
    index = data.draw(st.integers(0, len(batches) - 1))
    offset = int.from_bytes(batches[index][:8], "big")
    others = [
        with_epoch(batches[index], 2),
        data_batch(offset, count=2, timestamp=5),
        with_base_offset(batches[index], offset ^ 1),
    ]
    before = _blocks(batches)
    batches[index] = data.draw(st.sampled_from(others))
    changed = {
        block.number
        for block, other in zip(before, _blocks(batches), strict=True)
        if attrs.evolve(block, digest=0) == block or block.digest != other.digest
    }
    assert changed == {offset // BLOCK_SIZE}
