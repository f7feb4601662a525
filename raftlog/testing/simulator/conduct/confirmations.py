# SPDX-License-Identifier: Apache-2.0
"""Whether a read was confirmed: a majority of the voters has said, after it began, that this is still its epoch.

Clients notice a read that was not only if a later leader has committed something meanwhile. This sees each of them.

Source: Raft (Ongaro) 6.4; DECISIONS.md 59.
"""

from typing import NamedTuple

import attrs

from raftlog.testing.simulator.checks.ledger import Ledger, NamedVoters
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey


class Sending(NamedTuple):
    """Who has sent a message, and when.

    Attributes:
        key: of the sender.
        event: the number of the event in which it was sent.
    """

    key: ReplicaKey
    event: int


@attrs.define(eq=False)
class Confirmations:
    """What the voters have told one process.

    Args:
        ledger: of its directory.
    """

    _ledger: Ledger
    _heard: dict[ReplicaKey, tuple[int, int]] = attrs.field(factory=dict, init=False)

    def heard(self, sending: Sending, epoch: int) -> None:
        """Note that a message has come.

        Args:
            sending: of the message.
            epoch: that it names.
        """
        last = self._heard.get(sending.key)
        now = epoch, sending.event
        if last is None or now > last:
            self._heard[sending.key] = now

    def check_read(self, epoch: int, began: int) -> None:
        """Check that a majority has sent a message of the leader's epoch in the event in which a read began, or later.

        Args:
            epoch: of the leader.
            began: the number of the event in which the read began.

        A voter set that has just been written is not known to the leader while that is paused: either one will do.
        """
        known = {key for key, (heard, event) in self._heard.items() if heard == epoch and event >= began}
        is_confirmed = any(self._has_majority(each, known) for each in self._ledger.voter_sets[-2:])
        ledger = self._ledger
        check(is_confirmed, "reads-are-confirmed", "{} of {}, epoch {}: {}", began, ledger.key, epoch, self._heard)

    def _has_majority(self, named: NamedVoters, heard: set[ReplicaKey]) -> bool:
        found = heard | {self._ledger.key}
        if self._ledger.levels[-1][1]:
            return len(found & named.keys) > len(named.keys) // 2
        return len({each.id for each in found} & {each.id for each in named.keys}) > len(named.keys) // 2
