# SPDX-License-Identifier: Apache-2.0
"""Faults of the catalogue on one, two or all of three replicas, alone or in pairs, and what salvage makes of them.

``python -m tests.tools.salvage.planted_everywhere [PAIRS]`` is the campaign: every kind on each number of replicas,
and then so many random pairs. It prints what is wrong, and counts.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.batches.batch import RecordBatch
from tests.golden_files import GOLDEN
from tests.planted.faults import FAULTS
from tests.planted.ground import SOURCES, Ground
from tests.tools.console import Outcome, run
from tests.tools.repair.repaired import LOG, batches, everything
from tests.tools.salvage.salvaged import apply, content, plan

REPLICAS: Final = {"dynamic": ("n2", "n3", "n101"), "static": ("n1", "n2", "n3")}
"""Three directories of a quorum by the name of its ground; n101 is a broker, the others are voters."""
REFUSED: Final = {
    "file-unreadable": "read failed",
    "segments-gone": "there is no log",
    "bootstrap-differs": "there is no log",  # It takes all logs away.
    "directory-of-other-cluster": "cluster.id is",
    "metadata-without-version": "none that sets metadata.version",
}
"""What nothing can be made of, if it is on all voters, with what is said; what cannot be read, in any case."""
MORE_UP_TO_DATE: Final = frozenset(
    {"voters-rewritten-to-fewer", "voters-rewritten-to-others", "replica-forked-above-all-snapshots"}
)
"""A replica has a later record, or a later epoch, which nobody contradicts: it wins, as it would win an election."""
FORK: Final = "replica-forked"
"""A replica has a later epoch, which a majority contradicts, if that is sound: beside another fault it may win."""
_FAILURES: Final = (LookupError, ValueError, OSError, StopIteration, AssertionError, RaftLogError)
"""How a kind says that a directory alone, or one with another fault, has no place for it."""


@attrs.frozen
class Planting:
    """A fault on some replicas.

    Attributes:
        kind: its name.
        nodes: where it is to be.
        seed: of the place; the same on each.
    """

    kind: str
    nodes: tuple[str, ...]
    seed: str


@attrs.frozen
class Outcomes:
    """What was found.

    Attributes:
        planted: how many faults were planted; some have no place in a directory alone.
        problems: what is wrong, in words.
        verdict: what salvage made of it, in a word.
    """

    planted: int
    problems: tuple[str, ...]
    verdict: str


def salvaged(ground: str, plantings: Sequence[Planting], path: Path) -> Outcomes:
    """Plant faults, salvage, and return what is wrong with the outcome."""
    golden = GOLDEN / SOURCES[ground]
    logs, touched = {}, set[str]()
    planted = 0
    for node in REPLICAS[ground]:
        root = path / node / ground
        shutil.copytree(golden / node, root / node)
        for each in plantings:
            if node in each.nodes and _is_planted(root, node, golden, each):
                touched.add(node)
                planted += 1
        logs[node] = root / node
    if not planted:
        return Outcomes(0, (), "no place")
    before = {node: everything(log) for node, log in logs.items()}
    planned = plan(*logs.values(), file=path / "plan")
    names = [each.kind for each in plantings]
    if planned.exit_code != 0:
        refusals = [] if _may_refuse(planned, names) else [f"refused: {planned.messages.strip()}"]
        return Outcomes(planted, tuple(refusals), "refused")
    made = apply(path / "plan", path / "new")
    if made.exit_code != 0:
        return Outcomes(planted, (f"not carried out: {made.messages.strip()}",), "failed")
    found = [f"{node} was changed" for node, log in logs.items() if everything(log) != before[node]]
    found += _problems(ground, names, logs, touched, path)
    plan_ = content(path / "plan")
    flawed = any(each["is_taken"] for each in plan_["flaws"])
    whole = "whole" if plan_["start_offset"] == 0 and not plan_["losses"] else "shorter"
    return Outcomes(planted, tuple(found), f"{whole}, with what all have" if flawed else whole)


def _is_planted(root: Path, node: str, golden: Path, planting: Planting) -> bool:
    """Plant a fault in a directory; if it has no place there, or the directory is gone, leave a copy that is sound."""
    spare = Path(shutil.copytree(root, root.parent / "spare"))
    try:
        FAULTS[planting.kind].plant(Ground(root, planting.seed))
        is_planted = (root / node / LOG).is_dir()
    except _FAILURES:
        is_planted = False
    if not is_planted:
        shutil.rmtree(root)
        shutil.copytree(spare, root)
    shutil.rmtree(spare)
    return is_planted


def _may_refuse(planned: Outcome, names: Sequence[str]) -> bool:
    reasons = [REFUSED[name] for name in names if name in REFUSED]
    return len(planned.complaints) == 1 and any(reason in planned.messages for reason in reasons)


def _problems(
    ground: str, names: Sequence[str], logs: Mapping[str, Path], touched: set[str], path: Path
) -> Iterator[str]:
    golden = {node: batches(GOLDEN / SOURCES[ground] / node) for node in logs}
    truth = max(golden.values(), key=_reach)
    plan_, found = content(path / "plan"), batches(path / "new")
    start, end = plan_["start_offset"], plan_["end_offset"]
    is_later = bool(MORE_UP_TO_DATE & set(names)) or (FORK in names and len(names) > 1)
    is_parted = any(not each["is_settled"] for each in plan_["conflicts"])
    if not is_later:
        yield from _foreign(found, truth, logs)
        whole = max((golden[node][-1].next_offset for node in logs if node not in touched), default=0)
        if end < whole and not (is_parted and len(names) > 1):  # The other fault may be that of the only snapshot.
            yield f"ends at {end}, and a sound replica at {whole}"
        if start > 0 and end <= whole and not is_parted:
            yield f"begins at {start}, though a sound replica begins at 0"
    told = {(each["rule"]) for each in plan_["flaws"] if each["is_taken"]}
    for each in run("verify", "--format", "jsonl", path / "new").of_kind("finding"):
        if each["severity"] in {"damaged", "data-loss"} and each["rule"] not in told:
            yield f"the plan does not say {each['rule']}"


def _foreign(found: Sequence[RecordBatch], truth: Sequence[RecordBatch], logs: Mapping[str, Path]) -> Iterator[str]:
    """Yield batches that no leader has written, unless no replica has another there, or two of three have it."""
    own = {batch.base_offset: bytes(batch.buffer) for batch in truth}
    held: dict[str, set[bytes]] = {}
    for batch in found:
        data = bytes(batch.buffer)
        if own.get(batch.base_offset) == data:
            continue
        held = held or {node: {bytes(each.buffer) for each in batches(log)} for node, log in logs.items()}
        holders = [node for node in logs if data in held[node]]
        rivals = [node for node in logs if own.get(batch.base_offset) in held[node]]
        if not holders or (rivals and len(holders) < 2):
            yield f"another batch at {batch.base_offset}, of {holders}, and {rivals} have that of the quorum"


def _reach(log: Sequence[RecordBatch]) -> tuple[int, int]:
    return (log[-1].partition_leader_epoch, log[-1].next_offset) if log else (-1, 0)


# What there is to try


def kinds(ground: str) -> list[str]:
    """The kinds of a ground."""
    return [name for name, fault in FAULTS.items() if ground in fault.grounds]


def single(ground: str, kind: str, count: int) -> tuple[Planting, ...]:
    """A fault on so many replicas, at the same place."""
    return (Planting(kind, REPLICAS[ground][:count] if count > 1 else REPLICAS[ground][1:2], kind),)


def pair(ground: str, seed: str) -> tuple[Planting, ...]:
    """Two kinds, each on some replicas, at other places."""
    chance = random.Random(seed)
    names = chance.sample([name for name in kinds(ground) if name not in REFUSED], 2)
    counts = [chance.choice([1, 1, 2, 3]) for _ in names]
    return tuple(
        Planting(name, tuple(sorted(chance.sample(REPLICAS[ground], count))), f"{seed} {name}")
        for name, count in zip(names, counts, strict=True)
    )


def _cases(pairs: int) -> Iterator[tuple[str, tuple[Planting, ...]]]:
    """Yield what the campaign tries, each with its ground."""
    for ground in REPLICAS:
        for count in (1, 2, 3):
            yield from ((ground, single(ground, kind, count)) for kind in kinds(ground))
    for number in range(pairs):
        ground = list(REPLICAS)[number % 2]
        yield ground, pair(ground, str(number))


def _campaign(pairs: int) -> int:
    counts, problems = Counter[str](), 0
    for ground, plantings in _cases(pairs):
        with tempfile.TemporaryDirectory() as directory:
            found = salvaged(ground, plantings, Path(directory))
        counts[f"{'pairs' if len(plantings) > 1 else 'single'}: {found.verdict}"] += 1
        for problem in found.problems:
            problems += 1
            print(ground, *plantings, problem, sep=" | ", flush=True)
    for verdict, count in sorted(counts.items()):
        print(f"{count:6,} {verdict}")
    print(f"{problems} problems")
    return min(problems, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="?", type=int, default=500, help="how many, after all kinds (default: 500)")
    sys.exit(_campaign(parser.parse_args().pairs))
