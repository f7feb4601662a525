# SPDX-License-Identifier: Apache-2.0
"""Tests a scenario with all possible crashes: after each operation, recovers from every state of the disk.

::

    def scenario(file_system, promise):
        replace_file(file_system, "vote", b"1")
        promise(b"1")                                # from here on, the file must survive any crash

    def check(file_system, promised):
        found = read_file(file_system, "vote", 100) if file_system.exists("vote") else None
        assert found == b"1" or (promised is None and found is None)

    print(enumerate_crashes(scenario, check))

The possible states are defined in ``raftlog.testing.file_system.crash_states``.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

import attrs

from raftlog.testing.file_system.crash_states import CrashModel, DiskImage, DiskState, PossibleStates
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

Promise = Callable[[Hashable], None]
"""Sets the value that the check gets from now on; only the last one is in force."""
Scenario = Callable[[MemoryFileSystem, Promise], object]
Check = Callable[[MemoryFileSystem, Any], Hashable]

_LISTED_FILES: Final = 40


@attrs.frozen
class CrashCounts:
    """How many crashes were tried.

    Attributes:
        steps: operations of the scenario that change the disk.
        points: moments at which it crashed: the start, after each step, between the beginning and the end of each sync,
            and after each promise.
        states: the number of different states that were recovered from, counted once per promise: after one crash,
            after a second one during recovery, and so on.
        is_complete: whether all states were tried; if not, some step had too many (``CrashModel.max_choices``).
    """

    steps: int
    points: int
    states: tuple[int, ...]
    is_complete: bool

    @property
    def recoveries(self) -> int:
        """How often the check ran."""
        return sum(self.states)

    def __str__(self) -> str:
        nested = ", then ".join(f"{count:,}" for count in self.states)
        share = "all" if self.is_complete else "a part"
        return f"{self.steps:,} steps, {self.points:,} crash points, {nested} states ({share} of the space)"


def enumerate_crashes(
    scenario: Scenario,
    check: Check,
    *,
    start: MemoryFileSystem | None = None,
    promised: Hashable = None,
    crashes: int = 1,
    model: CrashModel | None = None,
) -> CrashCounts:
    """Run a scenario, and check every state that a crash may leave after each of its operations.

    Args:
        scenario: called with a file system, and with a function that sets what is promised from now on.
        check: recovers from a state and asserts what must hold. It is called with the state as a file system, and the
            last promise before the crash. What it returns, unless None, is promised from then on: what a recovery has
            reported must still hold after the next crash.
        start: the initial file system; all of it is durable. None is an empty disk.
        promised: the promise in force at the start.
        crashes: the number of crashes in a row. With 2, each recovery is also crashed after each of its operations, and
            checked again.
        model: the states that a crash may leave.

    Returns:
        How many crashes and states were tried.

    Raises:
        Exception: the error of the check, with notes on when the crash was and what it left.
    """
    start = start.settled() if start else MemoryFileSystem()
    recording = _Recording(start, promised)
    scenario(start, recording.promise)
    start.on_change = None
    enumeration = _Enumeration(check, crashes, model or CrashModel())
    enumeration.crash(recording, ())
    counts = tuple(enumeration.counts)
    return CrashCounts(recording.steps, len(recording.points), counts, enumeration.is_complete)


class _Recording:
    """Records the moments of a run at which it may crash: the disk, the last promise, and the last operation."""

    def __init__(self, file_system: MemoryFileSystem, promised: Hashable) -> None:
        self._file_system = file_system
        self._promised = promised
        self.steps = 0
        self.points: list[tuple[DiskImage, Hashable, str]] = []
        self._add("the start")
        file_system.on_change = self._step

    def promise(self, value: Hashable) -> None:
        self._promised = value
        self._add(f"a promise, and step {self._file_system.steps[-1] if self._file_system.steps else 0}")

    def _step(self) -> None:
        last, under_way = self._file_system.steps[-1], self._file_system.under_way
        if under_way and under_way[-1] is last:
            self._add(f"the beginning of step {last}")
            return
        self.steps += 1
        meanwhile = "".join(f", in step {each}" for each in under_way)
        self._add(f"step {last}{meanwhile}")

    def _add(self, moment: str) -> None:
        self.points.append((self._file_system.image(), self._promised, moment))


class _Enumeration:
    """Checks each state once per promise, or again if fewer crashes lead to it than before."""

    def __init__(self, check: Check, crashes: int, model: CrashModel) -> None:
        self._check = check
        self._crashes = crashes
        self._model = model
        self._seen: dict[tuple[Hashable, DiskState], int] = {}
        self.counts = [0] * crashes
        self.is_complete = True

    def crash(self, recording: _Recording, trail: tuple[str, ...]) -> None:
        level = len(trail) + 1
        for image, promised, moment in recording.points:
            states = PossibleStates(image, self._model)
            self.is_complete = self.is_complete and states.is_complete
            for state in states:
                key = (promised, state)
                if self._seen.get(key, level + 1) > level:
                    self._seen[key] = level
                    self.counts[level - 1] += 1
                    self._recover(state, promised, (*trail, moment))

    def _recover(self, state: DiskState, promised: Hashable, trail: tuple[str, ...]) -> None:
        file_system = MemoryFileSystem(state)
        recording = _Recording(file_system, promised) if len(trail) < self._crashes else None
        try:
            observed = self._check(file_system, promised)
        except Exception as error:
            error.add_note(_description(state, promised, trail))
            raise
        if recording:
            if observed is not None:
                recording.promise(observed)
            self.crash(recording, trail)


def _description(state: DiskState, promised: Hashable, trail: tuple[str, ...]) -> str:
    lines = [f"crash after {moment}" for moment in trail]
    lines += [f"promised: {promised!r}", "on the disk:"]
    lines += [f"  {path}: {'directory' if data is None else _shown(data)}" for path, data, _ in state[:_LISTED_FILES]]
    return "\n".join(lines)


def _shown(data: bytes) -> str:
    return f"{len(data)} bytes, {data.rstrip(bytes(1))[-24:]!r} and {len(data) - len(data.rstrip(bytes(1)))} zeros"
