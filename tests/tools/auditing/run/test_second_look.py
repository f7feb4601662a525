# SPDX-License-Identifier: Apache-2.0
"""A directory that a node writes to is never blamed for what the node does, and damage beside it is still found."""

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask, in_partitions
from raftlog.tools.auditing.run.looks import told_twice
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.auditing.run.second_look import look_again
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from tests.hang_limit import HANG_S
from tests.tools.auditing.run.live_directory import OPERATIONS, LiveNode, Moments, Step
from tests.tools.made_logs import flip

Operation = Callable[[LiveNode], Iterator[Step]]
STEP = 4
"""The quick tests try one of so many moments."""


def findings(path: Path) -> list[Finding]:
    """What an audit of a directory tells."""
    return [finding for judged in audit([str(path)], 1) for finding in judged.findings]


def grave(found: Iterable[Finding]) -> list[str]:
    """The findings above harmless, as text."""
    return [str(finding) for finding in found if finding.severity is not Severity.HARMLESS]


def surveyed(path: Path) -> Iterator[FileEvidence]:
    """The evidence of a directory."""
    return (survey(task) for task in find_tasks([str(path)]) if isinstance(task, SurveyTask))


def during(node: LiveNode, moments: Moments) -> list[Finding]:
    """What an audit tells between whose looks a node does something."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        return findings(node.path)


@pytest.fixture(scope="module")
def moment_count(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many moments there are in an audit of a directory that nobody writes."""
    moments = Moments()
    assert grave(during(LiveNode(tmp_path_factory.mktemp("still") / "node"), moments)) == []
    return moments.count


def test_a_step_is_done_when_the_next_one_begins() -> None:
    """Also if two threads read, as those of `diff` do: no other thread has its turn until then."""
    is_free = list[bool]()

    def look() -> None:
        is_free.append(moments.turn.acquire(blocking=False))

    def step() -> None:
        other = threading.Thread(target=look)
        other.start()
        other.join(HANG_S)

    moments = Moments([step])
    moments.pass_one()

    assert is_free == [False]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_directory_is_sound_before_and_after(operation: Operation, tmp_path: Path) -> None:
    """What the node of these tests does leaves a sound directory."""
    node = LiveNode(tmp_path / "node")
    assert grave(findings(node.path)) == []
    for step in list(operation(node)):
        step()
    assert grave(findings(node.path)) == []


def told_of(operation: Operation, moments: Iterable[int], path: Path, *, at_once: bool) -> dict[int, list[str]]:
    """What is told above harmless if a node starts to do something at a moment, by moment."""
    told = {}
    for first in moments:
        node = LiveNode(path / str(first))
        told[first] = grave(during(node, Moments(list(operation(node)), first, at_once=at_once)))
    return {first: found for first, found in told.items() if found}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_running_node(operation: Operation, at_once: bool, moment_count: int, tmp_path: Path) -> None:
    """Wherever in an audit a node starts to do something, nothing above harmless is told. Some of all moments."""
    assert told_of(operation, range(0, moment_count, STEP), tmp_path, at_once=at_once) == {}


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_running_node_at_other_moments(
    operation: Operation, at_once: bool, moment_count: int, tmp_path: Path
) -> None:
    """Nor does it at the moments between those."""
    others = (moment for moment in range(moment_count) if moment % STEP)
    assert told_of(operation, others, tmp_path, at_once=at_once) == {}


@pytest.mark.parametrize("operation", [LiveNode.retention, LiveNode.compaction, LiveNode.roll, LiveNode.topic_deletion])
def test_a_node_that_is_at_it_already(operation: Operation, tmp_path: Path) -> None:
    """Nor if the node has done some of its steps when the audit begins, as a cleaner that has deleted segments."""
    for ahead in range(1, len(list(operation(LiveNode(tmp_path / "counted")))), 2):
        node = LiveNode(tmp_path / str(ahead))
        steps = list(operation(node))
        for step in steps[:ahead]:
            step()
        assert grave(during(node, Moments(steps[ahead:]))) == [], ahead


@pytest.mark.parametrize("operation", OPERATIONS)
def test_damage_on_a_running_node(operation: Operation, moment_count: int, tmp_path: Path) -> None:
    """A damaged batch of a log that a node works on is found, whatever the node does meanwhile."""
    for first in range(0, moment_count, 6):
        node = LiveNode(tmp_path / str(first))
        flip(node.orders / f"{20:020}.log", 70)
        found = during(node, Moments(list(operation(node)), first, at_once=False))
        assert [each.rule for each in found if each.severity is Severity.DAMAGED] == ["batch-crc"], first


def test_a_change_is_said(moment_count: int, tmp_path: Path) -> None:
    """A directory that changed while it was read is named, with the time of the look that counts."""
    said: set[str] = set()
    for first in range(0, moment_count, 4):
        node = LiveNode(tmp_path / str(first))
        found = during(node, Moments(list(node.growth()), first, at_once=False))
        of_orders = [finding for finding in found if finding.path == str(node.orders)]
        assert {finding.rule for finding in of_orders} <= {"directory-changed"}
        said |= {finding.reason.partition(" as it was at ")[0] for finding in of_orders}

    assert said == {"changed while it was read: judged"}


def test_a_directory_that_goes(tmp_path: Path) -> None:
    """Of a directory that was deleted after it was read, that alone is told."""
    node = LiveNode(tmp_path / "node")
    (place,) = (each for each in in_partitions(surveyed(node.path)) if each.place.topic == "bills")
    shutil.rmtree(node.path / "bills-0")

    look = look_again(place, survey)

    assert look.evidence is None
    assert [finding.rule for finding in look.changes] == ["file-gone"]


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    """The evidence of unchanged files is taken over; without a change no file is read."""
    node = LiveNode(tmp_path / "node")
    (place,) = (each for each in in_partitions(surveyed(node.path)) if each.place.topic == "orders")
    read: list[str] = []

    def reading(task: SurveyTask) -> FileEvidence:
        read.append(Path(task.path).name)
        return survey(task)

    assert look_again(place, reading).evidence is place
    for step in node.growth():
        step()
    assert look_again(place, reading).evidence is not place
    assert read == [f"{20:020}.log"]


def test_what_is_told() -> None:
    """A finding above harmless needs both judgements, word for word; a fault of raftlog needs one."""
    stands, moves, moved = (Finding("a.log", "batch-crc", "x", position=position) for position in (1, 2, 3))
    new, old = Finding("a.log", "file-unknown", "new"), Finding("a.log", "file-unknown", "old")
    own = Finding("a", "audit-failed", "bug")

    assert told_twice([own, stands, moves, old], [moved, new, stands]) == (own, new, stands)
    assert told_twice([stands], [stands, own]) == (own, stands)
