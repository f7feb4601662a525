# SPDX-License-Identifier: Apache-2.0
"""How ``split`` reports bytes that are not a batch, and its cost."""

import tracemalloc
from unittest import mock

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches import batch_run, iterator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.iterator import (
    BufferSource,
    ByteSource,
    Corruption,
    Piece,
    TornTail,
    ZeroPadding,
    is_likely_header,
    split,
    split_runs,
)
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.checksum import crc32c
from raftlog.records.limits import BATCH_OVERHEAD
from tests.records import vectors
from tests.strategies import batch_bytes, legacy_message
from tests.work_counts import calls_made

MIB = 2**20
ONE = batch_bytes(bytes.fromhex("0c000000010100"), count=1)
LEGACY = legacy_message(1, 0, b"k" * 20, None)
LARGE = batch_bytes(b"x" * 5000, base_offset=1, attributes=1)


def _split(data: bytes) -> list[Piece]:
    return list(split(BufferSource(data)))


def _flip(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]


def _with_length(data: bytes, length: int) -> bytes:
    return data[:8] + length.to_bytes(4, "big", signed=True) + data[12:]


@attrs.define
class _File:
    """A source that copies what is read, as a file does, and counts it."""

    data: bytes
    bytes_read: int = 0
    largest_read: int = 0

    def size(self) -> int:
        return len(self.data)

    def read_at(self, position: int, size: int) -> memoryview:
        part = bytes(memoryview(self.data)[position : position + size])
        self.bytes_read += len(part)
        self.largest_read = max(self.largest_read, len(part))
        return memoryview(part)


@attrs.define
class _Sparse(_File):
    """A file that knows its holes: its zeros, in blocks."""

    block: int = 16

    def after_hole(self, position: int) -> int:
        while position < len(self.data):
            end = (position // self.block + 1) * self.block
            if any(self.data[position:end]):
                break
            position = end
        return position


@settings(deadline=None)
@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([ONE, LARGE[:70], _flip(ONE, 30), LEGACY, LEGACY[:20]]), st.integers(1, 200).map(bytes)
        ),
        max_size=6,
    ),
    block=st.sampled_from([1, 2, 7, 16, 64]),
)
def test_holes_do_not_show(parts: list[bytes], block: int) -> None:
    """The pieces of a file are the same, whatever it knows of its zeros."""
    data = b"".join(parts)
    with mock.patch.multiple(iterator, CHUNK_SIZE=64, _SECTOR_SIZE=16):
        found, expected = list(split(_Sparse(data, block=block))), list(split(_File(data)))

    assert [(type(each), each.position, each.size_bytes) for each in found] == [
        (type(each), each.position, each.size_bytes) for each in expected
    ]


def test_nothing_is_no_piece() -> None:
    """An empty log has no pieces, nor has what is after its end."""
    assert _split(b"") == []
    assert list(split(BufferSource(ONE), start=len(ONE))) == []
    assert list(split(BufferSource(ONE), start=len(ONE) + 5)) == []


def test_whole_batches_are_given_as_they_stand() -> None:
    """A checkpoint is three batches, each at its place, whose CRC is known to hold."""
    pieces = _split(vectors.SNAPSHOT)
    assert [(type(piece), piece.position, piece.size_bytes) for piece in pieces] == [
        (RecordBatch, 0, 166),
        (RecordBatch, 166, 91),
        (RecordBatch, 257, 75),
    ]


@pytest.mark.parametrize("cut", [1, 11, 12, 16, 17, 40, 60, 61, 67])
def test_a_batch_that_is_cut_is_a_torn_tail(cut: int) -> None:
    """A file that ends inside a batch ends in a torn tail, from 1 byte of it to all but 1."""
    assert (
        _split(vectors.DATA + vectors.RAFT_DATA[:cut])[1:]
        == [
            TornTail(len(vectors.DATA), cut, reason=_split(vectors.RAFT_DATA[:cut])[0].reason)  # type: ignore[union-attr]
            if any(vectors.RAFT_DATA[:cut])
            else ZeroPadding(len(vectors.DATA), cut)
        ]
    )


