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
from tests.planted.ground import SOURCES, CleanCopy, Ground
from tests.tools.repair.repaired import LOG, batches, everything
from tests.tools.salvage.salvaged import apply, content, plan

GROUNDS: Final = ("dynamic", "static")
KINDS: Final = [(name, ground) for name, fault in FAULTS.items() for ground in GROUNDS if ground in fault.grounds]
REFUSED: Final = {
    "file-unreadable": "read failed",
    "directory-of-other-cluster": "cluster.id is",
    "bootstrap-differs": "a snapshot alone is not enough",  # It takes all logs away.
}
"""What nothing can be made of, with what is said."""
MORE_UP_TO_DATE: Final = frozenset(
    {"voters-rewritten-to-fewer", "voters-rewritten-to-others", "replica-forked-above-all-snapshots"}
)
"""One replica has a later record, or a later epoch, which nobody contradicts: it wins, as it would win an election."""
AFTER_A_HOLE: Final = frozenset({"record-count-wrong-on-all-replicas"})
"""No replica has a batch whole: the log may begin after it."""


def check(name: str, ground: str, tmp_path: Path) -> None:
    """Plant a fault, and salvage all directories: it is as if the faulty one had not been there."""
    golden, root = GOLDEN / SOURCES[ground], tmp_path / ground
    nodes = sorted(each.name for each in golden.iterdir() if (each / LOG).is_dir())
    truth = max((batches(golden / node) for node in nodes), key=_reach)
    CleanCopy(ground, root)
    FAULTS[name].plant(Ground(root, name))
    for node in nodes:
        if not (root / node).is_dir():  # The fault was planted in one directory alone.
            shutil.copytree(golden / node, root / node)
    before = everything(root)

    planned = plan(*(root / node for node in nodes), file=tmp_path / "plan")
    if name in REFUSED:
        assert planned.exit_code != 0
        assert REFUSED[name] in planned.messages
        return
    assert planned.exit_code == 0, planned.messages
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert made.exit_code == 0, made.messages

    assert everything(root) == before
    found, start = batches(tmp_path / "new"), content(tmp_path / "plan")["start_offset"]
    if name not in MORE_UP_TO_DATE:
        assert found == [each for each in truth if each.base_offset >= start]
        assert start == 0 or name in AFTER_A_HOLE


def _reach(log: Sequence[RecordBatch]) -> tuple[int, int]:
    return (log[-1].partition_leader_epoch, log[-1].next_offset) if log else (-1, 0)


@pytest.mark.parametrize(("name", "ground"), KINDS[::9], ids=" on ".join)
def test_a_fault_of_one_replica_does_no_harm(name: str, ground: str, tmp_path: Path) -> None:
    """Some of the kinds: the result is the whole log of the quorum."""
    check(name, ground, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ground"), KINDS, ids=" on ".join)
def test_no_fault_of_one_replica_does_harm(name: str, ground: str, tmp_path: Path) -> None:
    """All kinds."""
    check(name, ground, tmp_path)
