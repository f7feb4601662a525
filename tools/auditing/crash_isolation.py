# SPDX-License-Identifier: Apache-2.0
"""Isolates failures of raftlog itself: a bug becomes a finding about one file or directory, and the audit continues."""

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
"""How much of an error's message is quoted: messages may contain the data that they are about."""

_Evidence = ParamSpec("_Evidence")
_Result = TypeVar("_Result")


def audit_failed(path: str, error: Exception) -> Finding:
    """Return the finding that raftlog failed on a file or directory, with the line of code that raised.

    Args:
        path: the file or directory.
        error: the exception; its traceback is written to standard error if ``DEBUG_VARIABLE`` is set.
    """
    import traceback  # Slow to import, and rarely needed.

    if os.environ.get(DEBUG_VARIABLE) and sys.stderr is not None:
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    text = f"{type(error).__name__}{place}: {str(error)[:_MOST_CHARACTERS]}".rstrip(": ")
    return Finding(path, "audit-failed", f"this is a fault of raftlog, please report it: {text}")


def guarded(
    path: str, judge: Callable[_Evidence, Iterable[Finding]], *evidence: _Evidence.args, **named: _Evidence.kwargs
) -> Iterator[Finding]:
    """Yield a judge's findings; if the judge raises, yield an ``audit-failed`` finding instead of raising.

    Args:
        path: the file or directory that the evidence is about.
        judge: the judge; findings that it yields before it raises are kept.
        *evidence: positional arguments of the judge.
        **named: keyword arguments of the judge.

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
    """Return the result of a function; if it raises, return an ``audit-failed`` finding.

    Args:
        path: the file or directory that the evidence is about.
        work: the function.
        *evidence: positional arguments of the function.
        **named: keyword arguments of the function.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    try:
        return work(*evidence, **named)
    except MissingExtraError:
        raise
    except Exception as error:
        return audit_failed(path, error)


def report_faults(faults: Collection[Finding], exit_code: int, program: str) -> int:
    """Write failures of raftlog itself to standard error, and return the exit code.

    Args:
        faults: failures that no other output reports.
        exit_code: the exit code if there are no such failures.
        program: name of the running program.
    """
    for fault in faults:
        say(str(fault), program)
    return EXIT_ERROR if faults and exit_code != EXIT_DAMAGE else exit_code
