# SPDX-License-Identifier: Apache-2.0
"""A sync of the file system in memory has a beginning and an end: what happens between them, and in other threads."""

import contextlib
import threading
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.testing.crash_points import enumerate_crashes
from raftlog.testing.file_system.crash_states import CrashModel, DiskState, Fate, PossibleStates, Truncate, Write
from raftlog.testing.file_system.disk_steps import DiskSteps
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.file_system.memory_file import MemoryFile
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.file_system.memory_inode import Inode
from tests.hang_limit import HANG_S

SECTOR = 512
TINY = CrashModel(sector_size_bytes=4, max_choices=100_000)


def with_file(data: bytes = b"") -> tuple[MemoryFileSystem, MemoryFile]:
    """Return a file system with one durable file, and the file."""
    files = MemoryFileSystem((("f", data, False),))
    return files, files.open("f")


def left(files: MemoryFileSystem, path: str = "f") -> set[bytes | None]:
    """Return the possible contents of a file after a crash; None if its name may be missing."""
    return {state.contents().get(path) for state in files.crash_states()}


def once(files: MemoryFileSystem, work: Callable[[], object]) -> None:
    """Do something during the next sync, and during no sync that begins in it."""

    def hook(_: Step) -> None:
        files.during_sync = None
        work()

    files.during_sync = hook


def test_a_sync_settles_what_was_changed_before_its_beginning() -> None:
    """Bytes appended between the beginning and the end of a sync stay in doubt after it, until the next one."""
    files, file = with_file()
    file.append(b"a" * SECTOR)
    once(files, lambda: file.append(b"b" * SECTOR))
    file.sync()
    assert bytes(file.read_at(0, 9999)) == b"a" * SECTOR + b"b" * SECTOR
    assert left(files) == {b"a" * SECTOR, b"a" * SECTOR + bytes(SECTOR), b"a" * SECTOR + b"b" * SECTOR}
    file.sync()
    assert left(files) == {b"a" * SECTOR + b"b" * SECTOR}


def test_a_crash_during_a_sync_may_keep_or_lose_any_of_it() -> None:
    """Between the two, what was changed before the beginning is as open as what was changed since."""
    files, file = with_file()
    found: list[set[bytes | None]] = []

    def work() -> None:
        found.append(left(files))
        file.append(b"b")
        found.append(left(files))

    file.append(b"a")
    once(files, work)
    file.sync()
    assert found == [{b"", b"\0", b"a"}, {b"", b"\0", b"\0\0", b"a", b"a\0", b"ab"}]
    assert left(files) == {b"a", b"a\0", b"ab"}


def test_a_truncation_during_a_sync_stays_open() -> None:
    """A file that is cut while a sync is under way may have the length that the sync has settled, or the later one."""
    files, file = with_file()
    file.append(b"0123456789")
    once(files, lambda: file.truncate(3))
    file.sync()
    assert left(files) == {b"0123456789", b"012"}


def test_a_sync_of_a_directory_settles_what_was_named_before_its_beginning() -> None:
    """The same for names: one that comes while it is under way may be lost after it."""
    files = MemoryFileSystem()
    files.open("f", create=True)
    once(files, lambda: files.open("g", create=True))
    files.sync_directory(".")
    assert {tuple(state.contents()) for state in files.crash_states()} == {("f",), ("f", "g")}
    assert files.steps[-2].operation is Operation.SYNC_DIRECTORY


def test_a_failed_sync_leaves_in_doubt_what_it_was_to_settle() -> None:
    """A fault strikes at the end: what was open at the beginning is in doubt for ever, and what came since is not."""
    files, file = with_file()
    file.append(b"a" * SECTOR)
    files.faults.append(Fault(Operation.SYNC))
    once(files, lambda: file.append(b"b" * SECTOR))
    with pytest.raises(StorageError):
        file.sync()
    file.sync()
    assert bytes(file.read_at(0, 1)) == b"a"
    assert left(files) == {bytes(SECTOR) + b"b" * SECTOR, b"a" * SECTOR + b"b" * SECTOR}


