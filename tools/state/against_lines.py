# SPDX-License-Identifier: Apache-2.0
"""How a state and the directories of brokers differ, as tables or as JSON lines."""

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

import attrs

from raftlog.tools.beliefs.comparison import BrokerComparison, ComparedBroker
from raftlog.tools.beliefs.difference_kinds import UNREAD
from raftlog.tools.beliefs.differences import BrokerDifference
from raftlog.tools.state.topic_origins import FittingStates, TopicOrigin
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.value_text import counted
from raftlog.uuid_text import uuid_to_text

_BROKER_COLUMNS: Final = (
    *("BROKER", "REGISTERED", "FENCED", "DIRECTORIES", "GIVEN", "PARTITIONS", "REPLICAS", "NOT JUDGED", "DIFFERENCES"),
)
Origins = Mapping[UUID, TopicOrigin]
"""The life of each topic that the metadata log knows, by id."""
_COMPARED: Final = (
    "cluster ids, broker ids and epochs, directory ids, topic ids and names, which replicas are there, and leader"
    " epochs; not the records"
)
_COLUMNS: Final = ("BROKER", "DIFFERENCE", "PARTITION", "SEEN", "DIRECTORY")


def comparison_lines(
    comparison: BrokerComparison, origins: Origins, fitting: FittingStates | None, *, is_damaged: bool
) -> Iterator[str]:
    """Yield the comparison for people.

    Args:
        comparison: what was found.
        origins: the life of topics that the metadata log knows.
        fitting: the states that have all topics of the brokers; None if this one has them.
        is_damaged: whether files of the metadata log are damaged, so that it may not be read to its end.
    """
    differences = comparison.differences
    rows = [_broker_row(each, comparison) for each in comparison.brokers]
    yield ""
    yield f"Brokers ({len(rows)})"
    yield from table([_BROKER_COLUMNS, *rows], frozenset({0, *range(3, len(_BROKER_COLUMNS))}))
    yield ""
    if differences:
        yield f"Differences ({len(differences)})"
        yield from table([_COLUMNS, *(_row(each, origins) for each in differences)], frozenset({0}))
        yield ""
        yield from fit_lines(_consequences(comparison))
    yield from fit_lines(_conclusion(comparison, fitting, is_damaged=is_damaged))


def comparison_json(comparison: BrokerComparison, origins: Origins, fitting: FittingStates | None) -> Iterator[str]:
    """Yield the comparison for programs: a line about it, one for each broker, and one for each difference."""
    yield json_line(
        "comparison",
        None,
        is_harmful=comparison.is_harmful,
        difference_count=len(comparison.differences),
        topics_known_from=None if fitting is None else fitting.first,
        topics_known_to=None if fitting is None else fitting.last,
        topics_never_known=0 if fitting is None else fitting.never_known,
    )
    for broker in comparison.brokers:
        yield json_line("compared_broker", None, **attrs.asdict(broker))
    for each in comparison.differences:
        origin = None if each.topic_id is None else origins.get(each.topic_id)
        yield json_line(
            "difference",
            None,
            node_id=each.node_id,
            difference=each.kind.name,
            is_harmful=each.kind.is_harmful,
            topic=each.topic,
            partition=each.partition,
            topic_id=None if each.topic_id is None else uuid_to_text(each.topic_id),
            **path_member("directory", each.path),
            seen=each.seen,
            follows=each.kind.follows,
            created_offset=None if origin is None or origin.created_offset < 0 else origin.created_offset,
            removed_offset=None if origin is None else origin.removed_offset,
        )


def _broker_row(broker: ComparedBroker, comparison: BrokerComparison) -> tuple[object, ...]:
    count = sum(each.node_id == broker.node_id for each in comparison.differences)
    registered, fenced = ("yes" if each else "no" for each in (broker.is_registered, broker.is_fenced))
    numbers = (broker.registered_directories, broker.given_directories, broker.partitions, broker.replicas)
    return (broker.node_id, registered, fenced, *numbers, broker.unjudged, count)


def _row(difference: BrokerDifference, origins: Origins) -> tuple[object, ...]:
    partition = "-" if difference.topic is None else f"{difference.topic}-{difference.partition}"
    node_id = "?" if difference.node_id is None else difference.node_id
    origin = None if difference.topic_id is None else origins.get(difference.topic_id)
    seen = f"{difference.seen}{_origin_text(origin)}"
    return (node_id, difference.kind.name, partition, seen, difference.path or "-")


def _origin_text(origin: TopicOrigin | None) -> str:
    if origin is None:
        return ""
    created = f", topic created at offset {origin.created_offset}" if origin.created_offset >= 0 else ""
    return created + (f", topic removed at offset {origin.removed_offset}" if origin.removed_offset is not None else "")


def _consequences(comparison: BrokerComparison) -> Iterator[str]:
    for kind in dict.fromkeys(each.kind for each in comparison.differences):
        yield f"{kind.name}: {kind.follows}"
    yield ""


def _conclusion(comparison: BrokerComparison, fitting: FittingStates | None, *, is_damaged: bool) -> Iterator[str]:
    """Yield what it all amounts to, and which states have the topics of the brokers, if this one does not."""
    if not comparison.differences:
        yield f"No difference in what was compared: {_COMPARED}."
    elif not comparison.is_harmful:
        is_unread = any(each.kind is UNREAD for each in comparison.differences)
        yield f"{'In what could be read, nothing' if is_unread else 'Nothing'} would be set aside or be lost."
    if fitting is None:
        return
    if fitting.first is not None:
        end = "up to where the log can be read" if is_damaged else "to the end of the log"
        end = end if fitting.last is None else f"to offset {fitting.last}"
        have = f"States from offset {fitting.first} {end} have all topics of these directories that the log knows"
        yield f"{have}; no state has the others." if fitting.never_known else f"{have}."
    elif fitting.known:
        yield "No state of the log has the topics of these directories at once."
    if fitting.never_known:
        are = "is" if fitting.never_known == 1 else "are"
        yield f"{counted(fitting.never_known, 'topic')} of these directories {are} in no state of the log."
