# SPDX-License-Identifier: Apache-2.0
"""The oracle finds clients that were told what is not so."""

import pytest

from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.applications.checked_machine import value_of
from raftlog.testing.simulator.checks.client_oracle import ClientAppend, ClientOracle, ReadBegun, Told
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.violation import ViolationError


def next_values(oracle: ClientOracle, count: int) -> tuple[int, list[bytes]]:
    """Return values with numbers that no client has appended yet, and the first of the numbers."""
    numbers = oracle.next_numbers(count)
    return numbers.start, [value_of(each) for each in numbers]


def commit(oracle: ClientOracle, offset: int, values: list[bytes]) -> None:
    """Commit a batch."""
    batches = BatchAccumulator(1, offset)
    batches.append(1, values, 0)
    batches.force_drain()
    with batches.drain() as drained:
        batch = RecordBatch(bytes(drained[0].data))
    oracle.committed(StoredBatch(offset, 1, batch.next_offset, batch.crc), batch)


def test_an_acknowledged_append() -> None:
    """All its values are committed, at the offsets that the client was told."""
    oracle = ClientOracle()
    first, values = next_values(oracle, 2)
    commit(oracle, 5, values)
    oracle.ended(ClientAppend(first, 2, last_offset=6), Told.OK)
    assert oracle.acknowledged == 1


@pytest.mark.parametrize(("offset", "count"), [(4, 2), (6, 2), (5, 1)])
def test_an_append_that_is_not_committed_as_told(offset: int, count: int) -> None:
    """Other offsets, and values that are missing, are a violation."""
    oracle = ClientOracle()
    first, values = next_values(oracle, 2)
    commit(oracle, offset, values[:count])
    with pytest.raises(ViolationError, match="acknowledged-is-committed"):
        oracle.ended(ClientAppend(first, 2, last_offset=6), Told.OK)


def test_a_failed_append_is_never_committed() -> None:
    """Whether it is committed before or after the client is told that it failed."""
    for is_first in (True, False):
        oracle = ClientOracle()
        first, values = next_values(oracle, 1)
        append = ClientAppend(first, 1, last_offset=0)
        (lambda: commit(oracle, 0, values))() if is_first else oracle.ended(append, Told.FAILED)
        with pytest.raises(ViolationError, match="failed-never"):
            oracle.ended(append, Told.FAILED) if is_first else commit(oracle, 0, values)


def test_an_unknown_append_is_committed_at_most_once() -> None:
    """It may be committed later, and not twice."""
    oracle = ClientOracle()
    first, values = next_values(oracle, 1)
    oracle.ended(ClientAppend(first, 1, last_offset=0), Told.UNKNOWN)
    commit(oracle, 3, values)
    with pytest.raises(ViolationError, match="value-once"):
        commit(oracle, 4, values)


def test_numbers_are_given_once() -> None:
    """Each number stands for one value."""
    oracle = ClientOracle()
    assert [*oracle.next_numbers(2), *oracle.next_numbers(1)] == [0, 1, 2]


@pytest.mark.parametrize("rest", [b"", b"to 7"])
def test_a_value_is_known_by_its_number(rest: bytes) -> None:
    """Whatever comes after it: equal commands are different values, and each is committed once."""
    oracle = ClientOracle()
    first, values = next_values(oracle, 2)
    commit(oracle, 5, [each + rest for each in values])
    oracle.ended(ClientAppend(first, 2, last_offset=6), Told.OK)
    with pytest.raises(ViolationError, match="value-once"):
        commit(oracle, 7, [values[0] + rest])


def test_an_append_ends_once() -> None:
    """A second outcome is a violation, even the same one."""
    oracle = ClientOracle()
    append = ClientAppend(oracle.next_numbers(1).start, 1, last_offset=0)
    oracle.ended(append, Told.UNKNOWN)
    with pytest.raises(ViolationError, match="one-outcome"):
        oracle.ended(append, Told.UNKNOWN)


def test_a_read_sees_what_was_acknowledged_before() -> None:
    """A read below that is a violation, and so is one above what is committed; at both limits it is right."""
    oracle = ClientOracle()
    first, values = next_values(oracle, 1)
    commit(oracle, 5, values)
    oracle.ended(ClientAppend(first, 1, last_offset=5), Told.OK)
    assert oracle.acknowledged_end == 6
    began = ReadBegun(acknowledged_end=6, known_end=0)
    oracle.read_confirmed(began, 6, committed_end=6)
    assert oracle.confirmed_reads == 1
    with pytest.raises(ViolationError, match="reads-are-linearizable"):
        oracle.read_confirmed(began, 5, committed_end=6)
    with pytest.raises(ViolationError, match="reads-are-committed"):
        oracle.read_confirmed(began, 7, committed_end=6)


def test_a_read_sees_what_a_replica_knew_to_be_committed() -> None:
    """Records that no client was told of count, too: a client of the replica that knew may have seen them."""
    oracle, began = ClientOracle(), ReadBegun(acknowledged_end=0, known_end=6)
    oracle.read_confirmed(began, 6, committed_end=6)
    with pytest.raises(ViolationError, match="reads-see-what-is-known"):
        oracle.read_confirmed(began, 5, committed_end=6)
