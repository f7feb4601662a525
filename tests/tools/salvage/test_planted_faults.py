# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault of the catalogue, planted in a quorum of a real Kafka whose other directories are sound."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from raftlog.records.batches.batch import RecordBatch
from tests.golden_files import GOLDEN
from tests.planted.faults import FAULTS
from tests.planted.ground import SOURCES, CleanCopy, Ground, put_back
from tests.tools.repair.repaired import LOG, batches, everything
from tests.tools.salvage.planted_everywhere import MORE_UP_TO_DATE, pair, salvaged, single
from tests.tools.salvage.salvaged import apply, content, plan

GROUNDS: Final = ("dynamic", "static")
KINDS: Final = [(name, ground) for name, fault in FAULTS.items() for ground in GROUNDS if ground in fault.grounds]
EVERYWHERE: Final = [
    pytest.param(name, ground, 1 + number % 3, id=f"{name} on {1 + number % 3} of {ground}")
    for number, (name, grounds) in enumerate(
        (name, [each for each in GROUNDS if each in fault.grounds]) for name, fault in FAULTS.items()
    )
    for ground in grounds[number % 2 :][:1] or grounds[:1]
]
"""Each kind once, those that both sorts of quorums can have in one or the other in turn: the campaign tries all."""
REFUSED: Final = {
    "file-unreadable": "read failed",
    "directory-of-other-cluster": "cluster.id is",
    "bootstrap-differs": "a snapshot alone is not enough",  # It takes all logs away.
}
"""What nothing can be made of, with what is said."""
AFTER_A_HOLE: Final = frozenset({"record-count-wrong-on-all-replicas"})
"""No replica has a batch whole: the log may begin after it."""


def check(name: str, ground: str, tmp_path: Path) -> None:
    """Plant a fault, and salvage all directories: no byte is of a faulty batch, and nothing is lost."""
    golden, root = GOLDEN / SOURCES[ground], tmp_path / ground
    nodes = sorted(each.name for each in golden.iterdir() if (each / LOG).is_dir())
    truth = max((batches(golden / node) for node in nodes), key=_reach)
    CleanCopy(ground, root)
    FAULTS[name].plant(Ground(root, name))
    put_back(root)  # Where the fault was planted in one directory alone.
    for node in nodes:
        if not (root / node).is_dir():
            shutil.copytree(golden / node, root / node)
    before = everything(root)

    planned = plan(*(root / node for node in nodes), file=tmp_path / "plan")
    if planned.exit_code != 0:
        assert name in REFUSED
        assert REFUSED[name] in planned.messages
        return
    assert name not in REFUSED
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert made.exit_code == 0, made.messages

    assert everything(root) == before
    found, start = batches(tmp_path / "new"), content(tmp_path / "plan")["start_offset"]
    if name in MORE_UP_TO_DATE:
        assert _reach(found) > _reach(truth)
    else:
        assert found == [each for each in truth if each.base_offset >= start]
        assert start == 0 or name in AFTER_A_HOLE


def _reach(log: Sequence[RecordBatch]) -> tuple[int, int]:
    return (log[-1].partition_leader_epoch, log[-1].next_offset) if log else (-1, 0)


@pytest.mark.parametrize(("name", "ground"), KINDS[::9], ids=" on ".join)
def test_a_fault_of_one_replica_does_no_harm(name: str, ground: str, tmp_path: Path) -> None:
    """Some of the kinds: the result is the whole log of the quorum."""
    check(name, ground, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ground", "count"), EVERYWHERE)
def test_no_fault_of_some_replicas_does_harm(name: str, ground: str, count: int, tmp_path: Path) -> None:
    """Kinds on one, two or all of three replicas; those that are about several replicas, as they are planted."""
    found = salvaged(ground, single(ground, name, count), tmp_path)
    assert found.problems == ()
    if found.planted == 0:
        check(name, ground, tmp_path / "spread")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(30))
def test_two_faults_at_once_do_no_harm(number: int, tmp_path: Path) -> None:
    """Some pairs of kinds, each on one, two or all of three replicas, at other places."""
    ground = GROUNDS[number % 2]
    assert salvaged(ground, pair(ground, str(number)), tmp_path).problems == ()
