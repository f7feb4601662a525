# SPDX-License-Identifier: Apache-2.0
"""What batches say is the same, whether it is remembered or decoded anew."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord, LeaderChangeMessage
from raftlog.records.messages.voters import voters_record
from raftlog.testing.simulator.checks.decoded import put_in_force, values_in
from tests.quorum.single_replica import replica_key, voter_set_of


@given(st.lists(st.binary(min_size=1), min_size=1, max_size=8), st.integers(0, 50), st.integers(1, 4))
def test_values(values: list[bytes], base_offset: int, epoch: int) -> None:
    """Those that were written, with their offsets; also of a batch that differs in its offset or epoch alone."""
    batches = BatchAccumulator(epoch, base_offset)
    batches.append(epoch, values, 0)
    batches.force_drain()
    with batches.drain() as drained:
        batch = RecordBatch(drained[0].data)
        for _ in range(2):
            assert values_in(batch) == tuple(enumerate(values, base_offset))


def test_what_control_records_put_in_force() -> None:
    """Levels and voters; a change of leader puts nothing in force."""
    keys = frozenset(map(replica_key, (1, 3)))
    values: list[ControlValue] = [
        LeaderChangeMessage(leader_id=1),
        KRaftVersionRecord(1),
        voters_record(voter_set_of(keys)),
    ]
    batch = RecordBatch(write_control_batch(values, base_offset=7, epoch=2, timestamp=0))
    assert put_in_force(batch) == ((8, 1), (9, keys))
