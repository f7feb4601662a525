# SPDX-License-Identifier: Apache-2.0
"""Inputs for reports: a real quorum, clean and damaged, a fork, hostile file names, and a flood of findings."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import judge_in_groups
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.report.page import Report
from tests.golden_files import GOLDEN
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters

QUORUM = GOLDEN / "dynamic-quorum" / "data"
PARTITION = GOLDEN / "data-topics" / "data" / "n1" / "txn-0"
METADATA = "__cluster_metadata-0"
HOSTILE_NAMES = (
    b"a<script>document.title='owned'<script>-0",
    b"b\"quote's&amp;&lt;-0",
    "c\u202egpj.exe-0".encode(),
    b"d\xff\xfe-0",
    b"e\nnewline\x1b[2J-0",
    b"f $(touch owned) `id`-0",
)


def report_of(*paths: Path | str) -> str:
    """The page of an audit."""
    sources = list(map(str, paths))
    report = Report(sources)
    for judged in audit(sources, 1):
        report.add(judged)
    return report.html()


def report_of_evidence(evidence: Iterable[PartitionEvidence]) -> str:
    """The page of evidence that was made by hand."""
    report = Report(["made"])
    for judged in judge_in_groups(sorted(evidence, key=lambda each: (*each.place.topic_partition, each.place))):
        report.add(judged)
    return report.html()


def copy_quorum(target: Path) -> Path:
    """The four controllers of a real quorum."""
    for node in ("n1", "n2", "n3", "n4"):
        shutil.copytree(QUORUM / node, target / node)
    return target


def damage_quorum(target: Path) -> Path:
    """The same with bits flipped in one log, zeros in another, a torn tail, and a deleted vote."""
    copy_quorum(target)
    change(target / "n2" / METADATA / f"{0:020}.log", {5000: 0x40, 9000: 0x01})
    change(target / "n4" / METADATA / f"{81:020}.log", dict.fromkeys(range(3000, 3200), 0xFF))
    cut = target / "n1" / METADATA / f"{193:020}.log"
    cut.write_bytes(cut.read_bytes()[:-40])
    (target / "n3" / METADATA / "quorum-state").unlink()
    return target


def change(path: Path, masks: dict[int, int]) -> None:
    """Flip bits of a file, by position."""
    data = bytearray(path.read_bytes())
    for position, mask in masks.items():
        data[position] ^= mask
    path.write_bytes(data)


def hostile_names(target: Path) -> Path:
    """Damaged partitions whose names contain markup, quotes and control characters."""
    for name in HOSTILE_NAMES:
        folder = Path(str(target), name.decode("utf-8", "surrogateescape"))
        shutil.copytree(PARTITION, folder)
        change(folder / f"{0:020}.log", {200: 1})
    return target


def forked_quorum() -> list[PartitionEvidence]:
    """Replicas that diverge at offset 13: one has epoch 2, the others epoch 3 of another leader."""
    found = []
    for node_id in (1, 2, 3):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3)).data(10)
        log.lead(node_id if node_id == 1 else 2, (1, 2, 3), epoch=2 if node_id == 1 else 3)
        log.change(voters(1, 2, 3, 5 if node_id == 1 else 4))
        log.data(4 * node_id)
        log.state(log.epoch, leader_id=node_id if node_id == 1 else 2)
        found.append(log.evidence())
        found.append(log_directory(f"n{node_id}", node_id, voter(node_id).voter_key.directory_id))
    return found


def flood(count: int, reason: str = "the stored CRC is not that of the bytes") -> list[PartitionEvidence]:
    """Damaged segments with two hundred findings per file, as many as asked for together."""
    found = []
    for number in range(-(-count // 200)):
        place = Place("broker", f"topic{number:05}", 0)
        path = f"broker/topic{number:05}-0/{0:020}.log"
        findings = tuple(
            Finding(path, "batch-crc", f"{reason}: {index}", position=100 * index, size_bytes=100, offset=index)
            for index in range(min(200, count - 200 * number))
        )
        task = SurveyTask(place, path, None, base_offset=0)
        found.append(PartitionEvidence(place, (FileEvidence(task, findings, Coverage(20_000, 20_000, 0)),)))
    return found
