# SPDX-License-Identifier: Apache-2.0
"""Bad input to ``raftlog salvage``: one clear line, the right exit code, and nothing is written."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from raftlog.records.files.property_files import read_meta_properties, write_meta_properties
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from tests.other_processes import held_by_another_process
from tests.tools.console import Outcome, run
from tests.tools.repair.repaired import LOG, STATIC, copied, everything
from tests.tools.salvage.salvaged import FIRST, apply, plan, spoil


def check_refused(outcome: Outcome, reason: str, exit_code: int = 1) -> None:
    """Check that nothing was done, and that one line says why."""
    assert (outcome.exit_code, outcome.output) == (exit_code, b""), outcome.messages
    (line,) = outcome.complaints
    assert line.startswith("raftlog salvage: ")
    assert reason in line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "SRC is missing"),
        (("{n3}",), "--plan is missing"),
        (("--apply", "{tmp}/p"), "--out is missing"),
        (("{n3}", "--plan", "{tmp}/p", "--out", "{tmp}/o"), "--out belongs to the other step"),
        (("{n3}", "--apply", "{tmp}/p", "--out", "{tmp}/o"), "SRC belongs to the other step"),
        (("--apply", "{tmp}/p", "--out", "{tmp}/o", "--node-id", "3"), "--node-id belongs to the other step"),
        (("{n3}", "--plan", "{tmp}/p", "--node-id", "-1"), "--node-id -1: a node id is from 0"),
        (("{n3}", "--plan", "{tmp}/p", "--node-id", "2147483648"), "--node-id 2147483648: a node id is from 0"),
        (("{n3}", "--plan", "{tmp}/p", "--node-id", "x"), "invalid int value"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], reason: str, quorum: Path, tmp_path: Path) -> None:
    """Each step has its own options, and needs all of them."""
    outcome = run("salvage", *(each.format(n3=quorum / "n3", tmp=tmp_path) for each in arguments))
    assert outcome.exit_code == 1
    assert reason in outcome.messages
    assert [path.name for path in tmp_path.iterdir()] == ["quorum"]


def without_log(directory: Path) -> None:
    """Leave only the snapshots."""
    for path in (directory / LOG).glob("*.log"):
        path.unlink()


def with_nothing_sound(directory: Path) -> None:
    """Overwrite all batches, of segments and snapshots."""
    for path in (*(directory / LOG).glob("*.log"), *(directory / LOG).glob("*.checkpoint")):
        path.chmod(0o600)
        path.write_bytes(b"\xff" * len(path.read_bytes()))


def without_a_beginning(directory: Path) -> None:
    """Lose the beginning of the log, and all snapshots."""
    for path in (directory / LOG).glob("*.checkpoint"):
        path.unlink()
    (directory / LOG / FIRST).unlink()


@pytest.mark.parametrize(
    ("change", "reason", "exit_code"),
    [
        (shutil.rmtree, "is not a log directory", 1),
        (lambda directory: shutil.rmtree(directory / LOG), "a snapshot alone is not enough", 2),
        (without_log, "a snapshot alone is not enough", 2),
        (with_nothing_sound, "no sound batch and no sound snapshot", 2),
        (without_a_beginning, "no log can be made: no sound batch of offset 0 is here", 2),
    ],
)
def test_sources_without_a_log(
    change: Callable[[Path], object], reason: str, exit_code: int, quorum: Path, tmp_path: Path
) -> None:
    """No directory, no log in it, only snapshots, nothing sound, no way to begin."""
    change(quorum / "n3")
    check_refused(plan(quorum / "n3", file=tmp_path / "plan"), reason, exit_code)
    assert not (tmp_path / "plan").exists()


def test_sources_of_two_clusters(quorum: Path, tmp_path: Path) -> None:
    """Each source must be of one cluster, whichever comes first."""
    path = quorum / "n2" / "meta.properties"
    path.write_bytes(write_meta_properties(attrs.evolve(read_meta_properties(path.read_bytes()), cluster_id="other")))
    for nodes in (("n3", "n2"), ("n2", "n3"), ("n3", "n101", "n2")):
        check_refused(plan(*(quorum / each for each in nodes), file=tmp_path / "plan"), "cluster.id")
    (quorum / "n3" / "meta.properties").unlink()
    assert plan(quorum / "n3", quorum / "n2", file=tmp_path / "plan").exit_code == 0


def test_a_result_without_a_metadata_version_is_refused(tmp_path: Path) -> None:
    """The log is cut before the record that sets it: Kafka 4 would die of that."""
    static = copied(tmp_path, "static", STATIC)
    for path in (static / "n1" / LOG).glob("*.checkpoint"):
        path.unlink()
    spoil(static / "n1", 1)
    check_refused(plan(static / "n1", file=tmp_path / "plan"), "none that sets metadata.version")


def test_a_node_that_runs_is_refused(quorum: Path, tmp_path: Path) -> None:
    """A source whose lock is held, in either step."""
    assert plan(quorum / "n3", file=tmp_path / "plan").exit_code == 0
    with held_by_another_process(quorum / "n3" / ".lock"):
        check_refused(plan(quorum / "n3", file=tmp_path / "other"), "its node is running")
        check_refused(apply(tmp_path / "plan", tmp_path / "new"), "its node is running")
    assert not (tmp_path / "new").exists()


def test_a_source_that_has_changed_refuses_the_plan(quorum: Path, tmp_path: Path) -> None:
    """A byte of any source, used or not, or another file: make a new plan."""
    assert plan(quorum / "n3", quorum / "n2", file=tmp_path / "plan").exit_code == 0
    path = quorum / "n2" / LOG / "quorum-state"
    before = path.read_bytes()
    status = path.stat()
    path.write_bytes(before.replace(b"4", b"5"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    check_refused(apply(tmp_path / "plan", tmp_path / "new"), "make a new plan")
    path.write_bytes(before)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0
    (quorum / "n3" / LOG / "00000000000000000999.log").write_bytes(b"")
    check_refused(apply(tmp_path / "plan", tmp_path / "new2"), "make a new plan")


@pytest.mark.parametrize("out", ["quorum/n3/new", "quorum/n3", "quorum", "missing/new"])
def test_an_output_in_a_wrong_place(out: str, quorum: Path, tmp_path: Path) -> None:
    """Inside a source, a source itself, around one, or nowhere."""
    assert plan(quorum / "n3", file=tmp_path / "plan").exit_code == 0
    before = everything(tmp_path)
    assert apply(tmp_path / "plan", tmp_path / out).exit_code == 1
    assert everything(tmp_path) == before
    check_refused(plan(quorum / "n3", file=quorum / "n3" / "plan"), "is inside the source")


def test_a_plan_that_was_edited_or_is_another_verbs(quorum: Path, tmp_path: Path) -> None:
    """Its CRC does not hold any more, or it is of another verb."""
    file = tmp_path / "plan"
    assert plan(quorum / "n3", file=file).exit_code == 0
    members = json.loads(file.read_text())
    members["content"]["end_offset"] += 1
    file.write_text(json.dumps(members))
    check_refused(apply(file, tmp_path / "new"), "changed after it was made")
    refused = run("rewrite-voters", "--apply", file, "--out", tmp_path / "new")
    assert refused.exit_code == 1


@pytest.mark.parametrize(
    ("leader", "vote", "is_refused"),
    [(-1, 2, True), (-1, 4, True), (2, 2, True), (-1, 3, False), (-1, -1, False), (3, 3, False), (3, -1, False)],
)
def test_two_memories_of_one_node(leader: int, vote: int, quorum: Path, tmp_path: Path, *, is_refused: bool) -> None:
    """Node 3 led epoch 4, and so has voted for itself. A copy of its disk that says otherwise refuses its identity."""
    copy = Path(shutil.copytree(quorum / "n3", tmp_path / "copy"))
    state = QuorumStateData(1, leader, 4, vote)
    (copy / LOG / "quorum-state").write_bytes(write_quorum_state(state))
    for order in ((quorum / "n3", copy), (copy, quorum / "n3")):
        given = plan(*order, file=tmp_path / "plan", options=("--node-id", "3"))
        if is_refused:
            check_refused(given, "node 3 cannot have had both quorum-states of epoch 4: ")
            assert "leader 3 and no vote" in given.messages
            assert not (tmp_path / "plan").exists()
            assert plan(*order, file=tmp_path / "plan").exit_code == 0, "the log alone is not theirs"
            (tmp_path / "plan").unlink()
        else:
            assert given.exit_code == 0, given.messages
