# SPDX-License-Identifier: Apache-2.0
"""Whether a process without a leader looks for one: it asks others than a leader that is silent, and it stands in time.

Source: KAFKA-19354, KAFKA-20514; QuorumState#transitionToUnattached, which puts off no election.
"""

from collections.abc import Hashable
from typing import Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Resigned, Role, Unattached
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey

MOST_SILENT: Final = 30
"""A replica that does not answer is asked no more than so many times in a row by one that knows others. They are asked
in the order of a draw, so that the same one may come again."""
_SLACK_MS: Final = 50


@attrs.define(eq=False)
class SearchCheck:
    """The search of one process for a leader.

    Args:
        ledger: of its directory.
        config: of the quorum.
        knows_others: whether it has several bootstrap servers.
    """

    _ledger: Ledger
    _config: QuorumConfig
    _knows_others: bool
    _asked: Hashable = attrs.field(default=None, init=False)
    _silent_count: int = attrs.field(default=0, init=False)
    _deadline: tuple[int, int | None] | None = attrs.field(default=None, init=False)
    _waiting: tuple[tuple[int, ReplicaKey] | None, int] | None = attrs.field(default=None, init=False)

    def sent(self, host: Hashable, request: object) -> None:
        """Check that a Fetch does not go again and again to a replica that does not answer.

        Args:
            host: to whom, and where.
            request: the message.
        """
        if not self._knows_others or not isinstance(request, FetchRequest | FetchSnapshotRequest):
            return
        self._silent_count = self._silent_count + 1 if host == self._asked else 1
        self._asked = host
        is_left = self._silent_count <= MOST_SILENT
        check(is_left, "silent-leaders-are-left", "{} asks {} for the {}th time", self._ledger.key, host, MOST_SILENT)

    def answered(self) -> None:
        """Note that any answer has come."""
        self._silent_count = 0

    def _check_deadline(self, role: Role, told_ms: int) -> None:
        """Check that a higher epoch has not moved an election that was not due yet, and that no vote puts off."""
        before, self._deadline = self._deadline, None
        if isinstance(role, Resigned) or (isinstance(role, Unattached) and role.voted_key is None):
            self._deadline = now = role.epoch, role.election_deadline_ms
            is_same = before is None or None in (before[1], now[1]) or before[1] == now[1]
            is_right = is_same or before is None or before[0] == now[0] or (before[1] or 0) <= told_ms
            check(is_right, "elections-begin", "{}: {} at {}, before {}", self._ledger.key, role, told_ms, before)

    def settled(self, role: Role, told_ms: int, paused_until_ms: int = 0, *, is_idle: bool) -> None:
        """Check, after effects were carried out, that an election does not begin late.

        Args:
            role: the present one.
            told_ms: the time that the core was told last.
            paused_until_ms: by when it may begin an election again after its disk has had no room.
            is_idle: whether no work for its disk is under way, or waits to be reported.
        """
        self._check_deadline(role, told_ms)
        if not isinstance(role, Unattached | Resigned) or not self._may_stand:
            self._waiting = None
            return
        waiting, ledger, voted = self._waiting, self._ledger, None
        if isinstance(role, Unattached) and role.voted_key is not None:
            voted = role.epoch, role.voted_key
        if waiting is None or (voted is not None and voted != waiting[0]):
            self._waiting = voted, told_ms
            return
        due_ms = max(waiting[1], paused_until_ms) + 2 * self._config.election_timeout_ms + _SLACK_MS
        is_late = told_ms > due_ms
        is_at_rest = is_idle and ledger.durable_end == ledger.end_offset
        is_put_off = is_late and is_at_rest
        check(not is_put_off, "elections-begin", "{} waits since {}, at {}: {}", ledger.key, waiting, told_ms, role)

    @property
    def _may_stand(self) -> bool:
        """Whether it is a voter, with that directory: with another one, it may know no voters of kraft.version 0."""
        return self._ledger.key in self._ledger.voter_sets[-1].keys and not self._ledger.needs_others
