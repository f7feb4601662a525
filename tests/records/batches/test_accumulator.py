# SPDX-License-Identifier: Apache-2.0
"""The accumulator: its batches, its refusals, and that it writes the same bytes as Kafka."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    BatchTooLargeError,
    BufferExhaustedError,
    InvalidControlBatchError,
    InvalidRecordError,
    MissingExtraError,
    NonContiguousAppendError,
    NotLeaderError,
    OffsetOutOfRangeError,
    UnknownEpochError,
    UnsupportedVersionError,
)
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.memory_pool import MemoryPool
from raftlog.records.batches.open_batch import KeyedRecord
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.records.messages.control import (
    ControlValue,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    read_control_record,
)
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import VoterSet
from tests.golden_files import GOLDEN, golden_id, record_files
from tests.records import vectors
from tests.strategies import TIMESTAMP

EPOCH = 5
LEADER_CHANGE = LeaderChangeMessage(1, (Voter(1), Voter(2), Voter(3)), (Voter(1), Voter(3)))


def accumulator(**options: Any) -> BatchAccumulator:
    """Make an accumulator of epoch 5 that starts at offset 10."""
    return BatchAccumulator(EPOCH, 10, **options)


def drained_bytes(of: BatchAccumulator) -> list[bytes]:
    """Drain and release all batches, and return their bytes."""
    drained = of.drain()
    for batch in drained:
        batch.release()
    return [batch.data for batch in drained]


def values_of(data: bytes) -> list[bytes | None]:
    """Return the values of a batch's records."""
    return [record.value for record in RecordBatch(data).records()]


@given(st.lists(st.lists(st.binary(min_size=1, max_size=90), min_size=1, max_size=5)), st.integers(600, 2000))
def test_every_append_is_in_one_batch_and_in_order(calls: list[list[bytes]], max_size: int) -> None:
    """Drained batches hold the appended values in order, each call's in one batch, and none above the largest size."""
    one = accumulator(max_batch_size_bytes=max_size, max_undrained_batches=1000)
    last_offsets = [one.append(EPOCH, call, TIMESTAMP) for call in calls]
    drained = one.drain()
    assert [value for batch in drained for value in values_of(batch.data)] == list(itertools.chain(*calls))
    assert max((len(batch.data) for batch in drained), default=0) <= max_size
    assert last_offsets == [9 + total for total in itertools.accumulate(map(len, calls))]
    ends = {batch.last_offset for batch in drained}
    starts = {batch.base_offset for batch in drained}
    for last, call in zip(last_offsets, calls, strict=True):
        assert not starts & set(range(last - len(call) + 2, last + 1))
    assert not calls or last_offsets[-1] in ends


# Bytes that Kafka wrote


def test_leader_change_vector() -> None:
    """A leader change is appended as Kafka's leader appends it."""
    one = BatchAccumulator(EPOCH, 0)
    assert one.append_leader_change(LEADER_CHANGE, TIMESTAMP) == 0
    assert drained_bytes(one) == [vectors.LEADER_CHANGE]


def test_raft_data_vector() -> None:
    """Two appends of metadata records become the batch that Kafka's leader makes of them, at the time of the first."""
    one = accumulator()
    assert one.append(EPOCH, [bytes.fromhex("01140000")], TIMESTAMP) == 10
    assert one.append(EPOCH, [b"\x01\x0c\x00\x0ekraft.version\x00\x01\x00"], TIMESTAMP + 7) == 11
    [batch] = one.drain()
    assert batch.data == vectors.RAFT_DATA
    assert (batch.base_offset, batch.last_offset, batch.record_count, batch.append_timestamp) == (10, 11, 2, TIMESTAMP)
    assert batch.batch == RecordBatch(vectors.RAFT_DATA)


def _metadata_files() -> Iterator[Path]:
    return (path for path in record_files() if path.parent.name == "__cluster_metadata-0")


def _control_values(batch: RecordBatch) -> list[ControlValue]:
    values = [read_control_record(record.key, record.value).value for record in batch.records()]
    return [value for value in values if value is not None]


