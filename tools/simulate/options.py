# SPDX-License-Identifier: Apache-2.0
"""The options of ``raftlog simulate``, and which of them go together."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.schedule import SWITCHES
from raftlog.tools.terminal.argument_parser import Parser, natural_number
from raftlog.tools.terminal.audit_options import add_processes_option

PROGRAM: Final = "raftlog simulate"
DEFAULT_MACHINE_TIMEOUT_S: Final = 10.0
LAST_EVENTS: Final = 60
"""So many events of a replay are shown, unless all are asked for."""
_LEAST_S, _MOST_S = 0.01, 86_400
_NOT_GIVEN: Final[Any] = object()

_DRAWN: Final = "many schedules"
_REPLAY: Final = "--replay"
_DIFF: Final = "--diff"
_OF_MODES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("--schedules", "--seed", "--voters", "--faults", "--storage", "--processes"), (_DRAWN,)),
    **dict.fromkeys(("--shrink", "--shrink-runs", "--save", "--picture", "--itf", "--page", "--all"), (_REPLAY,)),
    "--format": (_DRAWN, _REPLAY),
    **dict.fromkeys(("--machine", "--machine-timeout"), (_DRAWN, _REPLAY, _DIFF)),
}
"""What each option is for."""
_NEEDS: Final[Mapping[str, str]] = {"--shrink-runs": "--shrink", "--machine-timeout": "--machine"}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options. One that would be ignored beside the others is a usage error, like any other."""
    parser = make_parser()
    actions = [each for each in parser.actions() if each.option_strings and each.default is not argparse.SUPPRESS]
    options = parser.parse_args(arguments, argparse.Namespace(**{each.dest: _NOT_GIVEN for each in actions}))
    given = [each.option_strings[-1] for each in actions if getattr(options, each.dest) is not _NOT_GIVEN]
    for action in actions:
        if getattr(options, action.dest) is _NOT_GIVEN:
            setattr(options, action.dest, action.default)
    complaint = next(_ignored(given, options), None)
    if complaint is not None:
        parser.error(complaint)
    return options


def _ignored(given: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """Yield why an option that is given would have no effect."""
    if _REPLAY in given and _DIFF in given:
        yield f"{_REPLAY} and {_DIFF} do not go together"
    mode = next((each for each in (_REPLAY, _DIFF) if each in given), _DRAWN)
    for name in given:
        modes = _OF_MODES.get(name, (mode,))
        if mode not in modes:
            yield f"{name} needs {_REPLAY}" if modes == (_REPLAY,) else f"{name} does not go together with {mode}"
        if _NEEDS.get(name, name) not in given:
            yield f"{name} needs {_NEEDS[name]}"
    if options.picture and options.format == "jsonl":
        yield "--picture does not go together with --format jsonl"


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=PROGRAM,
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
        type=_faults,
        default=frozenset(SWITCHES),
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
        default=DEFAULT_MACHINE_TIMEOUT_S,
        metavar="S",
        help="how long one call of it may take, in seconds (default: %(default)g)",
    )


def _add_replay_options(parser: Parser) -> None:
    """Add what is done with one schedule, or two."""
    parser.add_argument("--replay", type=_name, metavar="FILE|TOKEN", help="run one schedule again, and show it")
    parser.add_argument("--shrink", action="store_true", help="with --replay: make choices calm while it is violated")
    parser.add_argument(
        "--shrink-runs",
        type=_positive_number,
        default=1000,
        metavar="N",
        help="at most so many tries (default: %(default)s)",
    )
    parser.add_argument(
        "--save",
        type=_name,
        metavar="FILE",
        help="with --replay: write the schedule, shrunk or not, to a new replay file",
    )
    parser.add_argument("--picture", action="store_true", help="with --replay: a column per replica, time downward")
    parser.add_argument(
        "--itf", type=_name, metavar="FILE", help="with --replay: write a new trace in the Informal Trace Format"
    )
    parser.add_argument(
        "--page", type=_name, metavar="FILE", help="with --replay: write a new HTML page, a lane per replica"
    )
    parser.add_argument("--all", action="store_true", help=f"with --replay: all events, not the last {LAST_EVENTS}")
    parser.add_argument(
        "--diff",
        nargs=2,
        type=_name,
        metavar=("A", "B"),
        help="show the first event in which two schedules part: files or tokens",
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


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("an empty text is no name of a file")
    return text


def _faults(text: str) -> frozenset[str]:
    if text in {"all", "none"}:
        return frozenset(SWITCHES) if text == "all" else frozenset()
    names = text.split(",")
    for name in names:
        if name not in SWITCHES:
            known = f"; there are {', '.join(SWITCHES)}; all and none stand alone"
            raise argparse.ArgumentTypeError((f"no {name}" if name else f"{text!r} has an empty name") + known)
    return frozenset(names)
