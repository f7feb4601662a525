# SPDX-License-Identifier: Apache-2.0
"""A log that its snapshots contradict, about voters, kraft.version or their own end, is not rewritten."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.planted.faults import FAULTS
from tests.planted.ground import CleanCopy, Ground
from tests.tools.console import run
from tests.tools.repair.repaired import LOG, THREE, apply, everything, plan

CONTRADICTED: Final = frozenset(
    {
        "kraft-version-known",
        "kraft-version-order",
        "snapshot-id",
        "snapshot-timestamp",
        "snapshot-version",
        "snapshot-voters",
        "voters-version",
    }
)
KINDS: Final = [
    name for name, fault in FAULTS.items() if "dynamic" in fault.grounds and CONTRADICTED & set(fault.rules)
]
IN_HISTORY: Final = frozenset(
    {
        "epoch-leader",
        "epoch-opening",
        "leader-voted",
        "voters-accepted",
        "voters-overlap",
        "voters-schema",
    }
)
"""Damage by leaders of the past, which stays in a log that is kept as it is, and is told."""


def planted(name: str, tmp_path: Path, *, in_newest: bool = False) -> Path:
    """Node 3's directory, alone, with a fault; if that is of a snapshot, it may be made the newest one."""
    root = tmp_path / "dynamic"
    CleanCopy("dynamic", root)
    for directory in list(root.iterdir()):
        if directory.name != "n3":
            shutil.rmtree(directory)
    spot = FAULTS[name].plant(Ground(root, name))
    for path in (root / "n3" / LOG).glob("*.checkpoint"):
        if in_newest and path.name > spot.path.name:
            path.unlink()
    return root / "n3"


@pytest.mark.parametrize("voters", [THREE, "3@127.0.0.1:19093"], ids=["dynamic", "static"])
@pytest.mark.parametrize("name", ["snapshot-of-other-version", "snapshot-of-other-voters"])
def test_a_snapshot_that_the_log_contradicts(name: str, voters: str, tmp_path: Path) -> None:
    """Both files are named, whatever form the voters have; a salvaged log lacks the snapshot, and is rewritten."""
    directory = planted(name, tmp_path, in_newest=True)
    before = everything(directory)
    outcome = plan(directory, voters=voters, file=tmp_path / "plan")
    assert (outcome.exit_code, outcome.output) == (2, b"")
    (line,) = outcome.complaints
    assert line.startswith(f"raftlog rewrite-voters: {directory / LOG}/")
    assert f".checkpoint: {'kraft.version 0' if 'version' in name else 'voters {'}" in line
    assert f" against {directory / LOG}/0000000000000000" in line
    assert everything(directory) == before
    assert not (tmp_path / "plan").exists()
    if voters is THREE:
        assert run("salvage", directory, "--node-id", "3", "--plan", tmp_path / "salvage").exit_code == 0
        assert run("salvage", "--apply", tmp_path / "salvage", "--out", tmp_path / "whole").exit_code == 0
        assert plan(tmp_path / "whole", file=tmp_path / "plan").exit_code == 0
        assert_made_soundly(tmp_path)


def test_a_plan_that_did_not_look_is_not_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a raftlog that believed the snapshot: the result is audited, and the source's fault does not excuse it."""
    directory = planted("snapshot-of-other-version", tmp_path, in_newest=True)
    monkeypatch.setattr("raftlog.tools.repair.contradictions.check_agreement", lambda _: None)
    planned = plan(directory, voters="3@127.0.0.1:19093", file=tmp_path / "plan")
    assert planned.exit_code == 0, planned.messages
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert (made.exit_code, made.output) == (1, b"")
    assert "the result is not sound, and was removed" in made.messages
    assert "[snapshot-version]" in made.messages
    assert not (tmp_path / "new").exists()


def assert_made_soundly(tmp_path: Path) -> None:
    """Carry the plan out: the result has no damage but what leaders of the past have written."""
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert made.exit_code == 0, made.messages
    found = run("verify", "--format", "jsonl", tmp_path / "new").of_kind("finding")
    severe = {each["rule"] for each in found if each["severity"] in {"damaged", "data-loss"}}
    assert severe <= IN_HISTORY


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_no_contradiction_is_kept(name: str, tmp_path: Path) -> None:
    """Each kind of the catalogue that leaves voters or kraft.version in doubt is refused, or is not in the result."""
    directory = planted(name, tmp_path)
    for voters in (THREE, "3@127.0.0.1:19093"):
        outcome = plan(directory, voters=voters, file=tmp_path / "plan")
        if outcome.exit_code == 0:
            assert_made_soundly(tmp_path)
            shutil.rmtree(tmp_path / "new")
            (tmp_path / "plan").unlink()
        else:
            assert len(outcome.complaints) == 1
