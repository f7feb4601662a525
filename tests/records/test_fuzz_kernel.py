# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the kernel finds nothing, and would find something."""

import os
import signal
import subprocess
import sys

import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.records.guarded_memory import IS_THERE
from tests.records.kernel_forms import needs_compiled

_needs_pages = pytest.mark.skipif(not IS_THERE, reason="no pages of which nothing is allowed")


@needs_compiled
@_needs_pages
def test_the_fuzzer_finds_nothing() -> None:
    """A few hundred cases, at protected pages, and with marks around Python's allocations."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.records.fuzz_kernel", "--cases", "200"],
        cwd=ROOT,
        env=os.environ | {"PYTHONMALLOC": "debug"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stdout[:9]) == (0, "200 cases"), done.stderr


@_needs_pages
@pytest.mark.parametrize(("at", "behind"), [("end", 1), ("start", -1)])
@pytest.mark.parametrize("action", ["read", "write"])
def test_a_guarded_page_is_guarded(action: str, at: str, behind: int) -> None:
    """A read or write one byte after or before a buffer is killed; the last byte in it can be read."""
    program = f"""
import ctypes
from tests.records.guarded_memory import GuardedMemory
memory = GuardedMemory(5000)
held = memory.holding(b"abc", {at!r})
first = ctypes.c_char.from_buffer(held)
last = ctypes.addressof(first) + {2 if behind == 1 else 0}
assert ctypes.string_at(last, 1) in b"ac"
print("so far", flush=True)
ctypes.string_at(last + {behind}, 1) if {action == "read"} else ctypes.memset(last + {behind}, 0, 1)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "so far\n"
    assert -done.returncode in (signal.SIGSEGV, signal.SIGBUS)
