# SPDX-License-Identifier: Apache-2.0
"""Picks the form of the kernel: compiled if it was built, interpreted otherwise or if ``RAFTLOG_PURE`` is 1.

Import ``kernel`` from here. No other module of the pure layers reads the environment.
"""

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from raftlog.records import kernel
else:

    def _compiled():
        if os.environ.get("RAFTLOG_PURE") == "1":
            return None
        try:
            from raftlog.records import _kernel
        except ImportError:  # Not built, or imported from a zip file.
            return None
        return _kernel

    def _interpreted():
        """Import the source, with ``interpreted_cython`` in place of the ``cython`` that it imports."""
        from raftlog.records import interpreted_cython

        installed = sys.modules.get("cython")
        sys.modules["cython"] = interpreted_cython
        try:
            from raftlog.records import kernel as source
        finally:
            if installed is None:
                del sys.modules["cython"]
            else:
                sys.modules["cython"] = installed
        return source

    kernel = _compiled() or _interpreted()

IS_COMPILED: Final[bool] = kernel.IS_COMPILED

__all__ = ["IS_COMPILED", "kernel"]
