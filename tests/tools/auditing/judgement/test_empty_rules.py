# SPDX-License-Identifier: Apache-2.0
"""Partitions without a segment, and what is left of them."""

from pathlib import Path

import pytest

from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import write_leader_epoch_checkpoint
from raftlog.records.rules import Severity
from raftlog.storage.recovery.recovery_point import RecoveryPoint
from raftlog.tools.auditing.run.run import audit

EPOCHS = "leader-epoch-checkpoint"
PRODUCERS = "00000000000000000300.snapshot"
KRAFT_SNAPSHOT = "00000000000000000300-0000000002.checkpoint"
DURABLE = RecoveryPoint(300, generation=1, epochs=(EpochEntry(2, 0),)).encode()


def epochs(start_offsets: dict[int, int]) -> bytes:
    """Return a leader-epoch-checkpoint: the start offset of each epoch."""
    return write_leader_epoch_checkpoint(EpochEntry(epoch, start) for epoch, start in start_offsets.items())


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, ("directory-empty", None), id="nothing"),
        pytest.param({"partition.metadata": None}, ("directory-empty", None), id="nothing that tells"),
        pytest.param({EPOCHS: epochs({2: 0})}, ("directory-empty", None), id="an epoch without records"),
        pytest.param({EPOCHS: epochs({1: 0, 2: 40})}, ("segments-gone", 0), id="an epoch behind records"),
        pytest.param({PRODUCERS: None}, ("segments-gone", 0), id="a producer snapshot"),
        pytest.param({"raftlog-recovery-point": DURABLE}, ("log-end-durable", 0), id="a recovery point"),
        pytest.param({PRODUCERS: None, "quorum-state": None}, ("segments-gone", 0), id="of raft"),
        pytest.param({"00000000000000000007.index": None, PRODUCERS: None}, ("index-orphan", None), id="an index"),
    ],
)
def test_remaining_records(tmp_path: Path, files: dict[str, bytes | None], expected: tuple[str, int | None]) -> None:
    """A proof that there were records makes it data loss; it is one finding, at the directory."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    for name, data in files.items():
        (partition / name).write_bytes(data or b"")
    found = [finding for judged in audit([str(tmp_path)], 1) for finding in judged.findings]
    other = {"file-format", "file-crc", "epochs-beyond"}  # Of what the files say, which stand here by their names.
    of_logs = [(each.rule, each.offset) for each in found if each.rule not in other]
    assert of_logs == [expected]
    assert expected[0] == "index-orphan" or str(partition) in {finding.path for finding in found}
    lost = {"segments-gone", "log-end-durable"}
    assert (expected[0] in lost) == any(each.severity is Severity.DATA_LOSS for each in found)


def test_a_snapshot_has_what_was_there(tmp_path: Path) -> None:
    """Records that a KRaft snapshot covers are not lost with their segments; those after it are."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / KRAFT_SNAPSHOT).write_bytes(b"")
    (partition / EPOCHS).write_bytes(epochs({1: 0, 2: 300}))

    def found() -> list[tuple[str, int | None, str]]:
        judged = (finding for each in audit([str(tmp_path)], 1) for finding in each.findings)
        return [(each.rule, each.offset, each.reason) for each in judged if each.path == str(partition)]

    ((rule, offset, reason),) = found()
    assert (rule, offset) == ("directory-empty", None)
    assert "300" in reason
    (partition / EPOCHS).write_bytes(epochs({1: 0, 2: 301}))
    ((rule, offset, reason),) = found()
    assert (rule, offset) == ("segments-gone", 300)
    assert "301" in reason
