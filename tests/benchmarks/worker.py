# SPDX-License-Identifier: Apache-2.0
"""A process that does one operation after another, as it is told on standard input, and says what each took.

Whether it runs raftlog compiled or interpreted was said by the environment that it was started with.
"""

import functools
import itertools
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from raftlog.records.kernel_choice import IS_COMPILED
from tests.benchmarks import inputs
from tests.benchmarks.contenders import OPERATIONS
from tests.benchmarks.measure import PEAK_UNIT, Timing

_WARM_UP_MIB = 0.25


def run(folder: Path, operation_name: str, shape: str, size_mib: float) -> dict[str, float]:
    """Do an operation once, and return what it counted and took."""
    operation = OPERATIONS[operation_name]
    _warm_up(operation.function, operation.needs, folder, shape, min(size_mib, _WARM_UP_MIB))
    source, size = _source(operation.needs, folder, shape, size_mib)
    wall, cpu = time.perf_counter(), time.process_time()
    seen = operation.function(source)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    timing = seen if isinstance(seen, Timing) else Timing(seen, size, cpu, wall)
    held = size if operation.needs in ("log", "batches") else 0
    largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {**attrs.asdict(timing), "peak_memory_bytes": largest * PEAK_UNIT - held}


def path_of(folder: Path, shape: str, size_mib: float) -> dict[str, str]:
    """Make an input if it is not there, and return its path."""
    return {"path": str(inputs.file(folder, shape, size_mib))}


@functools.cache
def _warm_up(function: Callable[[Any], int | Timing], needs: str, folder: Path, shape: str, size_mib: float) -> None:
    """Let the first call of an operation, which imports what it needs, not be one that counts."""
    function(_source(needs, folder, shape, size_mib)[0])


@functools.lru_cache(maxsize=1)
def _source(needs: str, folder: Path, shape: str, size_mib: float) -> tuple[Any, int]:
    """Return an operation's input, and its size in bytes."""
    if needs == "rows":
        return _row_batches(shape, size_mib), 0
    if needs == "batches":
        batches = inputs.Batches(folder, tuple(inputs.appended_batches(shape, size_mib)))
        return batches, batches.size_bytes
    path = inputs.file(folder, shape, size_mib)
    return (path if needs == "path" else path.read_bytes()), path.stat().st_size


def _row_batches(shape: str, size_mib: float) -> list[list[inputs.Row]]:
    batches = list(inputs.row_batches(shape))
    size = sum(len(row[2] or b"") for rows in batches for row in rows)
    return list(itertools.islice(itertools.cycle(batches), max(1, round(len(batches) * size_mib * inputs.MIB / size))))


def main() -> None:
    """Answer each line of JSON with one."""
    print(json.dumps({"is_compiled": IS_COMPILED}), flush=True)
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(run(folder, **job) if "operation_name" in job else path_of(folder, **job)), flush=True)


if __name__ == "__main__":
    main()
