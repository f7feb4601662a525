# SPDX-License-Identifier: Apache-2.0
"""What ``make demo`` shows: a real quorum's metadata log, its audit, what damage does to it, and a real mirror.

The files are those that the four controllers of a Kafka 4.3.1 quorum left behind: three voters, a leader killed, a
fourth controller added, one removed. Two more clusters are those between which MirrorMaker 4.3.1 ran.
"""

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from raftlog.errors import MissingExtraError, NoJavaError
from raftlog.tools.spark.java_runtime import java_home

MIRROR = Path("tests/golden/mirror/data")
QUORUM = Path("tests/golden/dynamic-quorum/data")
LOG = QUORUM / "n3/__cluster_metadata-0/00000000000000000000.log"
FOLDER = Path("build/demo")
"""Where the damaged copy and the report are left."""


def raftlog(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``raftlog`` as a user would, and show the command."""
    print(f"\n$ raftlog {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "raftlog.tools.command_line", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def show(*arguments: str) -> None:
    """Run ``raftlog`` and show its output, and the exit code unless it is 0. The demo ends if raftlog cannot run."""
    done = raftlog(*arguments)
    print(done.stderr + done.stdout, end="")
    if done.returncode == 1:
        sys.exit(1)
    if done.returncode:
        print(f"(exit code {done.returncode}: 0 clean, 1 usage or I/O, 2 damage, 3 suspicious only)")


def replicas_in(folder: Path) -> list[str]:
    """Return the four controllers' directories."""
    return [str(path) for path in sorted(folder.glob("n?"))]


def show_history() -> None:
    """Print the quorum's voters and leaders over time, and what it would do if it were started now."""
    print("1. Who could vote, who led, and who could be elected now: from the files of four replicas")
    replicas = replicas_in(QUORUM)
    for verb in ("voters", "epochs", "quorum"):
        show(verb, *replicas)


def show_batch() -> None:
    """Print one batch with its control records, in Kafka's words."""
    print("\n2. The first batch of the log, in the words of kafka-dump-log")
    done = raftlog("dump-log", "--cluster-metadata-decoder", "--to", "3", str(LOG))
    print(done.stdout, end="")


def plant_damage() -> list[str]:
    """Copy the quorum and damage it: a flipped bit, a write that was cut, and an old quorum-state."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(QUORUM, FOLDER / "quorum")
    logs = [sorted((FOLDER / "quorum" / name / "__cluster_metadata-0").glob("*.log"))[-1] for name in ("n1", "n4")]
    rotten, torn = (bytearray(log.read_bytes()) for log in logs)
    rotten[len(rotten) // 2] ^= 0x40
    logs[0].write_bytes(rotten)
    logs[1].write_bytes(torn[:-20])
    election = FOLDER / "quorum/n2/__cluster_metadata-0/quorum-state"
    election.write_text(re.sub('"leaderEpoch":[0-9]+', '"leaderEpoch":3', election.read_text()))
    return replicas_in(FOLDER / "quorum")


def show_damage() -> None:
    """Audit the quorum as it is, then a damaged copy of it."""
    print("\n3. An audit of the four replicas as Kafka left them")
    show("verify", *replicas_in(QUORUM))
    print("\n4. The same with a flipped bit in n1, a write that was cut in n4, and an old quorum-state in n2")
    replicas = plant_damage()
    show("verify", *replicas)
    show("explain", "election-stale")
    show("diff", *replicas[:2])
    done = raftlog("verify", "--format", "jsonl", *replicas)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    rotten = next(line for line in lines if line.get("rule") == "batch-crc")
    print(json.dumps(rotten))
    done = raftlog("explain", rotten["file"], "--position", str(rotten["position"]))
    print("".join(done.stdout.splitlines(keepends=True)[:10]), end="  ...\n")
    show("audit", *replicas, "--out", str(FOLDER / "audit"))
    show_spark(replicas)
    print(f"\nThe report of the damaged quorum is {FOLDER / 'audit' / 'report.html'}: open it in a browser.")


def show_spark(replicas: list[str]) -> None:
    """Audit the damaged quorum on Spark too, if it is installed, and compare the findings."""
    print("\n5. The same audit on Spark, two tasks at a time on this machine")
    try:
        spark_java()
    except (MissingExtraError, NoJavaError) as error:
        print(f"   left out: {error}")
        return
    show("audit", *replicas, "--engine", "spark", "--master", "local[2]", "--out", str(FOLDER / "audit-on-spark"))
    local, on_spark = (findings_in(FOLDER / name) for name in ("audit", "audit-on-spark"))
    verdict = "the same, in the same order" if local == on_spark else "NOT THE SAME"
    print(f"\nFindings of both engines: {len(local)} and {len(on_spark)}, {verdict}")


def show_mirror() -> None:
    """Compare a real mirror with its source; then with two losses of which MirrorMaker says nothing."""
    sys.path.insert(0, ".")  # The tests know how to change the files of both clusters.
    from tests.tools.mirrors.recreated_topics import outrun_by_retention, recreate_orders

    print("\n6. Does a mirror hold what its source holds? Two clusters, and MirrorMaker from A to B")
    show("verify-mirror", "--source", str(MIRROR / "n1"), "--target", str(MIRROR / "n2"))
    print("\n7. The same after retention in A was quicker than MirrorMaker: no log has a gap, and 100 records are lost")
    source, target = mirror_copy("outrun")
    outrun_by_retention(source, target)
    show("verify-mirror", "--source", str(source), "--target", str(target))
    print("\n8. The same after orders was deleted in A and made anew, of which MirrorMaker says nothing")
    source, target = mirror_copy("recreated")
    recreate_orders(source, 50)
    page = FOLDER / "mirror.html"
    show("verify-mirror", "--source", str(source), "--target", str(target), "--report", str(page))
    print(f"\nThe page for the operator who fails over is {page}.")


def mirror_copy(name: str) -> tuple[Path, Path]:
    """Copy both clusters of the real mirror, and return their directories."""
    for node in ("n1", "n2"):
        shutil.copytree(MIRROR / node, FOLDER / name / node)
    return FOLDER / name / "n1", FOLDER / name / "n2"


def spark_java() -> Path:
    """Return the Java that Spark would run on.

    Raises:
        MissingExtraError: Spark is not installed.
        NoJavaError: no Java is new enough.
    """
    if find_spec("pyspark") is None:
        raise MissingExtraError("spark", "the audit on Spark")
    return java_home()


def findings_in(output: Path) -> list[dict[str, Any]]:
    """Return the rows of the table of findings that an audit has left, without the run's id."""
    (table,) = (output / "findings").glob("*.parquet")
    rows: list[dict[str, Any]] = pq.read_table(table).drop_columns("run_id").to_pylist()
    return rows


def main() -> None:
    """Show everything."""
    show_history()
    show_batch()
    show_damage()
    show_mirror()


if __name__ == "__main__":
    main()
