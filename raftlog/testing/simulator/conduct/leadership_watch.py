# SPDX-License-Identifier: Apache-2.0
"""Whether a leader leads as long as a majority of the voters is in touch, and no longer; and which voters it names.

What comes from a voter is noted as it comes, and again as it is answered without an error: a leader looks at a Fetch
that waits once more then. The later of the two says how much a leader can have heard at most; when a request came that
was answered without an error says how much it must have heard.

Source: LeaderState#timeUntilCheckQuorumExpires; KIP-853; DECISIONS.md 57.
"""

from collections.abc import Hashable
from typing import Any, Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader, Resigned, Role
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey

WRITING_MS: Final = 300
"""A voter set that was decided upon is in the log by then, unless a sync is slow: one takes 20 ms on the average."""
PAUSED_WRITING_MS: Final = 1_500
"""The same of a process that may be paused meanwhile: not for longer than it leads without a word from others."""
_NEVER: Final = -1_000_000


@attrs.define
class _Touch:
    """When a replica was heard, in ms by the leader's clock.

    Attributes:
        steady_ms: since when it has never been silent for longer than a new voter may be.
        noted_ms: when a request of it came, whatever it asks for, or was answered without an error, the last time: the
            leader takes it to have been in touch until then, or less.
        served_ms: when its last request came that was answered without an error.
    """

    steady_ms: int
    noted_ms: int
    served_ms: int = _NEVER


@attrs.define
class _Leading:
    """One leadership."""

    epoch: int
    began_ms: int
    voters_offset: int
    voters: frozenset[ReplicaKey]
    changed_ms: int
    alone_ms: int = _NEVER
    touches: dict[ReplicaKey, _Touch] = attrs.field(factory=dict)


