# SPDX-License-Identifier: Apache-2.0
"""The common part of all operations of ``MemoryFileSystem``: they are numbered, may fail, and call hooks."""

import collections
import threading
from collections.abc import Callable, Sequence
from typing import Final

from raftlog.errors import StorageError
from raftlog.testing.file_system.crash_states import Fate, Write
from raftlog.testing.file_system.faults import Fault, Operation, Step
from raftlog.testing.file_system.pending_changes import Pending, decide

_LISTED_OPERATIONS: Final = 10_000

ReadChange = Callable[[Step, int, int, bytes | bytearray], bytes]
"""Returns what a reader gets, given the step, the position, the size and the content of the file."""


class DiskSteps:
    """Numbers operations, injects faults, and calls hooks; ``MemoryFileSystem`` documents the attributes.

    Each operation is one atomic step between threads; a sync is two.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.steps: collections.deque[Step] = collections.deque(maxlen=_LISTED_OPERATIONS)
        self.step_count = 0
        self.on_change: Callable[[], object] | None = None
        self.during_sync: Callable[[Step], object] | None = None
        self.has_arrived: Callable[[Write], bool] | None = None
        self.change_read: ReadChange | None = None
        self.under_way: list[Step] = []
        self.mutex = threading.RLock()
        self.has_crashed = False

    def begin(self, operation: Operation, path: str, detail: str = "") -> tuple[Step, Fault | None]:
        """Number an operation, and return the fault that is to make it fail, or None."""
        with self.mutex:
            if self.has_crashed:
                raise StorageError(path, operation.value, "the machine has crashed")
            self.step_count += 1
            step = Step(self.step_count, operation, path, detail)
            self.steps.append(step)
            return step, next((fault for fault in self.faults if fault.strikes(step)), None)

    def run_sync(
        self, step: Step, fault: Fault | None, covered: Sequence[Pending[object]], tidy: Callable[[], None]
    ) -> None:
        """Call the hooks between the beginning of a sync and its end, and end it.

        Args:
            step: of the sync.
            fault: makes it fail, at its end; None if it succeeds.
            covered: the changes that were open at its beginning.
            tidy: forgets the changes whose outcome is known.
        """
        self.under_way.append(step)
        try:
            if self.on_change:
                self.on_change()
            if self.during_sync:
                self.during_sync(step)
        finally:
            self.under_way.remove(step)
        with self.mutex:
            if self.has_crashed:
                raise StorageError(step.path, step.operation.value, "the machine has crashed")
            decide(covered, Fate.DOUBTFUL if fault else Fate.SETTLED)
            tidy()
        self.end(step, fault)

    def end(self, step: Step, fault: Fault | None) -> None:
        """Call the hook at the end of an operation, and raise the fault's error, if there is one."""
        if self.on_change:
            self.on_change()
        if fault:
            raise fault.error(step)

    def start(self, operation: Operation, path: str, detail: str = "") -> Step:
        """Begin an operation that changes nothing if it fails."""
        step, fault = self.begin(operation, path, detail)
        if fault:
            raise fault.error(step)
        return step
