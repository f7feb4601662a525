# SPDX-License-Identifier: Apache-2.0
"""Files on their way in or out are finished or taken back; all others stay."""

import pytest

from raftlog.storage.recovery.directory_settling import settle_names
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

LOG = f"{0:020}.log"


def settled(*names: str) -> tuple[list[str], set[ActionKind]]:
    """Settle a directory of such files; return the names that are left, and what was done."""
    file_system = MemoryFileSystem()
    file_system.make_directory("log")
    for name in names:
        file_system.open(f"log/{name}", create=True).append(name.encode())
    kinds = {action.kind for action in settle_names(file_system, "log")}
    left = list(file_system.list("log"))
    assert list(settle_names(file_system, "log")) == []
    return left, kinds


@pytest.mark.parametrize(
    "name",
    [
        f"{0:020}.log.deleted",
        f"{0:020}.index.deleted",
        f"{7:020}.log.cleaned",
        f"{7:020}.timeindex",
        f"{7:020}.txnindex",
        f"{7:020}-{1:010}-123.checkpoint.part",
        f"{7:020}-{1:010}.checkpoint.deleted",
        "leader-epoch-checkpoint.tmp",
        "quorum-state.tmp",
        "raftlog-recovery-point.tmp",
        f"{0:020}.log.damaged-12.tmp",
        f"{0:020}.log.damaged-12-1.tmp",
        f"{0:020}.log.torn-12.tmp",
    ],
)
def test_unfinished_files_are_removed(name: str) -> None:
    """Files that are unfinished, being deleted, or without a segment are removed."""
    assert settled(LOG, name) == ([LOG], {ActionKind.REMOVED})


@pytest.mark.parametrize(
    "name",
    [
        f"{0:020}.index",
        f"{7:020}.snapshot",
        f"{7:020}-{1:010}.checkpoint",
        "leader-epoch-checkpoint",
        "raftlog-recovery-point",
        "raftlog-flush-mark",
        f"{0:020}.log.damaged-12",
        f"{0:020}.log.torn-12",
        f"{0:020}.log.superseded-{7:020}-{1:010}",
        f"{3:020}-{1:010}.checkpoint.superseded-{7:020}-{1:010}",
        "notes.tmp",
        "somebody-elses-file",
    ],
)
def test_all_else_stays(name: str) -> None:
    """Complete files, and files of others, are not touched."""
    assert settled(LOG, name) == (sorted([LOG, name]), set())


def test_a_swap_file_gets_its_place() -> None:
    """A file that was complete and on its way in takes its name, unless it came with one that was not."""
    assert settled(f"{3:020}.log.swap") == ([f"{3:020}.log"], {ActionKind.RENAMED})
    left, kinds = settled(f"{1:020}.log.swap", f"{3:020}.log", f"{3:020}.log.cleaned", f"{3:020}.log.swap")
    assert (left, kinds) == ([f"{1:020}.log", f"{3:020}.log"], {ActionKind.RENAMED, ActionKind.REMOVED})


def test_a_swap_file_takes_no_segment_with_it() -> None:
    """The segment whose name it takes is kept; without one, it is not removed for the sake of other segments."""
    left, kinds = settled(f"{3:020}.log", f"{3:020}.log.swap")
    assert (left, kinds) == (
        [f"{3:020}.log", f"{3:020}.log.damaged-0"],
        {ActionKind.RENAMED, ActionKind.SET_ASIDE},
    )
    left, kinds = settled(f"{3:020}.log.cleaned", f"{3:020}.log.swap")
    assert (left, kinds) == ([f"{3:020}.log"], {ActionKind.RENAMED, ActionKind.REMOVED})


@pytest.mark.parametrize(
    ("swap", "cleaned", "is_kept"),
    [
        (0, (), True),
        (0, (0,), False),
        (0, (1,), True),
        (1, (0,), False),
        (19, (20,), True),
        (20, (20,), False),
        (21, (20,), False),
        (25, (20, 30), False),
        (19, (20, 30), True),
    ],
)
def test_batches_after_an_unfinished_one_are_dropped(swap: int, cleaned: tuple[int, ...], is_kept: bool) -> None:
    """It takes a segment's place only if nothing at or below it is unfinished; offset 0 is an offset too."""
    names = [f"{swap:020}.log.swap", *(f"{each:020}.log.cleaned" for each in cleaned)]
    left, kinds = settled(f"{swap:020}.log", *names)
    assert left == [f"{swap:020}.log", *[f"{swap:020}.log.damaged-0"] * is_kept]
    assert (ActionKind.RENAMED in kinds) == is_kept
    assert (ActionKind.REMOVED in kinds) == (not is_kept or bool(cleaned))
