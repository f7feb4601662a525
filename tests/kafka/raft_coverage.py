# SPDX-License-Identifier: Apache-2.0
"""Tells which branches of Kafka's raft classes a run has taken, by JaCoCo, beside what Kafka's own suites take."""

import csv
import os
import subprocess
import tempfile
from pathlib import Path

from tests.hang_limit import HANG_S
from tests.kafka.controller import NEWEST_RELEASE, install_jars

POM = Path(__file__).resolve().parent / "raft" / "coverage" / "pom.xml"
RAFT_POM = POM.parent.parent / "pom.xml"
VERSION = "0.8.13"

OWN_SUITES = {
    "KafkaRaftClient": 75,
    "QuorumState": 65,
    "LeaderState": 78,
    "AddVoterHandler": 76,
    "RemoveVoterHandler": 83,
    "UpdateVoterHandler": 70,
}
"""Percent of the branches that Kafka's own three suites of its client take: KafkaRaftClientTest, -SnapshotTest and
-ReconfigTest of 4.3.1."""

_MORE = (
    "CandidateState",
    "EpochElection",
    "EpochState",
    "FollowerState",
    "KRaftControlRecordStateMachine",
    "KRaftVersionUpgrade",
    "ProspectiveState",
    "RequestManager",
    "ResignedState",
    "UnattachedState",
    "VoterSet",
)


def install() -> Path:
    """Fetch JaCoCo's jars, unless they are there, and return their folder."""
    # Its pom has the version; the release of Kafka only names the folder's mark.
    return install_jars(POM, VERSION)


def agent_option(file: Path) -> str:
    """Return the option of a JVM that notes in a file which branches of Kafka's raft classes are taken."""
    jar = install() / f"org.jacoco.agent-{VERSION}-runtime.jar"
    return f"-javaagent:{jar}=destfile={file},includes=org.apache.kafka.raft.*"


def branches(folder: Path) -> dict[str, tuple[int, int]]:
    """Return how many branches were taken, and how many there are, by class; of all JVMs that noted into a folder."""
    kafka = install_jars(RAFT_POM, NEWEST_RELEASE) / f"kafka-raft-{NEWEST_RELEASE}.jar"
    cli = install() / f"org.jacoco.cli-{VERSION}-nodeps.jar"
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch, "table.csv")
        files = [os.fspath(each) for each in sorted(folder.glob("*.exec"))]
        command = ["java", "-jar", str(cli), "report", *files, "--classfiles", str(kafka), "--csv", str(table)]
        subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)
        with table.open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
    found = {}
    for row in rows:
        covered, missed = int(row["BRANCH_COVERED"]), int(row["BRANCH_MISSED"])
        found[row["CLASS"]] = (covered, covered + missed)
    return found


def report(folder: Path) -> str:
    """Return a table: of each class, the branches taken, in percent, and those that Kafka's own suites take."""
    found = branches(folder)
    lines = ["class                            branches  taken  Kafka's suites"]
    for name in (*OWN_SUITES, *_MORE):
        covered, count = found[name]
        own = f"{OWN_SUITES[name]:>12} %" if name in OWN_SUITES else ""
        lines.append(f"{name:<32} {count:>8} {100 * covered / max(1, count):>4.0f} % {own}".rstrip())
    return "\n".join(lines)
