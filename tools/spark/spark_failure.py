# SPDX-License-Identifier: Apache-2.0
"""Reduces the error of a failed Spark job from two hundred lines to one."""

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from raftlog.errors import SparkJobError

_ERROR_LINE: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?$")
_JAVA_ERROR: Final = re.compile(r"^: (?:[a-z]\w*\.)+(\w+: .+)$")
"""The line of a py4j error that has the Java exception; the line before it only names the method."""
_NO_PACKAGE: Final = re.compile(r"No module named '(raftlog|attrs?|numpy|pyarrow|cattrs|crc32c)\b")
_MOST_CHARACTERS: Final = 300
INSTALL: Final = "run pip install 'raftlog[spark]' there, or set PYSPARK_PYTHON to a Python that has it"
"""Advice if the Python of a worker lacks what the driver's has."""
_SPARKS_OWN: Final = frozenset({"pyspark", "py4j", "grpc"})
"""Packages whose exceptions mean that Spark failed."""


@contextlib.contextmanager
def failures_of(work: str) -> Iterator[None]:
    """Convert any exception of Spark in the block to a ``SparkJobError`` with a one-line reason.

    Args:
        work: names the work in the block, for the message.

    Raises:
        SparkJobError: Spark failed.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _SPARKS_OWN:
            raise
        raise SparkJobError(work, reason_of(str(error))) from error


def reason_of(text: str) -> str:
    """Return the cause of an error of Spark: the exception of a worker's Python, or of Java, or else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    behind = lines[starts[-1] + 1 :] if starts else []
    pythons = [line for line in behind if _ERROR_LINE.match(line)]
    javas = [found[1] for line in lines if (found := _JAVA_ERROR.match(line))]
    reason = next(iter((*pythons, *javas, *lines)), "no reason is given")
    if _NO_PACKAGE.search(reason):
        return f"the Python of the workers lacks packages ({reason[:_MOST_CHARACTERS]}): {INSTALL}"
    return reason[:_MOST_CHARACTERS]
