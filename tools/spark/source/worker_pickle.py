# SPDX-License-Identifier: Apache-2.0
"""Pickles objects for workers so that a worker's Python without raftlog fails with one line that says what to do."""

import pickle
import sys
from collections.abc import Callable
from typing import Any


class PickledForWorkers:
    """A base class whose pickle can be opened without raftlog, and then reports that raftlog is missing."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that opens the pickle, and the pickle."""
        from raftlog.tools.spark.spark_failure import INSTALL

        return _opener(), (pickle.dumps((type(self), self.__getstate__())), INSTALL)


def _opener() -> Callable[[bytes, str], Any]:
    def opened(data: bytes, advice: str) -> Any:
        # A nested function is pickled as code. A module's function would be imported on the worker, and may be missing.
        try:
            kind, state = pickle.loads(data)  # noqa: S301 - of the driver
        except ImportError as error:
            python = sys.executable
            raise ImportError(f"the Python of a worker, {python}, cannot run raftlog ({error}): {advice}") from None
        found = object.__new__(kind)
        found.__dict__.update(state)
        return found

    return opened
