# SPDX-License-Identifier: Apache-2.0
"""Running ``raftlog log`` in this process, and looking at what it made."""

import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.tools.console import Outcome, dump_jsonl, run

CLUSTER = "AAECAwQFBgcICQoLDA0ODw"
DIRECTORY_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
OTHER_ID = "EBESExQVFhcYGRobHB0eHw"
ONE = f"1@localhost:9093:{DIRECTORY_ID}"
TWO = f"2@[::1]:9094:{OTHER_ID}"
TOPIC = {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "orders", "topicId": OTHER_ID}}


def log(*arguments: str | Path, lines: tuple[object, ...] = ()) -> Outcome:
    """Run `raftlog log`, with JSON lines as standard input."""
    data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data))):
        return run("log", *arguments)


def init(path: Path, *options: str) -> Outcome:
    """Run `raftlog log init` with what every call needs; as a quorum of one, unless the options say otherwise."""
    voters = () if any(option.startswith(("--initial", "--no-initial")) for option in options) else ("--standalone",)
    given = ("--cluster-id", CLUSTER, "--node-id", "1", "--directory-id", DIRECTORY_ID)
    return log("init", path, *given, *voters, *options)


def own_init(path: Path, *options: str) -> Outcome:
    """The same without features: for a log of another state machine."""
    return init(path, "--no-features", *options)


def info(path: Path) -> list[dict[str, Any]]:
    """The output of `raftlog log info`, as objects."""
    return log("info", "--format", "jsonl", path).objects


def the(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The one object of a kind."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def everything(path: Path) -> dict[str, bytes]:
    """All files below a directory, except the lock, which stays."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def segment(directory: Path) -> Path:
    """The one segment of a log."""
    (path,) = (directory / "__cluster_metadata-0").glob("*.log")
    return path


def damaged(directory: Path) -> Path:
    """Append two epochs, and flip a bit in the second of three batches; return the path of the segment."""
    log("append", directory, lines=(TOPIC,))
    log("append", directory)
    path = segment(directory)
    positions = [each["position"] for each in dump_jsonl(path).of_kind("batch")]
    data = bytearray(path.read_bytes())
    data[positions[1] + 70] ^= 4
    path.write_bytes(data)
    return path
