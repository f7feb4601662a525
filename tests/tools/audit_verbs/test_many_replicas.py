# SPDX-License-Identifier: Apache-2.0
"""Fifty replicas of one quorum are judged like five."""

import re
import shutil
import uuid
from pathlib import Path

import pytest

from raftlog.records.messages.control import LeaderChangeMessage, Voter
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.planted.segments import Segment, control_batch, with_epoch
from tests.tools.console import run

DATA = GOLDEN / "dynamic-quorum" / "data"
METADATA = "__cluster_metadata-0"
OBSERVERS = range(200, 245)
FORKS = {"replica-forked", "replica-lost"}


@pytest.fixture
def fifty(tmp_path: Path) -> Path:
    """Five real log directories, and 45 copies of a broker's with ids of their own."""
    root = tmp_path / "nodes"
    shutil.copytree(DATA, root)
    for node_id in OBSERVERS:
        directory = root / f"n{node_id}"
        shutil.copytree(DATA / "n101", directory)
        meta = directory / "meta.properties"
        text = re.sub("node.id=.*", f"node.id={node_id}", meta.read_text())
        meta.write_text(re.sub("directory.id=.*", f"directory.id={uuid_to_text(uuid.UUID(int=node_id))}", text))
    return root


def test_fifty_sound_replicas(fifty: Path) -> None:
    """All are listed, nothing is missing, and there is nothing to tell."""
    outcome = run("quorum", "--format", "jsonl", str(fifty))
    replicas = outcome.of_kind("replica")
    assert outcome.exit_code == 0
    assert {each["node_id"] for each in replicas if each["status"] == "Observer"} == {1, 101, *OBSERVERS}
    assert len(replicas) == 50
    assert run("verify", str(fifty)).exit_code == 0


def differ(fifty: Path, numbers: range) -> dict[int, int]:
    """Let observers fork, one after the other at one of eight offsets, and each third end there; return the forks."""
    forks = {}
    for number, node_id in list(enumerate(OBSERVERS))[numbers.start : numbers.stop]:
        log = fifty / f"n{node_id}" / METADATA
        segment = Segment(max(log.glob("*.log")))
        alone = [index for index, batch in enumerate(segment.views()) if index and batch.record_count == 1]
        cut = alone[-1 - number % 8]
        for path in (*log.glob("*.snapshot"), *log.glob("*.checkpoint")):
            if int(path.name[:20]) > segment.view(cut).base_offset:
                path.unlink()
        if number % 3 == 0:
            segment.batches = segment.batches[:cut]
        else:
            forks[node_id] = segment.view(cut).base_offset
            voters = tuple(map(Voter, (2, 3, 4)))
            segment.batches[cut] = control_batch(segment.batches[cut], [LeaderChangeMessage(2, voters, voters)])
            segment.batches[cut:] = [with_epoch(batch, 5 + number) for batch in segment.batches[cut : cut + 1]]
        segment.save()
    return forks


def test_forks_of_many_replicas(fifty: Path) -> None:
    """Each of thirty forks is told at its offset, though each is of an epoch of its own; shorter replicas are none."""
    forks = differ(fifty, range(len(OBSERVERS)))
    told = {
        each["node_id"]: each["forks_at"] for each in run("quorum", "--format", "jsonl", str(fifty)).of_kind("replica")
    }
    assert {node_id: offset for node_id, offset in told.items() if offset is not None} == forks


@pytest.mark.parametrize("start", [0, 1, 4])
def test_findings_about_two_forks(fifty: Path, start: int) -> None:
    """Both are told, though the one that would win an election parts from all others before the other fork."""
    forks = differ(fifty, range(start, start + 3))
    findings = run("verify", "--format", "jsonl", str(fifty)).of_kind("finding")
    named = [int(Path(each["file"]).parts[-3][1:]) for each in findings if each["rule"] in FORKS]
    assert sorted(named) == sorted(forks)


def test_a_branch_that_many_replicas_have_kept(tmp_path: Path) -> None:
    """Who went on without it is told once, not for each replica that kept it."""
    shutil.copytree(DATA, tmp_path / "nodes")
    for name in ("n2", "n4", "n101"):
        log = max((tmp_path / "nodes" / name / METADATA).glob("*.log"))
        segment = Segment(log)
        cut = next(index for index, batch in enumerate(segment.views()) if index and batch.base_offset >= 205)
        voters = tuple(map(Voter, (2, 3, 4)))
        segment.batches[cut] = control_batch(segment.batches[cut], [LeaderChangeMessage(2, voters, voters)])
        segment.batches[cut:] = [with_epoch(segment.batches[cut], 5)]
        segment.save()
        for path in (*log.parent.glob("*.snapshot"), *log.parent.glob("*.checkpoint")):
            if int(path.name[:20]) > segment.view(cut).base_offset:
                path.unlink()
    findings = run("verify", "--format", "jsonl", str(tmp_path / "nodes")).of_kind("finding")
    lost = [each["file"] for each in findings if each["rule"] == "replica-lost"]
    assert lost
    assert len(lost) == len(set(lost))
