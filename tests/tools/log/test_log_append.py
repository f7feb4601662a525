# SPDX-License-Identifier: Apache-2.0
"""``raftlog log append``: an epoch of its own for each run, and refusals that change nothing."""

import uuid
from pathlib import Path

import pytest

from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.log_directory import LogDirectory
from raftlog.uuid_text import uuid_to_text
from tests.tools.console import dump_jsonl, run
from tests.tools.log_console import (
    CLUSTER,
    DIRECTORY_ID,
    ONE,
    TOPIC,
    TWO,
    damaged,
    everything,
    info,
    log,
    segment,
    the,
)
from tests.tools.log_console import own_init as init


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_each_append_is_an_epoch(directory: Path) -> None:
    """An epoch begins with a LeaderChange record, the first one with the voters too; the records follow."""
    first = the(log("append", "--format", "jsonl", directory, lines=(TOPIC, {"value": "text"})).objects, "appended")
    second = the(log("append", "--format", "jsonl", directory, "--epoch", "7").objects, "appended")

    assert first == {
        "kind": "appended",
        "epoch": 1,
        "base_offset": 0,
        "last_offset": 4,
        "record_count": 2,
        "bootstrap_record_count": 0,
        "end_offset": 5,
    }
    assert (second["epoch"], second["base_offset"], second["last_offset"]) == (7, 5, 5)
    records = dump_jsonl(segment(directory)).of_kind("record")
    assert [each.get("type") for each in records[:4]] == [
        "LEADER_CHANGE",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
        "TOPIC_RECORD",
    ]
    assert [each["partition_leader_epoch"] for each in records] == [1] * 5 + [7]
    assert records[-1]["data"]["leaderId"] == 1
    state = read_quorum_state((directory / "__cluster_metadata-0" / "quorum-state").read_bytes())
    assert state == QuorumStateData(1, leader_id=1, leader_epoch=7)


def test_what_was_dumped_can_be_appended_elsewhere(directory: Path, tmp_path: Path) -> None:
    """The data records of a dump go into another log as they were."""
    log("append", directory, lines=(TOPIC, TOPIC))
    dumped = tuple(dump_jsonl("--no-redact", segment(directory)).objects)
    init(tmp_path / "other")
    copied = the(log("append", "--format", "jsonl", tmp_path / "other", lines=dumped).objects, "appended")
    assert copied["record_count"] == 2


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_batches_are_as_large_as_asked_for(directory: Path, codec: str) -> None:
    """No batch has more records than was said, and all are compressed as was said, where that makes them smaller."""
    lines = tuple({"value": "x" * 50} for _ in range(21))
    log("append", "--batch-records", "9", "--compression-type", codec, directory, lines=lines)
    batches = [each for each in dump_jsonl(segment(directory)).of_kind("batch") if not each["is_control"]]
    assert [each["count"] for each in batches] == [9, 9, 3]
    assert {each["compress_codec"] for each in batches} == {codec}


def test_large_records_are_spread_over_batches(directory: Path) -> None:
    """More records than a batch can hold go into several; one that none can hold is refused, and nothing changes."""
    lines = tuple({"value": letter * (3 << 20)} for letter in "abcde")
    assert log("append", directory, lines=lines).exit_code == 0
    batches = [each for each in dump_jsonl("--shallow", segment(directory)).of_kind("batch") if not each["is_control"]]
    assert sum(each["count"] for each in batches) == 5
    before = everything(directory)
    refused = log("append", directory, lines=({"value": "x" * (8 << 20)},))
    assert (refused.exit_code, len(refused.complaints)) == (1, 1)
    assert everything(directory) == before


