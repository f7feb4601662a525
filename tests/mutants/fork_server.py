# SPDX-License-Identifier: Apache-2.0
"""Runs pytest many times without importing it, and all of raftlog, each time.

A server is a process that has imported both, with the packages that tests need, and runs nothing itself. For each
request, a line of JSON, it forks a child that runs pytest once, as a new process would: with its own environment and
output, and with the tests not imported yet. The answer is a line of JSON, too.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Final, Self

import attrs

from tests.checkout import ROOT

LIMIT_SECONDS: Final = 300
"""After this time a run is ended."""


@attrs.frozen
class Ran:
    """What came of a run.

    Attributes:
        exit_code: of pytest; negative if a signal ended it.
        output: of pytest, standard error included.
    """

    exit_code: int
    output: str

    @property
    def has_timed_out(self) -> bool:
        """Whether the run was ended after ``LIMIT_SECONDS``."""
        return self.exit_code == -signal.SIGALRM


class ForkServer:
    """A server, which is started by the first run. Use it from one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Ran:
        """Run pytest.

        Args:
            arguments: of its command line.
            environment: variables that differ from those of this process.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.mutants.fork_server"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(arguments), dict(environment)]) + "\n")
        self._process.stdin.flush()
        return Ran(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the server."""
        if self._process is not None:
            self._process.communicate(timeout=LIMIT_SECONDS)
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_in_child(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become_pytest(arguments, environment, output.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode("utf-8", "replace")


def _become_pytest(arguments: list[str], environment: dict[str, str], output: int) -> None:
    """Run pytest, and end this process."""
    exit_code = 1
    try:
        os.environ.update(environment)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.alarm(LIMIT_SECONDS)
        exit_code = int(pytest.main(arguments))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _warm_up() -> None:
    """Do once what would take a child of each request longer than most tests.

    Hypothesis reads the sources of all modules for constants to try, when it is first used.
    """
    for name in ("_hypothesis_pytestplugin", "hypothesis.stateful", "numpy", "pyarrow", "xdist.plugin"):
        importlib.import_module(name)
    from hypothesis import given, settings, strategies

    with warnings.catch_warnings(action="ignore"):  # It is used before pytest has loaded its plugin.
        settings(max_examples=1, database=None)(given(strategies.integers())(lambda _: None))()
    gc.collect()
    gc.freeze()


def _serve() -> None:
    for line in sys.stdin:
        arguments, environment = json.loads(line)
        print(json.dumps(_run_in_child(arguments, environment)), flush=True)


if __name__ == "__main__":
    import pytest

    import tests.mutants.catalogue

    assert tests.mutants.catalogue.MUTANTS
    _warm_up()
    _serve()
