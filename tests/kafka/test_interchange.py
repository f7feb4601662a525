# SPDX-License-Identifier: Apache-2.0
"""Kafka 4.3.1 reads what raftlog wrote, writes on, and raftlog reads that: dump tool and controller, both ways."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.metadata import read_metadata_record
from tests.kafka import dump_tool
from tests.kafka.comparison import differences
from tests.kafka.controller import METADATA_DIRECTORY, Controller, leaders_in
from tests.kafka.written_directories import (
    CLUSTER_ID,
    NODE_ID,
    batches_of,
    open_log,
    state_of,
    write_directory,
    write_snapshot,
)
from tests.tools.console import Outcome, run, run_process

pytestmark = dump_tool.marks("a real Kafka")

SHAPES = {
    ".log": (("--cluster-metadata-decoder",), ("--deep-iteration", "--print-data-log"), ()),
    ".checkpoint": (("--cluster-metadata-decoder",), ("--deep-iteration",), ()),
    ".index": ((), ("--index-sanity-check",), ("--verify-index-only",)),
    ".timeindex": ((), ("--index-sanity-check",), ("--verify-index-only",)),
}
REBUILT = (".index", ".timeindex")


@attrs.frozen
class Continued:
    """A directory that raftlog had written, in which a controller has led.

    Attributes:
        controller: which it was.
        start_offset: the log start before.
        end_offset: the log end before; what Kafka wrote is from there on.
        snapshot_id: of the snapshot that the log starts at.
        ours: the small files as raftlog had left them, by name.
    """

    controller: Controller
    start_offset: int
    end_offset: int
    snapshot_id: OffsetAndEpoch
    ours: dict[str, bytes]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A directory that raftlog has written, from its bootstrap snapshot on."""
    controller = Controller(tmp_path_factory.mktemp("written"))
    write_directory(controller.directory, controller.port)
    return controller


@pytest.fixture(scope="module")
def continued(written: Controller, tmp_path_factory: pytest.TempPathFactory) -> Continued:
    """The same with half of it replaced by a snapshot, after a controller has led there; its indexes were missing."""
    directory = tmp_path_factory.mktemp("continued")
    shutil.copytree(written.directory, directory, dirs_exist_ok=True)
    snapshot_id = write_snapshot(directory)
    with open_log(directory) as log:
        start_offset, end_offset = log.start_offset, log.end_offset.offset
    controller = Controller(directory, port=written.port)
    ours = {path.name: path.read_bytes() for path in controller.log_directory.iterdir()}
    for name in ours:
        if name.endswith(REBUILT) or name == "leader-epoch-checkpoint":
            (controller.log_directory / name).unlink()
    with controller.running():
        wait_until_registered(controller, 2)
    return Continued(controller, start_offset, end_offset, snapshot_id, ours)


