# SPDX-License-Identifier: Apache-2.0
"""Truncations that a leader asks for, at, below and above what is committed."""

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.effects import FlushLog
from raftlog.records.messages.raft.fetch_messages import FetchRequest
from tests.quorum.listening.following_core import EPOCH, LEADER, fetched, follower
from tests.quorum.messages import fetch_response
from tests.quorum.single_replica import SingleReplica


def truncate(core: SingleReplica, end_offset: int) -> None:
    """Let the leader answer that epoch 1 ends at an offset, exclusive."""
    sent = [each for each in core.take_requests() if isinstance(each.message, FetchRequest)][-1]
    core.respond(sent.number, fetch_response(EPOCH, LEADER, diverging=OffsetAndEpoch(end_offset, 1)))


@pytest.mark.parametrize(
    ("high_watermark", "end_offset", "left", "halt_reason"),
    [
        (2, 1, 4, "leader 2 asks to truncate to 1, but 2 is committed"),
        (2, 2, 2, None),
        (2, 3, 2, None),
        (3, 3, 4, "effect N: leader 2 asks to truncate to 3: TruncationBelowHighWatermarkError: a truncation to 2, "),
        (3, 4, 4, None),
    ],
)
def test_no_committed_record_is_dropped(
    high_watermark: int, end_offset: int, left: int, halt_reason: str | None
) -> None:
    """The log has batches at 0 and 2. Where a cut inside a batch would drop committed records, the leader is named."""
    core = follower()
    fetched(core, 0, high_watermark)
    truncate(core, end_offset)
    assert core.log.end_offset.offset == left
    if halt_reason is None:
        assert core.raft.halt_reason is None
    else:
        number = core.raft._replica.log_work[0] if core.raft._replica.log_work else 0
        assert (core.raft.halt_reason or "").startswith(halt_reason.replace("N", str(number)))


def test_another_failure_is_not_blamed_on_a_truncation() -> None:
    """The flush after it has failed for a reason of its own."""
    core = follower()
    fetched(core, 0, 2)
    truncate(core, 2)
    number = core.raft._replica.outbox.on_log(FlushLog).number
    core.raft.effect_failed(number, "input/output error")
    assert core.raft.halt_reason == f"effect {number}: input/output error"
