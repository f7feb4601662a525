# SPDX-License-Identifier: Apache-2.0
"""``raftlog snapshot`` writes what Kafka loads, names what Kafka dies of, and refuses what is in doubt."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from raftlog.errors import SnapshotError
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.messages.metadata import write_metadata_record
from raftlog.snapshot.paths import parse_snapshot_name
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.tools.image_snapshot import snapshot_writing
from raftlog.tools.image_snapshot.snapshot_writing import portions
from raftlog.tools.loading.features import CHECKED_RELEASES
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.other_processes import held_by_another_process
from tests.tools.console import Outcome, run
from tests.tools.loading.poisoned_logs import BEGIN, END, V, made, partition, topic, version
from tests.tools.state.made_metadata import metadata_log

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "snapshot-1.schema.json").read_text()))
QUORUM = GOLDEN / "dynamic-quorum/data"
METADATA = "__cluster_metadata-0"
VOTERS = [QUORUM / f"n{number}" for number in (1, 2, 3, 4)]


def written(*arguments: str | Path) -> tuple[Outcome, dict[str, Any]]:
    """A run that writes, and the line about its snapshot."""
    outcome = run("snapshot", "-j1", "--format", "jsonl", *arguments)
    assert outcome.messages == ""
    for each in outcome.objects:
        SCHEMA.validate(each)
    (line,) = outcome.of_kind("snapshot")
    return outcome, line


def things(*arguments: str | Path) -> list[dict[str, Any]]:
    """The lines of a state without the one about it, in one order."""
    lines = run("state", "-j1", "--format", "json", *arguments).objects[1:]
    return sorted(lines, key=lambda line: json.dumps(line, sort_keys=True))


@pytest.mark.parametrize("offset", [81, 82, 115, 193, 230])
def test_the_state_of_a_snapshot_is_that_of_the_log(offset: int, tmp_path: Path) -> None:
    """At the end of a snapshot of Kafka, one later, and up to the end of the log; the voters are those in force."""
    outcome, line = written(*VOTERS, "--at", str(offset), "--out", tmp_path)
    assert (outcome.exit_code, line["end_offset"], line["loaded_by"]) == (0, offset, ["4.3", "4.4"])
    partition_path = tmp_path / "__cluster_metadata-0"
    partition_path.mkdir()
    path = Path(line["file"]).rename(partition_path / Path(line["file"]).name)
    assert things(tmp_path) == things(*VOTERS, "--at", str(offset))
    changes = [each for each in run("voters", "-j1", "--format", "jsonl", *VOTERS).objects if each["offset"] < offset]
    assert line["voter_ids"] == [voter["id"] for voter in changes[-1]["voters"]]
    name = parse_snapshot_name(path.name)
    assert name is not None
    reader = RecordsSnapshotReader(BufferSource(path.read_bytes()), name.snapshot_id, path=str(path))
    assert reader.header.last_contained_log_timestamp == line["timestamp"]
    assert run("verify", "-j1", path).exit_code == 0


def test_a_record_that_kafka_dies_of_is_named_and_has_no_effect(tmp_path: Path) -> None:
    """The snapshot has the first of two topics of a name, and all releases that know its version load it."""
    log = metadata_log(tmp_path / "node", [V], [topic("a", 1), topic("a", 2)], [topic("b", 3), b"\x01\x63\x00"])
    outcome = run("snapshot", "-j1", "--force", "--skip-unknown", log, "--out", tmp_path)
    assert outcome.exit_code == 3
    assert "Kafka's own stops at the TopicRecord at offset 2 (index 1), which has no effect here: duplicate-topic" in (
        outcome.text
    )
    assert "Kafka's own stops at the record of an unknown type at offset 4 (index 1)" in outcome.text
    assert f"beside the log, controllers of {', '.join(CHECKED_RELEASES)} start: they load it" in outcome.text
    assert "Records from offset 0 on are not proven to be committed by the given files." in outcome.text
    (path,) = tmp_path.glob("*.checkpoint")
    assert path.name == "00000000000000000005-0000000001.checkpoint"
    assert run("state", "-j1", "--check", log).exit_code == 2
    path.rename(log / "__cluster_metadata-0" / path.name)
    assert run("state", "-j1", "--check", log).exit_code == 0
    topics = [each for each in things(log) if each["kind"] == "topic"]
    assert [(each["path"], each["topic_id"][-1]) for each in topics] == [("/topics/a", "Q"), ("/topics/b", "w")]


def test_the_rules_of_another_release(tmp_path: Path) -> None:
    """4.0 does not know share.version: without it 4.0 loads the snapshot."""
    share = version("3.9-IV0"), json_feature("share.version", 1)
    log = metadata_log(tmp_path / "node", list(share), [topic("a", 1)])
    assert written("--force", log, "--out", tmp_path)[1]["loaded_by"] == ["4.1", "4.2", "4.3", "4.4"]
    (tmp_path / "old").mkdir()
    outcome, line = written("--force", "--skip-unknown", "--kafka", "4.0", log, "--out", tmp_path / "old")
    assert (outcome.exit_code, line["loaded_by"], line["skipped_count"]) == (3, list(CHECKED_RELEASES), 1)
    (skipped,) = outcome.of_kind("skipped_record")
    assert (skipped["offset"], skipped["record_index"], skipped["rule"]) == (1, 1, "feature-level")


def json_feature(name: str, level: int) -> Any:
    """A level of a feature."""
    from tests.tools.loading.poisoned_logs import feature

    return feature(name, level)


def test_a_log_with_static_voters_has_a_snapshot_without_voters(tmp_path: Path) -> None:
    """kraft.version 0 has no records of its own in a snapshot."""
    log = metadata_log(tmp_path / "node", [V], [topic("a", 1), partition()])
    _, line = written("--force", log, "--out", tmp_path / "00000000000000000003-0000000001.checkpoint")
    assert (line["kraft_version"], line["voter_ids"], line["record_count"], line["timestamp"]) == (0, [], 3, 1_001_000)


def refusals(tmp_path: Path) -> list[tuple[tuple[str | Path, ...], str]]:
    """What is not written, and a part of the line about it."""
    log = metadata_log(tmp_path / "log", [V], [topic("a", 1), topic("b", 2)], [BEGIN], [topic("c", 3)], [END])
    pair = metadata_log(tmp_path / "pair", [BEGIN, V], [topic("a", 1)], [END])
    opened = metadata_log(tmp_path / "opened", [BEGIN], [V])
    snapshot = "00000000000000000001-0000000001.checkpoint"
    none = metadata_log(tmp_path / "none", [topic("a", 1)])
    directories = [UUID(int=8), UUID(int=9)]
    empty = metadata_log(tmp_path / "empty", [b"\x01\x63\x00"])
    late = metadata_log(tmp_path / "late", [V], [version("4.2-IV1")])
    old = [version("3.7-IV1"), topic("a", 1), partition(directories=directories)]
    assigned = metadata_log(tmp_path / "assigned", old)
    there = tmp_path / "there"
    there.mkdir()
    (there / "00000000000000000001-0000000001.checkpoint").touch()
    return [
        ((log, "--out", tmp_path), "records from offset 0 on are not proven to be committed"),
        ((log, "--force", "--at", "2", "--out", tmp_path), "the last offset before it with a state is 1"),
        ((log, "--force", "--at", "4", "--out", tmp_path), "the last offset before it with a state is 3"),
        ((log, "--force", "--at", "5", "--out", tmp_path), "the last offset before it with a state is 3"),
        ((log, "--force", "--at", "0", "--out", tmp_path), "0 covers no record: offset 1 is the first with a state"),
        ((pair, "--force", "--at", "1", "--out", tmp_path), "or a metadata transaction: offset 4 is the first with a"),
        ((pair, "--force", "--at", "3", "--out", tmp_path), "or a metadata transaction: offset 4 is the first with a"),
        ((opened, "--force", "--at", "2", "--out", tmp_path), "or a metadata transaction: no offset has a state"),
        ((log, "--force", "--at", "1", "--out", log), "log: an audited directory is not written to"),
        ((log, "--force", "--at", "1", "--out", log / METADATA), "log: an audited directory is not written to"),
        ((log / METADATA, "--force", "--at", "1", "--out", log / METADATA), "an audited directory is not written to"),
        ((log, "--force", "--at", "1", "--out", log / METADATA / snapshot), "an audited directory is not written to"),
        ((log, "--force", "--at", "7", "--out", tmp_path), "offset 7 is after the end"),
        ((log, "--force", "--at", "1", "--out", there), "exists, and is not replaced"),
        ((log, "--force", "--at", "1", "--out", tmp_path / "x"), "00000000000000000001-0000000001.checkpoint"),
        ((none, "--force", "--out", tmp_path), "4.4 would not load it: no record sets a metadata.version"),
        ((*VOTERS, "--kafka", "4.2", "--out", tmp_path), "is not for 4.2: unknown-version: it has version 4"),
        (
            (*VOTERS, "--kafka", "4.2", "--skip-unknown", "--out", tmp_path),
            "4.2 would not load it: no record sets a metadata.version",
        ),
        ((none, "--kafka", "3.9", "--force", "--out", tmp_path), "3.9 would not load it: no record sets a metadata.v"),
        ((empty, "--force", "--skip-unknown", "--out", tmp_path), "4.4 would not load it: no record sets a metadata"),
        ((empty, "--force", "--out", tmp_path), "offset 0 (index 0) is not for 4.4: unknown-record"),
        ((late, "--force", "--kafka", "4.0", "--out", tmp_path), "FeatureLevelRecord at offset 1 (index 0) is not for"),
        ((log, "--force", "--out", ""), "--out is empty"),
        ((assigned, "--force", "--out", tmp_path), "metadata.version 16 has no field for a part of the state"),
        ((log, "--force"), "--out"),
    ]


def test_what_is_in_doubt_is_not_written(tmp_path: Path) -> None:
    """One line, exit code 1, and no file, whole or partial."""
    for arguments, expected in refusals(tmp_path):
        before = sorted(tmp_path.rglob("*"))
        outcome = run("snapshot", "-j1", *arguments)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1), arguments
        assert expected in outcome.messages
        assert sorted(tmp_path.rglob("*")) == before


def test_the_directory_of_a_running_node_is_not_written_to(tmp_path: Path) -> None:
    """Nor is that of a node whose directory is not read; it is, when the node has stopped."""
    log = metadata_log(tmp_path / "log", [V])
    other = metadata_log(tmp_path / "other", [V])
    arguments = ("snapshot", "-j1", "--force", log, "--out")
    with held_by_another_process(other / ".lock"):
        for out in (other, other / METADATA, other / METADATA / "00000000000000000001-0000000001.checkpoint"):
            outcome = run(*arguments, out)
            assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
            assert "its node is running: stop it first" in outcome.messages
    assert not list(tmp_path.rglob("*.checkpoint"))
    assert run(*arguments, other / METADATA).exit_code == 0


def test_a_later_record_that_kafka_dies_of_is_named(tmp_path: Path) -> None:
    """The snapshot at 3 passes the first pair of topics of a name and not the second one: 3, as --check finds too."""
    pair, later = [topic("a", 1), topic("a", 2)], [topic("b", 3), topic("a", 4)]
    log = metadata_log(tmp_path / "node", [V], pair, [topic("c", 5)], later)
    outcome, line = written("--force", log, "--at", "3", "--out", tmp_path)
    assert (outcome.exit_code, line["starting"], line["log_end_offset"]) == (3, [], 6)
    faults = outcome.of_kind("later_fault")
    assert [each["release"] for each in faults] == list(CHECKED_RELEASES)
    assert {(each["offset"], each["record_index"], each["rule"]) for each in faults} == {(5, 1, "duplicate-topic")}
    Path(line["file"]).rename(log / "__cluster_metadata-0" / Path(line["file"]).name)
    checked = run("state", "-j1", "--check", "--format", "json", log).of_kind("release")
    assert [(each["release"], each["offset"]) for each in checked] == [(name, 5) for name in CHECKED_RELEASES]
    text = run("snapshot", "-j1", "--force", log, "--at", "1", "--out", tmp_path).text
    assert "Controllers begin with 00000000000000000003-0000000001.checkpoint instead, which is newer" in text
    assert f"controllers of {', '.join(CHECKED_RELEASES)} still die at offset 5, the TopicRecord (index 1)" in text
    assert "start: they load it" not in text


def test_before_a_record_that_only_old_releases_die_of_the_others_start(tmp_path: Path) -> None:
    """A level of 4.2 after the snapshot: the code is 0 for 4.4, and 3 if 4.0 is asked."""
    log = metadata_log(tmp_path / "node", [V], [version("4.2-IV1")])
    outcome, line = written("--force", log, "--at", "1", "--out", tmp_path)
    assert (outcome.exit_code, line["loaded_by"]) == (0, list(CHECKED_RELEASES))
    assert line["starting"] == ["4.2", "4.3", "4.4"]
    Path(line["file"]).unlink()
    assert written("--force", "--kafka", "4.0", log, "--at", "1", "--out", tmp_path)[0].exit_code == 3


def test_a_damaged_log_is_not_said_to_start(tmp_path: Path) -> None:
    """The code is that of damage, and the text says up to where the log was read."""
    log = metadata_log(tmp_path / "node", [V], [topic("a", 1)], [topic("b", 2)])
    (segment,) = log.rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(data)
    outcome = run("snapshot", "-j1", "--force", log, "--out", tmp_path)
    assert outcome.exit_code == 2
    assert "start, up to the damage at offset 2" in outcome.text
    (tmp_path / "00000000000000000002-0000000001.checkpoint").unlink()
    outcome = run("snapshot", "-j1", "--force", log, "--out", tmp_path, "--format", "jsonl")
    (line,) = outcome.of_kind("snapshot")
    assert (outcome.exit_code, line["end_offset"], line["starting"]) == (2, 2, [])
    assert "damaged at offset 2" in line["damage"]


def test_text_names_twenty_records_and_counts_the_others_by_rule(tmp_path: Path) -> None:
    """At 20 all are named; at 21 one is counted."""
    for count in (20, 21, 25):
        twins = [topic("a", number) for number in range(2, count + 2)]
        log = metadata_log(tmp_path / f"node{count}", [V], [topic("a", 1), *twins])
        text = run("snapshot", "-j1", "--force", log, "--out", tmp_path).text
        assert text.count("which has no effect here") == 20
        rest = f"And {count - 20} more records have no effect here: duplicate-topic {count - 20}"
        assert (rest in text) is (count > 20)


def test_portions_keep_to_the_records_and_bytes_of_a_batch() -> None:
    """At the limits and one beyond; nothing is lost, and every batch of several records fits."""
    small = [b"x"] * 2049
    assert [len(each) for each in portions(small)] == [1024, 1024, 1]
    fits = 61 + 2 * (100 + 26)
    assert [len(each) for each in portions([bytes(100)] * 4, fits)] == [2, 2]
    assert [len(each) for each in portions([bytes(100)] * 4, fits - 1)] == [1, 1, 1, 1]
    assert [len(each) for each in portions([bytes(500), b"a", b"b"], fits)] == [1, 2]
    assert list(portions([])) == []


def test_records_of_more_than_a_batch_are_written(tmp_path: Path) -> None:
    """9 MiB in fewer than 1,024 records; the file may be read by all, as Kafka's own."""
    value = "v" * (1 << 14)
    configs = [made("ConfigRecord", resourceType=2, resourceName="t", name=f"x{n}", value=value) for n in range(9 << 6)]
    log = metadata_log(tmp_path / "node", [V], configs[: 4 << 6], configs[4 << 6 :])
    _, line = written("--force", log, "--out", tmp_path)
    assert line["size_bytes"] > 9 << 20
    assert Path(line["file"]).stat().st_mode & 0o777 == 0o444
    assert run("verify", "-j1", line["file"]).exit_code == 0


def test_a_snapshot_that_its_release_does_not_load_is_refused() -> None:
    """The records are checked once more before they are written, as those of a log are."""
    right = [write_metadata_record(each) for each in (V, topic("a", 1))]
    assert snapshot_writing.loaded_by(right, "4.4", 2) == CHECKED_RELEASES
    with pytest.raises(SnapshotError, match=r"4\.4 would not load it: there is a topic a already"):
        snapshot_writing.loaded_by([*right, write_metadata_record(topic("a", 2))], "4.4", 3)


def test_what_is_refused_of_the_longest_replica_is_not_made_of_a_shorter_one(tmp_path: Path) -> None:
    """The end that is asked for is that of the longest one."""
    long = metadata_log(tmp_path / "long", [V], [b"\x01\x63\x00"])
    short = metadata_log(tmp_path / "short", [V])
    outcome = run("snapshot", "-j1", "--force", long, short, "--out", tmp_path)
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert "the record of an unknown type at offset 1 (index 0) is not for 4.4" in outcome.messages
    assert not list(tmp_path.glob("*.checkpoint"))
