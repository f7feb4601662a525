# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the README, to be run unchanged."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.checkout import ROOT

README: Final = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """All blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def log_script() -> str:
    """The shell block that makes log directories, and writes to one."""
    (script,) = (each for each in blocks("sh") if "log init" in each)
    return script


def log_example() -> str:
    """The Python block that leads an epoch in one of these directories."""
    (example,) = (each for each in blocks("python") if "FileLog.open" in each)
    return example


def run_shell(script: str, folder: Path) -> str:
    """Run a script in a folder, with this checkout's raftlog, and return what it printed; it has to succeed."""
    command = f'raftlog() {{ {shlex.quote(sys.executable)} -m raftlog.tools.command_line "$@"; }}\n{script}'
    done = subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
