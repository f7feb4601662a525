# SPDX-License-Identifier: Apache-2.0
"""The codecs of a batch's record area: none, gzip, snappy, lz4 and zstd.

Every decompression has a size limit, and a size that a stream claims is checked against it before use. The packages of
the extra ``codecs`` are imported on first use. Source: ``org.apache.kafka.common.compress``.
"""

import enum
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from raftlog.errors import InvalidRecordError, MissingExtraError, UnsupportedCompressionError
from raftlog.records import limits
from raftlog.records.varint import read_uvarint

_GZIP_MAGIC: Final = b"\x1f\x8b"
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_SNAPPY_MAX_RATIO: Final = 32
"""An upper bound on the expansion of a snappy element: 3 bytes copy at most 64."""
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS: Final = 0x20
_LZ4_LEGACY_HEADERS: Final = {b"\x60\x40": b"\x82", b"\x60\x50": b"\xfb", b"\x60\x60": b"\x51", b"\x60\x70": b"\x73"}
"""Frame descriptors that Kafka wrote in batches of magic 0, and the correct header checksum of each."""
_SLICE_SIZE: Final = 64 * 1024
"""How many bytes of a gzip or lz4 stream are fed in at a time: gzip expands them to at most 64 MiB."""
_MOST_AT_ONCE: Final = 1024 * 1024
"""The output limit per call for lz4: without one, its package allocates several times what it needs."""
_ZSTD_SKIPPABLE_MAGIC: Final = range(0x184D2A50, 0x184D2A60)
_ZSTD_RUN: Final = 1
"""The type of a zstd block that is one byte and the number of its repetitions."""
_ZSTD_CHECKSUM_SIZE: Final = 4
_ZSTD_READ_SIZE: Final = 256 * 1024


class CompressionType(enum.IntEnum):
    """How a batch's record area is compressed: bits 0 to 2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of_attributes(cls, attributes: int) -> "CompressionType":
        """Return the type that a batch's attributes name.

        Raises:
            UnsupportedCompressionError: they name 5, 6 or 7.
        """
        try:
            return cls(attributes & 7)
        except ValueError:
            raise UnsupportedCompressionError(f"unknown compression id {attributes & 7}", "batch-codec") from None

    @property
    def label(self) -> str:
        """Kafka's name for it, in lower case."""
        return self.name.lower()


def compress(codec: CompressionType, data: bytes) -> bytes:
    """Compress a record area as Kafka's own writers do (xerial blocks of 32 KiB for snappy, 64 KiB frames for lz4).

    Raises:
        MissingExtraError: the codec's package is not installed.
    """
    return _COMPRESSORS[codec](data)


def decompress(
    codec: CompressionType,
    data: memoryview | bytes,
    max_size: int = limits.MAX_DECOMPRESSED_SIZE,
    rest: list[int] | None = None,
) -> memoryview | bytes:
    """Decompress a record area.

    Args:
        codec: how it was compressed.
        data: the whole area.
        max_size: the most bytes that it may decompress to.
        rest: receives the number of bytes after the end of a gzip or lz4 stream, which Kafka ignores, if there are any.

    Raises:
        InvalidRecordError: the stream is damaged, or decompresses to more than ``max_size`` bytes.
        UnsupportedCompressionError: an lz4 frame of linked blocks, which Kafka refuses too.
        MissingExtraError: the codec's package is not installed.
    """
    if codec is CompressionType.GZIP:
        return _gzip_decompress(data, max_size, rest)
    if codec is CompressionType.LZ4:
        return _lz4_decompress(data, max_size, rest)
    return _DECOMPRESSORS[codec](data, max_size)


def repair_legacy_lz4(data: bytes) -> bytes:
    """Correct the header checksum of an lz4 frame from a batch of magic 0.

    Kafka computed that checksum over the frame's magic too. A frame that Kafka did not write is returned unchanged.
    """
    checksum = _LZ4_LEGACY_HEADERS.get(data[4:6])
    if data[:4] != _LZ4_MAGIC or checksum is None:
        return data
    return data[:6] + checksum + data[7:]


