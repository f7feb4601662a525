# SPDX-License-Identifier: Apache-2.0
"""Another compiled kernel than the one that was built in place: ``RAFTLOG_KERNEL_PATH`` names its file.

As a plugin (``pytest -p tests.records.built_kernel``) it puts that kernel into everything, readers and builders too;
without, only ``kernel_forms`` takes it.
"""

import importlib.util
import os
import sys
from types import ModuleType
from typing import Final

NAME: Final = "raftlog.records._kernel"
VARIABLE: Final = "RAFTLOG_KERNEL_PATH"


def load(path: str) -> ModuleType:
    """Load a compiled kernel from a file."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named() -> ModuleType | None:
    """Return the kernel that the environment names, or None if it names none."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return None
    loaded = sys.modules.get(NAME)
    return loaded if loaded is not None and loaded.__file__ == path else load(path)


def put_in_place() -> None:
    """Let all of raftlog use the kernel that is named, if one is; raftlog has not been imported before."""
    if VARIABLE in os.environ and "raftlog" not in sys.modules:
        kernel = named()
        assert kernel is not None
        sys.modules[NAME] = kernel


put_in_place()