def test_a_failed_sync_of_a_directory_leaves_in_doubt_what_it_was_to_settle() -> None:
    """The same for names."""
    files = MemoryFileSystem()
    files.open("f", create=True)
    files.faults.append(Fault(Operation.SYNC_DIRECTORY))
    once(files, lambda: files.open("g", create=True))
    with pytest.raises(StorageError):
        files.sync_directory(".")
    files.sync_directory(".")
    assert files.exists("f")
    assert {tuple(state.contents()) for state in files.crash_states()} == {("g",), ("f", "g")}


@pytest.mark.parametrize("fails", ["outer", "inner"])
def test_of_two_syncs_one_fails(fails: str) -> None:
    """Of two overlapping syncs, the first to end decides whether the bytes that both cover are durable or in doubt."""
    files, file = with_file()
    files.faults.append(Fault(Operation.SYNC, skip=0 if fails == "outer" else 1))
    file.append(b"a" * SECTOR)

    def work() -> None:
        file.append(b"b" * SECTOR)
        with contextlib.suppress(StorageError):
            file.sync()

    once(files, work)
    if fails == "outer":
        with pytest.raises(StorageError):
            file.sync()
        assert left(files) == {b"a" * SECTOR + b"b" * SECTOR}
    else:
        file.sync()
        assert {b"", bytes(SECTOR), bytes(2 * SECTOR), b"a" * SECTOR + b"b" * SECTOR} <= left(files)


def test_a_sync_settles_the_file_that_it_began_with() -> None:
    """A file that is removed during its sync, and one that gets its name, are distinguished."""
    files, file = with_file()
    file.append(b"old")

    def work() -> None:
        files.remove("f")
        files.open("f", create=True).append(b"new")

    once(files, work)
    file.sync()
    assert left(files) == {b"old", None, b"", b"\0\0\0", b"new"}


def test_bytes_that_are_written_again_after_a_failed_sync_are_settled() -> None:
    """The same bytes, written again and synced, are durable: sector by sector, and no other one."""
    files, file = with_file()
    data, zeros = b"a" * SECTOR + b"b" * SECTOR, bytes(SECTOR)
    file.append(data)
    files.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        file.sync()
    either = [b"", *[first + second for first in (data[:SECTOR], zeros) for second in (data[SECTOR:], zeros)]]
    assert left(files) == {*either}
    file.write_at(SECTOR, data[SECTOR:])
    file.sync()
    assert left(files) == {data, bytes(SECTOR) + data[SECTOR:]}
    file.write_at(0, data[:SECTOR])
    file.sync()
    assert left(files) == {data}


def test_a_name_that_is_given_again_after_a_failed_sync_is_settled() -> None:
    """A second sync proves nothing of a name; a rename away and back, and a sync, do."""
    files = MemoryFileSystem()
    files.open("f", create=True)
    files.faults.append(Fault(Operation.SYNC_DIRECTORY))
    with pytest.raises(StorageError):
        files.sync_directory(".")
    files.sync_directory(".")
    assert left(files) == {None, b""}
    files.rename("f", "f.again")
    files.rename("f.again", "f")
    files.sync_directory(".")
    assert left(files) == {b""}


def test_nothing_is_kept_of_a_failed_sync_once_all_of_it_is_written_again() -> None:
    """Bytes that become durable are no longer in doubt: later syncs and images do not pay for them."""
    files, file = with_file()
    file.append(b"a" * SECTOR)
    files.open("g", create=True)
    files.faults += [Fault(Operation.SYNC), Fault(Operation.SYNC_DIRECTORY)]
    for sync in (file.sync, lambda: files.sync_directory(".")):
        with pytest.raises(StorageError):
            sync()
    file.write_at(0, b"a" * SECTOR)
    files.rename("g", "h")
    file.sync()
    files.sync_directory(".")
    image = files.image()
    assert (image.changes, [each.changes for each in image.files.values()]) == ((), [(), ()])
    assert dict(image.names) == {"f": 1, "h": 2}


