# SPDX-License-Identifier: Apache-2.0
"""Compiles the Java programs of this folder, each once for each folder of Kafka's jars."""

import os
import subprocess
from pathlib import Path

from tests.hang_limit import HANG_S
from tests.kafka.one_at_a_time import one_at_a_time


def class_path(jars: Path, program: Path) -> str:
    """Compile a program, unless that is done, into the folder beside the jars; return the class path to run it with."""
    classes = jars.with_name("classes")
    compiled = classes / f"{program.stem}.class"
    with one_at_a_time():
        if not compiled.exists() or compiled.stat().st_mtime < program.stat().st_mtime:
            command = ["javac", "-d", str(classes), "-cp", f"{jars}{os.sep}*", str(program)]
            subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)
    return f"{classes}{os.pathsep}{jars}{os.sep}*"
