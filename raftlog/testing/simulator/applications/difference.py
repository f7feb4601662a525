# SPDX-License-Identifier: Apache-2.0
"""Finds out why an instance of a state machine differs from one that has read the same records."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from raftlog.testing.simulator.applications.checked_machine import CheckedMachine, MachineKind, Records, shown
from raftlog.testing.simulator.violation import ViolationError

_ATTEMPTS: Final = 10
"""So often the records are replayed: a state machine that draws random numbers may differ only sometimes."""


class Restored(NamedTuple):
    """An instance has restored a snapshot.

    Attributes:
        read_end: the end, exclusive, of what it had read before.
        snapshot_end: the end, exclusive, of the snapshot.
    """

    read_end: int
    snapshot_end: int


class Truth(NamedTuple):
    """An instance that was given all committed records in their order.

    Attributes:
        kind: of the state machine.
        values: the record values, with their offsets, in order.
        records_at: returns its records at an end offset, exclusive.
    """

    kind: MachineKind
    values: Sequence[tuple[int, bytes]]
    records_at: Callable[[int], Records]


def check_same(truth: Truth, end_offset: int, found: Records, restores: Sequence[Restored]) -> None:
    """Check that an instance has the state that follows from the records, or find out what is wrong with its machine.

    Other instances do the same again: they show where the difference begins.

    Args:
        truth: what the state must be.
        end_offset: of what the instance has read, exclusive.
        found: the instance's records.
        restores: of snapshots by the instance, in order.

    Raises:
        ViolationError: it differs.
    """
    expected = truth.records_at(end_offset)
    if found == expected:
        return
    for _ in range(_ATTEMPTS):
        _repeat(truth, end_offset, restores)
    what = f"{truth.kind.name} at offset {end_offset}: {shown(found, expected)}; other instances given the same records"
    raise ViolationError("listener-is-replay", f"{what} do not differ so, unless its state depends on anything else")


def _repeat(truth: Truth, end_offset: int, restores: Sequence[Restored]) -> None:
    """Do with a new instance what another one has done, and check its state after each step."""
    instance, position, last = CheckedMachine(truth.kind), 0, None
    first, expected = instance.records(), truth.records_at(0)
    if first != expected:
        what = f"{truth.kind.name}: two instances differ before the first record: {shown(first, expected)}"
        raise ViolationError("machine-is-deterministic", what)
    for each in [*restores, None]:
        for offset, value in _between(truth.values, position, end_offset if each is None else each.read_end):
            instance.apply(offset, value)
            _check_applied(truth, instance, last)
        if each is not None:
            check_restored(truth, instance, each.snapshot_end)
            last, position = each, each.snapshot_end


def _check_applied(truth: Truth, instance: CheckedMachine, last: Restored | None) -> None:
    """Check the state of an instance after a record, since the start or the last snapshot that it has restored."""
    found, expected = instance.records(), truth.records_at(instance.offset)
    if found == expected:
        return
    where = f"from the record at offset {instance.offset - 1} on: {shown(found, expected)}"
    if last is None:
        what = f"{truth.kind.name}: two instances that were given the same records differ {where}"
        raise ViolationError("machine-is-deterministic", what)
    what = (
        f"{truth.kind.name}: after it was restored from its snapshot at offset {last.snapshot_end}, it differs {where}"
    )
    raise ViolationError("machine-restores", what)


def check_restored(truth: Truth, instance: CheckedMachine, end_offset: int) -> None:
    """Restore the snapshot that ends at an offset, and check that this gives the state there."""
    expected = truth.records_at(end_offset)
    read_end = instance.offset
    instance.restore(end_offset, expected)
    found = instance.records()
    if found != expected:
        what = f"{truth.kind.name}: its snapshot at offset {end_offset}, restored over the state at offset {read_end},"
        raise ViolationError("machine-restores", f"{what} gives another one: {shown(found, expected)}")


def _between(values: Sequence[tuple[int, bytes]], start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    return ((offset, value) for offset, value in values if start <= offset < stop)
