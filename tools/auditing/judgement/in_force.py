# SPDX-License-Identifier: Apache-2.0
"""Values in force from an offset on, and whether later witnesses agree with them."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

from raftlog.tools.catalogue.findings import Finding

T = TypeVar("T")


@attrs.frozen
class Testimony:
    """A witness: it names the value in force, but does not set it.

    Attributes:
        summary: the part of the value that every witness of this kind states, so that all can be compared.
        value: the whole value; None if the witness states the summary only.
        agrees: whether what the witness states matches the value in force.
        finding: what to report if the witness is wrong.
    """

    summary: Hashable
    value: Hashable
    agrees: bool
    finding: Finding


@attrs.define
class ValueInForce(Generic[T]):
    """A value, from the offset that puts it in force until the next one.

    Attributes:
        offset: the offset that puts it in force, inclusive; -1 for a value from the bootstrap snapshot.
        value: the value in force.
        is_doubted: whether a finding shows that the value is or may be wrong; it is then no longer compared.
        witnesses: the witnesses of the value, in the order of their offsets.
    """

    offset: int
    value: T
    is_doubted: bool = False
    witnesses: list[Testimony] = attrs.field(factory=list)

    def settle(self) -> Iterator[Finding]:
        """Yield the findings about this value once its last witness is known.

        Dissenters are wrong unless no other witness supports the value. Without support the value may itself be wrong.
        If several dissenters then state the same, the value is wrong, which is reported as one finding.
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
        """Whether another witness supports this value, and would not if the dissenters were right."""
        summaries = {witness.summary for witness in against}
        return any(
            witness.agrees and (witness.value is not None or summaries != {witness.summary})
            for witness in self.witnesses
        )


def _say_the_same(witnesses: Sequence[Testimony]) -> bool:
    values = {witness.value for witness in witnesses if witness.value is not None}
    return len({witness.summary for witness in witnesses}) == 1 and len(values) <= 1
