# SPDX-License-Identifier: Apache-2.0
"""The accumulator against a model that keeps lists, and writes each batch again to measure its size."""

from collections.abc import Callable, Iterator, Sequence

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from raftlog.errors import (
    BatchTooLargeError,
    BufferExhaustedError,
    InvalidControlBatchError,
    NonContiguousAppendError,
    NotLeaderError,
    RaftLogError,
    UnknownEpochError,
)
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.memory_pool import MemoryPool
from raftlog.records.batches.open_batch import CompletedBatch, KeyedRecord
from raftlog.records.batches.record import Header, RawRecord, encode_record
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    write_control_record,
)
from raftlog.records.varint import read_varint
from tests.strategies import TIMESTAMP

EPOCH = 7
LINGER_MS = 10
MAX_SIZE = 220
MAX_RECORDS = 6
MAX_UNDRAINED = 3
MEMORY = 800

values = st.binary(min_size=1, max_size=12) | st.sampled_from([b"v" * 63, b"v" * 64, b"v" * 140, b"v" * 151])
keyed_records = st.builds(
    KeyedRecord,
    st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=9),
    st.lists(st.tuples(st.just(b"h"), st.none() | st.just(b"x")), max_size=2),
)
few_voters = st.lists(st.builds(Voter, st.integers(0, 99)), max_size=30).map(tuple)
alike_voters = st.integers(30, 99).map(lambda count: (Voter(1),) * count)
"""They take more than a batch may, and less once they are compressed."""
control_values = st.builds(KRaftVersionRecord, st.integers(0, 3)) | st.builds(
    LeaderChangeMessage, st.integers(0, 9), few_voters | alike_voters
)


@attrs.define
class ModelBatch:
    """A batch of the model: its records, which are encoded again on each use."""

    base_offset: int
    timestamp: int
    codec: CompressionType
    records: list[KeyedRecord] = attrs.field(factory=list)
    is_control: bool = False

    def write(self, codec: CompressionType) -> bytes:
        """Write the batch with a codec."""
        builder = RecordBatchBuilder(
            self.base_offset, partition_leader_epoch=EPOCH, compression_type=codec, is_control=self.is_control
        )
        for record in self.records:
            builder.append(self.timestamp, *record)
        return builder.build()

    @property
    def uncompressed_size(self) -> int:
        """The memory of the batch while it is open."""
        return len(self.write(CompressionType.NONE))

    @property
    def data(self) -> bytes:
        """The bytes in the end: compressed if that makes data smaller, and Kafka can read it."""
        compressed = self.write(self.codec)
        plain = self.write(CompressionType.NONE)
        if max(self.record_lengths()) > len(compressed):
            return plain
        return plain if not self.is_control and len(compressed) > len(plain) else compressed

    def record_lengths(self) -> Iterator[int]:
        """How long each record is, as it says itself."""
        for index, (key, value, headers) in enumerate(self.records):
            raw = RawRecord(0, 0, index, key, value, tuple(Header(*each) for each in headers))
            yield read_varint(encode_record(raw), 0)[0]

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + len(self.records) - 1

    def with_records(self, records: Sequence[KeyedRecord]) -> "ModelBatch":
        """Return the batch with more records."""
        return attrs.evolve(self, records=[*self.records, *records])


def _fits(batch: ModelBatch) -> bool:
    return batch.uncompressed_size <= MAX_SIZE and len(batch.records) <= MAX_RECORDS


