# SPDX-License-Identifier: Apache-2.0
"""Going on where raftlog itself fails: a bug costs what it was met in, which is said, and nothing else."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, ParamSpec, TypeVar

from raftlog.errors import MissingExtraError
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.terminal.exit_codes import EXIT_DAMAGE, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say

DEBUG_VARIABLE: Final = "RAFTLOG_DEBUG"
"""The environment variable that, if it is not empty, asks for tracebacks on standard error."""
_MOST_CHARACTERS: Final = 300
"""Of an error's own words: they may quote what they are about."""

_Evidence = ParamSpec("_Evidence")
_Result = TypeVar("_Result")


def audit_failed(path: str, error: Exception) -> Finding:
    """Return the finding that raftlog failed over a file or directory, with the place in its code.

    Args:
        path: what it was at work on.
        error: what was raised; its traceback is written to standard error if somebody asked for that.
    """
    import traceback  # Slow to import, and hardly ever needed.

    if os.environ.get(DEBUG_VARIABLE) and sys.stderr is not None:
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    told = f"{type(error).__name__}{place}: {str(error)[:_MOST_CHARACTERS]}".rstrip(": ")
    return Finding(path, "audit-failed", f"this is a fault of raftlog, please report it: {told}")


def guarded(
    path: str, judge: Callable[_Evidence, Iterable[Finding]], *evidence: _Evidence.args, **named: _Evidence.kwargs
) -> Iterator[Finding]:
    """Yield what a judge finds; where it fails, one finding more says so, and nothing is raised.

    Args:
        path: what the evidence is about.
        judge: the judge.
        *evidence: what it judges.
        **named: what it judges, by name.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    try:
        yield from judge(*evidence, **named)
    except MissingExtraError:
        raise
    except Exception as error:
        yield audit_failed(path, error)


def attempted(
    path: str, work: Callable[_Evidence, _Result], *evidence: _Evidence.args, **named: _Evidence.kwargs
) -> _Result | Finding:
    """Return what some work gives; where it fails, the finding that says so.

    Args:
        path: what the evidence is about.
        work: the work.
        *evidence: what it works on.
        **named: what it works on, by name.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    try:
        return work(*evidence, **named)
    except MissingExtraError:
        raise
    except Exception as error:
        return audit_failed(path, error)


def tell_faults(faults: Collection[Finding], exit_code: int, program: str) -> int:
    """Say on standard error what raftlog failed over, and return the exit code.

    Args:
        faults: what it failed over, and what nothing else says.
        exit_code: what there would be without them.
        program: who is at work.
    """
    for fault in faults:
        say(str(fault), program)
    return EXIT_ERROR if faults and exit_code != EXIT_DAMAGE else exit_code
