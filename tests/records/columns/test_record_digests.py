# SPDX-License-Identifier: Apache-2.0
"""Digests of records: equal for equal contents, different for different ones, and spread evenly."""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import TimestampType
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.columns.column_values import Chunk
from raftlog.records.columns.columns import RECORD_COLUMNS, RecordDigests, read_columns, record_digests
from raftlog.records.columns.record_digests import DIGESTED_COLUMNS
from raftlog.records.kernel_choice import IS_COMPILED
from tests.golden_files import GOLDEN, record_files
from tests.records.kernel_forms import BUILT_FORMS, examples, using
from tests.strategies import codecs, payloads

Headers = tuple[tuple[bytes, bytes | None], ...]
Contents = tuple[int, bytes | None, bytes | None, Headers]

_TIME_MS = 1_780_000_000_000
_times = st.sampled_from([0, _TIME_MS, _TIME_MS + 1, 2**61])
_contents = st.builds(lambda time, payload: (time, *payload), _times, payloads)
_ROW: Contents = (_TIME_MS, b"key", b"value", ((b"h", b"1"),))


def _log(
    rows: Sequence[Contents], sizes: Iterable[int], codec: CompressionType = CompressionType.NONE, base: int = 0
) -> bytes:
    """Write records to batches of so many records each; the last has the rest."""
    log, start = b"", 0
    for size in (*sizes, len(rows)):
        part = rows[start : start + size]
        start += size
        if part:
            builder = RecordBatchBuilder(
                base,
                partition_leader_epoch=base % 7,
                compression_type=codec,
                producer_id=base,
                producer_epoch=1,
                base_sequence=5,
            )
            builder.extend(part)
            log += builder.build()
            base += len(part) + 3
    return log


def _digests(log: bytes, columns: Sequence[str] = DIGESTED_COLUMNS) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for chunk in read_columns(log, columns):
        assert isinstance(chunk, Chunk)
        assert chunk.records is not None
        digests = record_digests(chunk.records)
        assert len(digests) == chunk.records.count
        found += zip(digests.low, digests.high, strict=True)
    return found


@examples(40)
@given(
    st.lists(_contents, max_size=6),
    st.lists(st.integers(1, 3), max_size=4),
    st.lists(st.integers(1, 3), max_size=4),
    codecs,
    st.integers(0, 2**40),
)
def test_equal_contents_have_equal_digests(
    rows: list[Contents], sizes: list[int], other_sizes: list[int], codec: CompressionType, base: int
) -> None:
    """Whatever the batches, codec, offsets, epochs and producers of two logs: their records have the same digests."""
    for form in BUILT_FORMS:
        with using(form):
            found = _digests(_log(rows, sizes))
            assert _digests(_log(rows, other_sizes, codec, base), RECORD_COLUMNS) == found
            assert len(found) == len(rows)
            assert len(set(found)) == len({(time, key, value, tuple(headers)) for time, key, value, headers in rows})


def test_the_time_of_an_append_counts() -> None:
    """Of records with LogAppendTime, the timestamp is their batch's, as for a consumer."""
    builder = RecordBatchBuilder(0, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=_TIME_MS)
    builder.extend([(5, *_ROW[1:]), (6, *_ROW[1:])])
    assert _digests(builder.build()) == _digests(_log([_ROW, _ROW], ()))


@pytest.mark.parametrize("missing", DIGESTED_COLUMNS)
def test_each_column_is_needed(missing: str) -> None:
    """Without the column of a field, there is no digest; that of offsets is not needed."""
    columns = [name for name in RECORD_COLUMNS if name != missing]
    with pytest.raises(KeyError):
        _digests(_log([_ROW], ()), columns)
    assert _digests(_log([_ROW], ())) == _digests(_log([_ROW], ()), RECORD_COLUMNS)


def test_digests_as_an_array() -> None:
    """Its two rows are both halves; a log without records has none."""
    (chunk,) = read_columns(_log([_ROW, (0, None, None, ())], ()))
    assert isinstance(chunk, Chunk)
    assert chunk.records is not None
    digests = record_digests(chunk.records)
    assert digests.to_numpy().tolist() == [digests.low.tolist(), digests.high.tolist()]
    assert digests.low.tolist() != digests.high.tolist()
    assert RecordDigests(digests.columns[:0]).to_numpy().shape == (2, 0)


