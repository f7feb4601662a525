# SPDX-License-Identifier: Apache-2.0
"""A controller continues in the directory that the README shows, then raftlog does, and everything is sound."""

import shutil
from pathlib import Path

import pytest

from raftlog.records.files.quorum_state import UNKNOWN_ID
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.storage.state.quorum_state_store import COPY_NAMES, QuorumStateCopy, read_quorum_state_copy
from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.kafka.test_interchange import log_verb, messages, wait_until_registered
from tests.readme import log_script, run_shell
from tests.tools.console import Outcome, run

pytestmark = dump_tool.marks("a real Kafka")


def audit(directory: Path, tmp_path: Path) -> Outcome:
    """The output of `raftlog verify` for a directory, without the tests' own files in it."""
    copy = tmp_path / "audited"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("controller.*"))
    return run("verify", "--all", "--format", "jsonl", copy)


def rules(outcome: Outcome) -> dict[str, str]:
    """The severities of what was found, by rule."""
    return {each["rule"]: each["severity"] for each in outcome.of_kind("finding")}


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    """The directory of the README's shell commands, with another port, after a controller has led there."""
    folder = tmp_path_factory.mktemp("readme")
    controller = Controller(folder / "quorum")
    listener = f"--standalone --listener CONTROLLER://localhost:{controller.port}"
    run_shell(log_script().replace("--standalone", listener), folder)
    assert run("verify", controller.directory).exit_code == 0
    with controller.running():
        wait_until_registered(controller, 1)
    return controller


def test_kafka_continues_with_the_readmes_directory(readme: Controller) -> None:
    """A controller leads after the README's records: its topic exists, and the features are set once."""
    batches = readme.batches()
    assert [each["name"] for each in messages(batches, "TopicRecord")] == ["orders"]
    levels = [each["name"] for each in messages(batches, "FeatureLevelRecord")]
    assert levels.count("metadata.version") == 1
    assert [each["name"] for each in messages(batches, "BeginTransactionRecord")] == ["Bootstrap records"]


def test_what_raftlog_writes_first_is_what_kafka_does(readme: Controller, tmp_path: Path) -> None:
    """Of one directory as it was formatted, Kafka's first batch of data has the records that raftlog's has."""
    fresh = Controller(tmp_path / "fresh", port=readme.port)
    listener = f"CONTROLLER://localhost:{readme.port}"
    log_verb("init", fresh.directory, "-t", "demo", "--node-id", "1", "--standalone", "--listener", listener)
    with fresh.running():
        wait_until_registered(fresh, 0)

    def first(controller: Controller) -> list[object]:
        batch = next(each for each in controller.batches() if not each.is_control)
        return [read_metadata_record(record.value) for record in batch.records()]

    assert first(readme)[: len(first(fresh))] == first(fresh)


def test_a_handover_and_back_is_sound(readme: Controller, tmp_path: Path) -> None:
    """After Kafka has led, what it left of the copies is harmless; once raftlog has led again, nothing is said."""
    after_kafka = audit(readme.directory, tmp_path)
    assert after_kafka.exit_code == 0
    assert set(rules(after_kafka).values()) <= {"harmless"}
    assert "election-handover" in rules(after_kafka)

    log_verb("append", readme.directory, data=b"")
    back = audit(readme.directory, tmp_path)
    assert back.exit_code == 0
    assert "election-handover" not in rules(back)
    assert run("log", "info", readme.directory).exit_code == 0


@pytest.mark.parametrize("is_both", [False, True])
def test_a_copy_that_contradicts_kafka_is_not(readme: Controller, tmp_path: Path, *, is_both: bool) -> None:
    """A copy that is ahead of what Kafka wrote, or one copy of two that is of another write, is suspicious."""
    directory = tmp_path / "copied"
    shutil.copytree(readme.directory, directory)
    for name in COPY_NAMES[: 1 + is_both]:
        path = directory / "__cluster_metadata-0" / name
        copy = read_quorum_state_copy(path.read_bytes())
        epoch = copy.state.leader_epoch + (9 if is_both else -1)
        state = type(copy.state)(1, leader_id=UNKNOWN_ID, leader_epoch=epoch)
        path.write_bytes(QuorumStateCopy(state, copy.sequence + 9).encode())
    found = audit(directory, tmp_path)
    assert found.exit_code == 3
    assert rules(found)["election-copies"] == "suspicious"


@pytest.mark.parametrize("release", ["4.1.2", "3.9.1"])
def test_older_releases_continue_too(release: str, tmp_path: Path) -> None:
    """A controller of an older release leads in the README's directory, made for that release, and so does raftlog."""
    controller = Controller(tmp_path / "quorum", release=release)
    line = release.rpartition(".")[0]
    options = f"--standalone --listener CONTROLLER://localhost:{controller.port} --release-version {line}"
    run_shell(log_script().replace("--standalone", options), tmp_path)

    with controller.running():
        wait_until_registered(controller, 1)

    assert set(rules(audit(controller.directory, tmp_path)).values()) <= {"harmless"}
    log_verb("append", controller.directory, data=b"")
    assert audit(controller.directory, tmp_path).exit_code == 0
