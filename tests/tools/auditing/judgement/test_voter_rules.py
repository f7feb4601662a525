# SPDX-License-Identifier: Apache-2.0
"""Judging voter sets and kraft.versions: sound logs are silent, and one fault is one finding at its place."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VotersRecord,
    write_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.tools.catalogue.findings import Finding
from raftlog.voters.voter_set import VoterSet
from tests.tools.auditing.made_quorum import MadeLog, histories, leader_change, voter, voters


def found(evidence: PartitionEvidence) -> list[tuple[str, int | None]]:
    """Rules and offsets of what is wrong."""
    return [(finding.rule, finding.offset) for finding in judge_voters(evidence)]


def three() -> MadeLog:
    """A log of voters 1, 2 and 3, up to offset 10."""
    return MadeLog().bootstrap(voters(1, 2, 3)).data(7)


# Sound logs


def without_beginning(log: MadeLog) -> PartitionEvidence:
    """The log from its newest snapshot on; all of it without one."""
    evidence = log.evidence()
    start = max((snapshot_id.offset for snapshot_id in evidence.snapshots_by_id), default=0)
    if start == 0:
        return evidence
    (segment,) = evidence.segments
    assert segment.extent is not None
    kept = attrs.evolve(
        segment,
        task=attrs.evolve(segment.task, base_offset=start),
        controls=tuple(seen for seen in segment.controls if seen.offset >= start),
        extent=attrs.evolve(segment.extent, start_offset=start),
    )
    return PartitionEvidence(evidence.place, tuple(kept if file is segment else file for file in evidence.files))


@given(histories())
def test_a_sound_log_is_silent(log: MadeLog) -> None:
    """A log that changes one voter at a time has no finding, complete or after a snapshot."""
    assert found(log.evidence()) == []
    assert found(without_beginning(log)) == []


@given(histories(), st.data())
def test_one_fault_is_one_finding_at_most(log: MadeLog, data: st.DataObject) -> None:
    """Whatever one record is replaced by, no more than one finding says so."""
    evidence = log.evidence()
    file = data.draw(st.sampled_from(sorted(evidence.files, key=lambda file: file.task.path)))
    index = data.draw(st.integers(0, len(file.controls) - 1))
    value = file.controls[index].read().value
    ids = data.draw(st.lists(st.integers(1, 9), max_size=5, unique=True))
    forged: object
    match value:
        case VotersRecord():
            forged = voters_record(VoterSet.of(map(voter, ids)))
        case KRaftVersionRecord():
            forged = KRaftVersionRecord(data.draw(st.integers(0, 9)))
        case LeaderChangeMessage():
            forged = attrs.evolve(value, voters=tuple(map(Voter, ids)), leader_id=data.draw(st.integers(0, 9)))
        case _:
            return
    key, text = write_control_record(forged)
    controls = list(file.controls)
    controls[index] = attrs.evolve(controls[index], key=key, value=text)
    files = tuple(attrs.evolve(each, controls=tuple(controls)) if each is file else each for each in evidence.files)

    assert len(found(PartitionEvidence(evidence.place, files))) <= 1


def test_static_quorums_are_silent() -> None:
    """At kraft.version 0 nothing names voters but leaders, and snapshots need not; an upgrade names them."""
    log = MadeLog().snapshot(0, epoch=0, kraft_version=0)
    log.lead(1, (1, 2, 3))
    log.data(5).snapshot(6, epoch=1, kraft_version=0)
    log.lead(2, (1, 2, 3))
    log.write(KRaftVersionRecord(1), voters_record(voters(1, 2, 3)))
    log.snapshot(log.end_offset, epoch=2, named=voters(3, 2, 1))

    assert found(log.evidence()) == []


def test_a_leader_may_remove_itself() -> None:
    """The set without the leader is as good as another."""
    log = three()
    log.change(voters(2, 3))
    log.data(3)
    log.lead(2, (2, 3))

    assert found(log.evidence()) == []


def test_a_log_that_is_not_raft_is_not_judged() -> None:
    """Voters in a log that is none of raft's mean nothing."""
    log = three()
    log.change(voters(7, 8, 9))
    evidence = log.evidence()
    files = (attrs.evolve(file, task=attrs.evolve(file.task, is_raft=False)) for file in evidence.files)

    assert found(PartitionEvidence(evidence.place, tuple(files))) == []


