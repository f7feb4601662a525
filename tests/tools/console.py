# SPDX-License-Identifier: Apache-2.0
"""Running the command ``raftlog``: in this process, which is quick, or as a process of its own."""

import io
import json
import subprocess
import sys
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import attrs

from raftlog.tools.command_line import main
from tests.other_processes import started

COMMAND = (sys.executable, "-m", "raftlog.tools.command_line")
"""What starts the command as a process."""


@attrs.frozen
class Outcome:
    """The result of a run."""

    exit_code: int
    output: bytes
    messages: str

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.output.decode()

    @property
    def complaints(self) -> list[str]:
        """The lines of standard error."""
        return self.messages.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON lines of standard output."""
        return [json.loads(line) for line in self.text.split("\n")[:-1]]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The JSON lines of one kind."""
        return [each for each in self.objects if each["kind"] == kind]


def run(*arguments: str | Path) -> Outcome:
    """Run the command in this process."""
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    messages = io.StringIO()
    with redirect_stdout(output), redirect_stderr(messages):
        exit_code = main([str(argument) for argument in arguments])
    output.flush()
    assert isinstance(output.buffer, io.BytesIO)
    return Outcome(exit_code, output.buffer.getvalue(), messages.getvalue())


def dump(*arguments: str | Path) -> Outcome:
    """Run ``raftlog dump-log`` in this process."""
    return run("dump-log", *arguments)


def dump_jsonl(*arguments: str | Path) -> Outcome:
    """Run ``raftlog dump-log --format jsonl`` in this process."""
    return run("dump-log", "--format", "jsonl", *arguments)


def start(*arguments: str | bytes | Path, **options: Any) -> AbstractContextManager["subprocess.Popen[Any]"]:
    """Start the command as a process; its standard output and standard error are pipes unless the options say more."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return started([*COMMAND, *arguments], **(streams | options))


def run_process(*arguments: str | bytes | Path, data: bytes | None = None, **options: Any) -> Outcome:
    """Run the command as a process, with some bytes for its standard input."""
    if data is not None:
        options["stdin"] = subprocess.PIPE
    with start(*arguments, **options) as process:
        output, messages = process.communicate(data)
    return Outcome(process.returncode, output or b"", (messages or b"").decode("utf-8", "surrogateescape"))
