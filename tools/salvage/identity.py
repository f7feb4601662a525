# SPDX-License-Identifier: Apache-2.0
"""Decides which identity the new directory of a node gets.

A voter that forgets its vote may vote twice in an epoch, and then there may be two leaders of it. So a node keeps its
directory id only together with its own election state. Without that it starts as somebody new, who was no voter before.
"""

from collections.abc import Sequence
from uuid import UUID

from raftlog.errors import RepairRefusedError
from raftlog.file_system import FileSystem, join
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME, random_directory_id
from raftlog.storage.state.quorum_state_store import load_quorum_state
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.losses import Witness
from raftlog.tools.salvage.salvage_plan import Owner
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import VoterSet


def election_state(file_system: FileSystem, source: Source) -> QuorumStateData | None:
    """Return the election state of a source, by ``quorum-state`` or raftlog's copies; None if none can be read.

    Raises:
        StorageError: a file cannot be read.
    """
    found = load_quorum_state(file_system, join(source.directory, METADATA_DIRECTORY_NAME), has_log=True)
    return None if found.is_vote_lost else found.state


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
            voter another one.
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
        _, number, directory_id = max(own, key=lambda each: (each[0].leader_epoch, each[0].voted_id, -each[1]))
        return Owner(node_id, uuid_to_text(directory_id), number)
    if any(key.id == node_id and key.directory_id is None for key in voters.voter_keys):
        raise RepairRefusedError(
            f"node {node_id} is a static voter, known by its id alone, and its quorum-state is not here: on this log it"
            " could vote twice in an epoch. Give its directory too, or make the log without --node-id, and put it in"
            " place of the __cluster_metadata-0 of a node that has its quorum-state"
        )
    return Owner(node_id, uuid_to_text(random_directory_id()), None)
