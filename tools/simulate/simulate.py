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
from raftlog.testing.simulator.runs.replay_file import MAX_FILE_BYTES, decode_schedule, encode_schedule
from raftlog.testing.simulator.runs.schedule import SWITCHES, Schedule, ScheduleOptions, Token, plan_of, run_seed
from raftlog.testing.simulator.runs.telling import ToldRun
from raftlog.tools.simulate.interrupts import Interrupts
from raftlog.tools.simulate.outcomes import outcomes_of_workers
from raftlog.tools.simulate.user_machine import load_machine, machine_fault
from raftlog.tools.simulate.watched_runs import NoOutcomeError, WatchedRuns, watched
from raftlog.tools.simulate.workers import WorkerEndedError
from raftlog.tools.terminal.argument_parser import Parser, natural_number
from raftlog.tools.terminal.audit_options import add_processes_option
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR
from raftlog.tools.terminal.json_lines import json_line
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.verb_output import write_lines, write_text

_PROGRAM: Final = "raftlog simulate"
_LAST_EVENTS: Final = 60
_MOST_ON_A_PAGE: Final = 5_000
_PROGRESS_S: Final = 1.0
_LEAST_S, _MOST_S = 0.01, 86_400


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog simulate`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        kind = BUILT_IN if options.machine is None else load_machine(options.machine, options.machine_timeout)
        if options.diff is not None:
            return watched(kind, lambda runs: _diff(options.diff, runs))
        if options.replay is not None:
            return watched(kind, lambda runs: _replay(options, runs))
        of_all = ScheduleOptions(options.voters, _faults(options.faults), Storage(options.storage), kind)
        return _run_many(options, of_all)
    except BrokenPipeError:
        raise  # The reader of our output has seen enough: the command knows what to do.
    except (OptionError, OSError) as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR
    except NoOutcomeError as error:
        say(str(error), _PROGRAM)
        return error.exit_code


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description="Run quorums of raftlog's core in virtual time, with faults of network, disks, clocks and"
        " processes, and check after each event that no invariant is violated.",
        epilog="Equal options give equal results, on any machine. A token such as s1-4711 names a schedule; a replay"
        " file holds its choices. Exit codes: 0 clean, 1 usage or I/O, 2 an invariant was violated, 130 interrupted.",
    )
    parser.add_argument(
        "--schedules", type=_positive_number, default=100, metavar="N", help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=natural_number, default=0, metavar="S", help="the first seed (default: %(default)s)"
    )
    _add_drawing_options(parser)
    add_processes_option(parser, "run schedules")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="of the results (default: text)")
    _add_replay_options(parser)
    return parser


def _add_drawing_options(parser: Parser) -> None:
    """Add what schedules are drawn from."""
    parser.add_argument("--voters", type=int, metavar="N", help="voters at the start, 1 to 7 (default: drawn)")
    parser.add_argument(
        "--faults",
        default="all",
        metavar="LIST",
        help=f"kinds of faults to draw from, with commas: {', '.join(SWITCHES)}; or all, or none (default: all)",
    )
    parser.add_argument(
        "--storage",
        choices=[each.value for each in Storage],
        default=Storage.DRAWN.value,
        help="what is under the replicas: a fast model of a log, or the real one in files on disks with faults; drawn:"
        " three schedules of ten on files (default: %(default)s)",
    )
    parser.add_argument(
        "--machine",
        metavar="MODULE:CLASS",
        help="a raftlog.testing.state_machine.StateMachine of yours, which each replica runs (default: registers)",
    )
    parser.add_argument(
        "--machine-timeout",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="how long one call of it may take, in seconds (default: %(default)g)",
    )


def _add_replay_options(parser: Parser) -> None:
    """Add what is done with one schedule, or two."""
    parser.add_argument("--replay", metavar="FILE|TOKEN", help="run one schedule again, and show it")
    parser.add_argument("--shrink", action="store_true", help="with --replay: make choices calm while it is violated")
    parser.add_argument(
        "--shrink-runs",
        type=_positive_number,
        default=1000,
        metavar="N",
        help="at most so many tries (default: %(default)s)",
    )
    parser.add_argument(
        "--save", metavar="FILE", help="with --replay: write the schedule, shrunk or not, to a replay file"
    )
    parser.add_argument("--picture", action="store_true", help="with --replay: a column per replica, time downward")
    parser.add_argument("--itf", metavar="FILE", help="with --replay: write a new trace in the Informal Trace Format")
    parser.add_argument("--page", metavar="FILE", help="with --replay: write a new HTML page, a lane per replica")
    parser.add_argument("--all", action="store_true", help=f"with --replay: all events, not the last {_LAST_EVENTS}")
    parser.add_argument(
        "--diff", nargs=2, metavar=("A", "B"), help="show the first event in which two schedules part: files or tokens"
    )


def _positive_number(text: str) -> int:
    number = natural_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is less than 1")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_S <= seconds <= _MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from {_LEAST_S} to {_MOST_S:,}")
    return seconds


def _faults(text: str) -> frozenset[str]:
    if text == "all":
        return frozenset(SWITCHES)
    return frozenset() if text == "none" else frozenset(text.split(","))


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
        say(untold, _PROGRAM)
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
        write_lines([f"{token}: {outcome.violation}", f"  {_PROGRAM}{machine} --replay {token} --shrink"])


def _say_speeds(totals: Totals, seconds: float, speeds: Mapping[str, "_Speed"]) -> None:
    simulated = f"{totals.virtual_ms / 1000 / seconds:,.0f} simulated seconds"
    speed = (
        f"{totals.schedules / seconds:.2f} schedules, {simulated} and {totals.events / seconds:,.0f} events a second"
    )
    say(f"{seconds:.1f} s: {speed}", _PROGRAM)
    for mode, each in speeds.items():
        if each.schedules:
            say(f"{each.schedules:,} schedules on {mode}: {each.words}", _PROGRAM)


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


def _fields(token: Token, outcome: ScheduleOutcome) -> dict[str, Any]:
    violation = outcome.violation
    named = None if violation is None else {"invariant": violation.invariant, "description": violation.description}
    mode = "files" if outcome.is_on_files else "model"
    return {
        "token": str(token),
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
        say(f"two runs of {named} differ, it is not deterministic: first {first[0]}, then {second[0]}", _PROGRAM)
    return schedule, told, first == second


def _ending(outcome: ScheduleOutcome) -> tuple[str, int, int]:
    """Return what all runs of a schedule have in common."""
    shown = "no violation" if outcome.violation is None else str(outcome.violation)
    return f"{shown} after {outcome.events:,} events", outcome.trace, outcome.states


def _replay(options: argparse.Namespace, runs: WatchedRuns) -> int:
    schedule, told, is_same = _schedule(options.replay, runs)
    if options.shrink and told.outcome.violation is not None:
        before = schedule.deviation_count
        shrunk = runs.shrink(schedule, told.outcome.violation, options.shrink_runs)
        schedule = shrunk.schedule
        rest = "" if shrunk.is_finished else ": it is not minimal, more may be possible"
        say(f"{before:,} choices shrunk to {schedule.deviation_count:,} in {shrunk.runs:,} runs{rest}", _PROGRAM)
        told = runs.tell(schedule, options.replay)
    head, events, violation = list(_head(schedule, told.outcome)), told.story.events, told.outcome.violation
    if options.save is not None:
        _write_new(options.save, encode_schedule(schedule, violation))
    if options.itf is not None:
        _write_new(options.itf, itf_trace(told.story.states, told.replicas, f"raftlog simulate: {head[0]}"))
    if options.page is not None:
        last = events[-_MOST_ON_A_PAGE:]
        _write_new(options.page, page_html(head[0], head[1:], last, told.replicas, is_violated=violation is not None))
    shown = events if options.all else events[-_LAST_EVENTS:]
    lines = list(picture_lines(shown, told.replicas) if options.picture else script_lines(shown))
    if len(shown) < len(events):
        lines.insert(0, f"({len(events) - len(shown):,} events before these; --all shows them)")
    write_lines([*head, "", *lines])
    return EXIT_CLEAN if violation is None and is_same else EXIT_DAMAGE


def _write_new(path: str, text: str) -> None:
    with Path(path).open("x", encoding="utf-8") as file:
        file.write(text)


def _head(schedule: Schedule, outcome: ScheduleOutcome) -> Iterator[str]:
    yield "no invariant was violated" if outcome.violation is None else f"violated: {outcome.violation}"
    plan = schedule.plan
    yield f"{plan.voters} voters, {plan.observers} observers; {outcome.ended_ms:,} ms"
    count = schedule.deviation_count
    yield f"{count:,} choices differ from a run without faults" + (":" if 0 < count <= _LAST_EVENTS else "")
    if count <= _LAST_EVENTS:
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
