# SPDX-License-Identifier: Apache-2.0
"""Pasts of quorums that ran in the simulator: what their disks had at some moments, and what was committed then."""

import random
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import LeaderChangeMessage, VotersRecord, read_control_record
from raftlog.records.messages.voters import voter_set
from raftlog.testing.simulator.choices import SeededChoices
from raftlog.testing.simulator.disks.simulated_log import SimulatedLog
from raftlog.testing.simulator.fault_plan import draw_fault_plan
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.simulation import Simulation
from tests.tools.auditing.proof.past import Files, Key, Past, Record, act

_EPOCHS: Final = 1_000_000
"""More than a schedule has: a record's number is made of its offset and epoch."""
_NOBODY: Final[tuple[Key, ...]] = ((0, 1),)
"""The first voters where the snapshot that names them was cleaned away: no replica, and none that is static."""


def pasts_of(seed: int, moments: int) -> Iterator[Past]:
    """Yield what is left of a simulated quorum that is stopped at some moments of its first seconds."""
    chance = random.Random(seed)
    plan = attrs.evolve(draw_fault_plan(chance), rot=0.0, kraft_version=1, upgrade_ms=0)
    simulation = Simulation(SeededChoices(chance), plan)
    for machine in simulation.machines.values():
        machine.start()
    simulation._begin_faults()
    choice = random.Random(seed)  # What is chosen of the directories does not change the schedule.
    for moment in range(1, moments + 1):
        simulation.timeline.run(moment * 400)
        yield _stopped(simulation, choice)


def _stopped(simulation: Simulation, choice: random.Random) -> Past:
    """Stop all machines, some by a power cut, and take some of the directories."""
    committed = {
        offset: batch.epoch
        for batch in simulation.history._committed
        for offset in range(batch.base_offset, batch.next_offset)
    }
    final = [_files(machine, committed, has_power=choice.random() < 0.7) for machine in simulation.machines.values()]
    for each in final:
        known = [at for at, record in enumerate(each.log) if committed.get(at) == record.epoch]
        if known and choice.random() < 0.3:
            act(each, known[-1])
    given = choice.sample(final, choice.randrange(1, len(final) + 1))
    states = [each.state for each in given if each.state is not None]
    epochs = [epoch for epoch, _ in states] + [each.log[-1].epoch for each in given if each.log]
    latest = max(epochs, default=-1)
    leader = next((leader for epoch, leader in sorted(states) if epoch == latest and leader >= 0), None)
    numbers = {_number(offset, epoch) for offset, epoch in committed.items()}
    return Past(given[0].first_voters, final, given, numbers, set(), is_honest=True, leader=leader)


def _number(offset: int, epoch: int) -> int:
    return offset * _EPOCHS + epoch


def _files(machine: Machine, committed: dict[int, int], *, has_power: bool) -> Files:
    directory = machine.directory
    log, state = directory.log, directory.election_state.state
    end = log.end_offset.offset if has_power else log.flushed_offset
    records = [Record(_number(offset, committed[offset]), committed[offset]) for offset in range(log.start_offset)]
    assert isinstance(log, SimulatedLog)
    for batch in log._batches:
        if batch.next_offset <= end:
            records += _records(batch)
    snapshots: list[tuple[int, int, tuple[Key, ...]]] = []
    first: tuple[Key, ...] = ()
    for snapshot_id, data in log._snapshots.items():
        named = (each.voters for batch in _batches(data) for each in _records(batch) if each.voters)
        voters: tuple[Key, ...] = next(named, ())
        if snapshot_id.offset == 0:
            first = voters
        elif snapshot_id.offset <= max(end, log.start_offset):
            snapshots.append((snapshot_id.offset, snapshot_id.epoch, voters))
    key = directory.identity.key
    assert key.directory_id is not None
    return Files(
        f"n{key.id}",
        (key.id, key.directory_id.int),
        records,
        log.start_offset,
        sorted(snapshots),
        None if state is None else (state.leader_epoch, state.leader_id),
        is_bootstrapped=bool(first),
        first_voters=first or _NOBODY,
        times={(end, epoch): _number(end - 1, epoch) for end, epoch, _ in snapshots},
    )


def _batches(data: bytes) -> Iterator[RecordBatch]:
    return (piece for piece in split(BufferSource(memoryview(data))) if isinstance(piece, RecordBatch))


def _records(batch: RecordBatch) -> list[Record]:
    epoch = batch.partition_leader_epoch
    found = [Record(_number(offset, epoch), epoch) for offset in range(batch.base_offset, batch.next_offset)]
    if batch.is_control:
        for index, record in enumerate(batch.records()):
            assert record.key is not None
            assert record.value is not None
            value = read_control_record(bytes(record.key), bytes(record.value)).value
            number = found[index].number
            if isinstance(value, VotersRecord):
                keys = sorted(voter_set(value).voter_keys)
                named = tuple((key.id, 0 if key.directory_id is None else key.directory_id.int) for key in keys)
                found[index] = Record(number, epoch, named)
            elif isinstance(value, LeaderChangeMessage):
                found[index] = Record(number, epoch, opens=True)
    return found
