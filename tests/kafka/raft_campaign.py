# SPDX-License-Identifier: Apache-2.0
"""Runs many sequences of inputs through Kafka's raft client and raftlog's core, and sums up what came of them.

python -m tests.kafka.raft_campaign --seeds 0..4999           two processes, two JVMs
python -m tests.kafka.raft_campaign --seeds 17                replays one sequence, and prints its last steps
python -m tests.kafka.raft_campaign --seeds 0..999 --coverage  which branches of Kafka's classes were reached
"""

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import attrs

from raftlog.records.messages.raft.error_codes import ErrorCode
from tests.kafka import raft_coverage
from tests.kafka.raft_both_replicas import DisagreementError, Outcome
from tests.kafka.raft_oracle import RaftOracle
from tests.kafka.raft_sequences import SideBySide

INPUTS = 40
"""How many inputs a sequence has, unless Kafka's client dies of one."""

PROCESSES = 2
_MAX_DISAGREEMENTS = 20
_SHOWN_STEPS = 14


@attrs.define
class Figures:
    """What came of many sequences.

    Attributes:
        sequences: how many ran.
        steps: how many inputs both sides were given.
        inputs: how often each kind of input was given.
        roles: how often Kafka was in each role after an input.
        errors: how often each error code was in a response of the replica.
        fatal: how often Kafka's client died, by a part of the message.
        disagreements: the seed and the text of each, or of an exception; a share of the seeds ends after 20 of them.
    """

    sequences: int = 0
    steps: int = 0
    inputs: Counter[str] = attrs.field(factory=Counter)
    roles: Counter[str] = attrs.field(factory=Counter)
    errors: Counter[int] = attrs.field(factory=Counter)
    fatal: Counter[str] = attrs.field(factory=Counter)
    disagreements: list[tuple[int, str]] = attrs.field(factory=list)

    def add(self, other: "Figures | Outcome") -> None:
        """Add the figures of another share of the sequences, or of one sequence."""
        self.steps += other.steps
        self.inputs += other.inputs
        self.roles += other.roles
        self.errors += other.errors
        if isinstance(other, Figures):
            self.sequences += other.sequences
            self.fatal += other.fatal
            self.disagreements += other.disagreements
        else:
            self.sequences += 1
            self.fatal.update([other.fatal] if other.fatal else [])

    def __str__(self) -> str:
        """Return the figures as lines of text."""
        lines = [f"{self.sequences} sequences, {self.steps} steps, {len(self.disagreements)} disagreements"]
        named = {ErrorCode(code).name if code in set(ErrorCode) else str(code): n for code, n in self.errors.items()}
        kinds = {"inputs": self.inputs, "roles": self.roles, "errors": Counter(named), "Kafka died": self.fatal}
        for name, counts in kinds.items():
            lines.append(f"  {name}: " + ", ".join(f"{key} {count:,}" for key, count in counts.most_common()))
        return "\n".join(lines)


def run_share(seeds: Sequence[int], inputs: int, coverage: Path | None) -> Figures:
    """Run sequences one after the other, with one JVM.

    Args:
        seeds: of the sequences.
        inputs: of each sequence.
        coverage: a file for what JaCoCo notes of the JVM, or None.
    """
    figures = Figures()
    with RaftOracle(coverage) as oracle:
        for seed in seeds:
            try:
                figures.add(SideBySide(oracle, seed).run(inputs))
            except DisagreementError as error:
                figures.disagreements.append((seed, str(error)))
            except Exception:
                figures.disagreements.append((seed, traceback.format_exc()))
            if len(figures.disagreements) == _MAX_DISAGREEMENTS:
                break
    return figures


def run_campaign(seeds: Sequence[int], inputs: int, *, processes: int, coverage: Path | None = None) -> Figures:
    """Run sequences in several processes, each of which has a JVM.

    Args:
        seeds: of the sequences.
        inputs: of each sequence.
        processes: how many.
        coverage: a folder for what JaCoCo notes of the JVMs, or None.
    """
    count = min(processes, len(seeds))
    shares = [seeds[index::count] for index in range(count)]
    files = [None if coverage is None else coverage / f"{index}.exec" for index in range(count)]
    if count == 1:
        return run_share(seeds, inputs, files[0])
    figures = Figures()
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        for share in pool.map(run_share, shares, [inputs] * count, files):
            figures.add(share)
    return figures


def shown_disagreement(seed: int, text: str, inputs: int = INPUTS) -> str:
    """Return the last steps of a disagreement, and the command that replays it."""
    lines = text.splitlines()
    return "\n".join(
        [
            f"seed {seed}: replay with",
            f"    python -m tests.kafka.raft_campaign --seeds {seed} --inputs {inputs}",
            *(f"  {line}" for line in lines[-_SHOWN_STEPS:]),
        ]
    )


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


@contextmanager
def _coverage_folder(*, is_wanted: bool) -> Iterator[Path | None]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) if is_wanted else None


def main() -> int:
    """Run the sequences that the arguments name; return 1 if there was a disagreement."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.raft_campaign", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=_seeds, default=range(5_000), metavar="FIRST..LAST", help="inclusive")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="of each sequence")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--coverage", action="store_true", help="print which branches of Kafka's classes were reached")
    arguments = parser.parse_args()
    with _coverage_folder(is_wanted=arguments.coverage) as folder:
        figures = run_campaign(arguments.seeds, arguments.inputs, processes=arguments.processes, coverage=folder)
        print(figures)
        if folder is not None:
            print(raft_coverage.report(folder))
    for seed, text in figures.disagreements:
        print(shown_disagreement(seed, text, arguments.inputs))
    return bool(figures.disagreements)


if __name__ == "__main__":
    sys.exit(main())
