# SPDX-License-Identifier: Apache-2.0
"""Random damage to the directories of a real quorum: what is salvaged is a part of its log, and audits clean."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from tests.tools.console import run
from tests.tools.repair.repaired import DYNAMIC, LOG, batches, everything
from tests.tools.salvage.salvaged import apply, content, plan

NODES: Final = ("n2", "n3", "n101")
TRUTH: Final[Sequence[RecordBatch]] = batches(DYNAMIC / "n3")
KINDS: Final = ("flip", "flip", "flip", "zeros", "cut", "lose", "shift")

Damage = tuple[int, int, str, float, int]
"""Which node, which of its files, what, where in it, and how much."""

DAMAGE = st.tuples(
    st.integers(0, 2),
    st.integers(0, 11),
    st.sampled_from(KINDS),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 999),
)


def files_of(directory: Path) -> list[Path]:
    """The files of a node that hold batches, or speak of them."""
    kinds = (".log", ".checkpoint", "leader-epoch-checkpoint", "quorum-state")
    found = sorted(path for path in (directory / LOG).iterdir() if path.name.endswith(kinds))
    return [*found, *directory.glob("meta.properties")]


def harm(directory: Path, number: int, kind: str, where: float, amount: int) -> None:
    """Damage a file: a bit, a range of zeros, its end, the whole of it, or bytes that are missing inside."""
    found = files_of(directory)
    if not found:
        return
    path = found[number % len(found)]
    data = bytearray(path.read_bytes())
    position = int(where * len(data))
    path.chmod(0o600)
    match kind:
        case "lose":
            path.unlink()
            return
        case "cut":
            del data[position:]
        case "zeros":
            data[position : position + amount] = bytes(len(data[position : position + amount]))
        case "shift":
            del data[position : position + 1 + amount % 100]
        case _ if data:
            data[position] ^= 1 << amount % 8
    path.write_bytes(data)


def check(damage: Sequence[Damage]) -> None:
    """Damage copies, salvage, and compare with what the quorum had."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        nodes = [Path(shutil.copytree(DYNAMIC / node, path / "quorum" / node)) for node in NODES]
        for node, number, kind, where, amount in damage:
            harm(nodes[node], number, kind, where, amount)
        unharmed = [number for number in range(3) if number not in {each[0] for each in damage}]
        before = everything(path)
        planned = plan(*nodes, file=path / "plan", options=("--node-id", "3"))
        if planned.exit_code != 0:
            assert unharmed == [] or "cluster.id is" in planned.messages
            assert len(planned.complaints) == 1
            return
        made = apply(path / "plan", path / "new")
        assert made.exit_code == 0, made.messages

        found = batches(path / "new")
        start, end = content(path / "plan")["start_offset"], content(path / "plan")["end_offset"]
        expected = [each for each in TRUTH if start <= each.base_offset and each.next_offset <= end]
        assert found == expected
        assert end in {each.next_offset for each in TRUTH}
        assert end >= max((batches(DYNAMIC / NODES[number])[-1].next_offset for number in unharmed), default=0)
        check_snapshots(path / "new", start)
        severities = {each["severity"] for each in run("verify", "--format", "jsonl", path / "new").of_kind("finding")}
        assert severities <= {"suspicious", "harmless"}
        assert {name: data for name, data in everything(path).items() if name in before} == before


def check_snapshots(made: Path, start: int) -> None:
    """Check that each snapshot is one of the quorum's, and that one stands for what is below the log."""
    ends = []
    for path in (made / LOG).glob("*.checkpoint"):
        same = [each for node in NODES if (each := DYNAMIC / node / LOG / path.name).exists()]
        assert path.read_bytes() in [each.read_bytes() for each in same]
        ends.append(int(path.name[:20]))
    assert start == 0 or max(ends) >= start


@settings(deadline=None, max_examples=25)
@given(st.lists(DAMAGE, max_size=6))
@example([(0, 3, "lose", 0.0, 0), (1, 4, "lose", 0.0, 0), (2, 2, "lose", 0.0, 0)])
def test_what_is_salvaged_is_a_part_of_the_log(damage: list[Damage]) -> None:
    """Up to six faults on one, two or three replicas."""
    check(damage)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(DAMAGE, min_size=3, max_size=10))
def test_what_is_salvaged_is_a_part_of_the_log_many_times(damage: list[Damage]) -> None:
    """The same, many times, with more faults."""
    check(damage)
