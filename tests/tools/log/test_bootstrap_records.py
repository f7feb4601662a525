# SPDX-License-Identifier: Apache-2.0
"""The records that a cluster of Kafka begins with: the first append writes them, and a log without them is named."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from raftlog.errors import DecodeError, StorageError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.appendable_log import AppendableLog
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.tools.log.bootstrap_records import first_records
from tests.golden_files import GOLDEN
from tests.tools.console import dump_jsonl, run
from tests.tools.log_console import TOPIC, everything, info, init, log, segment, the

FILES = LocalFileSystem()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory as kafka-storage formats it."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def types(directory: Path) -> list[str]:
    """The types of all records of a log, in order."""
    return [each.get("type", "") for each in dump_jsonl(segment(directory)).of_kind("record")]


def without_features(directory: Path, *lines: object) -> None:
    """Append as one would who knows nothing of bootstrap.checkpoint."""
    path = directory / "bootstrap.checkpoint"
    data = path.read_bytes()
    path.unlink()
    assert log("append", directory, lines=lines).exit_code == 0
    path.write_bytes(data)


def data_batches(path: Path) -> Iterator[RecordBatch]:
    """The batches of a segment that have no control records."""
    batches = (each for each in split(BufferSource(path.read_bytes())) if isinstance(each, RecordBatch))
    return (each for each in batches if not each.is_control)


@pytest.mark.parametrize("node", ["dynamic-quorum/data/n1", "dynamic-quorum/data/n3", "static-upgrade/data/n1"])
def test_they_are_those_that_kafka_wrote(node: str) -> None:
    """A real leader's first batch of data has the records that are made of the bootstrap.checkpoint beside it."""
    (first, *_) = data_batches(GOLDEN / node / "__cluster_metadata-0/00000000000000000000.log")
    assert first_records(FILES, str(GOLDEN / node)) == [record.value for record in first.records()]


@pytest.mark.parametrize("options", [(), ("--batch-records", "1"), ("--compression-type", "gzip")])
def test_the_first_append_begins_with_them(directory: Path, options: tuple[str, ...]) -> None:
    """They are in one batch after the control records, before the given ones, and the second append has none."""
    first = the(log("append", "--format", "jsonl", directory, *options, lines=(TOPIC,)).objects, "appended")
    log("append", directory, lines=(TOPIC,))

    kafkas = types(directory)
    assert kafkas[:4] == ["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS", "BEGIN_TRANSACTION_RECORD"]
    assert kafkas[-4:] == ["END_TRANSACTION_RECORD", "TOPIC_RECORD", "LEADER_CHANGE", "TOPIC_RECORD"]
    assert (first["bootstrap_record_count"], first["record_count"]) == (len(kafkas) - 6, 1)
    batch = next(data_batches(segment(directory)))
    assert batch.record_count >= first["bootstrap_record_count"]
    assert run("verify", "--all", directory).exit_code == 0
    assert log("info", directory).exit_code == 0


