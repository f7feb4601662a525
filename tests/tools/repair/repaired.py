# SPDX-License-Identifier: Apache-2.0
"""Copies of what a real Kafka left, and running ``raftlog rewrite-voters`` on them."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run

DYNAMIC: Final = GOLDEN / "dynamic-quorum/data"
"""Voters 2, 3 and 4; node 1 is none any more, and 101 is a broker. Log end 230, 229 on nodes 2 and 101; epoch 4."""
STATIC: Final = GOLDEN / "static-upgrade/before-upgrade"
"""Static voters 1, 2 and 3; node 101 is a broker. kraft.version 0."""
DIRECTORY_IDS: Final = {
    1: "3PbC-lOLRFo6CVJVw2Qd_A",
    2: "tDM8jPouu6fvIOxsMmWQKw",
    3: "5_Wp38SKlmI15kjtncBbcA",
    4: "vBFnE5Lodh8XV8ACQoFPYw",
}
NEW_DISK: Final = "AQIDBAUGBwgJCgsMDQ4PEA"
THREE: Final = f"3@127.0.0.1:19093:{DIRECTORY_IDS[3]}"
LOG: Final = "__cluster_metadata-0"


def copied(tmp_path: Path, name: str = "quorum", source: Path = DYNAMIC) -> Path:
    """A copy of a quorum's log directories, in one directory."""
    return Path(shutil.copytree(source, tmp_path / name))


def plan(*arguments: str | Path, voters: str = THREE, lost: Iterable[str] = ("2", "4"), file: Path) -> Outcome:
    """Plan a rewrite; JSON lines are printed."""
    options = [option for each in lost for option in ("--lost", each)]
    given = ("--initial-controllers", voters, *options, "--plan", str(file), "--format", "jsonl", "-j1")
    return run("rewrite-voters", *arguments, *given)


def apply(file: Path, out: Path, *options: str) -> Outcome:
    """Carry a plan out; JSON lines are printed."""
    return run("rewrite-voters", "--apply", file, "--out", out, "--format", "jsonl", *options)


def content(file: Path) -> dict[str, Any]:
    """The content of a plan."""
    found: dict[str, Any] = json.loads(file.read_text())["content"]
    return found


def batches(directory: Path) -> list[RecordBatch]:
    """All batches of a log."""
    segments = sorted((directory / LOG).glob("*.log"))
    pieces = (piece for path in segments for piece in split(BufferSource(path.read_bytes())))
    return [piece for piece in pieces if isinstance(piece, RecordBatch)]


def everything(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """All files below a directory: bytes, time of modification and inode."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in directory.rglob("*")
        if path.is_file()
    }
