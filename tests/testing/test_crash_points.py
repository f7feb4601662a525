# SPDX-License-Identifier: Apache-2.0
"""The enumeration of crashes: it finds what is unsafe, finds nothing in what is safe, and counts what it tried."""

from collections.abc import Callable
from typing import Any

import pytest

from raftlog.errors import StorageError
from raftlog.file_system import FileSystem, read_file, replace_file
from raftlog.testing.crash_points import CrashCounts, Promise, enumerate_crashes
from raftlog.testing.file_system.crash_states import CrashModel
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.work_counts import calls_made

OLD, NEW = b"old" * 300, b"new!" * 300


def start() -> MemoryFileSystem:
    """Return a disk with the old file."""
    return MemoryFileSystem((("d", None, False), ("d/vote", OLD, False)))


def replacement(replace: Callable[[FileSystem, str, bytes], None]) -> Callable[[MemoryFileSystem, Promise], None]:
    """Return a scenario that replaces the file in some way."""

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        promise(frozenset({OLD, NEW}))
        replace(files, "d/vote", NEW)
        promise(frozenset({NEW}))

    return scenario


def one_of_the_promised(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> None:
    """Check that the file is one of those that were promised."""
    assert read_file(files, "d/vote", 10_000) in (promised or {OLD})


def in_place(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path)
    file.truncate(0)
    file.append(data)
    file.sync()


def without_sync(files: FileSystem, path: str, data: bytes) -> None:
    files.open(path + ".tmp", create=True).append(data)
    files.rename(path + ".tmp", path)
    files.sync_directory("d")


def without_directory_sync(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path + ".tmp", create=True)
    file.append(data)
    file.sync()
    files.rename(path + ".tmp", path)


def sync_after_rename(files: FileSystem, path: str, data: bytes) -> None:
    file = files.open(path + ".tmp", create=True)
    file.append(data)
    files.rename(path + ".tmp", path)
    file.sync()
    files.sync_directory("d")


def removed_first(files: FileSystem, path: str, data: bytes) -> None:
    files.remove(path)
    replace_file(files, path, data)


@pytest.mark.parametrize("replace", [in_place, without_sync, without_directory_sync, sync_after_rename, removed_first])
def test_an_unsafe_replacement_is_caught(replace: Callable[[FileSystem, str, bytes], None]) -> None:
    """Every known way to replace a file wrongly fails some check, and the error says at which moment."""
    with pytest.raises((AssertionError, StorageError)) as caught:
        enumerate_crashes(replacement(replace), one_of_the_promised, start=start())
    notes = "\n".join(caught.value.__notes__)
    assert notes.startswith("crash after ")
    assert "promised: " in notes
    assert "on the disk:\n  d: directory" in notes


def test_replacing_a_file_is_safe() -> None:
    """In every state after a crash inside ``replace_file`` the old file or the new one is whole; after it, the new."""
    counts = enumerate_crashes(replacement(replace_file), one_of_the_promised, start=start())
    assert counts == CrashCounts(steps=5, points=10, states=(13,), is_complete=True)
    assert str(counts) == "5 steps, 10 crash points, 13 states (all of the space)"


def test_crashes_during_recovery_are_checked_too() -> None:
    """With two crashes in a row, a recovery that is not safe itself is caught; one that is safe is not."""

    def careless(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> None:
        one_of_the_promised(files, promised)
        in_place(files, "d/vote", bytes(read_file(files, "d/vote", 10_000)))

    def careful(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> None:
        one_of_the_promised(files, promised)
        replace_file(files, "d/vote", read_file(files, "d/vote", 10_000))

    scenario = replacement(replace_file)
    enumerate_crashes(scenario, careless, start=start())
    with pytest.raises(AssertionError) as caught:
        enumerate_crashes(scenario, careless, start=start(), crashes=2)
    assert "\n".join(caught.value.__notes__).count("crash after") == 2
    counts = enumerate_crashes(scenario, careful, start=start(), crashes=3)
    assert counts.states[0] == 13
    assert counts.recoveries > 2 * 13
    assert counts.is_complete


def test_a_recoverys_report_is_a_promise() -> None:
    """The promises that the check returns must hold after the next crash: a recovery that ends too early is caught."""

    def observe(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> frozenset[bytes]:
        one_of_the_promised(files, promised)
        return frozenset({read_file(files, "d/vote", 10_000)})

    def hasty(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> frozenset[bytes]:
        observe(files, promised)
        without_directory_sync(files, "d/vote", NEW)
        return frozenset({NEW})

    def thorough(files: MemoryFileSystem, promised: frozenset[bytes] | None) -> frozenset[bytes]:
        observe(files, promised)
        replace_file(files, "d/vote", NEW)
        return frozenset({NEW})

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        promise(frozenset({OLD, NEW}))

    enumerate_crashes(scenario, thorough, start=start(), promised=frozenset({OLD, NEW}), crashes=3)
    with pytest.raises(AssertionError):
        enumerate_crashes(scenario, hasty, start=start(), promised=frozenset({OLD, NEW}), crashes=2)


def test_every_prefix_and_state_is_given_once() -> None:
    """The check sees each state once a promise, from the empty disk to the last one, and the promise of the moment."""
    seen: list[tuple[Any, dict[str, bytes]]] = []

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        file = files.open("f", create=True)
        promise("created")
        file.append(b"x")

    counts = enumerate_crashes(scenario, lambda files, promised: seen.append((promised, files.contents())))
    assert seen == [
        (None, {}),
        (None, {"f": b""}),
        ("created", {}),
        ("created", {"f": b""}),
        ("created", {"f": b"\0"}),
        ("created", {"f": b"x"}),
    ]
    assert (counts.steps, counts.points, counts.recoveries) == (2, 4, 6)


def test_a_scenario_that_is_too_large_is_an_error() -> None:
    """Where not every combination is tried, the counts say that it was a part."""

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        for name in "abcdefgh":
            files.open(name, create=True).append(b"x")

    model = CrashModel(max_choices=20)
    counts = enumerate_crashes(scenario, lambda files, promised: None, model=model)
    assert not counts.is_complete
    assert "a part" in str(counts)


def test_enumeration_is_fast() -> None:
    """A state is made, kept apart and read with some dozens of calls, however many there are."""

    def scenario(files: MemoryFileSystem, promise: Promise) -> None:
        for name in "ab":
            file = files.open(name, create=True)
            file.append(b"x" * 3000)
            file.write_at(0, b"y")

    def reading(files: MemoryFileSystem, promised: None) -> None:
        assert files.contents() is not None

    counts: list[CrashCounts] = []
    model = CrashModel(max_choices=10_000)
    calls = calls_made(lambda: counts.append(enumerate_crashes(scenario, reading, model=model)))
    assert counts[0].recoveries > 4000
    assert calls < 100 * counts[0].recoveries
