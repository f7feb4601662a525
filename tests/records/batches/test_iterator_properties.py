# SPDX-License-Identifier: Apache-2.0
"""Whatever the bytes are, ``split`` accounts for each of them once, and damage costs no batch but its own."""

import itertools
from collections.abc import Iterable, Iterator
from unittest import mock

import attrs
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records.batches import iterator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, ByteSource, Corruption, Piece, TornTail, ZeroPadding, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.rules import RULES, Severity
from tests.strategies import batch_bytes, legacy_batches, logs, mutated, ready_made_batches

zeros = st.integers(1, 1200).map(bytes)
torn = st.tuples(ready_made_batches, st.integers(1, 60)).map(lambda pair: pair[0][: -pair[1]])
chunk_sizes = st.sampled_from([61, 64, 100, 512, 1000])
_whole = batch_bytes(b"\x0c\0\0\0\x01\x01\0", count=1)
TOO_LONG = _whole[:8] + (len(_whole) - 11).to_bytes(4) + _whole[12:]
"""A whole batch whose length says a byte more than there is."""


def _messy(max_size: int) -> st.SearchStrategy[bytes]:
    """Files of whole, mutated, torn and legacy batches, with holes and garbage anywhere."""
    whole = ready_made_batches
    part = st.one_of(whole, whole, whole.flatmap(mutated), legacy_batches(), zeros, torn, st.binary(max_size=80))
    return st.lists(part, max_size=max_size).map(b"".join)


def _pieces(data: bytes, start: int = 0, stop: int | None = None) -> list[Piece]:
    return list(split(BufferSource(data), start=start, stop=stop))


def _end_of(pieces: Iterable[Piece], start: int = 0) -> int:
    """Check that pieces are adjacent, and return their end."""
    for piece in pieces:
        assert piece.position == start
        assert piece.size_bytes > 0
        start += piece.size_bytes
    return start


def _outline(pieces: list[Piece]) -> list[tuple[object, ...]]:
    return [(type(piece), piece.position, piece.size_bytes, getattr(piece, "rule", None)) for piece in pieces]


def _batches_in(pieces: Iterable[Piece]) -> dict[int, bytes]:
    return {piece.position: bytes(piece.buffer) for piece in pieces if isinstance(piece, RecordBatch)}


def _placed(log: list[bytes], start: int = 0) -> dict[int, bytes]:
    positions = itertools.accumulate(map(len, log), initial=start)
    return dict(zip(positions, log, strict=False))


def _check_coverage(data: bytes) -> None:
    pieces = _pieces(data)
    assert _end_of(pieces) == len(data)
    for piece in pieces:
        if isinstance(piece, RecordBatch | LegacyBatch):
            assert piece.crc_holds
            assert bytes(piece.buffer) == data[piece.position : piece.position + piece.size_bytes]
        elif isinstance(piece, ZeroPadding):
            assert piece is pieces[-1]
            assert not any(data[piece.position :])
        elif isinstance(piece, TornTail):
            assert not any(data[piece.position + piece.size_bytes :])
        assert getattr(piece, "rule", "tail-torn") in RULES


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_covered(data: bytes) -> None:
    """Pieces are adjacent and sum to the size, for any bytes."""
    _check_coverage(data)


@settings(deadline=None, max_examples=50)
@given(_messy(5))
def test_messy_files_are_covered(data: bytes) -> None:
    """Pieces are adjacent and sum to the size, for files of batches, holes, garbage and torn ends."""
    _check_coverage(data)


@pytest.mark.slow
@settings(deadline=None, max_examples=1000)
@given(_messy(8))
def test_many_messy_files_are_covered(data: bytes) -> None:
    """As above, on many more."""
    _check_coverage(data)


def _check_window(data: bytes, chunk_size: int) -> None:
    expected = _outline(_pieces(data))
    with mock.patch.multiple(iterator, CHUNK_SIZE=chunk_size, _IN_ONE_PIECE=chunk_size):
        assert _outline(_pieces(data)) == expected


@settings(deadline=None, max_examples=35)
@given(_messy(5), chunk_sizes)
@example(TOO_LONG, 61)
def test_the_window_does_not_show(data: bytes, chunk_size: int) -> None:
    """However little is read at once, the pieces are the same."""
    _check_window(data, chunk_size)


@pytest.mark.slow
@settings(deadline=None, max_examples=800)
@given(_messy(8), chunk_sizes)
def test_the_window_does_not_show_in_many_files(data: bytes, chunk_size: int) -> None:
    """As above, on many more."""
    _check_window(data, chunk_size)


@settings(deadline=None, max_examples=40)
@given(logs(), st.data())
def test_splitting_can_start_at_any_piece(log: list[bytes], data: st.DataObject) -> None:
    """From the start of any piece on, the pieces are those of the whole."""
    whole = b"".join([*log[:-1], data.draw(mutated(log[-1])), *log])
    pieces = _pieces(whole)
    if pieces:
        index = data.draw(st.integers(0, len(pieces) - 1))
        assert _outline(_pieces(whole, pieces[index].position)) == _outline(pieces[index:])


