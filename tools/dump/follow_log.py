# SPDX-License-Identifier: Apache-2.0
"""``raftlog follow``: print a log as it grows, as ``dump-log --follow`` does, which has the same options."""

from collections.abc import Sequence

from raftlog.tools.dump.dump_log import run_with
from raftlog.tools.dump.dump_options import make_follow_parser, parse_follow_options
from raftlog.tools.terminal.argument_parser import Parser


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog follow`` with what follows it on the command line, and return the exit code."""
    return run_with(parse_follow_options(arguments), "raftlog follow")


def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    return make_follow_parser()
