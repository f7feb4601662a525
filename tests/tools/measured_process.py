# SPDX-License-Identifier: Apache-2.0
"""Running some Python as a process that may have little more memory than it has once its imports are done."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from tests.tools.console import Outcome

MEBIBYTE = 1024 * 1024

_PROGRAM = """
import os, re, resource, sys

def amount(name):
    with open("/proc/self/status") as status:
        return int(re.search(name + r":\\s*(\\d+)", status.read())[1]) * 1024

most = int(sys.argv[1])
{imports}
sys.stdout = open(os.devnull, "w")
resident = amount("VmRSS")
limit = amount("VmSize") + most
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
arguments = sys.argv[2:]
code = 0
{work}
sys.stderr.write(f"{{amount('VmHWM') - resident}}\\n")
sys.exit(code)
"""


@attrs.frozen
class Measured:
    """The result of a process.

    Attributes:
        outcome: its exit code and messages; its output is discarded.
        used_mebibytes: its peak memory in addition to that after its imports.
    """

    outcome: Outcome
    used_mebibytes: int


def run_within(mebibytes: int, imports: str, work: str, *arguments: str | Path) -> Measured:
    """Run some work in a process of its own, within a limit of memory.

    Address space is limited, so that a request for more fails; what is measured is resident memory, since a request for
    address space that is never touched costs nothing.

    Args:
        mebibytes: how much more address space it may take than it has after the imports.
        imports: Python that imports all that the work needs: libraries reserve address space when they are loaded.
        work: Python; it finds its arguments as ``arguments``, and may set ``code``, the exit code.
        *arguments: for the work.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says how much memory a process has")
    program = _PROGRAM.format(imports=imports, work=work)
    command: Sequence[str | Path] = [sys.executable, "-c", program, str(mebibytes * MEBIBYTE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *messages, used = done.stderr.splitlines() or [""]
    assert used.isdigit(), done.stderr[-2000:]
    return Measured(Outcome(done.returncode, b"", "\n".join(messages)), int(used) // MEBIBYTE)
