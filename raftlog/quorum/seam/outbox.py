# SPDX-License-Identifier: Apache-2.0
"""Collects the effects of the consensus core, and holds back messages until the election state is durable.

A replica must not promise anything that it may forget: no vote, no new epoch and no leader. So a message waits for all
election states that were handed out before it, and so does what listeners are told of leaders.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from raftlog.invariants import invariant
from raftlog.quorum.seam.effects import (
    Destination,
    Effect,
    HeldBack,
    LogWork,
    Notice,
    NotifyLeaderChange,
    RaiseHighWatermark,
    ReadLog,
    SendRequest,
    SendResponse,
    StoreElectionState,
)
from raftlog.quorum.seam.snapshot_effects import SnapshotEffect
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.raft.raft_messages import RaftRequest, RaftResponse

MAX_HELD_MESSAGES: Final = 1000
"""How many messages may be held back. While they are, further requests are refused (``dispatch.handle_request``)."""

OnLog = TypeVar("OnLog", bound=LogWork | ReadLog | RaiseHighWatermark | SnapshotEffect)


@attrs.define(eq=False)
class Outbox:
    """Effects in the order in which they were asked for, except that messages may be held back."""

    _last_number: int = 0
    _ready: list[Effect] = attrs.field(factory=list)
    _held: deque[tuple[int, HeldBack]] = attrs.field(factory=deque)
    _unstored: deque[int] = attrs.field(factory=deque)

    def store(self, state: QuorumStateData) -> int:
        """Ask for an election state to be made durable, and return the number of the effect."""
        effect = StoreElectionState(self.new_number(), state)
        self._ready.append(effect)
        self._unstored.append(effect.number)
        return effect.number

    def on_log(self, make: Callable[[int], OnLog]) -> OnLog:
        """Ask for something to be done to the log, and return the effect, which is made from its number."""
        effect = make(self.new_number())
        self._ready.append(effect)
        return effect

    def request(self, destination: Destination, message: RaftRequest) -> int:
        """Ask for a request to be sent, and return the number of the effect."""
        effect = SendRequest(self.new_number(), destination, message)
        self._send(effect)
        return effect.number

    def respond(self, token: object, message: RaftResponse) -> None:
        """Ask for a request to be answered."""
        self._send(SendResponse(self.new_number(), token, message))

    def refuse(self, token: object, message: RaftResponse) -> None:
        """Ask for a request to be answered at once, with an error that says nothing of this replica's state."""
        self._ready.append(SendResponse(self.new_number(), token, message))

    @property
    def is_full(self) -> bool:
        """Whether so many messages are held back that no more requests should be handled."""
        return len(self._held) >= MAX_HELD_MESSAGES

    @property
    def is_holding(self) -> bool:
        """Whether any message is held back."""
        return bool(self._held)

    def new_number(self) -> int:
        """Return a number for what is no effect yet."""
        self._last_number += 1
        return self._last_number

    def check_handed_out(self, number: int) -> None:
        """Check that a number is one of those that were given so far.

        Raises:
            ValueError: it was never given.
        """
        if not 0 < number <= self._last_number:
            raise ValueError(f"there was no effect {number}")

    def tell(self, effect: Notice | SnapshotEffect) -> None:
        """Hand out an effect that has the number of something that was asked for before, such as an append."""
        self._ready.append(effect)

    def tell_when_stored(self, effect: NotifyLeaderChange) -> None:
        """Tell the application something that the replica must not forget, since the application may act on it."""
        self._send(effect)

    def stored(self, number: int) -> None:
        """Note that an election state is durable, and release the messages that waited for it.

        Raises:
            ValueError: it is not the number of the oldest state that is not stored yet.
        """
        if not self._unstored or self._unstored[0] != number:
            raise ValueError(f"effect {number} is not the election state to be stored next: {list(self._unstored)}")
        self._unstored.popleft()
        while self._held and self._held[0][0] <= number:
            self._ready.append(self._held.popleft()[1])
        waits_for = self._held[0][0] if self._held else number + 1
        invariant(waits_for > number, "outbox: stored {}, but a message still waits for {}", number, waits_for)

    def take(self) -> list[Effect]:
        """Return the effects that may be carried out, and forget them."""
        taken, self._ready = self._ready, []
        return taken

    def discard_messages(self) -> None:
        """Forget the messages that are held back, because the state that they wait for will not be durable."""
        self._held.clear()

    def _send(self, effect: HeldBack) -> None:
        if self._unstored:
            self._held.append((self._unstored[-1], effect))
        else:
            self._ready.append(effect)
