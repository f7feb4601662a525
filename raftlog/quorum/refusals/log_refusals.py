# SPDX-License-Identifier: Apache-2.0
"""Remembers what the log has refused: records of a leader that are bad, or anything for want of room on the disk.

The log is as it was, and so is the disk. A replica whose disk is full stays up: it votes and reads, fetches seldom, and
holds back from elections, since it could not write the record that starts an epoch.
"""

from typing import Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.refusals.pauses import doubled_pause_ms

STANDING_PAUSES: Final = 16
"""The longest pause before a replica whose disk is full stands again, in election timeouts."""


@attrs.define(eq=False)
class LogRefusals:
    """Refusals since the log has last taken records.

    Attributes:
        count: how many there were.
        reason: of the last one, or None.
        is_full: whether the last one was for want of room.
        pause_until_ms: monotonic time before which nothing is fetched.
        stand_ms: monotonic time before which no election is begun.
        appending: the number of the effect that appends what was fetched last in this role, or None.
    """

    count: int = attrs.field(default=0, init=False)
    reason: str | None = attrs.field(default=None, init=False)
    is_full: bool = attrs.field(default=False, init=False)
    pause_until_ms: int = attrs.field(default=0, init=False)
    stand_ms: int = attrs.field(default=0, init=False)
    appending: int | None = attrs.field(default=None, init=False)

    @property
    def is_of_bad_records(self) -> bool:
        """Whether the last refusal was not for want of room: what a leader has sent could not be taken."""
        return self.count > 0 and not self.is_full

    def refuse(self, reason: str, now_ms: int, config: QuorumConfig, *, is_full: bool) -> None:
        """Note a refusal. Fetching pauses for half a fetch timeout at most, so that the leader hears of this replica.

        Args:
            reason: why.
            now_ms: monotonic time.
            config: the timeouts.
            is_full: whether it was for want of room. Then elections pause too, and longer.
        """
        self.count += 1
        self.reason, self.is_full = reason, is_full
        longest_ms = config.fetch_timeout_ms // 2
        self.pause_until_ms = now_ms + doubled_pause_ms(self.count, config.retry_backoff_ms, longest_ms)
        if is_full:
            timeout_ms = config.election_timeout_ms
            self.stand_ms = now_ms + doubled_pause_ms(self.count, timeout_ms, STANDING_PAUSES * timeout_ms)

    def forget(self) -> None:
        """Note that the log has taken records: there is room, and what a leader sends is good."""
        self.count, self.reason, self.is_full, self.pause_until_ms, self.stand_ms = 0, None, False, 0, 0