class AccumulatorMachine(RuleBasedStateMachine):
    """Does the same to an accumulator and to lists, and compares all that can be seen."""

    @initialize(codec=st.sampled_from([CompressionType.NONE, CompressionType.GZIP]), base_offset=st.integers(0, 2**40))
    def start(self, codec: CompressionType, base_offset: int) -> None:
        self.memory = MemoryPool(MEMORY)
        self.accumulator = BatchAccumulator(
            EPOCH,
            base_offset,
            linger_ms=LINGER_MS,
            max_batch_size_bytes=MAX_SIZE,
            max_batch_records=MAX_RECORDS,
            max_undrained_batches=MAX_UNDRAINED,
            compression_type=codec,
            memory=self.memory,
        )
        self.codec = codec
        self.now_ms = TIMESTAMP
        self.next_offset = base_offset
        self.open: ModelBatch | None = None
        self.completed: list[ModelBatch] = []
        self.drain_offset: int | None = None
        self.unreleased: list[CompletedBatch] = []
        self.log: list[tuple[ModelBatch, CompletedBatch]] = []
        self.appended: list[list[KeyedRecord]] = []

    # The model

    def held_bytes(self) -> int:
        """How many bytes the model says are held."""
        waiting = sum(len(batch.data) for batch in self.completed)
        return waiting + sum(len(batch.data) for batch in self.unreleased) + self.open_size()

    def open_size(self) -> int:
        """The memory of the open batch."""
        return self.open.uncompressed_size if self.open else 0

    def fresh(self, *, is_control: bool = False) -> ModelBatch:
        """Return an empty batch at the end."""
        return ModelBatch(self.next_offset, self.now_ms, self.codec, is_control=is_control)

    def complete(self) -> None:
        """Complete the open batch."""
        if self.open:
            self.completed.append(self.open)
        self.open = None

    def expected_error(self, records: Sequence[KeyedRecord], epoch: int, required: int | None) -> type | None:
        """Say how an append must be refused."""
        together = self.open.with_records(records) if self.open else None
        alone = self.fresh().with_records(records)
        grown = together.uncompressed_size - self.open_size() if together and _fits(together) else None
        refusals = [
            (epoch < EPOCH, NotLeaderError),
            (epoch > EPOCH, UnknownEpochError),
            (len(self.completed) >= MAX_UNDRAINED, BufferExhaustedError),
            (required not in (None, self.next_offset), NonContiguousAppendError),
            (not _fits(alone), BatchTooLargeError),
            (self.held_bytes() + (grown or alone.uncompressed_size) > MEMORY, BufferExhaustedError),
        ]
        return next((error for applies, error in refusals if applies), None)

    def seen(self) -> tuple[object, ...]:
        """Return what can be seen of the accumulator."""
        accumulator = self.accumulator
        waiting = accumulator.time_until_drain_ms(self.now_ms)
        return accumulator.next_offset, accumulator.is_empty, waiting, self.memory.held_bytes

    def refused(self, error: type, action: Callable[[], object]) -> None:
        """Check that an action is refused and changes nothing."""
        before = self.seen()
        with pytest.raises(error) as caught:
            action()
        assert type(caught.value) is error
        assert isinstance(caught.value, RaftLogError)
        assert self.seen() == before

    # What is done

    @rule(
        plain=st.lists(values, min_size=1, max_size=4) | st.none(),
        keyed=st.lists(keyed_records, min_size=1, max_size=MAX_RECORDS + 1),
        epoch=st.sampled_from([EPOCH] * 8 + [EPOCH - 1, EPOCH + 1]),
        required=st.sampled_from([None, None, 0, 0, 1, -1]),
        delay_drain=st.sampled_from([False] * 5 + [True]),
    )
    def append(
        self, plain: list[bytes] | None, keyed: list[KeyedRecord], epoch: int, required: int | None, delay_drain: bool
    ) -> None:
        """An append goes into one batch as a whole and gives its last offset, or is refused for the expected reason."""
        required = None if required is None else self.next_offset + required
        records = keyed if plain is None else [KeyedRecord(None, value) for value in plain]

        def act() -> int:
            accumulator = self.accumulator
            if plain is None:
                return accumulator.append_records(
                    epoch, keyed, self.now_ms, required_base_offset=required, delay_drain=delay_drain
                )
            return accumulator.append(epoch, plain, self.now_ms, required_base_offset=required, delay_drain=delay_drain)

        if error := self.expected_error(records, epoch, required):
            self.refused(error, act)
            return
        assert act() == self.next_offset + len(records) - 1
        if self.open and not _fits(self.open.with_records(records)):
            self.complete()
        self.open = (self.open or self.fresh()).with_records(records)
        if delay_drain and self.drain_offset is None:
            self.drain_offset = self.next_offset
        self.next_offset += len(records)
        self.appended.append(records)

    @rule(control=st.lists(control_values, max_size=3))
    def append_control(self, control: list[ControlValue]) -> None:
        """Control records get a batch of their own, due at once, whatever the number of waiting batches."""
        batch = self.fresh(is_control=True).with_records(
            [KeyedRecord(*write_control_record(value)) for value in control]
        )
        size = len(batch.data) if control else 0
        error = (
            (InvalidControlBatchError if not control else None)
            or (BatchTooLargeError if size > MAX_SIZE else None)
            or (BufferExhaustedError if self.held_bytes() + size > MEMORY else None)
        )
        if error:
            self.refused(error, lambda: self.accumulator.append_control_records(control, self.now_ms))
            return
        assert self.accumulator.append_control_records(control, self.now_ms) == batch.last_offset
        self.complete()
        self.completed.append(batch)
        self.next_offset += len(control)
        self.appended.append(batch.records)

    @rule(shift=st.sampled_from([-1, 1]))
    def append_a_misplaced_control_batch(self, shift: int) -> None:
        """A control batch that was written for another offset is refused."""
        key_and_value = KeyedRecord(*write_control_record(KRaftVersionRecord(1)))
        batch = self.fresh(is_control=True).with_records([key_and_value])
        batch.base_offset += shift
        self.refused(
            InvalidControlBatchError,
            lambda: self.accumulator.append_control_messages(lambda _offset, _timestamp: batch.data, self.now_ms),
        )

    @rule(elapsed_ms=st.integers(-3, 2 * LINGER_MS))
    def pass_time(self, elapsed_ms: int) -> None:
        """Time advances, and sometimes goes back."""
        self.now_ms += elapsed_ms

    @rule()
    def drain(self) -> None:
        """Draining returns the bytes of the model's batches, in order, up to the delayed ones."""
        self.complete()
        drained = self.accumulator.drain()
        stop = self.drain_offset
        leaving = [batch for batch in self.completed if stop is None or batch.last_offset < stop]
        assert [batch.data for batch in drained] == [batch.data for batch in leaving]
        del self.completed[: len(leaving)]
        self.unreleased += drained
        self.log += zip(leaving, drained, strict=True)

    @rule()
    def force_drain(self) -> None:
        """The open batch may be completed without draining it."""
        self.accumulator.force_drain()
        self.complete()

    @rule()
    def allow_drain(self) -> None:
        """Delayed batches may be drained."""
        self.accumulator.allow_drain()
        self.drain_offset = None

    @precondition(lambda self: self.unreleased)
    @rule(data=st.data(), twice=st.booleans())
    def release(self, data: st.DataObject, twice: bool) -> None:
        """Memory comes back with the release of a drained batch, in any order, once."""
        batch = self.unreleased.pop(data.draw(st.integers(0, len(self.unreleased) - 1)))
        for _ in range(1 + twice):
            batch.release()

    # What always holds

    @invariant()
    def looks_like_the_model(self) -> None:
        """The next offset, emptiness and the memory held are the model's."""
        assert self.accumulator.next_offset == self.next_offset
        assert self.accumulator.is_empty == (not self.open and not self.completed)
        assert self.memory.held_bytes == self.held_bytes() <= MEMORY

    @invariant()
    def linger_is_honoured(self) -> None:
        """A batch is due if a completed one may leave, or the open one has waited for the linger time."""
        stop, now_ms = self.drain_offset, self.now_ms
        head_may_leave = bool(self.completed) and (stop is None or self.completed[0].last_offset < stop)
        opened = self.open.timestamp if self.open else None
        lingered = opened is not None and not opened <= now_ms < opened + LINGER_MS
        assert self.accumulator.needs_drain(now_ms) == (head_may_leave or lingered)
        waiting = self.accumulator.time_until_drain_ms(now_ms)
        if head_may_leave or lingered:
            assert waiting == 0
        else:
            assert waiting == (None if opened is None else opened + LINGER_MS - now_ms)

    def teardown(self) -> None:
        """All that was appended is in the log that was drained, once and in order; closing holds nothing back."""
        if not hasattr(self, "log"):
            return
        self.allow_drain()
        self.drain()
        log = b"".join(drained.data for _, drained in self.log)
        next_offset = self.accumulator.base_offset
        records = []
        for piece in split(BufferSource(log)):
            assert isinstance(piece, RecordBatch)
            assert (piece.base_offset, piece.partition_leader_epoch, piece.crc_holds) == (next_offset, EPOCH, True)
            assert piece.size_bytes <= MAX_SIZE
            next_offset = piece.next_offset
            records += [KeyedRecord(record.key, record.value, list(record.headers)) for record in piece.records()]
        assert next_offset == self.next_offset
        assert records == [KeyedRecord(*each[:2], list(each[2])) for call in self.appended for each in call]
        self.is_all_given_back()

    def is_all_given_back(self) -> None:
        """Closing gives back what was not drained, and releasing gives back the rest."""
        for batch in self.unreleased:
            batch.release()
        assert self.memory.held_bytes == 0
        self.accumulator.append(EPOCH, [b"dropped"], self.now_ms)
        self.accumulator.close()
        assert (self.memory.held_bytes, self.accumulator.is_empty, self.accumulator.drain()) == (0, True, [])


TestAccumulator = AccumulatorMachine.TestCase
TestAccumulator.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
