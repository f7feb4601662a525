# SPDX-License-Identifier: Apache-2.0
"""The view of a quorum that is not running, from its directories."""

import attrs
import pytest

from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, RecoveryPoint
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask
from raftlog.tools.auditing.history.quorum_view import Member, QuorumView, quorum_view
from raftlog.tools.auditing.history.quorum_words import view_words
from raftlog.tools.auditing.survey.small_file_survey import survey_small_file
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters

IDS = (1, 2, 3)


def replica(node_id: int, count: int, *, epoch: int = 1, snapshot: int = 0) -> list[PartitionEvidence]:
    """A replica that has some data records of the first epoch, and a later epoch's LeaderChange if there is one."""
    log = MadeLog(node=f"n{node_id}").bootstrap(voters(*IDS)).data(count)
    if epoch > 1:
        log.lead(node_id, IDS, epoch=epoch)
    if snapshot:
        log.snapshot(snapshot, epoch=1, named=voters(*IDS))
    log.state(epoch, leader_id=node_id if epoch > 1 else 1)
    return [log_directory(log.node, node_id, voter(node_id).voter_key.directory_id), log.evidence()]


def view_of(*replicas: list[PartitionEvidence]) -> QuorumView:
    """The view of some replicas."""
    view = quorum_view([place for evidence in replicas for place in evidence])
    assert view is not None
    return view


def member(view: QuorumView, node_id: int) -> Member:
    """One of a view's members."""
    (found,) = (each for each in view.members if each.key is not None and each.key.id == node_id)
    return found


def test_a_quorum_at_rest() -> None:
    """Equal logs: all can be elected, nothing can be lost, and everything is committed."""
    view = view_of(replica(1, 10), replica(2, 10), replica(3, 10))

    assert (view.cluster_id, view.leader_id, view.leader_epoch, view.high_watermark) == ("A", 1, 1, 13)
    assert (view.max_follower_lag, view.present, view.has_majority) == (0, 3, True)
    assert [each.status for each in view.members] == ["Leader", "Follower", "Follower"]
    assert all(each.electable and each.at_risk is None for each in view.members)


@pytest.mark.parametrize(("count", "is_ahead"), [(3, False), (4, True), (5, True)])
def test_an_election_compares_lengths_within_an_epoch(count: int, is_ahead: bool) -> None:
    """One record less than the others: not electable; as many, or one more: electable."""
    view = view_of(replica(1, 4), replica(2, 4), replica(3, count))
    assert member(view, 3).electable is is_ahead


@pytest.mark.parametrize("count", [2, 6, 7, 8, 12])
def test_an_election_compares_epochs_first(count: int) -> None:
    """A log of an earlier epoch is less up to date, whatever its length: no other voter grants it."""
    view = view_of(replica(1, count), replica(2, 6, epoch=2), replica(3, 6, epoch=2))
    assert [member(view, node_id).electable for node_id in IDS] == [False, True, True]

    alone = view_of(replica(1, count), replica(2, 6, epoch=2))
    assert [member(alone, node_id).electable for node_id in (1, 2)] == [False, True]


@pytest.mark.parametrize("count", [1, 6, 7, 12])
def test_absent_voters_elect_no_replica_without_committed_records(count: int) -> None:
    """A snapshot proves records of its epoch committed: a longer log of an earlier epoch lacks them all the same."""
    log = MadeLog(node="n2").bootstrap(voters(*IDS)).data(4)
    log.lead(2, IDS, epoch=2)
    log.snapshot(log.end_offset, epoch=2, named=voters(*IDS)).state(2, leader_id=2)
    second = [log_directory(log.node, 2, voter(2).voter_key.directory_id), log.evidence()]
    view = view_of(replica(1, count), second)
    assert [member(view, node_id).electable_with_absent for node_id in (1, 2)] == [False, True]


