# SPDX-License-Identifier: Apache-2.0
"""A driver does work for the disk one piece at a time, in order, on the threads of an executor, and stops cleanly."""

import concurrent.futures
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.disk_work import DiskStep, DiskWork
from raftlog.errors import StorageError, WorkUnderWayError
from raftlog.quorum.roles.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from raftlog.quorum.seam.effects import (
    AppendOutcome,
    Effect,
    EndAppend,
    EnterEpoch,
    Notice,
    NotifyLeaderChange,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)
from tests.quorum.driving.driven_replicas import ByHand, Recorded, some_input
from tests.quorum.messages import begin_quorum_epoch_request, vote_response
from tests.quorum.single_replica import MemoryElectionState

STEPS = 60


@pytest.fixture(scope="module")
def threads() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Two threads."""
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield executor


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_threads_change_nothing_but_the_time(threads: concurrent.futures.ThreadPoolExecutor, seed: int) -> None:
    """The same inputs give the same effects, log, election state and role, whether a call waits for the disk or not."""
    blocking, threaded = Recorded(), Recorded(executor=threads)
    for core in (blocking, threaded):
        core.wait()
        draw = random.Random(seed)
        for _ in range(STEPS):
            some_input(core, draw)
            core.wait()
    assert threaded.effects == blocking.effects
    assert threaded.raft.role == blocking.raft.role
    assert threaded.raft.halt_reason == blocking.raft.halt_reason
    assert threaded.stored == blocking.stored
    assert threaded.log.state == blocking.log.state
    assert [bytes(each.buffer) for each in threaded.log.batches()] == [
        bytes(each.buffer) for each in blocking.log.batches()
    ]


def _run_slowly(seed: int) -> Iterator[Recorded]:
    """Yield a replica after each input and each work of a disk that may be slow."""
    draw, disk = random.Random(seed), ByHand()
    core = Recorded(executor=disk)
    for _ in range(STEPS):
        if draw.random() < 0.5:
            disk.run()
            core.settle()
        else:
            some_input(core, draw)
        assert len(disk.waiting) <= 2
        yield core
    while disk.waiting:
        disk.run()
        core.settle()
    assert core.is_settled
    yield core


@given(st.integers(0, 2**32))
def test_a_log_is_never_in_an_epoch_that_the_election_state_does_not_know(seed: int) -> None:
    """However slow the disk is; and in the end all work is done, unless the replica has halted."""
    for core in _run_slowly(seed):
        stored = 0 if core.stored is None else core.stored.leader_epoch
        assert core.log.last_fetched_epoch <= max(2, stored)
        assert core.log.state.high_watermark <= core.log.end_offset.offset


def test_the_slow_runs_reach_every_role_and_effect() -> None:
    """The properties above would prove nothing of what their runs never reach."""
    roles, effects = set(), set()
    for seed in range(150):
        core = None
        for core in _run_slowly(seed):
            roles.add(type(core.raft.role))
        assert core is not None
        effects |= {type(each) for each in core.effects}
    assert roles == {Unattached, Prospective, Candidate, Leader, Follower, Resigned}
    assert effects >= {EnterEpoch, TruncateToEndOffset, EndAppend, StoreElectionState, SendResponse}


def _leader(disk: ByHand) -> Recorded:
    """Return a leader whose disk has nothing to do."""
    core = Recorded(executor=disk)
    core.sleep(1000)
    for _ in range(2):
        _work(core, disk)
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    _work(core, disk)
    assert isinstance(core.raft.role, Leader)
    return core


def _work(core: Recorded, disk: ByHand) -> None:
    while disk.waiting:
        disk.run()
        core.settle()


def test_work_on_the_log_waits_for_the_election_state_before_it() -> None:
    """The vote and the leader first: after a crash in between, the replica would seem to have forgotten its vote."""
    disk = ByHand()
    core = Recorded(executor=disk)
    core.sleep(1000)
    for _ in range(2):
        _work(core, disk)
        for each in core.take_requests():
            core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    before = core.log.last_fetched_epoch
    assert isinstance(core.raft.role, Leader)
    assert any(isinstance(each, EnterEpoch) for each in core.effects)
    assert len(disk.waiting) == 1  # The leader's election state; the log has not begun.
    assert core.log.last_fetched_epoch == before


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_effects_are_watched_before_they_are_carried_out(seed: int) -> None:
    """Also if the disk is as fast as a call: an election state is not stored yet, and a message not sent."""
    core, draw = Recorded(), random.Random(seed)
    watched: list[Effect] = []

    def watch(effect: Effect) -> None:
        if isinstance(effect, StoreElectionState):
            assert core.stored != effect.state
        elif isinstance(effect, SendRequest):
            assert effect not in core.requests
        watched.append(effect)

    core._watch = watch
    for _ in range(STEPS):
        some_input(core, draw)
    assert watched


def test_an_election_state_is_written_beside_work_on_the_log() -> None:
    """A flush that takes long delays no vote."""
    disk = ByHand()
    core = _leader(disk)
    core.append(b"a")
    core.sleep(25)
    assert len(disk.waiting) == 1
    core.request(None, begin_quorum_epoch_request(2, core.raft.role.epoch + 1), version=1)
    assert len(disk.waiting) == 2
    flush, store = disk.waiting
    disk.waiting.clear()
    store()
    core.settle()
    assert core.stored is not None
    assert core.stored.leader_id == 2
    assert not core.is_settled
    flush()
    core.settle()
    assert core.is_settled


@pytest.mark.parametrize("failing", ["log", "election state"])
def test_a_failure_of_the_disk_stops_the_replica(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was queued after it is dropped, and appends end."""
    disk = ByHand()
    core = _leader(disk)
    appended = core.append(b"a")

    def fail(*_: object) -> object:
        raise StorageError("disk", "sync", "EIO")

    if failing == "log":
        monkeypatch.setattr(core.log, "prepare_flush", fail)
        core.sleep(25)
    else:
        monkeypatch.setattr(MemoryElectionState, "prepare_write", fail)
        core.request(None, begin_quorum_epoch_request(2, core.raft.role.epoch + 1), version=1)
    assert core.raft.halt_reason is not None
    assert "EIO" in core.raft.halt_reason
    assert core.ended[-1].number == appended.number
    assert core.ended[-1].outcome is not AppendOutcome.COMMITTED
    assert core.is_settled


