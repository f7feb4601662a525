# SPDX-License-Identifier: Apache-2.0
"""A leader may append exactly what an audit finds sound; a follower accepts what raft's readers can read."""

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import (
    DecodeError,
    EmptyVoterSetError,
    LogError,
    NoOverlappingMajorityError,
    RaftLogError,
    TooManyVoterChangesError,
)
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.memory_log import MemoryLog
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.record import Header, RawRecord, encode_record
from raftlog.records.messages.control import (
    ControlRecordType,
    EndTxnMarker,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    control_key,
    write_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.records.rules import Severity
from raftlog.storage.log.file_log import FileLog
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.voter_set import VoterSet
from tests.log.control_batches import control_bytes, data_bytes, voters
from tests.records.kernel_forms import BUILT_FORMS, FORMS, examples
from tests.strategies import batch_bytes, with_crc
from tests.tools.auditing.made_segments import leader_change, survey

EPOCH = 1
BASE = 1
LEADER_CHANGE = write_control_record(LeaderChangeMessage(1))
OPENING = leader_change(0, EPOCH)
CONTROL = 32
MIB_8 = 8 * 1024 * 1024
LOGS: dict[str, Callable[[], MemoryLog | FileLog]] = {
    "memory": MemoryLog,
    "file": lambda: FileLog.open(MemoryFileSystem(), "log"),
}
logs = pytest.mark.parametrize("make", LOGS.values(), ids=LOGS)


def opened(make: Callable[[], MemoryLog | FileLog]) -> MemoryLog | FileLog:
    """Make a log that a leader has begun an epoch in."""
    log = make()
    log.append_as_leader(OPENING, EPOCH)
    return log


def damage(batch: bytes) -> set[str]:
    """Return the rules of severity damage that an audit finds broken if a batch follows the opening batch."""
    return {each.rule for each in survey(OPENING + batch).findings if each.severity >= Severity.DAMAGED}


def record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    *,
    key: bytes | None = None,
    value: bytes | None = b"value",
    headers: tuple[Header, ...] = (),
) -> bytes:
    """Encode a data record."""
    return encode_record(RawRecord(0, timestamp_delta, offset_delta, key, value, headers))


def batch(area: bytes, count: int, last: int | None = None, attributes: int = 0, **other: Any) -> bytes:
    """Write a batch after the opening batch."""
    fields = {"base_offset": BASE, "epoch": EPOCH} | other
    return batch_bytes(
        area, count=count, last_offset_delta=count - 1 if last is None else last, attributes=attributes, **fields
    )


def spoilt(at: int, value: bytes) -> bytes:
    """Write a sound batch with other bytes at a position, and a CRC that holds."""
    sound = batch(record(), 1)
    return with_crc(sound[:at] + value + sound[at + len(value) :])


GZIPPED = compress(CompressionType.GZIP, record())
KEY_OF_VOTERS = control_key(ControlRecordType.KRAFT_VOTERS)
BROKEN = {
    "batch-length": spoilt(8, struct.pack(">i", 3)),
    "batch-overrun": spoilt(8, struct.pack(">i", 2**31 - 1)),
    "batch-magic": spoilt(16, b"\5"),
    "batch-crc": batch(record(), 1)[:-2] + b"\x7f\0",
    "batch-count": batch(b"", -7, 0),
    "batch-codec": batch(record(), 1, attributes=6),
    "codec-stream": batch(GZIPPED[:-9], 1, attributes=CompressionType.GZIP),
    "varint-length": batch(b"\xff" * 6 + record(), 1),
    "varint-range": batch(b"\xff\xff\xff\xff\x7f" + record(), 1),
    "record-length": batch(b"\x7e" + record()[1:], 1),
    "record-end": batch(bytes([record()[0] + 2]) + record()[1:] + b"\0", 1),
    "record-field": batch(record()[:4] + b"\x09" + record()[5:], 1),
    "record-headers": batch(record()[:-1] + b"\x7e", 1),
    "record-header-key": batch(record(headers=(Header(b"", b""),))[:-2] + b"\1\0", 1),
    "batch-trailing": batch(record() + b"\0" * 12, 1),
    "batch-missing": batch(record(), 2),
    "control-key": batch(record(key=b"\0"), 1, attributes=CONTROL),
    "control-value": batch(record(key=KEY_OF_VOTERS, value=b"\0"), 1, attributes=CONTROL),
    "control-place": control_bytes(BASE, [SnapshotFooterRecord()], epoch=EPOCH),
    "raft-batch": batch(record(0) + record(2), 2, 2),
    "raft-record": batch(record() + record(1, 5), 2),
    "record-offset": batch(record(0) + record(0), 2),
    "offset-order": batch(record(), 1, base_offset=0),
    "offset-gap": batch(record(), 1, base_offset=2),
    "offset-negative": batch(record(), 1, -1),
    "epoch-order": batch(record(), 1, epoch=0),
    "epoch-negative": batch(record(), 1, epoch=-1),
}
"""A batch for each rule of damage that one batch of a raft log can break."""


