# SPDX-License-Identifier: Apache-2.0
"""Runs the dump tools of Kafka's releases, many files in one JVM.

Maven fetches the jars (pom.xml beside this file), `DumpMany.java` calls the tool's main method once for each list of
arguments. Run as a script, the module is kafka-dump-log of the release line named first:

    python -m tests.kafka.dump_tool 3.9 --deep-iteration --files 00000000000000000000.log
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import pytest

from raftlog.records.messages import releases
from tests import quick_java
from tests.hang_limit import HANG_S
from tests.kafka.java_programs import class_path, fetched

HERE = Path(__file__).resolve().parent
TARGET = HERE / "target"
DIALECTS = tuple(releases.DIALECTS)
CORPUS_DIALECT = "4.3"
"""The release whose outputs came with the corpus; what the others print of it is in tests/golden/dialects."""
NEEDED_PROGRAMS = ("java", "javac", "mvn")
JVM_OPTIONS = (
    *quick_java.OPTIONS,
    "-Xmx768m",
    "-Dfile.encoding=UTF-8",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",  # of what Kafka logs, if a class path has that logger
)


@attrs.frozen
class Dump:
    """The result of one call of the tool: both streams and the exit code."""

    out: bytes
    err: bytes
    exit: int

    @property
    def exception(self) -> str | None:
        """The line that names the exception that ended the tool, or None if it ended normally."""
        prefix = b'Exception in thread "main" '
        for line in self.err.split(b"\n"):
            if line.startswith(prefix):
                return line.removeprefix(prefix).decode("utf-8", "replace")
        return None


def missing_programs() -> tuple[str, ...]:
    """Names the programs this module needs and does not find on the path."""
    return tuple(program for program in NEEDED_PROGRAMS if shutil.which(program) is None)


def marks(what: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a module of tests that need some part of Kafka, which a reason for skipping names."""
    missing = missing_programs()
    reason = f"{what} needs {', '.join(missing)} (Java 17 and Maven)"
    return [pytest.mark.kafka, pytest.mark.skipif(bool(missing), reason=reason)]


def install(dialect: str) -> Path:
    """Fetches one release line's jars, unless they are there; returns their folder.

    Raises:
        subprocess.CalledProcessError: Maven could not resolve them; its output is in the exception.
    """
    return fetched(HERE / "pom.xml", TARGET / dialect, "-P", f"kafka-{dialect}")


def dump_many(dialect: str, calls: Sequence[Sequence[str]], folder: Path) -> list[Dump]:
    """Runs one release's tool once for each list of arguments; relative paths are relative to `folder`.

    The tool is not read-only (it creates a missing .index): give it a copy.
    """
    with tempfile.TemporaryDirectory() as scratch:
        jobs = Path(scratch, "jobs")
        jobs.write_text("".join("\t".join(arguments) + "\n" for arguments in calls), encoding="utf-8")
        arguments = [_tool_class(dialect), str(jobs), scratch]
        command = ["java", *JVM_OPTIONS, "-cp", compiled("DumpMany", dialect), "DumpMany", *arguments]
        ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=HANG_S)
        exits = [int(line) for line in ran.stdout.split()]
        return [
            Dump(Path(scratch, f"{call}.out").read_bytes(), Path(scratch, f"{call}.err").read_bytes(), code)
            for call, code in enumerate(exits)
        ]


def _tool_class(dialect: str) -> str:
    """The main class: 4.3 moved the tool to Java."""
    is_scala = releases.DIALECTS[dialect] < releases.DIALECTS["4.3"]
    return "kafka.tools.DumpLogSegments" if is_scala else "org.apache.kafka.tools.DumpLogSegments"


def compiled(program: str, release: str) -> str:
    """Compile a Java program of this folder for a release, unless that is done; return the class path to run it."""
    return class_path(install(release), HERE / f"{program}.java")


def answers(program: str, release: str, lines: Iterable[str]) -> str:
    """Let a Java program of this folder, with the code of a release, read lines; return what it prints."""
    command = ["java", *JVM_OPTIONS, "-cp", compiled(program, release), program]
    text = "".join(lines)
    done = subprocess.run(command, input=text, check=True, capture_output=True, encoding="utf-8", timeout=HANG_S)
    return done.stdout


def main() -> int:
    """Prints what one call printed, as the release's own script would."""
    dialect, *arguments = sys.argv[1:]
    (dump,) = dump_many(dialect, [arguments], Path.cwd())
    sys.stdout.buffer.write(dump.out)
    sys.stderr.buffer.write(dump.err)
    return dump.exit


if __name__ == "__main__":
    sys.exit(main())
