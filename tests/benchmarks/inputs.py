# SPDX-License-Identifier: Apache-2.0
"""Makes the files that are measured: a few batches of each shape, repeated with growing base offsets.

The base offset stands before what the CRC covers, so that a repeated batch stays sound.
"""

import itertools
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from tests.golden_files import GOLDEN

Row = tuple[int, bytes | None, bytes | None]
"""Timestamp, key and value of a record."""

MIB: Final = 1024 * 1024
METADATA_LOG: Final = "metadata-log"
METADATA_LIKE: Final = "metadata-like"
CONTROL_BATCHES: Final = "control-batches"
"""One in a hundred is of a voter set."""
VOTER_SETS: Final = "voter-sets"
"""Batches of a voter set each."""
RAFT_LOG: Final = "raft-log"
"""As metadata-like, and sound as a log of raft: a LeaderChange opens its epoch, and a batch has records of one time."""
RAFT_METADATA_LOG: Final = "raft-metadata-log"
"""The data batches of the real metadata log, in one epoch that its LeaderChange opens."""
EPOCH: Final = 1
"""Of all batches that are made here."""
_REAL_METADATA_LOG: Final = GOLDEN / "mirror/data/n1/__cluster_metadata-0/00000000000000000000.log"
_OF_RAFT: Final = {RAFT_LOG: METADATA_LIKE, RAFT_METADATA_LOG: METADATA_LOG}
"""What the data batches of these are like."""
_ELECTIONS: Final = {CONTROL_BATCHES: 99, VOTER_SETS: 0}
"""How many there are between two voter sets."""
_TIME_MS: Final = 1_780_000_000_000
_CITIES: Final = ("Amsterdam", "Berlin", "Chicago", "Delhi", "Espoo", "Florence", "Geneva", "Havana")


@attrs.frozen
class Shape:
    """What the records of a file look like.

    Attributes:
        value_sizes: of values in bytes, least and most.
        key_size: in bytes, or None for null keys.
        records: how many a batch has, least and most.
        distinct: how many batches to make before they repeat.
        has_header: whether each record has a header.
        compression_type: of every batch.
    """

    value_sizes: tuple[int, int]
    key_size: int | None
    records: tuple[int, int] = (1000, 1000)
    distinct: int = 16
    has_header: bool = False
    compression_type: CompressionType = CompressionType.NONE


SHAPES: Final = {
    "small": Shape((100, 100), 8),
    "tiny": Shape((20, 20), None),
    "large": Shape((1000, 1000), 8, distinct=8, has_header=True),
    METADATA_LIKE: Shape((20, 40), None, records=(1, 5), distinct=2000),
    "1-KiB-batches": Shape((100, 100), None, records=(9, 9), distinct=64),
    "small-lz4": Shape((100, 100), 8, compression_type=CompressionType.LZ4),
    "small-zstd": Shape((100, 100), 8, compression_type=CompressionType.ZSTD),
    "small-snappy": Shape((100, 100), 8, compression_type=CompressionType.SNAPPY),
    "small-gzip": Shape((100, 100), 8, compression_type=CompressionType.GZIP),
}


@attrs.frozen
class Batches:
    """Batches in memory, and a folder for files.

    Attributes:
        folder: where to make them.
        batches: with offsets from 0 on.
    """

    folder: Path
    batches: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """Of all batches."""
        return sum(map(len, self.batches))


@attrs.frozen
class _Template:
    """A batch to repeat: its bytes, how many offsets it takes, and how many bytes it has uncompressed."""

    data: bytes
    offset_span: int
    size_bytes: int


def row_batches(shape_name: str) -> Iterator[list[Row]]:
    """Yield the rows of each distinct batch of a shape; the same ones in every run."""
    shape = SHAPES[shape_name]
    generator = random.Random(shape_name)
    time_ms = _TIME_MS
    for _ in range(shape.distinct):
        rows: list[Row] = []
        for _ in range(generator.randint(*shape.records)):
            time_ms += generator.randint(0, 3)
            key = None if shape.key_size is None else b"%0*d" % (shape.key_size, generator.randrange(10**6))
            rows.append((time_ms, key, _text(generator, generator.randint(*shape.value_sizes))))
        yield rows


