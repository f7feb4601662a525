# SPDX-License-Identifier: Apache-2.0
"""Making a salvaged directory: all of it or nothing, whatever fails, and at which operation."""

from pathlib import Path

import pytest

from raftlog.tools.salvage import salvage
from raftlog.tools.salvage.building import _segments
from raftlog.tools.salvage.merging import Piece
from tests.tools.console import Outcome
from tests.tools.repair.failing_disk import FailingDisk, Failure, check_all_or_nothing, each_failure
from tests.tools.salvage.salvaged import apply, plan, spoil


class CountedPiece(Piece):
    """A piece that counts how often its size is asked for."""

    asked = 0

    @property
    def size_bytes(self) -> int:
        """As it is."""
        CountedPiece.asked += 1
        return super().size_bytes


def test_segments_are_cut_in_one_pass() -> None:
    """At most 1 GiB in each, and one of a source begins another; the work grows with the pieces, not their square."""
    size = 1 << 20
    pieces = [
        CountedPiece(
            number % 2, "0.log", 0 if number == 3000 else size, size + (0 if number == 3000 else size), 0, 1, 1
        )
        for number in range(5000)
    ]
    found = [segment for _, segment in _segments(pieces, 0)]
    assert [len(segment) for segment in found] == [1024, 1024, 952, 1024, 976]
    assert [piece for segment in found for piece in segment] == pieces
    assert CountedPiece.asked <= 2 * len(pieces) + len(found)
    assert [(start, segment) for start, segment in _segments([], 7)] == [(7, [])]


@each_failure  # The slow ones: everywhere.
def test_a_failure_at_any_operation_leaves_nothing(
    failure: Failure, exit_code: int, stride: int, quorum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the last operation has succeeded, nothing has the final name, nothing else stays, and sources are whole."""
    spoil(quorum / "n3", 20)
    planned = plan(quorum / "n3", quorum / "n101", file=tmp_path / "plan", options=("--node-id", "3"))
    assert planned.exit_code == 0, planned.messages

    def apply_on(disk: FailingDisk, new: Path) -> Outcome:
        monkeypatch.setattr(salvage, "LocalFileSystem", lambda: disk)
        return apply(tmp_path / "plan", new)

    check_all_or_nothing(tmp_path, failure, exit_code, stride, apply_on)
