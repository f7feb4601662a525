# SPDX-License-Identifier: Apache-2.0
"""Wrong kernels: each is compiled from the text of the right one with a few words changed."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from raftlog.records import kernel_choice
from tests.mutants.kernel_edits import EDITS, KernelEdit
from tests.mutants.planting import Mutant
from tests.records.built_kernel import NAME, VARIABLE, load
from tests.records.sanitize_kernel import build_edited


def _compiled_wrong(edit: KernelEdit) -> Callable[[], None]:
    def plant() -> None:
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = build_edited(folder, edit, {"RAFTLOG_UNOPTIMIZED": "1"})
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