@logs
@pytest.mark.parametrize("rule", BROKEN)
def test_a_leader_writes_nothing_that_an_audit_calls_damaged(
    rule: str, make: Callable[[], MemoryLog | FileLog]
) -> None:
    """Each is damage by its rule, is refused, and leaves the log as it was."""
    assert rule in damage(BROKEN[rule])
    log = opened(make)
    with pytest.raises((DecodeError, LogError)):
        log.append_as_leader(BROKEN[rule], EPOCH)
    assert log.end_offset.offset == BASE
    log.append_as_leader(batch(record(), 1), EPOCH)


@logs
@pytest.mark.parametrize(
    "data",
    [
        BROKEN["raft-record"],
        batch(record(0, 5), 1, attributes=8),
        batch(record(headers=(Header(b"h", b"x"),)), 1),
        batch(record(0) + record(0), 2),
        BROKEN["batch-trailing"],
        BROKEN["codec-stream"],
        BROKEN["control-place"],
        control_bytes(BASE, [EndTxnMarker(True, 1)], epoch=EPOCH),
        control_bytes(BASE, [VotersRecord()], epoch=EPOCH),
        control_bytes(BASE, [voters_record(voters(1, 2)), voters_record(voters(3, 4))], epoch=EPOCH),
        batch(record(5, key=LEADER_CHANGE[0], value=LEADER_CHANGE[1]), 1, attributes=CONTROL),
    ],
    ids=[
        "time",
        "append time",
        "headers",
        "offsets",
        "trailing",
        "codec",
        "footer",
        "marker",
        "empty",
        "swap",
        "control offset",
    ],
)
def test_a_follower_takes_what_its_leader_has_sent(data: bytes, make: Callable[[], MemoryLog | FileLog]) -> None:
    """A leader is refused it; once a quorum has it, a replica must not be stuck, at once or after a start."""
    log = opened(make)
    with pytest.raises(RaftLogError):
        log.append_as_leader(data, EPOCH)
    info = log.append_as_follower(data, EPOCH)
    assert info is not None
    machine = KRaftControlRecordStateMachine(VoterSet())
    update_state(machine, log)
    assert machine.next_offset == log.end_offset.offset == info.last_offset + 1
    if isinstance(log, FileLog):
        files = MemoryFileSystem()
        written = FileLog.open(files, "log")
        written.append_as_leader(OPENING, EPOCH)
        written.append_as_follower(data, EPOCH)
        written.close()
        again = FileLog.open(files, "log")
        assert (again.quarantine, again.end_offset.offset) == (None, info.last_offset + 1)


@logs
def test_voters_in_one_append_must_follow_each_other(make: Callable[[], MemoryLog | FileLog]) -> None:
    """A log refuses an empty voter set, and a set that must not follow the one before it."""

    def sets(*each: Sequence[int]) -> bytes:
        return b"".join(
            control_bytes(BASE + index, [voters_record(voters(*ids))], epoch=EPOCH) for index, ids in enumerate(each)
        )

    log = opened(make)
    for data, error in (
        (sets(()), EmptyVoterSetError),
        (sets((1, 2), ()), EmptyVoterSetError),
        (sets((1, 2), (1, 2, 3, 4)), TooManyVoterChangesError),
        (sets((1, 2, 3), (1, 2, 4)), NoOverlappingMajorityError),
    ):
        with pytest.raises(error):
            log.append_as_leader(data, EPOCH)
    record_twice = VotersRecord(voters_record(voters(1)).voters * 2)
    with pytest.raises(DecodeError, match="voter 1 is there twice"):
        log.append_as_leader(control_bytes(BASE, [record_twice], epoch=EPOCH), EPOCH)
    assert log.append_as_leader(sets((1, 2), (1, 2, 3), (2, 3)), EPOCH).last_offset == 3


