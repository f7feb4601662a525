# SPDX-License-Identifier: Apache-2.0
"""Records that are gone: an error, or with ``failOnDataLoss=false`` a line in the log.

Source: KafkaMicroBatchStream#reportDataLoss and KafkaOffsetReader.
"""

from typing import Final

from raftlog.errors import OptionError
from raftlog.tools.spark.rows.dropped import LOGGER
from raftlog.tools.terminal.standard_error import printable, unicode_text

_ADVICE: Final = "set failOnDataLoss=false to continue"


class DataLoss:
    """Reports records that are gone, each loss once.

    Args:
        fails: whether a loss is an error.
    """

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self._said: set[str] = set()

    def report(self, option: str, reason: str, instead: str = "") -> None:
        """Raise an error about a loss or, if losses are forgiven, log it.

        Args:
            option: names the option that the error is about.
            reason: says which records are gone.
            instead: what is done if losses are forgiven.

        Raises:
            OptionError: a loss is an error.
        """
        if self.fails:
            raise OptionError(option, f"{reason}: {_ADVICE}{instead and f' {instead}'}")
        if reason not in self._said:
            self._said.add(reason)
            LOGGER.warning(
                "%s: continuing%s, since failOnDataLoss is false",
                printable(unicode_text(reason)),
                instead and f" {instead}",
            )
