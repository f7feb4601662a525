# SPDX-License-Identifier: Apache-2.0
"""The log that is kept is what its owner would find at its next startup, whatever a crash has left beside and in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.records.files.file_names import FileState, parse_file_name
from tests.tools.console import run
from tests.tools.made_logs import flip
from tests.tools.repair.repaired import LOG, apply, batches, copied, everything, plan


def _active(log: Path) -> Path:
    return max(log.glob("*.log"))


def _torn(log: Path) -> None:
    data = _active(log).read_bytes()
    with _active(log).open("ab") as file:
        file.write(data[:40])


def _padded(log: Path) -> None:
    with _active(log).open("ab") as file:
        file.write(bytes(5000))


def _no_indexes(log: Path) -> None:
    for path in [*log.glob("*.index"), *log.glob("*.timeindex")]:
        path.unlink()


def _bad_indexes(log: Path) -> None:
    for path in [*log.glob("*.index"), *log.glob("*.timeindex")]:
        path.write_bytes(b"\xff" * 24)


def _no_epochs(log: Path) -> None:
    (log / "leader-epoch-checkpoint").unlink()


def _no_topic(log: Path) -> None:
    (log / "partition.metadata").unlink()


def _left_over(log: Path) -> None:
    (log / "00000000000000000300-0000000004-123.checkpoint.part").write_bytes(b"x")
    (log / "00000000000000000000.log.deleted").write_bytes(b"x")
    (log / "quorum-state.tmp").write_bytes(b"x")
    (log / "notes.txt").write_bytes(b"x")


def _no_snapshots(log: Path) -> None:
    for path in log.glob("*.checkpoint"):
        path.unlink()


def _unreadable_older_snapshot(log: Path) -> None:
    path = log / "00000000000000000081-0000000003.checkpoint"
    path.chmod(0o600)
    flip(path, 200)


CRASHES: dict[str, Callable[[Path], None]] = {
    "a torn tail": _torn,
    "padding": _padded,
    "no indexes": _no_indexes,
    "bad indexes": _bad_indexes,
    "no epochs": _no_epochs,
    "no topic": _no_topic,
    "files that are left over": _left_over,
    "no snapshots": _no_snapshots,
}


@pytest.mark.parametrize("name", CRASHES)
def test_what_a_crash_leaves_is_no_obstacle(name: str, tmp_path: Path) -> None:
    """All sound batches are kept, the record follows the last one, and the result is as clean as any."""
    quorum = copied(tmp_path)
    kept = batches(quorum / "n3")
    CRASHES[name](quorum / "n3" / LOG)
    before = everything(quorum)

    planned = plan(quorum / "n3", file=tmp_path / "plan")
    assert planned.exit_code == 0, planned.messages
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert made.exit_code == 0, made.messages

    assert everything(quorum) == before
    assert [bytes(each.buffer) for each in batches(tmp_path / "new")[:-1]] == [bytes(each.buffer) for each in kept]
    found = run("verify", "--format", "jsonl", tmp_path / "new").of_kind("finding")
    assert {each["rule"] for each in found} == {"voters-rewritten"}
    for path in (tmp_path / "new" / LOG).iterdir():
        parsed = parse_file_name(path.name)
        assert parsed is not None, path
        assert parsed.state is FileState.CURRENT, path


def test_an_older_snapshot_that_is_damaged_is_no_obstacle(tmp_path: Path) -> None:
    """It is not in the result, where a newer one stands for the same records; the source still has it."""
    quorum = copied(tmp_path)
    _unreadable_older_snapshot(quorum / "n3" / LOG)
    planned = plan(quorum / "n3", file=tmp_path / "plan")
    assert planned.exit_code == 0, planned.messages
    (made,) = apply(tmp_path / "plan", tmp_path / "new").objects
    assert [each["rule"] for each in made["findings"]] == ["voters-rewritten"]
    names = {path.name for path in (tmp_path / "new" / LOG).iterdir()}
    assert not [name for name in names if "00000000000000000081-" in name]
    assert "00000000000000000151-0000000004.checkpoint" in names


def test_damage_that_a_snapshot_covers_is_refused(tmp_path: Path) -> None:
    """Damaged bytes are not copied into a new directory, though Kafka would start there."""
    quorum = copied(tmp_path)
    flip(quorum / "n3" / LOG / "00000000000000000000.log", 100)
    planned = plan(quorum / "n3", file=tmp_path / "plan")
    assert (planned.exit_code, planned.output) == (2, b"")
    assert "the log is damaged" in planned.messages


def test_a_voter_with_damage_that_a_snapshot_covers_is_at_hand(tmp_path: Path) -> None:
    """Kafka starts there, and has all that was committed."""
    quorum = copied(tmp_path)
    flip(quorum / "n4" / LOG / "00000000000000000081.log", 100)
    planned = plan(quorum / "n3", quorum / "n4", file=tmp_path / "plan")
    assert (planned.exit_code, planned.output) == (1, b"")
    assert "is at hand" in planned.messages
