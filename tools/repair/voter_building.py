# SPDX-License-Identifier: Apache-2.0
"""Builds the directory of a rewritten quorum: the log that is kept, and one record after its end.

The record is a control batch of its own in the log's last epoch, as KIP-853 has voters in the log. No LeaderChange is
written: nobody was elected. The next leader begins an epoch of its own.

Source: KIP-853; KRaftControlRecordStateMachine, QuorumState#initialize.
"""

from typing import Final

from raftlog.errors import RepairRefusedError
from raftlog.file_system import FileSystem, join, replace_file
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.property_files import MetaProperties
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.records.messages.voters import voters_record
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.repair.copied_log import copy_log, forget_own_files, write_owner
from raftlog.tools.repair.sources import Source
from raftlog.tools.repair.voter_rewrite import PlannedVoter, VoterRewrite
from raftlog.voters.voter_set import VoterSet

_META_VERSION: Final = 1


def build_rewritten(
    file_system: FileSystem, source: Source, rewrite: VoterRewrite, voter: PlannedVoter, directory: str
) -> None:
    """Build a directory.

    Args:
        file_system: of the source and of the directory.
        source: whose log is kept.
        rewrite: what is to be done.
        voter: whose directory it is.
        directory: exists, and is empty.

    Raises:
        SourceChangedError: the source is not what it was when the plan was made.
        RepairRefusedError: the copied log is not the one that was planned with.
        StorageError: the disk failed.
        RaftLogError: as for ``FileLog`` and ``update_state``.
    """
    copy_log(file_system, source, directory, rewrite.left_out)
    log_path = join(directory, METADATA_DIRECTORY_NAME)
    _write_record(file_system, log_path, rewrite)
    forget_own_files(file_system, log_path)
    replace_file(file_system, join(log_path, FileKind.QUORUM_STATE.value), write_quorum_state(_election_state(rewrite)))
    write_owner(file_system, directory, _owner(rewrite, voter))


def _write_record(file_system: FileSystem, log_path: str, rewrite: VoterRewrite) -> None:
    with FileLog.open(file_system, log_path) as log:
        found = OffsetAndEpoch(log.end_offset.offset, log.last_fetched_epoch)
        if log.quarantine is not None or found != rewrite.end:
            raise RepairRefusedError(f"the copied log ends at {found}, and the plan is for {rewrite.end}")
        if rewrite.writes_record:
            batch = write_control_batch(
                [voters_record(rewrite.voter_set)],
                base_offset=rewrite.end_offset,
                epoch=rewrite.epoch,
                timestamp=rewrite.timestamp_ms,
            )
            log.append_as_leader(batch, rewrite.epoch)
        log.flush()
        machine = KRaftControlRecordStateMachine(VoterSet())
        update_state(machine, log)
        if rewrite.writes_record and machine.last_voter_set != rewrite.voter_set:
            raise RepairRefusedError(f"the result has the voters {machine.last_voter_set}, not {rewrite.voter_set}")


def _election_state(rewrite: VoterRewrite) -> QuorumStateData:
    ids = () if rewrite.writes_record else tuple(voter.id for voter in rewrite.voters)
    return QuorumStateData(rewrite.kraft_version, leader_epoch=rewrite.quorum_epoch, current_voters=ids)


def _owner(rewrite: VoterRewrite, voter: PlannedVoter) -> MetaProperties:
    return MetaProperties(_META_VERSION, rewrite.cluster_id, voter.id, voter.key.directory_id)
