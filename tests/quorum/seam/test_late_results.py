# SPDX-License-Identifier: Apache-2.0
"""A result that comes late changes nothing, whatever effect it is of (DECISIONS.md 61)."""

from collections.abc import Callable
from typing import Final

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import (
    AppendAsFollower,
    AppendAsLeader,
    Effect,
    EnterEpoch,
    FlushLog,
    ReadLog,
    SendRequest,
    StoreElectionState,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.log_view import LogView, control_record_view, log_view
from tests.quorum.driving.driven_replicas import ByHand, Recorded
from tests.quorum.leading.leaders import ENDS
from tests.quorum.messages import (
    begin_quorum_epoch_request,
    fetch_request,
    fetch_response,
    records_at,
    vote_response,
)
from tests.quorum.single_replica import replica_key


def view(core: Recorded) -> LogView:
    """Return the view of a replica's log."""
    return log_view(core.log, control_record_view(core.machine))


def leader_that_served_and_lost() -> Recorded:
    """Return a replica that led epoch 3, has served a Fetch, and follows the leader of epoch 4."""
    core = Recorded()
    core.sleep(1000)
    for _ in range(2):
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)
    core.append(b"a")
    core.sleep(25)
    core.request(None, fetch_request(replica_key(2), 3, ENDS[1]), version=17)
    core.request(None, begin_quorum_epoch_request(2, 4), version=1)
    (sent,) = core.take_requests()[-1:]
    core.respond(sent.number, fetch_response(4, 2, diverging=OffsetAndEpoch(5, 2)))
    (sent,) = core.take_requests()
    core.respond(sent.number, fetch_response(4, 2, records=records_at(5, 4, 2)))
    return core


def observed(core: Recorded) -> object:
    """Return all that a core knows, and forget its effects."""
    core.raft.take_effects()
    return repr(core.raft._replica)


LATE: Final[dict[type[Effect], Callable[[Recorded, int], object]]] = {
    StoreElectionState: lambda core, number: core.raft.stored(number),
    EnterEpoch: lambda core, number: core.raft.log_changed(number, view(core)),
    AppendAsLeader: lambda core, number: core.raft.log_changed(number, view(core)),
    AppendAsFollower: lambda core, number: core.raft.log_changed(number, view(core)),
    FlushLog: lambda core, number: core.raft.log_changed(number, view(core)),
    TruncateToEndOffset: lambda core, number: core.raft.log_changed(number, view(core)),
    ReadLog: lambda core, number: core.raft.log_read(number, b"late"),
    SendRequest: lambda core, number: core.raft.receive_response(number, fetch_response(9, 3)),
}
IGNORED = (ReadLog, SendRequest)


@pytest.mark.parametrize("kind", list(LATE))
def test_a_late_result_changes_nothing(kind: type[Effect]) -> None:
    """A second result of each effect of a kind: of a read or a request it is ignored, and else it is misuse."""
    core = leader_that_served_and_lost()
    unanswered = {each.number for each in core.requests}
    numbers = [each.number for each in core.effects if type(each) is kind and each.number not in unanswered]
    assert numbers
    before = observed(core)
    for number in numbers:
        if kind in IGNORED:
            LATE[kind](core, number)
        else:
            with pytest.raises(ValueError, match=f"effect {number} is not"):
                LATE[kind](core, number)
        assert observed(core) == before
        assert core.raft.take_effects() == []


def _older(now: LogView) -> list[LogView]:
    return [
        attrs.evolve(now, generation=now.generation - 1),
        attrs.evolve(now, flushed_offset=now.flushed_offset - 1),
        attrs.evolve(now, state=attrs.evolve(now.state, end_offset=now.state.end_offset - 1)),
    ]


def test_a_report_with_an_older_view_is_misuse() -> None:
    """A view that was made before a truncation may have records that are not there any more, at the same offsets."""
    disk = ByHand()
    core = Recorded(executor=disk)
    core.request(None, begin_quorum_epoch_request(2, 3), version=1)
    while not core.requests:
        disk.run()
        core.settle()
    (sent,) = core.take_requests()
    core.respond(sent.number, fetch_response(3, 2, records=records_at(5, 3, 2)))
    (flush,) = [each for each in core.effects if isinstance(each, FlushLog)]
    now = view(core)
    before = observed(core)
    for older in _older(now):
        with pytest.raises(ValueError, match="older than the last one"):
            core.raft.log_changed(flush.number, older)
        assert observed(core) == before
    core.raft.log_changed(flush.number, now)
    assert observed(core) != before
