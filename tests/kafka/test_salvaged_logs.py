# SPDX-License-Identifier: Apache-2.0
"""A real controller starts from a directory that `raftlog salvage` has made, leads, and goes on."""

import shutil
from pathlib import Path

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.file_names import parse_directory_name
from raftlog.records.files.property_files import MetaProperties, read_meta_properties
from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state
from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.live_quorum import BROKER, LiveQuorum
from tests.kafka.test_interchange import messages, wait_until_registered
from tests.kafka.test_rewritten_voters import DYNAMIC, NODE_3, findings, rewrite, salvage
from tests.tools.console import run
from tests.tools.repair.repaired import LOG, batches
from tests.tools.salvage.salvaged import spoil

pytestmark = dump_tool.marks("a real Kafka")


def damaged(path: Path, kind: str) -> list[Path]:
    """Copies of a controller and a broker, both damaged: in other places, in the same one, or not at all."""
    three, broker = (Path(shutil.copytree(DYNAMIC / node, path / node)) for node in ("n3", "n101"))
    if kind != "poison":
        spoil(three, 70)
        spoil(broker, 70 if kind == "hole" else 100)
    for checkpoint in (three / LOG).glob("*.checkpoint") if kind != "mended" else ():
        if int(checkpoint.name[:20]):
            checkpoint.unlink()
    return [three] if kind == "poison" else [three, broker]


@pytest.mark.parametrize("kind", ["mended", "hole", "poison"])
def test_a_controller_leads_on_a_salvaged_log(kind: str, tmp_path: Path) -> None:
    """From two damaged logs, from what is after a hole with a broker's snapshot, and with a record replaced.

    Two of three voters are gone, so that the salvaged node becomes the only one, and elects itself.
    """
    sources = damaged(tmp_path / "old", kind)
    options = ("--replace", "90") if kind == "poison" else ()
    planned = run("salvage", *sources, "--node-id", "3", *options, "--plan", tmp_path / "salvage")
    assert planned.exit_code == 0, planned.messages
    made = run("salvage", "--apply", tmp_path / "salvage", "--out", tmp_path / "whole")
    assert made.exit_code == 0, made.messages
    assert (batches(tmp_path / "whole")[0].base_offset > 0) == (kind == "hole")

    controller = Controller(tmp_path / "new", node_id=3)
    voter = f"3@localhost:{controller.port}:{NODE_3}"
    lost = ("--lost", "2", "--lost", "4")
    fact = rewrite(controller.directory, tmp_path / "plan", tmp_path / "whole", "--initial-controllers", voter, *lost)
    before = len(controller.batches())
    with controller.running():
        found = wait_until_registered(controller, fact["quorum_epoch"])

    assert found[before].base_offset == fact["end_offset"] == 231
    assert messages(found[before:], "RegisterControllerRecord")[0]["controllerId"] == 3
    assert findings(controller.directory, tmp_path) == {"voters-rewritten": "suspicious"}


@pytest.mark.parametrize("release", ["3.9.1", "4.3.1"])
def test_a_quorum_of_one_goes_on_as_itself(release: str, tmp_path: Path) -> None:
    """Its log is damaged, and salvaged with the broker's, as itself with its own vote, and started as it is.

    It elects itself in a later epoch. The broker joins with its old directory, goes on where its topics were, and has
    all of them, and one more is made.
    """
    live = LiveQuorum(tmp_path / "live", tmp_path / "work", controllers=(1,), release=release)
    with live.running():
        with live.loaded(transactions=4):
            pass
        for node in (1, BROKER):
            live.kill(node)
        damaged, broker, whole = live.path / "n1", live.path / f"n{BROKER}", tmp_path / "whole"
        before, topics_before = batches(damaged), topics_of(broker)
        spoil(damaged, before[len(before) // 2].base_offset)
        salvage(whole, tmp_path / "salvage", damaged, broker, "--node-id", "1")
        assert batches(whole) == before
        made, own = (identity(each) for each in (whole, damaged))
        assert made == own
        damaged.rename(tmp_path / "damaged")
        whole.rename(damaged)

        end_offset = batches_of(broker / "deleted-0")[-1].next_offset
        for node in (1, BROKER):
            live.start(node)
        old, new, topics, voters = live.grown(1, "deleted", ())

        assert (int(old), int(new), voters) == (end_offset, 0, "1")
        assert set(topics.split()) == topics_before | {"made-after"}
        for node in (BROKER, 1):  # A broker waits five minutes for a controller that lets it go.
            live.stop(node)
        first = next(each for each in batches(damaged) if each.next_offset > before[-1].next_offset)
        assert first.base_offset == before[-1].next_offset
        assert first.partition_leader_epoch > own[1].leader_epoch
        found = run("verify", "--format", "jsonl", damaged, broker)
        assert [each for each in found.of_kind("finding") if each["severity"] != "harmless"] == []


def identity(directory: Path) -> tuple[MetaProperties, QuorumStateData]:
    """Who a controller is, and what it has promised."""
    meta = read_meta_properties((directory / "meta.properties").read_bytes())
    return meta, read_quorum_state((directory / LOG / "quorum-state").read_bytes())


def topics_of(broker: Path) -> set[str]:
    """The topics of which a broker has partitions, without Kafka's own."""
    places = (parse_directory_name(path.name) for path in broker.iterdir() if path.is_dir())
    return {place.topic for place in places if place is not None and not place.topic.startswith("__")}


def batches_of(directory: Path) -> list[RecordBatch]:
    """All batches of a partition's log."""
    pieces = (piece for path in sorted(directory.glob("*.log")) for piece in split(BufferSource(path.read_bytes())))
    return [piece for piece in pieces if isinstance(piece, RecordBatch)]
