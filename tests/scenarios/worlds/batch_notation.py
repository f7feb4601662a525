# SPDX-License-Identifier: Apache-2.0
"""Batches as scenarios write and print them: ``4..6@2`` holds the offsets 4 to 6, and is of epoch 2.

``4@2`` holds one record. An input may end with ``:cut``, a batch whose last bytes are missing, or ``:corrupt``, a batch
with a wrong byte, which its CRC does not match. Where a command has an epoch of its own, ``@2`` may be left out.
"""

import re
from typing import Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.contracts.made_batches import raft_batch
from tests.scenarios.world import CommandError

_NOTATION: Final = re.compile(r"(\d+)(?:\.\.(\d+))?(?:@(\d+))?(?::(cut|corrupt))?")


def batch_bytes(notation: str, epoch: int) -> bytes:
    """Return the batch that a notation describes.

    Args:
        notation: of the batch.
        epoch: of the batch, if the notation names none.

    Raises:
        CommandError: the notation is invalid.
    """
    match = _NOTATION.fullmatch(notation)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise CommandError(f"'{notation}' is no batch: write 4..6@2, 4@2, or one of these with :cut or :corrupt")
    first, last = int(match[1]), int(match[2] or match[1])
    data = raft_batch(first, int(match[3] or epoch), last - first + 1)
    return {None: data, "cut": data[:-1], "corrupt": data[:-1] + b"?"}[match[4]]


def offsets_text(first: int, last: int) -> str:
    """Return offsets, both inclusive, as text."""
    return f"{first}" if first == last else f"{first}..{last}"


def batch_text(batch: RecordBatch) -> str:
    """Return the notation of a batch."""
    return f"{offsets_text(batch.base_offset, batch.last_offset)}@{batch.partition_leader_epoch}"
