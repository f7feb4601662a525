# SPDX-License-Identifier: Apache-2.0
"""Decides which identity the new directory of a node gets.

A voter that forgets its vote may vote twice in an epoch, and then there may be two leaders of it. So a node keeps its
directory id only together with its own election state. Without that it starts as somebody new, who was no voter before.
"""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

import attrs

from raftlog.errors import RepairRefusedError
from raftlog.file_system import FileSystem, join
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.election_states import contradict
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import KRaftVersionRecord, LeaderChangeMessage
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME, random_directory_id
from raftlog.storage.state.quorum_state_store import load_quorum_state
from raftlog.tools.auditing.history.quorum_statements import Statement, log_statements, snapshot_statements, voters_of
from raftlog.tools.auditing.history.replicas import static_voters
from raftlog.tools.auditing.judgement.vote_rules import state_words
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.losses import Witness
from raftlog.tools.salvage.merging import Piece
from raftlog.tools.salvage.salvage_plan import Owner
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import VoterSet


@attrs.frozen
class StateAtEnd:
    """What is in force at the end of a log.

    Attributes:
        kraft_version: its level.
        voters: those of the last VotersRecord; at kraft.version 0 the static voters, of which only the ids are known.
    """

    kraft_version: int
    voters: VoterSet


def state_at_end(
    witnesses: Sequence[Witness],
    pieces: Sequence[Piece],
    snapshots: Iterable[tuple[int, OffsetAndEpoch]],
    static: VoterSet,
) -> StateAtEnd:
    """Return what is in force at the end of a log that is made of pieces and snapshots, by their control records alone.

    Args:
        witnesses: what the survey saw of the sources, by number.
        pieces: of the log.
        snapshots: number of the source and id of each, the bootstrap snapshot included.
        static: the voters at kraft.version 0 if no LeaderChange of the log names them.
    """
    versions, sets, leaders = {-2: 0}, dict[int, VoterSet](), dict[int, LeaderChangeMessage]()
    for number, snapshot_id in snapshots:
        evidence = witnesses[number].evidence
        for each in () if evidence is None else snapshot_statements(evidence):
            if each.snapshot_id == snapshot_id:
                versions[each.offset] = each.kraft_version
                sets |= {} if each.voter_set is None else {each.offset: each.voter_set}
    for statement in _statements(witnesses, pieces):
        offset, value, voters = statement.seen.offset, statement.value, voters_of(statement)
        sets |= {} if voters is None else {offset: voters}
        versions |= {offset: value.kraft_version} if isinstance(value, KRaftVersionRecord) else {}
        leaders |= {offset: value} if isinstance(value, LeaderChangeMessage) else {}
    version = versions[max(versions)]
    if version > 0:
        return StateAtEnd(version, sets[max(sets)] if sets else VoterSet())
    return StateAtEnd(0, static_voters(each.id for each in leaders[max(leaders)].voters) if leaders else static)


def _statements(witnesses: Sequence[Witness], pieces: Iterable[Piece]) -> Iterator[Statement]:
    """Yield the statements in some pieces, by the position of their batches."""
    by_file: dict[tuple[int, str], list[Piece]] = {}
    for piece in pieces:
        by_file.setdefault((piece.source, piece.file), []).append(piece)
    for number in {source for source, _ in by_file}:
        evidence = witnesses[number].evidence
        for statement in () if evidence is None else log_statements(evidence):
            name = statement.file.task.path.rpartition("/")[2]
            if _has(by_file.get((number, name), ()), statement.seen.position):
                yield statement


def _has(pieces: Sequence[Piece], position: int) -> bool:
    """Whether a position is in one of some pieces of a file, by ascending position."""
    index = bisect.bisect_right(pieces, position, key=lambda each: each.position) - 1
    return index >= 0 and position < pieces[index].end_position


def election_state(file_system: FileSystem, source: Source) -> QuorumStateData | None:
    """Return the election state of a source, by ``quorum-state`` or raftlog's copies; None if none can be read.

    Raises:
        StorageError: a file cannot be read.
    """
    found = load_quorum_state(file_system, join(source.directory, METADATA_DIRECTORY_NAME), has_log=True)
    return None if found.is_vote_lost else found.state


def _lateness(state: QuorumStateData, source: Source) -> tuple[int, int, int, str]:
    return state.leader_epoch, state.voted_id, state.leader_id, source.directory


def plan_owner(
    file_system: FileSystem, node_id: int, sources: Sequence[Source], witnesses: Sequence[Witness], voters: VoterSet
) -> Owner:
    """Return the identity of a node's new directory.

    Of several copies of its disk, the one whose election state is the latest counts.

    Args:
        file_system: of the sources; it is only read.
        node_id: of the node.
        sources: the log directories.
        witnesses: what the survey saw of them, by the same numbers.
        voters: in force at the end of the log.

    Raises:
        RepairRefusedError: it is a static voter without its election state: a new directory id does not make a static
            voter another one. Or two copies of its disk have election states of the latest epoch that contradict each
            other: whichever it goes on with, it may vote twice.
        StorageError: a file cannot be read.
    """
    own: list[tuple[QuorumStateData, int, UUID]] = []
    for number, (source, witness) in enumerate(zip(sources, witnesses, strict=True)):
        key = None if witness.copy is None else witness.copy.key
        if key is None or key.id != node_id or key.directory_id is None:
            continue
        state = election_state(file_system, source)
        if state is not None:
            own.append((state, number, key.directory_id))
    if own:
        state, number, directory_id = max(own, key=lambda each: _lateness(each[0], sources[each[1]]))
        for other, other_number, other_id in own:
            is_same = directory_id == other_id or 0 in {state.data_version, other.data_version}
            if is_same and contradict(state, other, node_id):
                raise RepairRefusedError(
                    f"node {node_id} cannot have had both quorum-states of epoch {state.leader_epoch}:"
                    f" {state_words(state)} in {sources[number].directory}, and {state_words(other)} in"
                    f" {sources[other_number].directory}. Give only the directory on which it ran last, or make the log"
                    " for another node"
                )
        return Owner(node_id, uuid_to_text(directory_id), number)
    if any(key.id == node_id and key.directory_id is None for key in voters.voter_keys):
        raise RepairRefusedError(
            f"node {node_id} is a static voter, known by its id alone, and its quorum-state is not here: on this log it"
            " could vote twice in an epoch. Give its directory too, or make the log without --node-id, and put it in"
            " place of the __cluster_metadata-0 of a node that has its quorum-state"
        )
    return Owner(node_id, uuid_to_text(random_directory_id()), None)
