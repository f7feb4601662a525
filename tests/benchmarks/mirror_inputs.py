# SPDX-License-Identifier: Apache-2.0
"""Makes a log, its mirror in batches of another size, and the offset syncs of a MirrorMaker."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import split_runs
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.index_entries import OFFSET_INDEX
from raftlog.records.messages.mirrors.mirror_records import OffsetSync, OffsetSyncKey, write_mirror_record
from raftlog.storage.reading.file_source import open_source
from tests.benchmarks import inputs

ALIASES: Final = ("A", "B")
SYNCS_TOPIC: Final = "mm2-offset-syncs.B.internal"
_RECORDS_PER_BATCH: Final = 640
_RECORDS_PER_SYNC: Final = 101
"""MirrorMaker writes a sync once the last one is more than 100 records ago."""
_SYNCS_PER_BATCH: Final = 1000
_INDEX_INTERVAL: Final = 4096
_LOGS: Final = ("orders-0", "A.orders-0")


def mirror(folder: Path, shape_name: str, size_mib: float) -> tuple[Path, Path]:
    """Return the segment of a source, and that of its mirror in another cluster; they are made on first need.

    Each is in a log directory of its own, with its index; that of the source has the offset syncs, too.
    """
    made = inputs.file(folder, shape_name, size_mib)
    here = folder / f"mirrored-{shape_name}-{size_mib:g}-MiB"
    source, target = (here / cluster / partition / made.name for cluster, partition in zip(ALIASES, _LOGS, strict=True))
    if not here.exists():
        rows = [row for batch in inputs.row_batches(shape_name) for row in batch]
        count = _count(shape_name, size_mib)
        unfinished = here.with_suffix(".unfinished")
        _write(unfinished / target.relative_to(here), _mirrored(rows, count))
        _write(unfinished / ALIASES[0] / f"{SYNCS_TOPIC}-0" / made.name, _syncs(count))
        copy = unfinished / source.relative_to(here)
        copy.parent.mkdir()
        copy.hardlink_to(made)
        _write_index(copy)
        unfinished.rename(here)
    return source, target


def _count(shape_name: str, size_mib: float) -> int:
    """Return how many records the source has."""
    per_batch = inputs.SHAPES[shape_name].records[0]
    return per_batch * sum(1 for _ in inputs.batches(shape_name, size_mib))


def _write(path: Path, batches: Iterator[bytes]) -> None:
    path.parent.mkdir(parents=True)
    with path.open("wb") as log:
        log.writelines(batches)
    _write_index(path)


def _write_index(path: Path) -> None:
    """Write a segment's offset index, as each segment has one: an entry for each batch that is 4 KiB after the last."""
    entries, last = [], 0
    with open_source(str(path)) as source:
        for piece in split_runs(source):
            for batch in piece.batches() if isinstance(piece, BatchRun) else ():
                if batch.position - last >= _INDEX_INTERVAL:
                    entries.append(OFFSET_INDEX.pack(batch.last_offset, batch.position))
                    last = batch.position
    path.with_suffix(FileKind.OFFSET_INDEX.value).write_bytes(b"".join(entries))


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
