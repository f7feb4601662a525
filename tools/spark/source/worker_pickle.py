# SPDX-License-Identifier: Apache-2.0
"""What Spark carries from the driver to workers, whose Python may lack raftlog: then one line says what to do."""

import pickle
import sys
from collections.abc import Callable
from typing import Any


class PickledForWorkers:
    """Pickles, by Spark's own pickler, to something that is opened without raftlog, and then asks for it."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what opens a pickle of this, and that."""
        from raftlog.tools.spark.spark_failure import INSTALL

        return _opener(), (pickle.dumps((type(self), self.__getstate__())), INSTALL)


def _opener() -> Callable[[bytes, str], Any]:
    def opened(data: bytes, advice: str) -> Any:
        # A function inside another one travels as code: one of a module would have to be there to be imported.
        try:
            kind, state = pickle.loads(data)  # noqa: S301 - of the driver
        except ImportError as error:
            python = sys.executable
            raise ImportError(f"the Python of a worker, {python}, cannot run raftlog ({error}): {advice}") from None
        found = object.__new__(kind)
        found.__dict__.update(state)
        return found

    return opened
