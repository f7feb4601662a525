# SPDX-License-Identifier: Apache-2.0
"""Asks for statements and shows their results, with completion on a terminal; or runs a script from standard input."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from raftlog.errors import RaftLogError
from raftlog.tools.querying.session import Session
from raftlog.tools.querying.statements import split_statements
from raftlog.tools.querying.views import VIEWS, schema_of
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say

_END: Final = ";"
_LEAVE: Final = frozenset({"exit", "quit", ".exit", ".quit"})
_PROMPTS: Final = ("query> ", "  ...> ")
_KEYWORDS: Final = tuple(
    re.findall(
        r"\S+",
        "ALL AND AS ASC BETWEEN BY CASE COUNT(*) DESC DESCRIBE DISTINCT ELSE END EXPLAIN FROM GROUP HAVING IN IS"
        " JOIN LEFT LIKE LIMIT MAX MIN NOT NULL ON OR ORDER SELECT SHOW SUM SUMMARIZE TABLES THEN UNION USING WHEN"
        " WHERE WITH",
    )
)
_WORD_ENDS: Final = " \t\n,()=<>+-*/;"
_BEFORE_A_VIEW: Final = re.compile(r"\b(FROM|JOIN|DESCRIBE|SUMMARIZE)\s+$", re.IGNORECASE)


class Shell:
    """One sitting.

    Args:
        session: runs the statements.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._exit_code = EXIT_CLEAN

    def run(self) -> int:
        """Run statements until the input ends, and return the exit code of the last one that was not clean.

        A statement ends with ``;``, and the last one with the input. Ctrl-C cancels one that runs, with the rest of its
        line, or that is being written.
        """
        if sys.stdin is None:
            say("standard input is closed", self._session.program)
            return EXIT_ERROR
        is_terminal = sys.stdin.isatty()
        if is_terminal:
            _complete_with(completions)
            say("statements end with ; and Ctrl-D leaves; SHOW TABLES; lists the views", self._session.program)
        waiting = ""
        while True:
            try:
                line = _next_line(is_terminal, _PROMPTS[bool(waiting)])
                if line is None:
                    break
                if not waiting and line.strip().rstrip(_END).lower() in _LEAVE:
                    return self._exit_code
                waiting += f"{line}\n" if waiting or line.strip() else ""
                if _END in line:
                    statements, waiting = split_statements(waiting)
                    self._run(statements)
            except KeyboardInterrupt:
                if not is_terminal:
                    raise
                say("cancelled", self._session.program)
                waiting = ""
        statements, unfinished = split_statements(f"{waiting}{_END}")
        self._run([waiting] if unfinished else statements)
        return self._exit_code

    def _run(self, statements: Iterable[str]) -> None:
        """Run statements in order, also after one that failed, and note the exit code."""
        for sql in statements:
            try:
                code = self._session.show(sql.strip())
            except RaftLogError as error:
                say(str(error), self._session.program)
                code = EXIT_ERROR
            self._exit_code = code or self._exit_code


def completions(before: str, word: str) -> list[str]:
    """Return what a word may become: views, columns and words of SQL; after ``view.``, the columns of that view.

    Args:
        before: what precedes the word in its line.
        word: what there is of it; it may be empty.
    """
    view, dot, start = word.rpartition(".")
    if dot:
        names = [f"{view}.{name}" for name in schema_of(view.lower()).names] if view.lower() in VIEWS else []
        return _starting(names, word)
    if _BEFORE_A_VIEW.search(before):
        return _starting(VIEWS, start)
    columns = dict.fromkeys(_quoted(name) for view in VIEWS for name in schema_of(view).names)
    return _starting([*VIEWS, *columns, *_KEYWORDS], start)


def _starting(words: Sequence[str], start: str) -> list[str]:
    return [word for word in words if word.lower().strip('"').startswith(start.lower().strip('"'))]


def _quoted(name: str) -> str:
    return '"offset"' if name == "offset" else name  # It is a word of SQL.


def _next_line(is_terminal: bool, prompt: str) -> str | None:
    """Return the next line of standard input without its end; None after the last one."""
    if is_terminal:
        try:
            return input(prompt)
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _complete_with(candidates: Callable[[str, str], list[str]]) -> None:
    """Have the terminal complete words on Tab, if Python can."""
    try:
        import readline
    except ImportError:  # Windows has none.
        return

    def complete(word: str, state: int) -> str | None:
        found = candidates(readline.get_line_buffer()[: readline.get_begidx()], word)
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_WORD_ENDS)
    readline.parse_and_bind("tab: complete")