@given(st.data(), st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=7), st.integers(0, 9)), max_size=7))
def test_forgotten_positions_make_no_difference(data: st.DataObject, operations: list[tuple[int, bytes, int]]) -> None:
    """Of a file whose syncs fail and succeed, a crash leaves exactly what it does where all changes are remembered."""
    inode, plain = Inode(1, b"01234"), _Remembering(1, b"01234")
    for position, written, kind in operations:
        for each in (inode, plain):
            _change(each, position, written, kind)
        if kind == 9:
            fate = data.draw(st.sampled_from([Fate.SETTLED, Fate.DOUBTFUL]))
            for each in (inode, plain):
                for change in each.open_changes():
                    change.fate = fate
                each.tidy()
    assert _states(inode) == _states(plain)


class _Remembering(Inode):
    """A file that forgets nothing."""

    def tidy(self) -> None:
        """Make images show what was decided."""
        self._image = None


def _change(inode: Inode, position: int, written: bytes, kind: int) -> None:
    if kind < 6 and written:
        inode.change(Write(position, written))
    elif kind < 9 and position < len(inode.content):
        inode.change(Truncate(position))


def _states(inode: Inode) -> set[DiskState]:
    files = MemoryFileSystem((("f", b"", False),))
    files._inodes = {1: inode}
    possible = PossibleStates(files.image(), TINY)
    assert possible.is_complete
    return set(possible)


def test_on_change_is_called_at_the_beginning_of_a_sync_too() -> None:
    """``on_change`` is called at both, so that what happens meanwhile is crashed; the hook learns which sync it is."""
    files, file = with_file()
    file.append(b"a")
    told: list[object] = []
    files.on_change = lambda: told.append([str(step) for step in files.under_way])
    files.during_sync = lambda step: told.append(str(step))
    file.sync()
    files.sync_directory(".")
    sync, directory = "3 sync f", "4 sync directory ."
    assert told == [[sync], sync, [], [directory], directory, []]


def test_crashes_between_the_beginning_and_the_end_are_enumerated() -> None:
    """Acknowledging an append after a sync that began before it is caught."""

    def hasty(files: MemoryFileSystem, promise: Callable[[object], None]) -> None:
        file = files.open("f")
        file.append(b"a")
        once(files, lambda: file.append(b"b"))
        file.sync()
        promise(b"ab")

    def reported_during_a_sync(files: MemoryFileSystem, promise: Callable[[object], None]) -> None:
        file = files.open("f")
        file.append(b"a")
        once(files, lambda: promise(b"a"))
        file.sync()

    def check(files: MemoryFileSystem, promised: bytes | None) -> None:
        assert files.contents()["f"].startswith(promised or b"")

    for scenario, moment in ((hasty, "a promise"), (reported_during_a_sync, "a promise")):
        with pytest.raises(AssertionError) as caught:
            enumerate_crashes(scenario, check, start=with_file()[0])
        assert caught.value.__notes__[0].startswith(f"crash after {moment}")


def test_the_moments_name_the_sync_in_progress() -> None:
    """A crash during a sync is reported as such."""

    def scenario(files: MemoryFileSystem, promise: Callable[[object], None]) -> None:
        file = files.open("f")
        file.append(b"a")
        once(files, lambda: file.append(b"b"))
        file.sync()

    def check(files: MemoryFileSystem, promised: None) -> None:
        if files.contents()["f"] == b"ab":
            raise AssertionError

    with pytest.raises(AssertionError) as caught:
        enumerate_crashes(scenario, check, start=with_file()[0])
    moment = caught.value.__notes__[0].splitlines()[0]
    assert moment == "crash after step 4 write f 1 bytes at 1, in step 3 sync f"


