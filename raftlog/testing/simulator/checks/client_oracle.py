# SPDX-License-Identifier: Apache-2.0
"""What clients were told, compared with what is committed.

An append that was acknowledged is committed once, at the offset that its client was told. One that failed is never
committed. One whose outcome is unknown, because the client was told so or because its leader crashed, is committed at
most once.
"""

import enum
from typing import NamedTuple

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.applications.checked_machine import number_of
from raftlog.testing.simulator.checks.decoded import values_in
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.violation import check


class Told(enum.Enum):
    """What a client knows of an append."""

    NOTHING = "nothing"
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@attrs.define(eq=False)
class ClientAppend:
    """One append of a client.

    Attributes:
        first: the number of its first value; the others follow it.
        count: of the values.
        last_offset: that the leader gave to the last record, inclusive.
        told: what the client knows.
    """

    first: int
    count: int
    last_offset: int
    told: Told = Told.NOTHING


class ReadBegun(NamedTuple):
    """What was known when a read began, all of which it must see.

    Attributes:
        acknowledged_end: the end, exclusive, of all records that were acknowledged.
        known_end: the highest high watermark that any replica had had: its clients may have seen the records below.
        epoch: of the leader that was asked.
        event: the number of the event in which it began.
    """

    acknowledged_end: int
    known_end: int
    epoch: int = 0
    event: int = 0


@attrs.define(eq=False)
class ClientOracle:
    """All values that clients have appended, and where they are committed.

    Attributes:
        outcomes: how many appends ended in each way.
        acknowledged_end: the end, exclusive, of all records that were acknowledged.
        confirmed_reads: how many reads were.
    """

    outcomes: dict[Told, int] = attrs.field(factory=lambda: dict.fromkeys(Told, 0))
    acknowledged_end: int = 0
    confirmed_reads: int = 0
    _next_value: int = 0
    _offsets: dict[int, int] = attrs.field(factory=dict)
    _failed: set[int] = attrs.field(factory=set)

    @property
    def acknowledged(self) -> int:
        """How many appends were acknowledged."""
        return self.outcomes[Told.OK]

    def next_numbers(self, count: int) -> range:
        """Return numbers of values that no client has appended yet."""
        first = self._next_value
        self._next_value += count
        return range(first, first + count)

    def committed(self, _: StoredBatch, content: RecordBatch) -> None:
        """Note a batch that is committed now."""
        if content.is_control:
            return
        for offset, value in values_in(content):
            number = number_of(value)
            before = self._offsets.setdefault(number, offset)
            check(before == offset, "value-once", "value {} at {} and {}", number, before, offset)
            check(number not in self._failed, "failed-never", "value {} failed; it is at {}", number, offset)

    def ended(self, append: ClientAppend, told: Told) -> None:
        """Note what a client was told of an append. It is told so once."""
        check(append.told is Told.NOTHING, "one-outcome", "{}, and now {}", append, told)
        append.told = told
        self.outcomes[told] += 1
        numbers = range(append.first, append.first + append.count)
        if told is Told.OK:
            base_offset = append.last_offset - append.count + 1
            expected = list(range(base_offset, base_offset + append.count))
            found = [self._offsets.get(number) for number in numbers]
            check(found == expected, "acknowledged-is-committed", "{}: committed at {}", append, found)
            self.acknowledged_end = max(self.acknowledged_end, append.last_offset + 1)
        elif told is Told.FAILED:
            self._failed.update(numbers)
            found = [self._offsets.get(number) for number in numbers]
            check(found.count(None) == len(found), "failed-never", "{}: committed at {}", append, found)

    def read_confirmed(self, began: ReadBegun, offset: int, committed_end: int) -> None:
        """Note that a read is to be answered from the records below an offset.

        Args:
            began: what was known when the read began.
            offset: exclusive.
            committed_end: of what is committed now, exclusive.
        """
        self.confirmed_reads += 1
        is_linearizable = began.acknowledged_end <= offset
        check(is_linearizable, "reads-are-linearizable", "read {} of {}", offset, began)
        check(began.known_end <= offset, "reads-see-what-is-known", "read {} of {}", offset, began)
        check(offset <= committed_end, "reads-are-committed", "a read of {}, committed {}", offset, committed_end)
