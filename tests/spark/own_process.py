# SPDX-License-Identifier: Apache-2.0
"""Runs code in a Python of its own: a process has one Spark, and a test may need another, or its very start."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 600


def run_python(code: str, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a folder that is not the checkout, and return what came of it."""
    return subprocess.run(
        [sys.executable, "-c", inspect.cleandoc(code), *arguments],
        cwd=folder,
        env=os.environ | environment,
        timeout=TIMEOUT_S,
        capture_output=True,
        text=True,
        check=False,
    )
