# SPDX-License-Identifier: Apache-2.0
"""The codecs: what they read, what they refuse, and what they cost at most."""

import struct
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, InvalidRecordError, MissingExtraError, UnsupportedCompressionError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType, compress, decompress, repair_legacy_lz4
from raftlog.records.varint import uvarint
from tests.records import vectors
from tests.strategies import codecs, mutated

GZIP, SNAPPY, LZ4, ZSTD = CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD
XERIAL = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2

areas = st.binary(max_size=200) | st.builds(
    lambda unit, times: unit * times, st.binary(max_size=9), st.integers(0, 20_000)
)


@contextmanager
def _peak_below(size_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size_bytes
    finally:
        tracemalloc.stop()


@settings(deadline=None, max_examples=50)
@given(codecs, areas)
def test_compressed_bytes_decompress(codec: CompressionType, data: bytes) -> None:
    """Any bytes come back from any codec, from any kind of buffer, within exactly their own size."""
    stream = compress(codec, data)
    assert bytes(decompress(codec, stream)) == data
    assert bytes(decompress(codec, memoryview(stream), len(data))) == data


@settings(deadline=None, max_examples=50)
@given(codecs, areas.filter(bool), st.data())
def test_a_limit_is_kept(codec: CompressionType, data: bytes, draw: st.DataObject) -> None:
    """One byte more than the limit is refused, whatever the codec."""
    limit = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(InvalidRecordError) as caught:
        decompress(codec, compress(codec, data), limit)
    assert caught.value.rule == "codec-size"


@settings(deadline=None, max_examples=50)
@given(codecs.filter(bool), areas, st.data())
def test_a_stream_that_is_cut_is_refused(codec: CompressionType, data: bytes, draw: st.DataObject) -> None:
    """A proper prefix of a stream is an error, never fewer records, except a snappy stream cut between two blocks."""
    stream = compress(codec, data)
    cut = draw.draw(st.integers(0, len(stream) - 1))
    if codec is SNAPPY and cut >= len(XERIAL):
        cut = max(cut, len(stream) - 4)
    if codec is SNAPPY and cut == len(XERIAL):
        return
    with pytest.raises(InvalidRecordError) as caught:
        decompress(codec, stream[:cut])
    assert caught.value.rule == "codec-stream"


@settings(deadline=None, max_examples=50)
@given(codecs, areas, st.data())
def test_a_damaged_stream_gives_bytes_or_a_decode_error(
    codec: CompressionType, data: bytes, draw: st.DataObject
) -> None:
    """Whatever happens to a stream, nothing but a DecodeError comes of it, and never more than the limit."""
    stream = draw.draw(mutated(compress(codec, data), repair=False))
    try:
        assert len(decompress(codec, stream, 100_000)) <= 100_000
    except DecodeError as error:
        rule = error.rule
        assert rule in {"codec-stream", "codec-size"}


@pytest.mark.slow
@settings(deadline=None, max_examples=2000)
@given(codecs, areas | st.binary(max_size=30), st.data())
def test_many_damaged_streams(codec: CompressionType, data: bytes, draw: st.DataObject) -> None:
    """As above, on many more, bytes that were never a stream among them."""
    stream = draw.draw(st.just(data) | mutated(compress(codec, data), repair=False))
    try:
        assert len(decompress(codec, stream, 100_000)) <= 100_000
    except DecodeError as error:
        rule = error.rule
        assert rule in {"codec-stream", "codec-size"}


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD, SNAPPY])
def test_a_bomb_costs_little(codec: CompressionType) -> None:
    """A stream of 64 MiB of zeros is refused at a limit of 1 MiB, in little more memory than that."""
    stream = compress(codec, bytes(64 * 2**20))
    with _peak_below(4 * 2**20), pytest.raises(InvalidRecordError) as caught:
        decompress(codec, stream, 2**20)
    assert caught.value.rule == "codec-size"


