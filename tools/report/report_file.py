# SPDX-License-Identifier: Apache-2.0
"""Writes a report to a file: completely or not at all, and never over a file that is not a report."""

import os
from pathlib import Path
from typing import Final

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.own_file import is_own, write_whole
from raftlog.tools.report.page import HEAD

_HEAD: Final = HEAD.encode()


def check_report_path(path: str) -> None:
    """Check that a report can be written to a path. Call it before the audit, so that no work is lost.

    Raises:
        LogDirectoryError: the path exists and is not a report, or is ``-``.
        StorageError: the path cannot be read, or its directory does not exist.
    """
    if path == STANDARD_INPUT:  # For other options that means standard output, which has the findings.
        raise LogDirectoryError("-: a report is written to a file; one of that name is ./-")
    target = Path(path)
    if not target.parent.is_dir():
        raise StorageError(path, "make", "there is no such directory")
    try:
        is_ours = not os.path.lexists(target) or is_own(target, _HEAD)
    except OSError as error:
        raise StorageError(path, "read", error.strerror or str(error)) from error
    if not is_ours:
        raise LogDirectoryError(f"{path} exists and is not a report of raftlog: it is not overwritten")


def write_report(path: str, page: str) -> None:
    """Write a page; an older report is replaced.

    Raises:
        LogDirectoryError: the path exists and is not a report; it is unchanged.
        StorageError: the page cannot be written. An older report is unchanged.
    """
    check_report_path(path)
    write_whole(path, page.encode())
