# SPDX-License-Identifier: Apache-2.0
"""The command ``raftlog``: one verb a question. A verb's module is imported when the verb is used."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_CODES_HELP, EXIT_ERROR, EXIT_INTERRUPTED
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom
from raftlog.tools.terminal.standard_error import say


class Verb(NamedTuple):
    """A verb of the command: the module under ``raftlog.tools`` whose ``run`` it is, and what it answers."""

    module: str
    answer: str


VERBS: Final = {
    "dump-log": Verb("dump.dump_log", "print what a log's files hold, in Kafka's own words or as JSON lines"),
    "diff": Verb("audit_verbs.diff", "say where replicas of a partition part, and how"),
    "explain": Verb("dump.explain", "say what a rule claims, or show the bytes of one batch"),
    "verify": Verb("audit_verbs.verify", "say what is wrong with files, partitions, log directories or replicas"),
    "audit": Verb("audit_verbs.audit", "verify any number of log directories, and leave tables of the results"),
    "voters": Verb("audit_verbs.voters", "show who voted from which offset on, and what each change was"),
    "epochs": Verb("audit_verbs.epochs", "show who led from which offset on, and for how long"),
    "quorum": Verb(
        "audit_verbs.quorum",
        "show who votes, who could be elected and what may be lost, of a quorum that is not running",
    ),
    "log": Verb("log.verb", "make, write and show a log directory, for tests and demos"),
}
"""Each verb and what it answers; ``dump-log`` is run by ``raftlog.tools.dump.dump_log.run``, and so on."""

_SPOOL_LIMIT_VARIABLE: Final = "RAFTLOG_SPOOL_LIMIT"
"""As in ``raftlog.storage.reading.file_source``, which takes its time to import."""


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
        from raftlog.tools.auditing.crash_isolation import own_fault, tell_faults  # Only for a bug.

        return tell_faults([own_fault(given[0] if given else "raftlog", error)], EXIT_ERROR, "raftlog")
    finally:
        if spool_limit is None:
            os.environ.pop(_SPOOL_LIMIT_VARIABLE, None)  # An option sets it for one run.
        else:
            os.environ[_SPOOL_LIMIT_VARIABLE] = spool_limit


def _run(given: list[str]) -> int:
    if given and given[0] in VERBS:
        from importlib import import_module

        exit_code: int = import_module(f"raftlog.tools.{VERBS[given[0]].module}").run(given[1:])
        return exit_code
    parser = Parser(
        prog="raftlog",
        description="Read, check and explain Kafka's replicated logs.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:10} {verb.answer}" for name, verb in VERBS.items())
        + f"\n\n'raftlog VERB --help' says more. {EXIT_CODES_HELP}",
    )
    parser.add_argument("verb", nargs="?", choices=VERBS, metavar="VERB", help="one of those below")
    parser.parse_args(given)
    parser.print_help(sys.stderr)
    return EXIT_ERROR


if __name__ == "__main__":
    run_process()