def test_without_data_the_log_is_still_empty(directory: Path) -> None:
    """Control records alone are nothing to Kafka: an epoch without data does not take the place of the first append."""
    without_features(directory)
    assert types(directory) == ["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert "metadata_version_missing" not in {each["kind"] for each in info(directory)}
    log("append", directory)
    assert types(directory)[3:6] == ["LEADER_CHANGE", "BEGIN_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD"]


@pytest.mark.parametrize(("release", "has_transaction"), [("3.5", False), ("3.6-IV0", False), ("3.6-IV1", True)])
def test_older_releases_know_no_transactions(tmp_path: Path, release: str, *, has_transaction: bool) -> None:
    """Below 3.6-IV1 the records are alone in their batch, and appended records are in the next one."""
    init(tmp_path / "old", "--release-version", release)
    log("append", tmp_path / "old", lines=(TOPIC,))
    assert ("BEGIN_TRANSACTION_RECORD" in types(tmp_path / "old")) is has_transaction
    first, second = data_batches(segment(tmp_path / "old"))
    assert (first.record_count, second.record_count) == (3 if has_transaction else 1, 1)


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_refuses_the_first_append(directory: Path, damage: bytes | None) -> None:
    """Records that are due and cannot be read are not left out: nothing is written, and the file is named."""
    path = directory / "bootstrap.checkpoint"
    data = bytearray(path.read_bytes())
    data[90] ^= 1
    path.write_bytes(bytes(data) if damage is None else damage)
    log("info", directory)
    before = everything(directory)
    refused = log("append", directory, lines=(TOPIC,))
    assert (refused.exit_code, len(refused.complaints)) == (2, 1)
    assert str(path) in refused.messages
    assert {**everything(directory), **before} == everything(directory)
    assert not list(directory.glob("__cluster_metadata-0/*.log")) or types(directory) == []
    with pytest.raises(DecodeError):
        first_records(FILES, str(directory))


UNKNOWN_TYPE = base64.b64encode(bytes.fromhex("01e70f00")).decode()
GARBAGE_AFTER = base64.b64encode(bytes.fromhex("010c0010") + bytes(40)).decode()


@pytest.mark.parametrize("line", [{"value": "mine"}, {"value_base64": UNKNOWN_TYPE}, {"value_base64": GARBAGE_AFTER}])
def test_records_that_kafka_cannot_read_are_refused(directory: Path, line: dict[str, str]) -> None:
    """Its controllers would die of them: in a directory for Kafka only who forces it writes them."""

    def written() -> bytes:
        return b"".join(path.read_bytes() for path in directory.glob("__cluster_metadata-0/*.log"))

    for is_first in (True, False):
        before = written()
        refused = log("append", directory, lines=(TOPIC, line))
        assert (refused.exit_code, len(refused.complaints)) == (1, 1)
        assert "record 2 is not a metadata record of Kafka: " in refused.messages
        assert written() == before
        if is_first:
            log("append", directory, lines=(TOPIC,))
    known = types(directory)
    assert log("append", "--force", directory, lines=(TOPIC, line)).exit_code == 0
    assert len(types(directory)) == len(known) + 3


def test_an_unreadable_file_refuses_the_first_append(directory: Path) -> None:
    """So does one that the disk does not give back."""
    (directory / "bootstrap.checkpoint").unlink()
    (directory / "bootstrap.checkpoint").mkdir()
    refused = log("append", directory, lines=(TOPIC,))
    assert (refused.exit_code, len(refused.complaints)) == (1, 1)
    with pytest.raises(StorageError):
        first_records(FILES, str(directory))


def test_a_log_without_the_version_is_named(directory: Path) -> None:
    """Info and verify name a log that Kafka would not start on, until something sets metadata.version."""
    without_features(directory, TOPIC)
    outcome = log("info", "--format", "jsonl", directory)
    assert outcome.exit_code == 3
    assert len(outcome.of_kind("metadata_version_missing")) == 1
    found = run("verify", directory)
    assert (found.exit_code, found.text.count("metadata-version-missing")) == (3, 1)

    log("snapshot", directory)
    assert log("info", directory).exit_code == 3
    assert "metadata-version-missing" in run("verify", directory).text

    level: dict[str, Any] = {"name": "metadata.version", "featureLevel": 30}
    log("append", directory, lines=({"type": "FEATURE_LEVEL_RECORD", "version": 0, "data": level},))
    assert log("info", directory).exit_code == 0
    log("snapshot", directory)
    assert (log("info", directory).exit_code, run("verify", directory).exit_code) == (0, 0)


def test_an_own_state_machine_needs_none(tmp_path: Path) -> None:
    """Without bootstrap.checkpoint nothing is written first, and nothing is missed."""
    told = the(init(tmp_path / "own", "--no-features", "--format", "jsonl").objects, "formatted")
    assert (told["features"], told["kraft_version"]) == ({}, 1)
    log("append", tmp_path / "own", lines=({"value": "mine"},))
    assert len(types(tmp_path / "own")) == 4
    assert (log("info", tmp_path / "own").exit_code, run("verify", "--all", tmp_path / "own").exit_code) == (0, 0)


def test_the_vote_is_durable_before_the_log_is_entered(directory: Path) -> None:
    """A leader that is stopped in between knows of its epoch: the log is never ahead of quorum-state."""
    done: list[str] = []
    write, enter = QuorumStateStore._store, AppendableLog._store_epochs

    def noted(name: str, right: Any) -> Any:
        def call(*arguments: Any) -> Any:
            done.append(name)
            return right(*arguments)

        return call

    with (
        mock.patch.object(QuorumStateStore, "_store", noted("vote", write)),
        mock.patch.object(AppendableLog, "_store_epochs", noted("log", enter)),
    ):
        assert log("append", directory, lines=(TOPIC,)).exit_code == 0
    assert done[:2] == ["vote", "log"]
    state = json.loads((directory / "__cluster_metadata-0/quorum-state").read_text())
    assert (state["leaderId"], state["leaderEpoch"]) == (1, 1)