def _append_again(one: BatchAccumulator, batch: RecordBatch) -> int:
    """Append the records of a batch, at its time, by the narrowest method for them."""
    if not batch.is_control:
        values = [record.value for record in batch.records() if record.value]
        return one.append(batch.partition_leader_epoch, values, batch.max_timestamp)
    match _control_values(batch):
        case [LeaderChangeMessage() as message]:
            return one.append_leader_change(message, batch.max_timestamp)
        case [VotersRecord() as record]:
            return one.append_voters(record, batch.max_timestamp)
        case [SnapshotHeaderRecord() as header]:
            return one.append_snapshot_header(header, batch.max_timestamp)
        case [SnapshotFooterRecord() as footer]:
            return one.append_snapshot_footer(footer, batch.max_timestamp)
        case several:
            return one.append_control_records(several, batch.max_timestamp)


def test_every_metadata_file_is_re_made() -> None:
    """Appending the records of real leaders and snapshot writers gives their bytes again."""
    kinds: set[type] = set()
    for path in _metadata_files():
        data = path.read_bytes()
        one: BatchAccumulator | None = None
        written = []
        for batch in split(BufferSource(data)):
            assert isinstance(batch, RecordBatch), golden_id(path)
            if one is None or one.epoch != batch.partition_leader_epoch:
                voters = VoterSet() if one is None else one.voters_in_force
                one = BatchAccumulator(batch.partition_leader_epoch, batch.base_offset, voters_in_force=voters)
            assert _append_again(one, batch) == batch.last_offset, golden_id(path)
            written += drained_bytes(one)
            kinds |= {type(value) for value in _control_values(batch)} if batch.is_control else {bytes}
        assert b"".join(written) == data, golden_id(path)
    assert len(kinds) == 6


def test_the_start_of_an_epoch_is_re_made() -> None:
    """A leader change followed by kraft.version and voters is one batch, as a quorum's first leader writes it."""
    path = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0/00000000000000000000.log"
    first = next(split(BufferSource(path.read_bytes())))
    assert isinstance(first, RecordBatch)
    values = _control_values(first)
    assert [type(value) for value in values] == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    one = BatchAccumulator(2, 0, voters_in_force=VoterSet())
    assert one.append_control_records(values, first.max_timestamp) == 2
    assert drained_bytes(one) == [bytes(first.buffer)]
    one.append_kraft_version(KRaftVersionRecord(1), TIMESTAMP)
    [batch] = one.drain()
    assert _control_values(batch.batch) == [KRaftVersionRecord(1)]


def test_keys_and_headers_are_kept() -> None:
    """Records of any log may be appended: null and empty fields and headers come out as they went in."""
    records = [KeyedRecord(b"k", None, [(b"h", None)]), KeyedRecord(None, b""), KeyedRecord(b"", b"v", [(b"", b"")])]
    one = accumulator()
    assert one.append_records(EPOCH, records, TIMESTAMP) == 12
    [batch] = one.drain()
    read = [(record.key, record.value, list(record.headers)) for record in batch.batch.records()]
    assert read == [(record.key, record.value, list(record.headers)) for record in records]
    assert {record.timestamp for record in batch.batch.records()} == {TIMESTAMP}


# Draining


def test_linger_begins_with_the_first_append() -> None:
    """Nothing is due in an empty accumulator; a batch is due when its first record has waited."""
    one = accumulator(linger_ms=25)
    assert (one.time_until_drain_ms(TIMESTAMP), one.needs_drain(TIMESTAMP)) == (None, False)
    one.append(EPOCH, [b"a"], TIMESTAMP)
    one.append(EPOCH, [b"b"], TIMESTAMP + 20)
    assert [one.time_until_drain_ms(TIMESTAMP + past) for past in (0, 24, 25, 90)] == [25, 1, 0, 0]
    assert [one.needs_drain(TIMESTAMP + past) for past in (0, 24, 25, 90)] == [False, False, True, True]
    drained_bytes(one)
    assert (one.time_until_drain_ms(TIMESTAMP + 90), one.is_empty) == (None, True)


