# SPDX-License-Identifier: Apache-2.0
"""``raftlog log info``: all that a directory holds, damage too, and without changing a byte."""

from pathlib import Path

import pytest

from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.voters import voters_record
from tests.golden_files import GOLDEN
from tests.log.control_batches import voters
from tests.tools.console import dump_jsonl
from tests.tools.log_console import CLUSTER, DIRECTORY_ID, TOPIC, damaged, everything, info, log, segment, the
from tests.tools.log_console import own_init as init


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_info_of_a_log(directory: Path) -> None:
    """Info shows whose a directory is, what its log, snapshots and quorum-state hold, and the voters over time."""
    log("append", directory, lines=(TOPIC,))
    objects = info(directory)
    assert the(objects, "log_directory") == {
        "kind": "log_directory",
        "directory": str(directory),
        "cluster_id": CLUSTER,
        "node_id": 1,
        "directory_id": DIRECTORY_ID,
    }
    assert the(objects, "log") == {
        "kind": "log",
        "start_offset": 0,
        "end_offset": 4,
        "epoch": 1,
        "kraft_version": 1,
        "durable_end_offset": 4,
        "was_closed": True,
    }
    assert the(objects, "epoch") == {"kind": "epoch", "epoch": 1, "start_offset": 0}
    assert the(objects, "snapshot")["end_offset"] == 0
    assert [each["offset"] for each in objects if each["kind"] == "voters"] == [-1, 2]
    state = the(objects, "quorum_state")
    assert (state["leader_id"], state["leader_epoch"], state["voted"], state["may_vote"]) == (1, 1, None, True)
    text = log("info", directory).text
    assert "node 1" in text
    assert len(text.splitlines()) == len(objects)


def test_damage_is_shown_and_nothing_is_changed(directory: Path) -> None:
    """Info names what is damaged, exits with 2, and leaves every byte as it is."""
    damaged(directory)
    before = everything(directory)
    outcome = log("info", "--format", "jsonl", directory)
    assert outcome.exit_code == 2
    quarantine = the(outcome.objects, "quarantine")
    assert (quarantine["first_bad_offset"], quarantine["durable_end_offset"]) == (3, 5)
    assert log("info", directory).exit_code == 2
    assert everything(directory) == before


def test_a_torn_tail_is_suspicious(directory: Path) -> None:
    """A batch that was never finished is said to go at the next start, and does."""
    log("append", directory)
    path = segment(directory)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    outcome = log("info", "--format", "jsonl", directory)
    assert outcome.exit_code == 3
    (cut,) = (each for each in outcome.of_kind("recovery_action") if each["action"] == "cut")
    assert cut["copy"] == f"{path}.torn-{len(path.read_bytes()) - 40}"
    assert "cut" in log("append", directory).messages
    assert log("info", directory).exit_code == 0


def test_damage_that_a_snapshot_covers_is_damage(directory: Path) -> None:
    """The next startup continues at the snapshot, but info names file, position and offset, and exits with 2."""
    log("append", directory, lines=(TOPIC,))
    assert log("snapshot", directory).exit_code == 0
    path = segment(directory)
    data = bytearray(path.read_bytes())
    last = dump_jsonl(path).of_kind("batch")[-1]
    data[last["position"] + 70] ^= 4
    path.write_bytes(data)
    before = everything(directory)
    outcome = log("info", "--format", "jsonl", directory)
    assert outcome.exit_code == 2
    (lost,) = (each for each in outcome.of_kind("recovery_action") if each["action"] == "lost")
    assert lost["file"] == str(path)
    assert f"from offset {last['base_offset']} (position {last['position']}) on" in lost["detail"]
    kept = {each["file"]: each["copy"] for each in outcome.of_kind("recovery_action") if each["copy"]}
    assert kept[str(path)] == f"{path}.damaged-0"
    assert not outcome.of_kind("quarantine")
    assert everything(directory) == before
    appended = log("append", directory)
    assert ": lost: " in appended.messages
    assert Path(f"{path}.damaged-0").read_bytes() == bytes(data)
    assert log("info", directory).exit_code == 0


@pytest.mark.parametrize("node", ["dynamic-quorum/data/n2", "killed/killed-0/n1", "wire/data/n1", "mirror/data/n1"])
def test_a_directory_of_kafkas_does_not_look_alarming(node: str) -> None:
    """Differences of a sound directory of Kafka's are reported as harmless, and it is clean."""
    outcome = log("info", "--format", "jsonl", GOLDEN / node)
    assert outcome.exit_code == 0
    for action in outcome.of_kind("recovery_action"):
        assert action["action"] == "removed" or "harmless" in action["detail"]


def test_voters_that_should_not_have_been_written_are_reported(directory: Path) -> None:
    """Such a log opens and reads as any other; where, after which set, and by which tests, is said."""
    log("append", directory)
    sets = [voters_record(voters(*ids)) for ids in ((1, 2, 3), (), (4, 5, 6))]
    written = segment(directory)
    end = written.read_bytes()
    written.write_bytes(end + write_control_batch(sets, base_offset=3, epoch=1, timestamp=1))
    found = [each for each in info(directory) if each["kind"] == "voters_violation"]
    both = ["no-overlapping-majority", "too-many-changes"]
    assert [(each["offset"], each["previous_offset"], each["problems"]) for each in found] == [
        (3, 2, both),
        (4, 3, ["empty"]),
        (5, 3, both),
    ]
    assert "offset 5, voters of offset 3: voters {4:" in log("info", directory).text
