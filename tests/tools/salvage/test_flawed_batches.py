# SPDX-License-Identifier: Apache-2.0
"""Batches that are whole and that no leader has written, and snapshots that the log of the result contradicts."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from raftlog.records.batches.batch import RecordBatch
from tests.golden_files import GOLDEN
from tests.planted.faults import FAULTS
from tests.planted.ground import SOURCES, Ground
from tests.tools.console import run
from tests.tools.repair.repaired import LOG, batches
from tests.tools.salvage.planted_everywhere import salvaged, single
from tests.tools.salvage.salvaged import apply, content, plan, spoil
from tests.tools.salvage.test_salvage import rules

GOLD: Final = GOLDEN / SOURCES["dynamic"]
TRUTH: Final = batches(GOLD / "n3")
FLAWED: Final = ("raft-frame", "raft-record", "leader-voted", "voters-schema", "voters-overlap")
KINDS: Final = {
    "raft-frame": "record-longer-than-its-batch",
    "raft-record": "record-with-a-time",
    "leader-voted": "leader-that-is-no-voter",
    "voters-schema": "voters-with-one-twice",
    "voters-overlap": "voters-swapped",
}
"""Rules of batches that leaders of the past may have broken, and a fault for each."""
REFUTED: Final = ("record-offset-twice", "kraft-version-back", "kraft-version-unknown")
"""Faults of which the audit never lets a result have one."""


def planted(tmp_path: Path, kind: str, nodes: Iterable[str]) -> list[Path]:
    """Directories of three nodes, some of which have a fault, at the same place."""
    found = []
    for node in ("n2", "n3", "n101"):
        root = tmp_path / node / "dynamic"
        shutil.copytree(GOLD / node, root / node)
        if node in nodes:
            FAULTS[kind].plant(Ground(root, kind))
        found.append(root / node)
    return found


def made(tmp_path: Path, sources: Iterable[Path]) -> tuple[list[RecordBatch], list[RecordBatch], str]:
    """Plan and make a directory: its batches, those that the quorum had at its offsets, and what the plan says."""
    text = run("salvage", *sources, "--plan", tmp_path / "plan", "-j1")
    assert text.exit_code == 0, text.messages
    done = apply(tmp_path / "plan", tmp_path / "new")
    assert done.exit_code == 0, done.messages
    plan_, found = content(tmp_path / "plan"), batches(tmp_path / "new")
    start, end = plan_["start_offset"], plan_["end_offset"]
    return found, [each for each in TRUTH if start <= each.base_offset < end], text.text


@pytest.mark.parametrize("rule", FLAWED)
@pytest.mark.parametrize("nodes", [("n3",), ("n2", "n3")], ids=" ".join)
def test_a_batch_without_a_fault_is_preferred(rule: str, nodes: tuple[str, ...], tmp_path: Path) -> None:
    """One disk of three has what a leader has written: that is taken, even against a majority with the other."""
    found, expected, text = made(tmp_path, planted(tmp_path, KINDS[rule], nodes))
    assert found == expected == TRUTH[: len(found)]
    assert rules(tmp_path / "new") == set()
    flaws = content(tmp_path / "plan")["flaws"]
    assert {(each["rule"], each["is_taken"]) for each in flaws} == {(rule, False)}
    assert {each["source"] for each in flaws} == {("n2", "n3", "n101").index(node) for node in nodes}
    assert content(tmp_path / "plan")["conflicts"] == []
    for node in nodes:
        assert f"{tmp_path / node / 'dynamic' / node}: other bytes than the result has: move" in text


@pytest.mark.parametrize("rule", FLAWED)
def test_a_plan_says_what_the_audit_will_say(rule: str, tmp_path: Path) -> None:
    """No other disk is there: the batch stays, and the plan says so before anything is made."""
    (source,) = [each for each in planted(tmp_path, KINDS[rule], ["n3"]) if each.name == "n3"]
    found, expected, text = made(tmp_path, [source])
    assert len(found) == len(expected)
    assert found != expected
    flaws = content(tmp_path / "plan")["flaws"]
    assert (
        {(each["rule"], each["is_taken"]) for each in flaws}
        == {(rule, True)}
        == {(each, True) for each in rules(tmp_path / "new")}
    )
    assert f"[{rule}]." in text


@pytest.mark.parametrize("kind", ["attribute-bit-unused", "voters-of-other-versions", "voters-changed-again-at-once"])
def test_an_odd_batch_without_a_majority_is_not_preferred(kind: str, tmp_path: Path) -> None:
    """A tool may have written it, on one disk alone: what two others have goes on, with all that is after it."""
    found, _, _ = made(tmp_path, planted(tmp_path, kind, ["n3"]))
    assert found == TRUTH
    assert content(tmp_path / "plan")["conflicts"] == []


def test_no_epoch_begins_without_its_leader(tmp_path: Path) -> None:
    """Two of three voters have the records of an epoch one offset too low, in the place of its LeaderChange."""
    found = salvaged("static", single("static", "offsets-too-low", 2), tmp_path)
    assert (found.planted, found.problems, found.verdict) == (2, (), "whole")


@pytest.mark.parametrize("kind", REFUTED)
@pytest.mark.parametrize("nodes", [("n3",), ("n2", "n3")], ids=" ".join)
@pytest.mark.parametrize("is_alone", [True, False], ids=["without a sound disk", "with a sound disk"])
def test_each_plan_can_be_carried_out(kind: str, nodes: tuple[str, ...], is_alone: bool, tmp_path: Path) -> None:
    """What the audit of a result refuses is damage for the plan: the log has another disk's batch, or none there."""
    sources = planted(tmp_path, kind, nodes)
    if is_alone:
        sources = [each for each in sources if each.name in nodes]
    found, expected, _ = made(tmp_path, sources)
    assert found == expected
    assert rules(tmp_path / "new") == set()
    if not is_alone:
        assert found == TRUTH[: len(found)]


