# SPDX-License-Identifier: Apache-2.0
"""Builds the kernel, if it can be built: without a compiler, raftlog runs the same source interpreted.

A wheel's kernel keeps to the limited API, so that one wheel serves every Python from 3.11 on; a kernel built in place
uses the whole API of the Python that builds it, which makes objects faster. ``RAFTLOG_BOUNDS_CHECKS=1`` builds one
that checks every index, for tests.
"""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

checks_bounds = os.environ.get("RAFTLOG_BOUNDS_CHECKS") == "1"
is_wheel = "bdist_wheel" in sys.argv

kernel = Extension(
    "raftlog.records._kernel",
    ["records/kernel.py"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if is_wheel else [],
    py_limited_api=is_wheel,
    extra_compile_args=[] if sys.platform == "win32" else ["-O3", "-fwrapv"],
)

extensions = cythonize(
    [kernel],
    include_path=["records"],  # Of crc_instruction.pxd.
    build_dir="build/bounds-checks" if checks_bounds else "build",
    force=True,
    quiet=True,
    compiler_directives={
        "language_level": "3",
        "boundscheck": checks_bounds,
        "wraparound": False,
        "initializedcheck": False,
        "cdivision": True,
        "show_performance_hints": False,
    },
)
for extension in extensions:
    extension.optional = True  # cythonize forgets it: a compiler that is missing or fails must not end an install

setup(
    ext_modules=extensions,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