def test_no_linger_and_endless_linger() -> None:
    """With a linger of 0 a record is due at once; without one, only when its batch is completed."""
    at_once, never = accumulator(linger_ms=0), accumulator(linger_ms=None, max_batch_records=2)
    for one in (at_once, never):
        one.append(EPOCH, [b"a"], TIMESTAMP)
    assert (at_once.needs_drain(TIMESTAMP), never.time_until_drain_ms(TIMESTAMP + 10**12)) == (True, None)
    never.append(EPOCH, [b"b", b"c"], TIMESTAMP)
    assert never.needs_drain(TIMESTAMP)


def test_a_clock_that_goes_back_ends_the_linger() -> None:
    """A record never waits longer because the clock was set back."""
    one = accumulator()
    one.append(EPOCH, [b"a"], TIMESTAMP)
    assert one.needs_drain(TIMESTAMP - 1)


def test_the_linger_may_have_a_clock_of_its_own() -> None:
    """The first record of a batch begins it by that clock; the other time only stamps the records."""
    one = accumulator(linger_ms=25)
    one.append(EPOCH, [b"a"], TIMESTAMP, clock_ms=100)
    one.append_records(EPOCH, [KeyedRecord(b"k", b"b", ())], TIMESTAMP - 1, clock_ms=120)
    assert [one.time_until_drain_ms(clock_ms) for clock_ms in (100, 124, 125)] == [25, 1, 0]
    assert RecordBatch(drained_bytes(one)[0]).max_timestamp == TIMESTAMP
    one.append_records(EPOCH, [KeyedRecord(b"k", b"b", ())], TIMESTAMP, clock_ms=7)
    assert one.time_until_drain_ms(31) == 1


def test_a_forced_batch_stays_before_a_leader_change() -> None:
    """Records before a control batch are in a batch before it, and those after it in a batch after it."""
    one = accumulator()
    one.append(EPOCH, [b"a"], TIMESTAMP)
    one.force_drain()
    assert one.needs_drain(TIMESTAMP)
    one.append(EPOCH, [b"b"], TIMESTAMP)
    assert one.append_leader_change(LEADER_CHANGE, TIMESTAMP) == 12
    one.append(EPOCH, [b"c"], TIMESTAMP)
    batches = [batch.batch for batch in one.drain()]
    assert [(batch.base_offset, batch.is_control) for batch in batches] == [
        (10, False),
        (11, False),
        (12, True),
        (13, False),
    ]


def test_a_delayed_drain_holds_what_comes_after() -> None:
    """From an append with delay_drain on nothing is drained until it is allowed, and then all of it is, in order."""
    one = accumulator()
    one.append(EPOCH, [b"a"], TIMESTAMP)
    one.force_drain()
    one.append(EPOCH, [b"b"], TIMESTAMP, delay_drain=True)
    one.append(EPOCH, [b"c"], TIMESTAMP, delay_drain=True)
    assert [values_of(data) for data in drained_bytes(one)] == [[b"a"]]
    one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
    one.append(EPOCH, [b"d"], TIMESTAMP)
    assert (drained_bytes(one), one.needs_drain(TIMESTAMP + 10**6), one.is_empty) == ([], False, False)
    one.allow_drain()
    assert one.needs_drain(TIMESTAMP)
    assert [batch.base_offset for batch in one.drain()] == [11, 13, 14]


def test_the_first_delayed_append_decides_the_start() -> None:
    """A second one does not move the place, wherever batches end: what the first one holds back stays."""
    for ends in itertools.product([False, True], repeat=3):
        one = accumulator()
        for value, is_delayed, is_end in zip((b"a", b"b", b"c"), (False, True, True), ends, strict=True):
            one.append(EPOCH, [value], TIMESTAMP, delay_drain=is_delayed)
            if is_end:
                one.force_drain()
        assert [values_of(data) for data in drained_bytes(one)] == ([[b"a"]] if ends[0] else [])
        one.append(EPOCH, [b"d"], TIMESTAMP, delay_drain=True)
        assert drained_bytes(one) == []
        one.allow_drain()
        rest = [b"b", b"c", b"d"] if ends[0] else [b"a", b"b", b"c", b"d"]
        assert [value for data in drained_bytes(one) for value in values_of(data)] == rest
        one.append(EPOCH, [b"e"], TIMESTAMP)
        one.append(EPOCH, [b"f"], TIMESTAMP, delay_drain=True)
        assert drained_bytes(one) == []


