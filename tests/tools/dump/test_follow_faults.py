# SPDX-License-Identifier: Apache-2.0
"""``raftlog follow`` on logs that are damaged, half written, compacted, or cannot be read for a while."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from raftlog.errors import StorageError
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.follow import following
from raftlog.tools.follow.log_files import PathFiles
from tests.tools.console import dump_jsonl
from tests.tools.dump.test_follow_log import TORN, directory, follow, nothing, script, told
from tests.tools.made_logs import LOG_NAME, batch, write_log

__all__ = ["directory", "script"]


def test_damage_at_the_end(directory: Path, script: Callable[..., None]) -> None:
    """Damage of complete length is told after two looks; a repair, or another batch in its place, is printed then."""
    path = write_log(directory, batch(0), TORN[:-1] + b"\1")
    script(nothing, nothing, lambda: path.write_bytes(batch(0) + TORN), nothing)
    outcome = follow(directory)
    assert told(outcome) == ["file", (0, 1), (1, 1), "batch-crc", (1, 1)]
    assert (outcome.exit_code, len(outcome.complaints)) == (2, 1)


def test_a_stalled_write_around_a_batch(directory: Path, script: Callable[..., None]) -> None:
    """What looks like a batch in the records of one that is being written is none, however long the write takes."""
    whole = batch(1, (b"x" * 200 + batch(7) + b"y" * 5000,))
    path = write_log(directory, batch(0), whole[:3000])
    script(*[nothing] * 5, lambda: path.write_bytes(batch(0) + whole + batch(2)), *[nothing] * 10)
    outcome = follow("--until-idle", "4", directory)
    assert (told(outcome), outcome.exit_code, outcome.messages) == (["file", (0, 1), (1, 1), (2, 1)], 0, "")
    path.write_bytes(batch(0) + whole[:3000])
    script(*[nothing] * 20)
    ended = follow("--until-idle", "1", directory)
    assert ended.of_kind("finding") == dump_jsonl("--shallow", path).of_kind("finding")


def test_gaps_that_a_cleaner_leaves(tmp_path: Path, script: Callable[..., None]) -> None:
    """A gap between segments of a topic is as normal as one inside; a log start that passes the reader is told."""
    log = tmp_path / "orders-0"
    log.mkdir()
    first = write_log(log, batch(0))
    write_log(log, batch(10), name=f"{10:020}.log")

    def move() -> None:
        write_log(log, batch(30), name=f"{30:020}.log")
        (log / f"{10:020}.log").unlink()
        first.unlink()

    script(nothing, nothing, nothing)
    outcome = follow(log)
    assert (told(outcome), outcome.exit_code) == (["file", (0, 1), "file", (10, 1)], 0)
    script(nothing, nothing, move, nothing, nothing)
    outcome = follow(log)
    assert told(outcome)[-3:] == [("skipped", 11, 30), "file", (30, 1)]
    assert outcome.exit_code == 1


def test_errors_that_pass(directory: Path, script: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot be read for a while is waited for, which is said once; at the end that is the exit code."""
    write_log(directory, batch(0), batch(1))
    opened, failing = PathFiles.opened, [False]

    def fail_or_open(self: PathFiles, segment: int) -> FileSource:
        if failing[0]:
            cause = OSError(errno.EMFILE, "Too many open files")
            raise StorageError(str(directory), "open", str(cause)) from cause
        return opened(self, segment)

    def switch() -> None:
        failing[0] = not failing[0]

    monkeypatch.setattr(PathFiles, "opened", fail_or_open)
    script(nothing, switch, nothing, nothing, switch, lambda: write_log(directory, batch(0), batch(1), batch(2)))
    outcome = follow(directory)
    assert (told(outcome), outcome.exit_code) == (["file", (0, 1), (1, 1), (2, 1)], 0)
    assert len(outcome.complaints) == 1
    script(switch, *[nothing] * 9)
    failing[0] = False
    outcome = follow("--until-idle", "2", directory)
    assert (told(outcome)[-1], outcome.exit_code, len(outcome.complaints)) == ((2, 1), 1, 1)


def test_a_link_that_leads_somewhere_later(tmp_path: Path, script: Callable[..., None]) -> None:
    """A link to a segment that is not there yet is waited for."""
    link, target = tmp_path / LOG_NAME, tmp_path / "target"
    link.symlink_to(target)
    script(nothing, nothing, lambda: target.write_bytes(batch(0)), nothing)
    outcome = follow(link)
    assert (told(outcome), outcome.exit_code, len(outcome.complaints)) == (["file", (0, 1)], 0, 1)


def test_a_long_interval(directory: Path) -> None:
    """An interval that is longer than the system can wait is none that fails."""
    write_log(directory, batch(0))
    outcome = follow("--interval", "31536000", "--until-idle", "0.1", directory)
    assert (told(outcome), outcome.exit_code) == (["file", (0, 1)], 0)
    reader, writer, year_s = *os.pipe(), 31_536_000.0
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        following.OutputPauses(writer).wait(year_s)
    os.close(writer)
