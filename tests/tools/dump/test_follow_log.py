# SPDX-License-Identifier: Apache-2.0
"""``raftlog follow`` on the directories of real writers: its lines, its ends, and what it leaves alone."""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.contracts.replicated_log import install_snapshot
from raftlog.tools.dump.dump_options import parse_follow_options
from raftlog.tools.dump.output_formats import FORMATS
from raftlog.tools.follow import following
from raftlog.tools.follow.follower import FollowStart, LogFollower
from raftlog.tools.follow.log_files import PathFiles
from raftlog.tools.follow.notices import Event
from tests.checkout import ROOT
from tests.file_logs import BATCH_SIZE, make_snapshot
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, dump_jsonl, run
from tests.tools.follow.followed_log import drained
from tests.tools.line_schema import SCHEMA as LINE_SCHEMA
from tests.tools.line_schema import read_lines
from tests.tools.made_logs import LOG_NAME, batch, flip, write_log

QUORUM = GOLDEN / "dynamic-quorum/data"
LOGS = sorted(path for path in QUORUM.glob("*/__cluster_metadata-0"))


class Scripted:
    """Takes the place of time: each wait is a step of a writer; after the last one, the user interrupts."""

    steps: Iterator[Callable[[], object]]
    now: float

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor

    def now_s(self) -> float:
        """The number of waits so far."""
        return type(self).now

    def wait(self, seconds: float) -> None:
        """Let the writer do one thing."""
        type(self).now += seconds
        step = next(self.steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that says what a writer does while the log is followed, one step after each look."""

    def set_steps(*steps: Callable[[], object]) -> None:
        monkeypatch.setattr(Scripted, "steps", iter(steps), raising=False)
        monkeypatch.setattr(Scripted, "now", 0.0, raising=False)
        monkeypatch.setattr(following, "OutputPauses", Scripted)

    return set_steps


def nothing() -> None:
    """Let time go by."""


def follow(*arguments: str | Path) -> Outcome:
    """Run ``raftlog follow`` with JSON lines, without records."""
    return run("follow", "--format", "jsonl", "--shallow", *arguments)


def told(outcome: Outcome) -> list[Any]:
    """Base offsets of batches, with their epochs, and notices and findings by name, with their first offsets."""
    words: dict[str, Callable[[dict[str, Any]], Any]] = {
        "batch": lambda line: (line["base_offset"], line["partition_leader_epoch"]),
        "file": lambda line: "file",
        "notice": lambda line: (line["event"], line["offset"], line["end_offset"]),
        "finding": lambda line: line["rule"],
    }
    return [words[line["kind"]](line) for line in read_lines(outcome.output)]


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.parent.name)
def test_a_log_that_stays_as_it_is(log: Path, output_format: str) -> None:
    """The lines of a log's segments are those of dump-log, which also accounts for bytes, with the same exit code."""
    options = ("--format", output_format, "--no-redact")
    followed = run("follow", *options, "--interval", "0.01", "--until-idle", "0", log)
    also = run("dump-log", *options, "--follow", "--interval", "0.01", "--until-idle", "0", log)
    dumped = run("dump-log", *options, *sorted(log.glob("*.log")))
    lines = [line for line in dumped.text.split("\n") if "bytes explained" not in line and '"coverage"' not in line]
    assert followed.text.split("\n") == lines
    assert (also, followed.exit_code, followed.messages) == (followed, dumped.exit_code, dumped.messages)


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "100"),
        ("--from", "start"),
        ("--from", "9999"),
        ("--to", "193"),
        ("--to", "194"),
        ("--from", "10", "--to", "12"),
        ("--control",),
        ("--type", "TOPIC_RECORD"),
        ("--epoch", "2"),
        ("--last", "0"),
        ("--last", "7"),
        ("--last", "40"),
        ("--limit", "1"),
        ("--limit", "50"),
        ("--since", "2026-11-21T10:48"),
        ("--until", "2026-11-21T10:48"),
    ],
    ids=" ".join,
)
def test_selections_are_those_of_dump_log(options: tuple[str, ...]) -> None:
    """Each selection shows the records that dump-log shows."""
    log = LOGS[0]
    followed = run("follow", "--format", "jsonl", *options, "--interval", "0.01", "--until-idle", "0", log)
    dumped = dump_jsonl(*options, *sorted(log.glob("*.log")))
    assert followed.of_kind("record") == dumped.of_kind("record")
    assert (followed.exit_code, followed.messages) == (dumped.exit_code, dumped.messages)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of a metadata log."""
    path = tmp_path / "__cluster_metadata-0"
    path.mkdir()
    return path


class Writer:
    """A log of real files, with segments of three batches."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.epoch = 1
        self.open()

    def open(self) -> None:
        """Open the log, as a node does when it starts."""
        config = LogConfig(segment_size_bytes=3 * BATCH_SIZE, index_interval_bytes=BATCH_SIZE - 1)
        self.log = FileLog.open(LocalFileSystem(), str(self.directory), config)

    def append(self, count: int = 1) -> None:
        """Append batches of one record."""
        for _ in range(count):
            end_offset = self.log.end_offset.offset
            self.log.append_as_leader(raft_batch(end_offset, self.epoch), self.epoch)
        self.log.flush()

    def truncate(self, offset: int, count: int) -> None:
        """Truncate the log, and append batches of a later epoch."""
        self.log.truncate_to(offset)
        self.epoch += 1
        self.append(count)

    def clean(self, offset: int) -> None:
        """Delete the segments before a snapshot."""
        assert self.log.delete_before_snapshot(make_snapshot(self.log, offset, self.epoch))

    def install(self, offset: int, epoch: int) -> None:
        """Replace the log by a snapshot."""
        install_snapshot(self.log, offset, epoch)
        assert self.log.truncate_to_latest_snapshot()
        self.epoch = epoch

    def restart(self) -> None:
        """Close the log and open it again."""
        self.log.close()
        self.open()


