# SPDX-License-Identifier: Apache-2.0
"""The file of a plan is of its published schema, and names the bytes after the end that nobody can read."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.repair.repaired import LOG
from tests.tools.salvage.salvaged import FIRST, content, erase, plan, rewrite, spoil, without_snapshots

SCHEMA: Final = Draft202012Validator(json.loads((ROOT / "docs" / "salvage-plan-1.schema.json").read_text()))
LAST: Final = "00000000000000000193.log"


def copied(tmp_path: Path, *nodes: str) -> list[Path]:
    """Copies of nodes of the dynamic quorum."""
    return [Path(shutil.copytree(GOLDEN / "dynamic-quorum" / "data" / node, tmp_path / node)) for node in nodes]


def planned(tmp_path: Path, *sources: Path, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """The content of a plan, whose file and whose JSON line are of the schema."""
    file = tmp_path / "plan.json"
    outcome = plan(*sources, file=file, options=options)
    assert outcome.exit_code == 0, outcome.messages
    SCHEMA.validate(json.loads(file.read_text()))
    found = content(file)
    [line] = outcome.objects
    assert {name: line[name] for name in found} == found
    return found


def _append(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes() + data)


def _cut(size: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[:-size])


@pytest.mark.parametrize(
    ("damage", "moved", "size", "lost"),
    [
        pytest.param(_append(b"\x07"), 0, 1, 0, id="one byte too many"),
        pytest.param(_append(b"garbage" * 20), 0, 140, 0, id="garbage"),
        pytest.param(_append(bytes(4096)), 0, 4096, 0, id="zeros"),
        pytest.param(_cut(1), None, None, 1, id="a torn tail"),
    ],
)
def test_bytes_after_the_end_are_named(
    damage: Callable[[Path], object], moved: int | None, size: int | None, lost: int, tmp_path: Path
) -> None:
    """With their source, file, position, number and the least offset of a record there, in text, too."""
    [source] = copied(tmp_path, "n1")
    path = source / LOG / LAST
    before = path.stat().st_size
    end = planned(tmp_path, source)["end_offset"]
    damage(path)

    found = planned(tmp_path, source)
    [named] = found["damaged_after"]
    assert found["end_offset"] == named["start_offset"] == end - lost
    assert (named["source"], named["file"]) == (0, LAST)
    assert named["position"] + named["size_bytes"] == path.stat().st_size
    assert moved is None or (named["position"], named["size_bytes"]) == (before + moved, size)
    text = run("salvage", source, "--plan", tmp_path / "plan.json", "-j1").text
    assert f"from byte {named['position']} of {LAST} on, " in text
    assert f"of offset {named['start_offset']} or later" in text
    assert f"If a node that was not given has records at offset {named['start_offset']} or above" in text


def test_sound_sources_have_no_such_bytes(tmp_path: Path) -> None:
    """Nothing is named where each log ends with a whole batch, even if one is shorter."""
    assert planned(tmp_path, *copied(tmp_path, "n1", "n2", "n101"))["damaged_after"] == []


def test_damage_within_what_is_taken_is_not_after_it(tmp_path: Path) -> None:
    """What another source has whole, and what a sound batch follows, is not after the end."""
    one, other = copied(tmp_path, "n1", "n2")
    spoil(one, 100)
    assert planned(tmp_path, one, other)["damaged_after"] == []


def test_damage_that_ends_the_log(tmp_path: Path) -> None:
    """A hole that no snapshot covers ends the log: its bytes are named although sound batches follow."""
    [source] = copied(tmp_path, "n1")
    without_snapshots(source)
    spoil(source, 100)
    found = planned(tmp_path, source)

    [named] = found["damaged_after"]
    assert (named["file"], named["start_offset"]) == (FIRST, found["end_offset"])
    assert found["losses"]


def test_plans_of_all_kinds_are_of_the_schema(tmp_path: Path) -> None:
    """With an owner, with a conflict, with a replaced record, and with a log that begins after a hole."""
    one, two, broker = copied(tmp_path, "n1", "n2", "n101")
    assert planned(tmp_path, one, two, broker, options=("--node-id", "1"))["owner"]["state_source"] == 0
    assert planned(tmp_path, one, options=("--node-id", "7"))["owner"]["state_source"] is None
    assert planned(tmp_path, one, options=("--replace", "200"))["replacements"]
    rewrite(two, 200)
    assert planned(tmp_path, one, two)["conflicts"]
    erase(broker, 0, 20)
    assert planned(tmp_path, broker)["start_offset"] > 0


def test_the_schema_refuses_what_is_no_plan(tmp_path: Path) -> None:
    """A member too many, one too few, and one of another type, in each part of it."""
    planned(tmp_path, *copied(tmp_path, "n1"))
    whole = json.loads((tmp_path / "plan.json").read_text())
    for part in (whole, whole["content"], whole["sources"][0], whole["content"]["pieces"][0]):
        for name, value in list(part.items()):
            del part[name]
            assert not SCHEMA.is_valid(whole), name
            part[name] = object
            assert not SCHEMA.is_valid(whole), name
            part[name] = value
        part["more"] = 1
        assert not SCHEMA.is_valid(whole)
        del part["more"]
    assert SCHEMA.is_valid(whole)
