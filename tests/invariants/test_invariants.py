# SPDX-License-Identifier: Apache-2.0
"""Every function that moves a pointer checks it, and every check notices what it is for."""

import functools
import os
import subprocess
import sys
from typing import Any

import pytest

from raftlog.errors import InvariantViolation, StorageError
from raftlog.invariants import instance_of, invariant, present
from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.file_raw import FileRawSnapshotWriter
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.checkout import ROOT
from tests.file_logs import BATCH_SIZE, fill, install_snapshot, open_log, overwrite, segment_path
from tests.hang_limit import HANG_S
from tests.invariants.planting import Site, planted_at
from tests.invariants.pointers import (
    CHECKED_BY,
    EXEMPT,
    NO_POINTERS,
    PLACES,
    POINTERS,
    check_count,
    functions_of,
    inventory,
    movers,
    sites_of,
)
from tests.invariants.scenarios import SCENARIOS

LEAST_CHECKS = 2
PLANTED_ELSEWHERE = {("raftlog/voters/voter_set_history.py", "all")}
"""``test_voter_set_history.py`` plants an empty set for the check that looks at all entries."""


@functools.cache
def all_sites() -> tuple[Site, ...]:
    """The files with pointers and their checks, except those that other tests plant."""
    found: list[Site] = []
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in EXEMPT:
                found += sites_of(name, path.read_text("utf-8"))
    return tuple(each for each in found if not any((each.path, name) in PLANTED_ELSEWHERE for _, name in each.subjects))


def unchecked(path: str, text: str) -> list[str]:
    """The functions of a module that move a pointer with too few checks."""
    functions = tuple(functions_of(path, text))
    return [each.name for each in movers(functions) if check_count(each, functions) < LEAST_CHECKS]


def test_each_function_that_moves_a_pointer_checks_twice() -> None:
    """Each function that moves a pointer makes two checks at least, itself or in a function that is there for that."""
    functions = inventory()
    found = [each for each in movers(functions) if each.key not in CHECKED_BY]
    bad = [f"{each.key}: {sorted(each.moves)}" for each in found if check_count(each, functions) < LEAST_CHECKS]
    assert not bad, "check before and after the move (raftlog/invariants.py), or say in CHECKED_BY who does"


@pytest.mark.parametrize(
    "body",
    [
        "self._end_offset = 3",
        "self.lost_offset += 1",
        "self._segments.pop()",
        "del self._batches[1:]",
        "segment.size_bytes, x = 1, 2",
        "invariant(x > 1, '')\n        self._end_offset = x",
        "if x > 1:\n            raise InvariantViolation('')\n        self._end_offset = x",
        "def take():\n            self._end_offset = 3\n        self._check_invariants()",
    ],
)
def test_a_forgotten_check_is_found(body: str) -> None:
    """A move without checks, or with one alone, is found, also of a pointer with a new name or in an inner function."""
    checks = "    def _check_invariants(self):\n        invariant(a, '')\n        invariant(b, '')\n"
    text = f"class Log:\n    def move(self, x):\n        {body}\n{checks}"
    assert unchecked("raftlog/log/x.py", text)
    mended = text.replace(body, "self._end_offset = 3\n        self._check_invariants()")
    assert not unchecked("raftlog/log/x.py", mended)


def test_exceptions_are_of_things_that_are_there() -> None:
    """No exception outlives what it is about."""
    keys = {each.key for each in inventory()}
    names = {each.name.rpartition(".")[2] for each in inventory()}
    assert not set(CHECKED_BY) - keys
    assert all(by is None or by.rpartition(".")[2] in names for by, _ in CHECKED_BY.values())
    assert all((ROOT / path).is_file() for path in EXEMPT)
    assert not POINTERS & set(NO_POINTERS)


QUICK = ("raftlog/log/queries.py", "raftlog/storage/segments/log_segment.py")
"""Files whose checks the default tests try. Those of all other files are tried by the slow tests."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path in QUICK else [pytest.mark.slow])
        for path in sorted({each.path for each in all_sites()})
    ],
)
def test_every_check_notices_a_planted_violation(path: str) -> None:
    """Whatever a check looks at is made wrong when it is reached, and an error is raised that says what disagrees."""
    missed = []
    for site in all_sites():
        if site.path == path:
            found = next(filter(None, (planted_at(site, each) for each in SCENARIOS.values())), None)
            if found is None or not str(found) or "{}" in str(found):
                missed.append(f"{site.path}:{site.first}: {found}")
    assert not missed


def test_scenarios_violate_nothing_by_themselves() -> None:
    """Without a planted violation every scenario runs through."""
    for scenario in SCENARIOS.values():
        subject = scenario.make()
        for operation in scenario.operations:
            operation(subject)


def test_a_message_is_made_on_failure_alone() -> None:
    """A check that holds formats no text; one that fails names the values."""
    invariant(True, "{} {}", 1)
    with pytest.raises(InvariantViolation, match=r"^log: 3 is above 2$"):
        invariant(False, "{}: {} is above {}", "log", 3, 2)


def test_a_required_value_is_returned() -> None:
    """A value that must be there, or of a type, is returned as it is; another one is a violation that names it."""
    assert present(0, "number") == 0
    assert instance_of("x", str) == "x"
    with pytest.raises(InvariantViolation, match="number is None"):
        present(None, "number")
    with pytest.raises(InvariantViolation, match="a str must be here, and not 1"):
        instance_of(1, str)


PLANTED_IN_A_PROCESS = """
from raftlog.errors import InvariantViolation
from tests.invariants.test_invariants import append_with_wrong_end, flush_with_wrong_end, overlapping_segments
assert False, "this line must not run"
for plant in (append_with_wrong_end, flush_with_wrong_end, overlapping_segments):
    try:
        plant()
    except InvariantViolation as error:
        print(error)