class LeadershipWatch:
    """The leaderships of one process.

    Args:
        ledger: of its directory.
        config: of the quorum.
        writing_ms: in so many ms a voter set that was decided upon is in the log; None if nobody can say.
    """

    def __init__(self, ledger: Ledger, config: QuorumConfig, writing_ms: int | None) -> None:
        self._ledger = ledger
        self._timeout_ms = config.check_quorum_timeout_ms
        self._lag_ms, self._stable_ms = config.new_voter_max_lag_ms, config.new_voter_stabilization_ms
        self._writing_ms = writing_ms
        self._leading: _Leading | None = None
        self._waiting: dict[Hashable, tuple[ReplicaKey, int]] = {}

    # What comes

    def received(self, name: Hashable, request: Any, core_ms: int) -> None:
        """Note a request that the leader takes now.

        Args:
            name: by which its answer is known.
            request: the message.
            core_ms: the present time by the leader's clock.
        """
        leading = self._leading
        key = None if leading is None else _sender(request)
        if leading is None or key is None:
            return
        self._waiting[name] = key, core_ms
        touch = leading.touches.get(key)
        if touch is None:
            leading.touches[key] = _Touch(core_ms, core_ms)
            return
        if core_ms - touch.noted_ms > self._lag_ms:
            touch.steady_ms = core_ms
        touch.noted_ms = core_ms

    def answered(self, name: Hashable, response: object, core_ms: int) -> None:
        """Note that a request was answered, at a time by the leader's clock."""
        waited = self._waiting.pop(name, None) if self._waiting else None
        if waited is not None and self._leading is not None and _is_served(response):
            touch = self._leading.touches[waited[0]]
            touch.served_ms, touch.noted_ms = max(touch.served_ms, waited[1]), core_ms

    # What it does

    @property
    def is_leading(self) -> bool:
        """Whether the process has led when it settled last."""
        return self._leading is not None

    def settled(self, role: Role, core_ms: int, *, has_failed: bool) -> None:
        """Check what the process is now.

        Args:
            role: the present one.
            core_ms: the present time by its clock.
            has_failed: whether its disk has refused anything, so that it may resign.
        """
        leading = self._leading
        if leading is None and not isinstance(role, Leader):
            return
        if leading is not None and not (isinstance(role, Leader) and role.epoch == leading.epoch):
            if isinstance(role, Resigned) and role.epoch == leading.epoch and not has_failed:
                self._check_resignation(leading, core_ms)
            self._leading = leading = None
            self._waiting.clear()
        if isinstance(role, Leader):
            in_force = self._ledger.voter_sets[-1]
            if leading is None:
                self._leading = leading = _Leading(role.epoch, core_ms, in_force.offset, in_force.keys, core_ms)
            elif leading.voters_offset != in_force.offset:
                self._voters_changed(leading, in_force.offset, in_force.keys, core_ms)
            if len(leading.voters) == 1 and self._is_voter:
                leading.alone_ms = core_ms

    def ticked(self, role: Role, core_ms: int) -> None:
        """Check, after the process was told the time, that a leader is in touch with a majority.

        A voter that has come while the others were silent counts until the others have come, so a leader leads on for
        up to twice the timeout. A Fetch that waits counts when it comes, and again as it is answered.
        """
        leading = self._leading
        if leading is None or not isinstance(role, Leader) or role.epoch != leading.epoch:
            return
        since_ms = core_ms - 2 * self._timeout_ms - 100
        if max(leading.began_ms, leading.changed_ms, leading.alone_ms) < since_ms:
            heard = self._in_touch(leading, since_ms, leading.voters)
            is_enough = heard >= self._needed(leading.voters)
            check(is_enough, "leaders-are-in-touch", "{} leads epoch {}: {}", self._ledger.key, role.epoch, leading)

    @property
    def _is_voter(self) -> bool:
        return self._ledger.names_as_voter(self._ledger.key)

    def _needed(self, voters: frozenset[ReplicaKey]) -> int:
        return len(voters) // 2 + 1 - self._is_voter

    def _in_touch(
        self, leading: _Leading, since_ms: int, voters: frozenset[ReplicaKey], *, served: bool = False
    ) -> int:
        """Return how many other voters have been in touch since a time, exclusive."""
        is_static = not self._ledger.levels[-1][1]
        named = {each.id for each in voters} if is_static else voters
        found = set()
        for key, touch in leading.touches.items():
            name = key.id if is_static else key
            if name in named and (touch.served_ms if served else touch.noted_ms) > since_ms:
                found.add(name)
        return len(found)

    def _check_resignation(self, leading: _Leading, core_ms: int) -> None:
        """Check that a leader resigns because it was removed, or no majority has come within the timeout."""
        if not self._is_voter:
            return
        since_ms = core_ms - self._timeout_ms
        is_new = max(leading.began_ms, leading.alone_ms) > since_ms
        check(not is_new, "leaders-stay", "{} resigns too soon: {}, at {}", self._ledger.key, leading, core_ms)
        if leading.changed_ms <= since_ms:
            served = self._in_touch(leading, since_ms, leading.voters, served=True)
            is_lonely = served < self._needed(leading.voters)
            check(is_lonely, "leaders-stay", "{} resigns: {}, at {}", self._ledger.key, leading, core_ms)

    def _voters_changed(self, leading: _Leading, offset: int, voters: frozenset[ReplicaKey], core_ms: int) -> None:
        """Check that a majority of the new voters is in touch, and that a new one has kept up."""
        before, leading.voters = leading.voters, voters
        leading.voters_offset, leading.changed_ms = offset, core_ms
        writing_ms = self._writing_ms
        if writing_ms is None or before == voters:
            return
        for key in voters - before:
            touch = leading.touches.get(key)
            is_near = touch is not None and core_ms - touch.noted_ms <= self._lag_ms + writing_ms
            is_steady = touch is not None and core_ms - touch.steady_ms >= self._stable_ms
            check(is_near and is_steady, "new-voters-keep-up", "{} is added at {}: {}", key, core_ms, touch)
        since_ms = core_ms - self._timeout_ms - writing_ms
        heard = self._in_touch(leading, since_ms, voters)
        is_enough = heard >= self._needed(voters)
        check(is_enough, "new-voters-are-in-touch", "{} names {} at {}: {}", self._ledger.key, voters, core_ms, leading)


def _sender(request: Any) -> ReplicaKey | None:
    """Return which replica fetches, if it says so."""
    if isinstance(request, FetchRequest) and request.replica_state.replica_id >= 0:
        asked = request.topics[0].partitions[0]
        return ReplicaKey(request.replica_state.replica_id, asked.replica_directory_id)
    if isinstance(request, FetchSnapshotRequest) and request.replica_id >= 0:
        return ReplicaKey(request.replica_id, request.topics[0].partitions[0].replica_directory_id)
    return None


def _is_served(response: object) -> bool:
    """Whether a Fetch was valid, or a part of a snapshot was found."""
    if isinstance(response, FetchResponse) and response.responses:
        found = response.responses[0].partitions[0]
        is_valid = found.diverging_epoch.end_offset < 0 and found.snapshot_id.end_offset < 0
        return is_valid and not found.error_code
    if isinstance(response, FetchSnapshotResponse) and response.topics:
        return not response.topics[0].partitions[0].error_code
    return False