def test_a_delayed_append_holds_the_batch_that_it_joins() -> None:
    """A batch is drained as a whole or not at all."""
    one = accumulator()
    one.append(EPOCH, [b"a"], TIMESTAMP)
    one.append(EPOCH, [b"b"], TIMESTAMP, delay_drain=True)
    assert one.drain() == []
    one.allow_drain()
    assert [values_of(batch.data) for batch in one.drain()] == [[b"a", b"b"]]


# Limits, back-pressure and memory


def test_a_block_around_what_was_drained_releases_it() -> None:
    """At its end no batch of it holds memory, whether all were written or a write has failed; until then all do."""
    one = accumulator()
    for _ in range(2):
        one.append(EPOCH, [b"a"], TIMESTAMP)
        one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
        with one.drain() as drained:
            assert one.memory.held_bytes == sum(len(batch.data) for batch in drained) > 0
        assert one.memory.held_bytes == 0
        assert len(drained) == 2

        one.append(EPOCH, [b"a"], TIMESTAMP)
        one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
        with contextlib.suppress(OSError), one.drain() as drained:
            drained[0].release()
            raise OSError("the disk is full")
        assert one.memory.held_bytes == 0


def test_a_batch_may_be_exactly_full() -> None:
    """A batch takes as many bytes as it may, in one append or in several, and not one more."""
    for sizes in ([132], [20, 105], [20, 106]):
        one = accumulator(max_batch_size_bytes=202)
        for size in sizes:
            one.append(EPOCH, [b"v" * size], TIMESTAMP)
        assert [len(data) for data in drained_bytes(one)] == ([202] if sizes[-1] != 106 else [88, 176])
    with pytest.raises(BatchTooLargeError):
        one.append(EPOCH, [b"v" * 133], TIMESTAMP)


def test_too_many_undrained_batches_are_refused() -> None:
    """With ten completed batches a data append is refused, a control batch is not; draining makes place."""
    one = accumulator()
    for _ in range(10):
        one.append(EPOCH, [b"a"], TIMESTAMP)
        one.force_drain()
    with pytest.raises(BufferExhaustedError):
        one.append(EPOCH, [b"b"], TIMESTAMP)
    assert one.append_leader_change(LEADER_CHANGE, TIMESTAMP) == 20
    assert len(one.drain()) == 11
    assert one.append(EPOCH, [b"b"], TIMESTAMP) == 21


def test_memory_is_held_until_the_release() -> None:
    """A drained batch counts until it is released, and once only; accumulators that share a pool share its limit."""
    memory = MemoryPool(150)
    old = accumulator(max_batch_size_bytes=150, memory=memory)
    old.append(EPOCH, [b"a" * 60], TIMESTAMP)
    [batch] = old.drain()
    assert memory.held_bytes == len(batch.data) == 129
    new = BatchAccumulator(EPOCH + 1, 11, max_batch_size_bytes=150, memory=memory)
    with pytest.raises(BufferExhaustedError, match="129 held are above the limit of 150"):
        new.append(EPOCH + 1, [b"b"], TIMESTAMP)
    with pytest.raises(BufferExhaustedError):
        new.append_leader_change(LEADER_CHANGE, TIMESTAMP)
    assert (new.next_offset, new.is_empty) == (11, True)
    batch.release()
    batch.release()
    assert memory.held_bytes == 0
    assert new.append(EPOCH + 1, [b"b"], TIMESTAMP) == 11


