# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault of the catalogue, planted in a quorum of a real Kafka whose other directories are sound."""

import itertools
import random
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


def check(names: Sequence[str], ground: str, tmp_path: Path) -> None:
    """Plant faults, and salvage all directories: no byte is of a faulty batch, and nothing is lost."""
    golden, root = GOLDEN / SOURCES[ground], tmp_path / ground
    nodes = sorted(each.name for each in golden.iterdir() if (each / LOG).is_dir())
    truth = max((batches(golden / node) for node in nodes), key=_reach)
    CleanCopy(ground, root)
    for name in names:
        FAULTS[name].plant(Ground(root, name))
        put_back(root)  # Where the fault was planted in one directory alone.
        for node in nodes:
            if not (root / node).is_dir():
                shutil.copytree(golden / node, root / node)
    before = everything(root)

    planned = plan(*(root / node for node in nodes), file=tmp_path / "plan")
    if planned.exit_code != 0:
        reasons = [REFUSED[name] for name in names if name in REFUSED]
        reasons += ["two lineages are proven"] if len(names) > 1 else []  # Both faults forge what proves something.
        assert any(reason in planned.messages for reason in reasons), planned.messages
        return
    assert not REFUSED.keys() & set(names)
    made = apply(tmp_path / "plan", tmp_path / "new")
    assert made.exit_code == 0, made.messages

    assert everything(root) == before
    found, start = batches(tmp_path / "new"), content(tmp_path / "plan")["start_offset"]
    if not MORE_UP_TO_DATE & set(names):
        assert found == [each for each in truth if each.base_offset >= start]
        assert start == 0 or AFTER_A_HOLE & set(names) or len(names) > 1


def _reach(log: Sequence[RecordBatch]) -> tuple[int, int]:
    return (log[-1].partition_leader_epoch, log[-1].next_offset) if log else (-1, 0)


@pytest.mark.parametrize(("name", "ground"), KINDS[::9], ids=" on ".join)
def test_a_fault_of_one_replica_does_no_harm(name: str, ground: str, tmp_path: Path) -> None:
    """Some of the kinds: the result is the whole log of the quorum."""
    check([name], ground, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ground"), KINDS, ids=" on ".join)
def test_no_fault_of_one_replica_does_harm(name: str, ground: str, tmp_path: Path) -> None:
    """All kinds."""
    check([name], ground, tmp_path)


PAIRS: Final = [
    pair
    for pair in itertools.combinations([name for name, ground in KINDS if ground == "dynamic"], 2)
    if not {"bootstrap-differs", "file-unreadable"} & set(pair)
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", random.Random(21).sample(PAIRS, 60), ids=" and ".join)
def test_two_faults_at_once_do_no_harm(pair: tuple[str, str], tmp_path: Path) -> None:
    """Some pairs, on one or two of five directories. A conflict that no majority settles is passed by a snapshot."""
    check(pair, "dynamic", tmp_path)
