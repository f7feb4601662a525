# SPDX-License-Identifier: Apache-2.0
"""The histories of clients, judged by a checker of linearizability that is not ours: that of detangle.

A history is translated twice, to operations of two models that detangle has, and none of ours:

- *The log* is a register that holds its end, of data records. An append is a compare-and-set from the end of the
  append before it to its own end: it takes effect at the offset that its client was told, on a log that has all that
  is below, or not at all. A read returns the end of the last append below its offset if the replica had just these
  records, from its log start on, and else what no register ever holds.
- *The registers* of the state machines are a map. An append puts each of its values into the register of that value.
  A read gets all registers from the state machine that answers it. Each register is judged alone: linearizability is
  local.

An append that was acknowledged happens between its call and its answer. One that failed, or was refused, never
happens. One with an unknown outcome happens at any time after its call if a read saw one of its values; else it is left
out, because any order that explains the other operations with it explains them without it. A read is left out, too, if
another one with the same answer was called no earlier and answered no later: both can happen at once. So the search
stays short, which in the worst case tries each order of the operations that are under way at one time.
"""

from collections.abc import Iterator, Sequence

from detangle import lin

from raftlog.testing.simulator.applications.registers import REGISTERS
from raftlog.testing.simulator.checks.client_oracle import Told
from raftlog.testing.simulator.client_history import ClientHistory, Instant, RecordedAppend, RecordedRead

TAKEN = "taken"
"""What the register of the log never holds, and an append thus never finds: two appends were given one offset."""


class Operations:
    """The operations of one history in the form of the checker.

    Args:
        appends: of all clients.
        reads: of all clients.
    """

    def __init__(self, appends: Sequence[RecordedAppend], reads: Sequence[RecordedRead]) -> None:
        called = [each.called for each in appends] + [each.called for each in reads]
        self.operations: list[lin.Operation] = []
        self._end = max(called, default=Instant(0, 0))

    def write(self, append: RecordedAppend, name: str, argument: object, output: object = None) -> None:
        """Add what an append does."""
        answered = append.answered if append.told is Told.OK else None
        self._add(append.replica, name, argument, append.called, answered or self._end, output)

    def read(self, reads: Sequence[tuple[RecordedRead, Instant]], name: str, argument: object, output: object) -> None:
        """Add reads with the same output, each with its answer: those that enclose no other one."""
        earliest: Instant | None = None
        for read, answered in sorted(reads, key=lambda each: (-each[0].called.calls, each[1].calls)):
            if earliest is None or answered.calls < earliest.calls:
                earliest = answered
                self._add(read.replica, name, argument, read.called, answered, output)

    def _add(
        self, replica: int, name: str, argument: object, called: Instant, answered: Instant, output: object
    ) -> None:
        operation = lin.Operation(
            len(self.operations), replica, name, argument, call=called.calls, call_time=called.at_ms / 1000
        )
        operation.status, operation.output = lin.OK, output
        operation.ret, operation.ret_time = answered.calls, answered.at_ms / 1000
        self.operations.append(operation)


def _numbers(append: RecordedAppend) -> range:
    return range(append.append.first, append.append.first + append.append.count)


def _base_offset(append: RecordedAppend) -> int:
    return append.append.last_offset - append.append.count + 1


def _happened(appends: Sequence[RecordedAppend], seen: set[int]) -> Iterator[RecordedAppend]:
    """Yield the acknowledged appends, and those with an unknown outcome that were seen."""
    for each in appends:
        is_unknown = each.told in (Told.UNKNOWN, Told.NOTHING)
        if each.told is Told.OK or (is_unknown and not seen.isdisjoint(_numbers(each))):
            yield each


def log_operations(appends: Sequence[RecordedAppend], reads: Sequence[RecordedRead]) -> list[lin.Operation]:
    """Return operations on the end of the log."""
    operations = Operations(appends, reads)
    seen = {number for read in reads if read.log is not None for _, number in read.log.records}
    happened = sorted(_happened(appends, seen), key=_base_offset)
    ends, records = [0], list[tuple[tuple[int, int], ...]]()
    for each in happened:
        base, end = _base_offset(each), each.append.last_offset + 1
        operations.write(each, "cas", (ends[-1] if base >= ends[-1] else TAKEN, end), output=True)
        ends.append(end)
        records.append(tuple(enumerate(_numbers(each), base)))
    by_output: dict[object, list[tuple[RecordedRead, Instant]]] = {}
    for read in reads:
        if read.log is not None and read.confirmed is not None:
            start, end_offset, found = read.log
            below = [some for some in records if some[0][0] < end_offset]
            expected = tuple(record for some in below for record in some if record[0] >= start)
            output: object = ends[len(below)] if found == expected else ("saw", end_offset, found)
            by_output.setdefault(output, []).append((read, read.confirmed))
    for end_read, some_reads in by_output.items():
        operations.read(some_reads, "read", None, end_read)
    return operations.operations


def register_operations(appends: Sequence[RecordedAppend], reads: Sequence[RecordedRead]) -> list[lin.Operation]:
    """Return operations on the registers."""
    operations = Operations(appends, reads)
    seen = {number for read in reads if read.registers is not None for number in read.registers.values()}
    for each in _happened(appends, seen):
        for number in _numbers(each):
            if each.told is Told.OK or number in seen:
                operations.write(each, "put", (number % REGISTERS, number))
    by_output: dict[tuple[int, int | None], list[tuple[RecordedRead, Instant]]] = {}
    for read in reads:
        if read.registers is not None and read.answered is not None:
            for register in range(REGISTERS):
                output = register, read.registers.get(register)
                by_output.setdefault(output, []).append((read, read.answered))
    for (register, value), some_reads in by_output.items():
        operations.read(some_reads, "get", register, value)
    return operations.operations


def judge_log(history: ClientHistory) -> lin.LinearizabilityResult:
    """Judge the appends and what the leaders had in their logs when they confirmed reads."""
    return lin.check(log_operations(history.appends, history.reads), lin.Register(0))


def judge_registers(history: ClientHistory) -> lin.LinearizabilityResult:
    """Judge the appends and what state machines answered."""
    return lin.check(register_operations(history.appends, history.reads), lin.KV())