# Kafka's logs


def _contents_and_digests(path: Path) -> Iterator[tuple[Contents, tuple[int, int]]]:
    for chunk in read_columns(path.read_bytes()):
        if isinstance(chunk, Chunk) and chunk.records is not None:
            digests = record_digests(chunk.records)
            for record, low, high in zip(chunk.records.objects(), digests.low, digests.high, strict=True):
                yield (record.timestamp, record.key, record.value, tuple(record.headers)), (low, high)


def test_records_of_kafka_with_other_contents_have_other_digests() -> None:
    """In all golden files together, each contents has one digest, and each digest one contents."""
    digests_of: dict[Contents, tuple[int, int]] = {}
    for path in record_files():
        for contents, digest in _contents_and_digests(path):
            assert digests_of.setdefault(contents, digest) == digest
    assert len(set(digests_of.values())) == len(digests_of) > 1000


def test_a_mirror_has_the_digests_of_its_source() -> None:
    """MirrorMaker's copies have other batches and codecs, some other offsets, and all the same digests in order."""
    data = GOLDEN / "mirror/data"
    compared = 0
    for topic in ("orders-0", "orders-1", "tx.orders-0", "heartbeats-0", "internal-looking-0"):
        source, target = (
            [digest for path in sorted(folder.glob("*.log")) for _, digest in _contents_and_digests(path)]
            for folder in (data / "n1" / topic, data / "n2" / f"A.{topic}")
        )
        assert source == target
        compared += len(source)
    assert compared == 580


# Differences

_ALIKE: list[list[Contents]] = [
    [(0, None, None, ()), (0, b"", None, ()), (0, None, b"", ()), (0, b"", b"", ())],
    [(0, b"ab", b"c", ()), (0, b"a", b"bc", ()), (0, b"abc", b"", ()), (0, b"", b"abc", ()), (0, None, b"abc", ())],
    [(0, bytes(size), bytes(other), ()) for size in range(70) for other in range(70)],
    [(0, None, None, ((b"", None),) * count) for count in range(40)],
    [(0, None, None, ((bytes(size), bytes(other)),)) for size in range(40) for other in range(40)],
    [(0, None, None, ((b"", None),)), (0, None, None, ((b"", b""),)), (0, None, None, ())],
    [(0, None, None, ((b"a", b"1"), (b"b", b"2"))), (0, None, None, ((b"b", b"2"), (b"a", b"1")))],
    [(0, None, None, ((b"a", b"b"),)), (0, None, None, ((b"ab", b""),)), (0, b"a", b"b", ()), (0, b"ab", b"", ())],
    [
        (0, None, None, ((b"a", None), (b"b", None))),
        (0, None, None, ((b"ab", None),)),
        (0, b"a", None, ((b"b", None),)),
    ],
    [(1 << bit, None, None, ()) for bit in range(62)],
]


@pytest.mark.parametrize("alike", _ALIKE, ids=lambda alike: str(len(alike)))
def test_contents_that_are_alike_differ(alike: list[Contents]) -> None:
    """Null, empty and zeros, bytes that move from one field to the next, and the order of headers make a difference."""
    found = _digests(_log(alike, ()))
    assert len({low for low, _ in found}) == len({high for _, high in found}) == len(alike)


def _field(chance: random.Random) -> bytes | None:
    size = chance.choice((-1, 0, 1, 8, 15, 16, 17, 32, 33, 47, 48, 100))
    return None if size < 0 else chance.randbytes(size)


def _contents_of(chance: random.Random) -> Contents:
    headers = tuple((_field(chance) or b"", _field(chance)) for _ in range(chance.choice((0, 0, 0, 1, 2))))
    return _TIME_MS + chance.randrange(1000), _field(chance), _field(chance), headers


def _changed_field(field: bytes | None, chance: random.Random) -> bytes | None:
    """Change a field in one place: a bit, a byte more or fewer, or between null and empty."""
    if not field:
        return chance.choice((None if field is not None else b"", b"\0"))
    place = chance.randrange(len(field))
    return chance.choice(
        (
            field[:place] + bytes([field[place] ^ 1 << chance.randrange(8)]) + field[place + 1 :],
            field + b"\0",
            field[:-1],
            field[:place] + field[place + 1 :] + field[place : place + 1] + b"\1",
        )
    )