def test_closing_drops_what_was_not_drained() -> None:
    """A closed accumulator has nothing to drain and refuses appends; what was drained before is still there."""
    one = accumulator()
    one.append(EPOCH, [b"a"], TIMESTAMP)
    [drained] = one.drain()
    one.append(EPOCH, [b"b"], TIMESTAMP)
    one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
    one.append(EPOCH, [b"c"], TIMESTAMP)
    one.close()
    one.close()
    assert (one.drain(), one.is_empty, one.needs_drain(TIMESTAMP + 10**6)) == ([], True, False)
    assert one.memory.held_bytes == len(drained.data)
    assert values_of(drained.data) == [b"a"]
    with pytest.raises(NotLeaderError):
        one.append(EPOCH, [b"d"], TIMESTAMP)
    with pytest.raises(NotLeaderError):
        one.append_leader_change(LEADER_CHANGE, TIMESTAMP)


# Refusals


def _append(epoch: int = EPOCH, size: int = 1, count: int = 1, **options: Any) -> Callable[[BatchAccumulator], object]:
    now_ms = options.pop("now_ms", TIMESTAMP)
    return lambda one: one.append(epoch, [b"v" * size] * count, now_ms, **options)


def _control(*values: ControlValue, now_ms: int = TIMESTAMP) -> Callable[[BatchAccumulator], object]:
    return lambda one: one.append_control_records(values, now_ms)


