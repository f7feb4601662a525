# SPDX-License-Identifier: Apache-2.0
"""Which batches a log takes."""

import contextlib
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    DecodeError,
    InvalidRecordError,
    LogError,
    NonContiguousAppendError,
    TruncatedBatchError,
)
from raftlog.log import append_validation
from raftlog.log.append_validation import (
    CheckedBatch,
    PlainAppend,
    check_append,
    check_append_as_follower,
    check_plain_append,
)
from raftlog.log.replicated_log import LogAppendInfo
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.kernel_choice import kernel
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.testing.contracts.made_batches import raft_batch
from tests.raft_frames import batch_with_a_record_longer_by
from tests.records.kernel_forms import BUILT_FORMS, FORMS, examples
from tests.strategies import TIMESTAMP, batch_bytes, mutated, with_crc

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


@st.composite
def planned_appends(draw: st.DrawFn) -> tuple[int, int, list[bytes]]:
    """A log end, an epoch, and batches of that epoch which continue the log."""
    end_offset, epoch = draw(st.integers(0, 2**40)), draw(st.integers(1, 9))
    batches, offset = [], end_offset
    for count in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        batches.append(raft_batch(offset, epoch, count))
        offset += count
    return end_offset, epoch, batches


def header_of(data: bytes) -> CheckedBatch:
    """Return what a log must know of a batch, by the reader of batches."""
    batch = RecordBatch(data)
    epoch, max_timestamp = batch.partition_leader_epoch, batch.max_timestamp
    return CheckedBatch(batch.base_offset, epoch, batch.last_offset, max_timestamp, len(data))


@given(planned_appends())
def test_batches_that_continue_the_log_are_appended(append: tuple[int, int, list[bytes]]) -> None:
    """Adjacent batches from the log end on are appended completely, by a leader and by a follower."""
    end_offset, epoch, batches = append
    data = b"".join(batches)
    checked = check_append(data, epoch, end_offset, epoch)
    assert checked == check_append_as_follower(data, epoch, end_offset, 0)
    assert checked is not None
    assert checked.data == data
    assert checked.batches == list(map(header_of, batches))
    assert checked.max_timestamp == max(batch.max_timestamp for batch in checked.batches)
    assert len(checked.data) == len(data)
    assert checked.info == LogAppendInfo(end_offset, checked.batches[-1].last_offset)


@given(planned_appends(), st.data())
def test_a_follower_drops_what_is_cut_off(append: tuple[int, int, list[bytes]], data: st.DataObject) -> None:
    """However few of the bytes have come, a follower takes the whole batches among them, and a leader refuses."""
    end_offset, epoch, batches = append
    size = data.draw(st.integers(0, sum(map(len, batches)) - 1))
    cut = b"".join(batches)[:size]
    ends = [sum(map(len, batches[:count])) for count in range(len(batches) + 1)]
    taken = check_append_as_follower(cut, epoch, end_offset, 0)
    assert (len(taken.data) if taken else 0) == max(each for each in ends if each <= size)
    if size not in ends:
        with pytest.raises(TruncatedBatchError):
            check_append(cut, epoch, end_offset)


@given(planned_appends(), st.data())
def test_bad_bytes_are_never_taken(append: tuple[int, int, list[bytes]], data: st.DataObject) -> None:
    """Whatever happened to the bytes, what is taken is a part of what was sent, or an error of raftlog is raised."""
    end_offset, epoch, batches = append
    sent = b"".join(batches)
    changed = data.draw(mutated(sent, repair=False))
    try:
        taken = check_append_as_follower(changed, epoch, end_offset, 0)
    except (DecodeError, LogError):
        return
    rest = b"" if taken is None else bytes(taken.data)
    for batch in () if taken is None else taken.batches:
        # The epoch and base offset are not covered by the CRC; the log's order is what guards them.
        assert any(rest[16 : batch.size_bytes] == whole[16:] for whole in batches)
        rest = rest[batch.size_bytes :]
    assert not rest


