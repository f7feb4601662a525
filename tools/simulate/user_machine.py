# SPDX-License-Identifier: Apache-2.0
"""The state machine that ``--machine MODULE:CLASS`` names, with a limit to the time that each of its calls takes."""

import contextlib
import faulthandler
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, TypeVar

import attrs

from raftlog.errors import OptionError
from raftlog.testing.simulator.applications.checked_machine import MachineKind, check_kind
from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import CommandChoices, StateMachine
from raftlog.tools.simulate.workers import ScheduleWorkers, WorkerEndedError

T = TypeVar("T")
_AGAIN_S: Final = 1.0
"""A call that has caught the exception is interrupted again after so long."""
_CPU_FACTOR: Final = 2
"""The process of a call that can not be interrupted ends after so many times the limit, of CPU time."""
_STANDARD_ERROR: Final = 2


class _CallExpiredError(BaseException):
    """A call has taken too long. It is no ``Exception``, so that few state machines catch it."""


class CallLimit:
    """Ends a call that takes too long, in a ``with`` block; on the main thread only.

    The call is interrupted where Python runs. One that does so nowhere, such as ``sum(itertools.repeat(0))``, ends its
    process by ``SIGPROF``, after the lines of ``faulthandler`` that show where it is.

    Args:
        limit_s: in seconds of real time, and half of the limit in CPU time.

    Raises:
        TimeoutError: on the way out.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._handler: Any = None

    def __enter__(self) -> None:
        self._handler = signal.signal(signal.SIGALRM, _expired)
        signal.setitimer(signal.ITIMER_PROF, self._limit_s * _CPU_FACTOR)
        signal.setitimer(signal.ITIMER_REAL, self._limit_s, _AGAIN_S)

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGALRM, self._handler)
        if isinstance(error, _CallExpiredError):
            raise TimeoutError(f"it did not return within {self._limit_s:g} s").with_traceback(trace) from None


def _expired(_: int, __: FrameType | None) -> None:
    raise _CallExpiredError


class LimitedMachine(StateMachine):
    """A state machine whose calls are limited.

    Args:
        machine: the state machine.
        limit: of each call.
    """

    def __init__(self, machine: StateMachine, limit: CallLimit) -> None:
        self._machine = machine
        self._limit = limit

    def _call(self, method: Callable[..., T], *arguments: object) -> T:
        with self._limit:
            return method(*arguments)

    def command(self, choices: CommandChoices) -> bytes:
        """Return a command."""
        return self._call(self._machine.command, choices)

    def apply(self, offset: int, command: bytes) -> None:
        """Apply a command."""
        self._call(self._machine.apply, offset, command)

    def snapshot(self) -> Sequence[bytes]:
        """Return all records, of a generator, too."""
        return self._call(lambda: tuple(self._machine.snapshot()))

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace the state."""
        self._call(self._machine.restore, records)

    def check(self) -> None:
        """Check the state."""
        self._call(self._machine.check)


@attrs.frozen
class NamedMachine:
    """Makes instances of a state machine that a place names; it may be sent to another process.

    Attributes:
        place: a module and a name in it, as ``bank:Bank``.
        limit_s: of each call, in seconds.
    """

    place: str
    limit_s: float

    def __call__(self) -> StateMachine:
        """Make an instance; what is none is returned as it is."""
        module, _, name = self.place.partition(":")
        with CallLimit(self.limit_s):
            machine: StateMachine = getattr(importlib.import_module(module), name)()
        return LimitedMachine(machine, CallLimit(self.limit_s)) if isinstance(machine, StateMachine) else machine


def load_machine(place: str, limit_s: float) -> MachineKind:
    """Import a state machine, also from the current directory, and make an instance of it.

    Args:
        place: a module and a name in it, as ``bank:Bank``; what it names is called without arguments.
        limit_s: of each call, in seconds.

    Raises:
        OptionError: there is no such state machine, or it can not be made.
    """
    module_name, _, name = place.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise OptionError("machine", f"{place!r} is no module and class, such as bank:Bank")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        with CallLimit(limit_s), contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise OptionError("machine", f"{module_name} cannot be imported: {_line(error)}") from None
    if not callable(getattr(module, name, None)):
        raise OptionError("machine", f"{module_name} has no class {name}")
    faulthandler.register(signal.SIGPROF, file=_STANDARD_ERROR, all_threads=False, chain=True)
    kind = MachineKind(NamedMachine(place, limit_s), name, place)
    try:
        with ScheduleWorkers(check_kind) as workers:
            workers.call(kind)
    except ViolationError as error:
        raise OptionError("machine", error.description) from None
    except WorkerEndedError as ended:
        fault = machine_fault(kind, ended)
        raise OptionError("machine", f"{name}: {ended}" if fault is None else fault.description) from None
    return kind


def machine_fault(kind: MachineKind, ended: WorkerEndedError) -> ViolationError | None:
    """Return how a state machine has ended the process that ran it; None if that may be the fault of anything else.

    Args:
        kind: of the state machines.
        ended: the process.
    """
    if not isinstance(kind.make, NamedMachine):
        return None
    if ended.exit_code == -signal.SIGPROF:
        limit_s = kind.make.limit_s * _CPU_FACTOR
        what = f"a call of {kind.name} did not return within {limit_s:g} s of CPU, and could not be interrupted"
        return ViolationError("machine-fails", what)
    if ended.exit_code >= 0:
        return ViolationError("machine-fails", f"{kind.name} has ended its process, with exit code {ended.exit_code}")
    return None


def _line(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}{': ' if text else ''}{text}"
