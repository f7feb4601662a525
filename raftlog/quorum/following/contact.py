# SPDX-License-Identifier: Apache-2.0
"""Notes that the leader was heard from, so that this replica begins no election for a while.

Source: FollowerState#resetFetchTimeoutForSuccessfulFetch.
"""

import attrs

from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Follower


def note_success(replica: LocalReplica, role: Follower) -> None:
    """Note that a Fetch, or a FetchSnapshot, has succeeded."""
    deadline = replica.now_ms + replica.config.fetch_timeout_ms
    replica.role = attrs.evolve(role, fetch_deadline_ms=deadline, has_fetched=True)
