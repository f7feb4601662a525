# SPDX-License-Identifier: Apache-2.0
"""``raftlog query``: SQL over the files of logs."""

import argparse
import contextlib
import importlib.util
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from raftlog.errors import MissingExtraError, RaftLogError, StorageError
from raftlog.storage.reading.file_source import parse_size
from raftlog.tools.own_file import check_outside
from raftlog.tools.terminal.argument_parser import Parser
from raftlog.tools.terminal.audit_options import LOG_PATHS_HELP, add_processes_option, prepare_to_survey
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP, EXIT_ERROR
from raftlog.tools.terminal.standard_error import say

FORMATS: Final = ("table", "csv", "jsonl", "parquet")
_PROGRAM: Final = "raftlog query"
_DEFAULT_MEMORY: Final = "1G"
_LEAST_MEMORY: Final = 256 * 1024 * 1024
"""In bytes: with less, one thread of DuckDB failed to sort records of usual sizes that it cannot keep, as measured."""
_LARGEST_MEASURE: Final = 32 * 1024 * 1024 - 64 * 1024
"""In bytes: with what the block itself needs, glibc regards none above 32 MiB."""
_VIEWS: Final = "batches, records, control, metadata, voters, epochs and findings"


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog query`` with what follows it on the command line, and return the exit code."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    if given.shell:
        given.paths.insert(0, given.sql)
    if not given.paths:
        parser.error("name a directory")
    if (given.format == "parquet") != (given.out is not None):
        parser.error("--format parquet needs --out FILE, and the other formats go to standard output")
    if given.shell and given.out is not None:
        parser.error("--shell shows results: it has no --format parquet")
    try:
        return _query(given)
    except RaftLogError as error:
        say(str(error), _PROGRAM)
        return EXIT_ERROR


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog=_PROGRAM,
        description=f"Answer a question in SQL, by DuckDB, over the views {_VIEWS} of the given files."
        " 'DESCRIBE records' shows the columns of a view. Only what a query names is decoded, and conditions on"
        " offsets, times, topics, partitions, directories and nodes choose what is read.",
        epilog="Damage is left out and told, once per file; the view findings has all of it. A query cannot read or"
        f" write other files. {EXIT_CODES_HELP}",
    )
    parser.add_argument("sql", metavar="SQL", help="one statement: SELECT, DESCRIBE, SUMMARIZE, SHOW TABLES or EXPLAIN")
    parser.add_argument("paths", nargs="*", metavar="DIR", help=LOG_PATHS_HELP)
    parser.add_argument("--shell", action="store_true", help="ask for statements, which end with ; instead of SQL")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to print (default: %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="the new file for --format parquet")
    parser.add_argument(
        "--memory-limit",
        type=_memory,
        default=_DEFAULT_MEMORY,
        metavar="SIZE",
        help="the most that DuckDB keeps in memory, such as 500M or 8G, at least 256M, with a thread for each"
        " 512M; the rest goes to the temporary directory (default: %(default)s)",
    )
    parser.add_argument(
        "--temp-directory",
        metavar="DIR",
        help="where to make a private directory for what exceeds the limit, which is removed at the end; never inside a"
        " source (default: what TMPDIR says, or else /tmp)",
    )
    parser.add_argument("--no-redact", action="store_true", help="show secrets of metadata and of Connect")
    add_processes_option(parser, "look for findings, voters and epochs")
    return parser


def _memory(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is less than {_LEAST_MEMORY // 1024 // 1024}M")
    return size


def _query(given: argparse.Namespace) -> int:
    prepare_to_survey()
    keep_freed_memory()
    if importlib.util.find_spec("duckdb") is None:
        raise MissingExtraError("sql", "raftlog query")
    with _private_directory(given.temp_directory, given.paths) as directory:
        from raftlog.tools.querying.session import Session  # Only now: pyarrow and DuckDB come with it.

        session = Session(given, directory, _PROGRAM)
        if given.shell:
            from raftlog.tools.querying.shell import Shell  # Only needed for this.

            return Shell(session).run()
        if given.out is None:
            return session.show(given.sql)
        check_outside(given.out, given.paths)
        return session.write(given.sql, given.out)


def keep_freed_memory() -> None:
    """Have the C library keep up to 64 MiB of freed memory per thread, for the next record batches.

    DuckDB's threads free what they read soon after. glibc would return it to the system, and the system would clear
    it again for each batch. The largest block that was mapped and freed is its measure of what to keep. None of this
    block is ever touched, so that it costs no memory. Other C libraries do not regard it.

    Source: glibc's malloc.c, ``DEFAULT_MMAP_THRESHOLD_MAX``, and mallopt(3), ``M_MMAP_THRESHOLD``.
    """
    bytes(_LARGEST_MEASURE)


@contextlib.contextmanager
def _private_directory(parent: str | None, sources: Sequence[str]) -> Iterator[str]:
    """Make a directory for the time of a query.

    Raises:
        LogDirectoryError: it would be in a source, which is only read.
        StorageError: it cannot be made.
    """
    place = tempfile.gettempdir() if parent is None else parent
    check_outside(place, sources)
    directory = Path(place, f"raftlog-query-{secrets.token_hex(8)}")
    try:  # Whenever an interrupt comes, its name is known.
        try:
            directory.mkdir(0o700)
        except OSError as error:
            raise StorageError(place, "make a directory in it", error.strerror or str(error)) from error
        yield str(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
