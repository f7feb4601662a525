# SPDX-License-Identifier: Apache-2.0
"""A result that is late, comes twice, or is of an effect that there never was, changes nothing (DECISIONS.md 61, R24).

Every kind of effect is covered: a new one must be carried out in one of the lives, or a test here fails.
"""

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, get_args

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.raft import Raft
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import (
    AppendOutcome,
    DeliverBatches,
    DeliverBootstrap,
    DeliverSnapshot,
    Effect,
    FlushLog,
    LogWork,
    ReadLog,
    SendRequest,
    StoreElectionState,
)
from raftlog.quorum.seam.log_view import LogView, control_record_view, log_view
from raftlog.quorum.seam.snapshot_effects import BeginSnapshot, FreezeSnapshot, ReadSnapshot, SnapshotChunk
from tests.quorum.driving.driven_replicas import Recorded
from tests.quorum.leading.leaders import ENDS, SlowDisk, fetch, leader_of
from tests.quorum.messages import (
    begin_quorum_epoch_request,
    begin_quorum_epoch_response,
    fetch_request,
    fetch_snapshot_request,
)
from tests.quorum.seam.lives import EFFECTS, LIVES, REPORTS, ReportedTwice, nothing_changes
from tests.quorum.single_replica import SingleReplica, replica_key

REPORTED: Final[frozenset[type[Effect]]] = frozenset(
    {
        StoreElectionState,
        *get_args(LogWork),
        ReadLog,
        ReadSnapshot,
        BeginSnapshot,
        FreezeSnapshot,
        DeliverBatches,
        DeliverSnapshot,
        DeliverBootstrap,
        SendRequest,
    }
)
"""The effects that have a result. Of the others there is nothing to report."""


def view(core: SingleReplica) -> LogView:
    """Return the view of a replica's log."""
    return log_view(core.log, control_record_view(core.machine))


ARGUMENTS: Final[Mapping[str, Callable[[Recorded], tuple[Any, ...]]]] = MappingProxyType(
    {
        "stored": lambda _: (),
        "log_changed": lambda core: (view(core),),
        "log_read": lambda _: (b"late",),
        "snapshot_read": lambda _: (SnapshotChunk(4, b"late"),),
        "snapshot_frozen": lambda _: (),
        "snapshot_refused": lambda _: ("late",),
        "delivery_closed": lambda core: (core.log.end_offset.offset,),
        "receive_response": lambda _: (begin_quorum_epoch_response(9, 3),),
        "request_failed": lambda _: (),
    }
)
"""By the input that reports a result: what is reported."""


@functools.cache
def lived(name: str) -> ReportedTwice:
    """Return a replica after its life, in which every result was reported twice."""
    return LIVES[name]()


@pytest.mark.parametrize("kind", EFFECTS)
def test_every_effect_is_carried_out_and_its_result_reported_twice(kind: type[Effect]) -> None:
    """The second report changed nothing: it was refused if the driver must know that it is one, or else ignored."""
    cores = list(map(lived, LIVES))
    assert any(kind in map(type, core.effects) for core in cores)
    assert any(kind in core.twice for core in cores) == (kind in REPORTED)


@pytest.mark.parametrize("kind", get_args(LogWork))
def test_every_change_of_the_log_is_refused_with_an_older_view(kind: type[Effect]) -> None:
    """By generation, flushed offset, or end: it may have records that are not there any more, at the same offsets."""
    assert any(kind in lived(name).outdated for name in LIVES)


# Numbers


def _open_numbers(core: Recorded) -> set[int]:
    """Return the numbers of the effects whose results are still awaited."""
    replica = core.raft._replica
    read = {each.delivery.number for each in replica.listeners.values() if each.delivery is not None}
    return {*replica.sent, *read}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("life", LIVES)
def test_a_report_of_another_effect_or_of_none_changes_nothing(life: str, report: str) -> None:
    """By whatever input it comes, with the number of an effect that is done, needs no report, or never was."""
    core = lived(life)
    last = max(each.number for each in core.effects)
    for number in sorted({-1, 0, *range(1, last + 2), 2**40} - _open_numbers(core)):
        with nothing_changes(core.raft), suppress(ValueError):
            getattr(Raft, report)(core.raft, number, *ARGUMENTS[report](core))


