# SPDX-License-Identifier: Apache-2.0
"""``raftlog follow`` as a process: interrupts, readers that leave, and writers in other processes."""

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.tools.console import dump_jsonl, start
from tests.tools.line_schema import read_lines
from tests.tools.made_logs import batch, flip, write_log


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of a metadata log."""
    path = tmp_path / "__cluster_metadata-0"
    path.mkdir()
    return path


def test_an_interrupt_ends_with_what_was_found(directory: Path) -> None:
    """SIGINT is the usual end: exit code 0 if nothing is wrong, else that of the findings so far."""
    path = write_log(directory, batch(0), batch(1), batch(2))
    for exit_code in (0, 2):
        with start("follow", "--interval", "0.01", directory) as process:
            assert process.stdout is not None
            while b"baseOffset: 2 " not in process.stdout.readline():
                pass
            process.send_signal(signal.SIGINT)
            process.communicate()
        assert process.returncode == exit_code
        flip(path, len(batch(0)) + 65)


def test_a_reader_that_leaves_while_the_log_is_idle(directory: Path) -> None:
    """When the reader of the output leaves, the run ends although nothing is to be printed, with exit code 0."""
    write_log(directory, batch(0))
    with start("follow", "--interval", "31536000", directory) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        messages = process.stderr.read()
        exit_code = process.wait()
    assert (exit_code, messages) == (0, b"")


def applied(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the batches that a reader of the lines believes to be in the log."""
    held: list[dict[str, Any]] = []
    expected: int | None = None  # The log may start anywhere by the first look.
    for line in lines:
        if line["kind"] == "batch":
            assert expected in (None, line["base_offset"])
            held.append(line)
            expected = line["last_offset"] + 1
        elif line["kind"] == "notice" and line["event"] == "truncated":
            assert expected in (None, line["end_offset"])
            expected = line["offset"]
            held = [each for each in held if each["base_offset"] < line["offset"]]
        elif line["kind"] == "notice" and line["event"] == "skipped":
            assert expected in (None, line["offset"])
            expected = line["end_offset"]
    return held


@pytest.mark.parametrize("seed", range(2))
def test_a_writer_in_another_process(seed: int, directory: Path) -> None:
    """While another process writes, the lines, applied in order, give the log that it has left."""
    directory.rmdir()
    options = ("--format", "jsonl", "--shallow", "--interval", "0.001", "--to", "300")
    writer = [sys.executable, "-m", "tests.tools.dump.live_writer", str(directory), str(seed), "300"]
    with start("follow", *options, directory) as process:
        subprocess.run(writer, check=True, cwd=ROOT, timeout=HANG_S)
        output, messages = process.communicate(timeout=HANG_S)
    lines = read_lines(output)
    left = dump_jsonl("--shallow", *sorted(directory.glob("*.log"))).of_kind("batch")
    assert [each for each in applied(lines) if each["base_offset"] >= left[0]["base_offset"]] == left
    has_gap = any(line.get("event") == "skipped" for line in lines)
    assert (process.returncode, messages) == (1 if has_gap else 0, b"")
