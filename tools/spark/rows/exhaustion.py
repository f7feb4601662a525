# SPDX-License-Identifier: Apache-2.0
"""Tells a machine that has run out of something from a file that cannot be read: only the file may be skipped."""

import errno
import os
from typing import Final

from raftlog.errors import StorageError, TooManyOpenFilesError

_CODES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def is_exhaustion(error: StorageError) -> bool:
    """Whether a file could not be read because the process or the machine has no descriptor or no memory left."""
    cause = error.__cause__
    is_known = isinstance(error, TooManyOpenFilesError) or isinstance(cause, MemoryError)
    return is_known or (isinstance(cause, OSError) and cause.errno in _CODES)


def tells_exhaustion(reason: str) -> bool:
    """Whether the reason of a finding is that of such an error."""
    return any(os.strerror(code) in reason for code in _CODES)
