# SPDX-License-Identifier: Apache-2.0
"""Pickling for workers that may lack raftlog: unpickling there then fails with advice in one line."""

import pickle
import sys
from collections.abc import Callable
from typing import Any


class PickledForWorkers:
    """A base class of what Spark pickles: without raftlog, unpickling raises an ``ImportError`` with advice."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that opens a pickle of this object, and its arguments."""
        from raftlog.tools.spark.spark_failure import INSTALL

        return _opener(), (pickle.dumps((type(self), self.__getstate__())), INSTALL)


def _opener() -> Callable[[bytes, str], Any]:
    def opened(data: bytes, advice: str) -> Any:
        # Spark pickles a nested function by value. A module's function is pickled by name, and needs raftlog to load.
        try:
            kind, state = pickle.loads(data)  # noqa: S301 - of the driver
        except ImportError as error:
            python = sys.executable
            raise ImportError(f"the Python of a worker, {python}, cannot run raftlog ({error}): {advice}") from None
        found = object.__new__(kind)
        found.__dict__.update(state)
        return found

    return opened
