# SPDX-License-Identifier: Apache-2.0
"""``raftlog simulate``: quorums with faults in virtual time, many of them, or one again that violated an invariant.

::

    raftlog simulate --schedules 500 --seed 0
    raftlog simulate --replay s1-4711 --shrink --save violation.json
    raftlog simulate --replay violation.json --picture
    raftlog simulate --diff s1-4711 violation.json
    raftlog simulate --machine bank:Bank
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import attrs

from raftlog.errors import OptionError
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.checks.schedule_outcome import ScheduleOutcome
from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.campaign import FAULTS, MARKS, Totals, counts_of
from raftlog.testing.simulator.runs.itf import itf_trace
from raftlog.testing.simulator.runs.page import page_html
from raftlog.testing.simulator.runs.picture import picture_lines, script_lines
from raftlog.testing.simulator.runs.possible_faults import impossible_faults, impossible_words, limited_faults
from raftlog.testing.simulator.runs.replay_file import MAX_FILE_BYTES, decode_schedule, encode_schedule
from raftlog.testing.simulator.runs.schedule import SWITCHES, Schedule, ScheduleOptions, Token, plan_of, run_seed
from raftlog.testing.simulator.runs.telling import ToldRun
from raftlog.tools.simulate.interrupts import Interrupts
from raftlog.tools.simulate.options import DEFAULT_MACHINE_TIMEOUT_S, LAST_EVENTS, PROGRAM, parse
from raftlog.tools.simulate.options import make_parser as make_parser
from raftlog.tools.simulate.outcomes import outcomes_of_workers
from raftlog.tools.simulate.user_machine import load_machine, machine_fault
from raftlog.tools.simulate.watched_runs import NoOutcomeError, WatchedRuns, watched
from raftlog.tools.simulate.workers import WorkerEndedError
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR
from raftlog.tools.terminal.json_lines import json_line
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import write_lines, write_text

_MOST_ON_A_PAGE: Final = 5_000
_PROGRESS_S: Final = 1.0


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog simulate`` with what follows it on the command line, and return the exit code."""
    options = parse(arguments)
    try:
        kind = BUILT_IN if options.machine is None else load_machine(options.machine, options.machine_timeout)
        if options.diff is not None:
            return watched(kind, lambda runs: _diff(options.diff, runs))
        if options.replay is not None:
            return watched(kind, lambda runs: _replay(options, runs))
        of_all = ScheduleOptions(options.voters, options.faults, Storage(options.storage), kind)
        _tell_limits(of_all)
        return _run_many(options, of_all)
    except BrokenPipeError:
        raise  # The reader of our output has seen enough: the command knows what to do.
    except (OptionError, OSError) as error:
        say(str(error), PROGRAM)
        return EXIT_ERROR
    except NoOutcomeError as error:
        say(str(error), PROGRAM)
        return error.exit_code


def _tell_limits(options: ScheduleOptions) -> None:
    """Say which of the faults that are asked for no schedule has, or has in part only."""
    if options.faults == SWITCHES.keys():
        return
    if impossible := impossible_faults(options.faults, options.voters, options.storage):
        say(impossible_words(impossible), PROGRAM)
    for words in limited_faults(options.faults, options.voters):
        say(words, PROGRAM)


# Many schedules


def _run_many(options: argparse.Namespace, of_all: ScheduleOptions) -> int:
    """Run schedules, and print the table of what they came to, whatever has ended it."""
    totals, started_s, speeds = Totals(), time.monotonic(), {"the model": _Speed(), "files": _Speed()}
    progress, untold = _Progress(options.schedules), None
    with Interrupts() as interrupts:
        for token, outcome, cpu_s in _told_outcomes(options, of_all, interrupts):
            if isinstance(outcome, WorkerEndedError):
                untold = f"{token}: {outcome}, and nothing is known of this schedule"
                break
            totals.add(token, outcome)
            if cpu_s is not None:
                speeds["files" if outcome.is_on_files else "the model"].add(outcome, cpu_s)
            progress.reached(totals)
            _write_outcome(options, token, outcome, progress)
        progress.wipe()
        _write_totals(totals, options.format)
    _say_speeds(totals, max(time.monotonic() - started_s, 1e-9), speeds)
    if untold is not None:
        say(untold, PROGRAM)
        return EXIT_DAMAGE if totals.violations else EXIT_ERROR
    if totals.violations:
        return EXIT_DAMAGE
    return EXIT_CLEAN if totals.schedules == options.schedules else interrupts.exit_code()


def _told_outcomes(
    options: argparse.Namespace, of_all: ScheduleOptions, interrupts: Interrupts
) -> Iterator[tuple[Token, ScheduleOutcome | WorkerEndedError, float | None]]:
    """Yield tokens with their outcomes, and CPU times in s if known.

    That a state machine ends the process that runs it is a violation.
    """
    seeds = range(options.seed, options.seed + options.schedules)
    for token, result in outcomes_of_workers(seeds, options.processes, _timed, of_all, interrupts):
        if not isinstance(result, WorkerEndedError):
            yield token, *result
        elif (fault := machine_fault(of_all.kind, result)) is None:
            yield token, result, None
        else:
            yield token, ScheduleOutcome.untold(fault, is_on_files=plan_of(token).is_on_files), None


