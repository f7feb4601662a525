# SPDX-License-Identifier: Apache-2.0
"""Lets one process at a time fetch jars or compile drivers, as the tests of this folder run in several."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TARGET = Path(__file__).resolve().parent / "target"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other process is in such a block. Blocks of one process must not be nested."""
    _TARGET.mkdir(exist_ok=True)
    with (_TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
