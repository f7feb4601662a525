# SPDX-License-Identifier: Apache-2.0
"""``raftlog snapshot`` writes what Kafka loads, names what Kafka dies of, and refuses what is in doubt."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from raftlog.records.batches.iterator import BufferSource
from raftlog.snapshot.paths import parse_snapshot_name
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.tools.loading.features import CHECKED_RELEASES
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.loading.poisoned_logs import BEGIN, END, V, partition, topic, version
from tests.tools.state.made_metadata import metadata_log

QUORUM = GOLDEN / "dynamic-quorum/data"
VOTERS = [QUORUM / f"n{number}" for number in (1, 2, 3, 4)]


def written(*arguments: str | Path) -> tuple[Outcome, dict[str, Any]]:
    """A run that writes, and the line about its snapshot."""
    outcome = run("snapshot", "-j1", "--format", "jsonl", *arguments)
    assert outcome.messages == ""
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
    outcome = run("snapshot", "-j1", "--force", log, "--out", tmp_path)
    assert outcome.exit_code == 3
    assert "Kafka's own stops at the TopicRecord at offset 2 (index 1), which has no effect here: duplicate-topic" in (
        outcome.text
    )
    assert "Kafka's own stops at the record of an unknown type at offset 4 (index 1)" in outcome.text
    assert f"Controllers of {', '.join(CHECKED_RELEASES)} load it." in outcome.text
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
    outcome, line = written("--force", "--kafka", "4.0", log, "--out", tmp_path / "old")
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
    none = metadata_log(tmp_path / "none", [topic("a", 1)])
    directories = [UUID(int=8), UUID(int=9)]
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
        ((log, "--force", "--at", "0", "--out", tmp_path), "covers no record"),
        ((log, "--force", "--at", "7", "--out", tmp_path), "offset 7 is after the end"),
        ((log, "--force", "--at", "1", "--out", there), "exists, and is not replaced"),
        ((log, "--force", "--at", "1", "--out", tmp_path / "x"), "00000000000000000001-0000000001.checkpoint"),
        ((none, "--force", "--out", tmp_path), "4.4 would not load it: no record sets metadata.version"),
        ((*VOTERS, "--kafka", "4.2", "--out", tmp_path), "4.2 would not load it: no record sets a metadata.version"),
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