def test_everything_that_happens_to_a_log(directory: Path, script: Callable[..., None]) -> None:
    """Growth, rolls, truncation with regrowth, deletion, a restart, a snapshot and a directory that goes are told."""
    writer = Writer(directory)
    aside = directory.with_name("aside")
    script(
        lambda: writer.append(2),
        nothing,
        lambda: writer.append(5),
        lambda: writer.truncate(5, 4),
        writer.restart,
        lambda: writer.append(1),
        lambda: writer.clean(7),
        lambda: writer.install(20, 4),
        lambda: writer.append(2),
        lambda: directory.rename(aside),
        lambda: aside.rename(directory),
    )

    outcome = follow(directory)

    assert told(outcome) == [
        "file",
        *[(offset, 1) for offset in range(3)],
        *["file", (3, 1), (4, 1), (5, 1)],
        *["file", (6, 1)],
        *[("truncated", 5, 7), "file", (5, 2)],
        *["file", (6, 2), (7, 2), (8, 2)],
        *["file", (9, 2)],
        *[("skipped", 10, 20), "file", (20, 4), (21, 4)],
        ("waiting", None, None),
    ]
    assert outcome.of_kind("notice")[1]["snapshot_epoch"] == 4
    assert (outcome.exit_code, outcome.messages) == (1, "")


@pytest.mark.parametrize("output_format", [name for name in FORMATS if name != "jsonl"])
def test_notices_as_text(output_format: str, directory: Path, script: Callable[..., None]) -> None:
    """In text, a notice is a line of its own, between the lines of batches."""
    writer = Writer(directory)
    writer.append(3)
    script(lambda: writer.truncate(2, 1), lambda: writer.truncate(1, 0), lambda: writer.install(9, 4))

    outcome = run("follow", "--format", output_format, "--shallow", directory)

    assert [line for line in outcome.text.split("\n") if line.startswith("raftlog: ")] == [
        f"raftlog: {directory}: offset 2 is no longer there: the log was truncated at 2",
        f"raftlog: {directory}: offsets 1 to 2 are no longer there: the log was truncated at 1",
        f"raftlog: {directory}: offsets 1 to 8 are not read, and the log does not have them: they are before the end of"
        " 00000000000000000009-0000000004.checkpoint",
    ]


def test_nothing_is_held_or_changed(directory: Path, script: Callable[..., None]) -> None:
    """Between looks no file of the log is open or mapped, and a look changes none."""
    writer = Writer(directory)
    writer.append(4)
    writer.log.close()
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}
    held: list[list[str]] = []

    def look() -> None:
        links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        maps = Path("/proc/self/maps").read_text().splitlines()
        held.append(sorted(text for text in links + maps if str(directory) in text))

    look()  # The closed log keeps its directory open.
    script(look, look)
    assert follow(directory).exit_code == 0
    assert held == [held[0]] * 3
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()} == before


TORN = batch(1, (b"x" * 200,))


@pytest.mark.parametrize("size", [1, 16, 17, 60, 61, 62, len(TORN) - 1])
def test_a_batch_that_is_written_in_parts(size: int, directory: Path, script: Callable[..., None]) -> None:
    """A part of a batch at the end is no damage: the batch is printed once it is complete."""
    path = write_log(directory, batch(0), TORN[:size])

    def write() -> None:
        path.write_bytes(batch(0) + TORN)

    script(nothing, nothing, write)
    outcome = follow(directory)
    assert (told(outcome), outcome.exit_code, outcome.messages) == (["file", (0, 1), (1, 1)], 0, "")