def file(folder: Path, shape_name: str, size_mib: float) -> Path:
    """Return a log of whole batches, at least one, that has a size before compression; it is made on first need."""
    partition = "__cluster_metadata-0" if shape_name in _OF_RAFT else "orders-0"
    path = folder / f"{shape_name}-{size_mib:g}-MiB" / partition / "00000000000000000000.log"
    if not path.exists():
        path.parent.mkdir(parents=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as log:
            log.writelines(batches(shape_name, size_mib))
        unfinished.rename(path)
    return path


def appended_batches(shape_name: str, at_least_mib: float) -> Iterator[bytes]:
    """Yield such batches as a raft leader may append them: records have the time of their batch, and no headers."""
    base_offset = 0
    shape = attrs.evolve(SHAPES[shape_name], has_header=False)
    templates = [_template(shape, _of_one_time(rows)) for rows in row_batches(shape_name)]
    for template in itertools.cycle(templates):
        yield base_offset.to_bytes(8, "big") + template.data[8:]
        base_offset += template.offset_span
        at_least_mib -= template.size_bytes / MIB
        if at_least_mib <= 0:
            break


def _of_one_time(rows: list[Row]) -> list[Row]:
    return [(rows[0][0], key, value) for _, key, value in rows]


def batches(shape_name: str, at_least_mib: float) -> Iterator[bytes]:
    """Yield batches end to end, at least one, until they have a size before compression."""
    base_offset = size = 0
    for template in itertools.chain(_opening(shape_name), itertools.cycle(_templates(shape_name))):
        yield base_offset.to_bytes(8, "big") + template.data[8:]
        base_offset += template.offset_span
        size += template.size_bytes
        if size >= at_least_mib * MIB:
            break


def size_mib(shape_name: str, batch_count: int) -> float:
    """Return how large a log of so many batches is."""
    templates = list(_templates(shape_name))
    return batch_count * statistics.mean(template.size_bytes for template in templates) / MIB


def _opening(shape_name: str) -> Iterator[_Template]:
    """Yield what a log starts with, and does not repeat."""
    if shape_name in _OF_RAFT:
        from tests.benchmarks.elections import opening_batch

        data = opening_batch(EPOCH, _TIME_MS)
        yield _Template(data, 1, len(data))


def _templates(shape_name: str) -> Iterator[_Template]:
    if shape_name in _ELECTIONS:
        # Not imported by those who do not need it: their memory is measured.
        from tests.benchmarks.elections import control_batches

        for data in control_batches(_ELECTIONS[shape_name], EPOCH, _TIME_MS):
            yield _Template(data, 1, len(data))
        return
    if shape_name == METADATA_LOG:
        pieces = split(BufferSource(_REAL_METADATA_LOG.read_bytes()))
        for batch in (piece for piece in pieces if isinstance(piece, RecordBatch)):
            yield _Template(bytes(batch.buffer), batch.last_offset_delta + 1, batch.size_bytes)
        return
    if shape_name == RAFT_METADATA_LOG:
        for template in _templates(METADATA_LOG):
            if not RecordBatch(template.data).is_control:
                yield attrs.evolve(template, data=_in_epoch(template.data))
        return
    for rows in row_batches(_OF_RAFT.get(shape_name, shape_name)):
        if shape_name == RAFT_LOG:
            rows = _of_one_time(rows)
        yield _template(SHAPES[_OF_RAFT.get(shape_name, shape_name)], rows)


def _in_epoch(batch: bytes) -> bytes:
    """Return a batch with the epoch of all; no CRC covers it."""
    return batch[:12] + EPOCH.to_bytes(4, "big") + batch[16:]


def _template(shape: Shape, rows: list[Row]) -> _Template:
    headers = ((b"trace", b"4bf92f3577b34da6"),) if shape.has_header else ()
    plain = RecordBatchBuilder(0)
    stored = RecordBatchBuilder(0, partition_leader_epoch=EPOCH, compression_type=shape.compression_type)
    for builder in (plain, stored):
        builder.extend([(*row, headers) for row in rows])
    return _Template(stored.build(), len(rows), len(plain.build()))


def _text(generator: random.Random, size: int) -> bytes:
    """Return something like JSON: it compresses as such texts do."""
    text = ""
    while len(text) < size:
        text += (
            f'{{"user":"{generator.getrandbits(48):012x}","city":"{generator.choice(_CITIES)}",'
            f'"amount":{generator.randrange(10**5) / 100},"currency":"EUR","paid":true}}'
        )
    return text[:size].encode()