control_values = st.sampled_from(
    [
        write_control_record(each)
        for each in (
            LeaderChangeMessage(1, (Voter(1),), (Voter(1),)),
            SnapshotHeaderRecord(5),
            SnapshotFooterRecord(),
            EndTxnMarker(False, 3),
            voters_record(voters(1, 2)),
        )
    ]
    + [(struct.pack(">hh", 0, 77), b"new"), (struct.pack(">hh", -1, 2), b""), (KEY_OF_VOTERS, b""), (b"\0", None)]
)
LOG_APPEND_TIME: Final = 8
data_values = st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=70))


@st.composite
def candidates(draw: st.DrawFn) -> bytes:
    """Batches after the opening batch: sound ones, and ones with various faults but a correct length and CRC."""
    is_control = draw(st.booleans())
    rarely = st.sampled_from([0] * 12 + [1, -1, 300])
    area, count = b"", draw(st.integers(0, 4))
    for index in range(count):
        key, value = draw(control_values if is_control else data_values)
        headers = draw(st.sampled_from([()] * 9 + [(Header(b"h", None),)]))
        raw = record(index + draw(rarely), draw(rarely), key=key, value=value, headers=headers)
        area += raw
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(area)))
        area = area[:at] + draw(st.binary(max_size=2)) + area[at + draw(st.integers(0, 2)) :]
    codec = draw(st.sampled_from([CompressionType.NONE] * 4 + [CompressionType.GZIP]))
    attributes = codec | CONTROL * is_control | draw(st.sampled_from([0] * 9 + [8, 5]))
    count = max(count + draw(rarely), -1)
    last = count - 1 + draw(st.sampled_from([0] * 12 + [1, -1]))
    return batch(compress(codec, area), count, last, attributes, max_timestamp=draw(st.sampled_from([7, 1 << 42])))


@given(candidates())
@examples(400)
def test_a_leader_is_refused_exactly_what_an_audit_calls_damaged(data: bytes) -> None:
    """For any batch whose CRC holds, in both logs; and what is taken, a state machine follows."""
    is_damaged = bool(damage(data))
    for make in LOGS.values():
        log = opened(make)
        try:
            log.append_as_leader(data, EPOCH)
        except (DecodeError, LogError):
            assert is_damaged, "an audit finds nothing in it"
        else:
            assert not is_damaged, damage(data)
            update_state(KRaftControlRecordStateMachine(VoterSet()), log)


@given(candidates(), st.booleans())
@examples(300)
def test_both_forms_of_the_kernel_see_the_same_records(data: bytes, is_cut: bool) -> None:
    """Whatever the bytes, no byte outside of them is looked at; what a form takes, an audit finds sound."""
    at, end = 61, len(data) - is_cut
    count = int.from_bytes(data[57:61], "big", signed=True)
    found = [form.are_raft_records(memoryview(data), at, end, count) for form in BUILT_FORMS]
    found += [form.are_raft_records(memoryview(data[at:end]), 0, end - at, count) for form in BUILT_FORMS]
    assert len(set(found)) == 1
    if found[0]:
        assert not damage(batch(data[at:end], count))


KEYS = (None, b"", b"k" * 63, b"k" * 64)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8191, 8192, 70_000])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 130])
@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key and len(key)))
def test_usual_records_are_taken_in_one_go(form: Any, size: int, count: int, key: bytes | None) -> None:
    """Around every number at which a length or an offset takes a byte more."""
    area = b"".join(record(index, key=key, value=b"v" * size) for index in range(count))
    view = memoryview(b"xx" + area + b"yy")
    end = 2 + len(area)
    assert form.are_raft_records(view, 2, end, count)
    for at, to, many in ((2, end, count + 1), (2, end, count - 1), (2, end + 1, count), (2, end - 1, count)):
        assert not form.are_raft_records(view, at, to, many)
    for at, to in ((-1, end), (2, len(view) + 1), (end, 2)):
        assert not form.are_raft_records(view, at, to, count)


@pytest.mark.parametrize(
    ("count", "key"),
    [
        (8191, None),
        (8192, b"k"),
        (8193, None),
        (8194, b"k"),
        pytest.param(2**20 + 1, b"k", marks=pytest.mark.slow),
    ],
)
def test_offsets_of_three_bytes_are_taken_too(count: int, key: bytes | None) -> None:
    """They are those from 8192 on, and there are four from 2^20 on."""
    area = b"".join(record(index, key=key, value=b"v") for index in range(count))
    for form in BUILT_FORMS if count < 10_000 else BUILT_FORMS[-1:]:
        assert form.are_raft_records(memoryview(area), 0, len(area), count)
        assert not form.are_raft_records(memoryview(area), 0, len(area), count - 1)


