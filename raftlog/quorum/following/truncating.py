# SPDX-License-Identifier: Apache-2.0
"""Drops records, and epochs without records, that the leader's log does not have."""

from raftlog.log.decisions import truncation_offset
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.following.contact import note_success
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.responses import ResponseOutcome
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import TruncateToEndOffset


def truncate(replica: LocalReplica, role: Follower, common: OffsetAndEpoch) -> ResponseOutcome:
    """Drop what diverges. A leader that asks for committed records to be dropped must not be followed.

    A log drops whole batches, and only it knows where they begin. If it refuses, the halt says what was asked for.

    Args:
        replica: this one.
        role: its role, which is kept.
        common: the leader's last epoch not above this log's last one, and where it ends in the leader's log, exclusive.
    """
    end_offset, least = truncation_offset(replica.log.state, common), replica.least_end_offset
    asked = f"leader {role.leader.id} asks to truncate to {end_offset}"
    if end_offset < least:
        replica.halt(f"{asked}, but {least} is committed")
        return ResponseOutcome.FAILED
    replica.truncation = (replica.work_on_log(lambda number: TruncateToEndOffset(number, common)), asked)
    note_success(replica, role)
    return ResponseOutcome.DONE
