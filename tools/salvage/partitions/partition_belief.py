# SPDX-License-Identifier: Apache-2.0
"""What the cluster's metadata say of a partition: its topic's id, its leader, and whose copies hold all that counts."""

import os
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

import attrs

from raftlog.errors import ForeignDirectoryError, RepairRefusedError, StateNotThereError, StorageError
from raftlog.file_system import join
from raftlog.records.files.file_names import DirectoryName
from raftlog.records.rules import Severity
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.log_directories import log_directories
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.replicas import replicas
from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.image.entries import PartitionEntry
from raftlog.tools.image.tables import Tables
from raftlog.tools.image.topics import TOPIC_RESOURCE, is_compacted
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import State, copies, find_state
from raftlog.uuid_text import uuid_to_text

_TIERED: Final = "remote.storage.enable"
_UNTOLD: Final = (UUID(int=0), UUID(int=1))
"""What stands for a directory that no record has told, and for one that is not assigned yet (DirectoryId)."""
_RECOVERING: Final = 1


@attrs.frozen
class Belief:
    """What the metadata say of a partition at the end of their log.

    Attributes:
        cluster_id: None if no ``meta.properties`` beside the metadata has it.
        directory: the log directory that was read.
        end_offset: of the metadata that were read, exclusive.
        proven_end: up to which they are proven to be committed, exclusive.
        topic_id: as text.
        leader: id of a broker; -1 if the partition has none.
        leader_epoch: the highest that a batch may have.
        replicas, isr, elr: ids of brokers.
        is_compacted: whether ``cleanup.policy`` says compact; None if the topic has none, and no broker's config in the
            metadata has one that says so: files of brokers, which are not here, may.
        problems: why the metadata prove nothing, each as a sentence without its end.
        directories: the id of the log directory that each of the replicas is in, in their order; None for one whose
            directory the metadata do not say. Empty if they say none.
        is_tiered: whether ``remote.storage.enable`` of the topic is true.
        read_from: paths of the log directories that were read.
    """

    cluster_id: str | None
    directory: str
    end_offset: int
    proven_end: int
    topic_id: str
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    is_compacted: bool | None
    problems: tuple[str, ...] = ()
    directories: tuple[str | None, ...] = ()
    is_tiered: bool = False
    read_from: tuple[str, ...] = ()

    def directory_of(self, broker: int | None) -> str | None:
        """Return the id of the log directory in which a broker has the partition; None if the metadata do not say."""
        return dict(zip(self.replicas, self.directories, strict=False)).get(broker) if broker is not None else None

    @property
    def home(self) -> int | None:
        """The broker to which a log that is made anew belongs; None if the metadata have none that holds all."""
        return next(iter(self.holders), None)

    @property
    def holders(self) -> tuple[int, ...]:
        """The brokers whose copies are known to hold all that was committed, the leader first."""
        first = (self.leader,) if self.leader >= 0 else ()
        return tuple(dict.fromkeys([*first, *self.isr, *self.elr]))

    def is_same(self, other: "Belief") -> bool:
        """Whether another reading says the same of the partition, whatever else the metadata have by then."""
        return _facts(self) == _facts(other)


def _facts(belief: Belief) -> tuple[object, ...]:
    members = (belief.topic_id, belief.leader, belief.leader_epoch, belief.isr, belief.elr)
    return (*members, belief.replicas, belief.directories)


def read_belief(paths: Sequence[str], partition: DirectoryName, processes: int, beside: Sequence[str] = ()) -> Belief:
    """Return what the metadata under some paths say of a partition. Their nodes may run.

    Args:
        paths: log directories of one cluster, or ``__cluster_metadata-0`` in them.
        partition: its name.
        processes: number of processes that read files.
        beside: log directories of brokers of the cluster: if the metadata that they may have go on further, those under
            the paths are older.

    Raises:
        StateNotThereError: there is no metadata log, or none from which a state can be made.
        ForeignDirectoryError: they are of more than one cluster.
        RepairRefusedError: the metadata do not have the partition.
        StorageError: a path cannot be read.
        RaftLogError: a snapshot is damaged.
    """
    evidence = group_by_place(survey_all(_tasks(paths), processes))
    _check_clusters(evidence)
    view = quorum_view(evidence)
    if view is None:
        raise StateNotThereError(f"{', '.join(paths)}: no __cluster_metadata-0 is there")
    state = find_state(copies(evidence, view), Position())
    tables = state.image.tables
    topic_id, entry = _entry(tables, partition, state)
    read_from = tuple(sorted(each for each in log_directories(evidence) if each))
    known = {os.path.realpath(each) for each in read_from}
    others = [each for each in beside if os.path.realpath(each) not in known]
    return Belief(
        view.cluster_id,
        state.copy.path,
        state.image.end_offset,
        view.high_watermark,
        uuid_to_text(topic_id),
        entry.leader,
        entry.leader_epoch,
        entry.replicas,
        entry.isr,
        entry.eligible_leader_replicas,
        is_compacted(tables, partition.topic),
        (*_problems(view, state, entry), *_later(others, state.image.end_offset, processes)),
        tuple(None if each in _UNTOLD else uuid_to_text(each) for each in entry.directories),
        tables.configs.get((TOPIC_RESOURCE, partition.topic), {}).get(_TIERED) == "true",
        read_from,
    )


