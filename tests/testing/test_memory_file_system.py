# SPDX-License-Identifier: Apache-2.0
"""The file system in memory: the states after a crash, and failures on request."""

import contextlib
import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OutOfSpaceError, StorageError
from raftlog.file_system import parent_directory, replace_file
from raftlog.testing.file_system.crash_states import CrashModel, PossibleStates, choices
from raftlog.testing.file_system.faults import Fault, Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

SECTOR = 512
FOUR_BYTE_SECTORS = CrashModel(sector_size_bytes=4)


def with_file(data: bytes = b"", path: str = "f") -> MemoryFileSystem:
    """Return a file system with one file, all of it durable."""
    return MemoryFileSystem(((path, data, False),))


def left(file_system: MemoryFileSystem, model: CrashModel | None = None, path: str = "f") -> set[bytes | None]:
    """Return the possible contents of a file after a crash; None if its name may be missing."""
    return {state.contents().get(path) for state in file_system.crash_states(model)}


def names_left(file_system: MemoryFileSystem, model: CrashModel | None = None) -> set[tuple[str, ...]]:
    """Return the sets of names that a crash may leave, without those of directories."""
    return {tuple(sorted(state.contents())) for state in file_system.crash_states(model)}


def test_a_short_write_is_there_or_not() -> None:
    """Of a write inside one sector all is there, or nothing, or the length alone."""
    files = with_file()
    files.open("f").append(b"abc")
    assert left(files) == {b"", b"abc", b"\0\0\0"}


def test_a_long_write_is_torn_at_sectors() -> None:
    """Each sector of a write is there or not; within one nothing is torn."""
    files = with_file()
    files.open("f").append(b"a" * SECTOR + b"b" * SECTOR + b"c")
    parts = itertools.product([b"a" * SECTOR, bytes(SECTOR)], [b"b" * SECTOR, bytes(SECTOR)], [b"c", b"\0"])
    assert left(files) == {b"", *map(b"".join, parts)}


def test_appends_that_share_a_sector_come_in_order() -> None:
    """A sector is written with all that is in it: the second append is not there without the first."""
    files = with_file()
    file = files.open("f")
    file.append(b"ab")
    file.append(b"cd")
    assert left(files) == {b"", b"\0\0", b"ab", b"\0\0\0\0", b"ab\0\0", b"abcd"}


def test_sync_makes_bytes_and_length_durable() -> None:
    """After a sync there is one state, and later writes alone are in doubt."""
    files = with_file()
    file = files.open("f")
    file.append(b"abcd")
    file.sync()
    assert left(files) == {b"abcd"}
    file.write_at(1, b"X")
    assert left(files) == {b"abcd", b"aXcd"}


def test_a_truncation_is_there_or_not() -> None:
    """A cut file has its old length and bytes, or the new ones."""
    files = with_file(b"0123456789")
    files.open("f").truncate(3)
    assert left(files) == {b"0123456789", b"012"}


def test_a_truncation_is_never_undone_after_appends() -> None:
    """Once a length from after the truncation is durable, bytes that it cut are zeros, or the new ones."""
    files = with_file(b"0123456789")
    file = files.open("f")
    file.truncate(3)
    file.append(b"XY")
    assert left(files) == {b"0123456789", b"012XY56789", b"012", b"012\0\0", b"012XY"}


@given(st.lists(st.tuples(st.integers(0, 14), st.binary(min_size=1, max_size=9)), max_size=4), st.binary(max_size=10))
def test_writes_leave_each_version_of_each_sector(writes: list[tuple[int, bytes]], durable: bytes) -> None:
    """The states are exactly: a length that the file had, and for each sector a version that it had."""
    files = with_file(durable)
    file = files.open("f")
    versions = [durable]
    for position, data in writes:
        file.write_at(position, data)
        versions.append(bytes(file.read_at(0, 99)))
    padded = [version.ljust(24, b"\0") for version in versions]
    sectors = [{version[start : start + 4] for version in padded} for start in range(0, 24, 4)]
    expected = {b"".join(picked)[: len(version)] for version in versions for picked in itertools.product(*sectors)}
    assert left(files, FOUR_BYTE_SECTORS) == expected