# Changes


def test_a_replaced_disk_shows_the_directories() -> None:
    """If ids alone do not distinguish two majorities, directory ids do."""
    log = three()
    log.change(VoterSet.of([voter(1), voter(2), voter(3, directory=5)]))
    log.data()
    (finding,) = judge_voters(log.evidence())

    assert finding.rule == "voters-overlap"
    assert "voters {1, 2, 3} of offset 2 become {1, 2, 3} (added 3, removed 3)" in finding.reason
    assert f"{voter(3).voter_key}" in finding.reason


CHANGES = {
    "Kafka would refuse it": ((1, 4, 5), "voters-accepted", "Kafka would refuse it"),
    "two leave": ((1,), "voters-accepted", "have no common voter"),
    "one is replaced": ((1, 2, 4), "voters-overlap", "Kafka accepts it, but"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_unsafe_change(name: str) -> None:
    """A change that could split the quorum is reported at its record, once, whatever follows it."""
    ids, rule, reason = CHANGES[name]
    log = three()
    offset = log.change(voters(*ids))
    log.data()
    log.lead(1, ids)
    log.snapshot(log.end_offset, epoch=log.epoch, named=voters(*ids))
    log.change(voters(1, 2, 3, 4))
    (finding,) = judge_voters(log.evidence())

    assert (finding.rule, finding.offset, finding.epoch, finding.path) == (rule, offset, 1, log.path)
    assert finding.position == 200
    assert reason in finding.reason


def test_safe_and_yet_not_accepted() -> None:
    """Kafka refuses two voters at once also where each majority overlaps."""
    log = MadeLog().bootstrap(voters(1, 2))
    log.change(voters(1, 2, 3, 4))
    log.data()
    (finding,) = judge_voters(log.evidence())

    assert finding.rule == "voters-accepted"
    assert "each majority of one shares a voter" in finding.reason


def test_more_than_one_change() -> None:
    """Two updates at once are safe, and suspicious."""
    log = three()
    offset = log.change(VoterSet.of([voter(1, port=1), voter(2, port=1), voter(3)]))

    assert found(log.evidence()) == [("voters-one-change", offset)]


def test_the_bootstrap_set_restricts_no_change() -> None:
    """The log's first set may be another than that of the bootstrap snapshot."""
    log = MadeLog().snapshot(0, epoch=0, named=voters(1))
    log.lead(1, (1,), KRaftVersionRecord(1), voters_record(voters(4, 5, 6)))

    assert found(log.evidence()) == []


def test_nothing_is_compared_across_damage() -> None:
    """Where records are missing, a change may be in them."""
    log = three()
    lost = log.end_offset
    log.data(4)
    log.change(voters(3, 4, 5))
    log.data()
    damage = Finding(log.path, "batch-crc", "", position=200, offset=lost)

    assert found(log.evidence()) == [("voters-accepted", lost + 4)]
    assert found(log.evidence(damage)) == []


def test_a_change_in_the_batch_of_its_leader() -> None:
    """A change that cannot have waited for its leader's first record to be committed is suspicious."""
    log = three()
    offset = log.lead(2, (1, 2, 3), voters_record(voters(1, 2, 3, 4)))
    log.data(1)

    assert found(log.evidence()) == [("voters-uncommitted", offset)]


def test_two_changes_in_a_batch() -> None:
    """Nor can a change be committed before another one of its batch."""
    log = three()
    offset = log.write(voters_record(voters(1, 2, 3, 4)), voters_record(voters(1, 2, 3, 4, 5)))

    assert found(log.evidence()) == [("voters-uncommitted", offset)]


def _at_once(log: MadeLog) -> MadeLog:
    """The last batch has the timestamp of the one before it."""
    log.controls[-1] = attrs.evolve(log.controls[-1], timestamp=log.controls[-2].timestamp)
    return log


def test_a_change_in_the_millisecond_of_the_change_before() -> None:
    """Other voters cannot have it by then; a millisecond later they can."""
    log = three()
    before = log.change(voters(1, 2, 3, 4))
    offset = log.change(voters(1, 2, 4))
    assert found(log.evidence()) == []

    (finding,) = judge_voters(_at_once(log).evidence())
    assert (finding.rule, finding.offset) == ("voters-uncommitted", offset)
    assert f"millisecond as the change at offset {before}" in finding.reason


def test_a_change_in_the_millisecond_of_the_leader_change() -> None:
    """So ``raftlog log append`` writes it, with the only node that is up."""
    log = three()
    log.lead(2, (1, 2, 3))
    log.change(voters(1, 2, 3, 4))

    assert found(_at_once(log).evidence()) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (voters(1), voters(1, 2)),  # The leader commits alone.
        (voters(1, 2), VoterSet.of([voter(1), voter(2, port=7)])),  # An update does not wait for what has timed out.
    ],
)
def test_a_change_that_may_be_committed_at_once(first: VoterSet, second: VoterSet) -> None:
    """A leader that commits alone, and an update, need no more than a moment."""
    log = MadeLog().bootstrap(first)
    log.lead(1, first.voter_ids)
    log.change(second)

    assert found(_at_once(log).evidence()) == []


