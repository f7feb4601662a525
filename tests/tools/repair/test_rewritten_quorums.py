# SPDX-License-Identifier: Apache-2.0
"""Quorums of our own replicas on files, most of which are lost: the others go on from what the command has made."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Leader
from raftlog.records.files.property_files import MetaProperties, write_meta_properties
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import VoterSet
from tests.quorum.driving.file_cluster import FileCluster
from tests.quorum.messages import CLUSTER
from tests.quorum.single_replica import replica_key, voter_set_of
from tests.tools.console import run
from tests.tools.repair.repaired import apply, content, everything, plan


def voter(replica_id: int) -> str:
    """A voter as an operator writes it."""
    directory_id = replica_key(replica_id).directory_id
    assert directory_id is not None
    return f"{replica_id}@localhost:{9990 + replica_id}:{uuid_to_text(directory_id)}"


def write_owners(path: Path, ids: Iterable[int]) -> None:
    """Give each replica's directory the meta.properties that it would have."""
    for each in ids:
        meta = MetaProperties(1, CLUSTER, each, replica_key(each).directory_id)
        (path / f"n{each}/meta.properties").write_bytes(write_meta_properties(meta))


def cluster(path: Path, ids: Sequence[int], started: Sequence[int] | None = None) -> FileCluster:
    """A quorum in a directory."""
    return FileCluster(str(path), LocalFileSystem(), ids, started=started)


def values(path: Path, replica_id: int) -> tuple[OffsetAndEpoch, list[bytes]]:
    """The end of a replica's log, and the values of its data records."""
    with FileLog.open(LocalFileSystem(), FileCluster.directory_of(str(path), replica_id)) as log:
        end = OffsetAndEpoch(log.end_offset.offset, log.last_fetched_epoch)
        found = [record.value for record in log.records(isolation=Isolation.UNCOMMITTED) if not record.is_control]
        return end, [value for value in found if value is not None]


def run_for_a_while(path: Path, ids: Sequence[int], steps: Sequence[tuple[str, int]]) -> None:
    """Let a quorum work: append, lose a replica and start it again, without ever losing its majority."""
    quorum = cluster(path, ids)
    quorum.elect()
    for number, (step, replica_id) in enumerate(steps):
        match step:
            case "append":
                quorum.append(quorum.elect(), f"{number}".encode())
            case "kill" if replica_id in quorum.running and len(quorum.running) - 1 > len(ids) // 2:
                quorum.kill(replica_id)
            case "start" if replica_id in ids and replica_id not in quorum.running:
                quorum.start(replica_id)
            case _:
                quorum.step()
    quorum.close()
    write_owners(path, ids)


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "kill", "start", "pass"]), st.integers(1, 5)), max_size=12
)


@pytest.mark.parametrize(
    ("count", "steps", "left"),
    [
        (2, [("append", 0)], [2]),
        (3, [("append", 0), ("kill", 1), ("append", 0), ("start", 1)], [1]),
        (5, [("append", 0), ("kill", 4), ("append", 0), ("append", 0)], [4, 5]),
    ],
)
def test_one_voter_goes_on(count: int, steps: list[tuple[str, int]], left: list[int]) -> None:
    """Of two, three and five voters: with all records, with one that lagged, and by the best of two that are left."""
    check_going_on(count, steps, left, 0)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), STEPS, st.data())
