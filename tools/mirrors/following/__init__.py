# SPDX-License-Identifier: Apache-2.0
"""Whether consumer groups can follow to a mirror and back, and whether its flow is alive. Pure: no files are read.

``check_checkpoints`` judges what a group would use, ``check_positions`` does so where offsets are those of the source,
``fail_over`` and ``fail_back`` count what it reads twice or misses, ``heartbeat_gaps`` says when a flow stood still,
``find_cycles`` and ``find_unpaired`` compare names.
"""

from raftlog.tools.mirrors.following.checkpoints import check_checkpoints, check_positions
from raftlog.tools.mirrors.following.group_moves import (
    GroupMove,
    MirrorCounts,
    OffsetReset,
    PositionOrigin,
    fail_back,
    fail_over,
)
from raftlog.tools.mirrors.following.group_offsets import (
    GroupCheckpoint,
    GroupCommit,
    GroupEvidence,
    MirroredRecord,
    MirroredRecords,
    commits_in_force,
)
from raftlog.tools.mirrors.following.heartbeats import FlowSpan, StoredHeartbeat, flow_spans, heartbeat_gaps
from raftlog.tools.mirrors.following.mirror_findings import MirrorFinding
from raftlog.tools.mirrors.following.topic_pairs import ClusterTopics, MirrorFlow, find_cycles, find_unpaired

__all__ = [
    "ClusterTopics",
    "FlowSpan",
    "GroupCheckpoint",
    "GroupCommit",
    "GroupEvidence",
    "GroupMove",
    "MirrorCounts",
    "MirrorFinding",
    "MirrorFlow",
    "MirroredRecord",
    "MirroredRecords",
    "OffsetReset",
    "PositionOrigin",
    "StoredHeartbeat",
    "check_checkpoints",
    "check_positions",
    "commits_in_force",
    "fail_back",
    "fail_over",
    "find_cycles",
    "find_unpaired",
    "flow_spans",
    "heartbeat_gaps",
]
