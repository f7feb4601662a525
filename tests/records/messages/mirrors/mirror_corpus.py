# SPDX-License-Identifier: Apache-2.0
"""The records that a real MirrorMaker left on two clusters, A (``n1``) and B (``n2``)."""

from collections.abc import Iterator
from typing import Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import RecordView
from tests.golden_files import GOLDEN

MIRROR: Final = GOLDEN / "mirror/data"
A: Final = "n1"
B: Final = "n2"


def records_of(node: str, topic: str, partition: int | None = None) -> Iterator[RecordView]:
    """Yield the data records of a partition of a topic, or of all, by the partition's number and then by offset."""
    pattern = f"{node}/{topic}-{'*' if partition is None else partition}"
    folders = sorted(MIRROR.glob(pattern), key=lambda folder: int(folder.name.removeprefix(f"{topic}-")))
    for folder in folders:
        for path in sorted(folder.glob("*.log")):
            for piece in split(BufferSource(path.read_bytes())):
                if isinstance(piece, RecordBatch) and not piece.is_control:
                    yield from piece.records()
