# SPDX-License-Identifier: Apache-2.0
"""Surveys the sources of a repair: the evidence of their metadata logs, as ``raftlog quorum`` reads it."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from raftlog.errors import ForeignDirectoryError
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.history.log_directories import log_directories
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.auditing.survey.quorum_tasks import quorum_task
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.repair.sources import Source


def evidence_of(sources: Sequence[Source], processes: int, also: Collection[FileKind] = ()) -> list[PartitionEvidence]:
    """Return the evidence of some log directories: their metadata logs, and their ``meta.properties``.

    Args:
        sources: the log directories.
        processes: number of processes that read files.
        also: kinds of files to survey besides those that ``raftlog quorum`` reads.

    Raises:
        MissingExtraError: a package of an extra is not installed.
    """
    directories = {source.directory for source in sources}
    places = group_by_place(survey_all(_tasks(sorted(directories), also), processes))
    return [each for each in places if each.place.log_directory in directories]


def check_clusters(sources: Sequence[Source], evidence: Sequence[PartitionEvidence]) -> str | None:
    """Check that all sources are of one cluster, as far as their ``meta.properties`` say; return its id, or None.

    Raises:
        ForeignDirectoryError: they are of different clusters.
    """
    identities = log_directories(evidence)
    cluster_id = None
    for source in sources:
        identity = identities.get(source.directory)
        found = None if identity is None else identity.cluster_id
        if None not in {found, cluster_id} and found != cluster_id:
            path = source.path(FileKind.META_PROPERTIES.value)
            raise ForeignDirectoryError(path, "cluster.id", str(found), str(cluster_id))
        cluster_id = cluster_id or found
    return cluster_id


def _tasks(directories: Iterable[str], also: Collection[FileKind]) -> Iterator[SurveyTask]:
    for found in find_tasks(directories):
        if isinstance(found, SurveyTask) and (found.is_raft or not found.place.topic):
            is_wanted = found.kind in also and found.state is FileState.CURRENT
            task = found if is_wanted else quorum_task(found)
            if task is not None:
                yield task