def _write_outcome(options: argparse.Namespace, token: Token, outcome: ScheduleOutcome, progress: "_Progress") -> None:
    if options.format == "jsonl":
        write_text([json_line("schedule", None, **_fields(token, outcome))])
    elif outcome.violation is not None:
        progress.wipe()
        machine = "" if options.machine is None else f" --machine {options.machine}"
        if options.machine is not None and options.machine_timeout != DEFAULT_MACHINE_TIMEOUT_S:
            machine += f" --machine-timeout {options.machine_timeout:g}"
        write_lines([f"{token}: {outcome.violation}", f"  {PROGRAM}{machine} --replay {token} --shrink"])


def _say_speeds(totals: Totals, seconds: float, speeds: Mapping[str, "_Speed"]) -> None:
    simulated = f"{totals.virtual_ms / 1000 / seconds:,.0f} simulated seconds"
    speed = (
        f"{totals.schedules / seconds:.2f} schedules, {simulated} and {totals.events / seconds:,.0f} events a second"
    )
    say(f"{seconds:.1f} s: {speed}", PROGRAM)
    for mode, each in speeds.items():
        if each.schedules:
            say(f"{each.schedules:,} schedules on {mode}: {each.words}", PROGRAM)


def _timed(token: Token) -> tuple[ScheduleOutcome, float]:
    """Run a schedule, and return its CPU time, too, in s."""
    started_s = time.process_time()
    outcome = run_seed(token)
    return outcome, time.process_time() - started_s


@attrs.define
class _Speed:
    """How fast the schedules of one mode were: with the model of a log in memory, or with the real one on files."""

    schedules: int = 0
    events: int = 0
    cpu_s: float = 0.0

    def add(self, outcome: ScheduleOutcome, cpu_s: float) -> None:
        self.schedules += 1
        self.events += outcome.events
        self.cpu_s += cpu_s

    @property
    def words(self) -> str:
        cpu_s = max(self.cpu_s, 1e-9)
        return f"{self.events / cpu_s:,.0f} events, {self.schedules / cpu_s:.2f} schedules per second of CPU"


class _Progress:
    """Shows on a terminal how many schedules have ended."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._next_s = time.monotonic() + _PROGRESS_S

    def reached(self, totals: Totals) -> None:
        """Show it, at most once a second."""
        if self._is_shown and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _PROGRESS_S
            sys.stderr.write(f"\r{totals.schedules:,} of {self._count:,}, {len(totals.violations)} violations")
            sys.stderr.flush()

    def wipe(self) -> None:
        """Remove it from the terminal."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _fields(token: Token | str | None, outcome: ScheduleOutcome) -> dict[str, Any]:
    violation = outcome.violation
    named = None if violation is None else {"invariant": violation.invariant, "description": violation.description}
    mode = "files" if outcome.is_on_files else "model"
    return {
        "token": None if token is None else str(token),
        "mode": mode,
        "violation": named,
        **counts_of(outcome),
        "events": outcome.events,
        "trace": outcome.trace,
        "states": outcome.states,
    }


def _write_totals(totals: Totals, output_format: str) -> None:
    if output_format == "jsonl":
        sums = {"schedules": totals.schedules, "counting": totals.counting, "violations": len(totals.violations)}
        write_text([json_line("total", None, **sums, **totals.sums, events=totals.events)])
        return
    lines = [f"{'':<18}{'in all':>12}{'schedules with it':>20}"]
    for title, names in (("", MARKS), ("faults", FAULTS)):
        lines += [title] if title else []
        lines += [f"{name.replace('_', ' '):<18}{totals.sums[name]:>12,}{totals.hits[name]:>20,}" for name in names]
    lines.append(
        f"{totals.schedules:,} schedules, of which {totals.counting:,} count; {len(totals.violations)} violations"
    )
    if totals.missed and totals.schedules:
        lines.append(f"never seen: {', '.join(name.replace('_', ' ') for name in totals.missed)}")
    write_lines(lines)


# One schedule


def _schedule(named: str, runs: WatchedRuns) -> tuple[Schedule, ToldRun, bool]:
    """Return the schedule of a token, or of a replay file, its run, and whether another run of a token was the same."""
    if Path(named).exists():
        with Path(named).open("rb") as file:
            schedule = decode_schedule(file.read(MAX_FILE_BYTES + 1), named, runs.kind)
        return schedule, runs.tell(schedule, named), True
    schedule, outcome = runs.record(Token.parse(named, runs.kind))
    told = runs.tell(schedule, named)
    first, second = _ending(outcome), _ending(told.outcome)
    if first != second:
        say(f"two runs of {named} differ, it is not deterministic: first {first[0]}, then {second[0]}", PROGRAM)
    return schedule, told, first == second


