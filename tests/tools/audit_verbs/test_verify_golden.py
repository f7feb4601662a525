# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify`` on nodes that were killed, and on clusters that were given one id."""

import json
import shutil
from pathlib import Path

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from tests.golden_files import GOLDEN
from tests.tools.console import run

MANIFEST = json.loads((GOLDEN / "killed/manifest.json").read_text())["files"]


def test_two_clusters_of_one_id_are_two_histories_of_one_quorum() -> None:
    """Two clusters that were given the same id do not pass for replicas of each other: it is said, and no more."""
    outcome = run("verify", "--format", "jsonl", GOLDEN / "mirror/data")
    found = sorted((finding["rule"], finding["file"].rpartition("data/")[2]) for finding in outcome.of_kind("finding"))
    assert found == [("cluster-twice", "n2/__cluster_metadata-0/00000000000000000000.log")]


def test_two_clusters_of_one_id_are_two_quorums() -> None:
    """Each of them has its own leader and voters."""
    outcome = run("quorum", "--format", "jsonl", GOLDEN / "mirror/data")
    assert [(each["leader_id"], each["voters_present"]) for each in outcome.of_kind("quorum")] == [(1, 1), (2, 1)]


@pytest.mark.parametrize("node", ["n2", "n3"])
def test_offsets_that_continue_one_too_high_are_one_finding(node: str, tmp_path: Path) -> None:
    """Neither the index, nor a snapshot, nor another replica is reported again for such a log."""
    data = tmp_path / "data"
    shutil.copytree(GOLDEN / "dynamic-quorum/data", data)
    path = max((data / node / "__cluster_metadata-0").glob("*.log"))
    batches = [piece for piece in split(BufferSource(path.read_bytes())) if isinstance(piece, RecordBatch)]
    log = bytearray(path.read_bytes())
    for batch in batches[len(batches) // 2 :]:
        log[batch.position : batch.position + 8] = (batch.base_offset + 1).to_bytes(8, "big")
    path.write_bytes(log)
    outcome = run("verify", "--format", "jsonl", data)
    assert [(finding["rule"], finding["file"]) for finding in outcome.of_kind("finding")] == [("offset-gap", str(path))]


@pytest.mark.parametrize("kill", ["killed-0", "killed-1", "killed-2"])
def test_a_killed_node_has_the_state_that_the_kill_left(kill: str, tmp_path: Path) -> None:
    """Of a node that was killed, with its indexes as long as they were, the padding of those is all that is new."""
    shutil.copytree(GOLDEN / "killed" / kill, tmp_path / kill)
    padded = {tmp_path / name: entry for name, entry in MANIFEST.items() if name.startswith(kill) and _is_padded(entry)}
    for path, entry in padded.items():
        with path.open("ab") as index:
            index.truncate(entry["preallocated_to"])
    outcome = run("verify", "--all", "--format", "jsonl", tmp_path / kill)
    assert outcome.exit_code == 0
    found = {(finding["rule"], finding["file"]) for finding in outcome.of_kind("finding")}
    assert {path for rule, path in found if rule == "index-padding"} == {str(path) for path in padded}
    assert {rule for rule, _ in found} <= {"index-padding", "epochs-beyond"}


def _is_padded(entry: dict[str, int]) -> bool:
    return entry.get("preallocated_to", 0) > entry["bytes"]


def test_records_deleted_by_retention_are_not_missed(tmp_path: Path) -> None:
    """A log whose first segment was deleted is sound, though a transaction that is aborted later began there."""
    path = Path(shutil.copytree(GOLDEN / "data-topics/data/n1/txn-1", tmp_path / "txn-1"))
    for name in path.glob(f"{0:020}.*"):
        name.unlink()
    assert list(path.glob("*.txnindex"))
    assert run("verify", path).exit_code == 0


def test_a_foreign_snapshot_does_not_decide_the_voters(tmp_path: Path) -> None:
    """A snapshot of another cluster that came between is one finding: voters do not change to its own and back."""
    data = Path(shutil.copytree(GOLDEN / "wire/data", tmp_path / "data"))
    found = list((GOLDEN / "dynamic-quorum/data").glob("*/__cluster_metadata-0/00000000000000000096-*.checkpoint"))
    log = data / "n101/__cluster_metadata-0"
    foreign = log / f"{163:020}-{4:010}.checkpoint"
    foreign.write_bytes(found[0].read_bytes())
    outcome = run("verify", "--format", "jsonl", data)
    serious = [each for each in outcome.of_kind("finding") if each["severity"] != "harmless"]
    assert [(each["rule"], each["file"]) for each in serious] == [("snapshot-epoch", str(foreign))]