@pytest.mark.parametrize(
    ("tail", "rule", "exit_code"),
    [(TORN[:100], "tail-torn", 3), (bytes(100), "tail-zero", 3), (TORN[:250] + bytes(21), "batch-crc", 2)],
    ids=["torn", "zeros", "allocated"],
)
def test_an_end_that_stays_unsound(
    tail: bytes, rule: str, exit_code: int, directory: Path, script: Callable[..., None]
) -> None:
    """When the log stays idle, its end is reported as dump-log reports it, and counts; an interrupt says nothing."""
    path = write_log(directory, batch(0), tail)
    script(*[nothing] * 10)
    dumped = dump_jsonl("--shallow", path)
    ended = follow("--until-idle", "2", directory)
    assert (ended.of_kind("finding")[0]["rule"], ended.exit_code) == (rule, exit_code)
    assert (ended.of_kind("finding"), ended.messages) == (dumped.of_kind("finding"), dumped.messages)
    script(nothing)
    interrupted = follow(directory)
    assert (interrupted.of_kind("finding"), interrupted.exit_code) == ([], 0)


def test_damage_in_the_middle(directory: Path, script: Callable[..., None]) -> None:
    """Damage before a sound batch is reported after two looks, once, and what follows is printed."""
    path = write_log(directory, batch(0), batch(1), batch(2))
    flip(path, len(batch(0)) + 65)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(batch(3))

    script(nothing, grow, nothing)
    outcome = follow(directory)
    # The damaged batch has a line, as in a dump, since its length is confirmed.
    assert told(outcome) == ["file", (0, 1), (1, 1), "batch-crc", (2, 1), (3, 1)]
    assert (outcome.exit_code, len(outcome.complaints)) == (2, 1)


def test_a_torn_tail_of_a_segment_that_another_one_follows(directory: Path, script: Callable[..., None]) -> None:
    """A part of a batch in a segment that is not the last one can grow no more: it is reported."""
    write_log(directory, batch(0), TORN[:100])
    script(nothing, lambda: write_log(directory, batch(1), name="00000000000000000001.log"), *[nothing] * 20)
    outcome = follow("--until-idle", "9", directory)
    assert told(outcome) == ["file", (0, 1), "tail-torn", "file", (1, 1)]
    assert outcome.exit_code == 3


@pytest.mark.parametrize(("options", "first"), [(("--from", "end"), 4), (("--last", "1"), 3), (("--last", "9"), 0)])
def test_only_what_is_new(options: tuple[str, ...], first: int, directory: Path, script: Callable[..., None]) -> None:
    """Batches before a start that is counted from the end are not printed; what comes after a truncation is."""
    writer = Writer(directory)
    writer.append(4)
    script(lambda: writer.append(1), lambda: writer.truncate(2, 1))
    lines = told(follow(*options, directory))
    assert [line for line in lines if line != "file"] == [
        *[(offset, 1) for offset in range(first, 5)],
        *[("truncated", 2, 5), (2, 2)],
    ]


def test_a_truncation_before_the_start_is_reached(directory: Path) -> None:
    """What comes after a truncation below the start is new, also if the end was not reached before."""
    writer = Writer(directory)
    writer.append(5)
    follower = LogFollower(PathFiles(str(directory)), FollowStart(before_end=0))
    for _ in range(2):  # Enters the first segment, and reads it.
        assert follower.look().items == ()
    writer.truncate(2, 2)
    lines = drained(follower)
    assert lines == [("truncated", 2, 3, None), ("batch", 2, 2, 3), ("batch", 3, 2, 4)]


def test_a_log_that_comes_later(tmp_path: Path, script: Callable[..., None]) -> None:
    """A log directory without a log is waited for, which is said once; then its only log is followed."""
    directory = tmp_path / "node" / "__cluster_metadata-0"
    writers: list[Writer] = []

    def create() -> None:
        directory.mkdir()
        writers.append(Writer(directory))

    script(nothing, directory.parent.mkdir, nothing, create, lambda: writers[0].append(1))
    outcome = follow("--from", "end", directory.parent)
    assert told(outcome) == [("waiting", None, None), "file", (0, 1)]
    assert [line["file"] for line in outcome.of_kind("file")] == [str(directory / LOG_NAME)]
    assert (outcome.exit_code, outcome.messages) == (0, "")