@st.composite
def changed_appends(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """A log end, an epoch, and batches, one of which may have been changed, with or without a matching CRC."""
    end_offset, epoch, batches = draw(planned_appends())
    if draw(st.booleans()):
        index = draw(st.integers(0, len(batches) - 1))
        batches[index] = draw(mutated(batches[index]))
    return end_offset, epoch, b"".join(batches)


@st.composite
def crafted_appends(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """The same, of batches whose headers may each say something wrong, or extreme."""
    end_offset = offset = draw(st.sampled_from([0, 5, 2**62, INT64_MAX - INT32_MAX, INT64_MAX - 2, INT64_MAX]))
    data = b""
    for _ in range(draw(st.integers(0, 3))):
        delta = draw(st.sampled_from([0, 0, 1, INT32_MAX - 1, INT32_MAX, -1, -1 - INT32_MAX]))
        data += batch_bytes(
            draw(st.binary(max_size=20)),
            base_offset=min(max(0, offset + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))), INT64_MAX),
            epoch=draw(st.sampled_from([3, 3, 3, 3, 2, 4, -1])),
            attributes=draw(st.sampled_from([0, 0, 0, 1, 8, 0x10, 0x20, -1])),
            last_offset_delta=delta,
            max_timestamp=draw(st.sampled_from([-1, -7, 0, 7, INT64_MAX])),
            count=min(max(-1, delta + draw(st.sampled_from([1, 1, 1, 1, 0, 2]))), INT32_MAX),
        )
        offset += delta + 1
    return end_offset, 3, data


@examples(300)
@given(changed_appends() | crafted_appends() | st.tuples(st.just(0), st.just(0), st.binary(max_size=200)))
def test_the_kernel_knows_the_rules(append: tuple[int, int, bytes]) -> None:
    """The kernel accepts only batches that the rules accept, and all of those unless there are control batches."""
    end_offset, epoch, data = append
    expected: PlainAppend | None = None
    with contextlib.suppress(DecodeError, LogError):
        checked = check_append(data, epoch, end_offset, epoch)
        if not any(data[position + 22] & 0x20 for position in starts_of(checked.batches)):
            expected = checked.batches, checked.next_offset, checked.max_timestamp, checked.info
    for form in BUILT_FORMS:
        can_check = form.HAS_CRC_INSTRUCTION or not form.IS_COMPILED
        with (
            mock.patch.object(append_validation, "kernel", form),
            mock.patch.object(form, "HAS_CRC_INSTRUCTION", can_check),
        ):
            plain = check_plain_append(data, epoch, end_offset)
        assert plain == (expected if can_check else None)
        if plain is not None:  # A follower, whose leader may be in a later epoch by then, takes the same.
            for leader_epoch in (epoch, epoch + 1, INT32_MAX):
                followed = check_append_as_follower(data, leader_epoch, end_offset, epoch)
                assert followed is not None
                assert (followed.batches, followed.next_offset, followed.max_timestamp, followed.info) == plain
                assert bytes(followed.data) == data


def starts_of(batches: list[CheckedBatch]) -> list[int]:
    """Return the positions of adjacent batches."""
    return [sum(batch.size_bytes for batch in batches[:index]) for index in range(len(batches))]


@pytest.mark.parametrize("form", FORMS)
def test_the_kernel_leaves_large_batches_to_the_rules(form: Any) -> None:
    """It has the limits of an append and of a leader's batch, and believes no count of records."""
    data = raft_batch(10, 3)

    def plain_append(data: bytes, max_batch_size: int) -> PlainAppend | None:
        found: PlainAppend | None = form.plain_append(data, 3, 10, max_batch_size, CheckedBatch, LogAppendInfo)
        return found

    with mock.patch.object(form, "HAS_CRC_INSTRUCTION", form.HAS_CRC_INSTRUCTION or not form.IS_COMPILED):
        if form.HAS_CRC_INSTRUCTION:
            assert plain_append(data, len(data)) == ([header_of(data)], 11, TIMESTAMP + 10, (10, 10))
        assert plain_append(data, len(data) - 1) is None
        assert plain_append(crafted(10, 2**31 - 2, 2**31 - 1), 61) is None
        assert plain_append(bytes(2**31), 2**31) is None