def test_the_largest_record_fits(directory: Path) -> None:
    """Records that are not refused for their size are appended."""
    refused = log("append", directory, lines=({"value": "x" * (8 << 20)},)).messages
    most = int(refused.split(", and ")[1].split()[0])
    assert log("append", directory, lines=({"value": "x" * most},)).exit_code == 0
    assert log("append", directory, lines=({"value": "x" * (most + 1)},)).exit_code == 1


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (("--epoch", "1"), ()),
        (("--epoch", "-3"), ()),
        (("--epoch", str(2**31)), ()),
        (("--batch-records", "0"), ()),
        (("--voters", "1@localhost"), ()),
        (("--voters", TWO), ()),
        ((), ({"value": "good"}, {"value": ""})),
        ((), ({"key": "k", "value": "v"},)),
    ],
)
def test_a_refused_append_changes_nothing(options: tuple[str, ...], lines: tuple[object, ...], directory: Path) -> None:
    """A wrong option or line is refused in one line, before anything is written."""
    log("append", directory)
    log("info", directory)
    before = info(directory)
    outcome = log("append", directory, *options, lines=lines)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert info(directory) == before


def test_other_voters_are_not_passed_over(directory: Path) -> None:
    """Once there is another voter, only who forces it decides alone."""
    assert log("append", directory, "--voters", f"{ONE},{TWO}").exit_code == 0
    voters = [each for each in info(directory) if each["kind"] == "voters"]
    assert [len(each["voters"]) for each in voters] == [1, 1, 2]
    for action in (("append",), ("snapshot",), ("truncate", "--to", "2", "--yes")):
        refused = log(*action, directory)
        assert (refused.exit_code, len(refused.complaints)) == (1, 1)
        assert "--force" in refused.messages
    assert log("append", "--force", directory).exit_code == 0


THREE, FOUR = (f"{number}@[::1]:9094:{uuid_to_text(uuid.UUID(int=number + 200))}" for number in (3, 4))


@pytest.mark.parametrize(
    ("voters", "reason"),
    [
        ([ONE, TWO, THREE, FOUR], "more than one voter is added"),
        ([ONE, THREE, FOUR], "majorities without a common voter"),
        ([TWO, ONE, THREE], None),
        ([ONE], None),
    ],
)
def test_voters_must_follow_those_before(voters: list[str], reason: str | None, directory: Path) -> None:
    """By the exact overlap and by Kafka's guard; what is refused changes nothing, what is written verifies."""
    assert log("append", directory, "--voters", f"{ONE},{TWO}").exit_code == 0
    before = info(directory)
    outcome = log("append", "--force", directory, "--voters", ",".join(voters))
    if reason is not None:
        assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
        assert reason in outcome.messages
        assert info(directory) == before
    else:
        assert outcome.exit_code == 0
        assert "voters_violation" not in {each["kind"] for each in info(directory)}
        rules = {each.get("rule", "") for each in run("verify", "--format", "jsonl", directory).objects}
        assert not [rule for rule in rules if rule.startswith("voters")]


def test_static_voters_are_named_by_the_user(tmp_path: Path) -> None:
    """At kraft.version 0 nothing on the disk names them; who is the only one of them may append."""
    path = tmp_path / "static"
    given = ("--cluster-id", CLUSTER, "--node-id", "1", "--directory-id", DIRECTORY_ID)
    assert log("init", path, *given).exit_code == 0
    refused = log("append", path)
    assert refused.exit_code == 1
    assert "--controller-quorum-voters" in refused.messages
    for voters, exit_code in (("2@b:9093", 1), ("1@a:9093,2@b:9093", 1), ("1@a", 1), ("1@a:9093", 0)):
        assert log("append", path, "--controller-quorum-voters", voters).exit_code == exit_code
    refused = log("append", path, "--controller-quorum-voters", "1@a:9093", "--voters", ONE)
    assert (refused.exit_code, "kraft.version" in refused.messages) == (1, True)
    named = log("info", "--format", "jsonl", path, "--controller-quorum-voters", "1@a:9093").objects
    assert [voter["voterId"] for voter in the(named, "static_voters")["voters"]] == [1]
    assert "static_voters" not in {each["kind"] for each in info(path)}
    damage = log("info", path, "--controller-quorum-voters", "1@a:9093,1@b:9093")
    assert (damage.exit_code, damage.messages.count("character 9: voter 1 is there twice")) == (1, 1)


