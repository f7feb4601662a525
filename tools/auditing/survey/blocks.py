# SPDX-License-Identifier: Apache-2.0
"""Digests of batches per block of offsets, by which replicas are compared first."""

from typing import Final

from raftlog.records.kernel_choice import kernel
from raftlog.tools.auditing.batches.batch_table import BatchTable
from raftlog.tools.auditing.evidence import BLOCK_SIZE, Block

_BLOCK_BITS: Final = BLOCK_SIZE.bit_length() - 1
_COLUMNS: Final = 6


class Blocks:
    """Adds up the digests of a segment."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}

    def take(self, table: BatchTable) -> None:
        """Add batches, which must follow those that were added before."""
        run, most = table.run, len(table)
        columns = memoryview(kernel.room(8 * _COLUMNS * most)).cast("q")
        count = kernel.digest_blocks(run.data, run.positions, _BLOCK_BITS, columns)
        rows = zip(*(columns[at : at + count] for at in range(0, _COLUMNS * most, most)), strict=True)
        for number, batch_count, digest, start_offset, last_offset, index in rows:
            position = run.position + run.positions[index]
            self._add(Block(number, batch_count, digest, start_offset, last_offset + 1, position))

    def _add(self, part: Block) -> None:
        known = self._blocks.get(part.number)
        if known is not None:
            part = Block(  # attrs.evolve would take five times as long, at least once per chunk.
                part.number,
                known.batch_count + part.batch_count,
                (known.digest + part.digest + (1 << 63)) % (1 << 64) - (1 << 63),
                known.start_offset,
                max(known.end_offset, part.end_offset),
                known.position,
            )
        self._blocks[part.number] = part

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks, by ascending number."""
        return tuple(self._blocks[number] for number in sorted(self._blocks))
