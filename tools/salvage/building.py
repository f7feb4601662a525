# SPDX-License-Identifier: Apache-2.0
"""Builds the directory of a salvaged log: batches as they were, in files as Kafka has them.

Segments end where those of the sources ended. Indexes and ``leader-epoch-checkpoint`` are made anew from the batches.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from raftlog.errors import RepairRefusedError, SourceChangedError
from raftlog.file_system import FileSystem, OpenFile, join, replace_file
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileName
from raftlog.records.files.property_files import MetaProperties
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.repair.copied_log import copy_file, forget_own_files, write_owner
from raftlog.tools.repair.sources import Source, SourceFile
from raftlog.tools.salvage.identity import election_state
from raftlog.tools.salvage.merging import Piece
from raftlog.tools.salvage.replacing import read_batch_at, replaced_batch
from raftlog.tools.salvage.salvage_plan import Owner, Salvage
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet

_META_VERSION: Final = 1
_SEGMENT_BYTES: Final = 1 << 30
_PIECE_BYTES: Final = 1 << 20


def build_salvaged(file_system: FileSystem, sources: Sequence[Source], salvage: Salvage, directory: str) -> None:
    """Build a directory.

    Args:
        file_system: of the sources and of the directory.
        sources: of the plan.
        salvage: what is to be done.
        directory: exists, and is empty.

    Raises:
        SourceChangedError: a source is not what it was when the plan was made.
        RepairRefusedError: the log that was made is not the one that was planned.
        StorageError: the disk failed.
        RaftLogError: as for ``FileLog`` and ``update_state``.
    """
    log_path = join(directory, METADATA_DIRECTORY_NAME)
    file_system.make_directory(log_path)
    taken = [(file.source, file.name) for file in salvage.files]
    taken += [(snapshot.source, snapshot.name) for snapshot in salvage.snapshots]
    for number, name in taken:
        source = sources[number]
        copy_file(file_system, source.path(name), join(directory, name), _file(source, name))
    _write_segments(file_system, sources, salvage, log_path)
    kraft_version = _check(file_system, log_path, salvage)
    forget_own_files(file_system, log_path)
    if salvage.owner is not None:
        state = _state(file_system, sources, salvage, salvage.owner, kraft_version)
        replace_file(file_system, join(log_path, FileKind.QUORUM_STATE.value), write_quorum_state(state))
        write_owner(file_system, directory, _meta(salvage, salvage.owner))


def _file(source: Source, name: str) -> SourceFile:
    found = next((file for file in source.files if file.name == name), None)
    if found is None:
        raise SourceChangedError(source.path(name), "the plan does not have it")
    return found


def _write_segments(file_system: FileSystem, sources: Sequence[Source], salvage: Salvage, log_path: str) -> None:
    replaced = {each.start_offset: each.offsets for each in salvage.replacements}
    for start_offset, pieces in _segments(salvage.pieces, salvage.start_offset):
        name = str(FileName(FileKind.LOG, base_offset=start_offset))
        file = file_system.open(join(log_path, name), create=True)
        try:
            for piece in pieces:
                path = sources[piece.source].path(join(METADATA_DIRECTORY_NAME, piece.file))
                if piece.start_offset in replaced:
                    batch = read_batch_at(path, piece, piece.start_offset)
                    file.append(replaced_batch(batch, replaced[piece.start_offset]))
                else:
                    append_piece(file_system, path, piece, file)
            file.sync()
        finally:
            file.close()


def _segments(taken: Iterable[Piece], log_start: int) -> Iterator[tuple[int, list[Piece]]]:
    """Yield the segments to write: their base offsets, and what is in them. An empty log has an empty segment."""
    pieces: list[Piece] = []
    size_bytes = 0
    for piece in taken:
        size_bytes += piece.size_bytes
        if pieces and (piece.position == 0 or size_bytes > _SEGMENT_BYTES):
            yield pieces[0].start_offset, pieces
            pieces, size_bytes = [], piece.size_bytes
        pieces.append(piece)
    yield (pieces[0].start_offset if pieces else log_start), pieces


def append_piece(file_system: FileSystem, path: str, piece: Piece, target: OpenFile) -> None:
    """Append batches of a source as they are.

    Args:
        file_system: of the source.
        path: of its segment.
        piece: which of its bytes.
        target: is appended to, not synced.

    Raises:
        SourceChangedError: the source has fewer bytes than when the plan was made.
        StorageError: the disk failed.
    """
    source = file_system.open_for_reads(path)
    try:
        position = piece.position
        while position < piece.end_position:
            data = source.read_at(position, min(_PIECE_BYTES, piece.end_position - position))
            if not data:
                raise SourceChangedError(path, "it is shorter than when the plan was made")
            target.append(data)
            position += len(data)
    finally:
        source.close()


def _check(file_system: FileSystem, log_path: str, salvage: Salvage) -> KRaftVersion:
    """Open the log as its node would, which makes the indexes, and check that it is whole and ends as planned.

    At another kraft.version, another node could be a static voter, which must not get a new directory id.

    Returns:
        The kraft.version in force at its end.
    """
    with FileLog.open(file_system, log_path) as log:
        found = OffsetAndEpoch(log.end_offset.offset, log.last_fetched_epoch)
        if log.quarantine is not None or found != salvage.end:
            raise RepairRefusedError(f"the log that was made ends at {found}, and the plan is for {salvage.end}")
        log.flush()
        machine = KRaftControlRecordStateMachine(VoterSet())
        update_state(machine, log)
    version = machine.last_kraft_version
    if version != salvage.kraft_version:
        raise RepairRefusedError(
            f"the log that was made ends at kraft.version {version:d}, and the plan is for {salvage.kraft_version}"
        )
    return version


def _state(
    file_system: FileSystem, sources: Sequence[Source], salvage: Salvage, owner: Owner, kraft_version: KRaftVersion
) -> QuorumStateData:
    """Return the election state that the owner goes on from.

    It keeps its vote in its own epoch. In the log's last epoch, if only another log has shown that, it has not voted;
    nor has a directory that is new.
    """
    version = kraft_version.quorum_state_version
    state = None
    if owner.state_source is not None:
        source = sources[owner.state_source]
        state = election_state(file_system, source)
        if state is None:
            raise SourceChangedError(source.directory, "its election state cannot be read any more")
    voters = state.current_voters if state is not None and version == state.data_version == 0 else ()
    if state is None or state.leader_epoch < salvage.epoch:
        return QuorumStateData(version, leader_epoch=salvage.epoch, current_voters=voters)
    return QuorumStateData(
        version,
        state.leader_id,
        state.leader_epoch,
        state.voted_id,
        state.voted_directory_id if version > 0 else None,
        voters,
    )


def _meta(salvage: Salvage, owner: Owner) -> MetaProperties:
    return MetaProperties(_META_VERSION, salvage.cluster_id, owner.node_id, uuid_from_text(owner.directory_id))