class EmbedderError(Exception):
    """A bug of an embedder."""


class Raising(Recorded):
    """A replica whose network and application raise at times, after they have done what they were asked to do."""

    def __init__(self, seed: int) -> None:
        self._draw, self.raised = random.Random(seed), 0
        super().__init__()

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Collect a message."""
        super().send(effect)
        self._raise_at_times()

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Keep what the application is told."""
        super().tell(effect)
        self._raise_at_times()

    def _raise_at_times(self) -> None:
        if self._draw.random() < 0.3:
            self.raised += 1
            raise EmbedderError

    def settle(self) -> None:
        """Go on after an error: nothing is settled before that."""
        while True:
            try:
                super().settle()
            except EmbedderError:
                continue
            return


@given(st.integers(0, 2**32))
def test_an_embedder_that_raises_loses_no_effect(seed: int) -> None:
    """The next call goes on where the exception came out, so the same inputs have the same effects."""
    sound, raising = Recorded(), Raising(seed)
    for core in (sound, raising):
        draw = random.Random(seed)
        for _ in range(STEPS):
            some_input(core, draw)
            assert core.is_settled
    assert raising.effects == sound.effects
    assert raising.raft.status == sound.raft.status
    assert (raising.ended, raising.log.state) == (sound.ended, sound.log.state)


def test_an_effect_that_was_not_carried_out_is_not_settled() -> None:
    """A leader's first answer raises, and the second one waits."""

    class RaisesOnce(Recorded):
        is_sound = True

        def send(self, effect: SendRequest | SendResponse) -> None:
            super().send(effect)
            if not self.is_sound:
                self.is_sound = True
                raise EmbedderError

    core = RaisesOnce()
    core.is_sound = False
    with pytest.raises(EmbedderError):
        core.sleep(1000)
    sent = len(core.requests)
    assert not core.is_settled
    core.settle()
    assert len(core.requests) > sent
    assert core.is_settled