def _tasks(paths: Sequence[str]) -> Iterator[SurveyTask]:
    for found in find_tasks(paths):
        if isinstance(found, Finding):
            if found.rule in UNREADABLE_RULES or found.severity >= Severity.DAMAGED:
                raise StorageError(found.path, "read", found.reason)
        elif found.is_raft or not found.place.topic:
            task = quorum_task(found)
            if task is not None:
                yield task


def _later(beside: Sequence[str], end_offset: int, processes: int) -> Iterator[str]:
    """Yield which of some other log directories have later metadata than those that were read."""
    logs = (join(each, METADATA_DIRECTORY_NAME) for each in beside)
    found = find_tasks([each for each in logs if os.path.isdir(each)])  # noqa: PTH112
    tasks = (quorum_task(each) for each in found if isinstance(each, SurveyTask))
    for replica in replicas(group_by_place(survey_all((each for each in tasks if each is not None), processes))):
        if replica.end.offset > end_offset:
            yield (
                f"the metadata in {replica.path} go on to offset {replica.end.offset}, those that were given end at"
                f" {end_offset}: they are older (give it as --metadata, too)"
            )


def _check_clusters(evidence: Sequence[PartitionEvidence]) -> None:
    found: dict[str, str] = {}
    for path, identity in sorted(log_directories(evidence).items()):
        if identity.cluster_id is not None:
            found.setdefault(identity.cluster_id, path)
    if len(found) > 1:
        (first, _), (second, path) = list(found.items())[:2]
        raise ForeignDirectoryError(path, "cluster.id", second, first)


def _entry(tables: Tables, partition: DirectoryName, state: State) -> tuple[UUID, PartitionEntry]:
    where = f"{state.copy.path}: the metadata up to offset {state.image.end_offset}"
    topic_id = tables.topic_ids.get(partition.topic)
    if topic_id is None:
        raise RepairRefusedError(f"{where} have no topic {partition.topic}")
    entry = tables.partitions[topic_id].get(partition.partition)
    if entry is None:
        count = len(tables.partitions[topic_id])
        raise RepairRefusedError(
            f"{where} have {count} partitions of {partition.topic}, and none {partition.partition}"
        )
    return topic_id, entry


def _problems(view: QuorumView, state: State, entry: PartitionEntry) -> Iterator[str]:
    """Yield why the state may not be the last one of the cluster."""
    if not view.has_majority:
        yield (
            "no majority of the metadata's voters is here: the others may have later changes (give --metadata of all"
            " controllers, copied after they and the brokers were stopped)"
        )
    if view.high_watermark < state.image.end_offset:
        where = offsets_text(view.high_watermark, state.image.end_offset)
        yield f"of the metadata, {where} are not proven to be committed"
    files = [*state.copy.log.segments, *state.copy.log.snapshots_by_id.values()]
    damaged = {each.task.path for each in files if any(x.severity >= Severity.DAMAGED for x in each.findings)}
    if state.copy.replica.damaged_from is not None:
        yield f"the metadata log is damaged from offset {state.copy.replica.damaged_from} on: changes may be lost"
    elif damaged:
        yield f"the metadata are damaged in {min(damaged)}"
    if state.image.refusals:
        first = state.image.refusals[0]
        yield f"a metadata record at offset {first.offset} has no effect here: {first.reason}"
    if state.image.transaction is not None:
        yield f"a metadata transaction is open from offset {state.image.transaction.offset} on"
    if entry.leader_recovery_state == _RECOVERING:
        yield "the leader was elected uncleanly, and has not recovered: it may lack what was committed before"
