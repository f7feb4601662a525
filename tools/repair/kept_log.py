# SPDX-License-Identifier: Apache-2.0
"""What the log that a repair keeps is after its next startup: opened as its owner would, with all writes in memory."""

from collections.abc import Iterable
from contextlib import closing

import attrs

from raftlog.errors import DecodeError, QuarantinedLogError
from raftlog.file_system import join
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Quarantine
from raftlog.offsets import OffsetAndEpoch
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME, LogDirectory
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.snapshot_rules import ending_amid_batches
from raftlog.tools.log.overlay_file_system import OverlayFileSystem
from raftlog.tools.repair.sources import Source
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, VoterSet


@attrs.frozen
class KeptLog:
    """The log that is kept.

    Attributes:
        cluster_id: by its ``meta.properties``.
        key: id and directory id of its node.
        start_offset: inclusive.
        end: exclusive, with the epoch of its last record.
        snapshot_id: of its newest snapshot; None if it has none.
        kraft_version: in force at its end.
        voters: in force at its end by its records; empty if no record names voters.
        voters_offset: of the record that names them; None likewise.
    """

    cluster_id: str
    key: ReplicaKey
    start_offset: int
    end: OffsetAndEpoch
    snapshot_id: OffsetAndEpoch | None
    kraft_version: KRaftVersion
    voters: VoterSet
    voters_offset: int | None


def snapshots_inside_batches(source: Source, evidence: Iterable[PartitionEvidence]) -> tuple[str, ...]:
    """Return the names of a source's snapshots that end inside a batch of its log, as those do that were renamed.

    A log cannot be opened with them.

    Source: KafkaRaftLog#createNewSnapshot.
    """
    logs = (each for each in evidence if each.is_raft and each.place.log_directory == source.directory)
    found = {path.rpartition("/")[2] for log in logs for path in ending_amid_batches(log)}
    return tuple(join(METADATA_DIRECTORY_NAME, name) for name in sorted(found))


def without_files(
    evidence: Iterable[PartitionEvidence], source: Source, names: Iterable[str]
) -> list[PartitionEvidence]:
    """Return evidence in which some files of a source are not there."""
    paths = set(map(source.path, names))
    return [
        attrs.evolve(each, files=tuple(file for file in each.files if file.task.path not in paths)) for each in evidence
    ]


def read_kept_log(source: Source, left_out: Iterable[str] = ()) -> KeptLog:
    """Read the log that is kept. Nothing is written.

    Args:
        source: whose log it is.
        left_out: paths below the log directory of snapshots that are not kept.

    Raises:
        DecodeError: there is no log, or it is not sound.
        QuarantinedLogError: durable records of it are damaged or gone.
        LogDirectoryError: the directory is not that of a metadata log.
        StorageError: it cannot be read.
        RaftLogError: as for ``update_state``.
    """
    if not source.has_segments:
        raise DecodeError(
            "there is no log: no segment of one is here, and a snapshot alone is not enough", path=source.directory
        )
    file_system = OverlayFileSystem(LocalFileSystem())
    for name in left_out:
        file_system.remove(source.path(name))
    with closing(file_system), LogDirectory.open(file_system, source.directory) as directory:
        log = FileLog.open(file_system, directory.log_path)
        try:
            _check_is_sound(source, log.quarantine)
            machine = KRaftControlRecordStateMachine(VoterSet())
            update_state(machine, log)
            return _kept(source, directory, log, machine)
        finally:
            log.close()


def _check_is_sound(source: Source, quarantine: Quarantine | None) -> None:
    if quarantine is not None:
        raise QuarantinedLogError(
            f"{source.directory}: the log is damaged from offset {quarantine.first_bad_offset} on, and is not cut here:"
            " keep another copy of it"
        )


def _kept(source: Source, directory: LogDirectory, log: FileLog, machine: KRaftControlRecordStateMachine) -> KeptLog:
    end_offset = log.end_offset.offset
    if end_offset == 0:
        raise DecodeError("there is no sound batch in the log", path=source.directory)
    meta = directory.meta
    if meta.cluster_id is None or meta.node_id is None:
        raise DecodeError("meta.properties has no cluster.id or no node.id", path=source.directory)
    return KeptLog(
        meta.cluster_id,
        ReplicaKey(meta.node_id, meta.directory_id),
        log.start_offset,
        OffsetAndEpoch(end_offset, log.last_fetched_epoch),
        None if log.latest_snapshot_id is None or log.latest_snapshot_id.offset == 0 else log.latest_snapshot_id,
        machine.last_kraft_version,
        machine.last_voter_set,
        machine.last_voter_set_offset,
    )