@pytest.mark.parametrize(
    ("codec", "stream"),
    [
        (SNAPPY, uvarint(2**32 - 1) + b"\x00a"),
        (SNAPPY, XERIAL + struct.pack(">i", 7) + uvarint(2**31) + b"\x00a"),
        (SNAPPY, XERIAL + struct.pack(">i", 2**31 - 1)),
        (LZ4, lz4.frame.compress(b"a" * 99, block_linked=False, store_size=True)[:6] + b"\xff" * 8 + b"\0" * 20),
        (ZSTD, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 7 + b"\x0f" + b"\x01\x00\x00"),
    ],
)
def test_a_claimed_size_is_not_trusted(codec: CompressionType, stream: bytes) -> None:
    """A stream that claims gigabytes is refused without taking them."""
    with _peak_below(2**21), pytest.raises(InvalidRecordError):
        decompress(codec, stream)


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_very_many_empty_frames_take_time_in_proportion(codec: CompressionType) -> None:
    """Thirty thousand empty frames are read, one after the other, without copying what is left for each."""
    assert decompress(codec, compress(codec, b"") * 30_000) == b""


def test_gzip_members_in_a_row_are_read() -> None:
    """All members are read; other bytes after a member are the end, as for Java's reader."""
    two = compress(GZIP, b"one") + compress(GZIP, b"two")
    assert decompress(GZIP, two) == b"onetwo"
    assert decompress(GZIP, two + b"junk") == b"onetwo"
    assert decompress(GZIP, zlib.compress(b"x" * 5000, wbits=31) * 3) == b"x" * 15000


def test_snappy_blocks_and_a_bare_block_are_read() -> None:
    """Snappy-java's blocks of any size, and the one bare block of librdkafka."""
    raw = bytes(cramjam.snappy.compress_raw(b"hello" * 20))
    block = len(raw).to_bytes(4, "big") + raw
    assert decompress(SNAPPY, XERIAL + block * 2) == b"hello" * 40
    assert decompress(SNAPPY, raw) == b"hello" * 20
    assert decompress(SNAPPY, XERIAL) == b""
    assert compress(SNAPPY, b"a" * 40_000)[:20] == XERIAL + compress(SNAPPY, b"a" * 40_000)[16:20]


def test_snappy_is_written_in_blocks_of_32_kib() -> None:
    """Like snappy-java's default, so that its readers need no larger buffer."""
    stream = compress(SNAPPY, bytes(range(256)) * 300)
    sizes, position = [], len(XERIAL)
    while position < len(stream):
        size = int.from_bytes(stream[position : position + 4], "big")
        sizes.append(len(cramjam.snappy.decompress_raw(stream[position + 4 : position + 4 + size])))
        position += 4 + size
    assert sizes == [32768, 32768, 11264]


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 9])
def test_a_snappy_block_must_fit(size: int) -> None:
    """A block length that is negative or goes past the end is refused."""
    with pytest.raises(InvalidRecordError, match="does not fit"):
        decompress(SNAPPY, XERIAL + struct.pack(">i", size) + b"12345678")


def test_lz4_is_written_as_kafka_writes_it() -> None:
    """Version 1, independent blocks of 64 KiB, no checksums, no content size."""
    assert compress(LZ4, b"abc")[:7] == bytes.fromhex("04224d186040 82")


def test_lz4_reads_the_first_frame_only() -> None:
    """Bytes after a frame are ignored, as in Kafka, even another frame."""
    frame = compress(LZ4, b"one")
    assert decompress(LZ4, frame + b"junk") == b"one"
    assert decompress(LZ4, frame + compress(LZ4, b"two")) == b"one"


