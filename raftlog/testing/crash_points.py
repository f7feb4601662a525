# SPDX-License-Identifier: Apache-2.0
"""Crashes, all of them: after each operation of a scenario, every state that the disk may be in is recovered from.

::

    def scenario(file_system, promise):
        replace_file(file_system, "vote", b"1")
        promise(b"1")                                # from here on, whatever happens, it is there

    def check(file_system, promised):
        found = read_file(file_system, "vote", 100) if file_system.exists("vote") else None
        assert found == b"1" or (promised is None and found is None)

    print(enumerate_crashes(scenario, check))

What "may be in" means is told in ``raftlog.testing.file_system.crash_states``.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

import attrs

from raftlog.testing.file_system.crash_states import CrashModel, DiskImage, DiskState, PossibleStates
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem

Promise = Callable[[Hashable], None]
"""Tells the check what holds from now on; the last value is the one that counts."""
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
        states: the different states that were recovered from, each counted once for each promise: after one crash,
            after a second one during recovery, and so on.
        is_complete: whether that was all of them; else there were too many somewhere (``CrashModel.max_choices``).
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
        scenario: is given a file system, and a function to tell the check what holds from now on.
        check: recovers from a state and asserts what must hold. It is given the state as a file system, and what was
            promised last before the crash. What it returns, unless it is None, is promised from then on: what the
            recovery has told somebody must still be so after the next crash.
        start: what the scenario starts from; all of it is durable. An empty disk, if None.
        promised: what holds at the start.
        crashes: how many there are in a row: with 2, each recovery is crashed after each of its operations, too, and
            checked again.
        model: what a crash may mix up.

    Returns:
        How many there were.

    Raises:
        Exception: what the check raised, with notes that say when the crash was and what it left.
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
    """The moments of a run at which it may crash: the disk, what was promised last, and the last operation."""

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
    """Checks each state once for each promise: at the lowest number of crashes that leads to it."""

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
            told = self._check(file_system, promised)
        except Exception as error:
            error.add_note(_description(state, promised, trail))
            raise
        if recording:
            if told is not None:
                recording.promise(told)
            self.crash(recording, trail)


def _description(state: DiskState, promised: Hashable, trail: tuple[str, ...]) -> str:
    lines = [f"crash after {moment}" for moment in trail]
    lines += [f"promised: {promised!r}", "on the disk:"]
    lines += [f"  {path}: {'directory' if data is None else _shown(data)}" for path, data, _ in state[:_LISTED_FILES]]
    return "\n".join(lines)


def _shown(data: bytes) -> str:
    return f"{len(data)} bytes, {data.rstrip(bytes(1))[-24:]!r} and {len(data) - len(data.rstrip(bytes(1)))} zeros"