def _damaged(codec: str, problem: object) -> InvalidRecordError:
    return InvalidRecordError(f"the {codec} stream does not decompress: {problem}", "codec-stream")


def _too_large(max_size: int) -> InvalidRecordError:
    return InvalidRecordError(f"the records decompress to more than {max_size} bytes", "codec-size")


def _package(name: str, codec: str) -> Any:  # the packages are not typed
    try:
        match name:
            case "cramjam":
                import cramjam

                return cramjam
            case "lz4":
                import lz4.frame

                return lz4.frame
            case _:
                import zstandard

                return zstandard
    except ImportError as error:
        raise MissingExtraError("codecs", f"{codec} compression") from error


def _store(data: bytes) -> bytes:
    return data


def _stored(data: memoryview | bytes, max_size: int) -> memoryview | bytes:
    if len(data) > max_size:
        raise _too_large(max_size)
    return data


def _gzip_compress(data: bytes) -> bytes:
    return zlib.compress(data, wbits=31)


def _gzip_decompress(data: memoryview | bytes, max_size: int, rest: list[int] | None) -> bytes:
    """Read all members. Like Java's reader, treat anything but another member as the end."""

    def parts_of(member: Any, piece: memoryview, left: int) -> Iterator[bytes]:
        yield member.decompress(piece, left + 1)

    return _read_frames(
        "gzip",
        data,
        max_size,
        lambda: zlib.decompressobj(wbits=31),
        parts_of,
        zlib.error,
        lambda following: bytes(following[:2]) == _GZIP_MAGIC,
        rest,
    )


def _read_frames(
    codec: str,
    data: memoryview | bytes,
    max_size: int,
    new_frame: Callable[[], Any],
    parts_of: Callable[[Any, memoryview, int], Iterator[bytes]],
    error_type: type[Exception] | tuple[type[Exception], ...],
    continues: Callable[[memoryview], bool],
    rest: list[int] | None,
) -> bytes:
    """Decompress frame after frame, while ``continues`` finds another one.

    The input is fed in one slice at a time. This bounds the output per step whatever a frame claims, and only the rest
    of a slice is copied when a frame ends inside it. ``parts_of`` yields the output of a frame for a slice; it is
    passed the number of bytes that the limit still allows. ``rest`` receives the number of bytes that are not read.
    """
    view = memoryview(data)
    parts = []
    left = max_size
    position = 0
    frame = new_frame()
    while position < len(view):
        piece = view[position : position + _SLICE_SIZE]
        try:
            for part in parts_of(frame, piece, left):
                if len(part) > left:
                    raise _too_large(max_size)
                parts.append(part)
                left -= len(part)
        except error_type as error:
            raise _damaged(codec, error) from None
        position += len(piece)
        if frame.eof:
            position -= len(frame.unused_data or b"")
            if not continues(view[position:]):
                if rest is not None and position < len(view):
                    rest.append(len(view) - position)
                return b"".join(parts)
            frame = new_frame()
    raise _damaged(codec, "it ends too early")


def _snappy_compress(data: bytes) -> bytes:
    snappy = _package("cramjam", "snappy").snappy
    stream = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        stream += len(block).to_bytes(4, "big") + block
    return bytes(stream)


def _snappy_decompress(data: memoryview | bytes, max_size: int) -> bytes:
    """Read snappy-java's blocks, or, if its magic is missing, the single bare block that librdkafka writes."""
    package = _package("cramjam", "snappy")
    view = memoryview(data)
    parts = []
    left = max_size
    for block in _snappy_blocks(view):
        claimed = _snappy_claim(block)
        if claimed > left:
            raise _too_large(max_size)
        try:
            parts.append(bytes(package.snappy.decompress_raw(bytes(block))))
        except package.DecompressionError as error:
            raise _damaged("snappy", error) from None
        left -= claimed
    return b"".join(parts)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    if bytes(view[:8]) != _XERIAL_MAGIC:
        yield view
        return
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise _damaged("snappy", "its header is cut")
    while position < len(view):
        size = int.from_bytes(view[position : position + 4], "big", signed=True)
        position += 4
        if not 0 <= size <= len(view) - position:
            raise _damaged("snappy", f"a block of {size} bytes does not fit")
        yield view[position : position + size]
        position += size


