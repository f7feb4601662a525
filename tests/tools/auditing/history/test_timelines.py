# SPDX-License-Identifier: Apache-2.0
"""Timelines of voters and epochs, merged over logs, snapshots and replicas."""

import itertools

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.records.messages.voters import voters_record
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.timelines import VoterChange, epoch_timeline, voter_timeline
from raftlog.voters.voter_set import VoterSet
from tests.tools.auditing.made_quorum import START_MS, MadeLog, histories, voter, voters


def in_force(changes: list[VoterChange], offset: int) -> VoterSet | None:
    """The last set at or below an offset."""
    known = [change.voters for change in changes if change.offset <= offset]
    return known[-1] if known else None


def part(evidence: PartitionEvidence, start: int, end: int, node: str) -> PartitionEvidence:
    """The evidence of a replica that deleted everything below an offset, and never had anything from another one on."""
    place = attrs.evolve(evidence.place, log_directory=node)

    def cut(file: FileEvidence) -> FileEvidence:
        task = attrs.evolve(file.task, place=place, path=file.task.path.replace("n1/", f"{node}/"))
        if file.task.snapshot_id is not None:
            return attrs.evolve(file, task=task)
        controls = tuple(seen for seen in file.controls if start <= seen.offset < end)
        epochs = tuple(
            attrs.evolve(
                run,
                start_offset=max(run.start_offset, start),
                end_offset=min(run.end_offset, end),
                opens_with_leader=run.opens_with_leader and run.start_offset >= start,
                timestamp=START_MS + max(run.start_offset, start),
            )
            for run in file.epochs
            if run.start_offset < end and run.end_offset > start
        )
        assert file.extent is not None
        extent = attrs.evolve(
            file.extent, start_offset=start, end_offset=end, first_epoch=epochs[0].epoch, last_epoch=epochs[-1].epoch
        )
        task = attrs.evolve(task, base_offset=start)
        return attrs.evolve(file, task=task, controls=controls, epochs=epochs, extent=extent)

    def is_kept(file: FileEvidence) -> bool:
        return file.task.snapshot_id is None or start <= file.task.snapshot_id.offset <= end

    return PartitionEvidence(place, tuple(cut(file) for file in evidence.files if is_kept(file)))


@given(histories())
def test_the_set_at_each_offset(log: MadeLog) -> None:
    """At each offset the timeline has the set that the records up to there name; the last one is in force."""
    changes = voter_timeline([log.evidence()])
    expected: VoterSet | None = None
    named = {seen.offset: seen.read().value for seen in log.controls}
    for offset in range(log.end_offset):
        value = named.get(offset)
        if value is not None and hasattr(value, "voters") and not hasattr(value, "leader_id"):
            expected = next(change.voters for change in changes if change.offset == offset)
            assert voters_record(expected) == value
        if expected is not None:
            assert in_force(changes, offset) == expected
    assert changes[-1].voters == expected
    assert [(change.epoch, change.offset) for change in changes] == sorted(
        (change.epoch, change.offset) for change in changes
    )


@given(histories(), st.data())
def test_replicas_complete_each_other(log: MadeLog, data: st.DataObject) -> None:
    """A log that is divided between two replicas gives the timelines of the whole."""
    whole = log.evidence()
    boundaries = sorted({0, *(seen.batch_offset for seen in log.controls), log.end_offset} - {0, log.end_offset})
    if not boundaries:
        return
    middle = data.draw(st.sampled_from(boundaries))
    parts = [part(whole, 0, middle, "a"), part(whole, middle, log.end_offset, "b")]
    order = data.draw(st.permutations(parts))

    def outline(changes: list[VoterChange]) -> list[tuple[int, int, VoterSet]]:
        return [(change.offset, change.epoch, change.voters) for change in changes]

    assert outline(voter_timeline(order)) == outline(voter_timeline([whole]))
    expected = [attrs.evolve(lead, seen_in=()) for lead in epoch_timeline([whole])]
    found = [attrs.evolve(lead, seen_in=()) for lead in epoch_timeline(order)]
    assert found == expected


@given(histories())
def test_epochs(log: MadeLog) -> None:
    """Epochs are adjacent, each from its LeaderChange on, and each lasts until the next one starts."""
    leads = epoch_timeline([log.evidence()])

    assert leads[0].start_offset == 0
    assert leads[-1].end_offset == log.end_offset
    for before, after in itertools.pairwise(leads):
        assert before.end_offset == after.start_offset
        assert before.duration_ms == after.start_timestamp - before.start_timestamp
    assert all(lead.leader_id is not None and lead.record_count for lead in leads)


def test_a_change_in_full() -> None:
    """A row has all that its record says, and where it was seen."""
    log = MadeLog().bootstrap(voters(1, 2, 3))
    offset = log.change(VoterSet.of([voter(1, port=1), voter(2), voter(4)]))
    log.snapshot(log.end_offset, epoch=1, named=VoterSet.of([voter(1, port=1), voter(2), voter(4)]))
    change = voter_timeline([log.evidence()])[-1]

    assert (change.offset, change.epoch, change.timestamp, change.kraft_version) == (offset, 1, START_MS + offset, 1)
    assert (change.added, change.removed, change.updated) == ((4,), (3,), (1,))
    assert change.seen_in == (log.path, log.others[-1].task.path)


