# SPDX-License-Identifier: Apache-2.0
"""Bounds raft logs by what is proven to be committed: of several replicas, one that has all of it is read up to there.

``raftlog.tools.auditing.proof`` says what is proven, from the files of all replicas that are given. It takes them for
those of stopped nodes. While nodes run, logs are read at different moments; so the replicas of a majority are looked at
once more after all were read, and a record counts only if each still has it then.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import OptionError, StorageError
from raftlog.file_paths import join_path
from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import by_cluster, log_directories
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.verdict_words import quorum_reason
from raftlog.tools.auditing.proof.judging import Judgement
from raftlog.tools.auditing.proof.proofs import ProofKind
from raftlog.tools.auditing.proof.verdict import Reason
from raftlog.tools.auditing.run.evidence_store import key_of
from raftlog.tools.auditing.run.second_look import surveyed
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.spark.rows.dropped import LOGGER
from raftlog.tools.spark.rows.exhaustion import tells_exhaustion
from raftlog.tools.spark.rows.parts import log_name
from raftlog.tools.spark.source.batch_places import BatchPlaces
from raftlog.tools.spark.source.planning import Committed, Listing, Partition, check_something_is_committed
from raftlog.tools.terminal.standard_error import printable

_OPTION: Final = "committedOnly"
_SHOWN_BY: Final = "raftlog quorum shows more"


class CommittedEnds:
    """Chooses a replica of each raft log. The evidence of files that do not change is remembered."""

    def __init__(self) -> None:
        self._known: dict[str, FileEvidence] = {}
        self._places = BatchPlaces()
        self._said: dict[str, str] = {}

    def bound(self, listing: Listing) -> Listing:
        """Return a listing with one replica of each log, and with what is proven to be committed of it.

        Raises:
            OptionError: a log is a topic's partition, files of it were named one by one, its replicas are of several
                clusters, or it has two lineages that are proven; or none of the replicas has all that is proven.
            StorageError: a directory cannot be listed, or a file not be read.
        """
        in_order = sorted(listing.partitions, key=lambda each: each.key)
        groups = [list(group) for _, group in itertools.groupby(in_order, key=lambda each: each.key)]
        used: dict[str, FileEvidence] = {}
        chosen = tuple(self._chosen(group, used) for group in groups)
        self._known = used
        return attrs.evolve(listing, partitions=chosen)

    def _chosen(self, replicas: Sequence[Partition], used: dict[str, FileEvidence]) -> Partition:
        name = log_name(replicas[0].topic, replicas[0].number)
        _check_is_raft(name, replicas)
        view = _view(name, list(self._surveyed(_tasks(replicas), used)))
        judgement = view.judgement
        if judgement.conflict is not None:
            where = f"which part at offset {judgement.parting_offset} or before"
            raise OptionError(_OPTION, f"of {name}, two lineages are proven to be committed, {where}: {_SHOWN_BY}")
        if judgement.proofs and judgement.seed is None:
            end = judgement.proven.offset
            reason = f"no directory has all records of {name} that are proven to be committed, up to offset {end}"
            raise OptionError(_OPTION, f"{reason}: {_SHOWN_BY}")
        path = replicas[0].place.log_directory if judgement.seed is None else judgement.seed.path
        found = next(each for each in replicas if each.place.log_directory == path)
        committed = self._committed(view, replicas)
        if committed.why_nothing != self._said.get(name, ""):
            self._said[name] = committed.why_nothing
            LOGGER.warning("%s: %s", name, printable(committed.why_nothing or "something is proven to be committed"))
        return attrs.evolve(found, committed=committed)

    def _committed(self, view: QuorumView, replicas: Sequence[Partition]) -> Committed:
        judgement = view.judgement
        if not judgement.proofs:
            return Committed(judgement.proven, f"nothing is proven to be committed: {_why_nothing(view)}")
        if not self._holds(judgement, replicas):
            return Committed(OffsetAndEpoch(0, -1), "the replicas changed while they were read: try again")
        return Committed(judgement.proven)

    def _holds(self, judgement: Judgement, replicas: Sequence[Partition]) -> bool:
        """Whether the replicas of a majority still have the last record that they prove."""
        proof = judgement.proofs[0]
        if proof.kind is not ProofKind.MAJORITY:
            return True
        holders = [each for each in replicas if each.place.log_directory in proof.paths]
        return all(self._has(each, proof.point) for each in holders)

    def _has(self, replica: Partition, point: OffsetAndEpoch) -> bool:
        if not replica.segments or point.offset <= replica.start_offset:
            return True  # Its snapshot has it.
        last = self._places.last(replica.segments, point.offset)
        return last is not None and last.epoch == point.epoch and last.next_offset >= point.offset

    def _surveyed(self, tasks: Iterable[SurveyTask], used: dict[str, FileEvidence]) -> Iterator[FileEvidence]:
        for task in tasks:
            key = key_of(task)
            found = self._known.get(key) if task.fingerprint else None
            used[key] = surveyed(survey, task) if found is None else found
            for finding in used[key].findings:
                if finding.rule == "file-unreadable" and tells_exhaustion(finding.reason):
                    raise StorageError(finding.path, "read", finding.reason)
            yield used[key]


def committed_listing(listing: Listing) -> Listing:
    """Return a listing for a query, with one replica of each log, and what is proven to be committed.

    Raises:
        OptionError, StorageError: as ``CommittedEnds.bound``; and nothing is proven to be committed.
    """
    found = CommittedEnds().bound(listing)
    for each in found.partitions:
        check_something_is_committed(each)
    return found


def _check_is_raft(name: str, replicas: Iterable[Partition]) -> None:
    for each in replicas:
        tasks = (*each.segments, *each.snapshots)
        if any(task.was_named for task in tasks):
            raise OptionError(_OPTION, f"name the directories of {name}, not its files: all of them prove something")
        if not any(task.is_raft for task in tasks):
            reason = "no file of a topic's replica proves which of its records are committed"
            raise OptionError(_OPTION, f"{name} is not a raft log, and {reason}: select raft logs, as with subscribe")


def _tasks(replicas: Sequence[Partition]) -> Iterator[SurveyTask]:
    """Yield the files to survey: all logs first, so that what votes and elections say is no older than any log."""
    directories = sorted({each.place.log_directory for each in replicas})
    beside = find_tasks([join_path(each, FileKind.META_PROPERTIES.value) for each in directories])
    found = [task for each in replicas for task in each.files]
    found += [task for task in beside if isinstance(task, SurveyTask)]
    wanted = [task for task in map(quorum_task, found) if task is not None]
    yield from sorted(wanted, key=lambda task: task.kind is not FileKind.LOG)


def _view(name: str, files: Sequence[FileEvidence]) -> QuorumView:
    places = group_by_place(files)
    logs = [each for each in places if any(file.task.kind is not FileKind.META_PROPERTIES for file in each.files)]
    directories = log_directories(places)
    clusters = by_cluster(logs, lambda each: directories[each.place.log_directory].cluster_id)
    histories = [group for each in clusters.values() for group in by_history(each, _itself)]
    if len(histories) > 1:
        first, second = (group[0].place.log_directory for group in histories[:2])
        raise OptionError(_OPTION, f"{name} in {first} and in {second} are logs of two clusters: name one cluster's")
    return present(quorum_view(places), name)


def _why_nothing(view: QuorumView) -> str:
    if view.judgement.ruling.reason in {Reason.TOO_FEW_VOTERS, Reason.NO_VOTERS_NAMED}:
        return f"{quorum_reason(view)}: name the directories of more replicas"
    return f"no majority of the voters has a record of epoch {view.leader_epoch}, the latest that any file has seen"


def _itself(place: PartitionEvidence) -> PartitionEvidence:
    return place