def _check_untouched(log: list[bytes], index: int, changed: bytes, padding: bytes = b"") -> None:
    before, after = log[:index], log[index + 1 :]
    data = b"".join([*before, changed, *after])
    end = len(data) - len(b"".join(after))
    expected = _placed(before) | _placed(after, end)
    found = _batches_in(_pieces(data + padding))
    # Bytes that follow may complete what was cut off: then it is the next batch that has lost some.
    assume(not any(position < end < position + len(batch) for position, batch in found.items()))
    assert {position: found.get(position) for position in expected} == expected


@settings(deadline=None, max_examples=50)
@given(logs(), st.data())
def test_damage_costs_no_other_batch(log: list[bytes], data: st.DataObject) -> None:
    """After any change to one batch, every other batch is still found, at its place."""
    index = data.draw(st.integers(0, len(log) - 1))
    _check_untouched(log, index, data.draw(mutated(log[index])))


@pytest.mark.slow
@settings(deadline=None, max_examples=1000)
@given(logs(), st.data())
def test_much_damage_costs_no_other_batch(log: list[bytes], data: st.DataObject) -> None:
    """As above, on many more."""
    index = data.draw(st.integers(0, len(log) - 1))
    _check_untouched(log, index, data.draw(mutated(log[index])))


@settings(deadline=None, max_examples=40)
@given(logs(min_size=2), st.data())
def test_a_length_that_ends_at_another_batch_swallows_none(log: list[bytes], data: st.DataObject) -> None:
    """A length field that was changed to end exactly where a later batch ends costs none of those between."""
    index = data.draw(st.integers(0, len(log) - 2))
    last = data.draw(st.integers(index + 1, len(log) - 1))
    length = len(b"".join(log[index : last + 1])) - 12
    changed = log[index][:8] + length.to_bytes(4, "big") + log[index][12:]
    _check_untouched(log, index, changed, data.draw(st.just(b"") | zeros))


@settings(deadline=None, max_examples=40)
@given(logs(), st.data())
def test_holes_and_garbage_between_batches_cost_none(log: list[bytes], data: st.DataObject) -> None:
    """All batches are found, whatever is between them."""
    gaps = data.draw(st.lists(st.just(b"") | zeros | st.binary(max_size=40), min_size=len(log), max_size=len(log)))
    parts = [part for pair in zip(gaps, log, strict=True) for part in pair]
    found = _batches_in(_pieces(b"".join(parts)))
    expected = {position: part for position, part in _placed(parts).items() if part in log}
    assert expected.items() <= found.items()


@settings(deadline=None, max_examples=40)
@given(logs(), st.data())
def test_a_cut_anywhere_is_a_torn_tail(log: list[bytes], data: st.DataObject) -> None:
    """A log cut at any byte gives its whole batches and then, unless the cut is between two, one torn tail."""
    whole = b"".join(log)
    cut = data.draw(st.integers(0, len(whole)))
    pieces = _pieces(whole[:cut])
    complete = {position: batch for position, batch in _placed(log).items() if position + len(batch) <= cut}
    assert _batches_in(pieces) == complete
    rest = cut - len(b"".join(complete.values()))
    assume(any(whole[cut - rest : cut]) or not rest)  # Base offset 0, and no more of it: that is padding.
    assert [type(piece) for piece in pieces[len(complete) :]] == [TornTail] * (rest > 0)


@settings(deadline=None, max_examples=40)
@given(logs(), zeros)
def test_zeros_after_the_last_batch_are_padding(log: list[bytes], tail: bytes) -> None:
    """However many zeros follow the last batch, they are one piece, padding, which is suspicious and no damage."""
    pieces = _pieces(b"".join(log) + tail)
    assert _batches_in(pieces) == _placed(log)
    assert pieces[len(log) :] == [ZeroPadding(len(b"".join(log)), len(tail))]
    assert RULES["tail-zero"].severity is RULES["tail-torn"].severity is Severity.SUSPICIOUS


@settings(deadline=None, max_examples=40)
@given(logs(min_size=2), st.data())
def test_damage_before_a_batch_is_never_a_tail(log: list[bytes], data: st.DataObject) -> None:
    """Bad bytes before a good batch are damage, neither a torn tail nor padding."""
    whole = b"".join([data.draw(mutated(log[0])), *log[1:]])
    pieces = _pieces(whole)
    last = max(index for index, piece in enumerate(pieces) if isinstance(piece, RecordBatch))
    assert all(isinstance(piece, RecordBatch | Corruption | LegacyBatch) for piece in pieces[:last])
    assert all(RULES[piece.rule].severity is Severity.DAMAGED for piece in pieces if isinstance(piece, Corruption))


@settings(deadline=None, max_examples=35)
@given(_messy(4), st.data())
def test_stop_cuts_no_more_than_a_batch(data: bytes, draw: st.DataObject) -> None:
    """Up to any stop the pieces are adjacent, and the missing bytes before it are the start of one sound batch."""
    stop = draw.draw(st.integers(0, len(data)))
    end = _end_of(_pieces(data, stop=stop))
    assert end <= stop
    if end < stop:
        crossing = next(split(BufferSource(data), start=end))
        assert isinstance(crossing, RecordBatch | LegacyBatch)
        assert crossing.position + crossing.size_bytes > stop


