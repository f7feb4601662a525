# SPDX-License-Identifier: Apache-2.0
"""Planting violations: a pointer of an object is set to a wrong value, and what is done next must notice it."""

import collections
import contextlib
import copy
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import attrs
from sortedcontainers import SortedDict

from raftlog.errors import InvariantViolation
from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import RecordBatch
from raftlog.storage.recovery.recovery_point import RecoveryPoint
from raftlog.storage.segments.log_segment import LogSegment
from raftlog.storage.segments.segment_scan import Problem
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.voters.history import HistoryEntry
from raftlog.voters.voter_set import VoterSet
from tests.checkout import ROOT

Operation = Callable[[Any], object]

_FAR: Final = 100_000
_MOST_CHOICES: Final = 4


@attrs.frozen
class Scenario:
    """Something that is done with objects that keep pointers.

    Attributes:
        make: returns what it is done with.
        operations: done one after the other.
    """

    make: Callable[[], Any]
    operations: tuple[Operation, ...]


@attrs.frozen
class Site:
    """A check in the code.

    Attributes:
        path: of its module, from the checkout on.
        function: that makes it.
        first, last: its lines, inclusive.
        subjects: what it looks at, as expressions of owners and names of attributes; without owner it is a variable.
    """

    path: str
    function: str
    first: int
    last: int
    subjects: tuple[tuple[str, str], ...]


def caught(operation: Callable[[], object]) -> InvariantViolation | None:
    """Run something, and return the violation that it raises; other errors are ignored."""
    try:
        operation()
    except InvariantViolation as error:
        return error
    except Exception:
        return None
    return None


def wrong_values(value: Any) -> Iterator[Any]:  # noqa: C901 - one line for each type of pointer
    """Yield values that a pointer must not have where it has this one."""
    if isinstance(value, bool | int):
        yield from (not value,) if isinstance(value, bool) else (value - _FAR, value - 1, value + 1, value + _FAR)
        return
    if value is None:
        yield -_FAR
    match value:
        case LeaderEpochs():
            yield LeaderEpochs((*value.entries, EpochEntry(_FAR, _FAR)))
            yield LeaderEpochs()
        case RecoveryPoint():
            yield attrs.evolve(value, generation=value.generation + _FAR)
            yield attrs.evolve(value, generation=-1)
            yield attrs.evolve(value, log_start_offset=1 << 64)
        case bytes() | bytearray():
            yield from (value[:-1], value + b"x")
        case memoryview():
            yield from (value[:0], memoryview(bytes(value.nbytes + _FAR)))
        case list() | collections.deque():
            if value:
                kind = type(value)
                yield from (kind(list(value)[:-1]), kind(list(value)[1:]), kind([*value, value[0]]))
        case SortedDict():
            if value:
                yield SortedDict({**value, _FAR: value.peekitem()[1]})
                yield SortedDict({})
        case RecordBatch():
            yield RecordBatch(raft_batch(_FAR, 1), _FAR)
        case HistoryEntry():
            yield from (value._replace(offset=_FAR), value._replace(value=VoterSet()))
        case Problem():
            yield None
        case LogSegment():
            yield copy.copy(value)
        case tuple() if value and all(isinstance(each, int) for each in value):
            yield from (tuple(-_FAR for _ in value), tuple(_FAR for _ in value))


def planted_at(site: Site, scenario: Scenario) -> InvariantViolation | None:
    """Run a scenario, and spoil the values that a check compares, one after the other, until it notices.

    Returns:
        The violation that the check raised; None if it is not reached, or notices nothing.
    """
    if (str(ROOT / site.path), site.function) not in _functions_of(scenario):
        return None
    for number in range(len(site.subjects)):
        for choice in range(_MOST_CHOICES):
            spoiler = _Spoiler(site, number, choice)
            found = spoiler.run(scenario)
            if found is not None and spoiler.has_noticed:
                return found
            if not spoiler.has_spoiled:
                break
    return None


@functools.cache
def _functions_of(scenario: Scenario) -> frozenset[tuple[str, str]]:
    """Return the functions that a scenario calls until something is spoiled, with the paths of their files."""
    called: set[CodeType] = set()
    subject, before = scenario.make(), sys.getprofile()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        for operation in scenario.operations:
            caught(lambda operation=operation: operation(subject))  # type: ignore[misc]
    finally:
        sys.setprofile(before)
    return frozenset((_resolved(code.co_filename), code.co_name) for code in called)


@functools.cache
def _resolved(path: str) -> str:
    return str(Path(path).resolve())


class _Spoiler:
    """Follows the lines of a function, and spoils a value once the line of a check is reached."""

    def __init__(self, site: Site, number: int, choice: int) -> None:
        self._site, self._number, self._choice = site, number, choice
        self._file = str(ROOT / site.path)
        self.has_spoiled = self.has_noticed = False

    def run(self, scenario: Scenario) -> InvariantViolation | None:
        """Do all of a scenario; return the first violation."""
        subject, before = scenario.make(), sys.gettrace()
        sys.settrace(self._trace_call)
        try:
            for operation in scenario.operations:
                found = caught(lambda operation=operation: operation(subject))  # type: ignore[misc]
                if found is not None:
                    return found
        finally:
            sys.settrace(before)
        return None

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        is_there = code.co_name == self._site.function and _resolved(code.co_filename) == self._file
        return self._trace_line if is_there else None

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and not self.has_spoiled and self._site.first <= frame.f_lineno <= self._site.last:
            self._spoil(frame)
        if event == "exception" and argument[0] is InvariantViolation:  # type: ignore[index]
            self.has_noticed |= self._site.first <= frame.f_lineno <= self._site.last
        return self._trace_line

    def _spoil(self, frame: FrameType) -> None:
        owner, name = self._site.subjects[self._number]
        try:
            holder = eval(owner, frame.f_globals, frame.f_locals) if owner else None
            value = getattr(holder, name) if owner else frame.f_locals[name]
            wrong = list(wrong_values(value))[self._choice]
        except (AttributeError, IndexError, KeyError, NameError):
            return
        if not owner:
            frame.f_locals[name] = wrong
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        else:
            with contextlib.suppress(AttributeError):
                object.__setattr__(holder, name, wrong)
        self.has_spoiled = True