def test_a_lagging_follower() -> None:
    """A replica without a majority's records cannot be elected, and puts nothing at risk."""
    view = view_of(replica(1, 10), replica(2, 10), replica(3, 4))

    assert (view.high_watermark, view.max_follower_lag, member(view, 3).lag) == (13, 6, 6)
    assert [member(view, node_id).electable for node_id in IDS] == [True, True, False]
    assert all(each.at_risk is None for each in view.members)


def test_a_leader_ahead() -> None:
    """Records that only the leader has may be lost, as the others can elect each other."""
    view = view_of(replica(1, 10), replica(2, 4), replica(3, 6))

    assert view.high_watermark == 9
    assert [member(view, node_id).electable for node_id in IDS] == [True, False, True]
    assert member(view, 1).at_risk == 9


def test_an_epoch_that_only_one_has_seen() -> None:
    """A longer log of an older epoch loses to a shorter one of a newer epoch, and would be cut where they part."""
    view = view_of(replica(1, 10), replica(2, 2, epoch=5), replica(3, 2))

    assert (view.leader_id, view.leader_epoch) == (2, 5)
    assert member(view, 1).end == OffsetAndEpoch(13, 1)
    assert member(view, 1).at_risk == 5
    assert member(view, 2).at_risk == 5
    assert view.high_watermark == 0


def test_a_snapshot_proves_what_is_committed() -> None:
    """All records below a snapshot's end are committed, whichever replica has it."""
    view = view_of(replica(1, 10, snapshot=8))

    assert view.high_watermark == 8
    assert (view.present, view.has_majority) == (1, False)
    assert [each.status for each in view.members] == ["Leader", "Absent", "Absent"]
    assert member(view, 1).electable is False
    assert member(view, 2) == Member(voter(2).voter_key, "Absent")


def test_an_observer() -> None:
    """A replica that is not a voter is an observer, and so is a voter's node with another directory id."""
    other = [log_directory("n2", 2, voter(2, 7).voter_key.directory_id), replica(2, 10)[1]]
    view = view_of(replica(1, 10), replica(9, 10), other)

    assert [(each.key and each.key.id, each.status) for each in view.members] == [
        (1, "Leader"),
        (2, "Absent"),
        (3, "Absent"),
        (2, "Observer"),
        (9, "Observer"),
    ]


def test_a_replica_without_identity() -> None:
    """Without meta.properties a replica is an observer of no name."""
    view = view_of(replica(1, 10)[1:])

    assert [each.key for each in view.members if each.status == "Observer"] == [None]
    assert view.cluster_id is None


@pytest.mark.parametrize("evidence", [[], [log_directory("n1", 1, None)]])
def test_no_log(evidence: list[PartitionEvidence]) -> None:
    """Without a raft log there is no view."""
    assert quorum_view(evidence) is None


def test_a_voter_that_was_not_given() -> None:
    """An absent voter may vote for a shorter log: records that only the longer one has may be lost."""
    view = view_of(replica(1, 10), replica(2, 4))

    assert view.high_watermark == 7
    assert (member(view, 2).electable, member(view, 2).electable_with_absent) == (False, True)
    assert member(view, 1).at_risk == 7
    assert member(view, 2).at_risk is None


def test_what_a_minority_has_may_be_lost() -> None:
    """Without a majority no replica here can be elected, but absent ones can."""
    view = view_of(replica(1, 10, snapshot=8))

    assert (member(view, 1).electable, member(view, 1).at_risk) == (False, 8)


def damaged(replica: list[PartitionEvidence], offset: int, size_bytes: int = 100) -> list[PartitionEvidence]:
    """A replica in whose segment bytes are damaged."""
    directory, log = replica
    files = tuple(
        attrs.evolve(
            file,
            findings=(
                Finding(file.task.path, "batch-crc", "", position=100, size_bytes=size_bytes, offset=offset),
                *file.findings,
            ),
        )
        if file in log.segments
        else file
        for file in log.files
    )
    return [directory, attrs.evolve(log, files=files)]


