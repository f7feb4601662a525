# SPDX-License-Identifier: Apache-2.0
"""A running node does something between any two reads of a query's planning and its parts: nothing is lost unsaid."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from raftlog.errors import OptionError, RaftLogError, StorageError
from tests.tools.auditing.run.live_directory import OPERATIONS, LiveNode, Moments, Step
from tests.tools.spark.source_reads import rows

Operation = Callable[[LiveNode], Iterator[Step]]
QUIET = (LiveNode.trim, LiveNode.growth, LiveNode.roll, LiveNode.election, LiveNode.topic_creation)
"""What takes no file away."""
PART_BYTES = 300
"""So small parts that each segment is read in several."""

Place = tuple[str, int, int]


@pytest.fixture(scope="module")
def moment_count(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many moments there are in a query over a directory that nobody writes."""
    node, moments = LiveNode(tmp_path_factory.mktemp("still") / "node"), Moments()
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        assert places(node.path)
    return moments.count


def places(path: Path, *, fails: bool = True) -> list[Place]:
    """The records that a query returns."""
    return [
        (row["topic"], row["partition"], row["offset"])
        for row in rows(path, splitSize=PART_BYTES, failOnDataLoss=fails)
    ]


def check(
    operation: Operation, moments: Iterable[int], path: Path, log: pytest.LogCaptureFixture, *, fails: bool
) -> int:
    """Check a query for some moments at which a node starts to do something; return how often it said of a loss."""
    said = 0
    before = set(places(LiveNode(path / "still").path))
    for first in moments:
        node = LiveNode(path / str(first))
        meanwhile = Moments(list(operation(node)), first)
        log.clear()
        found, refusal = None, None
        with pytest.MonkeyPatch.context() as monkeypatch:
            meanwhile.watch(monkeypatch)
            try:
                found = places(node.path, fails=fails)
            except RaftLogError as error:
                refusal = error
        meanwhile.end()
        assert refusal is None or (fails and isinstance(refusal, StorageError | OptionError)), (first, refusal)
        after = set(places(node.path))
        is_said = found is None or any("failOnDataLoss" in each.message for each in log.records)
        assert not any("damage" in each.message for each in log.records), first
        said += is_said
        if found is not None:
            assert len(found) == len(set(found)), first
            assert set(found) <= before | after, first
            assert before & after <= set(found) or is_said, first
        assert not is_said or operation not in QUIET, first
    return said


def some_moments(operation: Operation, count: int, first: int, step: int) -> range:
    """The moments at which a node starts to do something: fewer of them if it takes no file away."""
    return range(first, count, 4 * step if operation in QUIET else step)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_query_lacks(
    operation: Operation, fails: bool, moment_count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Records that were there throughout are rows, or the loss is an error, or is logged. Some of all moments."""
    said = check(operation, some_moments(operation, moment_count, fails, 8), tmp_path, caplog, fails=fails)
    assert (said > 0) == (operation not in QUIET)


@pytest.mark.volume
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_query_lacks_at_more_moments(
    operation: Operation, fails: bool, moment_count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same, at four times as many moments."""
    said = check(operation, some_moments(operation, moment_count, not fails, 2), tmp_path, caplog, fails=fails)
    assert (said > 0) == (operation not in QUIET)