@given(st.integers(0, 10**6))
def test_writes_in_order_leave_a_moment(seed: int) -> None:
    """Each is a state that writes in any order may leave, too: what the file had at one moment since the last sync."""
    chance, files = random.Random(seed), with_file(b"0123456789")
    file, moments = files.open("f"), {b"0123456789"}
    for _ in range(chance.randrange(5)):
        match chance.randrange(4):
            case 0:
                file.truncate(chance.randrange(file.size() + 1))
            case 1:
                file.sync()
                moments.clear()
            case _:
                file.write_at(chance.randrange(file.size() + 1), chance.randbytes(chance.randrange(1, 9)))
        moments.add(files.contents()["f"])
    in_order = left(files, CrashModel(sector_size_bytes=4, ordered_writes=True))
    assert in_order == moments
    assert in_order <= left(files, FOUR_BYTE_SECTORS)


def test_writes_in_order_are_lost_by_a_sync_that_has_failed() -> None:
    """A later sync that succeeds does not bring them back, but they are not lost because of their order."""
    files = with_file()
    file = files.open("f")
    files.faults.append(Fault(Operation.SYNC))
    file.append(b"aaaa")
    with pytest.raises(StorageError):
        file.sync()
    model = CrashModel(sector_size_bytes=4, ordered_writes=True)
    assert left(files, model) == {b"", b"aaaa"}
    file.append(b"bbbb")
    assert left(files, model) == {b"", b"aaaa", b"aaaabbbb"}
    file.sync()
    assert left(files, model) == {b"aaaabbbb", b"\0\0\0\0bbbb"}


def test_a_new_name_needs_its_directory_synced() -> None:
    """A synced file may lose its name until the directory is synced, and its name may come without its bytes."""
    files = MemoryFileSystem()
    file = files.open("f", create=True)
    file.append(b"x")
    assert left(files) == {None, b"", b"x", b"\0"}
    file.sync()
    assert left(files) == {None, b"x"}
    files.sync_directory(".")
    assert left(files) == {b"x"}


def test_a_rename_is_whole() -> None:
    """A file has the old name or the new one, never both and never none; the replaced one is there until then."""
    files = MemoryFileSystem((("new", b"n", False), ("old", b"o", False)))
    files.rename("new", "old")
    states = [state.contents() for state in files.crash_states()]
    assert states == [{"new": b"n", "old": b"o"}, {"old": b"n"}]


def test_names_that_have_nothing_to_do_with_each_other_come_in_any_order() -> None:
    """Of two removals either may be lost alone; where the file system keeps their order, not the first alone."""
    files = MemoryFileSystem((("a", b"", False), ("b", b"", False)))
    files.remove("a")
    files.remove("b")
    assert names_left(files) == {(), ("a",), ("b",), ("a", "b")}
    assert names_left(files, CrashModel(ordered_names=True)) == {(), ("b",), ("a", "b")}


def test_a_name_change_brings_along_what_it_builds_on() -> None:
    """A file that was moved out of the way is not lost when its name is taken by another."""
    files = with_file(b"old")
    files.rename("f", "f.deleted")
    files.open("f", create=True)
    assert names_left(files) == {("f",), ("f.deleted",), ("f", "f.deleted")}
    assert {state.contents().get("f.deleted") for state in files.crash_states() if len(state.contents()) == 2} == {
        b"old"
    }


def test_syncing_one_directory_leaves_the_others() -> None:
    """Names are durable directory by directory; what is in a directory that is lost is lost."""
    files = MemoryFileSystem()
    files.make_directory("d/e")
    files.open("d/e/f", create=True)
    files.sync_directory("d/e")
    assert names_left(files) == {(), ("d/e/f",)}
    files.sync_directory("d")
    assert names_left(files) == {(), ("d/e/f",)}
    files.sync_directory(".")
    assert names_left(files) == {("d/e/f",)}


def test_a_rename_across_directories_is_durable_with_either() -> None:
    """It is one step, and syncing one of the two directories keeps it."""
    files = MemoryFileSystem((("d", None, False), ("d/f", b"", False), ("e", None, False)))
    files.rename("d/f", "e/f")
    assert names_left(files) == {("d/f",), ("e/f",)}
    files.sync_directory("e")
    assert names_left(files) == {("e/f",)}


