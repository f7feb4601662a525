# SPDX-License-Identifier: Apache-2.0
"""What a leader knows of the reads that wait for a majority to confirm that it still leads.

A voter confirms a read if it answers an announcement that was sent after the read began, or if it has an entry that was
appended after that: in a pull protocol, a Fetch that merely arrives after it may have been sent before it. Numbers of
effects are in the order in which they were handed out, so comparing them tells what was sent after what.
"""

from collections import deque
from typing import NamedTuple

import attrs

from raftlog.voters.voter_set import ReplicaKey


class PendingRead(NamedTuple):
    """A read that is not confirmed yet.

    Attributes:
        number: that ``Raft.read_barrier`` returned.
        deadline_ms: when it ends without an answer.
        begun: a number: requests with higher ones were sent after the read, and after a record of this epoch was
            committed. None until one is.
        offset: the high watermark at that time, exclusive.
        log_end_offset: the end, exclusive, of the records that voters could have fetched before that time.
    """

    number: int
    deadline_ms: int
    begun: int | None = None
    offset: int = 0
    log_end_offset: int = 0


@attrs.define(eq=False)
class PendingReads:
    """The reads of one leadership.

    Attributes:
        pending: in the order of their numbers. Those that have begun come first, in the order of their offsets.
        next_timeout_ms: when the next of them may time out, or an earlier time; None if none waits.
        confirmed: by voter, the highest ``begun`` of the reads that it has confirmed, or a higher number.
    """

    pending: deque[PendingRead] = attrs.field(factory=deque)
    next_timeout_ms: int | None = None
    confirmed: dict[ReplicaKey, int] = attrs.field(factory=dict)

    @property
    def newest(self) -> int | None:
        """The highest ``begun`` of the reads; None if none waits for voters."""
        return next((each.begun for each in reversed(self.pending) if each.begun is not None), None)

    def add(self, read: PendingRead) -> None:
        """Let a read wait."""
        self.pending.append(read)
        known = self.next_timeout_ms
        self.next_timeout_ms = read.deadline_ms if known is None else min(known, read.deadline_ms)

    def take_timed_out(self, now_ms: int) -> list[PendingRead]:
        """Return the reads whose time is over, and forget them."""
        if self.next_timeout_ms is None or self.next_timeout_ms > now_ms:
            return []
        over = [each for each in self.pending if each.deadline_ms <= now_ms]
        self.pending = deque(each for each in self.pending if each.deadline_ms > now_ms)
        self.next_timeout_ms = min((each.deadline_ms for each in self.pending), default=None)
        return over

    def clear(self) -> None:
        """Forget who has confirmed what: no read waits."""
        self.confirmed.clear()
        self.next_timeout_ms = None

    def is_awaited(self, voter_key: ReplicaKey) -> bool:
        """Whether a voter has not confirmed the newest read."""
        newest = self.newest
        return newest is not None and self.confirmed.get(voter_key, 0) < newest

    def note_answer(self, voter_key: ReplicaKey, request_number: int) -> None:
        """Note that a voter has answered an announcement. It confirms the reads that began before that was sent."""
        self._confirm(voter_key, request_number - 1)

    def note_fetch(self, voter_key: ReplicaKey, end_offset: int) -> None:
        """Note that a voter has all records before an offset. It confirms the reads that began before some of them."""
        first = self.pending[0]
        if first.begun is None or first.log_end_offset >= end_offset:
            return
        for each in reversed(self.pending):
            if each.begun is not None and each.log_end_offset < end_offset:
                self._confirm(voter_key, each.begun)
                return

    def _confirm(self, voter_key: ReplicaKey, number: int) -> None:
        if self.pending:
            self.confirmed[voter_key] = max(number, self.confirmed.get(voter_key, 0))
