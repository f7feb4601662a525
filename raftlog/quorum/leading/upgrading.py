# SPDX-License-Identifier: Apache-2.0
"""Upgrades kraft.version from 0 to 1: the static voters become voters that the log names, with their directory ids.

A leader of kraft.version 0 keeps a voter set in memory: the static voters, each replaced by what it has told in an
UpdateRaftVoter. The set that an upgrade writes is this one. So an upgrade is refused until each voter has told the
leader its directory id, and that it supports the level; and, since that request is refused before, until the leader has
committed a record of its epoch.

An upgrade is an append: one control batch with a KRaftVersionRecord and a VotersRecord. It is in force once it is in
the log; a new leader that does not have it has it truncated, and kraft.version is 0 again.

Source: LeaderState#maybeAppendUpgradedKRaftVersion, KRaftVersionUpgrade; KAFKA-16538.
"""

from raftlog.errors import InvalidUpdateVersionError, NotLeaderError, UnknownEpochError
from raftlog.quorum.leadership import Leadership, PendingAppend, VersionUpgrade
from raftlog.quorum.leading.voter_change import note_written_voters
from raftlog.quorum.replica import LocalReplica
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord
from raftlog.records.messages.voters import voters_problem, voters_record
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterNode, VoterSet


def initial_upgrade(replica: LocalReplica) -> VersionUpgrade:
    """Return what a new leader knows: the static voters, with its own entry replaced; nothing at kraft.version 1."""
    if replica.log.control_records.kraft_version.is_reconfiguration_supported:
        return VersionUpgrade()
    return VersionUpgrade(voters=replica.voters.update_voter_ignoring_directory_id(replica.voter_node))


def update_voter_in_memory(leadership: Leadership, node: VoterNode) -> bool:
    """Keep what a static voter tells of itself, whatever its directory id is, unless an upgrade was requested already.

    Returns:
        whether it was kept: no voter has another node id.

    Source: LeaderState#compareAndSetVolatileVoters.
    """
    voters = leadership.upgrade.voters
    updated = None if voters is None else voters.update_voter_ignoring_directory_id(node)
    if updated is None:
        return False
    leadership.upgrade = VersionUpgrade(voters=updated)
    return True


def updated_voters_problem(leadership: Leadership, node: VoterNode) -> str | None:
    """Return why the voters could not be written once a static voter has told this of itself; None if they could."""
    voters = leadership.upgrade.voters
    updated = None if voters is None else voters.update_voter_ignoring_directory_id(node)
    return None if updated is None else voters_problem(voters_record(updated))


def upgrade_kraft_version(
    replica: LocalReplica, epoch: int, version: KRaftVersion, *, validate_only: bool
) -> PendingAppend | None:
    """Write the records of an upgrade, unless it is in force or being written already.

    Raises:
        NotLeaderError, UnknownEpochError, InvalidUpdateVersionError, BufferExhaustedError: as for
            ``Raft.upgrade_kraft_version``. Nothing has changed.
    """
    leadership, batches = _leading(replica, epoch)
    if replica.kraft_version == version:
        return None
    voters = _upgradable_voters(replica, leadership, version)
    if validate_only:
        return None
    leadership.check_room(replica.config.max_uncommitted_appends)
    values: list[ControlValue] = [KRaftVersionRecord(int(version))]
    if voters != replica.voters:
        values.append(voters_record(voters))
    last_offset = batches.append_control_records(values, replica.wall_ms)
    if len(values) > 1:
        note_written_voters(leadership, last_offset, batches.next_offset)
    leadership.upgrade = VersionUpgrade(requested=version)
    appended = PendingAppend(replica.outbox.new_number(), last_offset)
    leadership.pending.append(appended)
    return appended


def _leading(replica: LocalReplica, epoch: int) -> tuple[Leadership, BatchAccumulator]:
    """Return what this replica knows as the leader of an epoch that it has begun in the log."""
    leadership = replica.leadership
    if leadership is None or leadership.batches is None or replica.halt_reason is not None or epoch < leadership.epoch:
        raise NotLeaderError(f"epoch {epoch}: this replica is {type(replica.role).__name__} in epoch {replica.epoch}")
    if epoch > leadership.epoch:
        raise UnknownEpochError(f"epoch {epoch}: this replica leads epoch {leadership.epoch}")
    return leadership, leadership.batches


def _upgradable_voters(replica: LocalReplica, leadership: Leadership, version: KRaftVersion) -> VoterSet:
    """Return the voters that an upgrade is to write, after a check that it is possible."""
    present = replica.kraft_version
    if version < present:
        raise InvalidUpdateVersionError(f"kraft.version {present:d} cannot be downgraded to {version:d}")
    voters = leadership.upgrade.voters
    if voters is None or voters.voter_ids != replica.voters.voter_ids:
        raise InvalidUpdateVersionError(f"kraft.version {version:d}: the voters are not {replica.voters}, but {voters}")
    nodes = voters.voters.values()
    old = [node.voter_key.id for node in nodes if not node.supported_kraft_versions.contains(version)]
    if old:
        raise InvalidUpdateVersionError(f"kraft.version {version:d} is not known to be supported by voters {old}")
    unknown = [node.voter_key.id for node in nodes if node.voter_key.directory_id is None]
    if unknown:
        raise InvalidUpdateVersionError(f"kraft.version {version:d}: no directory id is known of voters {unknown}")
    problem = voters_problem(voters_record(voters))
    if problem is not None:  # Of the configured voters, or this leader's own entry: these are not checked before.
        raise InvalidUpdateVersionError(f"kraft.version {version:d}: the voters cannot be written: {problem}")
    return voters