@pytest.mark.parametrize("size", [1, 16, 17, 18, 61, 512, 4096, 3 * MIB])
def test_zeros_at_the_end_are_padding(size: int) -> None:
    """Any number of zeros after the last batch is padding."""
    assert _split(ONE + bytes(size))[1:] == [ZeroPadding(len(ONE), size)]


def test_a_last_sector_that_was_never_written_is_a_torn_tail() -> None:
    """A batch that ends in zeros from a sector boundary on was cut by a crash; zeros after it are padding."""
    torn = ONE + LARGE[: 4096 - len(ONE)] + bytes(5000 + BATCH_OVERHEAD - 4096 + len(ONE))
    assert [(type(piece), piece.size_bytes) for piece in _split(torn)[1:]] == [
        (TornTail, 4096 - len(ONE)),
        (ZeroPadding, len(torn) - 4096),
    ]


def test_a_flipped_bit_is_damage_wherever_the_file_ends() -> None:
    """A few zeros at the end of a batch are not a lost sector, though a sector boundary is just before them."""
    for padding in range(512):
        filler = batch_bytes(b"y" * padding)
        last = _split(filler + _flip(ONE, 66))[-1]
        assert isinstance(last, Corruption)
        assert (last.rule, last.size_bytes) == ("batch-crc", len(ONE))


def test_a_long_batch_that_is_all_there_is_not_torn() -> None:
    """A wrong length is distinguished from a torn write by the CRC of the bytes, also above 16 MiB, in chunks."""
    whole = batch_bytes(b"x" * (16 * MIB + 1))
    source = _File(_with_length(whole, len(whole)))
    (piece,) = split(source)
    assert isinstance(piece, Corruption)
    assert (piece.rule, piece.size_bytes) == ("batch-overrun", len(whole))
    assert source.largest_read <= 2 * MIB
    assert [type(piece) for piece in _split(_flip(source.data, len(whole) - 1))] == [TornTail]


@pytest.mark.parametrize("grown", [0, 1, 8, 9, 1000])
def test_zeros_are_looked_at_again_when_a_file_has_grown(grown: int) -> None:
    """Zeros that a growing file got more of are padding to its new end; data after them is none."""
    padding = 8
    whole = batch_bytes(b"x" * (512 - BATCH_OVERHEAD) + bytes(padding))
    data = _flip(whole, 17) + bytes(grown)
    sizes = iter([len(whole)])
    source = mock.Mock(spec=ByteSource, read_at=BufferSource(data).read_at)
    source.size = lambda: next(sizes, len(data))
    assert list(split(source))[1:] == [ZeroPadding(512, padding + grown)]


@pytest.mark.parametrize(
    ("changed", "rule", "is_shown"),
    [
        (_flip(ONE, 65), "batch-crc", True),
        (_flip(ONE, 17), "batch-crc", True),
        (_flip(ONE, 16, 7), "batch-magic", True),
        (_flip(ONE, 16, 0), "batch-magic", True),
        (_with_length(ONE, 2**31 - 1), "batch-overrun", False),
        (_with_length(ONE, len(ONE) - 11), "batch-crc", False),
        (_with_length(ONE, len(ONE) - 13), "batch-crc", False),
        (_with_length(ONE, 48), "batch-length", False),
        (_with_length(ONE, 13), "batch-length", False),
        (_with_length(ONE, 0), "batch-length", False),
        (_with_length(ONE, -1), "batch-length", False),
        (bytes(len(ONE)), "batch-length", False),
        (b"\xff" * len(ONE), "batch-length", False),
        (b"\x7f" * len(ONE), "batch-overrun", False),
        (ONE[:30], "batch-crc", False),
    ],
)
def test_damage_in_the_middle_costs_one_piece(changed: bytes, rule: str, is_shown: bool) -> None:
    """Damage to one of three batches is one Corruption, with its rule; the batch is shown if its length holds."""
    first, damage, last = _split(vectors.DATA + changed + LARGE)
    assert isinstance(first, RecordBatch)
    assert isinstance(last, RecordBatch)
    assert isinstance(damage, Corruption)
    assert (damage.position, damage.size_bytes, damage.rule) == (len(vectors.DATA), len(changed), rule)
    assert (damage.batch is not None) == is_shown
    if damage.batch is not None:
        assert damage.batch.crc_holds == (rule == "batch-magic")  # The CRC does not cover the magic.
        assert bytes(damage.batch.buffer) == changed