# Sets and versions

ONE_DIRECTORY = voter(1).voter_key.directory_id
BAD_RECORDS = {
    "empty": VotersRecord(),
    "voter 2 twice": VotersRecord((*voters_record(voters(1, 2)).voters, *voters_record(voters(2)).voters)),
    "one directory twice": VotersRecord(
        tuple(attrs.evolve(each, directory_id=ONE_DIRECTORY) for each in voters_record(voters(1, 2)).voters)
    ),
    "a listener twice": VotersRecord(
        tuple(attrs.evolve(each, endpoints=each.endpoints * 2) for each in voters_record(voters(1)).voters)
    ),
    "a range backwards": VotersRecord(
        tuple(attrs.evolve(each, min_supported_version=5) for each in voters_record(voters(1)).voters)
    ),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_set_that_cannot_be(name: str) -> None:
    """A set that breaks its schema is reported once, also where snapshots repeat it."""
    log = three()
    offset = log.change(BAD_RECORDS[name])
    log.lead(1, (1, 2, 3))
    log.snapshot(log.end_offset, epoch=log.epoch, named=BAD_RECORDS[name])
    log.change(voters(1, 2, 3, 4))

    assert found(log.evidence()) == [("voters-schema", offset)]


def test_a_set_that_cannot_be_in_a_snapshot_alone() -> None:
    """A snapshot's own fault is the snapshot's."""
    log = three().snapshot(5, epoch=1, named=BAD_RECORDS["voter 2 twice"])
    (finding,) = judge_voters(log.evidence())

    assert (finding.rule, finding.position) == ("voters-schema", 0)
    assert finding.path.endswith("-0000000001.checkpoint")


def test_voters_at_version_0() -> None:
    """Voters records belong to kraft.version 1; the snapshots after one say nothing new."""
    log = MadeLog()
    log.lead(1, (1, 2, 3))
    offset = log.change(voters(1, 2, 3))
    log.snapshot(log.end_offset, epoch=1, named=voters(1, 2, 3))

    assert found(log.evidence()) == [("voters-version", offset)]


def test_voters_in_a_snapshot_of_version_0() -> None:
    """Likewise in a snapshot."""
    assert found(three().snapshot(5, epoch=1, kraft_version=0, named=voters(1, 2, 3)).evidence()) == [
        ("voters-version", 0)
    ]


def test_a_voter_that_does_not_support_the_version() -> None:
    """A voter of kraft.version 0 alone cannot be in a set of kraft.version 1."""
    log = three()
    offset = log.change(VoterSet.of([*voters(1, 2, 3).voters.values(), voter(4, versions=(0, 0))]))

    assert found(log.evidence()) == [("voters-range", offset)]


@pytest.mark.parametrize(("level", "rule"), [(0, "kraft-version-order"), (7, "kraft-version-known")])
def test_a_version_that_cannot_be(level: int, rule: str) -> None:
    """kraft.version does not decrease, nor become an unknown one."""
    log = three()
    offset = log.write(KRaftVersionRecord(level))
    log.change(voters(1, 2, 3, 4))
    log.snapshot(log.end_offset, epoch=1, named=voters(1, 2, 3, 4))

    assert found(log.evidence()) == [(rule, offset)]


def test_an_unknown_version_in_a_snapshot() -> None:
    """A snapshot's unknown kraft.version is its own fault."""
    assert found(three().snapshot(5, epoch=1, kraft_version=7, named=voters(1, 2, 3)).evidence()) == [
        ("kraft-version-known", 0)
    ]


def test_an_upgrade_without_voters() -> None:
    """kraft.version 1 needs voters beside it; a bootstrap snapshot of no voters is as formatted."""
    log = MadeLog().snapshot(0, epoch=0)
    log.lead(1, (1, 2, 3))
    offset = log.write(KRaftVersionRecord(1))

    assert found(log.evidence()) == [("kraft-version-voters", offset)]


# Who else says who votes


def test_a_leader_that_names_others() -> None:
    """A LeaderChange is wrong if it alone contradicts the set in force."""
    log = three()
    offset = log.lead(2, (1, 2, 4))
    log.lead(2, (1, 2, 3))

    assert found(log.evidence()) == [("leader-voters", offset)]


def test_a_set_that_all_others_contradict() -> None:
    """Where all who come later say the same, the record is wrong: one finding says so, and the next set is silent."""
    log = three()
    offset = log.change(voters(1, 2, 3, 5))
    leader = log.lead(2, (1, 2, 3, 4))
    log.snapshot(log.end_offset, epoch=log.epoch, named=voters(1, 2, 3, 4))
    log.change(voters(2, 3, 4))
    (finding,) = judge_voters(log.evidence())

    assert (finding.rule, finding.offset) == ("leader-voters", leader)
    assert f"so that the record at {offset} is wrong" in finding.reason


def test_snapshots_of_another_set() -> None:
    """A snapshot is compared with the log where that reaches it, and with older snapshots' sets."""
    log = three().snapshot(5, epoch=1, named=voters(1, 2, 3)).snapshot(8, epoch=1, named=voters(1, 2))
    (finding,) = judge_voters(log.evidence())

    assert (finding.rule, finding.position, finding.offset) == ("snapshot-voters", 0, 0)
    assert "removed 3" in finding.reason


def test_snapshots_of_another_version() -> None:
    """One fault is one finding: a snapshot of kraft.version 0 has no voters either."""
    log = three().snapshot(5, epoch=1, named=voters(1, 2, 3)).snapshot(8, epoch=1, kraft_version=0)

    assert found(log.evidence()) == [("snapshot-version", 0)]


def test_a_snapshot_before_the_log_is_not_compared_with_later_ones() -> None:
    """Records between two snapshots are not known if the log deleted them."""
    log = MadeLog(start_offset=100)
    log.data(50)
    log.snapshot(50, epoch=1, named=voters(1, 2, 3)).snapshot(120, epoch=1, named=voters(7, 8, 9))

    assert found(log.evidence()) == []


def test_a_log_after_a_snapshot_continues_from_it() -> None:
    """The set of a snapshot where the log starts binds the log's first."""
    log = MadeLog(start_offset=100)
    log.data(5)
    log.snapshot(100, epoch=1, named=voters(1, 2, 3))
    offset = log.change(voters(3, 4, 5))
    log.data()

    assert found(log.evidence()) == [("voters-accepted", offset)]


def test_a_snapshot_whose_first_batch_is_damaged_is_no_witness() -> None:
    """Faults that are reported there are not reported again."""
    log = three().snapshot(8, epoch=1, named=voters(1, 2))
    path = log.others[-1].task.path
    log.others[-1] = attrs.evolve(log.others[-1], findings=(Finding(path, "control-value", "", position=0),))

    assert found(log.evidence()) == []


ELECTIONS = {
    "no majority": ("leader-elected", leader_change(1, (1, 2, 3), (1,))),
    "half of an even number": ("leader-elected", leader_change(1, (1, 2, 3, 4), (1, 2))),
    "votes of others": ("leader-elected", leader_change(1, (1, 2, 3), (1, 8, 9))),
    "no votes": ("leader-elected", leader_change(1, (1, 2, 3), ())),
    "a leader that is no voter": ("leader-voted", leader_change(9, (1, 2, 3))),
    "a leader that did not vote for itself": ("leader-voted", leader_change(1, (1, 2, 3), (2, 3))),
    "nobody": ("leader-voted", leader_change(1, ())),
}


@pytest.mark.parametrize("name", ELECTIONS)
def test_a_leader_without_votes(name: str) -> None:
    """A leader has the votes of a majority of the voters that it names, and is one of them, as is its own vote."""
    rule, change = ELECTIONS[name]
    log = MadeLog()
    offset = log.write(change)

    assert found(log.evidence()) == [(rule, offset)]
