# SPDX-License-Identifier: Apache-2.0
"""Every batch that a real Kafka wrote is decoded, and encoded to the same bytes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import re_encode
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, Piece, split
from tests.golden_files import golden_id, record_files

FILES = 195
BATCHES = 4085
COMPRESSED = 46


def _pieces() -> Iterator[tuple[Path, Piece]]:
    for path in record_files():
        for piece in split(BufferSource(path.read_bytes())):
            yield path, piece


def _header_fields(batch: RecordBatch) -> tuple[bytes, ...]:
    """All of the header that does not depend on how well the records were compressed."""
    return bytes(batch.buffer[:8]), bytes(batch.buffer[12:17]), bytes(batch.buffer[21:61])


def test_every_golden_batch_is_re_encoded() -> None:
    """All 4,085 batches of all 195 files: the same bytes if uncompressed, else the same header and record area."""
    counted: Counter[CompressionType] = Counter()
    for path, piece in _pieces():
        assert isinstance(piece, RecordBatch), golden_id(path)
        again = re_encode(piece)
        if piece.compression_type is CompressionType.NONE:
            assert again == piece.buffer, golden_id(path)
        else:
            copy = RecordBatch(again, piece.position)
            assert _header_fields(copy) == _header_fields(piece), golden_id(path)
            assert copy.record_area() == piece.record_area(), golden_id(path)
            assert list(copy.records()) == list(piece.records()), golden_id(path)
        counted[piece.compression_type] += 1
    assert len(list(record_files())) == FILES
    assert counted.total() == BATCHES
    assert counted.total() - counted[CompressionType.NONE] == COMPRESSED
    assert set(counted) == set(CompressionType)


def test_golden_files_hold_nothing_but_batches() -> None:
    """Pieces of golden files are adjacent, have as many records as they claim, and their offsets increase."""
    ends: dict[Path, int] = {}
    next_offsets: dict[Path, int] = {}
    for path, piece in _pieces():
        assert piece.position == ends.get(path, 0), golden_id(path)
        ends[path] = piece.position + piece.size_bytes
        assert isinstance(piece, RecordBatch), golden_id(path)
        records = list(piece.records())
        assert len(records) == piece.record_count
        assert next_offsets.get(path, 0) <= piece.base_offset <= piece.last_offset
        assert all(piece.base_offset <= record.offset <= piece.last_offset for record in records)
        next_offsets[path] = piece.next_offset
    assert {path: path.stat().st_size for path in ends} == ends
