# SPDX-License-Identifier: Apache-2.0
"""What the metadata of a cluster say of its topics: their configs, and when each was made and removed."""

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

import attrs

from raftlog.errors import RaftLogError, StateNotThereError
from raftlog.tools.auditing.evidence import SurveyTask, group_by_place
from raftlog.tools.auditing.history.quorum_view import quorum_view
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.image.changes import Change
from raftlog.tools.image.entries import Topic
from raftlog.tools.image.tables import Tables
from raftlog.tools.image.topics import is_compacted
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import State, StateSource, copies, earliest, find_changes, find_state


class MetadataState(enum.Enum):
    """What could be read of the metadata of a cluster."""

    WHOLE = "whole"
    NEWEST = "newest"
    DAMAGED = "damaged"
    NOT_THERE = "not-there"


@attrs.frozen
class TopicLife:
    """From when to when there was a topic of one id.

    Attributes:
        topic_id: the id.
        created_ms: when it was made, in ms since the Unix epoch; None if it was there in the first state that is known.
        removed_ms: when it was removed; None if it is still there.
    """

    topic_id: UUID
    created_ms: int | None = None
    removed_ms: int | None = None


@attrs.frozen
class ClusterMetadata:
    """What the metadata log of a cluster says.

    Attributes:
        tables: its newest state.
        lives: of the topics that the log knows, by name, in the order in which they were made; empty if the log cannot
            be read from its first state on.
    """

    tables: Tables
    lives: Mapping[str, Sequence[TopicLife]]

    @property
    def partitions(self) -> Mapping[str, Collection[int]]:
        """The numbers of the partitions of each topic, by its name."""
        return {name: self.tables.partitions[topic_id] for name, topic_id in self.tables.topic_ids.items()}

    def is_compacted(self, topic: str) -> bool:
        """Whether records of a topic may be removed by key. A topic is not compacted unless something says so."""
        return bool(is_compacted(self.tables, topic))

    def former_id(self, topic: str) -> UUID | None:
        """Return the id that a topic had before it was made anew; None if nothing says that it was."""
        lives = self.lives.get(topic, ())
        return lives[-2].topic_id if len(lives) > 1 else None

    def since_ms(self, topic: str) -> int | None:
        """Return when a topic was made anew, in ms since the Unix epoch; None if nothing says that it was."""
        lives = self.lives.get(topic, ())
        return lives[-1].created_ms if len(lives) > 1 else None


def read_metadata(paths: Sequence[str]) -> ClusterMetadata | None:
    """Return what the metadata of a cluster say; None if no directory has metadata from which a state can be made.

    A state without a topic is none: of a cluster whose topics are compared, its log is empty, or damaged early.

    Raises:
        StorageError: a path cannot be read.
    """
    found = _read_metadata(paths)
    return found if found is not None and found.tables.topic_ids else None


def _read_metadata(paths: Sequence[str]) -> ClusterMetadata | None:
    evidence = group_by_place(survey_all(_tasks(paths), 1))
    view = quorum_view(evidence)
    if view is None:
        return None
    among = copies(evidence, view)
    try:
        return _with_lives(among)
    except RaftLogError:
        pass  # The log has no first state, or damage after it.
    try:
        return ClusterMetadata(find_state(among, Position()).image.tables, {})
    except StateNotThereError:
        return None


def metadata_state(metadata: ClusterMetadata | None, *, is_there: bool) -> MetadataState:
    """Return what could be read of the metadata of a cluster.

    Args:
        metadata: what ``read_metadata`` has returned.
        is_there: whether a directory has a metadata log.
    """
    if metadata is None:
        return MetadataState.DAMAGED if is_there else MetadataState.NOT_THERE
    return MetadataState.WHOLE if metadata.lives else MetadataState.NEWEST


def _with_lives(among: Sequence[StateSource]) -> ClusterMetadata:
    changes: list[Change] = []

    def note(_: State, change: Change) -> None:
        if change.key[0] == "topics":
            changes.append(change)

    first, last = find_changes(among[:1], earliest(among[0]), Position(), note)
    created = {change.after.topic_id for change in changes if isinstance(change.after, Topic)}
    lives: dict[str, dict[UUID, TopicLife]] = {}
    for topic_id, topic in {**first.image.tables.topics, **last.image.tables.topics}.items():
        if topic_id not in created:
            lives.setdefault(topic.name, {})[topic_id] = TopicLife(topic_id)
    for change in changes:
        topic = change.before if change.after is None else change.after
        of_name = lives.setdefault(topic.name, {})
        life = of_name.get(topic.topic_id, TopicLife(topic.topic_id))
        if change.after is None:
            of_name[topic.topic_id] = attrs.evolve(life, removed_ms=change.timestamp)
        else:
            of_name[topic.topic_id] = attrs.evolve(life, created_ms=change.timestamp)
    return ClusterMetadata(last.image.tables, {name: tuple(found.values()) for name, found in lives.items()})


def _tasks(paths: Sequence[str]) -> Iterator[SurveyTask]:
    for found in find_tasks(paths):
        if isinstance(found, SurveyTask) and (found.is_raft or not found.place.topic):
            task = quorum_task(found)
            if task is not None:
                yield task