def test_a_machine_that_crashes_during_a_sync_does_not_end_it() -> None:
    """The sync raises, and what it was to settle is as it was at the crash."""
    files, file = with_file()
    file.append(b"a")
    after: list[MemoryFileSystem] = []
    once(files, lambda: after.append(files.crash(lambda count: 0)))
    with pytest.raises(StorageError, match="crashed"):
        file.sync()
    assert after[0].contents() == {"f": b""}
    assert left(files) == {b"", b"\0", b"a"}


def test_a_hook_that_raises_leaves_the_sync_without_an_end() -> None:
    """Nothing is settled and nothing in doubt; the next sync does it."""
    files, file = with_file()
    file.append(b"a")
    once(files, lambda: [][0])
    with pytest.raises(IndexError):
        file.sync()
    assert files.under_way == []
    assert left(files) == {b"", b"\0", b"a"}
    file.sync()
    assert left(files) == {b"a"}


def test_another_thread_syncs_what_this_one_appends() -> None:
    """While a sync waits in another thread, this one continues; the sync covers the bytes from when it began."""
    files, file = with_file()
    file.append(b"a")
    has_begun, may_end = threading.Event(), threading.Event()

    def wait(_: Step) -> None:
        has_begun.set()
        assert may_end.wait(HANG_S)

    files.during_sync = wait
    thread = threading.Thread(target=file.sync)
    thread.start()
    assert has_begun.wait(HANG_S)
    file.append(b"b")
    assert file.size() == 2
    assert b"ab" in left(files)
    assert b"" in left(files)
    may_end.set()
    thread.join(HANG_S)
    assert left(files) == {b"a", b"a\0", b"ab"}


def test_many_threads_leave_the_model_whole() -> None:
    """Appends here, syncs of the file and of the directory, and images elsewhere: no byte and no step is lost."""
    files, file = with_file()
    done, failures = threading.Event(), []

    def again_and_again(work: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    works: list[Callable[[], object]] = [file.sync, file.sync, lambda: files.sync_directory("."), files.image]
    threads = [threading.Thread(target=again_and_again, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for number in range(2000):
        file.append(number.to_bytes(4, "big"))
        if number % 50 == 0:
            files.open(f"g{number}", create=True)
            files.rename(f"g{number}", "h")
    done.set()
    for thread in threads:
        thread.join(HANG_S)
    assert failures == []
    expected = b"".join(number.to_bytes(4, "big") for number in range(2000))
    assert bytes(file.read_at(0, 9999)) == expected
    file.sync()
    files.sync_directory(".")
    assert [state.contents() for state in files.crash_states()] == [{"f": expected, "h": b""}]
    assert len({step.number for step in files.steps}) == len(files.steps) == min(files.step_count, 10_000)


def test_a_sync_costs_what_was_written_and_not_what_is_there() -> None:
    """An append and its sync in a file of 64 MiB allocate as little as in an empty one."""
    small, large = (with_file(bytes(size))[1] for size in (0, 64 << 20))
    peaks = []
    for file in (small, large):
        for _ in range(100):  # The first ones copy what was there, once.
            file.append(b"x" * 100)
            file.sync()
        tracemalloc.start()
        for _ in range(20):
            file.append(b"x" * 100)
            file.sync()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


def test_an_image_does_not_change() -> None:
    """An image is not changed by later writes and syncs; a file that did not change is copied once."""
    files, file = with_file()
    for number in range(5):
        file.append(b"%d" % number)
        if number % 2:
            file.sync()
        before = files.image()
        states = list(PossibleStates(before, CrashModel()))
        assert files.image().files[1] is before.files[1]
        file.write_at(0, b"changed")
        file.sync()
        assert list(PossibleStates(before, CrashModel())) == states
        file.truncate(0)
        file.sync()


def test_the_steps_are_of_no_file_system() -> None:
    """Nothing but numbers, faults and hooks is in the part that all operations share."""
    steps = DiskSteps()
    steps.faults.append(Fault(skip=1))
    assert steps.begin(Operation.OPEN, "f") == (Step(1, Operation.OPEN, "f"), None)
    with pytest.raises(StorageError):
        steps.start(Operation.OPEN, "f")
