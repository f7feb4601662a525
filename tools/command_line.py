# SPDX-License-Identifier: Apache-2.0
"""The command ``raftlog``: one verb a question. A verb's module is imported when the verb is used."""

import argparse
import contextlib
import functools
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from raftlog import __version__
from raftlog.tools.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_ERROR, EXIT_INTERRUPTED
from raftlog.tools.standard_error import say

VERBS: Final = {
    "dump-log": "print what a log's files hold, in Kafka's own words or as JSON lines",
    "diff": "say where replicas of a partition part, and how",
    "explain": "say what a rule claims, or show the bytes of one batch",
    "verify": "say what is wrong with files, partitions, log directories or replicas",
    "audit": "verify any number of log directories, and leave tables of the results",
    "voters": "show who voted from which offset on, and what each change was",
    "epochs": "show who led from which offset on, and for how long",
    "quorum": "show who votes, who could be elected and what may be lost, of a quorum that is not running",
    "log": "make, write and show a log directory, for tests and demos",
}
"""Each verb and what it answers; ``dump-log`` is run by ``raftlog.tools.dump_log.run``, and so on."""

_SPOOL_LIMIT_VARIABLE: Final = "RAFTLOG_SPOOL_LIMIT"
"""As in ``raftlog.storage.file_source``, which takes its time to import."""
_GARBAGE_THRESHOLD: Final = 10_000
"""How many new objects make Python look for cycles among them: what a start makes stays, and there is much of it."""


class _ShowVersion(argparse.Action):
    """Prints the version, and which form of the kernel runs, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from raftlog.records.kernel_choice import IS_COMPILED  # Only here: it takes its time.

        sys.stdout.write(f"raftlog {__version__} (kernel {'compiled' if IS_COMPILED else 'interpreted'})\n")
        parser.exit(EXIT_CLEAN)


class Parser(argparse.ArgumentParser):
    """An argument parser that knows ``--version``, and whose usage errors exit with 1, as Kafka's tools do."""

    def __init__(self, formatter_class: type[argparse.HelpFormatter] = argparse.HelpFormatter, **options: Any) -> None:
        formatter = functools.partial(formatter_class, width=_text_width())
        super().__init__(allow_abbrev=False, formatter_class=formatter, **options)
        self.add_argument("--version", action=_ShowVersion, nargs=0, help="print raftlog's version and exit")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and exit."""
        say(f"{message} (see {self.prog} --help)", self.prog)
        self.exit(EXIT_ERROR)


def _text_width() -> int:
    """Say how wide help may be, as argparse does; it would import all of shutil to know, for every option."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted) - 2
    try:
        columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # It is closed, or no terminal.
        columns = 0
    return (columns or 80) - 2


def collect_garbage_seldom() -> None:
    """Set up this process, which is ours, so that what it has loaded is not looked through again and again."""
    gc.set_threshold(_GARBAGE_THRESHOLD)


def run_process() -> NoReturn:
    """Run the command as a process of its own, and end that with its exit code.

    It ends at once: to take apart all that was imported, as Python does, takes as long as the audit of a small log.
    """
    collect_garbage_seldom()
    exit_code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(exit_code)  # Python says what is wrong with a stream.
    os._exit(exit_code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        arguments: what follows ``raftlog`` on the command line; None takes the process's own.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    spool_limit = os.environ.get(_SPOOL_LIMIT_VARIABLE)
    if sys.stdout is None:
        say("standard output is closed")
        return EXIT_ERROR
    try:
        return _run(given)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain when it closes standard output.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLEAN
    except OSError as error:
        say(str(error))
        return EXIT_ERROR
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else EXIT_ERROR
    except Exception as error:
        from raftlog.tools.auditing.own_fault import own_fault, tell_faults  # Only for a bug.

        return tell_faults([own_fault(given[0] if given else "raftlog", error)], EXIT_ERROR, "raftlog")
    finally:
        if spool_limit is None:
            os.environ.pop(_SPOOL_LIMIT_VARIABLE, None)  # An option sets it for one run.
        else:
            os.environ[_SPOOL_LIMIT_VARIABLE] = spool_limit


def _run(given: list[str]) -> int:
    if given and given[0] in VERBS:
        from importlib import import_module

        verb = import_module(f"raftlog.tools.{given[0].replace('-', '_')}")
        exit_code: int = verb.run(given[1:])
        return exit_code
    parser = Parser(
        prog="raftlog",
        description="Read, check and explain Kafka's replicated logs.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {verb:10} {answer}" for verb, answer in VERBS.items())
        + f"\n\n'raftlog VERB --help' says more. {EXIT_CODES_HELP}",
    )
    parser.add_argument("verb", nargs="?", choices=VERBS, metavar="VERB", help="one of those below")
    parser.parse_args(given)
    parser.print_help(sys.stderr)
    return EXIT_ERROR


if __name__ == "__main__":
    run_process()
