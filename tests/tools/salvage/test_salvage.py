# SPDX-License-Identifier: Apache-2.0
"""Salvaging what a real Kafka left and we have damaged: the plan, the directory that is made, and what is only read."""

import shutil
from pathlib import Path

import attrs
import pytest

from raftlog.records.files.property_files import read_meta_properties
from raftlog.records.files.quorum_state import read_quorum_state
from raftlog.tools.repair.plan import RepairPlan, load_plan
from raftlog.tools.salvage.salvage_plan import Salvage
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.repair.repaired import DIRECTORY_IDS, LOG, STATIC, batches, copied, everything
from tests.tools.salvage.salvaged import apply, batch_at, content, erase, plan, rewrite, spoil, without_snapshots


def made(path: Path, *sources: Path, options: tuple[str, ...] = ()) -> Path:
    """Plan and make a directory."""
    planned = plan(*sources, file=path / "plan", options=options)
    assert planned.exit_code == 0, planned.messages
    done = apply(path / "plan", path / "new")
    assert done.exit_code == 0, done.messages
    return path / "new"


def data(directory: Path) -> list[bytes]:
    """The bytes of all batches of a log."""
    return [bytes(batch.buffer) for batch in batches(directory)]


def rules(directory: Path) -> set[str]:
    """What the audit finds above harmless; a log without an identity has no election state."""
    found = {each["rule"] for each in run("verify", "--format", "jsonl", directory).of_kind("finding")}
    return found if (directory / "meta.properties").exists() else found - {"election-missing"}


def test_each_replica_gives_what_the_other_lacks(quorum: Path, tmp_path: Path) -> None:
    """A controller and a broker are damaged in other places: the result is the whole log, and nothing else."""
    whole = data(quorum / "n3")
    spoil(quorum / "n3", 20)
    spoil(quorum / "n3", 200)
    spoil(quorum / "n101", 100)
    before = everything(quorum)

    out = made(tmp_path, quorum / "n3", quorum / "n101")

    assert data(out) == whole
    assert rules(out) == set()
    assert everything(quorum) == before
    assert content(tmp_path / "plan")["losses"] == []
    taken = {piece["source"] for piece in content(tmp_path / "plan")["pieces"]}
    assert taken == {0, 1}
    assert not (out / "meta.properties").exists()
    assert not (out / LOG / "quorum-state").exists()
    assert not [path for path in out.rglob("*") if "raftlog" in path.name or path.name == ".lock"]


def test_the_order_of_the_sources_does_not_matter(quorum: Path, tmp_path: Path) -> None:
    """Nor whether the log directory or the metadata log in it is named, nor whether one is named twice."""
    spoil(quorum / "n3", 20)
    spoil(quorum / "n101", 100)
    logs = []
    for number, sources in enumerate(
        [
            [quorum / "n3", quorum / "n101"],
            [quorum / "n101", quorum / "n3"],
            [quorum / "n101" / LOG, quorum / "n3" / LOG, quorum / "n3"],
        ]
    ):
        place = tmp_path / str(number)
        place.mkdir()
        logs.append(data(made(place, *sources)))
        assert len(content(place / "plan")["pieces"]) > 2
    assert logs[0] == logs[1] == logs[2]


@pytest.mark.parametrize("source", ["dynamic-quorum", "static-upgrade"])
def test_every_file_is_the_same_in_any_order(source: str, tmp_path: Path) -> None:
    """Of all nodes, some of them damaged: batches, snapshots, the vote and the small files."""
    quorum = copied(tmp_path, source, GOLDEN / source / "data")
    erase(quorum / "n2", 100, 110)
    erase(quorum / "n1", 20, 30)
    nodes = sorted(quorum.iterdir())
    found = []
    for name, order in (("forward", nodes), ("reversed", nodes[::-1])):
        (tmp_path / name).mkdir()
        out = made(tmp_path / name, *order, options=("--node-id", "1"))
        found.append({path: each[0] for path, each in everything(out).items()})
    assert found[0] == found[1]
    assert len(found[0]) > 8


