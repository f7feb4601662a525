# SPDX-License-Identifier: Apache-2.0
"""Makes a log, its mirror in batches of another size, and the offset syncs of a MirrorMaker."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.mirrors.mirror_records import OffsetSync, OffsetSyncKey, write_mirror_record
from tests.benchmarks import inputs

ALIASES: Final = ("A", "B")
SYNCS_TOPIC: Final = "mm2-offset-syncs.B.internal"
_RECORDS_PER_BATCH: Final = 640
_RECORDS_PER_SYNC: Final = 101
"""MirrorMaker writes a sync once the last one is more than 100 records ago."""
_SYNCS_PER_BATCH: Final = 1000


def mirror(folder: Path, shape_name: str, size_mib: float) -> tuple[Path, Path]:
    """Return the segment of a source, and that of its mirror in another cluster; they are made on first need.

    Each is in a log directory of its own; that of the source has the offset syncs, too.
    """
    source = inputs.file(folder, shape_name, size_mib)
    target = folder / f"mirrored-{shape_name}-{size_mib:g}-MiB" / "A.orders-0" / source.name
    if not target.exists():
        rows = [row for batch in inputs.row_batches(shape_name) for row in batch]
        count = _count(shape_name, size_mib)
        _write(target, _mirrored(rows, count))
        _write(source.parent.parent / f"{SYNCS_TOPIC}-0" / source.name, _syncs(count))
    return source, target


def _count(shape_name: str, size_mib: float) -> int:
    """Return how many records the source has."""
    per_batch = inputs.SHAPES[shape_name].records[0]
    return per_batch * sum(1 for _ in inputs.batches(shape_name, size_mib))


def _write(path: Path, batches: Iterator[bytes]) -> None:
    path.parent.mkdir(parents=True)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as log:
        log.writelines(batches)
    unfinished.rename(path)


def _mirrored(rows: list[inputs.Row], count: int) -> Iterator[bytes]:
    """Yield the batches of the mirror. Its source repeats its rows; so these repeat, but for the last one."""
    batches: dict[int, bytes] = {}
    for base_offset in range(0, count, _RECORDS_PER_BATCH):
        size = min(_RECORDS_PER_BATCH, count - base_offset)
        at = base_offset % len(rows)
        if size < _RECORDS_PER_BATCH or at not in batches:
            builder = RecordBatchBuilder(0)
            builder.extend(
                [(*row, ()) for row in itertools.islice(itertools.chain(rows[at:], itertools.cycle(rows)), size)]
            )
            batches[at] = builder.build()
        yield base_offset.to_bytes(8, "big") + batches[at][8:]


def _syncs(count: int) -> Iterator[bytes]:
    key = OffsetSyncKey("orders", 0)
    offsets = range(0, count, _RECORDS_PER_SYNC)
    for first in range(0, len(offsets), _SYNCS_PER_BATCH):
        builder = RecordBatchBuilder(first)
        some = offsets[first : first + _SYNCS_PER_BATCH]
        builder.extend([(0, *write_mirror_record(OffsetSync(key, offset, offset)), ()) for offset in some])
        yield builder.build()
