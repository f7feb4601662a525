# SPDX-License-Identifier: Apache-2.0
"""The command ``raftlog``, with one verb per question. A verb's module is imported when the verb is used."""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_ERROR, EXIT_INTERRUPTED
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.suggestion import unknown_word
from raftlog.tools.verb_help.verbs import VERBS, load_verb, make_command_parser

_SPOOL_LIMIT_VARIABLE: Final = "RAFTLOG_SPOOL_LIMIT"
"""The same as in ``raftlog.storage.reading.file_source``, which is slow to import."""


def run_process() -> NoReturn:
    """Run the command as a process of its own, and end the process with its exit code.

    It ends at once: Python's cleanup of everything imported takes as long as the audit of a small log.
    """
    collect_garbage_seldom()
    exit_code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(exit_code)  # Python reports the error of the stream.
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
        # The reader of our output has closed it. Without this, Python would report an error when it closes the stream.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLEAN
    except OSError as error:
        say(str(error))
        return EXIT_ERROR
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else EXIT_ERROR
    except Exception as error:
        from raftlog.tools.auditing.crash_isolation import audit_failed, report_faults  # Only for a bug.

        return report_faults([audit_failed(given[0] if given else "raftlog", error)], EXIT_ERROR, "raftlog")
    finally:
        if spool_limit is None:
            os.environ.pop(_SPOOL_LIMIT_VARIABLE, None)  # An option sets it for one run.
        else:
            os.environ[_SPOOL_LIMIT_VARIABLE] = spool_limit


def _run(given: list[str]) -> int:
    if given and given[0] in VERBS:
        return load_verb(given[0]).run(given[1:])
    parser = make_command_parser()
    if given and not given[0].startswith("-"):
        parser.error(unknown_word("verb", given[0], VERBS))
    parser.parse_args(given)
    parser.print_help(sys.stderr)
    return EXIT_ERROR


if __name__ == "__main__":
    run_process()
