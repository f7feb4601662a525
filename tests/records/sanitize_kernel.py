# SPDX-License-Identifier: Apache-2.0
"""``make test-asan``: runs the kernel's tests and its fuzzer while AddressSanitizer and UBSan watch its memory.

Then it plants errors in a copy of the kernel, one by one, and each must be caught: a tier that catches nothing fails.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.checkout import ROOT
from tests.mutants.kernel_edits import CHOICE, EDITS, KernelEdit, with_all_errors
from tests.records.built_kernel import VARIABLE

TESTS: Final = (
    "tests/records/test_kernel_contracts.py",
    "tests/records/test_kernel_digests.py",
    "tests/records/test_kernel_entries.py",
    "tests/records/test_kernel_rows.py",
    "tests/records/test_kernel_texts.py",
    "tests/records/test_kernel.py",
    "tests/records/test_kernel_facts.py",
    "tests/records/test_kernel_properties.py",
    "tests/records/columns/test_columns.py",
    "tests/records/columns/test_columns_properties.py",
    "tests/records/batches/test_batch_run.py",
    "tests/records/columns/test_record_summaries.py",
    "tests/records/batches/test_builder.py",
    "tests/records/batches/test_accumulator.py",
    "tests/records/batches/test_iterator.py",
    "tests/records/batches/test_iterator_properties.py",
)
"""Files whose tests run while the memory is watched."""
OF_THE_INSTRUCTION: Final = "tests/records/test_kernel.py::test_the_instruction_is_used_where_the_processor_has_it"
"""The test that does not hold for a kernel without the instruction for CRCs."""
_CAUGHT: Final = ("AddressSanitizer", "runtime error")
_BUILD_LIMIT_S: Final = 300
_CASES_OF_A_CANARY: Final = 4000


class NotHere(Exception):  # noqa: N818
    """Something is missing on this machine."""


def runtime() -> str:
    """Return the path of AddressSanitizer's library, which must be loaded before all others.

    Raises:
        NotHere: there is no compiler, or no such library.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        raise NotHere("no C compiler on Linux")
    named = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    path = Path(named.stdout.strip())
    if not path.is_absolute() or not path.is_file():
        raise NotHere("no libasan beside the compiler")
    return str(path)


def build(folder: Path, options: Mapping[str, str]) -> str:
    """Build a kernel in a folder of its own, and return its path.

    Args:
        folder: to build in.
        options: what ``setup.py`` is asked for, by the names of environment variables.

    Raises:
        RuntimeError: it cannot be built.
    """
    environment = os.environ | {"RAFTLOG_BUILD_FOLDER": str(folder / "c")} | dict(options)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", str(folder), "--build-temp", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_BUILD_LIMIT_S, check=False
    )
    built = sorted((folder / "raftlog/records").glob("_kernel*"))
    if not built:
        raise RuntimeError(done.stdout + done.stderr)
    return str(built[0])


def build_planted(folder: Path, options: Mapping[str, str]) -> str:
    """Build a kernel with every error in it, of which its environment chooses one, and return its path."""
    source = folder / "records/kernel.py"
    source.parent.mkdir(parents=True)
    source.write_text(with_all_errors((ROOT / "records/kernel.py").read_text("utf-8")), "utf-8")
    return build(folder, {**options, "RAFTLOG_KERNEL_SOURCE": str(source)})


def watched(kernel: str) -> dict[str, str]:
    """Return the environment of a process in which a kernel's memory is watched."""
    return os.environ | {
        VARIABLE: kernel,
        "LD_PRELOAD": runtime(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # Else pools of Python's own hide where an object ends.
        "HYPOTHESIS_PROFILE": "ci",
    }


def fuzz(kernel: str, seed: int, *arguments: str, error: str = "") -> subprocess.CompletedProcess[str]:
    """Run the fuzzer on a kernel that is watched, with one of the errors that were built into it, or none."""
    command = [sys.executable, "-m", "tests.records.fuzz_kernel", "--seed", str(seed), *arguments]
    environment = watched(kernel) | {CHOICE: error}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def is_caught(edit: KernelEdit, kernel: str) -> bool:
    """Say whether the fuzzer ends on a kernel with an error planted in it, by the word of a sanitizer."""
    done = fuzz(kernel, 0, "--cases", str(_CASES_OF_A_CANARY), error=edit.name)
    return done.returncode != 0 and any(word in done.stderr for word in _CAUGHT)


def _run_all(options: Mapping[str, str], seconds: float, tests: Sequence[str]) -> bool:
    started = time.monotonic()
    canaries = [edit for edit in EDITS if edit.is_canary]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        planting = pool.submit(build_planted, Path(folder) / "planted", options)
        kernel = build(Path(folder) / "right", options)
        print(f"built in {time.monotonic() - started:.0f} s", flush=True)
        command = [sys.executable, "-m", "pytest", "-p", "tests.records.built_kernel", "-p", "no:cacheprovider"]
        command += ["-q", "-n", "2", "-m", "not slow", *tests]
        if "RAFTLOG_TABLE_CRC" in options:
            command += ["--deselect", OF_THE_INSTRUCTION]
        holds = subprocess.run(command, cwd=ROOT, env=watched(kernel), check=False).returncode == 0
        limits = "--cases", str(10**9), "--seconds", str(seconds), "--races", "200"
        for done in pool.map(lambda seed: fuzz(kernel, seed, *limits), (1, 2)):
            print(done.stdout if done.returncode == 0 else done.stdout + done.stderr, end="", flush=True)
            holds = holds and done.returncode == 0
        planted = planting.result()
        for edit, caught in zip(canaries, pool.map(lambda edit: is_caught(edit, planted), canaries), strict=True):
            print(f"{edit.name}: {'caught' if caught else 'NOT CAUGHT'}", flush=True)
            holds = holds and caught
    print(f"{time.monotonic() - started:.0f} s in all")
    return holds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tier; return the exit code."""
    parser = argparse.ArgumentParser(prog="make test-asan", description=__doc__)
    parser.add_argument("--seconds", type=float, default=12, help="how long to fuzz (default: %(default)s)")
    parser.add_argument("--limited-api", action="store_true", help="the kernel of a wheel")
    parser.add_argument("--table-crc", action="store_true", help="a kernel without the instruction for CRCs")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="other tests; none of them, if none is named")
    asked = parser.parse_args(arguments)
    try:
        runtime()
    except NotHere as missing:
        print(f"make test-asan: skipped, as there is {missing}")
        return 0
    options = {"RAFTLOG_SANITIZE": "1"}
    if asked.limited_api:
        options["RAFTLOG_LIMITED_API"] = "1"
    if asked.table_crc:
        options["RAFTLOG_TABLE_CRC"] = "1"
    return 0 if _run_all(options, asked.seconds, asked.tests) else 1


if __name__ == "__main__":
    sys.exit(main())