def test_a_failed_sync_is_never_made_good() -> None:
    """After a sync failed, the next one returns, and a crash may lose the bytes all the same (fsyncgate)."""
    files = with_file()
    file = files.open("f")
    file.append(b"a" * SECTOR)
    files.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        file.sync()
    file.append(b"b")
    file.sync()
    assert left(files) == {b"a" * SECTOR + b"b", bytes(SECTOR) + b"b"}
    assert bytes(file.read_at(0, 1)) == b"a"


def test_a_sector_that_is_written_again_is_settled() -> None:
    """A sync after a failed one settles the sectors that were written in between, with all that is in them."""
    files = with_file()
    file = files.open("f")
    file.append(b"a")
    files.faults.append(Fault(Operation.SYNC))
    with pytest.raises(StorageError):
        file.sync()
    file.append(b"b")
    file.sync()
    assert left(files) == {b"ab"}


def test_a_failed_sync_of_a_directory_is_never_made_good() -> None:
    """The same for names."""
    files = MemoryFileSystem()
    files.open("f", create=True)
    files.faults.append(Fault(Operation.SYNC_DIRECTORY))
    with pytest.raises(StorageError):
        files.sync_directory(".")
    files.open("g", create=True)
    files.sync_directory(".")
    assert names_left(files) == {("g",), ("f", "g")}


def test_a_full_disk_writes_a_part() -> None:
    """A write without space leaves as much as requested, and the next one succeeds."""
    files = with_file()
    files.faults.append(Fault(Operation.WRITE, skip=1, is_full=True, written_bytes=2))
    file = files.open("f")
    file.append(b"one")
    with pytest.raises(OutOfSpaceError):
        file.append(b"two")
    assert file.size() == 5
    file.truncate(3)
    file.append(b"three")
    assert bytes(file.read_at(0, 9)) == b"onethree"


def test_a_fault_goes_by_operation_path_and_number() -> None:
    """A fault strikes what it names, once, or for good."""
    files = MemoryFileSystem((("a", b"a", False), ("b", b"b", False)))
    once = Fault(Operation.READ, path_end="b")
    files.faults += [once, Fault(Operation.RENAME, is_lasting=True)]
    readers = {path: files.open_for_reads(path) for path in "ab"}
    assert bytes(readers["a"].read_at(0, 1)) == b"a"
    with pytest.raises(StorageError):
        readers["b"].read_at(0, 1)
    assert once.is_spent
    assert bytes(readers["b"].read_at(0, 1)) == b"b"
    for _ in range(2):
        with pytest.raises(StorageError):
            files.rename("a", "c")
    assert files.list(".") == ["a", "b"]


def test_every_operation_can_fail_with_an_error() -> None:
    """Whatever fails first, replacing a file raises a StorageError, and the old file or the new one is whole."""
    steps = 6
    for number in range(steps):
        files = with_file(b"old")
        files.faults.append(Fault(skip=number))
        with pytest.raises(StorageError, match=r"^\S+: [a-z ]+ failed: "):
            replace_file(files, "f", b"new")
        assert left(files) <= {b"old", b"new"}
    files = with_file(b"old")
    files.faults.append(Fault(skip=steps))
    replace_file(files, "f", b"new")
    assert left(files) == {b"new"}


def test_steps_are_numbered() -> None:
    """Each operation is listed with its number, and reads as a sentence."""
    files = MemoryFileSystem()
    replace_file(files, "f", b"new")
    assert [str(step) for step in files.steps] == [
        "1 remove f.tmp",
        "2 create f.tmp",
        "3 write f.tmp 3 bytes at 0",
        "4 sync f.tmp",
        "5 rename f.tmp to f",
        "6 sync directory .",
    ]


