# SPDX-License-Identifier: Apache-2.0
"""``raftlog state`` for the coordinators' topics: groups, committed offsets and transactions at an offset or time."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from raftlog.errors import StateNotThereError
from raftlog.invariants import present
from raftlog.tools.coordinators.coordinator_state import CoordinatorChange
from raftlog.tools.state.coordinator_reading import (
    CoordinatorAt,
    CoordinatorExtent,
    CoordinatorLog,
    ReportProblem,
    StateUnknownError,
    changes_between,
    coordinator_logs,
    extent_of,
    state_at,
)
from raftlog.tools.state.coordinator_things import coordinator_thing, coordinator_things, path_order
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_lines import (
    ShownChange,
    change_json,
    change_lines,
    refusal_text,
    table_lines,
    thing_json,
    tree_lines,
)
from raftlog.tools.state.things import Path, Thing, is_under, path_text
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_SUSPICIOUS
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.value_text import counted, time_text
from raftlog.tools.terminal.verb_output import write_lines, write_text

_MOST_NAMED: Final = 20
"""How many problems are named on standard error."""
_UNCOMMITTED: Final = (
    "Records after the high watermark count as if they were committed: a log does not say where that is."
)
_Logs = Sequence[tuple[CoordinatorLog, CoordinatorExtent]]
_Shown = TypeVar("_Shown")


def show_coordinators(given: argparse.Namespace, topic: str, program: str) -> int:
    """Print the states of a topic's partitions, or the changes between two, and return the exit code.

    Args:
        given: the command line.
        topic: the coordinators' topic.
        program: says what is wrong with a file.

    Raises:
        RaftLogError: there is no such log or state, or a file cannot be read.
    """
    problems: dict[str, None] = {}
    shown = _Coordinators(given, topic, lambda error: problems.update({str(error): None}))
    states = shown.show()
    refusals = [(each.log.path, refusal) for each in states for refusal in each.state.refusals]
    messages = [*problems, *(f"{path}: {refusal_text(refusal)}" for path, refusal in refusals)]
    for message in messages[:_MOST_NAMED]:
        say(message, program)
    if len(messages) > _MOST_NAMED:
        say(f"and {len(messages) - _MOST_NAMED} more problems", program)
    if problems or any(refusal.is_unreadable for _, refusal in refusals):
        return EXIT_DAMAGE
    return EXIT_SUSPICIOUS if refusals else EXIT_CLEAN


@attrs.frozen
class _Changes:
    """What changed in a partition.

    Attributes:
        ends: the two positions.
        before, after: the states at them.
        changes: in order.
        is_there: whether there is anything that was asked for.
    """

    ends: Sequence[Position]
    before: CoordinatorAt
    after: CoordinatorAt
    changes: Sequence[ShownChange]
    is_there: bool


@attrs.define
class _Coordinators:
    """Finds what was asked for, and prints it."""

    given: argparse.Namespace
    topic: str
    problem: ReportProblem

    def show(self) -> list[CoordinatorAt]:
        """Print, and return the last state of each partition."""
        logs = [(log, extent_of(log, self.problem)) for log in coordinator_logs(self.given.paths, self.topic)]
        if self.given.between or self.given.history is not None:
            return self._show_changes(logs)
        _check_alone(logs, self.given.at)
        states = self._known(logs, lambda log, extent: state_at(log, extent, self.given.at, self.problem))
        found = list(_things(states, self.given.path))
        if self.given.path and not found:
            raise StateNotThereError(f"there is nothing at {path_text(self.given.path)}")
        if self.given.format == "json":
            write_text(_state_json(each, self.given.at) for each in states)
            write_text(map(thing_json, found))
        else:
            write_lines(fit_lines([*(line for each in states for line in _head_lines(each)), _UNCOMMITTED]))
            write_lines((table_lines if self.given.format == "table" else tree_lines)(found))
        return states

    def _show_changes(self, logs: _Logs) -> list[CoordinatorAt]:
        given, last = self.given, list[CoordinatorAt]()
        is_history = given.history is not None
        root: Path = given.history if is_history else given.path
        for position in [given.at] if is_history else given.between:
            _check_alone(logs, position)
        waiting: list[_Changes] | None = [] if root else None

        def show(log: CoordinatorLog, extent: CoordinatorExtent) -> None:
            nonlocal waiting
            found = self._changes_of(log, extent, root)
            last.append(found.after)
            ready = [found]
            if waiting is not None:  # Nothing is written before something was found.
                waiting.append(found)
                ready, waiting = (waiting, None) if found.is_there else ([], waiting)
            for number, each in enumerate(ready, len(last) - len(ready)):
                self._write_changes(each, is_first=not number)

        self._known(logs, show)
        if waiting is not None:
            raise StateNotThereError(f"there is nothing at {path_text(root)} in that time")
        return last

    def _changes_of(self, log: CoordinatorLog, extent: CoordinatorExtent, root: Path) -> "_Changes":
        start = Position("the start", offset=extent.start)
        ends = self.given.between or (start, self.given.at)
        shown: list[ShownChange] = []

        def note(change: CoordinatorChange) -> None:
            each = _shown(change)
            if each.before != each.after and is_under(each.path, root):
                shown.append(each)

        before, after = changes_between(log, extent, (ends[0], ends[1]), note, self.problem)
        return _Changes(ends, before, after, shown, bool(shown) or any(_things([before], root)))

    def _write_changes(self, found: "_Changes", *, is_first: bool) -> None:
        if self.given.format == "json":
            write_text([_state_json(found.before, found.ends[0])])
            write_text(change_json(each, partition=found.after.log.partition) for each in found.changes)
            write_text([_state_json(found.after, found.ends[1])])
        else:
            write_lines(fit_lines([*(() if is_first else [""]), *_head_lines(found.after), _UNCOMMITTED, ""]))
            write_lines(change_lines(found.changes))

    def _known(self, logs: _Logs, show: Callable[[CoordinatorLog, CoordinatorExtent], _Shown]) -> list[_Shown]:
        """Return what there is of each partition; one that does not say what its state was is named on output.

        Raises:
            StateUnknownError: none says it.
        """
        found: list[_Shown] = []
        unknown: list[tuple[CoordinatorLog, CoordinatorExtent, str]] = []
        for log, extent in logs:
            try:
                found.append(show(log, extent))
            except StateUnknownError as error:
                unknown.append((log, extent, str(error)))
        if unknown and not found:
            raise StateUnknownError(unknown[0][2])
        if self.given.format == "json":
            write_text(_unknown_json(log, extent, reason) for log, extent, reason in unknown)
        else:
            write_lines(
                fit_lines(
                    f"The state of {log.topic}-{log.partition} is not known: {reason}." for log, _, reason in unknown
                )
            )
        return found


def _check_alone(logs: Sequence[object], position: Position) -> None:
    if len(logs) > 1 and (position.offset is not None or position.from_end):
        raise StateNotThereError(
            f"{position.text} is an offset, and there are {len(logs)} partitions: give one of them, or a time"
        )


def _things(states: Iterable[CoordinatorAt], root: Path) -> Iterator[Thing]:
    found = [thing for each in states for thing in coordinator_things(each.state.entries) if is_under(thing.path, root)]
    yield from sorted(found, key=path_order)


def _shown(change: CoordinatorChange) -> ShownChange:
    before = None if change.before is None else coordinator_thing(change.key, change.before)
    after = None if change.after is None else coordinator_thing(change.key, change.after)
    thing = present(after or before, "an entry before or after its change")
    place = change.offset, change.record_index, change.record, change.timestamp
    return ShownChange(*place, thing.kind, thing.path, before, after)


def _head_lines(found: CoordinatorAt) -> Iterator[str]:
    log, state, extent = found.log, found.state, found.extent
    when = "" if state.timestamp < 0 else f", written up to {time_text(state.timestamp)}"
    yield f"{log.topic}-{log.partition} before offset {state.end_offset}{when}, read from {log.path}."
    if found.is_inside_batch:
        what = "inside a batch, whose records have effect together"
        yield f"Offset {found.asked_offset} is {what}: this is the state before it."
    if found.later_times:
        yield (
            f"A clock went back: {found.later_times} later batches have times that are not after the one asked for,"
            " and are not in this state."
        )
    yield from _lacks(log, extent)
    if state.refusals:
        yield f"{len(state.refusals)} records have no effect in this state; they are named on standard error."


def _lacks(log: CoordinatorLog, extent: CoordinatorExtent) -> Iterator[str]:
    """Yield sentences about the records that are not there, by why they are not."""
    below = f"what was below offset {extent.start}" if extent.below else ""
    gone = f"{counted(extent.gone, 'record')} after offset {extent.start}" if extent.gone else ""
    if below or gone:
        yield f"Compaction has removed {' and '.join(filter(None, (below, gone)))}: a history does not have them."
    if log.first_offset:
        why = "its coordinator has deleted what was before, or" if log.is_pruned else "what was before is not there:"
        yield f"The first segment begins at offset {log.first_offset}: {why} a segment is missing."
    if extent.missing:
        gap = f"{counted(extent.missing, 'offset')} between segments"
        yield f"Nothing is there at {gap}: a segment is missing, or compaction has removed the last records of one."
    if extent.damaged_places:
        lost = f"{counted(extent.damaged, 'offset')} before the last sound batch"
        yield f"{counted(extent.damaged_places, 'damaged place')}: the records at {lost} cannot be read."


def _unknown_json(log: CoordinatorLog, extent: CoordinatorExtent, reason: str) -> str:
    return json_line(
        "coordinator_unknown",
        None,
        topic=log.topic,
        partition=log.partition,
        **path_member("directory", log.path),
        start_offset=extent.start,
        reason=reason,
    )


def _state_json(found: CoordinatorAt, position: Position) -> str:
    log, state, extent = found.log, found.state, found.extent
    return json_line(
        "coordinator_state",
        None,
        topic=log.topic,
        partition=log.partition,
        **path_member("directory", log.path),
        asked=position.text,
        asked_offset=found.asked_offset,
        start_offset=extent.start,
        end_offset=state.end_offset,
        log_end_offset=extent.end,
        timestamp=state.timestamp,
        is_inside_batch=found.is_inside_batch,
        later_times=found.later_times,
        compacted_count=extent.gone,
        missing_count=extent.missing + (0 if log.is_pruned else log.first_offset),
        damaged_count=extent.damaged,
        damaged_places=extent.damaged_places,
        includes_uncommitted=True,
        refused_count=len(state.refusals),
    )