def test_a_directory_is_no_witness_for_itself(quorum: Path, tmp_path: Path) -> None:
    """A batch alone among zeros, of a wrong epoch, is not believed for a copy of its disk, nor for a link to it."""
    path, batch = batch_at(quorum / "n2", 163)
    erase(quorum / "n2", 120, 163)
    erase(quorum / "n2", batch.next_offset, 1000)
    wrong = bytearray(path.read_bytes())
    wrong[batch.position + 12 : batch.position + 16] = (5).to_bytes(4, "big")
    path.write_bytes(wrong)
    copy = Path(shutil.copytree(quorum / "n2", quorum / "n2-copy"))
    (copy / "meta.properties").unlink()
    (quorum / "link").symlink_to(copy)
    (quorum / "nested").mkdir()
    (quorum / "nested" / LOG).symlink_to(copy / LOG)
    whole = data(quorum / "n3")[: len(data(quorum / "n1"))]
    state = quorum / "n2" / LOG / "quorum-state"
    text = state.read_text()
    for number, epoch in enumerate((4, 5)):  # Whether or not the node's own election state excludes that epoch.
        for each in (state, copy / LOG / "quorum-state"):
            each.write_text(text.replace('"leaderEpoch":4', f'"leaderEpoch":{epoch}'))
        for case, names in enumerate((["n2", "n2-copy"], ["n2-copy", "link", "nested"], ["n2", "link", "n1"])):
            place = tmp_path / f"{number}-{case}"
            place.mkdir()
            found = data(made(place, *(quorum / name for name in names)))
            assert found == whole[len(whole) - len(found) :] if "n1" in names else bytes(batch.buffer) not in found
            assert bytes(wrong[batch.position : batch.position + batch.size_bytes]) not in found


@pytest.mark.parametrize("source", ["dynamic-quorum", "static-upgrade", "groups", "mirror", "killed", "data-topics"])
def test_undamaged_logs_of_every_corpus_stay_as_they_are(source: str, tmp_path: Path) -> None:
    """Of each node's directory that a Kafka left: the same batches, from the same offset on."""
    found = sorted({path.parent.parent for path in (GOLDEN / source).rglob(f"{LOG}/*.log")})
    for number, directory in enumerate(found):
        place = tmp_path / str(number)
        copy = Path(shutil.copytree(directory, place / "node"))
        if "batch-crc" in rules(copy):
            continue
        assert data(made(place, copy)) == data(copy), directory
        assert len(data(copy)) > 0
    assert found


def test_a_hole_without_a_snapshot_ends_the_log(quorum: Path, tmp_path: Path) -> None:
    """The same record is bad everywhere, and no snapshot reaches it: all after it is lost, and what it was is said."""
    sources = [quorum / "n3", quorum / "n2"]
    for directory in sources:
        spoil(directory, 70)
        for path in (directory / LOG).glob("*.checkpoint"):
            if int(path.name[:20]):
                path.unlink()
    hole = batch_at(GOLDEN / "dynamic-quorum/data/n3", 70)[1]
    whole = data(GOLDEN / "dynamic-quorum/data/n3")

    out = made(tmp_path, *sources)

    assert data(out) == whole[: len(data(out))]
    assert batches(out)[-1].next_offset == hole.base_offset
    assert rules(out) == set()
    lost = content(tmp_path / "plan")["losses"]
    assert [(each["start_offset"], each["end_offset"]) for each in lost] == [
        (hole.base_offset, hole.next_offset),
        (hole.next_offset, 230),
    ]
    assert lost[1]["size_bytes"] == sum(map(len, whole)) - sum(map(len, data(out))) - hole.size_bytes
    assert any("TOPIC_RECORD" in line or "LEADER_CHANGE" in line for line in lost[1]["words"])


def test_a_brokers_snapshot_above_a_hole_beats_cutting(quorum: Path, tmp_path: Path) -> None:
    """Only a broker has a snapshot above the hole: the log begins after the hole, with that snapshot."""
    for path in (quorum / "n3" / LOG).glob("*.checkpoint"):
        path.unlink()
    shutil.rmtree(quorum / "n2")
    for node in ("n3", "n101"):
        spoil(quorum / node, 70)
    hole = batch_at(GOLDEN / "dynamic-quorum/data/n3", 70)[1]

    out = made(tmp_path, quorum / "n3", quorum / "n101")

    found = batches(out)
    assert (found[0].base_offset, found[-1].next_offset) == (hole.next_offset, 230)
    assert sorted(path.name for path in (out / LOG).glob("*.checkpoint")) == [
        "00000000000000000096-0000000003.checkpoint",
        "00000000000000000167-0000000004.checkpoint",
    ]
    assert rules(out) == set()
    assert content(tmp_path / "plan")["losses"] == []


def test_it_is_said_that_committed_records_are_lost(quorum: Path, tmp_path: Path) -> None:
    """The name of a snapshot proves what it covers, though it cannot be read any more."""
    spoil(quorum / "n3", 70)
    for path in (quorum / "n3" / LOG).glob("*.checkpoint"):
        if int(path.name[:20]):
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:200])
    text = run("salvage", quorum / "n3", "--plan", tmp_path / "plan").text
    assert "COMMITTED RECORDS ARE LOST: offsets 70 to 229 are proven to be committed" in text
    assert (
        "If a node that was not given has records at offset 70 or above, plan again with its directory first." in text
    )
    assert "Records at offset 70 and above, and those of other lineages, are given up." in text