def test_a_single_segment(directory: Path, script: Callable[..., None]) -> None:
    """A segment that is named itself is followed, and not its successors."""
    writer = Writer(directory)
    script(lambda: writer.append(4), lambda: writer.truncate(1, 1))
    path = directory / LOG_NAME
    outcome = follow(path)
    assert told(outcome) == ["file", (0, 1), (1, 1), (2, 1), ("truncated", 1, 3), (1, 2)]
    assert outcome.of_kind("notice")[0]["file"] == str(path)


def test_ends(directory: Path, script: Callable[..., None]) -> None:
    """Following ends at ``--to`` or after ``--limit``, without a further look at the log."""
    writer = Writer(directory)
    for options, last in ((("--to", "2"), 1), (("--limit", "3"), 2)):
        writer.append(5)
        script()
        assert told(follow(*options, directory))[-1] == (last, 1)
        writer.log.truncate_to(0)


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no path": (("follow",), "the following arguments are required: PATH"),
    "two paths": (("dump-log", "--follow", "a", "b"), "one log is followed at a time"),
    "standard input": (
        ("follow", "-"),
        "only a local directory or segment can be followed",
    ),
    "an object store": (
        ("follow", "s3://bucket/logs"),
        "only a local directory or segment can be followed",
    ),
    "all files": (
        ("dump-log", "--follow", "--all", "a"),
        "--all, --max-bytes, --verify-index-only and --index-sanity-check exclude --follow",
    ),
    "a pattern": (
        ("follow", "a*-0"),
        "a pattern cannot be followed: name one log",
    ),
    "a pattern below a directory": (
        ("follow", f"{ROOT}/*-0/"),
        "a pattern cannot be followed: name one log",
    ),
    "no following": (
        ("dump-log", "--until-idle", "1", "a"),
        "--from end, --until-idle and --interval need --follow",
    ),
    "no interval": (
        ("follow", "--interval", "-1", "a"),
        "argument --interval: '-1' is not a number of seconds, such as 2 or 0.5",
    ),
    "an odd time": (
        ("follow", "--until-idle", "nan", "a"),
        "argument --until-idle: 'nan' is not a number of seconds, such as 2 or 0.5",
    ),
    "a time of a year": (
        ("follow", "--until-idle", "31536001", "a"),
        "argument --until-idle: '31536001' is not a number of seconds, such as 2 or 0.5",
    ),
    "an odd start": (
        ("follow", "--from", "ends", "a"),
        "argument --from: 'ends' is not a number from 0 on",
    ),
    "two starts": (
        ("follow", "--from", "end", "--last", "1", "a"),
        "--last and --from exclude each other",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options(name: str) -> None:
    """A command line that cannot be meant is refused in one line, with exit code 1."""
    arguments, complaint = BAD[name]
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert outcome.messages == f"raftlog {arguments[0]}: {complaint} (see raftlog {arguments[0]} --help)\n"


def test_bad_paths(tmp_path: Path) -> None:
    """What cannot be followed is an error in one line, with exit code 1."""
    for name in ("a-0", "b-0", "c-0", "d-0"):
        (tmp_path / "several" / name).mkdir(parents=True)
    (tmp_path / "file").write_text("text")
    (tmp_path / "dead.log").symlink_to("nowhere")
    os.mkfifo(tmp_path / "00000000000000000000.log")
    for path, complaint in (
        ("several", "follow failed: it has several logs, name one of them: a-0, b-0, c-0 and 1 more"),
        ("file", "follow failed: it is not a segment: it has no name of one"),
        ("00000000000000000000.log", "follow failed: it is neither a file nor a directory"),
        ("dead.log", "open failed: No such file or directory"),
        ("file/x", "open failed: Not a directory"),
        ("missing", "follow failed: no log is there"),
    ):
        outcome = follow("--interval", "0.01", "--until-idle", "0", tmp_path / path)
        assert (outcome.exit_code, outcome.messages) == (1, f"raftlog: {tmp_path / path}: {complaint}\n")


def test_the_page() -> None:
    """docs/follow.md: each command is one that the verb takes, and the page has every event and every option."""
    page = (ROOT / "docs/follow.md").read_text()
    commands = re.findall(r"^\$ raftlog follow ([^#|\n]*)", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert parse_follow_options(shlex.split(command)).follow is not None
    for event in Event:
        assert f"| `{event.value}` |" in page
    for option in ("--from", "--last", "--to", "--limit", "--until-idle", "--interval"):
        assert f"`{option} " in page
    assert set(LINE_SCHEMA["$defs"]["notice"]["properties"]["event"]["enum"]) == {event.value for event in Event}
