# SPDX-License-Identifier: Apache-2.0
"""Wrong kernels: one is compiled from the text of the right one with all errors in it, and has one at a time."""

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from raftlog.records import kernel_choice
from tests.mutants.kernel_edits import CHOICE, EDITS, KernelEdit
from tests.mutants.planting import Mutant
from tests.records.built_kernel import NAME, VARIABLE, load
from tests.records.sanitize_kernel import build_planted

PLANTED_KERNEL: Final = "RAFTLOG_PLANTED_KERNEL"
"""The environment variable with the path of a kernel that ``planted_kernel`` has built."""


@functools.cache
def planted_kernel() -> str:
    """Build the kernel with every error in it, for the time of this process, and return its path.

    Raises:
        RuntimeError: it cannot be built.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build_planted(folder, {"RAFTLOG_UNOPTIMIZED": "1"})


def _compiled_wrong(edit: KernelEdit) -> Callable[[], None]:
    def plant() -> None:
        path = os.environ.get(PLANTED_KERNEL) or planted_kernel()
        os.environ[CHOICE] = edit.name
        right, wrong = vars(kernel_choice)["kernel"], load(path)
        os.environ[VARIABLE] = path  # Of the tests' forms, and of processes that they start.
        sys.modules[NAME] = wrong
        for module in list(sys.modules.values()):
            if vars(module).get("kernel") is right:
                vars(module)["kernel"] = wrong

    return plant


MUTANTS: Final = tuple(
    Mutant(edit.name, edit.rule, "AddressSanitizer", _compiled_wrong(edit), edit.killers, needs_compiler=True)
    for edit in EDITS
)