@pytest.mark.parametrize("size", [0, 1, 57, 63, 64, 100])
@pytest.mark.parametrize(
    ("index", "key"),
    [*itertools.product([0, 1, 63, 64, 65], [None, b"", b"k" * 63]), (8192, None), (8193, b"k")],
)
def test_no_byte_in_front_of_a_value_may_be_another(index: int, size: int, key: bytes | None) -> None:
    """Nor in the batch after it: if a batch with a changed byte is accepted, an audit finds it sound."""
    before = b"".join(record(each, key=key, value=b"v" * size) for each in range(index))
    last = record(index, key=key, value=b"v" * size)
    # The interpreted one would take minutes for many records.
    forms = [form for form in BUILT_FORMS if form.IS_COMPILED or index < 100]
    for at in (*range(10), 9 + len(key or b""), 10 + len(key or b""), -1):
        for byte in (0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF, last[-1] ^ 1):
            changed = bytearray(last)
            changed[min(at, len(last) - 1)] = byte
            area = before + changed
            found = {form.are_raft_records(memoryview(area), 0, len(area), index + 1) for form in forms}
            assert len(found) <= 1
            assert True not in found or not damage(batch(area, index + 1))


@logs
def test_a_number_in_more_bytes_than_it_takes_is_sound(make: Callable[[], MemoryLog | FileLog]) -> None:
    """The quick look passes it on; the audit and the log take it."""
    long_zero = record()[:2] + b"\x80\0" + record()[3:]
    data = batch(bytes([record()[0] + 2]) + long_zero[1:], 1)
    assert not damage(data)
    assert opened(make).append_as_leader(data, EPOCH).last_offset == BASE


def control_batch_of(size: int, codec: CompressionType) -> bytes:
    """Write a control batch of a type that is not known, whose records take so many bytes before compression."""
    value = bytes(size - len(encode_record(RawRecord(0, 0, 0, bytes((0, 0, 0, 77)), bytes(size - 30), ()))) + size - 30)
    builder = RecordBatchBuilder(BASE, partition_leader_epoch=EPOCH, compression_type=codec, is_control=True)
    builder.append(7, bytes((0, 0, 0, 77)), value)
    return builder.build()


@logs
@pytest.mark.parametrize(("more", "is_taken"), [(-1, True), (0, True), (1, False)])
def test_the_records_of_a_control_batch_have_8_mib_at_most(
    more: int, is_taken: bool, make: Callable[[], MemoryLog | FileLog]
) -> None:
    """Whoever sends it, as every state machine has to unpack it."""
    data = control_batch_of(MIB_8 + more, CompressionType.GZIP)
    assert len(data) < MIB_8 // 10
    log = opened(make)
    with pytest.raises(DecodeError, match="long, the batch" if is_taken else None):
        log.append_as_leader(data, EPOCH)
    if is_taken:
        taken = log.append_as_follower(data, EPOCH)
        assert taken is not None
        assert taken.last_offset == BASE
    else:
        with pytest.raises(DecodeError):
            log.append_as_follower(data, EPOCH)


@logs
@pytest.mark.parametrize(("more", "is_taken"), [(-1, True), (0, True), (1, False)])
def test_a_leaders_control_batch_has_8_mib_at_most(
    more: int, is_taken: bool, make: Callable[[], MemoryLog | FileLog]
) -> None:
    """As it is stored, header included."""
    data = control_batch_of(MIB_8 - 61 + more, CompressionType.NONE)
    assert len(data) == MIB_8 + more
    log = opened(make)
    if is_taken:
        assert log.append_as_leader(data, EPOCH).last_offset == BASE
    else:
        with pytest.raises(LogError):
            log.append_as_leader(data, EPOCH)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 200), st.integers(0, 300))
def test_batches_of_the_accumulator_are_plain(count: int, size: int) -> None:
    """The usual append takes the quick way in each form of the kernel."""
    builder = RecordBatchBuilder(BASE, partition_leader_epoch=EPOCH)
    builder.extend([(7, None, b"v" * size)] * count)
    data = builder.build()
    for form in BUILT_FORMS:
        assert form.are_raft_records(memoryview(data), 61, len(data), count)
    assert opened(MemoryLog).append_as_leader(data + data_bytes(BASE + count, epoch=EPOCH), EPOCH)
