# SPDX-License-Identifier: Apache-2.0
"""What a replica knows of its snapshots in any role: which must stay, what is being made of them, what was refused."""

import enum
from typing import Final, NamedTuple

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.refusals.pauses import doubled_pause_ms
from raftlog.voters.voter_set import ReplicaKey

MAX_PINS: Final = 1000
"""How many pins may be held. The one that was prolonged longest ago makes room for one more."""

MAX_PIN_MS: Final = 3_600_000
"""How long a pin may be held without a pause, however often it is prolonged."""


class _Pin(NamedTuple):
    """A snapshot that must not be deleted for a while, and how long its owner is expected to ask for more of it."""

    snapshot_id: OffsetAndEpoch
    since_ms: int
    until_ms: int

    def is_in_force(self, now_ms: int) -> bool:
        """Whether its owner has not paused, and has not held it for too long."""
        return now_ms < min(self.until_ms, self.since_ms + MAX_PIN_MS)


@attrs.define(eq=False)
class Pins:
    """Keeps snapshots from being cleaned away while replicas on the network fetch them.

    A pin has an owner, and holds one snapshot until a time, because its owner may be gone without a word.
    """

    _held: dict[ReplicaKey, _Pin] = attrs.field(factory=dict, init=False)

    def hold(self, owner: ReplicaKey, snapshot_id: OffsetAndEpoch, now_ms: int, until_ms: int) -> None:
        """Keep a snapshot, in place of another one, until a time.

        A call before that prolongs it, up to ``MAX_PIN_MS`` after the first. Then it holds nothing more until its owner
        pauses: a call before that does not begin anew, or one owner could keep the log from being cleaned for ever.
        """
        before = self._held.pop(owner, None)
        is_prolonged = before is not None and before.snapshot_id == snapshot_id and now_ms < before.until_ms
        since_ms = before.since_ms if before is not None and is_prolonged else now_ms
        if len(self._held) >= MAX_PINS:
            del self._held[next(iter(self._held))]
        self._held[owner] = _Pin(snapshot_id, since_ms, until_ms)

    def allow(self, start: OffsetAndEpoch, now_ms: int) -> bool:
        """Whether the log may start at a snapshot, so that all older ones are deleted: none of them is held."""
        self._held = {owner: pin for owner, pin in self._held.items() if now_ms < pin.until_ms}
        return all(start <= pin.snapshot_id for pin in self._held.values() if pin.is_in_force(now_ms))

    def __len__(self) -> int:
        return len(self._held)


class FetchStep(enum.Enum):
    """What is being done to a snapshot that is fetched."""

    BEGIN = "begin"
    APPEND = "append"
    APPEND_LAST = "append the last chunk"
    FREEZE = "freeze"
    RESTART = "restart the log"


class FetchedSnapshotStep(NamedTuple):
    """A step that was handed to the disk.

    Attributes:
        number: of the effect.
        step: what it does.
    """

    number: int
    step: FetchStep


class SnapshotCreation(NamedTuple):
    """A snapshot that the application writes.

    Attributes:
        number: that the application knows it by.
        snapshot_id: end offset (exclusive) and epoch.
        is_freezing: whether the application has written all of it.
    """

    number: int
    snapshot_id: OffsetAndEpoch
    is_freezing: bool = False


@attrs.define(eq=False)
class SnapshotWork:
    """The state of a replica's snapshots.

    Attributes:
        pins: the snapshots that replicas are fetching.
        under_way: what the disk is doing to the snapshot that is fetched, until it is reported.
        refusals: how many fetched snapshots in a row were refused.
        refusal_reason: why the last one was refused, or None.
        pause_until_ms: monotonic time before which nothing is fetched, because a snapshot was refused.
        creation: the snapshot that the application writes, or None.
        cleaning: the number of the effect that cleans the log, until it is reported.
        clean_ms: monotonic time at which the log is cleaned next.
    """

    pins: Pins = attrs.field(factory=Pins, init=False)
    under_way: FetchedSnapshotStep | None = attrs.field(default=None, init=False)
    refusals: int = attrs.field(default=0, init=False)
    refusal_reason: str | None = attrs.field(default=None, init=False)
    pause_until_ms: int = attrs.field(default=0, init=False)
    creation: SnapshotCreation | None = attrs.field(default=None, init=False)
    cleaning: int | None = attrs.field(default=None, init=False)
    clean_ms: int

    def refuse(self, reason: str, now_ms: int, first_pause_ms: int, longest_pause_ms: int) -> None:
        """Note that a fetched snapshot was refused, and pause: twice as long each time, up to a limit.

        Args:
            reason: why.
            now_ms: monotonic time.
            first_pause_ms: after the first refusal; at least 1 ms is waited.
            longest_pause_ms: after any.
        """
        self.refusals += 1
        self.refusal_reason = reason
        self.pause_until_ms = now_ms + doubled_pause_ms(self.refusals, first_pause_ms, longest_pause_ms)

    def accept(self) -> None:
        """Note that a fetched snapshot is in place."""
        self.refusals, self.refusal_reason, self.pause_until_ms = 0, None, 0
