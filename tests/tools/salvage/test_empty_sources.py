# SPDX-License-Identifier: Apache-2.0
"""Sources of control records alone: a new disk has no lineage, and refuses no salvage of what others have."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from raftlog.records.messages.control import VotersRecord
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.planted.segments import Segment, with_control, with_epoch
from tests.tools.console import run
from tests.tools.repair.repaired import LOG
from tests.tools.salvage.salvaged import FIRST, apply, content, plan

GROUND: Final = GOLDEN / "dynamic-quorum" / "data"
_NEW: Final = uuid.UUID(int=815)


def new_disk(path: Path, *files: str, state_of: str = "", like: str = "n3") -> Path:
    """A formatted directory with an empty log, and some files of a node; it has the id of a new directory."""
    (path / LOG).mkdir(parents=True)
    lines = (GROUND / like / "meta.properties").read_text().splitlines(keepends=True)
    new = (f"directory.id={uuid_to_text(_NEW)}\n" if line.startswith("directory.id") else line for line in lines)
    (path / "meta.properties").write_text("".join(new))
    (path / LOG / FIRST).write_bytes(b"")
    for name in files:
        shutil.copy(GROUND / like / LOG / name, path / LOG)
    if state_of:
        shutil.copy(GROUND / state_of / LOG / "quorum-state", path / LOG)
    return path


def led_alone(path: Path, epoch: int) -> Path:
    """The log of a new disk that was formatted as a quorum of its own: a LeaderChange with what comes with it."""
    source = Segment(GROUND / "n3" / LOG / FIRST)

    def alone(record: VotersRecord) -> VotersRecord:
        first = next(each for each in record.voters if each.id == 3)
        return VotersRecord((attrs.evolve(first, directory_id=_NEW),))

    first = with_control(source.batches[0], alone, VotersRecord)
    (path / LOG / FIRST).write_bytes(with_epoch(first, epoch))
    return path


def results(plan_path: Path) -> tuple[Any, ...]:
    """What a plan makes."""
    found = content(plan_path)
    return tuple(found[name] for name in ("start_offset", "end_offset", "epoch", "proven_end", "losses"))


DISKS: Final = {
    "an empty log": (lambda path: new_disk(path)),
    "an empty log with what was formatted": (lambda path: new_disk(path, f"{0:020}-{0:010}.checkpoint")),
    "an empty log with a vote": (lambda path: new_disk(path, state_of="n3")),
    "no segment at all": (lambda path: _without_segment(new_disk(path))),
    "a snapshot alone": (lambda path: new_disk(path, f"{81:020}-{3:010}.checkpoint")),
    "the first LeaderChange, as it was fetched": (lambda path: _fetched_first(new_disk(path))),
    "a LeaderChange of its own in an earlier epoch": (lambda path: led_alone(new_disk(path), 2)),
    "a LeaderChange of its own in a later epoch": (lambda path: led_alone(new_disk(path, state_of="n3"), 9)),
}


def _without_segment(path: Path) -> Path:
    (path / LOG / FIRST).unlink()
    return path


def _fetched_first(path: Path) -> Path:
    (path / LOG / FIRST).write_bytes(Segment(GROUND / "n3" / LOG / FIRST).batches[0])
    return path


@pytest.mark.parametrize(
    ("disk", "nodes"),
    [*((disk, ("n101",)) for disk in DISKS), ("a LeaderChange of its own in a later epoch", ("n1", "n2"))],
)
def test_a_new_disk_changes_no_result(disk: str, nodes: tuple[str, ...], tmp_path: Path) -> None:
    """With it, the plan takes, proves and loses what it does without it."""
    sources = [GROUND / node for node in nodes]
    without = plan(*sources, file=tmp_path / "without.json")
    new = DISKS[disk](tmp_path / "new")
    planned = plan(*sources, new, file=tmp_path / "with.json")

    assert (without.exit_code, planned.exit_code) == (0, 0), planned.messages
    assert results(tmp_path / "with.json") == results(tmp_path / "without.json")


def test_what_led_alone_is_named_and_left_out(tmp_path: Path) -> None:
    """The plan says which source contradicts the others without a record; what is made has no byte of it."""
    new = led_alone(new_disk(tmp_path / "new", state_of="n3"), 9)
    planned = plan(GROUND / "n1", new, file=tmp_path / "plan.json", options=("--node-id", "3"))

    assert planned.exit_code == 0, planned.messages
    found = content(tmp_path / "plan.json")
    assert [line for line in found["dropped"] if str(new) in line]
    assert all(piece["source"] == 0 for piece in found["pieces"])
    assert found["owner"]["state_source"] is None
    assert apply(tmp_path / "plan.json", tmp_path / "made").exit_code == 0


def test_a_lineage_with_records_still_refuses(tmp_path: Path) -> None:
    """One record of metadata of its own is a lineage: two are proven, and a person must decide."""
    new = led_alone(new_disk(tmp_path / "new", state_of="n3"), 9)
    path = new / LOG / FIRST
    path.write_bytes(path.read_bytes() + with_epoch(Segment(GROUND / "n3" / LOG / FIRST).batches[1], 9))
    planned = plan(GROUND / "n1", new, file=tmp_path / "plan.json")

    assert planned.exit_code == 1
    assert "two lineages are proven" in planned.messages


def test_only_what_contradicts_the_others_is_left_out(tmp_path: Path) -> None:
    """An empty log beside it stays a source, with what its quorum-state has seen."""
    wrong = led_alone(new_disk(tmp_path / "new", state_of="n3"), 9)
    innocent = new_disk(tmp_path / "empty")
    state = json.loads((GROUND / "n3" / LOG / "quorum-state").read_text())
    (innocent / LOG / "quorum-state").write_text(json.dumps({**state, "leaderEpoch": 9}))
    planned = plan(GROUND / "n1", wrong, innocent, file=tmp_path / "plan.json")

    assert planned.exit_code == 0, planned.messages
    dropped = content(tmp_path / "plan.json")["dropped"]
    assert [line for line in dropped if str(wrong) in line]
    assert not [line for line in dropped if str(innocent) in line]


def test_snapshots_of_a_wrong_or_doubted_name_are_listed(tmp_path: Path) -> None:
    """With the reason, what may be lost by the name, and what to do with nodes that have more."""
    root = GOLDEN / "wire" / "data"
    node = tmp_path / "n1"
    shutil.copytree(root / "n1", node)
    doubted = node / LOG / f"{900:020}-{4:010}.checkpoint"
    (node / LOG / f"{237:020}-{4:010}.checkpoint").rename(doubted)
    wrong = node / LOG / f"{237:020}-{4:010}.checkpoint"
    (node / LOG / f"{198:020}-{4:010}.checkpoint").rename(wrong)
    planned = plan(node, root / "n3", root / "n4", file=tmp_path / "plan.json")

    assert planned.exit_code == 0, planned.messages
    found = content(tmp_path / "plan.json")
    assert [line for line in found["dropped"] if f"snapshot {wrong}: its last contained timestamp" in line]
    [line] = [line for line in found["doubted"] if str(doubted) in line]
    assert "a clock was set back" in line
    assert f"by that name, offsets {found['end_offset']} to 899 may be lost: keep it" in line
    text = run("salvage", node, root / "n3", root / "n4", "--plan", tmp_path / "again.json", "-j1").text
    assert f"Not used: snapshot {wrong}" in text
    assert f"Nothing vouches for its place or epoch: {line}" in text
    assert f"Records at offset {found['end_offset']} and above, and those of other lineages, are given up." in text
