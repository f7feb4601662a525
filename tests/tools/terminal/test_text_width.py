# SPDX-License-Identifier: Apache-2.0
"""The width of a terminal: every verb respects it, and cuts nothing for programs."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.command_line import main
from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.terminal.table_lines import table, table_width
from raftlog.tools.terminal.text_width import cut_line, wrap_line
from raftlog.tools.verb_help.verbs import VERBS
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, flip, write_log

DATA = GOLDEN / "dynamic-quorum/data"
NODES = ("n1", "n2", "n3", "n4", "n101")
SEGMENT = "n1/__cluster_metadata-0/00000000000000000193.log"
COMMANDS: dict[str, tuple[str, ...]] = {
    "voters": ("voters", *NODES),
    "epochs": ("epochs", *NODES),
    "quorum": ("quorum", *NODES),
    "diff": ("diff", "--all", "n1", "n2"),
    "verify": ("verify", "--all", *NODES),
    "rules": ("verify", "--rules"),
    "explain a rule": ("explain", "voters-overlap"),
    "explain a batch": ("explain", SEGMENT, "--offset", "207"),
    "log info": ("log", "info", "n1"),
    "dump-log": ("dump-log", "--format", "table", "--all", *NODES),
    "help": ("help",),
    "help of log": ("help", "log"),
}


class Terminal(io.TextIOWrapper):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(*arguments: str) -> list[str]:
    """Run the command on a terminal, and return the lines that it shows."""
    stream = io.BytesIO()
    output = Terminal(stream, "utf-8")
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        main(list(arguments))
    output.flush()
    return stream.getvalue().decode().splitlines()


def check_fits(lines: list[str], width: int) -> None:
    """Check that no line is wider but those that are one long word: such a path is left whole, to be copied."""
    assert lines
    for line in lines:
        assert len(line) <= width or " " not in line.strip(), line


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("name", COMMANDS)
def test_output_of_a_verb_fits_the_terminal(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line that a verb writes to a terminal is wider, if there is a blank to break it at."""
    monkeypatch.chdir(DATA)
    monkeypatch.setenv("COLUMNS", str(columns))
    check_fits(on_terminal(*COMMANDS[name]), columns)


def test_findings_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings of verify and the last line of audit are wrapped, too."""
    flip(write_log(tmp_path / "orders-0", batch(), batch(1)), 70)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    check_fits(on_terminal("verify", "orders-0"), 40)
    check_fits(on_terminal("audit", "-j1", "--out", "out", "orders-0"), 40)


@pytest.mark.parametrize("words", [(), *((verb,) for verb in VERBS), *(("log", action) for action in ACTIONS)])
@pytest.mark.parametrize("columns", [40, 60, 80])
def test_help_fits(words: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help of the command, of every verb and of every action is wrapped to what COLUMNS says."""
    monkeypatch.setenv("COLUMNS", str(columns))
    check_fits(run(*words, "--help").text.splitlines(), columns)


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("help")])
def test_nothing_is_cut_where_a_program_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If standard output is not a terminal, COLUMNS changes nothing; a wide enough terminal shows the same."""
    monkeypatch.chdir(DATA)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run(*COMMANDS[name])
    monkeypatch.setenv("COLUMNS", "100000")
    assert run(*COMMANDS[name]) == narrow
    if name != "epochs":  # A terminal with room gets bars.
        assert on_terminal(*COMMANDS[name]) == narrow.text.split("\n")[:-1]


def test_json_lines_are_never_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON lines stay one object a line on a terminal, too."""
    monkeypatch.chdir(DATA)
    monkeypatch.setenv("COLUMNS", "40")
    for verb in ("voters", "epochs", "quorum", "verify"):
        arguments = (verb, "--format", "jsonl", *NODES)
        assert on_terminal(*arguments) == run(*arguments).text.splitlines()


def test_bars_are_drawn_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal gets no bars, and a wide one does."""
    monkeypatch.chdir(DATA)
    for columns, has_bars in ((80, False), (200, True)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert ("█" in "".join(on_terminal(*COMMANDS["epochs"]))) == has_bars


@pytest.mark.parametrize(("width", "expected"), [(5, "abcde"), (4, "abc…"), (6, "abcde"), (None, "abcde")])
def test_a_cut_line_ends_with_an_ellipsis(width: int | None, expected: str) -> None:
    """A line that fits exactly stays whole; of one that does not, the last column is the ellipsis."""
    assert cut_line("abcde", width) == expected


@given(
    st.lists(st.text("ab", min_size=1, max_size=30), min_size=1, max_size=20).map(" ".join),
    st.integers(20, 100),
    st.integers(0, 40),
)
def test_wrapping_loses_no_word(line: str, width: int, indent: int) -> None:
    """The words of a wrapped line are those that it had, in order, and only a long word is wider than allowed."""
    parts = wrap_line(line, width, indent=indent)
    assert " ".join(parts).split() == line.split()
    assert all(len(part) <= width or " " not in part.strip() for part in parts)
    broken = wrap_line(line, width, indent=indent, breaks_words=True)
    assert "".join(broken).replace(" ", "") == line.replace(" ", "")
    assert all(len(part) <= width for part in broken)


ROWS = (("OFFSET", "TIME", "SEEN IN"), (123456789012, "2026-11-21T10:47:38.907Z", "four segments and a snapshot"))


def test_a_table_gives_way_from_the_last_column_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last text is cut first, then those before it; a number is cut only with the line."""
    monkeypatch.setattr("sys.stdout", Terminal(io.BytesIO()))
    whole = table_width(ROWS)
    shown = {}
    for columns in (whole, whole - 1, 50, 40, 30):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown[columns] = table(ROWS, frozenset({0}))[1]
    assert shown == {
        whole: "123456789012  2026-11-21T10:47:38.907Z  four segments and a snapshot",
        whole - 1: "123456789012  2026-11-21T10:47:38.907Z  four segments and a snapsh…",
        50: "123456789012  2026-11-21T10:47:38.907Z  four segm…",
        40: "123456789012  2026-11-21T10…  four segm…",
        30: "123456789012  2026-11-2…  fou…",
    }