@pytest.mark.parametrize("refused", ["log", "election state"])
def test_work_that_the_executor_does_not_take_stops_the_replica(refused: str) -> None:
    """It will never be reported, and all that follows would wait for it."""
    disk = ByHand()
    core = _leader(disk)
    appended = core.append(b"a")

    def refuse(_: object) -> None:
        raise EmbedderError

    disk.submit = refuse  # type: ignore[method-assign]
    with pytest.raises(EmbedderError):
        _have_worked_on(core, refused)
    core.settle()
    assert core.raft.halt_reason is not None
    assert "EmbedderError" in core.raft.halt_reason
    assert core.ended[-1].number == appended.number
    assert core.is_settled


def _have_worked_on(core: Recorded, what: str) -> None:
    if what == "log":
        core.sleep(25)
    else:
        core.request(None, begin_quorum_epoch_request(2, core.raft.role.epoch + 1), version=1)


def test_an_interrupt_while_the_disk_works_stops_the_replica() -> None:
    """What is on the disk then is not known."""
    disk = ByHand()
    core = _leader(disk)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    core.append(b"a")
    prepare = core.log.prepare_flush
    core.log.prepare_flush = lambda: prepare().precede(DiskStep(interrupt))  # type: ignore[method-assign]
    core.sleep(25)
    with pytest.raises(KeyboardInterrupt):
        disk.run()
    with pytest.raises(KeyboardInterrupt):
        core.settle()
    core.settle()
    assert core.raft.halt_reason is not None
    assert "KeyboardInterrupt" in core.raft.halt_reason
    assert core.is_settled


def test_no_work_begins_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log does not enter an epoch whose leader could not be stored, though the work for that was queued already."""
    disk = ByHand()
    core = Recorded(executor=disk)
    core.sleep(1000)
    _work(core, disk)
    for each in core.take_requests():
        core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    _work(core, disk)

    def fail() -> object:
        raise StorageError("disk", "sync", "EIO")

    def prepare(*_: object) -> DiskWork[Any]:
        return DiskWork([DiskStep(fail)], lambda: None)

    monkeypatch.setattr(MemoryElectionState, "prepare_write", prepare)
    for each in core.take_requests():
        core.respond(each.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))
    assert isinstance(core.raft.role, Leader)
    assert any(isinstance(each, EnterEpoch) for each in core.effects)
    (storing,) = disk.waiting
    disk.waiting.clear()
    storing()
    core.settle()
    assert core.raft.halt_reason is not None
    assert not disk.waiting
    assert core.is_settled


def test_a_call_out_of_the_network_is_carried_out_after_what_is_under_way() -> None:
    """A network that delivers at once may answer within ``send``: the pre-votes go out before the votes."""
    core, order = Recorded(), []

    def send(effect: SendRequest | SendResponse) -> None:
        order.append(effect.number)
        if isinstance(effect, SendRequest) and len(order) == 1:
            core.respond(effect.number, vote_response(is_granted=True, epoch=core.raft.role.epoch))

    core.send = send  # type: ignore[method-assign]
    core.sleep(1000)
    assert isinstance(core.raft.role, Candidate)
    assert len(order) == 4
    assert order == sorted(order)


@pytest.mark.parametrize("has_run", [False, True])
def test_a_driver_stops_in_the_middle_of_work(has_run: bool) -> None:
    """Work that has not begun is cancelled, and work that has run is finished; the appends end, unknown."""
    disk = ByHand()
    core = _leader(disk)
    appended = core.append(b"a")
    core.sleep(25)
    flushed = core.log.flushed_offset
    if has_run:
        disk.run()
    core.stop()
    core.stop()
    assert core.is_settled
    assert core.ended == [EndAppend(appended.number, appended.last_offset, AppendOutcome.UNKNOWN)]
    assert core.log.flushed_offset == (core.log.end_offset.offset if has_run else flushed)
    core.sleep(10_000)
    assert core.is_settled
    core.log.flush()


def test_a_driver_does_not_stop_while_its_work_is_being_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller waits for its threads, and stops again."""
    disk = ByHand()
    core = _leader(disk)
    core.append(b"a")
    refused: list[WorkUnderWayError] = []

    def stop_meanwhile() -> None:
        try:
            core.stop()
        except WorkUnderWayError as error:
            refused.append(error)

    prepare = core.log.prepare_flush
    monkeypatch.setattr(core.log, "prepare_flush", lambda: prepare().precede(DiskStep(stop_meanwhile)))
    core.sleep(25)
    disk.run()
    assert len(refused) == 1
    core.stop()
    assert core.is_settled
    assert core.log.flushed_offset == core.log.end_offset.offset
