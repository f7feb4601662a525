# SPDX-License-Identifier: Apache-2.0
"""Accounts for every byte of a file."""

from typing import TYPE_CHECKING

import attrs

from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import Corruption, Piece, TornTail, ZeroPadding

if TYPE_CHECKING:
    from raftlog.records.columns.columns import Chunk


@attrs.define
class Coverage:
    """Counts of bytes, which add up to the file, or to the part of it that was read.

    Attributes:
        explained_bytes: bytes in batches whose CRC holds.
        damaged_bytes: bytes in corruption and in a torn tail.
        padding_bytes: zeros at the end.
    """

    explained_bytes: int = 0
    damaged_bytes: int = 0
    padding_bytes: int = 0

    def add(self, piece: "Piece | BatchRun | Chunk") -> None:
        """Count a piece of the file."""
        match piece:
            case Corruption() | TornTail():
                self.damaged_bytes += piece.size_bytes
            case ZeroPadding():
                self.padding_bytes += piece.size_bytes
            case BatchRun():
                self.explained_bytes += piece.end - piece.start
            case _:
                self.explained_bytes += piece.size_bytes