def _snappy_claim(block: memoryview) -> int:
    """Return the decompressed size that a block claims, after a check that its bytes can expand so far."""
    try:
        claimed, _ = read_uvarint(block, 0)
    except InvalidRecordError as error:
        raise _damaged("snappy", error.reason) from None
    if claimed > len(block) * _SNAPPY_MAX_RATIO:
        raise _damaged("snappy", f"{len(block)} bytes cannot give {claimed}")
    return claimed


def _lz4_compress(data: bytes) -> bytes:
    lz4 = _package("lz4", "lz4")
    frame: bytes = lz4.compress(data, block_size=lz4.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False)
    return frame


def _lz4_decompress(data: memoryview | bytes, max_size: int, rest: list[int] | None) -> bytes:
    """Read the first frame; like Kafka, ignore what follows it and refuse linked blocks."""
    lz4 = _package("lz4", "lz4")
    if bytes(data[:4]) != _LZ4_MAGIC:
        raise _damaged("lz4", "it does not start with a frame")
    if len(data) > 4 and not data[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise UnsupportedCompressionError("the lz4 frame has linked blocks", "codec-stream")

    def parts_of(frame: Any, piece: memoryview, left: int) -> Iterator[bytes]:
        yield frame.decompress(piece, _MOST_AT_ONCE)
        while not (frame.eof or frame.needs_input):
            yield frame.decompress(b"", _MOST_AT_ONCE)

    return _read_frames(
        "lz4",
        data,
        max_size,
        lz4.LZ4FrameDecompressor,
        parts_of,
        (RuntimeError, ValueError),
        lambda following: False,
        rest,
    )


def _zstd_compress(data: bytes) -> bytes:
    frame: bytes = _package("zstandard", "zstd").ZstdCompressor(level=3).compress(data)
    return frame


def _zstd_decompress(data: memoryview | bytes, max_size: int) -> bytes:
    """Read all frames."""
    zstandard = _package("zstandard", "zstd")
    parts = []
    left = max_size
    try:
        _check_zstd_frames(memoryview(data), zstandard)
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        while part := reader.read(min(_ZSTD_READ_SIZE, left + 1)):
            if len(part) > left:
                raise _too_large(max_size)
            parts.append(part)
            left -= len(part)
    except zstandard.ZstdError as error:
        raise _damaged("zstd", error) from None
    return b"".join(parts)


def _check_zstd_frames(view: memoryview, zstandard: Any) -> None:
    """Refuse a stream that ends inside a frame, which the package's reader treats as a normal end. Source: RFC 8878."""
    position = 0
    while position == 0 or position < len(view):
        frame = view[position:]
        if int.from_bytes(frame[:4], "little") in _ZSTD_SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(frame[4:8], "little")
        else:
            position += zstandard.frame_header_size(frame)
            is_last = False
            while not is_last:
                block_header = int.from_bytes(view[position : position + 3], "little")
                is_last = bool(block_header & 1) or position >= len(view)
                position += 3 + (1 if block_header >> 1 & 3 == _ZSTD_RUN else block_header >> 3)
            position += _ZSTD_CHECKSUM_SIZE * zstandard.get_frame_parameters(frame).has_checksum
    if position > len(view):
        raise _damaged("zstd", "it ends too early")


_COMPRESSORS: Final[dict[CompressionType, Callable[[bytes], bytes]]] = {
    CompressionType.NONE: _store,
    CompressionType.GZIP: _gzip_compress,
    CompressionType.SNAPPY: _snappy_compress,
    CompressionType.LZ4: _lz4_compress,
    CompressionType.ZSTD: _zstd_compress,
}
_DECOMPRESSORS: Final[dict[CompressionType, Callable[[memoryview | bytes, int], memoryview | bytes]]] = {
    CompressionType.NONE: _stored,
    CompressionType.SNAPPY: _snappy_decompress,
    CompressionType.ZSTD: _zstd_decompress,
}
