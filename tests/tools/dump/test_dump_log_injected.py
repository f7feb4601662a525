# SPDX-License-Identifier: Apache-2.0
"""A running node does something between any two reads of dump-log: what the output lacks, it says."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import pytest

from raftlog.records.rules import Severity
from raftlog.storage.reading.directory_listing import DirectoryListing, Entry
from tests.tools.auditing.run.live_directory import OPERATIONS, LiveNode, Moments, Step
from tests.tools.console import Outcome, dump, dump_jsonl

Operation = Callable[[LiveNode], Iterator[Step]]
QUIET = (LiveNode.trim, LiveNode.growth, LiveNode.roll, LiveNode.election)
"""What takes no file away that dump-log reads."""

GONE = f"orders-0/{0:020}.log"
REASON = "deleted since its directory was listed: the output lacks it"


@attrs.frozen
class Injected:
    """A dump of a node's directory, and the records that its logs had throughout."""

    outcome: Outcome
    lasting: set[tuple[str, int]]

    @property
    def lacking(self) -> set[tuple[str, int]]:
        """The lasting records that the output does not have."""
        return self.lasting - records(self.outcome)

    @property
    def gone(self) -> list[str]:
        """What the output says that it lacks."""
        return [line["file"] for line in self.outcome.of_kind("finding") if line["rule"] == "file-gone"]

    @property
    def grave(self) -> list[str]:
        """The findings above harmless."""
        found = self.outcome.of_kind("finding")
        return [line["reason"] for line in found if line["severity"] != Severity.HARMLESS.value]


def records(outcome: Outcome) -> set[tuple[str, int]]:
    """The records of an output, by directory and offset."""
    return {(Path(line["file"]).parent.name, line["offset"]) for line in outcome.of_kind("record")}


def injected(
    operation: Operation, first: int, path: Path, *options: str, at_once: bool = False, ahead: int = 0
) -> Injected:
    """Dump a node's directory while it does something from some moment on, after some steps before the dump."""
    node = LiveNode(path)
    before = records(dump_jsonl(*options, node.path))
    steps = list(operation(node))
    for step in steps[:ahead]:
        step()
    moments = Moments(steps[ahead:], first, at_once=at_once)
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        outcome = dump_jsonl(*options, node.path)
    moments.end()
    return Injected(outcome, before & records(dump_jsonl(*options, node.path)))


@pytest.fixture(scope="module")
def moment_count(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many moments there are in a dump of a directory that nobody writes."""
    node, moments = LiveNode(tmp_path_factory.mktemp("still") / "node"), Moments()
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        assert dump_jsonl(node.path).exit_code == 0
    return moments.count


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_output_lacks(operation: Operation, at_once: bool, moment_count: int, tmp_path: Path) -> None:
    """Records that were there throughout are in the output, or it says that it lacks something. Some of all moments."""
    check_moments(operation, range(at_once, moment_count, 3), tmp_path, at_once=at_once)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_output_lacks_at_every_moment(
    operation: Operation, at_once: bool, moment_count: int, tmp_path: Path
) -> None:
    """Wherever in a dump a node starts to do something, the output has what it does not say that it lacks."""
    check_moments(operation, range(moment_count), tmp_path, at_once=at_once)


def check_moments(operation: Operation, moments: Iterable[int], path: Path, *, at_once: bool) -> None:
    """Check a dump for some moments at which a node starts to do something."""
    for first in moments:
        found = injected(operation, first, path / str(first), at_once=at_once)
        assert found.grave == [], first
        assert not found.lacking or found.gone, first
        assert found.outcome.exit_code == (1 if found.gone else 0), first
        assert len(found.outcome.complaints) == len(found.gone), first
        assert not found.gone or operation not in QUIET, first


@pytest.mark.parametrize("operation", [LiveNode.retention, LiveNode.compaction, LiveNode.topic_deletion])
def test_a_node_that_is_at_it_already(operation: Operation, moment_count: int, tmp_path: Path) -> None:
    """So it is if a node has done some of its steps when the dump begins, as a cleaner that has deleted segments."""
    for ahead in range(1, len(list(operation(LiveNode(tmp_path / "counted"))))):
        for first in (0, moment_count // 2):
            found = injected(operation, first, tmp_path / f"{ahead}-{first}", ahead=ahead)
            assert not found.lacking or found.gone, (ahead, first)
            assert found.outcome.exit_code == (1 if found.gone else 0), (ahead, first)


@pytest.mark.parametrize("options", [("--last", "3"), ("--from", "12"), ("--from", "2", "--to", "4")])
def test_what_a_selection_lacks(options: tuple[str, ...], tmp_path: Path) -> None:
    """So it is if only some offsets are asked for: of segments that none of them is in, nothing is said."""
    said = 0
    for ahead in range(len(list(LiveNode.compaction(LiveNode(tmp_path / "counted"))))):
        found = injected(LiveNode.compaction, 0, tmp_path / str(ahead), *options, ahead=ahead)
        assert not found.lacking or found.gone, ahead
        assert found.outcome.exit_code == (1 if found.gone else 0), ahead
        said += bool(found.gone)
    assert bool(said) == (options[0] != "--last"), "the cleaner works below the last three offsets"


@pytest.mark.parametrize(
    ("output_format", "words"),
    [
        ("kafka", f"Dumping {GONE}\n{REASON}\nDumping orders-0/{10:020}.log\n"),
        ("table", f"{GONE}\n  {REASON}\norders-0/{10:020}.log\n"),
    ],
)
def test_the_words(output_format: str, words: str, tmp_path: Path) -> None:
    """Each format says so in the place of the file, not on standard error alone."""
    node = LiveNode(tmp_path / "node")
    listed = DirectoryListing.entries
    with pytest.MonkeyPatch.context() as monkeypatch:

        def entries(listing: DirectoryListing, path: str) -> Iterator[Entry]:
            yield from list(listed(listing, path))
            for step in node.deletion():
                step()
            monkeypatch.undo()

        monkeypatch.setattr(DirectoryListing, "entries", entries)
        outcome = dump("--format", output_format, node.orders)

    assert words in outcome.text.replace(str(node.orders), "orders-0")
    assert outcome.exit_code == 1
