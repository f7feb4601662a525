# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a partition's replicas: each rule once, and no finding for those of a real quorum."""

from collections.abc import Sequence

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import (
    ControlValue,
    LeaderChangeMessage,
    Voter,
    write_control_record,
)
from raftlog.records.rules import Severity
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import (
    ControlSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
    group_by_place,
)
from raftlog.tools.auditing.history.divergence import divergences
from raftlog.tools.auditing.judgement.replica_rules import describe, judge_replicas
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.planted.segments import with_fields
from tests.tools.auditing.made_quorum import MadeLog
from tests.tools.auditing.made_replicas import BASE, Batch, Replicas, encode, log_of


def _judge(*logs: bytes, snapshots: Sequence[FileEvidence] = ()) -> list[Finding]:
    """Judge replicas of these logs; snapshots are the last one's."""
    replicas = Replicas()
    found = [replicas.add(name, {0: log}) for name, log in zip("abcde", logs, strict=False)]
    last = found.pop()
    found.append(PartitionEvidence(last.place, (*last.files, *snapshots)))
    return list(judge_replicas(found, replicas.read))


def _rules(findings: Sequence[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def _leader(offset: int, epoch: int, leader_id: int) -> bytes:
    builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch, is_control=True)
    voters = (Voter(1), Voter(2))
    key, value = write_control_record(LeaderChangeMessage(leader_id, voters, voters))
    builder.append(1_700_000_000_000, key, value)
    return builder.build()


@pytest.mark.parametrize("quorum", ["dynamic-quorum", "static-upgrade", "static-upgrade/before-upgrade", "wire"])
def test_replicas_of_a_real_quorum_agree(quorum: str) -> None:
    """Of the replicas that a real quorum left, nothing above harmless is said."""
    folder = GOLDEN / quorum
    paths = [str(path) for path in (folder / "data").iterdir()] if (folder / "data").is_dir() else [str(folder)]
    tasks = [task for task in find_tasks(paths) if isinstance(task, SurveyTask)]
    places = [place for place in group_by_place(map(survey, tasks)) if place.is_raft]
    assert len(places) >= 3
    found = list(judge_replicas(places, read_batches))
    assert [finding for finding in found if finding.severity is not Severity.HARMLESS] == []


def test_one_replica_has_no_findings() -> None:
    """There is nothing to compare one replica with."""
    assert _judge(log_of(BASE)) == []


def test_a_shorter_replica_is_behind() -> None:
    """A log that is a prefix of another is harmless, and its finding has the number of missing offsets."""
    (finding,) = _judge(log_of(BASE), log_of(BASE[:2]))
    assert (finding.rule, finding.severity, finding.offset) == ("replica-behind", Severity.HARMLESS, 20)
    assert "20 offsets fewer" in finding.reason


def test_two_leaders_of_an_epoch() -> None:
    """An epoch that two replicas have different leaders of is reported where the second one says so."""
    shared = log_of([Batch(range(2), epoch=0, value=b"a")])
    (leader,) = _judge(shared + _leader(2, 1, 1), shared + _leader(2, 1, 2))
    assert leader.rule == "replica-leader"
    assert (leader.offset, leader.epoch, leader.position) == (2, 1, len(shared))
    assert leader.path.startswith("b/")


def test_two_batches_of_an_epoch_and_offset() -> None:
    """Two batches whose CRCs hold under one epoch and offset cannot both be what the leader wrote."""
    other = log_of([BASE[0], Batch(range(10, 20), epoch=0, value=b"x"), *BASE[2:]])
    (finding,) = _judge(log_of(BASE), other)
    assert (finding.rule, finding.offset, finding.epoch) == ("replica-batch", 10, 0)
    assert finding.position == len(encode(BASE[0]))


def test_the_outlier_is_named() -> None:
    """Where the most up-to-date replica contradicts all others alike, it is said once, of that one."""
    other = log_of([BASE[0], Batch(range(10, 20), epoch=0, value=b"x"), *BASE[2:]])
    for logs in ((other, log_of(BASE), log_of(BASE)), (log_of(BASE), log_of(BASE), other)):
        (finding,) = _judge(*logs)
        assert (finding.rule, finding.offset) == ("replica-batch", 10)
        assert finding.path.startswith("abc"[logs.index(other)])


@pytest.mark.parametrize(
    "are_odd", [(True, True, False), (False, True, True), (True, False, True), (False, False, True)]
)
def test_a_batch_that_breaks_a_rule_is_the_outlier(are_odd: tuple[bool, ...]) -> None:
    """A sound batch is not blamed for being rare."""
    sound = [encode(batch) for batch in BASE]
    odd = [sound[0], with_fields(sound[1], attributes=0x0100), *sound[2:]]
    (finding,) = _judge(*[b"".join(odd if is_odd else sound) for is_odd in are_odd])
    assert (finding.rule, finding.offset) == ("replica-batch", 10)
    assert are_odd["abc".index(finding.path[0])]


def test_a_leader_whose_record_is_reported_is_no_witness() -> None:
    """It is told already, and says nothing about what other replicas have, also if most have it."""
    shared = log_of([Batch(range(2), epoch=0, value=b"a")])
    replicas = Replicas()
    found = [replicas.add(name, {0: shared + _leader(2, 1, 1 + (name == "c"))}) for name in "abc"]
    for number, replica in enumerate(found[:2]):
        (file,) = replica.files
        reported = Finding(file.task.path, "leader-voted", "", len(shared), offset=2, epoch=1)
        found[number] = PartitionEvidence(replica.place, (attrs.evolve(file, findings=(reported,)),))
    assert list(judge_replicas(found, replicas.read)) == []


def test_leaders_are_compared_by_what_most_say() -> None:
    """Of three replicas the one is named that has another leader, and its batch is not reported again."""
    shared = log_of([Batch(range(2), epoch=0, value=b"a")])
    logs = [shared + _leader(2, 1, leader_id) for leader_id in (2, 1, 1)]
    (finding,) = _judge(*logs)
    assert (finding.rule, finding.offset) == ("replica-leader", 2)
    assert finding.path.startswith("a/")


def test_records_before_the_newest_log_start_are_compared_too() -> None:
    """Two replicas that reach further back than the newest are compared with each other there."""
    replicas = Replicas()
    other = log_of([BASE[0], Batch(range(10, 20), epoch=0, value=b"x"), *BASE[2:]])
    found = [
        replicas.add("a", {20: log_of([*BASE[2:], Batch(range(40, 41), epoch=3, value=b"new")])}),
        replicas.add("b", {0: log_of(BASE)}),
        replicas.add("c", {0: other}),
    ]
    of_batches = [each for each in judge_replicas(found, replicas.read) if each.severity is not Severity.HARMLESS]
    assert [(each.rule, each.offset) for each in of_batches] == [("replica-batch", 10)]


def test_a_header_that_was_changed_is_found_by_the_other_replica() -> None:
    """An epoch that differs under one CRC was changed after the write."""
    log = bytearray(log_of(BASE))
    log[sum(len(encode(batch)) for batch in BASE[:3]) + 15] ^= 4
    assert _rules(_judge(log_of(BASE), bytes(log))) == ["replica-batch"]


def test_rot_on_one_replica_can_be_fetched_again() -> None:
    """A batch that is damaged here and sound there is harmless beside the damage itself, which its own survey found."""
    log = bytearray(log_of(BASE))
    log[70] ^= 1
    (finding,) = _judge(log_of(BASE), bytes(log))
    assert (finding.rule, finding.severity, finding.offset) == ("replica-rot", Severity.HARMLESS, 0)
    assert finding.reason == (
        "offsets 0 to 9 are damaged or missing in b/__cluster_metadata-0/00000000000000000000.log, and sound in "
        "a/__cluster_metadata-0/00000000000000000000.log"
    )


FORK: list[Batch] = [*BASE[:2], Batch(range(20, 30), epoch=2, value=b"z")]


def test_a_fork_is_suspicious() -> None:
    """Another epoch at an offset means that one side will be truncated: the one that is less up to date."""
    (finding,) = _judge(log_of(FORK), log_of(BASE))
    assert (finding.rule, finding.severity, finding.offset) == ("replica-forked", Severity.SUSPICIOUS, 20)
    assert finding.path.startswith("b/")
    assert "epoch 1 from offset 20 on, but a/" in finding.reason


def _snapshot(offset: int, epoch: int, name: str = "b", *, values: Sequence[ControlValue] = ()) -> FileEvidence:
    place = Place(name, "__cluster_metadata", 0)
    path = f"{name}/{offset}-{epoch}.checkpoint"
    task = SurveyTask(place, path, FileKind.SNAPSHOT, snapshot_id=OffsetAndEpoch(offset, epoch), is_raft=True)
    controls = [ControlSeen(index, epoch, 0, 0, 0, *write_control_record(value)) for index, value in enumerate(values)]
    return FileEvidence(task, extent=LogExtent(0, 5, epoch, epoch, 0, 1, 5), controls=tuple(controls))


def test_a_fork_below_a_snapshot_lost_what_was_committed() -> None:
    """A snapshot of the side that will be truncated shows that its records were committed; the other side is named."""
    (finding,) = _judge(log_of(FORK), log_of(BASE), snapshots=[_snapshot(30, 1)])
    assert (finding.rule, finding.severity) == ("replica-lost", Severity.DATA_LOSS)
    assert "snapshot b/30-1.checkpoint proves that what b has was committed" in finding.reason
    assert (finding.path.partition("/")[0], finding.offset, finding.epoch) == ("a", 20, 2)
    (finding,) = _judge(log_of(FORK), log_of(BASE), snapshots=[_snapshot(30, 2)])
    assert finding.rule == "replica-forked"


@pytest.mark.parametrize("delta", [1, -1, 1000])
def test_offsets_that_were_shifted_are_compared_no_further(delta: int) -> None:
    """After an offset at which one log continues wrongly, which its survey reports, it is not compared with others."""
    tail = [Batch(range(start, start + 10), epoch=1, value=b"e") for start in (40, 50, 60)]
    log = [*BASE, *tail]

    def shifted_from_20_on(batch: Batch) -> Batch:
        first, end = batch.offsets.start, batch.offsets.stop
        return batch if first < 20 else batch._replace(offsets=range(first + delta, end + delta))

    shifted = list(map(shifted_from_20_on, log))
    replicas = Replicas()
    found = [
        replicas.add("a", {0: log_of(log)}),
        replicas.add("b", {0: log_of(shifted)}),
        replicas.add("c", {0: log_of(log)}),
    ]
    surveyed = [each.rule for replica in found for file in replica.files for each in file.findings]
    assert surveyed == ["offset-gap" if delta > 0 else "offset-order"]
    said = list(judge_replicas(found, replicas.read))
    assert [finding for finding in said if finding.severity is not Severity.HARMLESS] == []


def test_a_hole_is_no_end_of_the_comparison() -> None:
    """If both logs continue alike after offsets that one has lost, later differences are reported."""
    changed = [*BASE[:3], Batch(range(30, 40), epoch=1, value=b"x")]
    del changed[1]
    found = _judge(log_of(BASE), log_of(changed))
    assert _rules(found) == ["replica-rot", "replica-batch"]
    assert [finding.offset for finding in found] == [10, 30]


def test_a_replica_that_was_compacted_later_is_harmless() -> None:
    """A topic's replica that lacks a batch of records with keys was cleaned after the other one."""
    parts = [encode(batch, key=b"k") for batch in BASE]
    replicas = Replicas(topic="orders")
    whole = replicas.add("a", {0: b"".join(parts)})
    cleaned = replicas.add("b", {0: b"".join([parts[0], *parts[2:]])})

    (finding,) = judge_replicas([whole, cleaned], replicas.read)
    assert (finding.rule, finding.severity, finding.offset) == ("replica-compacted", Severity.HARMLESS, 10)


@pytest.mark.parametrize(("whole", "cut"), [(0, 1), (1, 0)])
def test_the_side_that_was_cut_is_named(whole: int, cut: int) -> None:
    """Whichever log is looked at, its end says where the write was cut."""
    replicas = Replicas()
    logs = [b"", b""]
    logs[whole], logs[cut] = log_of(BASE), log_of(BASE)[:-5]
    left, right = (replicas.add(name, {0: log}) for name, log in zip("ab", logs, strict=True))
    (difference,) = divergences(left, right, replicas.read)
    path = f"{'ab'[cut]}/__cluster_metadata-0/00000000000000000000.log"
    other = f"{'ab'[whole]}/__cluster_metadata-0/00000000000000000000.log"
    assert describe(difference) == (
        f"the log ends at offset 30 in a torn write: 10 offsets fewer than {other}"
        if cut == 1
        else f"the log continues after offset 30, at which {path} has a torn write: 10 offsets more than {path}"
    )


@pytest.mark.parametrize(("epoch", "is_old"), [(0, True), (1, False)])
def test_a_replica_of_earlier_epochs_may_be_an_old_copy(epoch: int, is_old: bool) -> None:
    """A replica whose log and quorum-state are older than all others' epochs differs from one that knows the epoch."""
    replicas = Replicas()
    newest, other = replicas.add("a", {0: log_of(BASE)}), replicas.add("b", {0: log_of(BASE[:3])})
    old = replicas.add("c", {0: log_of(BASE[:2])})
    state = MadeLog(node="c").state(epoch).others[0]
    found = list(judge_replicas([newest, other, PartitionEvidence(old.place, (*old.files, state))], replicas.read))
    assert [(finding.rule, finding.severity) for finding in found] == [("replica-behind", Severity.HARMLESS)] * 2
    warned = [finding.path[0] for finding in found if "must not vote before it has caught up" in finding.reason]
    assert warned == (["c"] if is_old else [])


def test_partitions_of_two_topic_ids_are_not_compared() -> None:
    """A recreated topic has other records; only its id is reported."""
    replicas = Replicas(topic="orders")
    found = []
    for name, value, topic_id in (("a", b"a", "one"), ("b", b"b", "two"), ("c", b"a", "one")):
        replica = replicas.add(name, {0: log_of([Batch(range(10), epoch=0, value=value)])})
        task = SurveyTask(replica.place, f"{name}/partition.metadata", FileKind.PARTITION_METADATA)
        found.append(
            PartitionEvidence(replica.place, (*replica.files, FileEvidence(task, contents={"topic_id": topic_id})))
        )
    assert list(judge_replicas(found, replicas.read)) == []
