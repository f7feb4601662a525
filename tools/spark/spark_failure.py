# SPDX-License-Identifier: Apache-2.0
"""What Spark says when a job fails, in one line instead of two hundred."""

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from raftlog.errors import SparkJobError

_ERROR_LINE: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?$")
_JAVA_ERROR: Final = re.compile(r"^: (?:[a-z]\w*\.)+(\w+: .+)$")
"""What py4j has behind a line that only says which method was called."""
_NO_PACKAGE: Final = re.compile(r"No module named '(raftlog|attrs?|numpy|pyarrow|cattrs|crc32c)\b")
_MOST_CHARACTERS: Final = 300
INSTALL: Final = (
    "install there what is installed here: pip install 'raftlog[spark]', or name a Python that has it in PYSPARK_PYTHON"
)
"""What to do about a Python on the workers that is not like the driver's."""
_SPARKS_OWN: Final = frozenset({"pyspark", "py4j", "grpc"})
"""Packages whose errors are Spark's."""


@contextlib.contextmanager
def failures_of(work: str) -> Iterator[None]:
    """Raise what Spark raises in a block as one error of ours.

    Args:
        work: what is done in the block.

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
    """Return what an error of Spark comes down to: what Python said on a worker, or Java, or else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    behind = lines[starts[-1] + 1 :] if starts else []
    pythons = [line for line in behind if _ERROR_LINE.match(line)]
    javas = [found[1] for line in lines if (found := _JAVA_ERROR.match(line))]
    reason = next(iter((*pythons, *javas, *lines)), "no reason is given")
    if _NO_PACKAGE.search(reason):
        return f"the Python of the workers lacks packages ({reason[:_MOST_CHARACTERS]}): {INSTALL}"
    return reason[:_MOST_CHARACTERS]