def test_a_minority_goes_on_from_the_best_log_it_has(
    count: int, steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Whatever a quorum did, and whichever minority is left."""
    most = max(1, (count - 1) // 2)
    left = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=most, unique=True))
    check_going_on(count, steps, left, data.draw(st.integers(0, most)))


def check_going_on(count: int, steps: Sequence[tuple[str, int]], left: Sequence[int], choice: int) -> None:
    """Check that the best log of a minority is kept whole, and that nothing else is gone on from.

    A replica starts from it, leads, and commits. The lost voters' disks, the kept one, and no others must stay away.

    Args:
        count: of voters.
        steps: what the quorum does.
        left: the minority.
        choice: which of the best logs is kept.
    """
    ids = range(1, count + 1)
    with tempfile.TemporaryDirectory() as directory:
        path, file = Path(directory), Path(directory, "plan")
        run_for_a_while(path / "old", ids, steps)
        logs = {each: values(path / "old", each) for each in left}
        best = max(end for end, _ in logs.values())
        equals = [each for each in left if logs[each][0] == best]
        kept = equals[choice % len(equals)]
        (path / "new").mkdir()
        before = everything(path / "old")

        sources = [path / "old" / f"n{each}" for each in (kept, *(each for each in left if each != kept))]
        planned = plan(*sources, voters=voter(kept), lost=[str(each) for each in ids if each != kept], file=file)
        assert planned.exit_code == 0, planned.messages
        made = apply(file, path / "new" / f"n{kept}")
        assert made.exit_code == 0, made.messages

        assert everything(path / "old") == before
        assert {disk["node"] for disk in content(file)["never_start"]} == {str(replica_key(each)) for each in ids}
        assert (content(file)["end_offset"], content(file)["epoch"]) == (best.offset, best.epoch)
        assert values(path / "new", kept) == (OffsetAndEpoch(best.offset + 1, best.epoch), logs[kept][1])
        check_voters(path / "new", kept)
        quorum = cluster(path / "new", [kept])
        leader = quorum.elect()
        assert leader.driver.raft.role.epoch > content(file)["quorum_epoch"]
        quorum.append(leader, b"and on")
        quorum.close()
        assert values(path / "new", kept)[1] == [*logs[kept][1], b"and on"]


def check_voters(path: Path, replica_id: int) -> None:
    """Check that the log's state machine takes the new set, at the last offset, for the one that is in force."""
    with FileLog.open(LocalFileSystem(), FileCluster.directory_of(str(path), replica_id)) as log:
        machine = KRaftControlRecordStateMachine(VoterSet())
        update_state(machine, log)
        assert machine.last_voter_set == voter_set_of([replica_key(replica_id)])
        assert machine.last_voter_set_offset == log.end_offset.offset - 1


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A quorum of three, and a new one of replica 1 alone, which has not started yet."""
    run_for_a_while(tmp_path / "old", (1, 2, 3), [("append", 0)] * 3)
    (tmp_path / "new").mkdir()
    assert plan(tmp_path / "old/n1", voters=voter(1), lost=["2", "3"], file=tmp_path / "plan").exit_code == 0
    assert apply(tmp_path / "plan", tmp_path / "new/n1").exit_code == 0
    return tmp_path


@pytest.mark.parametrize("has_snapshot", [False, True])
@pytest.mark.parametrize("is_old_first", [False, True])
def test_an_old_majority_that_comes_back_is_found(lost: Path, *, is_old_first: bool, has_snapshot: bool) -> None:
    """Started before or after the new quorum: the files show the fork, and which disks should not have started.

    That both sides have committed records is the worst finding, too, and told once: by the rule for forks if a snapshot
    shows it, and by the verdict if the majority does, whose directories that rule does not see.
    """

    def old() -> None:
        quorum = cluster(lost / "old", (1, 2, 3), started=(2, 3))
        quorum.append(quorum.elect(), b"old")
        quorum.equalize()
        quorum.close()

    def new() -> None:
        quorum = cluster(lost / "new", [1])
        quorum.append(quorum.elect(), b"new")
        quorum.close()

    for start in (old, new) if is_old_first else (new, old):
        start()

    directories = (lost / "new/n1", lost / "old/n2", lost / "old/n3")
    if has_snapshot:
        assert run("log", "snapshot", lost / "old/n2", "--force").exit_code == 0
    verified = run("verify", "--format", "jsonl", *directories)
    findings = verified.of_kind("finding")
    assert verified.exit_code == 2
    lost_by = [each["rule"] for each in findings if each["severity"] == "data-loss"]
    assert lost_by == ["replica-lost" if has_snapshot else "committed-lost"]
    fork = "replica-lost" if has_snapshot else "replica-forked"
    assert {"voters-rewritten", fork} <= {each["rule"] for each in findings}
    (rewritten,) = (each["reason"] for each in findings if each["rule"] == "voters-rewritten")
    assert rewritten.endswith(f"the disks of {replica_key(2)}, {replica_key(3)} must never start again")
    judged = run("quorum", *directories)
    for each in (2, 3):
        assert f"Fork: node {each} ({lost}/old/n{each}) has other records" in judged.text
    assert judged.exit_code == 2
    assert "Verdict: committed records are missing, or may be: two lineages are proven" in judged.text
    assert "Start nothing" in judged.text


def test_lost_disks_that_did_not_start_prove_nothing_new(lost: Path) -> None:
    """What they have is in the lineage of the new quorum, too."""
    quorum = cluster(lost / "new", [1])
    quorum.append(quorum.elect(), b"new")
    quorum.close()

    judged = run("quorum", lost / "new/n1", lost / "old/n2", lost / "old/n3")
    assert judged.exit_code == 0
    assert "Start: node 1 " in judged.text


@pytest.mark.parametrize("has_led", [False, True])
def test_a_rewrite_from_a_log_that_lagged_has_dropped_committed_records(tmp_path: Path, *, has_led: bool) -> None:
    """The two others, whose disks turn up later, have more than the one whose log was kept, of its epoch or a later."""
    quorum = cluster(tmp_path / "old", (1, 2, 3))
    role = quorum.elect().driver.raft.role
    assert isinstance(role, Leader)
    kept = role.id if has_led else role.id % 3 + 1
    quorum.kill(kept)
    for _ in range(5):
        quorum.append(quorum.elect(), b"committed")
    quorum.equalize()
    quorum.close()
    write_owners(tmp_path / "old", (1, 2, 3))
    (tmp_path / "new").mkdir()
    others = [each for each in (1, 2, 3) if each != kept]
    lost, file = [str(each) for each in others], tmp_path / "plan"
    assert plan(tmp_path / f"old/n{kept}", voters=voter(kept), lost=lost, file=file).exit_code == 0
    assert apply(file, tmp_path / f"new/n{kept}").exit_code == 0
    quorum = cluster(tmp_path / "new", [kept])
    quorum.append(quorum.elect(), b"new")
    quorum.close()

    judged = run("quorum", tmp_path / f"new/n{kept}", *(tmp_path / f"old/n{each}" for each in others))
    assert judged.exit_code == 2
    assert "two lineages are proven" in judged.text


def test_a_log_that_went_on_is_moved_aside(lost: Path) -> None:
    """An observer whose log is longer or other than the kept one is named, with what its records were."""
    quorum = cluster(lost / "old", (1, 2, 3), started=(2, 3))
    quorum.append(quorum.elect(), b"old")
    quorum.equalize()
    quorum.close()
    meta = MetaProperties(1, CLUSTER, 101, replica_key(101).directory_id)
    (lost / "old/n2/meta.properties").write_bytes(write_meta_properties(meta))

    given = plan(lost / "old/n1", lost / "old/n2", voters=voter(1), lost=["2", "3"], file=lost / "second")
    assert given.exit_code == 1
    assert "is more up to date" in given.messages

    end, _ = values(lost / "old", 2)
    segment = max((lost / "old/n2/__cluster_metadata-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1  # It cannot be kept, and is evidence: its last batch is damaged.
    segment.write_bytes(data)
    given = plan(lost / "old/n1", lost / "old/n2", voters=voter(1), lost=["2", "3"], file=lost / "second")
    assert given.exit_code == 0, given.messages
    (aside,) = content(lost / "second")["move_aside"]
    assert aside["node"] == str(replica_key(101))
    assert aside["source"] == 1
    kept = content(lost / "second")["end_offset"]
    assert kept < end.offset
    assert aside["reason"] in {
        f"its log has records at offset {kept} or above",
        f"its log is another from offset {kept} on",
    }
    assert any("LEADER_CHANGE" in line for line in content(lost / "second")["dropped"])