@pytest.fixture(scope="module")
def formatted_by_kafka(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """A directory that kafka-storage has formatted."""
    controller = Controller(tmp_path_factory.mktemp("formatted"))
    controller.format(CLUSTER_ID, "--standalone", "--release-version", "4.1", "--feature", "group.version=0")
    return controller


def messages(batches: Iterable[RecordBatch], name: str) -> list[dict[str, Any]]:
    """The metadata messages of a name in batches."""
    values = (record.value for batch in batches if not batch.is_control for record in batch.records())
    return [record.message for record in map(read_metadata_record, values) if record.type.name == name]


def wait_until_registered(controller: Controller, above_epoch: int) -> list[RecordBatch]:
    """Wait until a controller leads an epoch above one, and has started so far that it can be stopped in order."""

    def is_registered(batches: list[RecordBatch]) -> bool:
        new = (batch for batch in batches if batch.partition_leader_epoch > above_epoch)
        return bool(messages(new, "RegisterControllerRecord"))

    return controller.wait_for(is_registered, f"registration above epoch {above_epoch}")


def features(batches: list[RecordBatch]) -> dict[str, int]:
    """The levels that the FeatureLevelRecords in batches set."""
    records = messages(batches, "FeatureLevelRecord")
    return {message["name"]: message["featureLevel"] for message in records}


def log_verb(*arguments: str | Path, data: bytes | None = None) -> Outcome:
    """Runs `raftlog log`, which has to succeed."""
    outcome = run("log", *arguments) if data is None else run_process("log", *arguments, data=data)
    assert outcome.exit_code == 0, outcome.messages
    return outcome


def complaints(dump: dump_tool.Dump) -> list[bytes]:
    """The dump tool's standard error, without its complaint about a segment that does not start at offset 0."""
    usual = (b"Non-consecutive offsets in ", b"  -1 is followed by ")
    return [line for line in dump.err.splitlines() if not line.startswith(usual)]


def test_kafka_dumps_what_raftlog_wrote(written: Controller, tmp_path: Path) -> None:
    """Kafka's dump tool reads every file that raftlog wrote, and prints what raftlog's prints."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    shutil.copytree(written.directory, whole)
    shutil.copytree(written.directory, cut)
    write_snapshot(cut)
    log_verb("init", tmp_path / "formatted", "-t", CLUSTER_ID, "--node-id", "1", "--standalone")
    files = [path.relative_to(tmp_path) for path in sorted(tmp_path.rglob("*")) if path.suffix in SHAPES]
    calls = [(*shape, "--files", str(file)) for file in files for shape in SHAPES[file.suffix]]
    assert {file.suffix for file in files} == set(SHAPES)
    assert len(files) > 20

    dumps = dump_tool.dump_many("4.3", calls, tmp_path)

    assert [call for call, dump in zip(calls, dumps, strict=True) if dump.exit or complaints(dump)] == []
    assert not [call for call, dump in zip(calls, dumps, strict=True) if b"isvalid: false" in dump.out]
    answers = zip(calls, (dump.out for dump in dumps), strict=True)
    assert list(differences("4.3", tmp_path, answers)) == []


def without_times(checkpoint: Path) -> list[dict[str, Any]]:
    """The output of dump-log for a checkpoint, without what depends on the time of writing."""
    told = run("dump-log", "--format", "jsonl", "--no-redact", checkpoint).objects
    for each in told:
        for name in ("file", "timestamp", "base_timestamp", "max_timestamp", "crc"):
            each.pop(name, None)
        if checkpoint.name != "bootstrap.checkpoint" and each.get("type") == "SNAPSHOT_HEADER":
            assert each["data"].pop("lastContainedLogTimestamp") > 0
    return told


def test_raftlog_formats_as_kafka_does(formatted_by_kafka: Controller, tmp_path: Path) -> None:
    """`raftlog log init` makes the files that kafka-storage makes, with the same batches and records in them."""
    kafkas = formatted_by_kafka.directory
    own = dict(line.split("=") for line in (kafkas / "meta.properties").read_text().splitlines()[2:])
    options = ("--listener", f"CONTROLLER://localhost:{formatted_by_kafka.port}", "--directory-id", own["directory.id"])
    features = ("--release-version", "4.1", "--feature", "group.version=0")
    log_verb("init", tmp_path, "-t", CLUSTER_ID, "--node-id", str(NODE_ID), "--standalone", *options, *features)

    checkpoints = sorted(path.relative_to(kafkas) for path in kafkas.rglob("*.checkpoint"))
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.checkpoint")) == checkpoints
    assert len(checkpoints) == 2
    for name in checkpoints:
        assert without_times(tmp_path / name) == without_times(kafkas / name)
    assert dict(line.split("=") for line in (tmp_path / "meta.properties").read_text().splitlines()[1:]) == own


def test_kafka_boots_from_a_formatted_directory(tmp_path: Path) -> None:
    """A controller leads in a directory of `raftlog log init`, with the features that bootstrap.checkpoint names."""
    controller = Controller(tmp_path)
    listener = f"CONTROLLER://localhost:{controller.port}"
    options = ("--standalone", "--listener", listener, "--release-version", "4.2", "--feature", "group.version=0")
    log_verb("init", tmp_path, "-t", CLUSTER_ID, "--node-id", str(NODE_ID), *options)
    with open_log(tmp_path) as log:
        formatted = state_of(log).last_voter_set

    with controller.running():
        wait_until_registered(controller, 0)

    with open_log(tmp_path) as log:
        state_machine, batches = state_of(log), batches_of(log, 0)
        assert log.recovery.quarantine is None
    assert state_machine.last_voter_set == formatted
    assert state_machine.last_voter_set_offset is not None
    assert state_machine.last_voter_set_offset > 0, "the leader writes the voters of the bootstrap snapshot to the log"
    assert leaders_in(batches[0]) == [NODE_ID]
    assert features(batches) == {
        "metadata.version": 29,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_kafka_continues_after_a_snapshot_of_raftlog(continued: Continued) -> None:
    """A controller loads a snapshot that raftlog wrote, leads in a log that starts there, and raftlog reads on."""
    assert continued.start_offset == continued.snapshot_id.offset > 0
    with open_log(continued.controller.directory) as log:
        state_machine, new = state_of(log), batches_of(log, continued.end_offset)
        assert log.start_offset == continued.start_offset
        assert log.quarantine is None
        assert log.latest_snapshot_id == continued.snapshot_id

    assert leaders_in(new[0]) == [NODE_ID]
    assert {batch.partition_leader_epoch for batch in new} == {3}
    assert any(not batch.is_control for batch in new)
    assert features(new) == {}, "a controller that had not loaded the snapshot would write its bootstrap records"
    assert state_machine.last_voter_set.voter_ids == {NODE_ID}


def test_indexes_and_epochs_are_those_that_kafka_rebuilds(continued: Continued) -> None:
    """Of every segment that it has not added to, Kafka rebuilds the indexes that raftlog wrote, and the epochs."""
    folder = continued.controller.log_directory
    segments = sorted(name.removesuffix(".log") for name in continued.ours if name.endswith(".log"))
    compared = [f"{segment}{suffix}" for segment in segments[:-1] for suffix in REBUILT]
    assert len(compared) >= 4

    for name in compared:
        assert (folder / name).read_bytes() == continued.ours[name], name
    epochs = (folder / "leader-epoch-checkpoint").read_text().splitlines()
    before = continued.ours["leader-epoch-checkpoint"].decode().splitlines()
    assert epochs[2:] == [*before[2:], f"3 {continued.end_offset}"]
    assert sum(len(continued.ours[name]) for name in compared) > 100, "they have entries"


def test_kafka_continues_where_raftlog_has_appended(formatted_by_kafka: Controller, tmp_path: Path) -> None:
    """A directory that Kafka wrote, and raftlog has appended an epoch to, is Kafka's again, and no record is lost."""
    shutil.copytree(formatted_by_kafka.directory, tmp_path, dirs_exist_ok=True)
    controller = Controller(tmp_path, port=formatted_by_kafka.port)
    with controller.running():
        kafkas = wait_until_registered(controller, 0)
    fields = {"resourceType": 4, "resourceName": "7", "name": "x", "value": "of raftlog"}
    line = json.dumps({"type": "CONFIG_RECORD", "version": 0, "data": fields}).encode()
    (appended,) = json_lines(log_verb("append", "--format", "jsonl", tmp_path, data=line + b"\n"))
    log_verb("snapshot", tmp_path)

    with controller.running():
        wait_until_registered(controller, appended["epoch"])

    with open_log(tmp_path) as log:
        batches = batches_of(log, 0)
        assert log.quarantine is None
        assert state_of(log).last_voter_set.voter_ids == {NODE_ID}
    assert [stored(batch) for batch in batches[: len(kafkas)]] == [stored(batch) for batch in kafkas]
    by_epoch = {batch.partition_leader_epoch: batch for batch in batches if not batch.is_control}
    assert list(by_epoch) == [1, appended["epoch"], appended["epoch"] + 1]
    ours = [read_metadata_record(record.value).message for record in by_epoch[appended["epoch"]].records()]
    assert ours == [fields]
    quorum_state = json.loads((tmp_path / METADATA_DIRECTORY / "quorum-state").read_text())
    assert quorum_state["leaderEpoch"] == appended["epoch"] + 1


def stored(batch: RecordBatch) -> bytes:
    """The bytes of a batch."""
    return bytes(batch.buffer[batch.position : batch.position + batch.size_bytes])


def json_lines(outcome: Outcome) -> list[dict[str, int]]:
    """The objects that a call printed."""
    return [json.loads(line) for line in outcome.text.splitlines()]
