# SPDX-License-Identifier: Apache-2.0
"""Reading many batches at once, in either form of the kernel, is reading them one by one."""

import struct
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, RaftLogError
from raftlog.log import control_records
from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.record import Header, RawRecord, encode_record
from raftlog.records.messages.control import (
    ControlRecordType,
    KRaftVersionRecord,
    SnapshotHeaderRecord,
    control_key,
    write_control_record,
)
from raftlog.records.messages.voters import voters_record
from tests.log.control_batches import LEADER_CHANGE, Written, control_bytes, data_bytes, run_of, voters
from tests.records.kernel_forms import BUILT_FORMS, FORMS
from tests.strategies import batch_bytes, with_crc

STATIC = voters(8, 9)
CONTROL_FLAG = 32
MAX_OFFSET = 2**63 - 1

typical_values: st.SearchStrategy[Written] = st.sampled_from(
    [
        LEADER_CHANGE,
        SnapshotHeaderRecord(5),
        KRaftVersionRecord(1),
        *(voters_record(voters(*ids)) for ids in ((), (1,), (1, 2), (2, 3), (1, 2, 3))),
        (struct.pack(">hh", 0, 77), b"from the future"),
        (struct.pack(">hh", 0, 261), b"its low byte is that of a known type"),
        (struct.pack(">hh", 1, 2), b""),
        (struct.pack(">hhh", 0, 2, 3), b"longer key"),
    ]
)
odd_values: st.SearchStrategy[Written] = st.sampled_from(
    [
        KRaftVersionRecord(2),
        (None, b"no key"),
        (b"\0\0\0", b"short key"),
        (struct.pack(">hh", -1, 2), b"negative version"),
        (control_key(ControlRecordType.LEADER_CHANGE), None),
        (control_key(ControlRecordType.KRAFT_VOTERS), None),
        (control_key(ControlRecordType.KRAFT_VOTERS), b""),
        (control_key(ControlRecordType.KRAFT_VERSION), write_control_record(voters_record(voters(1)))[1]),
        (control_key(ControlRecordType.KRAFT_VOTERS), write_control_record(voters_record(voters(4)))[1] + b"more"),
    ]
)
raw_records = st.builds(
    RawRecord,
    attributes=st.sampled_from([0, 0, 1]),
    timestamp_delta=st.sampled_from([0, 0, 0, 1, -1, 2**40]),
    offset_delta=st.sampled_from([0, 0, 0, 1, -1]),
    key=st.none() | st.sampled_from([control_key(type_) for type_ in ControlRecordType]),
    value=st.sampled_from([None, b"", b"\0" * 9, write_control_record(LEADER_CHANGE)[1]]),
    headers=st.sampled_from([(), (), (Header(b"", None),)]),
)
codecs = st.sampled_from([CompressionType.NONE] * 4 + [CompressionType.GZIP])


@st.composite
def next_batches(draw: st.DrawFn, base_offset: int) -> bytes:
    """Batches that may come at an offset: mostly sound ones, and some with anything wrong but the CRC."""
    match draw(st.integers(0, 9)):
        case 0 | 1:
            return data_bytes(base_offset, draw(st.integers(1, 3)))
        case 2 | 3 | 4 | 5:
            values = draw(st.lists(typical_values, min_size=1, max_size=3))
            return control_bytes(base_offset, values, codec=draw(codecs))
        case 6:
            values = draw(st.lists(typical_values | odd_values, min_size=1, max_size=3))
            return control_bytes(base_offset, values, codec=draw(codecs))
        case 7:
            records = draw(st.lists(raw_records, max_size=2))
            count = len(records) + draw(st.sampled_from([0, 0, 0, 1, -1]))
            area = b"".join(map(encode_record, records)) + draw(st.sampled_from([b"", b"", b"\0"]))
            delta = count - 1 + draw(st.sampled_from([0, 0, 0, 1]))
            flags = draw(st.sampled_from([CONTROL_FLAG, CONTROL_FLAG, 0]))
            return batch_bytes(area, base_offset=base_offset, attributes=flags, count=count, last_offset_delta=delta)
        case 8:
            batch = bytearray(control_bytes(base_offset, draw(st.lists(typical_values, min_size=1, max_size=2))))
            batch[draw(st.integers(17, len(batch) - 1))] ^= 1 << draw(st.integers(0, 7))
            return with_crc(bytes(batch))
        case _:
            return data_bytes(max(0, base_offset + draw(st.sampled_from([-1, 1]))))