def test_the_last_batch_may_be_damaged_too() -> None:
    """A bad CRC at the very end, or before padding, is damage and no torn tail."""
    for tail in (b"", bytes(3), bytes(40), bytes(1000)):
        pieces = _split(ONE + _flip(LARGE, 100) + tail)
        assert [type(piece) for piece in pieces] == [RecordBatch, Corruption] + [ZeroPadding] * (len(tail) > 0)


def test_garbage_at_the_end_is_damage() -> None:
    """Bytes that look like no header are not what a crash leaves."""
    (_, damage) = _split(ONE + b"\x55" * 100)
    assert isinstance(damage, Corruption)
    (_, damage, padding) = _split(ONE + b"\x55" * 100 + bytes(20))
    assert (damage.size_bytes, type(padding)) == (100, ZeroPadding)


def test_a_length_that_grew_is_damage_and_no_torn_tail() -> None:
    """A complete last batch is not torn, whatever its length field: its CRC holds up to the end."""
    log = batch_bytes() + bytearray(batch_bytes(b"record"))
    log = log[:69] + (int.from_bytes(log[69:73], "big") | 0x10000).to_bytes(4, "big") + log[73:]
    [_, damage] = split(BufferSource(log))
    assert isinstance(damage, Corruption)
    assert (damage.position, damage.size_bytes, damage.rule) == (61, 67, "batch-overrun")
    assert isinstance(list(split(BufferSource(log[:-1])))[-1], TornTail)


def test_a_batch_that_crosses_the_window_starts_a_run() -> None:
    """Where a run ends because the window does, the next run starts, and has all that the next window has."""
    log = batch_bytes(bytes(339)) * 100
    with mock.patch.object(iterator, "CHUNK_SIZE", 4200):
        runs = list(split_runs(BufferSource(log)))
    assert [len(run) for run in runs if isinstance(run, BatchRun)] == [10] * 10


def test_a_length_that_covers_the_next_batches_does_not_hide_them() -> None:
    """A length that ends just where a later batch ends, or in the padding, costs only its own batch."""
    for tail in (b"", bytes(600)):
        for length in (2 * len(ONE) - 12, 4 * len(ONE) - 12, 4 * len(ONE) + len(tail) - 12):
            pieces = _split(_with_length(ONE, length) + ONE * 3 + tail)
            assert [type(piece) for piece in pieces[:4]] == [Corruption] + [RecordBatch] * 3


def test_a_false_batch_that_covers_others_hides_none() -> None:
    """After a wrong length, every following batch is found, even one that garbage follows."""
    pieces = _split(_with_length(ONE, 3 * len(ONE) + 1 - 12) + ONE + b"\x99" + ONE)
    assert [type(piece) for piece in pieces] == [Corruption, RecordBatch, Corruption, RecordBatch]
    # Four zeros, and a batch whose base offset is then read as the length of a message of magic 0.
    log = bytes(4) + batch_bytes(b"record", base_offset=4 + 67 + 1 - 12) + b"\x99"
    assert [type(piece) for piece in _split(log)] == [Corruption, RecordBatch, TornTail]


def test_a_batch_inside_a_damaged_batch_is_part_of_it() -> None:
    """A record may hold a batch; while the length of what it is in holds, it is not given as one of the log's."""
    outer = batch_bytes(b"value: " + ONE + b" and more", attributes=1)
    pieces = _split(_flip(outer, 30) + LARGE)
    assert [(type(piece), piece.size_bytes) for piece in pieces] == [
        (Corruption, len(outer)),
        (RecordBatch, len(LARGE)),
    ]


