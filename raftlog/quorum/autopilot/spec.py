# SPDX-License-Identifier: Apache-2.0
"""What an autopilot is told: the replicas with their base roles, the policy, and the limits. The same on all nodes.

Source: Confluent Platform's Automatic Observer Promotion, and hashicorp/raft-autopilot. Differs: DECISIONS.md 78.
"""

import enum
import uuid

import attrs

from raftlog.voters.voter_set import ReplicaKey


class BaseRole(enum.Enum):
    """What a replica is while nothing has failed."""

    VOTER = "voter"
    OBSERVER = "observer"


class PromotionPolicy(enum.Enum):
    """When an observer is promoted; the values are names for operators."""

    UNDER_MIN_SYNC = "under-min-sync"
    """Fewer voters than ``min_sync`` are in sync."""
    UNDER_REPLICATED = "under-replicated"
    """Fewer voters are in sync than the spec has replicas with the base role of a voter."""
    LEADER_IS_OBSERVER = "leader-is-observer"
    """As the first one, but only while a replica leads whose base role is observer: an operator has made it a voter."""


@attrs.frozen(kw_only=True)
class AutopilotReplica:
    """A replica of the spec.

    Attributes:
        id: the node id.
        role: what it is while nothing has failed.
        directory_id: of its log's directory; None means any.
        rack: where it is; observers in racks with few voters are promoted first. None is a rack of its own.
    """

    id: int
    role: BaseRole
    directory_id: uuid.UUID | None = None
    rack: str | None = None


@attrs.frozen(kw_only=True)
class AutopilotSpec:
    """The replicas of a quorum, and when their roles change.

    Attributes:
        replicas: all that the autopilot may add or remove.
        policy: when an observer is promoted.
        min_sync: how many voters should be in sync, at most as many as are configured. It is more than a majority of
            those for ``UNDER_MIN_SYNC``, at least 2 for ``LEADER_IS_OBSERVER``, and None for ``UNDER_REPLICATED``.
        max_lag: how many offsets a replica in sync is away from the leader's log end, at most.
        max_age_ms: how long ago it had all of the leader's log, at most.
        last_contact_ms: how long ago it fetched, at most; and how long after one plan the next one may be made, at
            most, without all windows starting anew.
        stabilize_ms: for how long a replica must be in sync to be steady, or out of sync to be down.
        demote_after_ms: for how long voters must be in sync before an observer that was promoted is removed again.
        dry_run: whether steps are only described.

    Raises:
        ValueError: an id is there twice or negative, a limit is out of range, or the policy can never promote an
            observer: before the quorum is lost, or because there is none.
    """

    replicas: tuple[AutopilotReplica, ...]
    policy: PromotionPolicy
    min_sync: int | None = None
    max_lag: int = 250
    max_age_ms: int = 1_000
    last_contact_ms: int = 2_000
    stabilize_ms: int = 10_000
    demote_after_ms: int = 30_000
    dry_run: bool = False

    def __attrs_post_init__(self) -> None:
        ids = [each.id for each in self.replicas]
        if len(set(ids)) < len(ids) or any(each < 0 for each in ids):
            raise ValueError(f"replica ids {ids}: one is negative or there twice")
        if min(self.max_lag, self.max_age_ms) < 0 or min(self.last_contact_ms, self.stabilize_ms) < 1:
            raise ValueError("max_lag and max_age_ms are at least 0, last_contact_ms and stabilize_ms at least 1")
        if self.demote_after_ms < self.stabilize_ms:
            raise ValueError(f"demote_after_ms is {self.demote_after_ms}, below stabilize_ms, {self.stabilize_ms}")
        self._check_policy()

    def _check_policy(self) -> None:
        target = len(self.configured)
        if target == 0:
            raise ValueError("no replica has the base role of a voter")
        if (self.min_sync is None) != (self.policy is PromotionPolicy.UNDER_REPLICATED):
            raise ValueError(f"min_sync is {self.min_sync} with policy {self.policy.value}")
        if self.min_sync is not None and not 1 <= self.min_sync <= target:
            raise ValueError(f"min_sync is {self.min_sync}, not 1 to {target}")
        observers = len(self.replicas) - target
        is_led = self.policy is PromotionPolicy.LEADER_IS_OBSERVER
        reason = self._led_by_observer(observers) if is_led else self._by_voters_in_sync(target, observers)
        if reason is not None:
            raise ValueError(f"{self.policy.value} can never act: {reason}")

    def _by_voters_in_sync(self, target: int, observers: int) -> str | None:
        """Return why a number of voters in sync can never be the reason for a promotion; None if it can."""
        wanted = target if self.min_sync is None else self.min_sync
        if wanted <= target // 2 + 1:
            return f"fewer than {wanted} voters in sync are no majority of {target}"
        return None if observers else "no replica has the base role of an observer"

    def _led_by_observer(self, observers: int) -> str | None:
        """Return why an observer that leads can never be the reason for the promotion of another one.

        An operator may have made it the only voter, so that no majority of the configured voters is needed.
        """
        if self.min_sync == 1:
            return "the observer that leads is one voter in sync"
        return None if observers > 1 else "the only observer leads then, and no other one can be promoted"

    @property
    def configured(self) -> frozenset[int]:
        """The ids of the replicas whose base role is voter."""
        return frozenset(each.id for each in self.replicas if each.role is BaseRole.VOTER)

    def replica_of(self, key: ReplicaKey) -> AutopilotReplica | None:
        """Return the replica of the spec with this id, and with this directory id unless the spec has none."""
        for each in self.replicas:
            if each.id == key.id and each.directory_id in (None, key.directory_id):
                return each
        return None
