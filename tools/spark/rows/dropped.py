# SPDX-License-Identifier: Apache-2.0
"""Counts what a task leaves out of its rows, and logs it: no query skips anything silently."""

import logging
from typing import Final

from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.terminal.standard_error import printable, unicode_text

LOGGER: Final = logging.getLogger("raftlog.spark")
"""What queries leave out. Without a configuration, Python writes warnings to standard error, which Spark keeps."""


class Dropped:
    """What a task leaves out, file by file.

    Args:
        mode: of the query, for messages.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._damaged: dict[str, list[Finding]] = {}

    def damage(self, finding: Finding) -> None:
        """Count a batch or a record that is left out because it is damaged."""
        known = self._damaged.setdefault(finding.path, [])
        known.append(finding if not known else _SOME)

    def loss(self, path: str, reason: str) -> None:
        """Log that a file has no rows, or none from some place on, because it is gone or has shrunk."""
        LOGGER.warning("%s: %s; this is left out, since failOnDataLoss is false", _shown(path), _shown(reason))

    def log(self) -> None:
        """Log the damage of each file with its count, and start again from zero."""
        for path, found in self._damaged.items():
            LOGGER.warning(
                "%s: damage at %d place%s is left out, since mode is %s; the first%s: %s [%s]",
                _shown(path),
                len(found),
                "" if len(found) == 1 else "s",
                self._mode,
                "" if found[0].position is None else f", at position {found[0].position}",
                _shown(found[0].reason),
                found[0].rule,
            )
        self._damaged = {}


_SOME: Final = Finding("", "", "")
"""Stands for each later damage of a file, so that a million of them take little memory."""


def _shown(text: str) -> str:
    return printable(unicode_text(text))