def test_history_of_older_snapshots() -> None:
    """Facts that a log and its newest snapshot have deleted are known from older snapshots, with their offsets."""
    log = MadeLog(start_offset=300).data(5)
    log.snapshot(100, epoch=1, named=voters(1)).snapshot(200, epoch=1, named=voters(1, 2)).snapshot(
        300, epoch=1, named=voters(1, 2)
    )
    changes = voter_timeline([log.evidence()])

    assert [(change.offset, sorted(change.voters.voter_ids)) for change in changes] == [(99, [1]), (199, [1, 2])]
    assert [(change.added, len(change.seen_in)) for change in changes] == [((), 1), ((2,), 2)]


def test_a_snapshot_that_contradicts_the_log() -> None:
    """It is a row of its own, and later snapshots that agree with the log are rows of the log's again."""
    log = MadeLog().bootstrap(voters(1, 2, 3)).data(20)
    log.snapshot(10, epoch=1, named=voters(1, 2)).snapshot(20, epoch=1, named=voters(1, 2, 3))
    changes = voter_timeline([log.evidence()])

    assert [(change.offset, sorted(change.voters.voter_ids)) for change in changes] == [
        (-1, [1, 2, 3]),
        (9, [1, 2]),
        (2, [1, 2, 3]),
    ]


def test_conflicting_replicas() -> None:
    """Two logs that part have a row each, and the last one is that of the log that would win."""
    logs = []
    for node, epoch, ids in (("n1", 2, (1, 2)), ("n2", 3, (2, 3))):
        log = MadeLog(node=node).bootstrap(voters(1, 2, 3))
        log.lead(1, (1, 2, 3), epoch=epoch)
        log.change(voters(*ids))
        logs.append(log)
    logs[0].data(9)
    changes = voter_timeline([log.evidence() for log in logs])
    leads = epoch_timeline([log.evidence() for log in logs])

    bootstrap, first, of_n1, of_n2 = changes
    assert (bootstrap.offset, first.offset) == (-1, 2)
    assert (of_n1.offset, of_n1.epoch, of_n1.voters) == (4, 2, voters(1, 2))
    assert (of_n2.offset, of_n2.epoch, of_n2.voters) == (4, 3, voters(2, 3))
    assert (bootstrap.epoch, first.epoch) == (0, 1)
    assert {lead.epoch: lead.start_offset for lead in leads} == {1: 0, 2: 3, 3: 3}


def test_the_set_in_force_is_last_although_a_lost_one_is_later() -> None:
    """A set that only the losing log has does not come last."""
    winner = MadeLog(node="n1").bootstrap(voters(1, 2, 3))
    winner.lead(1, (1, 2, 3), epoch=5)
    loser = MadeLog(node="n2").bootstrap(voters(1, 2, 3)).data(5)
    loser.change(voters(1, 2))
    changes = voter_timeline([loser.evidence(), winner.evidence()])

    assert changes[-1].voters == voters(1, 2, 3)
    assert voters(1, 2) in [change.voters for change in changes]


def test_two_leaders_of_an_epoch() -> None:
    """Replicas that name two leaders of an epoch make two rows of it."""
    logs = []
    for node, leader_id in (("n1", 1), ("n2", 2), ("n3", 2)):
        log = MadeLog(node=node)
        log.lead(leader_id, (1, 2, 3))
        logs.append(log.evidence())

    assert [(lead.leader_id, len(lead.seen_in)) for lead in epoch_timeline(logs)] == [(1, 1), (2, 2)]


def test_static_voters() -> None:
    """At kraft.version 0 the voters are those that leaders name, with their ids alone; an upgrade updates them."""
    log = MadeLog().snapshot(0, epoch=0, kraft_version=0)
    log.lead(1, (1, 2, 3))
    log.lead(2, (1, 2, 3))
    log.write(KRaftVersionRecord(1), voters_record(voters(1, 2, 3)))
    changes = voter_timeline([log.evidence()])

    assert [(change.offset, change.kraft_version, change.added, change.updated) for change in changes] == [
        (0, 0, (1, 2, 3), ()),
        (3, 1, (), (1, 2, 3)),
    ]


def test_a_leader_that_only_quorum_state_knows() -> None:
    """If the LeaderChange was deleted, quorum-state may know the leader; that of an old epoch is unknown."""
    log = MadeLog(start_offset=50, epoch=4).data(3)

    assert [lead.leader_id for lead in epoch_timeline([log.evidence()])] == [None]
    assert [lead.leader_id for lead in epoch_timeline([log.state(4, leader_id=3).evidence()])] == [3]


def test_nothing() -> None:
    """Without evidence there are no rows."""
    assert voter_timeline([]) == []
    assert epoch_timeline([]) == []
    assert voter_timeline([MadeLog().evidence()]) == []