def _ending(outcome: ScheduleOutcome) -> tuple[str, int, int]:
    """Return what all runs of a schedule have in common."""
    shown = "no violation" if outcome.violation is None else str(outcome.violation)
    return f"{shown} after {outcome.events:,} events", outcome.trace, outcome.states


def _replay(options: argparse.Namespace, runs: WatchedRuns) -> int:
    schedule, told, is_same = _schedule(options.replay, runs)
    is_shrunk = False
    if options.shrink and told.outcome.violation is not None:
        before = schedule.deviation_count
        shrunk = runs.shrink(schedule, told.outcome.violation, options.shrink_runs)
        schedule, is_shrunk = shrunk.schedule, True
        rest = "" if shrunk.is_finished else ": it is not minimal, more may be possible"
        say(f"{before:,} choices shrunk to {schedule.deviation_count:,} in {shrunk.runs:,} runs{rest}", PROGRAM)
        told = runs.tell(schedule, options.replay)
    head, violation = list(_head(schedule, told.outcome)), told.outcome.violation
    if options.save is not None:
        _write_new(options.save, encode_schedule(schedule, violation))
    if options.itf is not None:
        _write_new(options.itf, itf_trace(told.story.states, told.replicas, f"raftlog simulate: {head[0]}"))
    if options.page is not None:
        _write_new(options.page, _page(head, told))
    if options.format == "jsonl":
        token = None if is_shrunk or Path(options.replay).exists() else options.replay
        _write_told(token, schedule, told, None if options.all else LAST_EVENTS)
    else:
        _show(head, told, options)
    return EXIT_CLEAN if violation is None and is_same else EXIT_DAMAGE


def _page(head: Sequence[str], told: ToldRun) -> str:
    """Return the page, of the last events if there are too many for one."""
    events, is_violated = told.story.events, told.outcome.violation is not None
    last = events[-_MOST_ON_A_PAGE:]
    before = len(events) - len(last)
    return page_html(head[0], head[1:], last, told.replicas, is_violated=is_violated, before=before)


def _show(head: Sequence[str], told: ToldRun, options: argparse.Namespace) -> None:
    """Write a run as text: a script, or a picture."""
    events = told.story.events
    shown = events if options.all else events[-LAST_EVENTS:]
    lines = list(picture_lines(shown, told.replicas) if options.picture else script_lines(shown))
    if len(shown) < len(events):
        lines.insert(0, f"({len(events) - len(shown):,} events before these; --all shows them)")
    write_lines([*head, "", *lines])


def _write_told(token: str | None, schedule: Schedule, told: ToldRun, most: int | None) -> None:
    """Write a run as JSON lines: the schedule, and its last events, each with its number from 0."""
    events = told.story.events
    first = 0 if most is None else max(0, len(events) - most)
    fields = _fields(token, told.outcome) | {"choices": schedule.deviation_count, "events_before": first}
    write_text([json_line("schedule", None, **fields)])
    for number, event in enumerate(events[first:], first):
        members = attrs.asdict(event)
        write_text([json_line("event", None, number=number, event=members.pop("kind"), **members)])


def _write_new(path: str, text: str) -> None:
    with Path(path).open("x", encoding="utf-8") as file:
        file.write(text)


def _head(schedule: Schedule, outcome: ScheduleOutcome) -> Iterator[str]:
    yield "no invariant was violated" if outcome.violation is None else f"violated: {outcome.violation}"
    plan = schedule.plan
    yield f"{plan.voters} voters, {plan.observers} observers; {outcome.ended_ms:,} ms"
    count = schedule.deviation_count
    yield f"{count:,} choices differ from a run without faults" + (":" if 0 < count <= LAST_EVENTS else "")
    if count <= LAST_EVENTS:
        for name, value in schedule.deviations.items():
            of = f" of {', '.join(map(str, name.of))}" if name.of else ""
            yield f"  {name.kind}{of}, number {name.number}: {value}"


def _diff(both: Sequence[str], runs: WatchedRuns) -> int:
    """Show the first event in which two schedules part."""
    told = [_schedule(named, runs)[1] for named in both]
    first, second = (each.story.events for each in told)
    pairs = enumerate(zip_longest(first, second))
    parting = next((number for number, (left, right) in pairs if left != right), None)
    if parting is None:
        write_lines([f"both have the same {len(first):,} events"])
        return EXIT_CLEAN
    lines = [f"the first {parting:,} events are the same; the last of them:"]
    lines += [f"  {event}" for event in first[max(0, parting - 5) : parting]]
    for named, events in zip(both, (first, second), strict=True):
        lines.append(f"{named}: {events[parting] if parting < len(events) else 'it has ended'}")
    write_lines(lines)
    return EXIT_DAMAGE if any(each.outcome.violation for each in told) else EXIT_CLEAN