def _changed(contents: Contents, chance: random.Random) -> Contents:
    """Change a record in one place."""
    time, key, value, headers = contents
    match chance.randrange(5):
        case 0:
            return time ^ 1 << chance.randrange(40), key, value, headers
        case 1:
            return time, _changed_field(key, chance), value, headers
        case 2:
            return time, key, _changed_field(value, chance), headers
        case 3 if headers:
            place = chance.randrange(len(headers))
            header_key, header_value = headers[place]
            other = header_key, _changed_field(header_value, chance)
            if chance.random() < 0.5:
                other = _changed_field(header_key, chance) or header_key + b"\0", header_value
            return time, key, value, (*headers[:place], other, *headers[place + 1 :])
        case 4 if headers:
            return time, key, value, headers[1:]
    return time, key, value, (*headers, (b"", chance.choice((None, b""))))


def test_a_change_in_one_place_changes_the_digest() -> None:
    """Of 100,000 random pairs that differ in one place, none has one digest; nor have any other two of the contents.

    Not even in one of the halves: among so many, two equal ones would be a matter of one in a billion.
    """
    chance = random.Random(1)
    pairs = 100_000 if IS_COMPILED else 2_000
    rows: list[Contents] = []
    for _ in range(pairs):
        row = _contents_of(chance)
        rows += (row, _changed(row, chance))
    found = _digests(_log(rows, [2000] * (len(rows) // 2000)))
    assert all(low != other_low for (low, _), (other_low, _) in zip(found[::2], found[1::2], strict=True))
    distinct = len(set(rows))
    assert distinct > 1.8 * pairs
    assert len({low for low, _ in found}) == len({high for _, high in found}) == distinct


def test_each_bit_of_a_digest_depends_on_each_bit_of_the_contents() -> None:
    """If one bit of a record is another, each bit of its digest is another in half of all cases (avalanche)."""
    chance = random.Random(2)
    flips = [0] * 128
    cases = 0
    for _ in range(8):
        field = chance.randbytes(50)
        row: Contents = (_TIME_MS, field[:20], field, ((b"h", field[:20]),))
        rows = [row, *((_TIME_MS ^ 1 << bit, *row[1:]) for bit in range(40))]
        for bit in range(400):
            flipped = (int.from_bytes(field, "big") ^ 1 << bit).to_bytes(50, "big")
            rows.append((*row[:2], flipped, row[3]))
            if flipped[:20] != field[:20]:
                rows += [(_TIME_MS, flipped[:20], *row[2:]), (*row[:3], ((b"h", flipped[:20]),))]
        (low, high), *others = _digests(_log(rows, ()))
        for other_low, other_high in others:
            cases += 1
            difference = (low ^ other_low) & 2**64 - 1 | ((high ^ other_high) & 2**64 - 1) << 64
            assert 30 <= difference.bit_count() <= 98  # Six deviations of 5.7 from 64.
            for bit in range(128):
                flips[bit] += difference >> bit & 1
    assert cases == 8 * (40 + 400 + 320)
    assert all(0.46 < flip / cases < 0.54 for flip in flips)  # Six deviations of 0.0064 from 1/2.


@given(st.lists(_contents, min_size=1, max_size=6), st.data())
def test_without_timestamps_the_rest_counts(rows: list[Contents], data: st.DataObject) -> None:
    """The digests are those of the same records at time 0, whatever their times are."""
    times = [data.draw(_times) for _ in rows]
    others = [(time, *row[1:]) for time, row in zip(times, rows, strict=True)]
    at_zero = [(0, *row[1:]) for row in rows]
    assert _untimed(_log(others, ())) == _digests(_log(at_zero, ()))


def _untimed(log: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for chunk in read_columns(log, DIGESTED_COLUMNS):
        assert isinstance(chunk, Chunk)
        assert chunk.records is not None
        digests = record_digests(chunk.records, with_timestamps=False)
        found += zip(digests.low, digests.high, strict=True)
    return found
