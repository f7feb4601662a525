# SPDX-License-Identifier: Apache-2.0
"""An instance of a state machine, whose mistakes become violations that name it, the offset and what it did."""

import signal
import struct
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, Protocol

import attrs

from raftlog.testing.simulator.violation import ViolationError
from raftlog.testing.state_machine import MAX_RECORD_BYTES, CommandChoices, StateMachine

_NUMBER: Final = struct.Struct(">Q")
_SHOWN: Final = 120
"""So many characters of a state are shown."""

Records = tuple[bytes, ...]
"""The records of a snapshot: by them, states are compared."""


def value_of(number: int) -> bytes:
    """Return the first bytes of a record value: the number of a command, which no other one has."""
    return _NUMBER.pack(number)


def number_of(value: bytes) -> int:
    """Return the number of the command that a record value holds."""
    number: int = _NUMBER.unpack_from(value)[0]
    return number


@attrs.frozen
class MachineKind:
    """A kind of state machine.

    Attributes:
        make: makes an instance.
        name: by which violations tell it.
        place: its module and name, as ``bank:Bank``; empty if it can not be imported.
        is_numbered: whether each command begins with a number that no other one has, as those of the built-in state
            machine do; commands of others are given one, which they do not see.
    """

    make: Callable[[], StateMachine]
    name: str = attrs.Factory(lambda self: _name_of(self.make), takes_self=True)
    place: str = attrs.Factory(lambda self: _place_of(self.make), takes_self=True)
    is_numbered: bool = False


def _name_of(make: Callable[[], StateMachine]) -> str:
    return str(getattr(make, "__qualname__", type(make).__name__))


def _place_of(make: Callable[[], StateMachine]) -> str:
    module, name = make.__module__, getattr(make, "__qualname__", "<")
    return "" if module == "__main__" or "<" in name else f"{module}:{name}"


class CheckedChoices(CommandChoices, Protocol):
    """Choices of a command, whose own errors are no fault of the state machine: Hypothesis raises some to end a run."""

    @property
    def has_failed(self) -> bool:
        """Whether they have raised an error."""
        ...


def check_kind(kind: MachineKind) -> None:
    """Check that there can be instances of a state machine, by making one.

    Raises:
        ViolationError: it raises an exception, or is none.
    """
    instance = CheckedMachine(kind)
    instance.check()
    instance.records()


class CheckedMachine:
    """An instance of a state machine.

    Args:
        kind: of the state machine.

    Attributes:
        kind: likewise.
        offset: the end, exclusive, of what it has read.

    Raises:
        ViolationError: from every method: it has raised an exception, or returned what it must not.
    """

    def __init__(self, kind: MachineKind) -> None:
        self.kind = kind
        self.offset = 0
        self._skipped = 0 if kind.is_numbered else _NUMBER.size
        try:
            self._machine = kind.make()
        except BaseException as error:
            raise ViolationError("machine-fails", f"{kind.name}() raised {_told(error)}") from error
        if not isinstance(self._machine, StateMachine):
            found = type(self._machine).__name__
            raise ViolationError("machine-fails", f"{kind.name}() made a {found}, not a StateMachine")

    def value(self, number: int, choices: CheckedChoices) -> bytes:
        """Return a record value: a number that no other one has, and a new command."""
        try:
            command = self._machine.command(choices)
        except BaseException as error:
            if choices.has_failed:
                raise
            raise self._failed("command", error) from error
        self._check_record(command, "command", 0)
        return command if self.kind.is_numbered else value_of(number) + command

    def command_of(self, value: bytes) -> bytes:
        """Return the command in a record value."""
        return value[self._skipped :]

    def apply(self, offset: int, value: bytes) -> None:
        """Apply the command of a record."""
        try:
            self._machine.apply(offset, self.command_of(value))
        except BaseException as error:
            self.offset = offset
            raise self._failed("apply", error) from error
        self.offset = offset + 1

    def records(self) -> Records:
        """Return the records of a snapshot of the state."""
        try:
            records = tuple(self._machine.snapshot())
        except BaseException as error:
            raise self._failed("snapshot", error) from error
        for each in records:
            if type(each) is not bytes or not 0 < len(each) <= MAX_RECORD_BYTES:
                self._check_record(each, "snapshot", 1)
        return records

    def restore(self, end_offset: int, records: Sequence[bytes]) -> None:
        """Replace the state by that of a snapshot that ends at an offset, exclusive."""
        self.offset = end_offset
        try:
            self._machine.restore(list(records))
        except BaseException as error:
            raise self._failed("restore", error) from error

    def check(self) -> None:
        """Check what the state machine says about its state."""
        try:
            self._machine.check()
        except BaseException as error:
            what = f"{self.kind.name}.check at offset {self.offset} raised {_told(error)}"
            raise ViolationError("machine-check", what) from error

    def _failed(self, method: str, error: BaseException) -> ViolationError:
        at = "" if method == "command" else f" at offset {self.offset}"
        return ViolationError("machine-fails", f"{self.kind.name}.{method}{at} raised {_told(error)}")

    def _check_record(self, record: Any, method: str, least_bytes: int) -> None:
        if not isinstance(record, bytes):
            found = f"a {type(record).__name__}, not bytes"
        elif not least_bytes <= len(record) <= MAX_RECORD_BYTES:
            found = f"{len(record):,} bytes, not {least_bytes} to {MAX_RECORD_BYTES:,}"
        else:
            return
        at, what = ("", "") if method == "command" else (f" at offset {self.offset}", "a record of ")
        raise ViolationError("machine-fails", f"{self.kind.name}.{method}{at} returned {what}{found}")


def _told(error: BaseException) -> str:
    """Return the exception that is handled in one line, with the place of it, or from where raftlog was called.

    An interrupt by Ctrl-C is raised again. Where that is ignored, a state machine has raised it by itself.
    """
    if isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        raise
    first, name = str(error).partition("\n")[0], type(error).__name__
    steps = list(traceback.walk_tb(error.__traceback__))
    theirs = [each for each in steps if not _is_hidden(each[0])]
    frame, line = (theirs or steps)[-1]
    file = frame.f_code.co_filename.rpartition("/")[2]
    return f"{name}{': ' if first else ''}{first} ({file}, line {line})"


def _is_hidden(frame: FrameType) -> bool:
    """Whether a frame is of raftlog, or of a helper that hides it from pytest, too, such as ``pytest.fail``."""
    is_ours = str(frame.f_globals.get("__name__")).startswith("raftlog.")
    return is_ours or frame.f_locals.get("__tracebackhide__") is True


def shown(records: Records, other: Records) -> str:
    """Return the first record in which a state differs from another one, and its index."""
    for index, (mine, yours) in enumerate(zip(records, other, strict=False)):
        if mine != yours:
            return f"record {index} is {cut(mine)}, not {cut(yours)}"
    index = min(len(records), len(other))
    if len(records) < len(other):
        return f"there are {index} records, without {cut(other[index])}"
    return f"there are {len(records)} records, not {index}: {cut(records[index])} is too much"


def cut(record: bytes) -> str:
    """Return a record as Python writes it, or its beginning."""
    text = repr(record)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