def test_directories_with_other_bytes_are_named(quorum: Path, tmp_path: Path) -> None:
    """A majority of the voters settles a conflict: the third one must not go on with its own bytes."""
    rewrite(quorum / "n3", 200)
    nodes = [quorum / name for name in ("n2", "n3", "n4")]
    advice = (
        f"{quorum / 'n3'}: other bytes than the result has, from offset {batch_at(quorum / 'n3', 200)[1].base_offset}"
    )
    assert advice in run("salvage", *nodes, "--plan", tmp_path / "plan", "-j1").text
    assert content(tmp_path / "plan")["conflicts"][0]["is_settled"]
    assert advice in run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new").text


def test_a_snapshot_that_is_damaged_too_does_not_count(quorum: Path, tmp_path: Path) -> None:
    """A bit of the only snapshots above the hole is wrong: the log is cut instead."""
    spoil(quorum / "n101", 70)
    for path in (quorum / "n101" / LOG).glob("*.checkpoint"):
        path.chmod(0o600)
        damaged = bytearray(path.read_bytes())
        damaged[400] ^= 1
        path.write_bytes(damaged)
    out = made(tmp_path, quorum / "n101")
    assert batches(out)[-1].next_offset == batch_at(GOLDEN / "dynamic-quorum/data/n3", 70)[1].base_offset


def test_a_renamed_snapshot_does_not_win_by_damage_elsewhere(quorum: Path, tmp_path: Path) -> None:
    """A bit of batch 20 of its node is wrong, which does not hide that its log has ended at 230."""
    log = quorum / "n3" / LOG
    (log / "00000000000000000151-0000000004.checkpoint").rename(log / "00000000000000000330-0000000004.checkpoint")
    (log / "00000000000000000230-0000000004.checkpoint").unlink()
    spoil(quorum / "n3", 20)
    whole = data(GOLDEN / "dynamic-quorum/data/n3")
    out = made(tmp_path, *(quorum / name for name in ("n3", "n1", "n2", "n101")))
    assert (content(tmp_path / "plan")["start_offset"], data(out)) == (0, whole)


def test_an_empty_log_after_a_snapshot(quorum: Path, tmp_path: Path) -> None:
    """The newest snapshot ends where the log ended, and the log is damaged before it: nothing but that is kept."""
    for directory in quorum.glob("n*"):
        if directory.name != "n3":
            shutil.rmtree(directory)
    spoil(quorum / "n3", 229)
    out = made(tmp_path, quorum / "n3")
    assert [path.name for path in (out / LOG).glob("*.log")] == ["00000000000000000230.log"]
    assert batches(out) == []
    assert rules(out) == set()


# Identity


def identity(directory: Path) -> tuple[int | None, str]:
    """The node id and the directory id."""
    meta = read_meta_properties((directory / "meta.properties").read_bytes())
    assert meta.directory_id is not None
    return meta.node_id, uuid_to_text(meta.directory_id)


def test_a_node_keeps_its_identity_with_its_election_state(quorum: Path, tmp_path: Path) -> None:
    """Its directory id, its epoch, its vote and the cluster id."""
    out = made(tmp_path, quorum / "n2", quorum / "n3", options=("--node-id", "3"))
    assert identity(out) == (3, DIRECTORY_IDS[3])
    old, new = (read_quorum_state((each / LOG / "quorum-state").read_bytes()) for each in (quorum / "n3", out))
    assert new == old


def test_a_node_without_its_election_state_is_a_new_one(quorum: Path, tmp_path: Path) -> None:
    """Its quorum-state is gone, or cannot be read, or nobody has its directory: another directory id, and no vote."""
    (quorum / "n3" / LOG / "quorum-state").unlink()
    (quorum / "n2" / LOG / "quorum-state").write_bytes(b"{")
    seen = set(DIRECTORY_IDS.values())
    for node in (2, 3, 9):
        place = tmp_path / f"of-{node}"
        place.mkdir()
        out = made(place, quorum / "n2", quorum / "n3", options=("--node-id", str(node)))
        found = identity(out)
        assert found[0] == node
        assert found[1] not in seen
        seen.add(found[1])
        state = read_quorum_state((out / LOG / "quorum-state").read_bytes())
        assert (state.leader_epoch, state.leader_id, state.voted_id) == (4, -1, -1)
        assert rules(out) == (set() if node == 9 else {"directory-id"})


def test_the_later_vote_of_two_copies_counts(quorum: Path, tmp_path: Path) -> None:
    """A backup of the node's disk has an earlier election state."""
    backup = Path(shutil.copytree(quorum / "n3", tmp_path / "backup"))
    state = (quorum / "n3" / LOG / "quorum-state").read_text()
    (backup / LOG / "quorum-state").write_text(state.replace('"leaderEpoch":4', '"leaderEpoch":3'))
    for order in ((backup, quorum / "n3"), (quorum / "n3", backup)):
        planned = plan(*order, file=tmp_path / "plan", options=("--node-id", "3"))
        assert planned.exit_code == 0
        assert order[content(tmp_path / "plan")["owner"]["state_source"]] == quorum / "n3"