def test_open_files_die_in_a_crash() -> None:
    """After a crash the old file system and its open files refuse everything, and locks are free."""
    files = with_file(b"bytes")
    file, lock = files.open("f"), files.lock(".lock")
    after = files.crash(lambda count: count - 1)
    uses: list[Callable[[], object]] = [
        lambda: file.append(b"x"),
        lambda: file.read_at(0, 1),
        file.size,
        file.sync,
        lambda: files.open("f"),
        lambda: files.exists("f"),
        lambda: files.list("."),
    ]
    for use in uses:
        with pytest.raises(StorageError):
            use()
    lock.close()
    assert after.contents() == {"f": b"bytes", ".lock": b""}
    after.lock(".lock")


def test_crash_states_are_apart() -> None:
    """Each state is a file system of its own: what is done to one is not seen in another, nor here."""
    files = with_file(b"bytes")
    first, second = [next(iter(files.crash_states())) for _ in range(2)]
    first.open("f").append(b" more")
    first.remove("f")
    assert second.contents() == files.contents() == {"f": b"bytes"}


def test_read_only_survives_a_crash() -> None:
    """A file without the right to write is not opened for writes, before a crash and after it."""
    files = with_file()
    files.set_read_only("f")
    for each in (files, *files.crash_states()):
        with pytest.raises(StorageError):
            each.open("f")


def do_something(files: MemoryFileSystem, chance: random.Random) -> None:
    path, other = chance.choice(["a", "d/a", "d/b"]), chance.choice(["a", "d/a"])
    data = bytes([chance.randrange(256)]) * chance.randrange(6)
    operations: list[Callable[[], object]] = [
        lambda: files.open(path, create=True).append(data),
        lambda: files.open(path).truncate(len(data)),
        lambda: files.open(path).sync(),
        lambda: files.rename(path, other),
        lambda: files.remove(path),
        lambda: files.sync_directory(parent_directory(path)),
    ]
    chance.choice(operations)()


def a_run(seed: int) -> MemoryFileSystem:
    """Return a file system after up to twenty random operations, including failures."""
    chance, files = random.Random(seed), MemoryFileSystem()
    files.make_directory("d")
    for _ in range(chance.randrange(20)):
        files.faults = [Fault(skip=chance.randrange(12))]
        with contextlib.suppress(StorageError):
            do_something(files, chance)
    return files


@given(st.integers(0, 10**6))
def test_a_picked_crash_is_one_of_all(seed: int) -> None:
    """The result of ``crash`` is among ``crash_states``, which has each state once, always in the same order."""
    files = a_run(seed)
    model = CrashModel(sector_size_bytes=4, max_choices=1000)
    possible = PossibleStates(files.image(), model)
    states = list(itertools.islice(possible, 20_000))
    assert len(set(states)) == len(states)
    assert states == list(itertools.islice(PossibleStates(files.image(), model), 20_000))
    if possible.is_complete and len(states) < 20_000:
        shown = [MemoryFileSystem(state).contents() for state in states]
        assert files.contents() in shown
        assert files.crash(random.Random(seed).randrange, model).contents() in shown


@given(st.integers(0, 10**6))
def test_settled_is_what_a_reader_sees(seed: int) -> None:
    """A settled copy holds the same, and a crash leaves all of it."""
    files = a_run(seed)
    settled = files.settled()
    assert [state.contents() for state in settled.crash_states()] == [files.contents()]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), max_size=6), st.integers(1, 100))
def test_choices_are_all_or_the_cuts(sites: list[list[int]], limit: int) -> None:
    """Every combination is there if they are few; else the oldest, the newest, and each value of each site."""
    found = set(choices(sites, limit))
    everything = set(itertools.product(*sites))
    assert found <= everything
    if len(list(itertools.product(*sites))) <= limit:
        assert found == everything
    assert tuple(site[0] for site in sites) in found
    assert tuple(site[-1] for site in sites) in found
    for index, site in enumerate(sites):
        assert set(site) <= {picked[index] for picked in found}


def test_a_large_write_is_torn_in_coarser_places() -> None:
    """A write of very many sectors gives a bounded number of states, whole and absent ones among them, and says so."""
    files = with_file()
    data = bytes(range(1, 251)) * 400
    files.open("f").append(data)
    possible = PossibleStates(files.image(), CrashModel())
    contents = {state[0][1] for state in possible}
    assert not possible.is_complete
    assert {b"", data, bytes(len(data))} <= contents
    assert len(contents) < 500