@pytest.mark.parametrize("is_damaged", [True, False], ids=["log damaged", "log sound"])
def test_a_snapshot_must_agree_with_the_log_of_the_result(is_damaged: bool, tmp_path: Path) -> None:
    """Its own log may have lost the record that contradicts it, which another disk has."""
    sources = planted(tmp_path, "snapshot-of-other-version", ["n2"])
    if is_damaged:
        spoil(sources[0], 146)
    found, _, text = made(tmp_path, sources)
    assert found == TRUTH
    assert rules(tmp_path / "new") == set()
    assert not is_damaged or ", but the log has 1." in text
    assert content(tmp_path / "plan")["gives_up"] is False


@pytest.mark.parametrize("nodes", [("n2",), ("n3",), ("n2", "n3", "n101")], ids=" ".join)
def test_a_snapshot_that_was_moved_into_a_batch_is_left_out(nodes: tuple[str, ...], tmp_path: Path) -> None:
    """By its new name it ends where no batch ends, which no log can be opened with."""
    inside = next(each for each in TRUTH if each.base_offset > 200 and each.next_offset - each.base_offset > 1)
    moved = f"{inside.base_offset + 1:020}-{inside.partition_leader_epoch:010}.checkpoint"
    sources = [each for each in planted(tmp_path, "", ()) if each.name in nodes]
    for source in sources:
        newest = max((source / LOG).glob("*.checkpoint"))
        newest.rename(newest.with_name(moved))
    found, expected, text = made(tmp_path, sources)
    assert found == expected
    assert found[0].base_offset == 0
    assert rules(tmp_path / "new") == set()
    assert not list((tmp_path / "new" / LOG).glob(moved))
    assert all(f"Not used: snapshot {source / LOG / moved}: " in text for source in sources)
    (proof,) = [line for line in text.splitlines() if line.startswith("Proven to be committed: ")]
    assert proof.endswith(", which is left out (below).") == (moved in proof) == (nodes == ("n3",))
    assert "plan again with its directory first" not in text


def test_a_last_batch_that_nothing_vouches_for_may_be_lost(tmp_path: Path) -> None:
    """It is not said that nothing is lost, and what to do with other nodes is."""
    sources = planted(tmp_path, "", ())
    path = max((sources[1] / LOG).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[TRUTH[-1].position + 15] ^= 8  # The epoch, which no CRC covers.
    path.write_bytes(data)
    for source in sources:
        for each in (source / LOG).glob("*230-*.checkpoint"):
            each.unlink()
    _, expected, text = made(tmp_path, sources)
    assert expected == TRUTH[:-1]
    assert "Lost of this lineage: nothing that a source shows" not in text
    assert "plan again with its directory first" in text
    assert "must have its __cluster_metadata-0 moved aside" in text
    spoiled = plan(sources[1], file=tmp_path / "again")
    assert spoiled.exit_code == 0, spoiled.messages
    assert content(tmp_path / "again")["gives_up"]


def test_a_wrong_number_within_what_another_disk_has_gives_nothing_up(tmp_path: Path) -> None:
    """A batch whose base offset is wrong is before others of its own log, which are had."""
    sources = planted(tmp_path, "", ())
    path = max((sources[1] / LOG).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[next(each.position for each in TRUTH if each.base_offset == 210) + 6] ^= 8
    path.write_bytes(data)
    found, _, text = made(tmp_path, sources)
    assert found == TRUTH
    assert "Lost of this lineage: nothing that a source shows." in text
    assert "plan again" not in text
