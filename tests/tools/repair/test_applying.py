# SPDX-License-Identifier: Apache-2.0
"""Making the directory of a repair: all of it or nothing, whatever fails, and at which operation."""

import os
from pathlib import Path

import pytest

from raftlog.errors import AlreadyFormattedError, RepairRefusedError
from raftlog.file_system import join
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair import rewrite_voters
from raftlog.tools.repair.applying import TEMPORARY_SUFFIX, make_directory
from tests.tools.console import Outcome
from tests.tools.repair.failing_disk import FailingDisk, Failure, check_all_or_nothing, each_failure
from tests.tools.repair.repaired import apply, copied, plan


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A plan, beside the quorum that it is of."""
    assert plan(copied(tmp_path) / "n3", file=tmp_path / "plan").exit_code == 0
    return tmp_path / "plan"


@each_failure  # The slow ones: everywhere.
def test_a_failure_at_any_operation_leaves_nothing(
    failure: Failure, exit_code: int, stride: int, planned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the last operation has succeeded, nothing has the final name, nothing else stays, and sources are whole."""

    def apply_on(disk: FailingDisk, new: Path) -> Outcome:
        monkeypatch.setattr(rewrite_voters, "LocalFileSystem", lambda: disk)
        return apply(planned, new)

    check_all_or_nothing(tmp_path, failure, exit_code, stride, apply_on)


def test_what_the_review_refuses_is_removed(tmp_path: Path) -> None:
    """The review sees the whole directory under another name, and what it refuses never gets the final one."""
    target = str(tmp_path / "new")
    seen = []

    def build(directory: str) -> None:
        Path(directory, "below").mkdir()
        Path(directory, "below", "file").write_bytes(b"x")

    def refuse(directory: str) -> None:
        seen.append(directory)
        assert Path(directory, "below", "file").read_bytes() == b"x"
        assert not Path(target).exists()
        raise RepairRefusedError("no")

    with pytest.raises(RepairRefusedError, match="no"):
        make_directory(LocalFileSystem(), target, build, refuse)
    assert seen[0].startswith(f"{target}.")
    assert seen[0].endswith(TEMPORARY_SUFFIX)
    assert list(tmp_path.iterdir()) == []
    assert make_directory(LocalFileSystem(), target, build, lambda directory: directory[-4:]) == "part"
    assert Path(target, "below", "file").read_bytes() == b"x"


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Even an empty directory, which a rename would replace."""
    target = str(tmp_path / "new")
    with pytest.raises(AlreadyFormattedError, match="has appeared meanwhile"):
        make_directory(LocalFileSystem(), target, lambda _: None, lambda _: os.mkdir(target))
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_all_is_synced_before_it_is_reviewed(tmp_path: Path) -> None:
    """Each file, each directory, and in the end the directory that has the new name."""
    synced: list[str] = []

    class Watching(LocalFileSystem):
        def sync_directory(self, directory: str) -> None:
            synced.append(directory)
            super().sync_directory(directory)

    def build(directory: str) -> None:
        Path(directory, "below").mkdir()

    def review(directory: str) -> str:
        assert synced == [join(directory, "below"), directory]
        return directory

    temporary = make_directory(Watching(), str(tmp_path / "new"), build, review)
    assert synced == [f"{temporary}/below", temporary, str(tmp_path)]
