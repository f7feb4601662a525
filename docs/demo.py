# SPDX-License-Identifier: Apache-2.0
"""What ``make demo`` shows: a real quorum's metadata log, and what a flipped byte does to it.

The files are those that the four controllers of a Kafka 4.3.1 quorum left behind: three voters, a leader killed, a
fourth controller added, one removed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

QUORUM = Path("tests/golden/dynamic-quorum/data")
LOG = QUORUM / "n3/__cluster_metadata-0/00000000000000000000.log"


def raftlog(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``raftlog`` as a user would, and show the command."""
    print(f"\n$ raftlog {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "raftlog.tools.command_line", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def show_history() -> None:
    """Print the cluster's elections and voter changes, from the JSON lines of its control records."""
    print("1. Who led, and who could vote: the control records of one replica's log, as JSON lines")
    types = ("--type", "LEADER_CHANGE", "--type", "KRAFT_VOTERS")
    done = raftlog("dump-log", "--format", "jsonl", *types, str(LOG.parent / "*.log"))
    voters: set[int] = set()
    for line in done.stdout.split("\n")[:-1]:
        record = json.loads(line)
        if record["kind"] != "record":
            continue
        place = f"  offset {record['offset']:>4}  epoch {record['partition_leader_epoch']:>2}  "
        data = record["data"]
        if record["type"] == "LEADER_CHANGE":
            granted = sorted(voter["voterId"] for voter in data["grantingVoters"])
            print(f"{place}{data['leaderId']} elected by {granted}")
        else:
            now = {voter["voterId"] for voter in data["voters"]}
            changes = [f"added {sorted(now - voters)}"] * bool(now - voters)
            changes += [f"removed {sorted(voters - now)}"] * bool(voters - now)
            print(f"{place}voters {sorted(now)}: {', '.join(changes) or 'endpoints or versions updated'}")
            voters = now


def show_batch() -> None:
    """Print one batch with its control records, in Kafka's words."""
    print("\n2. The first batch of the log, in the words of kafka-dump-log")
    done = raftlog("dump-log", "--cluster-metadata-decoder", "--to", "3", str(LOG))
    print(done.stdout, end="")


def show_damage() -> None:
    """Flip one byte of a copy, and print what is said of it."""
    print("\n3. The same log with one flipped byte: the damage is named, and the rest is read")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, LOG.name)
        data = bytearray(LOG.read_bytes())
        data[5000] ^= 0x40
        copy.write_bytes(data)
        done = raftlog("dump-log", "--format", "jsonl", "--shallow", str(copy))
    lines = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    batches = [line for line in lines if line["kind"] == "batch"]
    print(f"  {sum(batch['is_valid'] for batch in batches)} of {len(batches)} batches are valid; on standard error:")
    print(f"  {done.stderr.strip().replace(folder + '/', '')}")
    print(f"  {lines[-1] | {'file': LOG.name}}")
    print(f"  exit code {done.returncode} (0 clean, 1 usage or I/O, 2 damage, 3 suspicious only)")


def main() -> None:
    """Show everything."""
    show_history()
    show_batch()
    show_damage()


if __name__ == "__main__":
    main()
