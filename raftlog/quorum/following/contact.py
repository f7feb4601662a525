# SPDX-License-Identifier: Apache-2.0
"""Notes that the leader was heard from, so that this replica begins no election for a while.

Source: FollowerState#resetFetchTimeoutForSuccessfulFetch.
"""

from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Follower


def note_success(replica: LocalReplica, role: Follower) -> None:
    """Note that a Fetch, or a FetchSnapshot, has succeeded."""
    replica.role = role.after_contact(replica.now_ms + replica.config.fetch_timeout_ms)
