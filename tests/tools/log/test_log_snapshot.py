# SPDX-License-Identifier: Apache-2.0
"""``raftlog log snapshot``: what takes the place of the log, and where none can be."""

from pathlib import Path

import pytest

from tests.tools.console import dump_jsonl
from tests.tools.log_console import TOPIC, everything, log, the
from tests.tools.log_console import own_init as init


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_a_snapshot_takes_the_place_of_the_log(directory: Path) -> None:
    """A snapshot has the data records, the voters and kraft.version; the log may then start at its end."""
    log("append", directory, lines=(TOPIC,))
    log("append", directory, lines=(TOPIC, TOPIC))
    options = ("--format", "jsonl", "--delete-before")
    first = the(log("snapshot", "--at", "4", *options, directory).objects, "snapshot")
    second = the(log("snapshot", *options, directory).objects, "snapshot")
    assert (first["end_offset"], first["epoch"], first["record_count"], first["log_start_offset"]) == (4, 1, 1, 4)
    assert (second["end_offset"], second["epoch"], second["record_count"], second["log_start_offset"]) == (7, 2, 3, 7)
    (path,) = (directory / "__cluster_metadata-0").glob("*.checkpoint")
    types = [each["type"] for each in dump_jsonl(path).of_kind("record")]
    head = ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert types == [*head, "TOPIC_RECORD", "TOPIC_RECORD", "TOPIC_RECORD", "SNAPSHOT_FOOTER"]
    assert the(log("append", "--format", "jsonl", directory).objects, "appended")["base_offset"] == 7


@pytest.mark.parametrize("at", ["0", "3", "5", "99", "-1"])
def test_a_snapshot_that_cannot_be_is_refused(at: str, directory: Path) -> None:
    """A snapshot ends where a batch does, above the one before and not above the log end."""
    log("append", directory, lines=(TOPIC, TOPIC))
    assert log("snapshot", directory, "--at", "3" if at == "3" else "5").exit_code == 0
    before = everything(directory / "__cluster_metadata-0")
    outcome = log("snapshot", directory, "--at", at)
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert everything(directory / "__cluster_metadata-0").keys() == before.keys()