@attrs.define
class _ChangingSource:
    """A source that has another size after every few questions."""

    data: bytes
    sizes: Iterator[int]
    every: int
    largest: int = 0
    current: int = 0
    asked: int = 0

    def _now(self) -> int:
        if self.asked % self.every == 0:
            self.current = next(self.sizes, self.current)
            self.largest = max(self.largest, self.current)
        self.asked += 1
        assert self.asked < 10_000
        return self.current

    def size(self) -> int:
        return self._now()

    def read_at(self, position: int, size: int) -> memoryview:
        return memoryview(self.data)[: self._now()][position : position + size]


def _check_changing(data: bytes, sizes: list[int], every: int) -> _ChangingSource:
    source = _ChangingSource(data, iter(sizes), every)
    with mock.patch.object(iterator, "CHUNK_SIZE", 100):
        end = _end_of(split(source))
    assert end <= source.largest
    return source


@settings(deadline=None, max_examples=35)
@given(_messy(4), st.data())
def test_a_source_that_changes_never_crashes_or_hangs(data: bytes, draw: st.DataObject) -> None:
    """While the source grows and shrinks at random, pieces are adjacent and within its greatest size."""
    sizes = draw.draw(st.lists(st.integers(0, len(data)), min_size=1, max_size=20))
    _check_changing(data, sizes, draw.draw(st.integers(1, 4)))


@settings(deadline=None, max_examples=40)
@given(logs(), st.data())
def test_a_source_that_grows_is_read_to_its_size_when_last_asked(log: list[bytes], draw: st.DataObject) -> None:
    """While a log is being written, its batches are read, and what is torn is torn as of the last time of asking."""
    data = b"".join(log)
    sizes = sorted(draw.draw(st.lists(st.integers(0, len(data)), min_size=1, max_size=8)))
    source = _ChangingSource(data, iter(sizes), 1)
    asked: list[int] = []
    growing: ByteSource = mock.Mock(spec=ByteSource, read_at=source.read_at)
    growing.size = lambda: asked.append(source.size()) or asked[-1]  # type: ignore[method-assign, func-returns-value]
    pieces = list(split(growing))
    assert _end_of(pieces) == asked[-1]
    assert all(isinstance(piece, RecordBatch) for piece in pieces[:-1])


@settings(deadline=None, max_examples=40)
@given(logs(), st.data())
def test_a_source_that_shrinks_is_read_to_where_it_ends(log: list[bytes], draw: st.DataObject) -> None:
    """A log that is truncated meanwhile gives no more than it had, no less than it has, and no damage."""
    data = b"".join(log)
    sizes = sorted(draw.draw(st.lists(st.integers(0, len(data)), min_size=1, max_size=8)), reverse=True)
    source = _ChangingSource(data, iter(sizes), 2)
    with mock.patch.object(iterator, "CHUNK_SIZE", 100):
        pieces = list(split(source))
    assert source.current <= _end_of(pieces) <= sizes[0]
    assert not any(isinstance(piece, Corruption) for piece in pieces[:-1])


@attrs.frozen
class _LyingSource:
    """A source that claims more than it ever gives."""

    data: bytes

    def size(self) -> int:
        return len(self.data) + 1000

    def read_at(self, position: int, size: int) -> memoryview:
        return memoryview(self.data)[position : position + size]


@settings(deadline=None, max_examples=40)
@given(_messy(4))
@example(TOO_LONG[:16] + b"\x03" + TOO_LONG[17:])
def test_a_source_that_lies_about_its_size_does_not_hold_us(data: bytes) -> None:
    """A source that claims more bytes than it gives is read to the end of what it gives."""
    assert _end_of(split(_LyingSource(data))) == len(data)


def _error_of(batch: RecordBatch | LegacyBatch) -> DecodeError | None:
    try:
        for _ in batch.records(check_crc=False, max_size=10**6):
            pass
    except DecodeError as error:
        return error
    return None


def _check_errors(data: bytes) -> None:
    for piece in _pieces(data):
        batch = piece.batch if isinstance(piece, Corruption) else piece
        if not isinstance(batch, RecordBatch | LegacyBatch):
            continue
        error = _error_of(batch)
        if error is not None:
            assert error.rule in RULES
            assert error.base_offset == batch.base_offset
            assert error.position is not None
            # A field that should begin where the batch ends has that end as its position.
            assert batch.position <= error.position <= batch.position + batch.size_bytes


@settings(deadline=None, max_examples=40)
@given(_messy(4))
def test_readers_raise_only_decode_errors_with_a_place(data: bytes) -> None:
    """Reading the records of every piece, sound or not, raises only DecodeErrors, which say where in the file."""
    _check_errors(data)


@pytest.mark.slow
@settings(deadline=None, max_examples=800)
@given(_messy(4))
def test_only_decode_errors_leave_readers_of_many(data: bytes) -> None:
    """As above, on many more."""
    _check_errors(data)
