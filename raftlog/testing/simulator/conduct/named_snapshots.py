# SPDX-License-Identifier: Apache-2.0
"""Whether a replica follows a snapshot that its leader names in place of records.

It fetches that, or restarts at it if it has it, or truncates its log, which has diverged. If it does none of these, the
leader names the same one again and again, until it writes a later one.
"""

from typing import Final

import attrs

from raftlog.records.messages.raft.fetch_messages import FetchResponse, FetchSnapshotRequest
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check

MOST_NAMED: Final = 10
"""So often a leader names a snapshot in a row to a replica whose log stays as it is."""


@attrs.define(eq=False)
class NamedSnapshotCheck:
    """What leaders have named to one process.

    Args:
        ledger: of its directory.
    """

    _ledger: Ledger
    _named: tuple[int, ...] = attrs.field(default=(), init=False)
    _count: int = attrs.field(default=0, init=False)

    def sent(self, request: object) -> None:
        """Note a request: the process has begun to fetch a snapshot."""
        if isinstance(request, FetchSnapshotRequest):
            self._count = 0

    def answered(self, response: object, *, is_refused: bool) -> None:
        """Check an answer to a Fetch.

        Args:
            response: the message.
            is_refused: whether the disk has refused what was named.
        """
        if not isinstance(response, FetchResponse) or not response.responses or not response.responses[0].partitions:
            return
        ledger, answer = self._ledger, response.responses[0].partitions[0]
        snapshot_id, before = answer.snapshot_id, self._named
        self._named = snapshot_id.end_offset, snapshot_id.epoch, ledger.start_offset, ledger.end_offset
        is_named = snapshot_id.end_offset >= 0 and not is_refused and not ledger.refusals
        self._count = self._count + 1 if is_named and self._named == before else 0
        is_followed = self._count < MOST_NAMED
        check(is_followed, "named-snapshots-are-followed", "{} is named {} again", ledger.key, snapshot_id)
