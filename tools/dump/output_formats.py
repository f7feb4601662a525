# SPDX-License-Identifier: Apache-2.0
"""The registry of output formats: every value of ``--format``, with its traits. No other module compares names.

To add one, write a ``Renderer`` in this room, and an ``OutputFormat`` here: its traits are required.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from raftlog.records.messages.releases import Release
from raftlog.tools.dump.kafka_lines import KafkaLines
from raftlog.tools.dump.kafka_text import KafkaText

if TYPE_CHECKING:
    from typing import Protocol

    from raftlog.tools.dump.rendering import Renderer

    class RendererMaker(Protocol):
        """Makes the renderer of a format."""

        def __call__(self, dialect: Release, *, print_payloads: bool, skip_record_metadata: bool) -> "Renderer":
            """Make the renderer.

            Args:
                dialect: the release to follow, if the format follows one.
                print_payloads: whether payloads were requested.
                skip_record_metadata: whether to leave out all but keys and payloads.
            """
            ...


class OutputFormat(NamedTuple):
    """A value of ``--format``. A named tuple, because its class is made each time that the command starts.

    Attributes:
        name: the value.
        make_renderer: makes its renderer.
        follows_dialect: whether its words, and the messages that it knows, are those of the release of ``--dialect``.
        prints_kafkas_files_only: whether files that kafka-dump-log does not print are ignored.
        decodes_unasked: whether records are shown and decoded, by their topic, without an option.
        hides_secrets: whether secrets of metadata records are redacted.
        make_line_writer: makes a writer of many lines at a time from a renderer of this format; None if there is none.
    """

    name: str
    make_renderer: "RendererMaker"
    follows_dialect: bool
    prints_kafkas_files_only: bool
    decodes_unasked: bool
    hides_secrets: bool
    make_line_writer: "Callable[[Any], KafkaLines] | None"


def _kafka(dialect: Release, *, print_payloads: bool, skip_record_metadata: bool) -> "Renderer":
    return KafkaText(dialect, print_payloads, skip_record_metadata)


def _json_lines(dialect: Release, *, print_payloads: bool, skip_record_metadata: bool) -> "Renderer":
    from raftlog.tools.dump.json_text import JsonLines  # Slow to import, as is the next one.

    return JsonLines()


def _table(dialect: Release, *, print_payloads: bool, skip_record_metadata: bool) -> "Renderer":
    from raftlog.tools.dump.table_text import TableText

    return TableText()


KAFKA: Final = OutputFormat(
    "kafka",
    _kafka,
    follows_dialect=True,
    prints_kafkas_files_only=True,
    decodes_unasked=False,
    hides_secrets=False,
    make_line_writer=KafkaLines,
)
JSONL: Final = OutputFormat(
    "jsonl",
    _json_lines,
    follows_dialect=False,
    prints_kafkas_files_only=False,
    decodes_unasked=True,
    hides_secrets=True,
    make_line_writer=None,
)
TABLE: Final = OutputFormat(
    "table",
    _table,
    follows_dialect=False,
    prints_kafkas_files_only=False,
    decodes_unasked=True,
    hides_secrets=True,
    make_line_writer=None,
)
FORMATS: Final = {each.name: each for each in (KAFKA, JSONL, TABLE)}
"""Every format by its name; the first is the default."""
