# SPDX-License-Identifier: Apache-2.0
"""How long a process holds back after its disk has had no room, or a snapshot that it fetched was refused.

Pauses double with each refusal, up to a limit, and begin anew once the log has taken records. A replica whose disk is
full stands for no election for a while, since it could not write the record that starts an epoch.

Source: DECISIONS.md 65.
"""

from typing import Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.records.messages.raft.election_messages import VoteRequest
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check

_STANDING_PAUSES: Final = 16
"""The longest pause before elections, in election timeouts."""


@attrs.define(eq=False)
class RefusalCheck:
    """The refusals in one run of a process.

    Args:
        ledger: of its directory.
        config: of the quorum.
    """

    _ledger: Ledger
    _config: QuorumConfig
    _count: int = attrs.field(default=0, init=False)
    _since_ms: int = attrs.field(default=0, init=False)
    _snapshot_reason: str | None = attrs.field(default=None, init=False)
    _snapshot_ms: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._ledger.refusals = self._ledger.refused_in_epoch = 0

    def noted(self, core_ms: int, snapshot_reason: str | None) -> bool:
        """Note what was refused by now; return whether the log has taken records since the last refusal, and only now.

        Args:
            core_ms: the time that the core was told last.
            snapshot_reason: why the last snapshot that was fetched was refused, as the process says.
        """
        before, self._count = self._count, self._ledger.refusals
        if self._count > before:
            self._since_ms = core_ms
        if snapshot_reason != self._snapshot_reason:
            self._snapshot_reason, self._snapshot_ms = snapshot_reason, core_ms
        return before > 0 and not self._count

    @property
    def longest_pause_until_ms(self) -> int:
        """Until when no election is begun after the last refusal, at most, in ms by the clock of the process."""
        return self._since_ms + _STANDING_PAUSES * self._config.election_timeout_ms if self._count else 0

    def sent(self, request: object, core_ms: int, snapshot_reason: str | None) -> None:
        """Check that a request does not come too soon after a refusal.

        Args:
            request: the message.
            core_ms: the time that the core was told last.
            snapshot_reason: as for ``noted``.
        """
        if not isinstance(request, VoteRequest | FetchRequest):
            return
        self.noted(core_ms, snapshot_reason)
        config, doubled, past_ms = self._config, 1 << max(self._count - 1, 0), core_ms - self._since_ms
        if isinstance(request, VoteRequest):
            pause_ms = config.election_timeout_ms * min(doubled, _STANDING_PAUSES)
        else:
            pause_ms = min(config.retry_backoff_ms * doubled, config.fetch_timeout_ms // 2)
            is_late = snapshot_reason is None or core_ms - self._snapshot_ms >= config.retry_backoff_ms
            check(is_late, "refusals-pause", "{}, refused at {}: {}", snapshot_reason, self._snapshot_ms, request)
        is_paused = self._count > 0 and past_ms < pause_ms
        check(not is_paused, "refusals-pause", "{} after {} refusals: {}", past_ms, self._count, request)