@st.composite
def chunks(draw: st.DrawFn) -> list[bytes]:
    """Batches that follow one another, as far as their headers let them."""
    batches: list[bytes] = []
    next_offset = 0
    for _ in range(draw(st.integers(0, 8))):
        batches.append(draw(next_batches(next_offset)))
        next_offset = max(0, int.from_bytes(batches[-1][:8], "big") + int.from_bytes(batches[-1][23:27], "big") + 1)
        next_offset = min(next_offset, 2**62)
    return batches


def state(machine: KRaftControlRecordStateMachine) -> tuple[Any, ...]:
    """Return all that a state machine knows."""
    entries = list(machine.voter_sets()), list(machine.kraft_versions())
    return machine.start_offset, machine.next_offset, *entries, machine.violations()


def outcome(error: RaftLogError | None) -> tuple[Any, ...]:
    """Return what an error says."""
    return type(error), str(error), error.rule if isinstance(error, DecodeError) else None


@given(chunks())
@settings(deadline=None, max_examples=150)
def test_a_run_is_read_as_its_batches_are(batches: list[bytes]) -> None:
    """Whatever the batches hold, a run leaves the same state and raises the same error as they do one by one."""
    run = run_of(batches)
    one_by_one = KRaftControlRecordStateMachine(STATIC)
    wanted: RaftLogError | None = None
    for batch in run.batches():
        before = state(one_by_one)
        try:
            one_by_one.handle_batch(batch)
        except RaftLogError as error:
            wanted = error
            assert state(one_by_one) == before, "a refused batch changes nothing"
            break
    for kernel in BUILT_FORMS:
        at_once = KRaftControlRecordStateMachine(STATIC)
        found: RaftLogError | None = None
        with mock.patch.object(control_records, "kernel", kernel):
            try:
                at_once.handle_run(run)
            except RaftLogError as error:
                found = error
        assert state(at_once) == state(one_by_one)
        assert outcome(found) == outcome(wanted)


@pytest.mark.parametrize("kernel", FORMS)
def test_only_what_is_eventful_is_decoded(kernel: Any) -> None:
    """Of data and leader changes nothing is decoded in Python; of each voter set and kraft.version it is."""
    batches = [data_bytes(0, 2), control_bytes(2, [LEADER_CHANGE]), control_bytes(3, [LEADER_CHANGE, LEADER_CHANGE])]
    positions = run_of(batches)
    assert kernel.skip_uneventful(positions.data, positions.positions, positions.sizes, 0, 0) == (3, 5)
    assert kernel.skip_uneventful(positions.data, positions.positions, positions.sizes, 1, 2) == (2, 5)
    assert kernel.skip_uneventful(positions.data, positions.positions, positions.sizes, 1, 3) == (0, 3)
    for value in (KRaftVersionRecord(1), voters_record(voters(1))):
        run = run_of([control_bytes(0, [LEADER_CHANGE, value])])
        assert kernel.skip_uneventful(run.data, run.positions, run.sizes, 0, 0) == (0, 0)


@pytest.mark.parametrize("kernel", FORMS)
def test_offsets_do_not_wrap(kernel: Any) -> None:
    """A batch up to the last offset that 64 bits hold is left to others: the offset after it does not exist."""
    for base_offset, skipped in ((MAX_OFFSET, 0), (MAX_OFFSET - 1, 1)):
        run = run_of([data_bytes(base_offset)])
        assert kernel.skip_uneventful(run.data, run.positions, run.sizes, 0, base_offset)[0] == skipped