def test_damage_on_a_majority() -> None:
    """Kafka cuts a log where it is damaged: two that do elect each other, and the third loses what was committed."""
    view = view_of(damaged(replica(1, 10), 5), damaged(replica(2, 10), 5), replica(3, 10))

    assert view.high_watermark == 5
    assert [member(view, node_id).electable for node_id in IDS] == [True, True, True]
    assert [member(view, node_id).damaged_from for node_id in IDS] == [5, 5, None]
    assert member(view, 3).at_risk == 5


def test_damage_on_one() -> None:
    """A log that is cut loses elections against those that are whole."""
    view = view_of(damaged(replica(1, 10), 5), replica(2, 10), replica(3, 10))

    assert (view.high_watermark, member(view, 1).end) == (13, OffsetAndEpoch(5, 1))
    assert [member(view, node_id).electable for node_id in IDS] == [False, True, True]
    assert all(each.at_risk is None for each in view.members)


@pytest.mark.parametrize(("snapshot", "lost"), [(4, 5), (8, 8), (13, None)])
def test_damage_that_a_snapshot_covers(snapshot: int, lost: int | None) -> None:
    """Records that a snapshot covers are not lost with the log; those after it are."""
    view = view_of(damaged(replica(1, 10, snapshot=snapshot), 5), replica(2, 10), replica(3, 10))

    assert (member(view, 1).damaged_from, member(view, 1).end) == (lost, OffsetAndEpoch(max(5, snapshot), 1))


def test_a_damaged_snapshot_counts_for_nothing() -> None:
    """No node starts from a snapshot that does not read: its log alone counts."""
    directory, log = replica(1, 4, snapshot=20)
    files = tuple(
        attrs.evolve(file, findings=(Finding(file.task.path, "batch-crc", ""),))
        if file.task.snapshot_id == OffsetAndEpoch(20, 1)
        else file
        for file in log.files
    )

    view = view_of([directory, attrs.evolve(log, files=files)], replica(2, 10), replica(3, 10))

    assert member(view, 1).end == OffsetAndEpoch(7, 1)


def test_a_snapshot_of_a_later_epoch_replaces_a_longer_log() -> None:
    """A log of an older epoch is dropped for the newest snapshot at the next start, however long it is."""
    directory, log = replica(1, 10)
    made = MadeLog(node="n1").snapshot(6, epoch=3, named=voters(*IDS)).evidence()
    newer = next(file for file in made.snapshots if file.task.snapshot_id == OffsetAndEpoch(6, 3))

    view = view_of([directory, attrs.evolve(log, files=(*log.files, newer))], replica(2, 2), replica(3, 2))

    assert member(view, 1).end == OffsetAndEpoch(6, 3)


def test_candidates_ask_the_voters_that_their_own_log_names() -> None:
    """Two of three can elect one of them that never got the record of a fourth voter."""
    grown = MadeLog(node="n1").bootstrap(voters(*IDS)).data(3)
    grown.change(voters(1, 2, 3, 4))
    leader = [log_directory("n1", 1, voter(1).voter_key.directory_id), grown.state(1, leader_id=1).evidence()]

    view = view_of(leader, replica(2, 3), replica(3, 3))
    assert (len(view.voters), view.has_majority) == (4, True)
    without_leader = view_of(replica(2, 3), replica(3, 3))
    assert without_leader.has_majority

    assert [member(view, node_id).electable for node_id in IDS] == [True, True, True]
    assert member(view, 1).at_risk == 6


def test_an_epoch_that_was_seen_to_begin() -> None:
    """A majority's records are not known to be committed if an absent voter may have a log of a later epoch."""
    behind = [replica(1, 10), replica(2, 10)]
    assert view_of(*behind).high_watermark == 13
    for evidence in behind:
        evidence[1] = attrs.evolve(
            evidence[1], files=tuple(file for file in evidence[1].files if file.task.kind is not FileKind.QUORUM_STATE)
        )

    assert view_of(*behind).high_watermark == 0


