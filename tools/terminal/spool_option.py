# SPDX-License-Identifier: Apache-2.0
"""The option of all verbs that read pipes: how much of a pipe is copied to a temporary file."""

import argparse
import os
from collections.abc import Sequence

from raftlog.storage.reading.file_source import SPOOL_LIMIT_VARIABLE, parse_size


class _SetSpoolLimit(argparse.Action):
    """Sets the limit in the environment, for the code that opens files, here and in child processes."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Take the option's value."""
        try:
            parse_size(str(values))
        except ValueError as error:
            parser.error(f"argument {option_string}: {error}")
        os.environ[SPOOL_LIMIT_VARIABLE] = str(values)


def add_spool_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that limits how much of a pipe is read."""
    parser.add_argument(
        "--spool-limit",
        action=_SetSpoolLimit,
        dest=argparse.SUPPRESS,
        metavar="SIZE",
        help="copy no more than SIZE bytes of a pipe to a temporary file, such as 500M or 8G (default: 2G, or what"
        f" {SPOOL_LIMIT_VARIABLE} says)",
    )
