# SPDX-License-Identifier: Apache-2.0
"""A process of its own that is asked by lines of JSON, and answers each with one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.checkout import ROOT


class LineProcess:
    """A process that goes on from one question to the next, until it is closed.

    Args:
        module: what it runs.
        arguments: of its command line.
        variables: its environment.

    Attributes:
        pid: its number.
    """

    def __init__(self, module: str, *arguments: str, variables: Mapping[str, str]) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Write a line, and return the answer.

        Raises:
            RuntimeError: the process has died.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return the next line, which may have come unasked, as the first one does.

        Raises:
            RuntimeError: the process has died.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of {self._module} died: {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Let it end, and wait for it."""
        self._process.communicate()
