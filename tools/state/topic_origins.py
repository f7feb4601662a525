# SPDX-License-Identifier: Apache-2.0
"""Where in a metadata log topics were created and removed, for topics that a state does not have."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import attrs

from raftlog.errors import RaftLogError
from raftlog.tools.image.changes import Change
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import State, StateSource, earliest, find_changes


@attrs.frozen
class TopicOrigin:
    """The life of a topic in a log.

    Attributes:
        created_offset: of the record that created it; -1 if it was there in the first state that there is.
        removed_offset: of the record that removed it, or None.
    """

    created_offset: int
    removed_offset: int | None = None


def topic_origins(among: Sequence[StateSource]) -> dict[UUID, TopicOrigin] | None:
    """Return the life of each topic that the first replica's log and snapshots know, from its first state to its end.

    None means that they cannot be read as a whole: records between are missing or damaged.
    """
    found: dict[UUID, TopicOrigin] = {}

    def note(_: State, change: Change) -> None:
        table, *keys = change.key
        if table != "topics":
            return
        topic_id = keys[0]
        if not isinstance(topic_id, UUID):
            return
        if change.after is not None:
            found[topic_id] = TopicOrigin(change.offset)
        else:
            origin = found.get(topic_id, TopicOrigin(-1))
            found[topic_id] = attrs.evolve(origin, removed_offset=change.offset)

    try:
        first, last = find_changes(among[:1], earliest(among[0]), Position(), note)
    except RaftLogError:
        return None
    for topic_id in {*first.image.tables.topics, *last.image.tables.topics}:
        found.setdefault(topic_id, TopicOrigin(-1))
    return found


@attrs.frozen
class FittingStates:
    """The states of a metadata log that have all of some topics, of those that the log knows.

    Attributes:
        first: the least offset of such a state; None if there is none.
        last: the greatest; None if that is the end of the log, or if there is no such state.
        known: how many of the topics the log knows.
        never_known: how many of them no state of the log has.
    """

    first: int | None
    last: int | None
    known: int
    never_known: int

    def has(self, offset: int) -> bool:
        """Whether the state before an offset is one of them."""
        return self.first is not None and self.first <= offset and (self.last is None or offset <= self.last)


def fitting_states(origins: Mapping[UUID, TopicOrigin], topic_ids: Collection[UUID]) -> FittingStates:
    """Return the states in which all of some topics are there at once.

    Args:
        origins: the life of each topic that the log knows.
        topic_ids: the topics.
    """
    lives = [origins[each] for each in topic_ids if each in origins]
    counts = len(lives), len(topic_ids) - len(lives)
    first = max((each.created_offset + 1 for each in lives), default=None)
    removed = [each.removed_offset for each in lives if each.removed_offset is not None]
    last = min(removed, default=None)
    if first is not None and last is not None and last < first:
        return FittingStates(None, None, *counts)
    return FittingStates(first, last, *counts)
