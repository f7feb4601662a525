# SPDX-License-Identifier: Apache-2.0
"""What the verbs of an audit share: options, and what has to be so before they start."""

import argparse
import importlib.util
import os
import re
from typing import Final

from raftlog.errors import MissingExtraError
from raftlog.records.rules import Severity

_PACKAGES: Final = ("numpy", "pyarrow", "cattrs")


def prepare_to_survey() -> None:
    """Do what has to be done before a module that surveys files is imported.

    Raises:
        MissingExtraError: packages are not installed without which nothing can be surveyed.
    """
    if any(importlib.util.find_spec(package) is None for package in _PACKAGES):
        raise MissingExtraError("columns", "a survey of logs")
    # Numpy is to start no threads: a process that has some starts others slowly, not by a fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def add_fail_on_option(parser: argparse.ArgumentParser) -> None:
    """Let the user say from which severity on findings decide the exit code."""
    names = ", ".join(each.value for each in Severity)
    parser.add_argument(
        "--fail-on",
        type=severity,
        choices=tuple(Severity),
        default=Severity.SUSPICIOUS,
        metavar="SEVERITY",
        help=f"findings below it give exit code 0: {names} (default: suspicious)",
    )


def add_processes_option(parser: argparse.ArgumentParser) -> None:
    """Let the user say how many processes read files; without a word it is one a processor."""
    parser.add_argument(
        "-j",
        "--processes",
        type=_process_count,
        default=_processor_count(),
        metavar="N",
        help="how many processes read files (default: one a processor)",
    )


def add_messages_option(parser: argparse.ArgumentParser) -> None:
    """Let the user ask for the messages in records."""
    parser.add_argument(
        "--messages",
        action="store_true",
        help="also read the message in each record of the metadata log and its snapshots (rules message-*): slow",
    )


def severity(name: str) -> Severity:
    """Return the severity of a name.

    Raises:
        argparse.ArgumentTypeError: there is none.
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
