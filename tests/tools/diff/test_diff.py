# SPDX-License-Identifier: Apache-2.0
"""``raftlog diff``: replicas of a real quorum, and copies of them that were changed."""

import base64
import json
import os
import shutil
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.auditing.made_segments import data_batch
from tests.tools.console import run

QUORUM = GOLDEN / "dynamic-quorum/data"
PARTITION = "__cluster_metadata-0"
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/diff-1.schema.json").read_text()))


@pytest.fixture
def quorum(tmp_path: Path) -> Path:
    """A copy of two replicas."""
    for name in ("n1", "n3"):
        shutil.copytree(QUORUM / name, tmp_path / name)
    return tmp_path


def _last_segment(replica: Path) -> Path:
    return sorted((replica / PARTITION).glob("*.log"))[-1]


def _diff(*arguments: str | Path) -> list[dict[str, object]]:
    """Return the differences, after each line was checked against the published schema."""
    outcome = run("diff", "--format", "jsonl", *arguments)
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome.of_kind("divergence")


def test_replicas_of_a_real_quorum() -> None:
    """The replicas of a real quorum are equal, except one that was stopped earlier; that is clean."""
    outcome = run("diff", *(QUORUM / name for name in ("n1", "n2", "n3", "n4")), "--format", "jsonl")
    assert outcome.exit_code == 0
    assert [each["divergences"] for each in outcome.of_kind("comparison")] == [1, 0, 0]
    (behind,) = outcome.of_kind("divergence")
    assert (behind["divergence"], behind["severity"], behind["offset"]) == ("prefix", "harmless", 229)


def test_segments_are_compared_by_themselves() -> None:
    """Two files are compared whatever the names of their directories."""
    first = _last_segment(QUORUM / "n1")
    assert run("diff", first, first).text.splitlines()[-1] == "  equal"


def test_a_flipped_bit_is_shown_to_the_byte(quorum: Path) -> None:
    """A flipped bit is bit rot at its offset, with the first byte that differs and the field that it is in."""
    path = _last_segment(quorum / "n1")
    data = bytearray(path.read_bytes())
    data[100] ^= 0x10
    path.write_bytes(data)
    (found,) = _diff(quorum / "n1", quorum / "n3")
    assert (found["divergence"], found["severity"]) == ("bit rot", "damaged")
    byte = found["first_differing_byte"]
    assert isinstance(byte, dict)
    assert byte["left"] ^ byte["right"] == 0x10
    assert run("diff", quorum / "n1", quorum / "n3").exit_code == 2
    assert (
        f"first differing byte: {byte['index']} of the batch ({byte['field']})"
        in run("diff", quorum / "n1", quorum / "n3").text
    )


def test_a_torn_tail_is_suspicious(quorum: Path) -> None:
    """A replica whose last write was cut is a truncated tail."""
    path = _last_segment(quorum / "n1")
    path.write_bytes(path.read_bytes()[:-3])
    outcome = run("diff", quorum / "n1", quorum / "n3")
    assert outcome.exit_code == 3
    assert "truncated tail at offset" in outcome.text


def test_only_the_first_difference_is_shown_unless_all_are_wanted(quorum: Path) -> None:
    """Of several differences the first is shown, with the number of all; --all shows each."""
    path = _last_segment(quorum / "n1")
    data = bytearray(path.read_bytes()[:-3])
    data[100] ^= 1
    path.write_bytes(data)
    assert "2 differences; --all shows the rest" in run("diff", quorum / "n1", quorum / "n3").text
    assert len(_diff(quorum / "n1", quorum / "n3")) == 1
    assert [each["divergence"] for each in _diff("--all", quorum / "n1", quorum / "n3")] == [
        "bit rot",
        "truncated tail",
    ]


@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        ((), "at least two paths are needed"),
        (("n9",), "cannot be opened"),
        (("empty",), "there is no file of Kafka in it"),
        (("orders",), "the paths have no partition in common"),
    ],
)
def test_what_cannot_be_compared(quorum: Path, others: tuple[str, ...], complaint: str) -> None:
    """One path, a path that is not there, a directory without a log and other partitions are said to be that."""
    (quorum / "empty").mkdir()
    for partition in ("orders-0", "orders-1"):
        shutil.copytree(quorum / "n3" / PARTITION, quorum / "orders" / partition)
    outcome = run("diff", quorum / "n1", *(quorum / name for name in others))
    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1
    assert complaint in outcome.complaints[0]


def test_a_failing_survey_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas are not called equal where raftlog failed over a file of theirs."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("raftlog.tools.auditing.survey.survey.survey_segment", fail)
    outcome = run("diff", "-j", "1", QUORUM / "n1", QUORUM / "n2")

    assert (outcome.exit_code, len(outcome.complaints), outcome.text) == (1, 2, "")
    assert all("ZeroDivisionError" in complaint for complaint in outcome.complaints)


def test_odd_names(tmp_path: Path) -> None:
    """Bytes of a name that are not Unicode are written as read; characters that act on a terminal are escaped."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b"))
    shutil.copytree(QUORUM / "n1" / PARTITION, odd / PARTITION)

    outcome = run("diff", odd, QUORUM / "n2")

    assert outcome.exit_code == 0
    assert os.fsencode(tmp_path) + b"/\xff\\x1b/__cluster_metadata-0: offsets" in outcome.output
    left = run("diff", "--format", "jsonl", odd, QUORUM / "n2").objects[0]["left_base64"]
    assert base64.b64decode(left) == os.fsencode(odd / PARTITION)


def _forked(root: Path) -> tuple[Path, Path]:
    """Two log directories: the second one left the first at offset 23, in a later epoch."""
    logs = {}
    for name, epochs in (("a", (1, 1, 1)), ("b", (1, 1, 2))):
        batches, offset = [], 0
        for number, epoch in enumerate(epochs):
            opens = number == 0 or epoch != epochs[number - 1]
            if opens:
                leader = LeaderChangeMessage(epoch, (Voter(1), Voter(2)), (Voter(1), Voter(2)))
                batches.append(write_control_batch([leader], base_offset=offset, epoch=epoch, timestamp=1))
                offset += 1
            batches.append(data_batch(offset, epoch, 11, 1))
            offset += 11
        logs[name] = root / name / PARTITION
        logs[name].mkdir(parents=True)
        (logs[name] / f"{0:020}.log").write_bytes(b"".join(batches))
    return logs["a"], logs["b"]


@pytest.mark.parametrize(("end", "is_loss"), [(23, False), (24, True)])
def test_a_fork_below_a_snapshot_is_a_loss(end: int, is_loss: bool, tmp_path: Path) -> None:
    """A fork is suspicious, unless a snapshot proves that the side of the earlier epoch had been committed."""
    kept, left = _forked(tmp_path)
    (kept / f"{end:020}-{1:010}.checkpoint").write_bytes(b"")
    outcome = run("diff", kept.parent, left.parent, "--format", "jsonl")
    (fork,) = _diff(kept.parent, left.parent)

    assert (fork["divergence"], fork["offset"]) == ("conflicting epoch", 23)
    assert (fork["severity"], outcome.exit_code) == (("data-loss", 2) if is_loss else ("suspicious", 3))
    assert ("proves that what" in str(fork["reason"])) is is_loss