def test_an_epoch_that_the_node_has_not_seen_has_no_vote_of_it(quorum: Path, tmp_path: Path) -> None:
    """Its log was behind: it goes on in the log's last epoch, with no leader and no vote."""
    path = quorum / "n3" / LOG / "quorum-state"
    path.write_text(path.read_text().replace('"leaderEpoch":4', '"leaderEpoch":3'))
    out = made(tmp_path, quorum / "n2", quorum / "n3", options=("--node-id", "3"))
    state = read_quorum_state((out / LOG / "quorum-state").read_bytes())
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (4, -1, -1)
    assert identity(out) == (3, DIRECTORY_IDS[3])


def test_a_static_voter_needs_its_election_state(tmp_path: Path) -> None:
    """It is known by its id alone, so that another directory id does not make it another voter."""
    static = copied(tmp_path, "static", STATIC)
    (static / "n1" / LOG / "quorum-state").unlink()
    refused = plan(static / "n1", static / "n2", file=tmp_path / "plan", options=("--node-id", "1"))
    assert refused.exit_code == 1
    assert "node 1 is a static voter" in refused.messages
    assert identity(made(tmp_path, static / "n1", static / "n2", options=("--node-id", "2")))[0] == 2


def test_who_is_a_static_voter_follows_from_the_result(tmp_path: Path) -> None:
    """The upgrade to kraft.version 1 is at 160: the result counts, not where a source is damaged."""
    static = copied(tmp_path, "static", GOLDEN / "static-upgrade/data")
    for node in ("n1", "n2"):
        without_snapshots(static / node, above=60)
    cut = Path(shutil.copytree(static, tmp_path / "cut"))
    erase(static / "n1", 100, 105)
    erase(static / "n2", 140, 145)

    out = made(tmp_path, static / "n1", static / "n2", options=("--node-id", "3"))

    assert (content(tmp_path / "plan")["kraft_version"], batches(out)[-1].next_offset) == (1, 214)
    rewrite(cut / "n1", 140)
    given = [cut / "n1", cut / "n2"]
    assert plan(*given, file=tmp_path / "log").exit_code == 0
    assert (content(tmp_path / "log")["kraft_version"], content(tmp_path / "log")["end_offset"]) == (0, 140)
    refused = plan(*given, file=tmp_path / "refused", options=("--node-id", "3"))
    assert refused.exit_code == 1
    assert "node 3 is a static voter" in refused.messages
    assert plan(*given, file=tmp_path / "other", options=("--node-id", "101")).exit_code == 0


def test_another_kraft_version_than_planned_is_refused(quorum: Path, tmp_path: Path) -> None:
    """What the new log says at its end is compared with the plan, on which its owner's identity depends."""
    assert plan(quorum / "n3", file=tmp_path / "plan").exit_code == 0
    planned = load_plan(str(tmp_path / "plan"), "salvage")
    salvage = attrs.evolve(planned.content_as(Salvage), kraft_version=0)
    RepairPlan.of("salvage", planned.sources, salvage).save(str(tmp_path / "edited"))
    refused = apply(tmp_path / "edited", tmp_path / "new")
    assert refused.exit_code == 1
    assert "ends at kraft.version 1, and the plan is for 0" in refused.messages
    assert not (tmp_path / "new").exists()


def test_a_directory_without_an_owner_gives_its_log(quorum: Path, tmp_path: Path) -> None:
    """``meta.properties`` is lost: its log counts, and for an identity the cluster id must be somewhere."""
    whole = data(quorum / "n3")
    (quorum / "n3" / "meta.properties").unlink()
    assert data(made(tmp_path, quorum / "n3")) == whole
    refused = plan(quorum / "n3", file=tmp_path / "plan", options=("--node-id", "3"))
    assert refused.exit_code == 1
    assert "cluster.id" in refused.messages
    assert plan(quorum / "n3", quorum / "n2", file=tmp_path / "plan", options=("--node-id", "3")).exit_code == 0
    assert content(tmp_path / "plan")["owner"]["state_source"] is None


def test_voters_can_be_rewritten_on_the_result(quorum: Path, tmp_path: Path) -> None:
    """A salvaged directory is a directory that ``raftlog rewrite-voters`` keeps."""
    spoil(quorum / "n3", 20)
    out = made(tmp_path, quorum / "n3", quorum / "n101", options=("--node-id", "3"))
    voter = f"3@127.0.0.1:19093:{DIRECTORY_IDS[3]}"
    lost = ("--lost", "2", "--lost", "4")
    planned = run("rewrite-voters", out, "--initial-controllers", voter, *lost, "--plan", tmp_path / "rewrite")
    assert planned.exit_code == 0, planned.messages
