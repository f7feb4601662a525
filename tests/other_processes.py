# SPDX-License-Identifier: Apache-2.0
"""Processes that tests start. At the end of ``with subprocess.Popen``, one is waited for, whatever has failed."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def started(command: Sequence[str | bytes | os.PathLike[str]], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Start a process, and wait for its end; if what is done with it fails, kill it, so that the test ends too."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


@contextmanager
def held_by_another_process(lock: os.PathLike[str]) -> Iterator[None]:
    """Let another process hold the lock of a file."""
    command = [sys.executable, "-c", _HOLD, os.fspath(lock)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate()