def test_a_byte_that_has_changed_is_not_plain() -> None:
    """The quick way is none for bytes whose CRC does not hold."""
    batch = raft_batch(10, 3)
    assert check_plain_append(batch[:-1] + bytes([batch[-1] ^ 1]), 3, 10) is None


@pytest.mark.parametrize("form", FORMS)
def test_a_view_whose_length_is_not_in_bytes_is_not_plain(form: Any) -> None:
    """It has wider items, or two dimensions."""
    data = next(data for size in range(4) if len(data := raft_batch(10, 3, 1, b"v" * size)) % 4 == 0)
    can_check = form.HAS_CRC_INSTRUCTION or not form.IS_COMPILED
    with (
        mock.patch.object(append_validation, "kernel", form),
        mock.patch.object(form, "HAS_CRC_INSTRUCTION", can_check),
    ):
        for view in (memoryview(data).cast("i"), memoryview(data).cast("B", (2, len(data) // 2))):
            assert check_plain_append(view, 3, 10) is None
        assert (check_plain_append(memoryview(data), 3, 10) is not None) == can_check


def test_without_the_instruction_the_rules_look_themselves() -> None:
    """The kernel's tables are slow when they are cold: it takes nothing then."""
    with mock.patch.object(kernel, "HAS_CRC_INSTRUCTION", False):
        assert check_plain_append(raft_batch(10, 3), 3, 10) is None


@pytest.mark.parametrize("gap", [-1, 1, 10])
def test_gaps_and_overlaps_are_refused(gap: int) -> None:
    """A base offset that is not the log end, or not the offset after the batch before, is refused."""
    alone = raft_batch(10 + gap, 3)
    behind = raft_batch(10, 3, 5) + raft_batch(15 + gap, 3)
    for data in (alone, behind):
        with pytest.raises(NonContiguousAppendError):
            check_append(data, 3, 10)
        with pytest.raises(NonContiguousAppendError):
            check_append_as_follower(data, 3, 10, 0)


@pytest.mark.parametrize(("base_offset", "last_offset_delta"), [(10, -1), (10, -(2**31)), (INT64_MAX - 4, 4)])
def test_offsets_that_do_not_grow_are_refused(base_offset: int, last_offset_delta: int) -> None:
    """A batch that ends before it starts, or where no offset can follow, is refused."""
    batch = batch_bytes(base_offset=base_offset, epoch=3, last_offset_delta=last_offset_delta)
    with pytest.raises(NonContiguousAppendError):
        check_append_as_follower(batch, 3, base_offset, 0)


def test_a_leader_writes_its_own_epoch() -> None:
    """A leader appends only batches of its epoch, at least one, and its epoch is not lower than the log's."""
    batch = raft_batch(10, 3)
    for epoch, data in ((2, batch), (4, batch), (3, b""), (3, batch + raft_batch(11, 4))):
        with pytest.raises(InvalidRecordError):
            check_append(data, epoch, 10)
    with pytest.raises(InvalidRecordError):
        check_append(batch, 3, 10, last_fetched_epoch=4)


def test_a_follower_stops_at_a_higher_epoch() -> None:
    """The first batch of an epoch above the leader's, and all after it, are left out, whatever they are."""
    data = raft_batch(10, 3) + raft_batch(11, 4) + b"no batch"
    taken = check_append_as_follower(data, 3, 10, 0)
    assert taken is not None
    assert taken.info == LogAppendInfo(10, 10)
    assert check_append_as_follower(raft_batch(10, 4), 3, 10, 0) is None
    assert check_append_as_follower(b"", 3, 10, 0) is None


def test_epochs_do_not_fall() -> None:
    """A batch whose epoch is below that of the batch, or log, before it is in the wrong place."""
    with pytest.raises(InvalidRecordError):
        check_append_as_follower(raft_batch(10, 2), 5, 10, 3)
    with pytest.raises(InvalidRecordError):
        check_append_as_follower(raft_batch(10, 4) + raft_batch(11, 3), 5, 10, 0)


def test_a_large_batch_is_a_leaders_fault() -> None:
    """A leader writes 8 MiB in a batch at most; a follower takes what the leader wrote."""
    largest, too_large = (raft_batch(10, 3, 1, bytes(8 * 1024 * 1024 - 74 + more)) for more in (0, 1))
    assert len(check_append(largest, 3, 10).data) == 8 * 1024 * 1024
    with pytest.raises(BatchTooLargeError):
        check_append(too_large, 3, 10)
    assert check_append_as_follower(too_large, 3, 10, 0) is not None


def test_control_batches_must_read() -> None:
    """A control batch whose records do not read is refused, from whomever it comes."""
    bad = batch_bytes(b"no record", base_offset=10, epoch=3, attributes=0x20, count=1)
    with pytest.raises(InvalidRecordError):
        check_append(bad, 3, 10)
    with pytest.raises(InvalidRecordError):
        check_append_as_follower(bad, 3, 10, 0)


def crafted(base_offset: int, last_offset_delta: int, count: int) -> bytes:
    """Return a batch whose header says what it likes of offsets."""
    return batch_bytes(base_offset=base_offset, epoch=3, last_offset_delta=last_offset_delta, count=count)


@pytest.mark.parametrize(("last_offset_delta", "count"), [(4, 1), (0, 2), (0, 0), (0, -1)])
def test_a_batch_has_a_record_for_each_offset(last_offset_delta: int, count: int) -> None:
    """A state machine stops at any other batch, so that no log takes it."""
    with pytest.raises(CorruptBatchError, match="raft-batch"):
        check_append(crafted(10, last_offset_delta, count), 3, 10)
    with pytest.raises(CorruptBatchError, match="raft-batch"):
        check_append_as_follower(crafted(10, last_offset_delta, count), 3, 10, 0)


def test_an_append_has_2_to_the_31_offsets_at_most() -> None:
    """An index can say no more; one batch alone may have as many as its header can say. No leader has room for them."""
    most = 2**31 - 1
    data = crafted(10, most - 1, most) + crafted(10 + most, 0, 1)
    taken = check_append_as_follower(data, 3, 10, 0)
    assert taken is not None
    assert taken.info == LogAppendInfo(10, 10 + most)
    data += crafted(10 + most + 1, 0, 1)
    with pytest.raises(NonContiguousAppendError, match="in one append"):
        check_append_as_follower(data, 3, 10, 0)


def test_an_append_has_less_than_2_gib() -> None:
    """An index can say no more of positions. It is refused before any of it is looked at."""
    too_large = bytes(2**31)  # Never written, so that no memory is taken for it.
    with pytest.raises(BatchTooLargeError, match="an append of 2147483648"):
        check_append(too_large, 3, 10)
    with pytest.raises(BatchTooLargeError, match="an append of 2147483648"):
        check_append_as_follower(too_large, 3, 10, 0)


def test_an_unknown_level_is_not_appended() -> None:
    """A state machine cannot say what such a kraft.version means."""
    level_9 = write_control_batch([KRaftVersionRecord(9)], base_offset=10, epoch=3, timestamp=0)
    with pytest.raises(InvalidRecordError, match="unknown kraft"):
        check_append_as_follower(level_9, 3, 10, 0)


def test_only_magic_2_is_appended() -> None:
    """A raft log has batches of magic 2 alone."""
    batch = bytearray(raft_batch(10, 3))
    batch[16] = 1
    with pytest.raises(CorruptBatchError, match="magic 1"):
        check_append_as_follower(bytes(batch), 3, 10, 0)
    assert with_crc(raft_batch(10, 3)) == raft_batch(10, 3)


@pytest.mark.parametrize("difference", [-1, 0, 1])
@pytest.mark.parametrize("before", [0, 2])
def test_a_leader_writes_no_record_that_kafka_finds_too_long(difference: int, before: int) -> None:
    """A compressed record may be as long as its batch, and no longer; a follower takes what its leader has."""
    data = batch_with_a_record_longer_by(difference, before=before)
    assert check_append_as_follower(data, 1, 0, 0) is not None
    assert check_plain_append(data, 1, 0) is None
    if difference <= 0:
        assert check_append(data, 1, 0).next_offset == before + 1
        return
    with pytest.raises(InvalidRecordError, match="compressed in"):
        check_append(data, 1, 0)