@pytest.mark.parametrize("number", [-1, 0, 2**40])
@pytest.mark.parametrize("name", ["effect_failed", "freeze_snapshot", "abandon_snapshot"])
def test_a_number_that_never_was_is_misuse(name: str, number: int) -> None:
    """A failure that is reported of no effect does not stop the replica; no snapshot is finished or removed."""
    core = leader_of((1, 2, 3))
    options = ("no disk",) if name == "effect_failed" else ()
    with pytest.raises(ValueError, match=str(number)), nothing_changes(core.raft):
        getattr(core.raft, name)(number, *options)
    assert core.raft.halt_reason is None


def test_any_number_that_was_given_may_be_reported_as_failed() -> None:
    """Also that of an append: the core does not keep the numbers of effects of which no result is reported."""
    core = leader_of((1, 2, 3))
    number = core.append(b"a").number
    core.raft.effect_failed(number, "no disk")
    assert core.raft.halt_reason == f"effect {number}: no disk"


# Results that come in a later epoch


def _leader_that_reads(kind: type[ReadLog] | type[ReadSnapshot]) -> SlowDisk:
    """Return a leader whose disk reads for a follower."""
    core = leader_of((1, 2, 3))
    fetch(core, replica_key(2), ENDS[3])
    core.take_snapshot(5, b"x")
    core.slow = kind
    if kind is ReadLog:
        core.request("", fetch_request(replica_key(2), 3, ENDS[1]), version=17)
    else:
        core.request("", fetch_snapshot_request(replica_key(2), 3, OffsetAndEpoch(5, 2)), version=1)
    return core


@pytest.mark.parametrize("kind", [ReadLog, ReadSnapshot])
def test_a_read_of_an_earlier_leadership_answers_no_one(kind: type[ReadLog] | type[ReadSnapshot]) -> None:
    """The Fetch that it was for has been answered, with the end of the leadership."""
    core = _leader_that_reads(kind)
    (read,) = core.held
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert isinstance(core.raft.role, Follower)
    assert len(core.take_responses()) == 2
    with nothing_changes(core.raft):
        if kind is ReadLog:
            core.raft.log_read(read.number, b"late")
        else:
            core.raft.snapshot_read(read.number, SnapshotChunk(4, b"late"))


def test_an_answer_to_a_request_of_an_earlier_epoch_is_ignored() -> None:
    """Also if it names a later epoch: what it says may be outdated, and the next answer will say it again."""
    core = leader_of((1, 2, 3))
    late = core.take_requests()
    assert late
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    for each in late:
        with nothing_changes(core.raft):
            core.raft.receive_response(each.number, begin_quorum_epoch_response(9, 3))
            core.raft.request_failed(each.number)


def test_a_flush_that_ends_after_the_leadership_commits_nothing() -> None:
    """It is reported in its turn, and the log is known to be flushed; but this replica does not count any more."""
    core = leader_of((1, 2, 3))
    fetch(core, replica_key(2), ENDS[3])
    core.slow = FlushLog
    core.append(b"a")
    core.sleep(25)
    fetch(core, replica_key(2), OffsetAndEpoch(9, 3))
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    assert [each.outcome for each in core.ended] == [AppendOutcome.UNKNOWN]
    mark = core.raft.high_watermark
    core.let_go()
    assert core.raft._replica.log.flushed_offset == 9
    assert (core.raft.high_watermark, len(core.ended), core.raft.status.leader_id) == (mark, 1, 2)


def test_election_states_are_stored_in_their_order() -> None:
    """The report of the second before the first would release messages that the first must not be forgotten for."""
    core = leader_of((1, 2, 3))
    core.slow = StoreElectionState
    core.request("", begin_quorum_epoch_request(2, 4), version=1)
    core.request("", begin_quorum_epoch_request(3, 5), version=1)
    first, second = core.held
    with pytest.raises(ValueError, match=f"effect {second.number} is not"), nothing_changes(core.raft):
        core.raft.stored(second.number)
    core.raft.stored(first.number)
    core.raft.stored(second.number)
    assert core.raft._replica.outbox.take()
