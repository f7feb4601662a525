# SPDX-License-Identifier: Apache-2.0
"""Runs code in a Python of its own: a process has one Spark, and a test may need another, or its very start."""

import inspect
import os
import subprocess
import sys
import venv
from pathlib import Path

import pyspark

from tests.hang_limit import HANG_S


def run_python(code: str, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a folder that is not the checkout, and return what came of it."""
    return subprocess.run(
        [sys.executable, "-c", inspect.cleandoc(code), *arguments],
        cwd=folder,
        env=os.environ | environment,
        timeout=HANG_S,
        capture_output=True,
        text=True,
        check=False,
    )


def python_without_raftlog(folder: Path) -> Path:
    """Make a Python that, on workers of a cluster, has all packages of this one but raftlog; return its path."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/*/site-packages")
    for package in Path(pyspark.__file__).parent.parent.iterdir():
        if "raftlog" not in package.name:
            (packages / package.name).symlink_to(package)
    python = folder / "python"
    lines = (
        "#!/bin/sh",
        f'[ "$SPARK_EXECUTOR_DIRS" ] || exec {sys.executable} "$@"',  # The driver plans queries with it too.
        f'exec {folder}/bin/python -E "$@"',  # PYTHONPATH may say where a checkout is.
    )
    python.write_text("\n".join(lines))
    python.chmod(0o755)
    return python
