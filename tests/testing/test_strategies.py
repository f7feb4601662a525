# SPDX-License-Identifier: Apache-2.0
"""The strategies that users get: what they give is valid, and covers what there is."""

import sys

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingExtraError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import read_control_batch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import ControlRecordType, ControlValue, control_type
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.testing import strategies
from raftlog.testing.strategies import SmallLog
from raftlog.voters.voter_set import ReplicaKey, VoterSet


@given(strategies.record_batches())
def test_batches_are_valid(data: bytes) -> None:
    """A batch checks, and its records have the offsets that the header says."""
    batch = RecordBatch(data)
    batch.ensure_valid()
    records = list(batch.records())
    assert [record.offset for record in records] == list(range(batch.base_offset, batch.last_offset + 1))


@given(strategies.record_batches(7, 3))
def test_a_batch_is_where_it_is_asked_for(data: bytes) -> None:
    """A base offset and an epoch that are given are kept."""
    assert (RecordBatch(data).base_offset, RecordBatch(data).partition_leader_epoch) == (7, 3)


@given(strategies.control_batches(5, 2))
def test_control_batches_are_what_raft_reads(data: bytes) -> None:
    """A control batch is one that every raft reader can read."""
    assert read_control_batch(data, base_offset=5, epoch=2).is_control


def test_every_control_record_is_given() -> None:
    """Each type of control record of raft comes up in a few examples."""
    seen: set[ControlRecordType] = set()

    @settings(max_examples=60, database=None)
    @given(strategies.control_values())
    def collect(value: ControlValue) -> None:
        seen.add(control_type(value))

    collect()
    assert seen == set(ControlRecordType) - {ControlRecordType.ABORT, ControlRecordType.COMMIT}


@given(strategies.voter_sets(min_size=2, max_size=4, with_directory_ids=True))
def test_voter_sets_survive_the_wire(voters: VoterSet) -> None:
    """A voter set has the size that was asked for, and comes back from its record."""
    assert 2 <= len(voters) <= 4
    assert voter_set(voters_record(voters)) == voters


@given(st.data(), st.sampled_from([None, True, False]))
def test_replica_keys(data: st.DataObject, with_directory_id: bool | None) -> None:
    """A key has a directory id if it was asked for."""
    key = data.draw(strategies.replica_keys(with_directory_id=with_directory_id))
    assert with_directory_id is None or (key.directory_id is not None) == with_directory_id


@settings(max_examples=20)
@given(strategies.small_logs(start_offset=10))
def test_small_logs_are_logs(log: SmallLog) -> None:
    """Offsets have no gaps, epochs grow, and each begins with a leader change."""
    next_offset, epoch = 10, -1
    for data in log.batches:
        batch = RecordBatch(data)
        assert batch.base_offset == next_offset
        assert batch.is_control == (batch.partition_leader_epoch > epoch)
        next_offset, epoch = batch.last_offset + 1, max(epoch, batch.partition_leader_epoch)
    assert log.end_offset == next_offset
    assert len(list(split(BufferSource(log.data)))) == len(log.batches)
    assert [entry.start_offset for entry in log.epoch_entries] == [
        RecordBatch(data).base_offset for data in log.batches if RecordBatch(data).is_control
    ]


def test_they_shrink_to_what_is_simple() -> None:
    """The simplest examples are offset 0, epoch 0 and node 0."""
    assert find(strategies.offsets_and_epochs(), lambda each: True) == OffsetAndEpoch(0, 0)
    assert find(strategies.replica_keys(), lambda each: True) == ReplicaKey(0)
    one = find(strategies.rows(), lambda row: row[2] is not None)
    assert one[1:] == (None, b"", [])


def test_without_hypothesis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Hypothesis is missing, the import says which extra brings it; the rest of the package needs none."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "raftlog.testing.strategies")
    with pytest.raises(MissingExtraError, match=r"raftlog\[testing\]"):
        __import__("raftlog.testing.strategies")
