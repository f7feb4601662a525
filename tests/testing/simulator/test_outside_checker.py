# SPDX-License-Identifier: Apache-2.0
"""Histories are translated so that the outside checker finds them linearizable exactly if they are."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from detangle import lin
from hypothesis import given
from hypothesis import strategies as st

from raftlog.testing.simulator.applications.registers import REGISTERS
from raftlog.testing.simulator.checks.client_oracle import ClientAppend, Told
from raftlog.testing.simulator.client_history import Instant, LogRead, RecordedAppend, RecordedRead
from tests.testing.simulator.outside_checker import log_operations, register_operations

State = tuple[int, ...]
Step = Callable[[State], State | None]


class Interval(NamedTuple):
    """When something happened: the numbers of calls at its call and at its answer, both inclusive."""

    called: int
    answered: int


def append(base_offset: int, first: int, interval: Interval, told: Told = Told.OK, count: int = 1) -> RecordedAppend:
    """Return an append of the values from a number on, at an offset."""
    kept = ClientAppend(first, count, base_offset + count - 1)
    answered = None if told is Told.NOTHING else Instant(interval.answered, 0)
    return RecordedAppend(kept, 1, Instant(interval.called, 0), told, answered)


def read_log(records: Sequence[tuple[int, int]], end_offset: int, interval: Interval, start: int = 0) -> RecordedRead:
    """Return a read that a replica with these records confirmed."""
    log = LogRead(start, end_offset, tuple(records))
    return RecordedRead(1, Instant(interval.called, 0), Instant(interval.answered, 0), log)


def read_registers(registers: dict[int, int], interval: Interval) -> RecordedRead:
    """Return a read that a state machine answered."""
    called, answered = Instant(interval.called, 0), Instant(interval.answered, 0)
    return RecordedRead(1, called, answered=answered, registers=registers)


def is_log_linearizable(appends: Sequence[RecordedAppend], *reads: RecordedRead) -> bool:
    """Ask the outside checker about logs."""
    return lin.check(log_operations(appends, reads), lin.Register(0)).ok


def are_registers_linearizable(appends: Sequence[RecordedAppend], *reads: RecordedRead) -> bool:
    """Ask the outside checker about registers."""
    return lin.check(register_operations(appends, reads), lin.KV()).ok


class Act(NamedTuple):
    """An operation of a slow and simple search: what it does to the state, or None where it cannot happen."""

    interval: Interval
    must_happen: bool
    step: Step


def has_order(acts: Sequence[Act], state: State = ()) -> bool:
    """Whether some order of all acts that must happen, and any of the others, respects time and can happen."""
    needed = [each for each in acts if each.must_happen]
    if not needed:
        return True
    first_answer = min(each.interval.answered for each in needed)
    for index, act in enumerate(acts):
        after = act.step(state) if act.interval.called <= first_answer else None
        if after is not None and has_order([*acts[:index], *acts[index + 1 :]], after):
            return True
    return False


@st.composite
def intervals(draw: st.DrawFn, count: int) -> list[Interval]:
    """Return times of operations, in the order of their calls."""
    spans = [draw(st.integers(0, count)) for _ in range(count)]
    return [Interval(call, min(call + span, count)) for call, span in enumerate(spans, start=1)]


def appended(each: RecordedAppend) -> Act:
    """Return an append to a log, whose state is pairs of offset and number, and its settled end at last."""
    kept, base = each.append, each.append.last_offset - each.append.count + 1

    def step(state: State) -> State | None:
        end = state[-1] if state else 0
        pairs = [part for index in range(kept.count) for part in (base + index, kept.first + index)]
        return (*state[:-1], *pairs, kept.last_offset + 1) if base >= end else None

    answered = each.answered.calls if each.told is Told.OK and each.answered is not None else 99
    return Act(Interval(each.called.calls, answered), each.told is Told.OK, step)


def log_was_read(each: RecordedRead) -> Act:
    """Return a read of all records of a log; it settles that there are no others below its offset."""
    assert each.log is not None
    assert each.confirmed is not None
    start, end_offset, records = each.log

    def step(state: State) -> State | None:
        pairs = tuple(zip(state[:-1:2], state[1:-1:2], strict=True))
        fits = tuple(pair for pair in pairs if pair[0] >= start) == records
        is_all = all(offset < end_offset for offset, _ in pairs)
        return (*state[:-1], max(end_offset, state[-1] if state else 0)) if fits and is_all else None

    return Act(Interval(each.called.calls, each.confirmed.calls), True, step)


@given(st.data())
def test_logs_as_a_simple_search_judges_them(data: st.DataObject) -> None:
    """For any appends and reads, also wrong ones, the verdict is that of trying all orders on a list of records."""
    kinds = data.draw(st.lists(st.sampled_from(["append", "read"]), min_size=1, max_size=6))
    times = data.draw(intervals(len(kinds)))
    appends: list[RecordedAppend] = []
    for number, (kind, interval) in enumerate(zip(kinds, times, strict=True)):
        if kind == "append":
            base, count = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 2))
            appends.append(append(base, 10 * number, interval, data.draw(st.sampled_from(Told)), count))
    written = sorted(
        (each.append.last_offset - each.append.count + 1 + index, each.append.first + index)
        for each in appends
        for index in range(each.append.count)
    )
    reads: list[RecordedRead] = []
    for kind, interval in zip(kinds, times, strict=True):
        if kind == "read":
            start = data.draw(st.sampled_from([0, 0, 2]))
            end = data.draw(st.integers(start, 6))  # No log ends below its start.
            below = [pair for pair in written if start <= pair[0] < end]
            is_seen = data.draw(st.lists(st.booleans(), min_size=len(below), max_size=len(below)))
            found = below if data.draw(st.booleans()) else [p for p, seen in zip(below, is_seen, strict=True) if seen]
            reads.append(read_log(found, end, interval, start))
    acts = [appended(each) for each in appends if each.told is not Told.FAILED] + [log_was_read(each) for each in reads]
    assert is_log_linearizable(appends, *reads) == has_order(acts)


def put(value: int) -> Step:
    """Return a write of a register, whose state is its value if it has any."""
    return lambda _: (value,)


def got(value: int | None) -> Step:
    """Return a read of a register."""
    expected = () if value is None else (value,)
    return lambda state: state if state == expected else None


@given(st.data())
def test_registers_as_a_simple_search_judges_them(data: st.DataObject) -> None:
    """For any writes of one register, and reads, the verdict is that of trying all orders on its value."""
    kinds = data.draw(st.lists(st.sampled_from(["append", "read"]), min_size=1, max_size=7))
    appends: list[RecordedAppend] = []
    reads: list[RecordedRead] = []
    acts: list[Act] = []
    numbers = [REGISTERS * index for index, kind in enumerate(kinds) if kind == "append"]
    for index, (kind, interval) in enumerate(zip(kinds, data.draw(intervals(len(kinds))), strict=True)):
        if kind == "append":
            told = data.draw(st.sampled_from(Told))
            appends.append(append(index, REGISTERS * index, interval, told))
            lasting = interval if told is Told.OK else Interval(interval.called, 99)
            if told is not Told.FAILED:
                acts.append(Act(lasting, told is Told.OK, put(REGISTERS * index)))
        else:
            value = data.draw(st.sampled_from([None, *numbers]))
            reads.append(read_registers({} if value is None else {0: value}, interval))
            acts.append(Act(interval, True, got(value)))
    assert are_registers_linearizable(appends, *reads) == has_order(acts)


ACKNOWLEDGED = append(5, 0, Interval(1, 1))
LATER = Interval(9, 9)


@pytest.mark.parametrize(
    ("appends", "reads", "is_linearizable"),
    [
        ([], [], True),
        ([ACKNOWLEDGED], [read_log([(5, 0)], 6, LATER)], True),
        ([ACKNOWLEDGED], [read_log([(5, 0)], 7, LATER)], True),
        ([ACKNOWLEDGED], [read_log([], 5, LATER)], False),
        ([ACKNOWLEDGED], [read_log([], 5, Interval(1, 1))], True),
        ([ACKNOWLEDGED], [read_log([], 6, LATER)], False),
        ([ACKNOWLEDGED], [read_log([(5, 0), (6, 0)], 7, LATER)], False),
        ([ACKNOWLEDGED], [read_log([(6, 0)], 7, LATER)], False),
        ([ACKNOWLEDGED], [read_log([], 9, LATER, start=6)], True),
        ([append(5, 0, Interval(2, 2))], [read_log([(5, 0)], 6, Interval(1, 1))], False),
        ([append(5, 0, Interval(2, 2))], [read_log([], 6, Interval(1, 1))], False),
        ([append(5, 0, Interval(2, 2))], [read_log([], 5, Interval(1, 1))], True),
        ([ACKNOWLEDGED, append(5, 1, Interval(2, 2))], [], False),
        ([ACKNOWLEDGED, append(6, 1, Interval(2, 2))], [], True),
        ([append(6, 1, Interval(1, 1)), append(5, 0, Interval(2, 2))], [], False),
        ([append(6, 1, Interval(1, 2)), append(5, 0, Interval(2, 2))], [], True),
        ([append(5, 0, Interval(1, 1), Told.FAILED)], [read_log([], 6, LATER)], True),
        ([append(5, 0, Interval(1, 1), Told.FAILED)], [read_log([(5, 0)], 6, LATER)], False),
        ([append(5, 0, Interval(1, 1), Told.UNKNOWN)], [read_log([], 6, LATER)], True),
        ([append(5, 0, Interval(1, 1), Told.UNKNOWN)], [read_log([(5, 0)], 6, LATER)], True),
        ([append(5, 0, Interval(1, 1), Told.NOTHING)], [read_log([(5, 0)], 6, LATER)], True),
        (
            [append(5, 0, Interval(1, 1), Told.UNKNOWN)],
            [read_log([], 5, Interval(2, 2)), read_log([(5, 0)], 6, Interval(3, 3))],
            True,
        ),
        (
            [append(5, 0, Interval(1, 1), Told.UNKNOWN)],
            [read_log([(5, 0)], 6, Interval(2, 2)), read_log([], 5, Interval(3, 3))],
            False,
        ),
        (
            [append(5, 0, Interval(1, 3))],
            [read_log([(5, 0)], 6, Interval(2, 2)), read_log([], 5, Interval(3, 3))],
            False,
        ),
    ],
)
def test_logs_made_by_hand(appends: list[RecordedAppend], reads: list[RecordedRead], is_linearizable: bool) -> None:
    """Acknowledged records stay, at their offsets, once; reads see them, and never go back; unknown ones may come."""
    assert is_log_linearizable(appends, *reads) == is_linearizable


@pytest.mark.parametrize(
    ("appends", "reads", "is_linearizable"),
    [
        ([ACKNOWLEDGED], [read_registers({0: 0}, LATER)], True),
        ([ACKNOWLEDGED], [read_registers({}, LATER)], False),
        ([ACKNOWLEDGED], [read_registers({}, Interval(1, 1))], True),
        ([ACKNOWLEDGED], [read_registers({0: 0, 1: 1}, LATER)], False),
        ([append(0, 23, Interval(1, 1), count=2)], [read_registers({23: 23, 0: 24}, LATER)], True),
        ([append(0, 23, Interval(1, 1), count=2)], [read_registers({23: 23}, LATER)], False),
        ([ACKNOWLEDGED, append(6, 24, Interval(2, 2))], [read_registers({0: 24}, LATER)], True),
        ([ACKNOWLEDGED, append(6, 24, Interval(2, 2))], [read_registers({0: 0}, LATER)], False),
        ([append(5, 0, Interval(1, 1), Told.FAILED)], [read_registers({0: 0}, LATER)], False),
        ([append(5, 0, Interval(1, 1), Told.UNKNOWN)], [read_registers({}, LATER)], True),
        (
            [append(5, 0, Interval(1, 1), Told.UNKNOWN)],
            [read_registers({}, Interval(2, 2)), read_registers({0: 0}, Interval(3, 3))],
            True,
        ),
        (
            [append(5, 0, Interval(1, 1), Told.UNKNOWN)],
            [read_registers({0: 0}, Interval(2, 2)), read_registers({}, Interval(3, 3))],
            False,
        ),
    ],
)
def test_registers_made_by_hand(
    appends: list[RecordedAppend], reads: list[RecordedRead], is_linearizable: bool
) -> None:
    """A read gets the value that was written last, and none that nobody wrote, or that was said to have failed."""
    assert are_registers_linearizable(appends, *reads) == is_linearizable


def test_few_of_many_equal_reads_are_kept() -> None:
    """Of reads with one answer, each that encloses another one in time is left out, and no other one is."""
    reads = [read_log([], 0, Interval(*each)) for each in ((1, 9), (2, 5), (3, 7), (4, 9), (6, 6), (8, 8))]
    kept = {(each.call, each.ret) for each in log_operations([], reads)}
    assert kept == {(2, 5), (6, 6), (8, 8)}
