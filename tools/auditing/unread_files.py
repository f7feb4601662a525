# SPDX-License-Identifier: Apache-2.0
"""The finding about a file that could not be read: it was deleted, which is harmless, or its condition is unknown."""

import os
from typing import Final

from raftlog.errors import MissingFileError, StorageError
from raftlog.tools.catalogue.findings import Finding

DELETED: Final = "it was deleted after its directory was listed"


def unread(error: StorageError) -> Finding:
    """Return what an error of opening or reading a file says about it."""
    is_missing = isinstance(error, MissingFileError) or isinstance(error.__cause__, FileNotFoundError)
    if is_missing and not os.path.islink(error.path):  # noqa: PTH114
        return Finding(error.path, "file-gone", DELETED)
    return Finding(error.path, "file-unreadable", f"{error.operation} failed: {error.cause}")
