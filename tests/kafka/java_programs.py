# SPDX-License-Identifier: Apache-2.0
"""Fetches Kafka's jars, and compiles the Java programs of this folder, each once for each folder of jars."""

import os
import shutil
import subprocess
from pathlib import Path

from tests import quick_java
from tests.hang_limit import HANG_S
from tests.kafka.one_at_a_time import one_at_a_time


def fetched(pom: Path, target: Path, *options: str) -> Path:
    """Let Maven copy the jars that a pom.xml lists, unless that is done; return their folder.

    Args:
        pom: the file; with a newer one they are fetched again.
        target: the parent of their folder.
        options: of Maven, that say which jars.

    Raises:
        subprocess.CalledProcessError: Maven could not resolve them; its output is in the exception.
    """
    jars, done = target / "lib", target / "installed"
    with one_at_a_time():
        if not done.exists() or done.stat().st_mtime < pom.stat().st_mtime:
            shutil.rmtree(jars, ignore_errors=True)
            command = ["mvn", "-q", "-B", "-f", str(pom), *options, "dependency:copy-dependencies"]
            environment = os.environ | quick_java.OF_MAVEN
            subprocess.run(command, check=True, capture_output=True, timeout=HANG_S, env=environment)
            done.touch()
    return jars


def class_path(jars: Path, program: Path) -> str:
    """Compile a program, unless that is done, into the folder beside the jars; return the class path to run it with."""
    classes = jars.with_name("classes")
    compiled = classes / f"{program.stem}.class"
    with one_at_a_time():
        if not compiled.exists() or compiled.stat().st_mtime < program.stat().st_mtime:
            compile_java(jars, classes, program)
    return f"{classes}{os.pathsep}{jars}{os.sep}*"


def compile_java(jars: Path, classes: Path, *sources: Path) -> None:
    """Compile sources that use the jars of one folder into another."""
    command = ["javac", *quick_java.OF_COMPILER, "-d", str(classes), "-cp", f"{jars}{os.sep}*", *map(str, sources)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)