def test_a_copy() -> None:
    """Of two directories of one voter the one that reaches further votes, and only it could be elected."""
    old = [attrs.evolve(place, place=attrs.evolve(place.place, log_directory="old")) for place in replica(1, 4)]
    view = view_of(old, replica(1, 10), replica(2, 10), replica(3, 10))

    copies = {each.path: (each.status, each.electable) for each in view.members if each.key == voter(1).voter_key}
    assert copies == {"n1": ("Leader", True), "old": ("Observer", None)}
    assert "Given 2 times: 1, in n1, old. Only the one that reaches furthest is used." in view_words(view)


def durable(evidence: list[PartitionEvidence], end_offset: int) -> list[PartitionEvidence]:
    """The same replica with raftlog's recovery point beside its log."""
    directory, log = evidence
    point = RecoveryPoint(end_offset, generation=1, epochs=(EpochEntry(1, 0),))
    task = SurveyTask(log.place, f"{log.place.log_directory}/{RECOVERY_POINT_NAME}", None, is_raft=True)
    return [directory, attrs.evolve(log, files=(*log.files, survey_small_file(task, point.encode())))]


def test_a_log_that_was_durable_further_on_is_in_quarantine() -> None:
    """It neither leads nor votes, wherever its log ends; one that is durable as far as it goes does both."""
    view = view_of(durable(replica(1, 10), 15), durable(replica(2, 10), 13), replica(3, 4))

    assert [member(view, node_id).quarantined_from for node_id in IDS] == [13, None, None]
    assert [member(view, node_id).damaged_from for node_id in IDS] == [13, None, None]
    assert [member(view, node_id).electable for node_id in IDS] == [False, True, False]
    assert (view.present, view.quarantined, view.has_majority) == (3, 1, True)
    assert any(line.startswith("In quarantine: 1, ") for line in view_words(view))


def test_voters_in_quarantine_are_no_majority() -> None:
    """A replica that lost durable records grants no vote, whether the others are absent or not."""
    view = view_of(durable(replica(1, 10), 15), durable(replica(2, 10), 15), replica(3, 10))

    assert (view.present, view.quarantined, view.has_majority) == (3, 2, False)
    assert [member(view, node_id).electable_with_absent for node_id in IDS] == [False, False, False]
    assert "No majority is here: 3 of 3 voters; 2 are needed; 2 in quarantine." in view_words(view)


def test_damage_below_what_was_durable_is_a_quarantine() -> None:
    """Damage at what was never durable is cut; below that, and in no snapshot, the replica is in quarantine."""
    torn = view_of(durable(damaged(replica(1, 10), 8), 8), replica(2, 10), replica(3, 10))
    assert (member(torn, 1).damaged_from, member(torn, 1).quarantined_from) == (8, None)
    rotten = view_of(durable(damaged(replica(1, 10), 8), 9), replica(2, 10), replica(3, 10))
    assert (member(rotten, 1).damaged_from, member(rotten, 1).quarantined_from) == (8, 8)
    covered = view_of(durable(damaged(replica(1, 10, snapshot=13), 8), 13), replica(2, 10), replica(3, 10))
    assert (member(covered, 1).damaged_from, member(covered, 1).quarantined_from) == (None, None)


def test_words_about_damage_and_absent_voters() -> None:
    """An operator is advised to copy what startup would truncate, and never told that nothing can be lost."""
    words = list(view_words(view_of(damaged(replica(1, 10), 5), replica(2, 4))))

    assert any(line.startswith("Damaged: the log of 1 from offset 5 on") for line in words)
    assert "Kafka could elect, with votes of voters that were not given: 1, if these do not have more." in words
    assert "May be lost: offsets 5 to 6 of 2, as a replica without them could be elected." in words
    assert not any(line.startswith("Nothing can be lost") for line in words)