def test_static_voters_are_out_of_force_once_a_record_names_voters(directory: Path) -> None:
    """They are reported all the same."""
    text = log("info", directory, "--controller-quorum-voters", "7@a:9093").text
    assert "static voters {7}, which records have replaced" in text


def test_a_lost_vote_is_not_passed_over(directory: Path) -> None:
    """If quorum-state is missing but the log is not, only ``--force`` elects the replica."""
    log("append", directory)
    for path in (directory / "__cluster_metadata-0").glob("*quorum-state*"):
        path.unlink()
    refused = log("append", directory)
    assert refused.exit_code == 1
    assert "quorum-state" in refused.messages
    assert the(info(directory), "quorum_state")["may_vote"] is False
    assert "must not vote" in log("info", directory).text
    assert log("append", "--force", directory).exit_code == 0
    assert the(info(directory), "quorum_state")["may_vote"] is True
    assert log("append", directory).exit_code == 0


def test_a_lost_vote_among_others_stays_lost(directory: Path) -> None:
    """Where others vote too, forcing an append does not let a replica vote that may have forgotten a vote."""
    log("append", directory, "--voters", f"{ONE},{TWO}")
    for path in (directory / "__cluster_metadata-0").glob("*quorum-state*"):
        path.unlink()
    assert log("append", "--force", directory).exit_code == 0
    assert the(info(directory), "quorum_state")["may_vote"] is False


def test_a_stale_quorum_state_is_not_trusted(directory: Path) -> None:
    """A quorum-state of an epoch below the log's, as from a backup, is stale: only ``--force`` elects the replica."""
    log("append", directory)
    files = list((directory / "__cluster_metadata-0").glob("*quorum-state*"))
    old = [file.read_bytes() for file in files]
    log("append", directory)
    for file, data in zip(files, old, strict=True):
        file.write_bytes(data)
    assert (the(info(directory), "quorum_state")["origin"], log("append", directory).exit_code) == ("stale", 1)
    assert log("append", "--force", directory).exit_code == 0
    assert the(info(directory), "quorum_state")["may_vote"] is True


def test_damage_at_the_first_record_is_no_fresh_start(directory: Path) -> None:
    """A log that is damaged from its first offset on has been through elections, though nothing of it reads."""
    log("append", directory)
    path = segment(directory)
    data = bytearray(path.read_bytes())
    data[70] ^= 4
    path.write_bytes(data)
    for state in (directory / "__cluster_metadata-0").glob("*quorum-state*"):
        state.unlink()
    quorum_state = the(info(directory), "quorum_state")
    assert (quorum_state["origin"], quorum_state["may_vote"]) == ("lost", False)


def test_the_value_of_a_record_is_as_written(directory: Path) -> None:
    """A record of a type is stored in Kafka's bytes."""
    log("append", directory, lines=(TOPIC,))
    with LogDirectory.open(LocalFileSystem(), str(directory)) as held:
        data = (Path(held.log_path) / "00000000000000000000.log").read_bytes()
    (dumped,) = (
        each for each in dump_jsonl(segment(directory)).of_kind("record") if each.get("type") == "TOPIC_RECORD"
    )
    value = data[-dumped["value_size"] - 1 : -1]
    assert read_metadata_record(value).to_object() == TOPIC


def test_a_damaged_log_is_not_appended_to(directory: Path) -> None:
    """An append to a quarantined log exits with 2, and the epoch is not begun."""
    damaged(directory)
    outcome = log("append", directory)
    assert (outcome.exit_code, outcome.output) == (2, b"")
    assert the(info(directory), "quorum_state")["leader_epoch"] == 2
