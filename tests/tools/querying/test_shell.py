# SPDX-License-Identifier: Apache-2.0
"""The shell runs statements one by one, goes on after an error, and completes what it knows."""

import io
import os
import pty
import select
import sys
from pathlib import Path

import pytest

from raftlog.tools.querying import session
from raftlog.tools.querying.shell import completions
from raftlog.tools.querying.views import VIEWS
from tests.hang_limit import HANG_S
from tests.other_processes import started
from tests.tools.console import COMMAND, Outcome, run
from tests.tools.made_logs import LOG_NAME, batch, flip, write_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "orders-0", batch(0), batch(1))
    return tmp_path


def script(text: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Run the shell with a script as its standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return run("query", "-j1", "--shell", log, "--format", "csv")


@pytest.mark.parametrize(
    ("text", "output", "complaints", "exit_code"),
    [
        ("", "", 0, 0),
        ("\n;\n ; \n", "", 0, 0),
        ("SELECT 1 AS a;", "a\n1\n", 0, 0),
        ("SELECT 1 AS a", "a\n1\n", 0, 0),
        ("SELECT 1 AS a\n,\n2 AS b;\nSELECT 3 AS c;\n", "a,b\n1,2\nc\n3\n", 0, 0),
        ("SELECT ';' AS a;\n", "a\n;\n", 0, 0),
        ("SELECT 1 AS a;\nexit\nSELECT 2 AS b;\n", "a\n1\n", 0, 0),
        ("SELECT 1 AS a;\n.quit;\n", "a\n1\n", 0, 0),
        ("SELEC;\nSELECT 1 AS a;\n", "a\n1\n", 1, 1),
        ("SELECT 1 AS a; SELECT 2 AS b;\n", "a\n1\nb\n2\n", 0, 0),
        ("SELECT 1 AS a; SELECT\n2 AS b; SELECT 3 AS c", "a\n1\nb\n2\nc\n3\n", 0, 0),
        ("SELECT 'x\n;\n' AS a;\n", 'a\n"x\n;\n"\n', 0, 0),
        ("SELECT $$;\n;$$ AS a /* ;\n; */ -- ;\n;\n", 'a\n";\n;"\n', 0, 0),
        ("SELECT 'ä;\u2028' AS a; SELECT 2 AS b;", "a\nä;\u2028\nb\n2\n", 0, 0),
        ("SELECT 1 AS a; -- the last\n", "a\n1\n", 0, 0),
        ("-- nothing;\n/* here;\n*/;\n", "", 0, 0),
        ("SELECT 1 AS a; SELECT 'b\n;\n", "a\n1\n", 1, 1),
        ("SELECT 1 AS a; /* b\n;\n", "a\n1\n", 1, 1),
        ("SELECT 1 AS a; SELEC; SELECT 2 AS b;\n", "a\n1\nb\n2\n", 1, 1),
        ("SELECT '\udcff' AS a; SELECT 2 AS b;\n", "b\n2\n", 1, 1),
        ("SELECT count(*) AS n FROM records;\nSELECT count(*) AS n FROM batches;", "n\n2\nn\n2\n", 0, 0),
    ],
)
def test_a_script(
    text: str, output: str, complaints: int, exit_code: int, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statements end with ``;`` outside of text and comments, or with the input.

    The exit code is that of the last one that was not clean.
    """
    outcome = script(text, log, monkeypatch)
    assert (outcome.text, len(outcome.complaints), outcome.exit_code) == (output, complaints, exit_code)


def test_damage_is_told_with_each_statement(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays the exit code, though the next statement is clean."""
    flip(log / f"orders-0/{LOG_NAME}", 65)
    outcome = script("SELECT count(*) AS n FROM records;\nSELECT 1 AS a;\n", log, monkeypatch)
    assert (outcome.text, len(outcome.complaints), outcome.exit_code) == ("n\n1\na\n1\n", 1, 2)


def test_each_statement_sees_the_files_as_they_are_then(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that grows has more records in the next statement."""
    show = session.Session.show

    def growing(each: session.Session, sql: str) -> int:
        code = show(each, sql)
        with (log / f"orders-0/{LOG_NAME}").open("ab") as file:
            file.write(batch(2))
        return code

    monkeypatch.setattr(session.Session, "show", growing)
    assert script("SELECT count(*) AS n FROM records;\n" * 2, log, monkeypatch).text == "n\n2\nn\n3\n"


def test_a_closed_standard_input_is_told(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to ask."""
    monkeypatch.setattr("sys.stdin", None)
    outcome = run("query", "--shell", log)
    assert (outcome.exit_code, outcome.messages) == (1, "raftlog query: standard input is closed\n")


@pytest.mark.parametrize(
    ("before", "word", "some", "others"),
    [
        ("SELECT * FROM ", "", list(VIEWS), ["SELECT"]),
        ("SELECT * FROM ", "b", ["batches"], ["baseOffset"]),
        ("describe ", "ME", ["metadata"], []),
        ("SELECT ", "base", ["baseOffset", "baseSequence"], ["batches"]),
        ("SELECT ", "off", ['"offset"'], ["offset"]),
        ("SELECT ", '"off', ['"offset"'], []),
        ("", "sel", ["SELECT"], ["size"]),
        ("SELECT ", "records.off", ["records.offset"], []),
        ("SELECT ", "Batches.", ["Batches.crc"], ["crc"]),
        ("SELECT ", "nowhere.", [], ["crc"]),
        ("SELECT ", "xyz", [], ["crc"]),
    ],
)
def test_completion(before: str, word: str, some: list[str], others: list[str]) -> None:
    """Views after FROM, else columns and words too, in any case; the columns of one view after its name."""
    found = completions(before, word)
    assert set(some) <= set(found)
    assert not set(others) & set(found)
    if not some:
        assert found == []


OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Ctrl-C on a terminal is for the processes of its session."""


class Terminal:
    """The other end of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = b""

    def wait_for(self, text: bytes) -> None:
        """Read until a text appears."""
        while text not in self._seen:
            readable, _, _ = select.select([self._descriptor], [], [], HANG_S)
            assert readable, self._seen
            self._seen += os.read(self._descriptor, 4096)
        self._seen = self._seen.partition(text)[2]

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)


def wait_until_asleep(process: int) -> None:
    """Wait until the main thread of a process waits for something, such as the next key.

    Python notices Ctrl-C only with the next key if it comes after the prompt was written and before that.
    """
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="terminals differ")
def test_on_a_terminal(log: Path) -> None:
    """Tab completes, Ctrl-C gives up a statement, Ctrl-D leaves."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", OWN_TERMINAL, *COMMAND, "query", "--shell", str(log)]
    environment = os.environ | {"TERM": "dumb"}
    with started(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        terminal = Terminal(ours)
        terminal.wait_for(b"query> ")
        terminal.type(b"SELECT count(*) AS n FROM rec\t;\n")
        terminal.wait_for(b"records")
        terminal.wait_for(b"2\r\n(1 row)")
        terminal.wait_for(b"query> ")
        terminal.type(b"SELECT\n")
        terminal.wait_for(b"  ...> ")
        wait_until_asleep(process.pid)
        terminal.type(b"\x03")
        terminal.wait_for(b"cancelled")
        terminal.wait_for(b"query> ")
        terminal.type(b"SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range * b.range = -1;\n")
        terminal.wait_for(b"\r\n")
        terminal.type(b"\x03")
        terminal.wait_for(b"cancelled")
        terminal.wait_for(b"query> ")
        terminal.type(b"\x04")
        assert process.wait(HANG_S) == 0
    os.close(ours)
