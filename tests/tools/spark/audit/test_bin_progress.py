# SPDX-License-Identifier: Apache-2.0
"""The progress of workers is shown while they work, if there is a terminal."""

import threading
from pathlib import Path

import attrs
import pytest

from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.spark.audit import bin_progress
from raftlog.tools.spark.audit.bin_progress import watching_bins
from raftlog.tools.spark.audit.evidence_files import evidence_path
from tests.hang_limit import HANG_S


@attrs.define
class _Shown(RunProgress):
    """Records the reported progress."""

    is_shown: bool = True
    sizes: list[int] = attrs.field(factory=list)
    news: threading.Condition = attrs.field(factory=threading.Condition)

    def passed(self, size_bytes: int) -> None:
        with self.news:
            self.sizes.append(size_bytes)
            self.news.notify_all()

    def wait_for(self, size_bytes: int) -> None:
        with self.news:
            assert self.news.wait_for(lambda: sum(self.sizes) == size_bytes, timeout=HANG_S), self.sizes


def test_bins_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bin counts as soon as its evidence is there, and once; those of other runs do not."""
    monkeypatch.setattr(bin_progress, "_INTERVAL_SECONDS", 0.01)
    progress = _Shown()
    evidence_path(tmp_path, "another", 0).write_bytes(b"")
    with watching_bins(progress, tmp_path, "run", [3, 50, 700]):
        evidence_path(tmp_path, "run", 2).write_bytes(b"")
        progress.wait_for(700)
        evidence_path(tmp_path, "run", 0).write_bytes(b"")
        progress.wait_for(703)
    told = list(progress.sizes)
    evidence_path(tmp_path, "run", 1).write_bytes(b"")

    assert [size for size in told if size] == [700, 3]
    assert progress.sizes == told


def test_without_a_terminal_nothing_is_shown(tmp_path: Path) -> None:
    """Where no bar is shown, the folder is not looked at."""
    progress = _Shown(is_shown=False)
    with watching_bins(progress, tmp_path / "nowhere", "run", [3]):
        assert "watches bins" not in {thread.name for thread in threading.enumerate()}
    assert progress.sizes == []