def test_old_messages_are_found_where_there_were_some() -> None:
    """After damage between old messages, the next one is found, be it of magic 0, 1 or 2."""
    for after in (legacy_message(0, 5, None, b"v"), legacy_message(1, 5, b"k", b"v"), ONE):
        pieces = _split(legacy_message(1, 4, None, b"v") + bytes(300) + b"\x99" * 50 + after + LARGE)
        assert [type(piece) for piece in pieces] == [
            LegacyBatch,
            Corruption,
            RecordBatch if after is ONE else LegacyBatch,
            RecordBatch,
        ]
        assert pieces[1].size_bytes == 350


def test_a_damaged_old_message_is_shown() -> None:
    """A message of magic 0 or 1 whose CRC does not hold, and whose length does, is shown."""
    message = legacy_message(1, 4, None, b"v")
    _, damage, _ = _split(message + _flip(message, 20) + message)
    assert isinstance(damage, Corruption)
    assert isinstance(damage.batch, LegacyBatch)


def test_stop_cuts_a_batch_silently_and_nothing_else() -> None:
    """A batch that extends past the stop is not reported; damage and padding before it are."""
    data = ONE + LARGE + ONE
    for stop in (0, 1, len(ONE) - 1, len(ONE), len(ONE) + 10, len(ONE) + 4000):
        pieces = list(split(BufferSource(data), stop=stop))
        assert [piece.size_bytes for piece in pieces] == [len(ONE)] * (stop >= len(ONE))
    huge = _with_length(ONE, 2**31 - 1)
    pieces = list(split(BufferSource(ONE + huge + ONE + ONE), stop=3 * len(ONE) + 5))
    assert [type(piece) for piece in pieces] == [RecordBatch, Corruption, RecordBatch]


def test_batches_that_cross_the_window_are_whole() -> None:
    """In a file of more than three chunks, with a batch above one chunk, every batch is given, and read about once."""
    parts = [batch_bytes(bytes((index % 256,)) * 3000, base_offset=index, attributes=1) for index in range(800)]
    parts[400] = batch_bytes(b"z" * (MIB + 12345), attributes=1)
    source = _File(b"".join(parts))
    assert [bytes(piece.buffer) for piece in split(source) if isinstance(piece, RecordBatch)] == parts
    assert source.bytes_read < 1.5 * len(source.data)


def test_a_batch_above_16_mib_is_checked_before_it_is_read() -> None:
    """A long batch is given whole if its CRC holds; if not, it is never read in one piece, nor shown."""
    long = batch_bytes(b"w" * (17 * MIB), attributes=1)
    assert [type(piece) for piece in split(_File(ONE + long + ONE))] == [RecordBatch] * 3
    source = _File(ONE + _flip(long, 5000) + ONE)
    damage = list(split(source))[1]
    assert isinstance(damage, Corruption)
    assert (damage.size_bytes, damage.batch) == (len(long), None)
    assert source.largest_read <= MIB + 100


def test_an_old_message_above_16_mib_is_checked_before_it_is_read() -> None:
    """The same holds of magic 0 and 1, with the checksum that they have."""
    long = legacy_message(1, 5, None, b"w" * (17 * MIB))
    assert [type(piece) for piece in split(_File(long + ONE))] == [LegacyBatch, RecordBatch]
    source = _File(_flip(long, 5000) + ONE)
    assert [piece.size_bytes for piece in split(source)] == [len(long), len(ONE)]
    assert source.largest_read <= MIB + 100


@pytest.mark.parametrize("length", [2**31 - 1, 2**30, -(2**31), 0])
def test_a_length_allocates_nothing(length: int) -> None:
    """Whatever a length claims, reading takes no more than a few chunks."""
    source = _File(_with_length(ONE, length) * 20)
    tracemalloc.start()
    try:
        assert sum(piece.size_bytes for piece in split(source)) == source.size()
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def _claiming(unit: bytes, size_bytes: int, short_of_end: int) -> bytes:
    """The same batch many times, each claiming to extend to the same position near the end."""
    count = size_bytes // len(unit)
    end = count * len(unit) - short_of_end
    starts = range(0, count * len(unit), len(unit))
    return b"".join(_with_length(unit, max(49, end - start - 12)) for start in starts)


