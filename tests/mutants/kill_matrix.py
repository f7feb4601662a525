# SPDX-License-Identifier: Apache-2.0
"""Tests the tests: each mutant must be killed by a test of the default tier (``make kill-matrix``).

First the named tests run as they are, and must pass. Then they run once for each mutant, in a process of its own, up to
the first failure. A mutant that crashes, as by a wrong number of arguments, has shown nothing. The matrix is printed;
the exit code is 1 if a mutant survives or crashes.
"""

import argparse
import atexit
import concurrent.futures
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from tests.mutants.catalogue import MUTANTS, VARIABLE
from tests.mutants.fork_server import LIMIT_SECONDS, ForkServer
from tests.mutants.of_kernel import PLANTED_KERNEL, planted_kernel
from tests.mutants.planting import Mutant

DEFAULT_TIER: Final = "not slow and not volume and not kafka and not packaging and not browser"
_FAILED: Final = re.compile(r"^FAILED (\S+)(?: - (\w+))?", re.MULTILINE)
SLIPS: Final = ("TypeError", "AttributeError", "NameError", "ImportError", "UnboundLocalError")
"""What a mutant raises that no longer fits the code around it: it dies, and no rule was tried."""
_PASSED, _SOME_FAILED = 0, 1
_TAIL: Final = 2000


@attrs.frozen
class Verdict:
    """The outcome of a mutant.

    Attributes:
        name: of the mutant, or of the run without one.
        killer: the first test that failed; None if none did.
        seconds: the duration.
        problem: why there is no verdict, such as a missing test; None if there is one.
    """

    name: str
    killer: str | None
    seconds: float
    problem: str | None = None

    def __str__(self) -> str:
        outcome = self.problem or (f"killed by {self.killer}" if self.killer else "SURVIVED")
        return f"{self.name:20} {self.seconds:5.1f} s  {outcome}"


def run_tests(tests: Iterable[str], name: str = "", more: Mapping[str, str] = MappingProxyType({})) -> Verdict:
    """Run some tests in a process of their own, with a mutant or as they are, up to the first that fails.

    Args:
        tests: their names.
        name: of the mutant.
        more: variables of the process's environment.
    """
    arguments = ["-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "-n", "0"]
    arguments += ["-q", "-x", "--no-cov", "--tb=line", "-m", DEFAULT_TIER, *tests]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # The server has imported Hypothesis before.
    # The same examples each time, and none that a mutant has left in a data base for those who come after it.
    environment = {VARIABLE: name, "HYPOTHESIS_PROFILE": "mutant", "COLUMNS": "400", **more}
    started = time.monotonic()
    ran = _server().run(arguments, environment)
    seconds, failed = time.monotonic() - started, _FAILED.search(ran.output)
    if ran.has_timed_out:
        return Verdict(name, None, seconds, f"not done after {LIMIT_SECONDS} s")
    if name and failed and failed[2] in SLIPS:
        return Verdict(name, None, seconds, f"falls over by itself, at {failed[1]}: {failed[2]}")
    if ran.exit_code == _SOME_FAILED and failed:
        return Verdict(name, failed[1], seconds)
    if ran.exit_code < 0:  # A wrong kernel need not stop at a wrong result.
        return Verdict(name, f"a crash ({signal.Signals(-ran.exit_code).name})", seconds)
    problem = None if ran.exit_code == _PASSED else f"no verdict: {ran.output[-_TAIL:]}"
    return Verdict(name, None, seconds, problem)


_SERVERS: Final = threading.local()


def _server() -> ForkServer:
    """Return the server of this thread."""
    if not hasattr(_SERVERS, "server"):
        _SERVERS.server = ForkServer()
        atexit.register(_SERVERS.server.close)
    server: ForkServer = _SERVERS.server
    return server


def judge(mutant: Mutant) -> Verdict:
    """Run the tests that should kill a mutant, one after the other, up to the one that does."""
    more, seconds = {PLANTED_KERNEL: planted_kernel()} if mutant.needs_compiler else {}, 0.0
    verdict = Verdict(mutant.name, None, seconds)
    for killer in mutant.killers:
        verdict = run_tests([killer], mutant.name, more)
        seconds += verdict.seconds
        if verdict.killer is not None or verdict.problem is not None:
            break
    return attrs.evolve(verdict, seconds=seconds)


def matrix(names: Sequence[str], processes: int) -> Iterator[Verdict]:
    """Yield the verdict on each mutant, in order; before them that of the tests as they are."""
    mutants = [MUTANTS[name] for name in names]
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        sound = pool.submit(run_tests, sorted({test for mutant in mutants for test in mutant.killers}))
        verdicts = pool.map(judge, mutants)
        yield sound.result()
        yield from verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.kill_matrix", description=__doc__)
    parser.add_argument("names", nargs="*", help="of mutants; all, if none is named")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in MUTANTS]
    if unknown:
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(MUTANTS)}")
    verdicts = matrix(options.names or list(MUTANTS), options.processes)
    sound = next(verdicts)
    is_sound = sound.killer is None and sound.problem is None
    print(f"without a mutant: {'all pass' if is_sound else sound.problem or f'{sound.killer} fails'}", flush=True)
    survivors = []
    for verdict in verdicts:
        print(verdict, flush=True)
        if verdict.killer is None:
            survivors.append(verdict.name)
    print(f"{len(survivors)} survive: {', '.join(survivors)}" if survivors else "none survives")
    return 0 if is_sound and not survivors else 1


if __name__ == "__main__":
    sys.exit(main())