_WITH_DIRECTORY = Voter(1, uuid_from_text("AQIDBAUGBwgJCgsMDQ4PEA"))
_REFUSALS: list[tuple[type[Exception], Callable[[BatchAccumulator], object]]] = [
    (NotLeaderError, _append(EPOCH - 1)),
    (UnknownEpochError, _append(EPOCH + 1)),
    (NonContiguousAppendError, _append(required_base_offset=10)),
    (NonContiguousAppendError, _append(required_base_offset=12, delay_drain=True)),
    (BatchTooLargeError, _append(size=200)),
    (BatchTooLargeError, _append(count=5)),
    (ValueError, _append(count=0)),
    (ValueError, _append(size=0)),
    (ValueError, _append(now_ms=-1)),
    (ValueError, _append(now_ms=2**63)),
    (TypeError, lambda one: one.append(EPOCH, ["text"], TIMESTAMP)),  # type: ignore[list-item]
    (TypeError, lambda one: one.append_records(EPOCH, [KeyedRecord(1, b"")], TIMESTAMP)),  # type: ignore[arg-type]
    (ValueError, lambda one: one.append_records(EPOCH, [], TIMESTAMP)),
    (InvalidControlBatchError, _control()),
    (InvalidControlBatchError, _control(EndTxnMarker(True, 1))),
    (InvalidControlBatchError, lambda one: one.append_control_messages(lambda _offset, _time: b"", TIMESTAMP)),
    (InvalidControlBatchError, lambda one: one.append_control_messages(lambda _offset, _time: b"\0" * 99, TIMESTAMP)),
    (BatchTooLargeError, _control(LeaderChangeMessage(1, (Voter(1),) * 50))),
    (UnsupportedVersionError, _control(LeaderChangeMessage(1, (_WITH_DIRECTORY,)))),
    (InvalidRecordError, _control(KRaftVersionRecord(2**15))),
    (ValueError, _control(LEADER_CHANGE, now_ms=-1)),
    (ZeroDivisionError, lambda one: one.append_control_messages(lambda _offset, _time: bytes(1 // 0), TIMESTAMP)),
]


@pytest.mark.parametrize(("error", "act"), _REFUSALS, ids=lambda part: getattr(part, "__name__", None))
def test_a_refused_append_changes_nothing(error: type[Exception], act: Callable[[BatchAccumulator], object]) -> None:
    """Each refusal has its type, and what is drained after it is what would have been drained without it."""
    one, other = (accumulator(max_batch_size_bytes=200, max_batch_records=4) for _ in range(2))
    for each in (one, other):
        each.append(EPOCH, [b"before"], TIMESTAMP)
    with pytest.raises(error) as caught:
        act(one)
    assert type(caught.value) is error
    assert one.memory.held_bytes == other.memory.held_bytes
    for each in (one, other):
        assert each.append(EPOCH, [b"after"], TIMESTAMP, required_base_offset=11) == 11
    assert one.time_until_drain_ms(TIMESTAMP) == other.time_until_drain_ms(TIMESTAMP) == 25
    assert drained_bytes(one) == drained_bytes(other)


def test_the_size_of_a_control_batch_is_that_of_what_is_stored() -> None:
    """A compressed control batch is taken if it is small enough then, as large as its records may be; 8 MiB at most."""
    many = [LeaderChangeMessage(1, (Voter(1),))] * 50
    plain = accumulator()
    plain.append_control_records(many, TIMESTAMP)
    one = accumulator(compression_type=CompressionType.GZIP, max_batch_size_bytes=400)
    assert one.append_control_records(many, TIMESTAMP) == 59
    [stored], [uncompressed] = drained_bytes(one), drained_bytes(plain)
    assert len(stored) <= 400 < len(uncompressed)
    assert values_of(stored) == values_of(uncompressed)
    builder = RecordBatchBuilder(
        11, partition_leader_epoch=EPOCH, compression_type=CompressionType.GZIP, is_control=True
    )
    builder.append(TIMESTAMP, b"\0\0\0\2", bytes(MAX_BATCH_SIZE))
    enough = accumulator(compression_type=CompressionType.GZIP, max_batch_size_bytes=2 * MAX_BATCH_SIZE)
    enough.append(EPOCH, [b"before"], TIMESTAMP)
    with pytest.raises(InvalidControlBatchError, match=str(MAX_BATCH_SIZE)):
        enough.append_control_messages(lambda _offset, _time: builder.build(), TIMESTAMP)


def test_offsets_do_not_wrap() -> None:
    """The last offset that there can be is given, and none after it."""
    one = BatchAccumulator(EPOCH, 2**63 - 2)
    assert one.append(EPOCH, [b"a"], TIMESTAMP) == 2**63 - 2
    with pytest.raises(OffsetOutOfRangeError):
        one.append(EPOCH, [b"b", b"c"], TIMESTAMP)
    with pytest.raises(InvalidControlBatchError):
        one.append_control_records([LEADER_CHANGE, LEADER_CHANGE], TIMESTAMP)
    assert one.append_leader_change(LEADER_CHANGE, TIMESTAMP) == 2**63 - 1
    with pytest.raises(OffsetOutOfRangeError):
        one.append_leader_change(LEADER_CHANGE, TIMESTAMP)
    assert [batch.last_offset for batch in one.drain()] == [2**63 - 2, 2**63 - 1]


def test_the_creator_is_given_offset_and_time() -> None:
    """The caller writes the control batch for the offset and the time that it is given."""
    given_to: list[tuple[int, int]] = []

    def create(base_offset: int, timestamp: int) -> bytes:
        given_to.append((base_offset, timestamp))
        return vectors.LEADER_CHANGE

    one = BatchAccumulator(EPOCH, 0)
    assert one.append_control_messages(create, TIMESTAMP + 1) == 0
    assert given_to == [(0, TIMESTAMP + 1)]
    assert [batch.append_timestamp for batch in one.drain()] == [TIMESTAMP]


@pytest.mark.parametrize(
    "options",
    [
        {"epoch": -1},
        {"epoch": 2**31},
        {"base_offset": -1},
        {"linger_ms": -1},
        {"max_batch_size_bytes": 67},
        {"max_batch_size_bytes": 2**31},
        {"max_batch_size_bytes": 101, "memory": MemoryPool(100)},
        {"max_batch_records": 0},
        {"max_undrained_batches": 0},
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any]) -> None:
    """An accumulator that could not work is not made."""
    with pytest.raises(ValueError, match="which is not in"):
        BatchAccumulator(**({"epoch": EPOCH, "base_offset": 0} | options))


def test_a_codec_that_is_not_installed_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is an error when the accumulator is made, not when records are in it."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError):
        accumulator(compression_type=CompressionType.ZSTD)
