# SPDX-License-Identifier: Apache-2.0
"""The files in tests/golden that a real Kafka wrote, staged for a tool that is not read-only, and the calls on them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.golden_files import GOLDEN
from tests.kafka.edge_case import SHAPES

FOLDERS = ("data-topics", "dynamic-quorum", "groups", "killed", "mirror", "static-upgrade", "wire")
SEGMENT_SHAPES = ("shallow", "deep", "print", "skip", "deep-skip")
TOPIC_SHAPES = {
    "__cluster_metadata-0": ("metadata", "metadata-skip"),
    "__consumer_offsets-0": ("offsets", "offsets-skip"),
    "__transaction_state-0": ("transaction",),
    "__share_group_state-0": ("share",),
}
SUFFIX_SHAPES = {
    ".index": ("shallow", "verify", "sanity"),
    ".timeindex": ("shallow", "verify", "sanity"),
    ".txnindex": ("shallow",),
    ".snapshot": ("shallow",),
    ".deleted": ("shallow",),
}


def stage(root: Path) -> None:
    """Copies the data files under `root`, pre-allocated indexes at the length they had on disk."""
    for folder in FOLDERS:
        shutil.copytree(GOLDEN / folder, root / folder, ignore=shutil.ignore_patterns("expected", "*.jsonl"))
        for name, facts in json.loads((GOLDEN / folder / "manifest.json").read_text())["files"].items():
            if "preallocated_to" in facts:
                with (root / folder / name).open("r+b") as file:
                    file.truncate(facts["preallocated_to"])


def data_files() -> list[Path]:
    """Every file that the dump tool has an answer to, relative to tests/golden."""
    suffixes = {".log", ".checkpoint", *SUFFIX_SHAPES}
    found = (path for folder in FOLDERS for path in (GOLDEN / folder).rglob("*") if path.suffix in suffixes)
    return sorted(path.relative_to(GOLDEN) for path in found)


def shapes_of(path: Path) -> tuple[str, ...]:
    """The shapes of output that make sense for a file."""
    if path.suffix in SUFFIX_SHAPES:
        return SUFFIX_SHAPES[path.suffix]
    if path.suffix == ".checkpoint":
        return SEGMENT_SHAPES + TOPIC_SHAPES["__cluster_metadata-0"]
    return SEGMENT_SHAPES + TOPIC_SHAPES.get(path.parent.name, ())


def calls() -> Iterator[list[str]]:
    """The argument lists, for a working directory into which the corpus was staged."""
    for path in data_files():
        for shape in shapes_of(path):
            yield [*SHAPES[shape], "--files", str(path)]
