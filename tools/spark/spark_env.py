# SPDX-License-Identifier: Apache-2.0
"""``raftlog spark-env``: the variables with which sessions of one's own, and ``spark-submit``, run raftlog.

::

    eval "$(raftlog spark-env)"
    spark-submit job.py

A session that ``raftlog.tools.spark.session`` starts needs none of this.
"""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from raftlog.errors import RaftLogError, StorageError
from raftlog.tools.spark.java_runtime import lasting_java_home
from raftlog.tools.spark.settings import QUERY_SETTINGS
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_ERROR
from raftlog.tools.terminal.shell_quoting import shell_quoted
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import write_lines

_PROGRAM: Final = "raftlog spark-env"
_PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_CONFIGURATIONS: Final = ("SPARK_HOME", "SPARK_CONF_DIR")
_DEFAULTS: Final = "spark-defaults.conf"
_DEFAULT_LINES: Final = tuple(f"{name} {value}" for name, value in QUERY_SETTINGS.items())
"""Its lines: a value reaches to the end of the line."""


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog spark-env`` with what follows it on the command line, and return the exit code."""
    make_parser().parse_args(arguments)
    try:
        variables = spark_variables(cache_folder(os.environ), os.environ)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR
    write_lines(_lines(variables))
    return EXIT_CLEAN


def _lines(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        # POSIX shells read plain quotes; those of shell_quoted keep control characters from the terminal.
        yield f"export {name}={shlex.quote(value) if value.isprintable() else shell_quoted(value)}"
    if "SPARK_CONF_DIR" not in variables:
        yield f"# Spark has a configuration of its own. For fast queries, add to its {_DEFAULTS}:"
        yield from (f"# {line}" for line in _DEFAULT_LINES)


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return Parser(
        prog=_PROGRAM,
        description="Print what to export, so that a Spark session of your own, or spark-submit, runs raftlog: a Java"
        " that Spark runs on, a Python that has raftlog, and the settings with which queries are fast.",
        epilog='In a shell: eval "$(raftlog spark-env)". PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are not changed if'
        " they are set, and Spark's configuration is not if SPARK_HOME or SPARK_CONF_DIR is. What the variables name is"
        " in the folder raftlog of XDG_CACHE_HOME, or of ~/.cache. Exit codes: 0 clean, 1 usage or I/O, or no Java.",
    )


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for files that variables name, by the XDG Base Directory Specification."""
    root = environment.get("XDG_CACHE_HOME", "")
    return (Path(root) if Path(root).is_absolute() else Path("~/.cache").expanduser()) / "raftlog"


def spark_variables(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set, by name.

    Args:
        folder: for a Java without an argument that it would refuse, and for Spark's configuration.
        environment: the variables that are set.

    Raises:
        NoJavaError: no Java is new enough.
        StorageError: the folder cannot be written.
    """
    try:
        found = {"JAVA_HOME": str(lasting_java_home(folder))}
        found |= {name: sys.executable for name in _PYTHONS if not environment.get(name)}
        ours = folder / "spark-conf"
        if all(environment.get(name, "") in {"", str(ours)} for name in _CONFIGURATIONS):
            ours.mkdir(parents=True, exist_ok=True)
            part = ours / f".{_DEFAULTS}.{os.getpid()}"
            part.write_text("".join(f"{line}\n" for line in _DEFAULT_LINES), "utf-8")
            part.replace(ours / _DEFAULTS)
            found["SPARK_CONF_DIR"] = str(ours)
    except OSError as error:
        raise StorageError(str(folder), "write", error.strerror or str(error)) from error
    return found
