# SPDX-License-Identifier: Apache-2.0
"""Runs code in a new Python process, for tests that need a second Spark, or its startup."""

import inspect
import os
import subprocess
import sys
import venv
from pathlib import Path

import pyspark

from tests import quick_java
from tests.hang_limit import HANG_S


def run_python(code: str, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a folder outside the checkout, and return the completed process."""
    return subprocess.run(
        [sys.executable, "-c", inspect.cleandoc(code), *arguments],
        cwd=folder,
        env=os.environ | quick_java.OF_SPARK | environment,
        timeout=HANG_S,
        capture_output=True,
        text=True,
        check=False,
    )


def python_without_raftlog(folder: Path) -> Path:
    """Create a Python that, on workers of a cluster, has all packages of this one except raftlog; return its path."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/*/site-packages")
    for package in Path(pyspark.__file__).parent.parent.iterdir():
        if "raftlog" not in package.name:
            (packages / package.name).symlink_to(package)
    python = folder / "python"
    lines = (
        "#!/bin/sh",
        f'[ "$SPARK_EXECUTOR_DIRS" ] || exec {sys.executable} "$@"',  # The driver plans queries with it too.
        f'exec {folder}/bin/python -E "$@"',  # PYTHONPATH may name a checkout.
    )
    python.write_text("\n".join(lines))
    python.chmod(0o755)
    return python
