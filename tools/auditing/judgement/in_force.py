# SPDX-License-Identifier: Apache-2.0
"""What is in force from an offset on, and whether those who speak of it later say the same."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from raftlog.tools.catalogue.findings import Finding

T = TypeVar("T")


@attrs.frozen
class Testimony:
    """Something that says what is in force, without putting it in force.

    Attributes:
        summary: what every witness of this kind of value says, so that all can be compared.
        value: all that it says; None of one that knows the summary alone.
        agrees: whether that is what was put in force, as far as it knows.
        finding: what to report if it is wrong.
    """

    summary: Hashable
    value: Hashable
    agrees: bool
    finding: Finding


@attrs.define
class ValueInForce(Generic[T]):
    """A value, from the offset that puts it in force until the next one.

    Attributes:
        offset: inclusive; -1 of what the bootstrap snapshot says.
        value: what is in force.
        is_doubted: whether it is reported, or may be wrong by what is reported. Nothing is compared with it any more.
        witnesses: of it, in the order of their offsets.
    """

    offset: int
    value: T
    is_doubted: bool = False
    witnesses: list[Testimony] = attrs.field(factory=list)

    def settle(self) -> Iterator[Finding]:
        """Yield what is wrong, at its end. Who contradicts it is wrong, unless nobody is on its side.

        Then it may be wrong itself; and where several contradict it alike, it is, which gives one finding.
        """
        against = [] if self.is_doubted else [witness for witness in self.witnesses if not witness.agrees]
        self.is_doubted |= bool(against) and not self._is_supported(against)
        if self.is_doubted and len(against) > 1 and _say_the_same(against):
            others = "the next one says" if len(against) == 2 else f"the next {len(against) - 1} say"
            first = against[0].finding
            reason = f"{first.reason}; {others} the same, so that the record at {self.offset} is wrong"
            yield attrs.evolve(first, reason=reason)
        else:
            yield from (witness.finding for witness in against)

    def _is_supported(self, against: Sequence[Testimony]) -> bool:
        """Whether somebody agrees who would not if those who contradict it were right."""
        summaries = {witness.summary for witness in against}
        return any(
            witness.agrees and (witness.value is not None or summaries != {witness.summary})
            for witness in self.witnesses
        )


def _say_the_same(witnesses: Sequence[Testimony]) -> bool:
    values = {witness.value for witness in witnesses if witness.value is not None}
    return len({witness.summary for witness in witnesses}) == 1 and len(values) <= 1
