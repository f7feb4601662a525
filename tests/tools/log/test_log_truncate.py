# SPDX-License-Identifier: Apache-2.0
"""``raftlog log truncate``: what goes, what is asked before, and how a quarantine ends."""

from pathlib import Path

import pytest

from tests.tools.log_console import TOPIC, damaged, info, log, the
from tests.tools.log_console import own_init as init


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_truncation_wants_to_be_confirmed(directory: Path) -> None:
    """Without --yes it is said what would go; with it, it goes, and a batch goes whole."""
    log("append", directory, lines=(TOPIC, TOPIC))
    asked = log("truncate", directory, "--to", "4")
    assert (asked.exit_code, asked.output) == (1, b"")
    assert "offsets 4 to 5 (exclusive) would go: only with --yes" in asked.messages
    done = the(log("truncate", directory, "--to", "4", "--yes", "--format", "jsonl").objects, "truncated")
    assert (done["end_offset"], done["former_end_offset"]) == (3, 5)
    assert the(info(directory), "log")["end_offset"] == 3
    assert the(log("append", "--format", "jsonl", directory).objects, "appended")["epoch"] == 2


@pytest.mark.parametrize("to", ["4", "99"])
def test_a_question_changes_nothing(to: str, directory: Path) -> None:
    """Without --yes no file is written, repaired or locked, also where a start would cut a torn tail."""
    log("append", directory, lines=(TOPIC, TOPIC))
    segment = directory / "__cluster_metadata-0" / "00000000000000000000.log"
    segment.write_bytes(segment.read_bytes() + segment.read_bytes()[:40])
    (directory / ".lock").unlink()
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert log("truncate", directory, "--to", to).exit_code == 1
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("to", ["-1", "3", "6"])
def test_truncation_keeps_to_the_log(to: str, directory: Path) -> None:
    """Records that a snapshot covers stay, and there is nothing to truncate after the end."""
    log("append", directory, lines=(TOPIC,))
    log("snapshot", directory)
    log("append", directory)
    outcome = log("truncate", directory, "--to", to, "--yes")
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert "the log can be cut at offsets 4 to 5" in outcome.messages


def test_truncation_ends_a_quarantine(directory: Path) -> None:
    """Damaged bytes are set aside, and the log continues before them."""
    path = damaged(directory)
    assert "and what is damaged would go" in log("truncate", directory, "--to", "3").messages
    assert path.exists()
    assert log("truncate", directory, "--to", "3", "--yes").exit_code == 0
    assert list(path.parent.glob("*.damaged-*"))
    assert log("append", directory).exit_code == 0
    assert log("info", directory).exit_code == 0
