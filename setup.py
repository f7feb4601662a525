# SPDX-License-Identifier: Apache-2.0
"""Builds the kernel, if it can be built: without a compiler, raftlog runs the same source interpreted.

A wheel's kernel keeps to the limited API, so that one wheel serves every Python from 3.11 on; a kernel built in place
uses the whole API of the Python that builds it, which makes objects faster.

For tests, the environment asks for other kernels: ``RAFTLOG_BOUNDS_CHECKS=1`` for one that checks every index,
``RAFTLOG_SANITIZE=1`` for one whose memory AddressSanitizer and UBSan watch, ``RAFTLOG_UNOPTIMIZED=1`` for one soon,
``RAFTLOG_LIMITED_API=1`` for what a wheel has, ``RAFTLOG_TABLE_CRC=1`` for one without the instructions for CRCs and
for products of 128 bits, and ``RAFTLOG_KERNEL_SOURCE`` for one of another file. ``RAFTLOG_KERNEL_IS_BUILT=1`` says that
the one in place is right.
"""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup


def is_asked(what: str) -> bool:
    """Say whether the environment asks for something."""
    return os.environ.get(f"RAFTLOG_{what}") == "1"


checks_bounds = is_asked("BOUNDS_CHECKS")
is_limited = "bdist_wheel" in sys.argv or is_asked("LIMITED_API")
macros: list[tuple[str, str | None]] = [("Py_LIMITED_API", "0x030B0000")] if is_limited else []
if is_asked("TABLE_CRC"):
    macros.append(("RAFTLOG_TABLE_CRC", None))
compile_arguments, link_arguments = ([] if sys.platform == "win32" else ["-O3", "-fwrapv"]), []
if is_asked("SANITIZE"):
    link_arguments = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_arguments = ["-O0", "-g1", "-fwrapv", "-fno-omit-frame-pointer", *link_arguments]
elif is_asked("UNOPTIMIZED"):
    compile_arguments = ["-O0", "-g0", "-fwrapv"]

kernel = Extension(
    "raftlog.records._kernel",
    [os.environ.get("RAFTLOG_KERNEL_SOURCE", "records/kernel.py")],
    define_macros=macros,
    py_limited_api=is_limited,
    extra_compile_args=compile_arguments,
    extra_link_args=link_arguments,
)

extensions = cythonize(
    [] if is_asked("KERNEL_IS_BUILT") else [kernel],
    include_path=["records"],  # Of the .pxd files.
    build_dir=os.environ.get("RAFTLOG_BUILD_FOLDER", "build"),
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