@pytest.mark.parametrize(
    "make",
    [
        lambda size: _flip(ONE, 20) * (size // len(ONE)),
        lambda size: _claiming(_flip(ONE, 20), size, 0),
        lambda size: _claiming(_flip(ONE, 20), size, 30),
        lambda size: _claiming(_flip(ONE, 20) + ONE, size, 0),
        lambda size: _claiming(_flip(ONE, 20) + ONE, size, 30),
        lambda size: _claiming(_flip(ONE, 20) + ONE, size // 2, 0) + bytes(size // 2) + b"\x01",
        lambda size: b"\x02" * size,
        lambda size: b"\x02\0\0\0\0\0\0" * (size // 7),
        lambda size: bytes(size) + b"\x01",
        lambda size: vectors.LEGACY_1 + bytes(size) + vectors.LEGACY_1,
    ],
    ids=["bad", "to the end", "near the end", "bad, good", "bad, good, near", "into a hole", "2", "20", "hole", "old"],
)
def test_bytes_made_to_waste_time_are_read_in_proportion(make: object) -> None:
    """On bytes made of likely headers with lengths to the end, reads and checks stay within a few times the size."""
    assert callable(make)
    checked = 0

    def counting(data: memoryview, value: int = 0) -> int:
        nonlocal checked
        checked += len(data)
        return crc32c(data, value)

    source = _File(make(MIB // 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterator, "CHUNK_SIZE", 2**14)
        patch.setattr(iterator, "_ALWAYS_CHECKED", 2**9)
        patch.setattr(iterator, "crc32c", counting)
        patch.setattr(batch_run, "crc32c", counting)
        sizes: list[int] = []
        calls = calls_made(lambda: sizes.extend(piece.size_bytes for piece in split(source)))
        assert sum(sizes) == source.size()
    assert source.bytes_read < 4 * source.size() + 4 * MIB
    assert checked < 20 * source.size() + 20 * MIB
    assert calls < 8 * source.size()


def test_checks_in_vain_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After too many wrong lengths, damage has a reason of its own, and short batches are still found."""
    monkeypatch.setattr(iterator, "_CHECKS_IN_VAIN", 0)
    monkeypatch.setattr(iterator, "_ALWAYS_CHECKED", 100)
    monkeypatch.setattr(iterator, "_CHECKS_IN_VAIN_PER_BYTE", 5)
    data = _claiming(_flip(ONE, 20) + ONE, 5000, 30)
    pieces = _split(data)
    damages = [piece for piece in pieces if isinstance(piece, Corruption)]
    assert {damage.reason for damage in damages[:-1]} == {
        "the stored CRC is not that of the bytes",
        "its CRC was not checked: too many lengths before it were wrong",
    }
    assert sum(isinstance(piece, RecordBatch) for piece in pieces) == data.count(ONE)


def test_a_likely_header_is_judged_by_its_whole_fields() -> None:
    """Every prefix of a header from its magic on is likely; each field out of range makes it unlikely."""
    assert all(is_likely_header(vectors.DATA[:size]) for size in range(17, 62))
    assert not any(is_likely_header(vectors.DATA[:size]) for size in range(17))
    changes: list[dict[str, int]] = [
        {"base_offset": -1},
        {"epoch": -2},
        {"attributes": 5},
        {"attributes": 128},
        {"attributes": -32768},
        {"last_offset_delta": -1},
        {"count": -1},
        {"count": 2},
        {"count": 1},
        {"base_timestamp": -2},
        {"max_timestamp": -2},
        {"producer_id": -2},
        {"producer_epoch": -2},
        {"base_sequence": -2},
    ]
    for change in changes:
        assert not is_likely_header(batch_bytes(b"", **change)[:61]), change
    assert is_likely_header(batch_bytes())
    assert not is_likely_header(legacy_message(1, 0, b"k" * 99, None)[:61])
