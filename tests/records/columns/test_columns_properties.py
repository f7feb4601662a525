# SPDX-License-Identifier: Apache-2.0
"""Columns say what the plain readers say: compiled, interpreted and reference agree on every input."""

import itertools
from collections.abc import Collection
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.errors import DecodeError
from raftlog.records import reference
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, Corruption, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.columns.columns import BATCH_COLUMNS, RECORD_COLUMNS, Chunk, read_columns, read_records
from raftlog.records.rules import RULES
from tests.golden_files import record_files
from tests.records.extreme_batches import extreme_batches
from tests.records.kernel_forms import BUILT_FORMS, COMPILED, INTERPRETED, examples, needs_compiled, using
from tests.records.outcome import outcome
from tests.strategies import (
    batch_bytes,
    batches,
    legacy_batches,
    logs,
    mutated,
    ready_made_batches,
    with_mutated_area,
)

# Batches whose header, length and CRC hold, whatever their records are.
_framed_batches = (
    ready_made_batches
    | with_mutated_area()
    | with_mutated_area(CompressionType.NONE)
    | extreme_batches()
    | st.binary(max_size=40).map(lambda area: batch_bytes(area, count=2, last_offset_delta=1))
)
_framed_logs = st.lists(_framed_batches, min_size=1, max_size=6)


def _told(
    data: bytes, columns: Collection[str], form: Any, chunk_size: int | None, arena_size: int | None
) -> list[Any]:
    """Everything that ``read_columns`` says of some bytes, as plain values."""
    with using(form, chunk_size=chunk_size, arena_size=arena_size):
        return [_plain(piece) for piece in read_columns(data, columns, data_only=False)]


def _plain(piece: Any) -> Any:
    """The contents of a piece, as comparable values."""
    match piece:
        case LegacyBatch():
            return piece.position, bytes(piece.buffer)
        case Corruption(batch=LegacyBatch()):
            return attrs.evolve(piece, batch=None)
        case Chunk():
            return _plain_chunk(piece)
    return piece


def _plain_chunk(chunk: Chunk) -> tuple[Any, ...]:
    headers = {name: chunk.batches.column(name).tolist() for name in BATCH_COLUMNS}
    errors = [(index, type(error), getattr(error, "rule", None), str(error)) for index, error in chunk.errors]
    if chunk.records is None:
        return headers, errors
    records = chunk.records
    columns = {name: column.tolist() for name, column in records.columns.items()}
    return headers, errors, records.count, records.ends.tolist(), columns, bytes(records.data)


def _records_of(batch: RecordBatch) -> list[tuple[Any, ...]] | str | None:
    """The records of a batch, or the rule that it breaks, by the reader that reads them one at a time."""
    found = outcome(lambda: [tuple(record)[:5] for record in batch.records(check_crc=False)])
    return found.rule if isinstance(found, DecodeError) else found


