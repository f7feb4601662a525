# SPDX-License-Identifier: Apache-2.0
"""Options and preparations that the verbs of the audit share."""

import argparse
import importlib.util
import os
import re
from typing import Final

from raftlog.errors import MissingExtraError
from raftlog.records.rules import Severity

_PACKAGES: Final = ("numpy", "pyarrow", "cattrs")


def prepare_to_survey() -> None:
    """Prepare the process; call this before a module that surveys files is imported.

    Raises:
        MissingExtraError: packages that every survey needs are not installed.
    """
    if any(importlib.util.find_spec(package) is None for package in _PACKAGES):
        raise MissingExtraError("columns", "a survey of logs")
    # Keeps numpy from starting threads: a process with threads cannot fork, and starts other processes slowly.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


LOG_PATHS_HELP: Final = (
    "a log directory, a directory of log directories, a partition's directory, a segment or a snapshot"
)
"""What a verb takes that looks for logs under its paths."""


def add_fail_on_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the lowest severity of findings that affects the exit code."""
    names = ", ".join(each.value for each in Severity)
    parser.add_argument(
        "--fail-on",
        type=severity,
        choices=tuple(Severity),
        default=Severity.SUSPICIOUS,
        metavar="SEVERITY",
        help=f"findings below it give exit code 0: {names} (default: suspicious)",
    )


def add_engine_options(parser: argparse.ArgumentParser, shared: str) -> None:
    """Add the options for where to read.

    Args:
        parser: gets them.
        shared: the paths that workers must see as the driver does.
    """
    parser.add_argument(
        "--engine",
        choices=("local", "spark", "auto"),
        default="local",
        help="local: processes on this machine (the default); spark; auto: whichever suits the size",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="the Spark master: local[N], spark://HOST:PORT, sc://HOST (default: that of the current session,"
        f" spark-submit or SPARK_REMOTE, else this machine); workers must see {shared} under the same paths",
    )


def add_processes_option(parser: argparse.ArgumentParser, work: str = "read files") -> None:
    """Add the option for the number of processes that do some work; the default is one per processor."""
    parser.add_argument(
        "-j",
        "--processes",
        type=_process_count,
        default=_processor_count(),
        metavar="N",
        help=f"how many processes {work} (default: one per processor)",
    )


def add_messages_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to read the messages in records too."""
    parser.add_argument(
        "--messages",
        action="store_true",
        help="also read the message in each record of the metadata log and its snapshots (rules message-*): slow",
    )


def severity(name: str) -> Severity:
    """Return the severity of a name.

    Raises:
        argparse.ArgumentTypeError: there is no such severity.
    """
    try:
        return Severity(name)
    except ValueError:
        names = ", ".join(each.value for each in Severity)
        raise argparse.ArgumentTypeError(f"{name!r} is none of {names}") from None


def _processor_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _process_count(text: str) -> int:
    if re.fullmatch("[1-9][0-9]{0,2}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999")
    return int(text)