def test_lz4_variants_are_read_or_refused_like_kafka() -> None:
    """Content size, checksums and larger blocks are read; linked blocks and frames of another kind are refused."""
    kinds = {"content_checksum": True, "block_checksum": True, "store_size": True, "block_linked": False}
    assert (
        decompress(LZ4, lz4.frame.compress(b"a" * 10**6, block_size=lz4.frame.BLOCKSIZE_MAX4MB, **kinds))
        == b"a" * 10**6
    )
    with pytest.raises(UnsupportedCompressionError, match="linked"):
        decompress(LZ4, lz4.frame.compress(b"a" * 10**6, block_linked=True))
    for other in (b"", b"\x04\x22", bytes.fromhex("502a4d18 00000000"), bytes.fromhex("02214c18 00000000")):
        with pytest.raises(InvalidRecordError):
            decompress(LZ4, other)


def test_legacy_lz4_headers_are_repaired() -> None:
    """The header checksum that Kafka wrote under magic 0 is replaced by the right one, and nothing else is touched."""
    for block_size in range(4, 8):
        frame = lz4.frame.compress(b"abc", block_size=block_size, block_linked=False, store_size=False)
        broken = frame[:6] + bytes((frame[6] ^ 0x55,)) + frame[7:]
        assert repair_legacy_lz4(broken) == frame
    for other in (b"", b"\x04\x22\x4d\x18", b"something else", bytes.fromhex("04224d18644000")):
        assert repair_legacy_lz4(other) == other


def test_zstd_frames_in_a_row_are_read() -> None:
    """Frames in a row are one stream, with or without sizes in their headers; anything else after one is damage."""
    sized = zstandard.ZstdCompressor().compress(b"one")
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(b"two")
    assert decompress(ZSTD, sized + unsized) == b"onetwo"
    with pytest.raises(InvalidRecordError):
        decompress(ZSTD, sized + b"junk")


@pytest.mark.parametrize("write_checksum", [False, True])
@pytest.mark.parametrize(
    "data", [b"", b"a", b"ab" * 200_000, bytes(range(256)) * 600], ids=["none", "one", "long", "odd"]
)
def test_a_zstd_frame_that_is_cut_is_refused(data: bytes, write_checksum: bool) -> None:
    """In every form of frame, of one block or many, with a checksum or without, no byte at its end may be missing."""
    compressor = zstandard.ZstdCompressor(write_checksum=write_checksum).compressobj()
    frame = compressor.compress(data[:1000]) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    frame += compressor.compress(data[1000:]) + compressor.flush()
    skipped = bytes.fromhex("532a4d18 05000000") + b"hello"
    assert decompress(ZSTD, skipped + frame + skipped + frame) == 2 * data
    for stream in (frame, frame + frame, frame + skipped):
        for cut in range(1, 9):
            with pytest.raises(InvalidRecordError) as caught:
                decompress(ZSTD, stream[:-cut])
            assert caught.value.rule == "codec-stream"


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_unknown_ids_have_no_codec(codec_id: int) -> None:
    """Ids 5 to 7 are refused; other bits do not matter."""
    with pytest.raises(UnsupportedCompressionError) as caught:
        CompressionType.of_attributes(0x20 | codec_id)
    assert caught.value.rule == "batch-codec"
    assert CompressionType.of_attributes(-8) is CompressionType.NONE


@pytest.mark.parametrize(("package", "codec"), [("cramjam", SNAPPY), ("lz4.frame", LZ4), ("zstandard", ZSTD)])
def test_a_missing_package_is_named_by_its_extra(
    package: str, codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a codec's package, reading and writing say which extra brings it."""
    monkeypatch.setitem(sys.modules, package, None)
    if package == "lz4.frame":
        monkeypatch.setitem(sys.modules, "lz4", None)
    batch = RecordBatch(vectors.TWO_VALUES[codec.label])
    for use in (lambda: compress(codec, b""), lambda: list(batch.records()), batch.record_area):
        with pytest.raises(MissingExtraError, match=codec.label) as caught:
            use()
        assert caught.value.extra == "codecs"
        assert isinstance(caught.value, ImportError)


def test_gzip_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncompressed and gzip batches are read without the extra."""
    for package in ("cramjam", "lz4", "lz4.frame", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    for label in ("none", "gzip"):
        assert len(list(RecordBatch(vectors.TWO_VALUES[label]).records())) == 2
