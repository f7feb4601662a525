# SPDX-License-Identifier: Apache-2.0
"""Directories of partitions that are made for a test, and what ``raftlog free`` offers of them."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from raftlog.records.files.file_names import parse_file_name
from raftlog.tools.free.offers import Offers, counted
from raftlog.tools.free.planning import offers_of
from raftlog.tools.free.surveyed import survey_directories
from tests.golden_files import GOLDEN
from tests.tools.console import run

LOG: Final = "__cluster_metadata-0"
QUORUM: Final = GOLDEN / "dynamic-quorum/data"
"""Node 3 has two segments, from 0 and 193, and snapshots up to 81, 151 and 230."""


def partition(path: Path, *names: str) -> Path:
    """Make a partition's directory with files of these names, of one byte each."""
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        (path / name).write_bytes(b"x")
    return path


def copied_node(tmp_path: Path, name: str = "n3") -> Path:
    """A copy of a node's log directory."""
    return Path(shutil.copytree(QUORUM / name, tmp_path / name))


def log_of(node: Path) -> Path:
    """The directory of its metadata log."""
    return node / LOG


def offers_for(*paths: Path) -> Offers:
    """Everything about some directories."""
    return offers_of(survey_directories(list(map(str, paths)), 1))


def offered(*paths: Path) -> list[tuple[str, str]]:
    """The rule and the name of each offer, in the order in which to remove them."""
    found = (each.offer for each in counted(offers_for(*paths).found))
    return [(offer.rule.id, Path(path).name) for offer in found for path in (offer.path, *offer.others)]


def offered_by(rule: str, *paths: Path) -> list[str]:
    """The names of what one rule offers, in order."""
    return [name for by, name in offered(*paths) if by == rule]


def kept(*paths: Path) -> dict[str, str]:
    """The reasons for which things are kept, by name."""
    return {Path(each.path).name: each.reason for each in offers_for(*paths).kept}


def remove(path: Path) -> None:
    """Remove a file or a whole directory, as an operator does."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def never_offered(name: str) -> bool:
    """Whether a name is of the files that no rule may ever offer."""
    if name in {"quorum-state", "meta.properties", "partition.metadata", "leader-epoch-checkpoint", ".lock"}:
        return True
    parsed = parse_file_name(name)
    return name.endswith("-checkpoint") or (parsed is not None and parsed.state.value in {".swap", ".tmp"})


def grave_findings(path: Path) -> set[tuple[str, str]]:
    """The rule and the file of each finding above harmless."""
    outcome = run("verify", "--format", "jsonl", "-j1", path)
    return {(each["rule"], Path(each["file"]).name) for each in outcome.of_kind("finding")}


def free(*arguments: str | Path) -> list[dict[str, Any]]:
    """The JSON lines of the verb."""
    return run("free", "-j1", "--format", "jsonl", *arguments).objects


def names_of(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The names of what is offered."""
    return [Path(each["path"]).name for each in lines if each["kind"] == "offer"]