"""


def append_with_wrong_end() -> None:
    """Append to a segment with a wrong end, bypassing the validation of appends."""
    log = open_log(MemoryFileSystem())
    fill(log, 1)
    log._segments.active.next_offset = 5
    fill(log, 1)
    log._segments.active.append(raft_batch(2, 1), [(2, 1, 2, 0, BATCH_SIZE)], 3)  # type: ignore[list-item]


def flush_with_wrong_end() -> None:
    """Flush a log that believes to be flushed beyond its end."""
    log = open_log(MemoryFileSystem())
    fill(log, 1)
    log._flushed_offset = 9
    log.flush()


def overlapping_segments() -> None:
    """Roll to a new segment after two that overlap."""
    log = open_log(MemoryFileSystem())
    fill(log, 6)
    log._segments._segments[0].next_offset = 4
    fill(log, 1)


@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_checks_are_made_without_asserts_too(option: str) -> None:
    """``python -O`` removes ``assert`` statements, and no check."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, option, "-c", PLANTED_IN_A_PROCESS]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr
    assert all("log/0000000000" in line for line in lines), lines


def test_a_log_does_nothing_after_a_violation() -> None:
    """After a violation in a write the log refuses everything, as after a failed write, and the next start is whole."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 2)
    log.flush()
    log._flushed_offset = 7
    with pytest.raises(InvariantViolation, match="flushed to 7"):
        log.flush()
    uses = (log.flush, lambda: fill(log, 1), lambda: log.truncate_to(0), lambda: log.read(0, Isolation.COMMITTED))
    for refused in uses:
        with pytest.raises(StorageError, match="interrupted by InvariantViolation"):
            refused()
    log.close()
    assert open_log(file_system.settled()).end_offset.offset == 2


def test_a_vote_is_not_written_after_a_violation() -> None:
    """After a violation the store of votes refuses every later one."""
    file_system = MemoryFileSystem()
    file_system.make_directory("d")
    store = QuorumStateStore.open(file_system, "d", has_log=False)
    work = store.prepare_write(QuorumStateData(1, leader_epoch=1))
    work.run()
    store._generation = 99
    with pytest.raises(InvariantViolation, match="quorum-state: copy 1, previous 99"):
        work.finish()
    with pytest.raises(StorageError, match="a bug of raftlog"):
        store.write(QuorumStateData(1, leader_epoch=2))


def test_a_snapshot_is_closed_by_a_violation() -> None:
    """A snapshot whose size went wrong cannot be frozen any more, and leaves no part."""
    file_system = MemoryFileSystem()
    writer = FileRawSnapshotWriter(file_system, ".", OffsetAndEpoch(3, 1), "1")
    writer._size_bytes = -1
    with pytest.raises(InvariantViolation, match=r"checkpoint\.part"):
        writer.append(b"x")
    assert not file_system.contents()


@pytest.mark.parametrize("position", [0, 8, 23])
def test_bytes_that_change_on_the_disk_are_no_violation(position: int) -> None:
    """A header that has changed when a truncation rebuilds the index is an error of the disk, not a bug of raftlog."""
    log = open_log(file_system := MemoryFileSystem())
    fill(log, 6)
    overwrite(file_system, segment_path(3), BATCH_SIZE + position, b"\0\0\0\7")
    with pytest.raises(StorageError, match="a batch header has changed"):
        log.truncate_to(5)


def test_a_file_that_gives_more_than_was_asked_for() -> None:
    """A file system that breaks its contract is a bug, and is named with the file and the position."""
    log = open_log(MemoryFileSystem())
    fill(log, 2)

    class Generous:
        def __getattr__(self, name: str) -> Any:
            return getattr(file, name)

        def read_at(self, position: int, size: int) -> memoryview:
            return memoryview(bytes(file.read_at(position, size)) + b"x")

    file = log._segments.active.file
    log._segments.active.file = Generous()
    with pytest.raises(InvariantViolation, match="asked for"):
        log.read(0, Isolation.UNCOMMITTED)


@pytest.mark.parametrize("make", [MemoryLog, lambda: open_log(MemoryFileSystem())], ids=["memory", "file"])
def test_the_high_watermark_stays_below_where_a_log_will_start(make: Any) -> None:
    """While a log is about to restart at a snapshot, a higher high watermark is not accepted: it would move back."""
    log = make()
    fill(log, 6)
    install_snapshot(log, 3, 9)
    work = log.prepare_truncate_to_latest_snapshot()
    log.update_high_watermark(5)
    assert log.high_watermark.offset == 3
    work.complete()
    assert (log.start_offset, log.high_watermark.offset, log.end_offset.offset) == (3, 3, 3)
