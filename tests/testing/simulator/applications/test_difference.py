# SPDX-License-Identifier: Apache-2.0
"""Why an instance differs from one that was given all records: where it began, and after which snapshot."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, MachineKind, Records, shown, value_of
from raftlog.testing.simulator.applications.difference import Restored, Truth, check_restored, check_same
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import StateMachine
from tests.testing.bank import Bank
from tests.testing.wrong_banks import Clinging, Counting, Forgetful

TRANSFER = b'["alice", "bob", 1]'
COUNT = 30


def truth_of(make: Callable[[], StateMachine]) -> Truth:
    """Return the truth about a machine that reads transfers of 1 at the offsets 0 to 29."""
    kind = MachineKind(make)
    machine = CheckedMachine(kind)
    values = [(offset, value_of(offset) + TRANSFER) for offset in range(COUNT)]
    states = [machine.records()]
    for offset, value in values:
        machine.apply(offset, value)
        states.append(machine.records())
    return Truth(kind, values, states.__getitem__)


@given(st.integers(0, COUNT), st.integers(0, COUNT))
def test_a_right_machine_is_restored_over_any_state(read_end: int, snapshot_end: int) -> None:
    """And differs in nothing."""
    truth = truth_of(Bank)
    instance = CheckedMachine(truth.kind)
    for offset, value in truth.values[:read_end]:
        instance.apply(offset, value)
    check_restored(truth, instance, snapshot_end)
    check_same(truth, snapshot_end, instance.records(), [Restored(read_end, snapshot_end)])


@pytest.mark.parametrize(("read_end", "is_found"), [(0, False), (1, True), (COUNT, True)])
def test_a_restore_that_keeps_what_was_there(read_end: int, is_found: bool) -> None:
    """It shows as soon as something was there: both offsets are said."""
    truth = truth_of(Clinging)
    instance = CheckedMachine(truth.kind)
    for offset, value in truth.values[:read_end]:
        instance.apply(offset, value)
    if not is_found:
        check_restored(truth, instance, 12)
        return
    with pytest.raises(ViolationError, match=f"at offset 12, restored over the state at offset {read_end}, gives"):
        check_restored(truth, instance, 12)


@pytest.mark.parametrize("snapshot_end", [1, 18, 19])
def test_a_state_that_is_not_in_the_snapshot(snapshot_end: int) -> None:
    """A restored machine counts from 0, and does not see that the record at offset 19 is the twentieth."""
    truth = truth_of(Counting)
    words = f"restored from its snapshot at offset {snapshot_end}, it differs from the record at offset 19 on"
    with pytest.raises(ViolationError, match=words):
        check_same(truth, COUNT, (b"another",), [Restored(0, snapshot_end)])


def test_a_difference_that_cannot_be_repeated() -> None:
    """It is said so, with the difference."""
    truth = truth_of(Bank)
    with pytest.raises(ViolationError, match=r"listener-is-replay: Bank at offset 3: record 0 is b'x', not .* do not"):
        check_same(truth, 3, (b"x",), [])


def test_a_snapshot_that_forgets() -> None:
    """The restored state has less."""
    truth = truth_of(Forgetful)
    with pytest.raises(ViolationError, match=r"machine-restores: Forgetful: .* there are 2 records, without"):
        check_restored(truth, CheckedMachine(truth.kind), 7)


@pytest.mark.parametrize(
    ("records", "other", "words"),
    [
        ((b"a", b"b"), (b"a", b"c"), "record 1 is b'b', not b'c'"),
        ((b"a",), (b"a", b"c"), "there are 1 records, without b'c'"),
        ((b"a", b"c"), (b"a",), "there are 2 records, not 1: b'c' is too much"),
        ((), (b"a",), "there are 0 records, without b'a'"),
        ((b"a" * 118,), (b"",), "record 0 is b'" + "a" * 118 + "…, not b''"),
        ((b"a" * 117,), (b"",), "record 0 is b'" + "a" * 117 + "', not b''"),
    ],
)
def test_a_difference_is_shown_by_its_first_record(records: Records, other: Records, words: str) -> None:
    """With its index, and not too long."""
    assert shown(records, other) == words