def _records_by_reference(batch: RecordBatch) -> list[tuple[Any, ...]] | str | None:
    found = outcome(lambda: reference.read_records(bytes(batch.buffer)))
    if isinstance(found, DecodeError):
        return found.rule
    return [(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in found]


def _check_chunk(chunk: Chunk) -> int:
    """Compare a chunk with both plain readers, a batch at a time; return how many batches there are."""
    assert chunk.records is not None
    errors = dict(chunk.errors)
    start = 0
    for index, (batch, end) in enumerate(zip(chunk.batches.run.batches(), chunk.records.ends, strict=True)):
        found: Any = errors[index].rule if index in errors else None  # type: ignore[union-attr]
        if found is None:
            columns = chunk.records
            found = list(
                zip(
                    columns.columns["offset"].tolist()[start:end],
                    columns.columns["timestamp"].tolist()[start:end],
                    columns.keys()[start:end],
                    columns.values()[start:end],
                    columns.headers()[start:end],
                    strict=True,
                )
            )
            objects = [(o.offset, o.timestamp, o.key, o.value, o.headers) for o in chunk.objects(index)]
            assert objects == found
        else:
            assert found in RULES
            assert start == end
        assert found == _records_by_reference(batch) == _records_of(batch)
        start = end
    return index + 1


def _check(data: bytes, form: Any, chunk_size: int | None = None, arena_size: int | None = None) -> None:
    """Compare all that columns say of some bytes with what the splitter and the plain readers say."""
    found: list[Any] = []
    with using(form, chunk_size=chunk_size, arena_size=arena_size):
        for piece in read_columns(data, data_only=False):
            if isinstance(piece, Chunk):
                _check_chunk(piece)
                found += piece.batches.run.batches()
            else:
                found.append(_plain(piece))
        assert found == [_plain(piece) for piece in split(BufferSource(data))]


_COLUMNS_OF = {
    "offset": ["offset"],
    "timestamp": ["timestamp"],
    "key": ["key_position", "key_size"],
    "value": ["value_position", "value_size"],
    "headers": ["header_position", "header_count"],
}
_sizes = st.sampled_from([None, 100, 700])


@examples(30)
@given(_framed_logs, _sizes, _sizes)
def test_columns_are_those_of_the_plain_readers(
    log: list[bytes], chunk_size: int | None, arena_size: int | None
) -> None:
    """Whatever records batches hold, columns hold the same; what is refused is refused by the same rule."""
    for form in BUILT_FORMS:
        _check(b"".join(log), form, chunk_size, arena_size)


@examples(30)
@given(st.data(), _sizes)
def test_columns_of_mutated_logs_are_those_of_the_plain_readers(data: st.DataObject, chunk_size: int | None) -> None:
    """A log with damage anywhere comes in the pieces that the splitter finds, with the records of the plain readers."""
    log = b"".join(data.draw(logs()))
    log = data.draw(mutated(log, repair=False)) + data.draw(st.just(b"") | legacy_batches() | ready_made_batches)
    for form in BUILT_FORMS:
        _check(log, form, chunk_size)


@needs_compiled
@examples(40)
@given(
    _framed_logs.map(b"".join) | _framed_logs.map(b"".join).flatmap(mutated),
    st.sets(st.sampled_from(RECORD_COLUMNS)),
    _sizes,
    _sizes,
)
def test_both_forms_give_the_same_columns(
    data: bytes, columns: set[str], chunk_size: int | None, arena_size: int | None
) -> None:
    """Compiled and interpreted give the same columns, positions and all, the same errors, in the same words."""
    told = _told(data, columns, COMPILED, chunk_size, arena_size)
    assert told == _told(data, columns, INTERPRETED, chunk_size, arena_size)


@examples(15)
@given(_framed_logs)
def test_leaving_out_columns_changes_no_others(log: list[bytes]) -> None:
    """Each choice of columns gives those columns as they are among all, the same batches, and the same errors."""
    data = b"".join(log)
    for form in BUILT_FORMS:
        (everything,) = _told(data, RECORD_COLUMNS, form, None, None)
        for size in range(1, len(RECORD_COLUMNS)):
            for choice in itertools.combinations(RECORD_COLUMNS, size):
                (some,) = _told(data, choice, form, None, None)
                assert some[4] == {name: everything[4][name] for column in choice for name in _COLUMNS_OF[column]}
                assert (*some[:4], some[5]) == (*everything[:4], everything[5])


@examples(30)
@given(_framed_logs)
def test_objects_come_up_to_the_first_damage(log: list[bytes]) -> None:
    """``read_records`` gives the records of all batches before the first that is damaged, and then its error."""
    data = b"".join(log)
    expected: list[Any] = []
    for piece in split(BufferSource(data)):
        assert isinstance(piece, RecordBatch)
        records = _records_of(piece)
        if not isinstance(records, list):
            expected.append(records)
            break
        expected += records
    for form in BUILT_FORMS:
        found: list[Any] = []
        with using(form):
            try:
                for record in read_records(data, data_only=False):
                    found += [(record.offset, record.timestamp, record.key, record.value, record.headers)]
            except DecodeError as error:
                found.append(error.rule)
        assert found == expected


@pytest.mark.parametrize("form", BUILT_FORMS, ids=lambda form: "compiled" if form.IS_COMPILED else "interpreted")
def test_golden_logs_have_the_columns_of_the_plain_readers(form: Any) -> None:
    """Kafka's logs have the same records as columns and one at a time."""
    for path in record_files():
        data = path.read_bytes()
        if len(data) < 200_000:
            _check(data, form)


@pytest.mark.slow
def test_every_rule_is_broken_alike() -> None:
    """As above, on thousands of batches that break every rule that a reader of records has."""
    reached: set[Any] = set()

    @examples(2500)
    @given(batches().flatmap(lambda data: mutated(data, repair=True)) | with_mutated_area() | extreme_batches())
    @example(batch_bytes(b"\x0c\0\0\0\x01\x01\0", count=1, attributes=5))  # Of a codec that there is not.
    def check(data: bytes) -> None:
        for form in BUILT_FORMS:
            _check(data, form)
        with using(BUILT_FORMS[-1]):
            for piece in read_columns(data, data_only=False):
                if isinstance(piece, Chunk):
                    reached.update(error.rule for _, error in piece.errors if isinstance(error, DecodeError))

    check()
    record_rules = {rule for rule in RULES if rule.startswith(("record-", "varint-"))}
    assert {"batch-count", "batch-missing", "batch-trailing", "batch-codec", "codec-stream", *record_rules} <= reached
