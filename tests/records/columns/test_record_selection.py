# SPDX-License-Identifier: Apache-2.0
"""Which records readers of columns and of objects give: compared with a filter that looks at one after the other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptBatchError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.columns.columns import MARK_COLUMNS, RECORD_COLUMNS, Chunk, read_columns, read_records, run_columns
from raftlog.records.columns.record_selection import RecordSelection
from raftlog.records.columns.transactions import AbortedIndex, AbortedRange, Transactions, find_transactions
from tests.consumer_logs import TIMESTAMP, ConsumerLog, Seen, Step, steps
from tests.records.kernel_forms import BUILT_FORMS, FORMS, examples, using
from tests.strategies import batch_bytes, with_crc

_bounds = st.fixed_dictionaries(
    {},
    optional={
        "from_offset": st.integers(0, 40),
        "to_offset": st.integers(0, 40),
        "since_ms": st.integers(TIMESTAMP - 3, TIMESTAMP + 10),
        "data_only": st.booleans(),
        "read_committed": st.booleans(),
    },
)
_ALL = (*RECORD_COLUMNS, *MARK_COLUMNS)


def _plain(records: list[Seen]) -> list[tuple[Any, ...]]:
    return [(each.offset, each.timestamp, each.key, each.value) for each in records]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [{}, {"chunk_size": 150}, {"arena_size": 50}], ids=["one", "runs", "arenas"])
@examples(40)
@given(steps=steps, bounds=_bounds)
def test_columns_are_those_of_a_naive_filter(form: Any, sizes: Any, steps: list[Step], bounds: Any) -> None:
    """Whatever the bounds, columns hold each wanted record and no other, with its marks, in runs of any size."""
    log = ConsumerLog(steps)
    expected = log.seen(**bounds)
    found: list[Any] = []
    marks: list[Any] = []
    objects, flags, arrow = [], [], []
    with using(form, **sizes):
        for chunk in read_columns(b"".join(log.batches), _ALL, **bounds):
            assert isinstance(chunk, Chunk)
            records = chunk.records
            assert records is not None
            assert not chunk.errors
            assert records.ends[-1] == records.count
            columns = records.columns
            rows = zip(columns["offset"], columns["timestamp"], records.keys(), records.values(), strict=True)
            found += rows
            marks += zip(*(records.to_numpy(name).tolist() for name in MARK_COLUMNS), strict=True)
            for index in range(len(chunk.batches)):
                objects += [(each.offset, each.timestamp, each.key, each.value) for each in chunk.objects(index)]
            flags += [(each.is_control, each.is_transactional) for each in records.iterate()]
            table = records.to_arrow()
            table.validate(full=True)
            arrow += [tuple(row.values()) for row in table.select(["offset", "key", *MARK_COLUMNS]).to_pylist()]
    assert found == objects == _plain(expected)
    assert marks == [(each.is_control, each.is_transactional, each.is_aborted) for each in expected]
    assert flags == [(each.is_control, each.is_transactional) for each in expected]
    assert arrow == [
        (each.offset, each.key, each.is_control, each.is_transactional, each.is_aborted) for each in expected
    ]


@pytest.mark.parametrize("form", FORMS)
@examples(60)
@given(steps=steps, bounds=_bounds)
def test_objects_are_those_of_a_naive_filter(form: Any, steps: list[Step], bounds: Any) -> None:
    """``read_records`` gives the same records, in either form of the kernel."""
    bounds.pop("since_ms", None)
    log = ConsumerLog(steps)
    with using(form):
        found = list(read_records(b"".join(log.batches), **bounds))
    assert [(each.offset, each.timestamp, each.key, each.value) for each in found] == _plain(log.seen(**bounds))
    assert [(each.is_control, each.is_transactional) for each in found] == [
        (each.is_control, each.is_transactional) for each in log.seen(**bounds)
    ]


_THREE = ConsumerLog([Step("plain", count=3, gap=10), Step("plain", count=3), Step("plain", count=3)])
_THREE_BYTES = b"".join(_THREE.batches)


@pytest.mark.parametrize("columns", [("offset",), ("value",), RECORD_COLUMNS])
@pytest.mark.parametrize("at", range(8, 22))
def test_a_bound_holds_at_each_offset(at: int, columns: tuple[str, ...]) -> None:
    """Before, at and after each boundary of batches, no record is on the wrong side of a bound, and none is missing."""
    offsets = list(range(10, 19))
    cases: list[tuple[Any, list[int]]] = [
        ({"from_offset": at}, [each for each in offsets if each >= at]),
        ({"to_offset": at}, [each for each in offsets if each < at]),
        ({"from_offset": at, "to_offset": at + 1}, [each for each in offsets if each == at]),
        ({"from_offset": at, "to_offset": at}, []),
    ]
    for bound, expected in cases:
        chunks = [chunk for chunk in read_columns(_THREE_BYTES, columns, **bound) if isinstance(chunk, Chunk)]
        counts = [0 if chunk.records is None else chunk.records.count for chunk in chunks]
        assert sum(counts) == len(expected)
        if "offset" in columns:
            assert [each for chunk in chunks for each in chunk.records.columns["offset"]] == expected  # type: ignore[union-attr]
        assert [each.offset for each in read_records(_THREE_BYTES, **bound)] == expected


@pytest.mark.parametrize("at", range(8, 22))
def test_headers_alone_keep_to_the_batches_that_a_bound_leaves(at: int) -> None:
    """Where no records are asked for, the batches are those that hold an offset within the bounds."""
    cases: list[tuple[Any, list[int]]] = [
        ({"from_offset": at}, [base for base in (10, 13, 16) if base + 2 >= at]),
        ({"to_offset": at}, [base for base in (10, 13, 16) if base < at]),
    ]
    for bound, expected in cases:
        chunks = [chunk for chunk in read_columns(_THREE_BYTES, (), **bound) if isinstance(chunk, Chunk)]
        assert [base for chunk in chunks for base in chunk.batches.column("base_offset")] == expected


def test_a_consumer_s_view_is_the_default() -> None:
    """Without arguments no control record comes, though its batch is among the headers, and aborted records do."""
    log = ConsumerLog([Step("leader"), Step("write"), Step("abort"), Step("plain")])
    data = b"".join(log.batches)
    [chunk] = read_columns(data)
    assert isinstance(chunk, Chunk)
    assert chunk.records is not None
    assert len(chunk.batches) == 4
    assert chunk.records.columns["offset"].tolist() == [1, 2, 4, 5]
    assert chunk.records.ends.tolist() == [0, 2, 2, 4]
    assert [each.offset for each in read_records(data)] == [1, 2, 4, 5]
    assert [each.offset for each in read_records(data, read_committed=True)] == [4, 5]
    assert [each.offset for each in read_records(data, data_only=False)] == list(range(6))


@pytest.mark.parametrize(("producer", "offset", "is_held"), [
    (1, 9, False), (1, 10, True), (1, 20, True), (1, 21, False), (2, 10, False), (3, 10, False),
    (4, 4, False), (4, 5, True), (4, 15, True), (4, 25, True), (4, 30, True), (4, 31, False),
])  # fmt: skip
def test_a_transaction_goes_from_its_first_record_to_its_marker(producer: int, offset: int, is_held: bool) -> None:
    """Before, at and after both ends, of that producer alone, also where an index names transactions that overlap."""
    ranges = [(1, 10, 20), (2, 30, 40), (4, 12, 14), (4, 5, 30)]
    index = AbortedIndex(AbortedRange(*each) for each in ranges)
    assert len(index) == 4
    assert index.holds(producer, offset) is is_held


@pytest.mark.parametrize("kind", ["commit", "abort", None])
def test_reading_stops_where_the_first_open_transaction_starts(kind: str | None) -> None:
    """Records there and after it wait for the marker, whichever producer wrote them; records before it do not."""
    marker = [] if kind is None else [Step(kind, 1)]
    log = ConsumerLog([Step("plain"), Step("write", 1), Step("plain"), Step("write", 2), Step("commit", 2), *marker])
    found = [each.offset for each in read_records(b"".join(log.batches), read_committed=True)]
    assert found == {"commit": list(range(8)), "abort": [0, 1, 4, 5, 6, 7], None: [0, 1]}[kind]


def test_chosen_batches_are_given_whole() -> None:
    """``run_columns`` gives what its caller has chosen, control records too, and their marks but that of an abort."""
    log = ConsumerLog([Step("leader"), Step("write"), Step("abort")])
    [headers] = read_columns(b"".join(log.batches), ())
    assert isinstance(headers, Chunk)
    [chunk] = run_columns(headers.batches.run, ("offset", "is_control", "is_transactional"))
    assert chunk.records is not None
    assert {name: column.tolist() for name, column in chunk.records.columns.items()} == {
        "offset": [0, 1, 2, 3],
        "is_control": [True, False, False, True],
        "is_transactional": [False, True, True, True],
    }
    with pytest.raises(ValueError, match="do not say"):
        run_columns(headers.batches.run, ("is_aborted",))


@pytest.mark.parametrize("form", FORMS)
def test_records_that_are_not_wanted_are_not_unpacked(form: Any) -> None:
    """Damage in records that are left out does not matter: they are neither decompressed nor read."""
    bad = with_crc(batch_bytes(b"no stream", attributes=0x20 | 1, count=1))
    sound = ConsumerLog([Step("plain", gap=1)]).batches[0]
    with using(form):
        [chunk] = read_columns(bad + sound)
        assert isinstance(chunk, Chunk)
        assert chunk.errors == ()
        assert [each.offset for each in read_records(bad + sound)] == [1, 2]
        [whole] = read_columns(bad + sound, data_only=False)
        assert isinstance(whole, Chunk)
        assert [index for index, _ in whole.errors] == [0]


def test_bytes_without_a_batch_are_reported_within_bounds() -> None:
    """Damage between wanted batches is an error of records, and a piece among columns."""
    spoiled = bytearray(_THREE.batches[1])
    spoiled[-1] ^= 1
    data = _THREE.batches[0] + bytes(spoiled) + _THREE.batches[2]
    records = read_records(data, from_offset=12)
    assert next(records).offset == 12
    with pytest.raises(CorruptBatchError):
        next(records)
    assert len(list(read_columns(data, from_offset=12))) == 3


@given(steps, st.integers(0, 14), st.integers(0, 14))
def test_a_part_of_a_log_shows_what_it_can(steps: list[Step], first: int, last: int) -> None:
    """Of a part, transactions begin where they are first seen, and those whose marker is not there are open."""
    part = [*steps[first:last]]
    log = ConsumerLog(part)
    found = find_transactions(BufferSource(b"".join(log.batches)))
    assert [tuple(each) for each in found.aborted] == log.aborted
    assert found.end_offset == log.end_offset
    assert found.last_stable_offset == log.stable_end


def test_records_appended_after_the_search_are_not_committed() -> None:
    """Behind the end of what is known, nothing is: a log may grow between the search and the reading."""
    log = ConsumerLog([Step("plain"), Step("write"), Step("abort"), Step("plain"), Step("plain")])
    known = find_transactions(BufferSource(b"".join(log.batches[:4])))
    found = read_records(b"".join(log.batches), read_committed=True, transactions=known)
    assert [each.offset for each in found] == [0, 1, 5, 6]


def test_committed_records_need_transactions() -> None:
    """A selection of committed records without knowledge of transactions is refused."""
    with pytest.raises(ValueError, match="needs the transactions"):
        RecordSelection(read_committed=True)
    assert RecordSelection(read_committed=True, transactions=Transactions()).end_offset is None


@pytest.mark.parametrize("form", BUILT_FORMS)
def test_attributes_of_all_batches_are_put_together(form: Any) -> None:
    """The kernel says which bits are set in the attributes of any batch."""
    batches = [batch_bytes(attributes=bits) for bits in (0x10, 0x21, 0x4008)]
    positions = memoryview(bytearray(24)).cast("q")
    for index, each in enumerate(batches):
        positions[index] = sum(map(len, batches[:index]))
        assert RecordBatch(each).attributes in {0x10, 0x21, 0x4008}
    assert form.all_attributes(memoryview(b"".join(batches)), positions) == 0x39
    assert form.all_attributes(memoryview(b""), positions[:0]) == 0
