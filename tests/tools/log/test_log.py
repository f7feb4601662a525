# SPDX-License-Identifier: Apache-2.0
"""``raftlog log``: directories that cannot be used, wrong usage, help."""

from pathlib import Path

import pytest

from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import LogDirectory
from tests.tools.log_console import CLUSTER, OTHER_ID, init, log


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_a_directory_that_is_held_is_left_alone(directory: Path) -> None:
    """While another owner holds a directory, it can be looked at, and not written to."""
    log("append", directory)
    with LogDirectory.open(LocalFileSystem(), str(directory)) as held:
        file_log = FileLog.open(LocalFileSystem(), held.log_path)
        for action in (("append",), ("snapshot",), ("truncate", "--to", "0", "--yes")):
            outcome = log(*action, directory)
            assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
            assert "lock" in outcome.messages
        assert log("info", directory).exit_code == 0
        file_log.close()


@pytest.mark.parametrize("action", ["append", "info", "snapshot", "truncate"])
def test_other_directories_are_refused(action: str, directory: Path, tmp_path: Path) -> None:
    """A missing directory, an empty one, a partition's, and one with bad properties give one line each."""
    options = ("--to", "0") if action == "truncate" else ()
    (tmp_path / "empty").mkdir()
    topic = tmp_path / "orders-0"
    topic.mkdir()
    (topic / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    for path in (tmp_path / "missing", tmp_path / "empty", topic, directory / "__cluster_metadata-0"):
        outcome = log(action, path, *options)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    (directory / "meta.properties").write_text("version=1\nnode.id=one\n")
    outcome = log(action, directory, *options)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (2, b"", 1)
    (directory / "meta.properties").write_text("version=0\nbroker.id=1\n")
    assert log(action, directory, *options).exit_code == 1
    (directory / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n")
    partition = directory / "__cluster_metadata-0" / "partition.metadata"
    partition.write_text(f"version: 0\ntopic_id: {OTHER_ID}")
    assert log(action, directory, *options).exit_code == 1


@pytest.mark.parametrize(
    "arguments", [(), ("frobnicate",), ("init",), ("append",), ("truncate", "x"), ("info", "--x", "x")]
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...]) -> None:
    """Wrong usage is one line that says where to read more, and exit code 1."""
    outcome = log(*arguments)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert "--help)" in outcome.messages


@pytest.mark.parametrize("action", ["init", "append", "info", "snapshot", "truncate"])
def test_every_action_has_help(action: str) -> None:
    """Help names the options and the exit codes."""
    outcome = log(action, "--help")
    assert outcome.exit_code == 0
    assert all(text in " ".join(outcome.text.split()) for text in ("DIR", "--format", "130 interrupted"))
    assert action in log("--help").text
