# SPDX-License-Identifier: Apache-2.0
"""The replicas of a raft log in an audit: their identity, how far they reach, and the voters that they name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import RaftLogError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.durable_ends import durable_end_offset
from raftlog.tools.auditing.history.histories import by_history
from raftlog.tools.auditing.history.log_directories import DirectoryIdentity, log_directories
from raftlog.tools.auditing.history.log_lineages import contradicted_names, name_faults, wrong_epoch_offset
from raftlog.tools.auditing.history.quorum_statements import (
    cut_offset,
    has_jump,
    hole_offset,
    log_statements,
    snapshot_statements,
    voters_of,
)
from raftlog.tools.auditing.proof.snapshot_names import NameFault
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.uuid_text import uuid_from_text
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

_OTHER_EPOCH: Final = "snapshot-epoch"
"""Kafka does not compare the epoch of a snapshot's batches with its name."""
_OF_COPIES: Final = frozenset({"sequence", "is_vote_lost"})
"""The members of raftlog's copies of quorum-state that the file itself does not have."""


@attrs.frozen
class Replica:
    """A replica of a raft log.

    Attributes:
        evidence: its files.
        directory: its log directory.
        end: end of its log after the next startup, exclusive, with the epoch of its last record. Startup truncates the
            log at damaged bytes, and discards a log that is less up to date than the newest snapshot.
        state: its quorum-state, if that can be read.
        damaged_from: the first offset that is damaged or missing, and in no snapshot; None if there is none.
        quarantined_from: the same if it is below the durable end that raftlog's files beside the log record: raftlog
            then lets the replica neither vote nor lead. None otherwise.
        has_state: whether its state can be loaded; not if its log starts above 0 and no readable snapshot reaches that
            start. Without one, Kafka does not start on such a log.
        misnamed: the snapshots of its log, on whatever replica, whose names are wrong for certain: by path, why.
        doubted: those whose names are only doubted, which are used all the same; by path.
        starts_misnamed: whether only a misnamed snapshot reaches the start of its log: Kafka starts on it, and what was
            before that start is not there.
    """

    evidence: PartitionEvidence
    directory: DirectoryIdentity
    end: OffsetAndEpoch
    state: QuorumStateData | None = None
    damaged_from: int | None = None
    quarantined_from: int | None = None
    has_state: bool = True
    misnamed: Mapping[str, str] = attrs.field(factory=dict)
    doubted: Mapping[str, NameFault] = attrs.field(factory=dict)
    starts_misnamed: bool = False

    @property
    def misled_by(self) -> str | None:
        """The misnamed snapshot that Kafka would start from, with a wrong state or without its log; or None."""
        newest = newest_readable_snapshot(self.evidence)
        path = None if newest is None else self.evidence.snapshots_by_id[newest].task.path
        return path if path in self.misnamed else None

    def as_if_renamed(self) -> "Replica":
        """Return it as it is if all names that are doubted, and prove nothing, are wrong."""
        wrong = {path: fault.reason for path, fault in self.doubted.items() if not fault.proves}
        return _replica(self.evidence, self.directory, {**self.misnamed, **wrong}, {})

    @property
    def key(self) -> ReplicaKey | None:
        """Its id and directory id; None if no file has them."""
        node_id = self.directory.node_id
        return None if node_id is None else ReplicaKey(node_id, self.directory.directory_id)

    @property
    def path(self) -> str:
        """Its log directory."""
        return self.directory.path

    def is_voter_of(self, voters: VoterSet) -> bool:
        """Whether it is one of the given voters."""
        return self.key is not None and voters.is_voter(self.key)


def replicas(evidence: Sequence[PartitionEvidence]) -> list[Replica]:
    """Return the replicas of raft logs among the evidence, the most up-to-date first."""
    directories = log_directories(evidence)
    logs = [each for each in evidence if each.is_raft]
    faults = _name_faults(logs, directories)
    found = []
    for each in logs:
        of_log = faults[each.place.log_directory]
        misnamed = {path: fault.reason for path, fault in of_log.items() if fault.is_certain}
        doubted = {path: fault for path, fault in of_log.items() if not fault.is_certain}
        found.append(_replica(each, directories[each.place.log_directory], misnamed, doubted))
    return sorted(found, key=lambda replica: replica.end, reverse=True)


def _name_faults(
    logs: Iterable[PartitionEvidence], directories: Mapping[str, DirectoryIdentity]
) -> Mapping[str, Mapping[str, NameFault]]:
    """Return, by log directory, the snapshots of all replicas of its log whose names are contradicted or doubted.

    Two clusters may have one log of each name: their timestamps say nothing about each other.
    """
    groups: dict[tuple[object, ...], list[PartitionEvidence]] = {}
    for log in logs:
        cluster_id = directories[log.place.log_directory].cluster_id
        groups.setdefault((log.place.topic_partition, cluster_id), []).append(log)
    found: dict[str, Mapping[str, NameFault]] = {}
    for of_one_name in groups.values():
        for group in by_history(of_one_name, lambda log: log):
            faults = name_faults(group)
            found |= {log.place.log_directory: faults for log in group}
    return found


def _replica(
    partition: PartitionEvidence,
    directory: DirectoryIdentity,
    wrong: Mapping[str, str],
    doubted: Mapping[str, NameFault],
) -> Replica:
    end, damaged_from = log_end(partition), _damaged_from(partition, wrong)
    state = quorum_state_of(partition.small_file(FileKind.QUORUM_STATE))
    whole_end = end.offset if damaged_from is None else min(damaged_from, end.offset)
    durable = durable_end_offset(partition)
    found = Replica(
        partition,
        directory,
        end,
        state,
        damaged_from,
        has_state=partition.start_offset <= _covered(partition, ()),
        misnamed=wrong,
        doubted=doubted,
        starts_misnamed=_covered(partition, wrong) < partition.start_offset <= _covered(partition, ()),
    )
    if durable is None or durable <= whole_end:
        return found
    return attrs.evolve(found, damaged_from=whole_end, quarantined_from=whole_end)


def newest_sound_snapshot(partition: PartitionEvidence, wrong: Collection[str] | None = None) -> OffsetAndEpoch | None:
    """Return the id of the readable snapshot that reaches furthest; None if there is none above 0.

    Args:
        partition: the log.
        wrong: as for ``usable_snapshots``.
    """
    return max(usable_snapshots(partition, wrong), key=lambda each: (each.offset, each.epoch), default=None)


def usable_snapshots(partition: PartitionEvidence, wrong: Collection[str] | None = None) -> list[OffsetAndEpoch]:
    """Return the ids of readable snapshots above 0 whose names nothing contradicts, ascending.

    Args:
        partition: the log.
        wrong: paths of snapshots whose names are contradicted, as by all replicas; by default, by what is in the
            partition.
    """
    wrong = contradicted_names([partition]) if wrong is None else wrong
    files = partition.snapshots_by_id
    return [each for each in _sound_snapshots(partition) if each.offset > 0 and files[each].task.path not in wrong]


def newest_readable_snapshot(partition: PartitionEvidence) -> OffsetAndEpoch | None:
    """Return the id of the snapshot that Kafka starts from, whatever contradicts its name; None if none is above 0.

    Source: KafkaRaftLog#latestSnapshot.
    """
    return max((each for each in _sound_snapshots(partition) if each.offset > 0), default=None)


def _covered(partition: PartitionEvidence, wrong: Collection[str]) -> int:
    """Return the end of the newest readable snapshot that is not misnamed, by offset; 0 if there is none."""
    newest = newest_sound_snapshot(partition, wrong)
    return 0 if newest is None else newest.offset


def log_end(partition: PartitionEvidence) -> OffsetAndEpoch:
    """Return the end of a log after its next startup, exclusive, with its last epoch.

    That is the offset of its first damaged bytes, or the end of the newest readable snapshot, if more up to date.

    Source: KafkaRaftLog#truncateToLatestSnapshot, LogLoader#recoverLog.
    """
    end = OffsetAndEpoch(partition.end_offset, partition.last_epoch)
    cut = cut_offset(partition)
    if cut is not None and cut < end.offset:
        epochs = [seen.epoch for segment in partition.segments for seen in segment.epochs if seen.start_offset < cut]
        end = OffsetAndEpoch(cut, max(epochs, default=-1))
    return max([end, *_sound_snapshots(partition)])


def _sound_snapshots(partition: PartitionEvidence) -> list[OffsetAndEpoch]:
    """Return the ids of undamaged snapshots, since a node starts only from those, and from those of a wrong name."""
    return [
        snapshot_id
        for snapshot_id, file in partition.snapshots_by_id.items()
        if not any(_is_serious(finding) for finding in file.findings if finding.rule != _OTHER_EPOCH)
    ]


def _is_serious(finding: Finding) -> bool:
    return finding.severity >= Severity.DAMAGED or finding.rule in UNREADABLE_RULES


def _damaged_from(partition: PartitionEvidence, wrong: Collection[str]) -> int | None:
    """Return the first offset that a log no longer has and no snapshot covers."""
    covered = _covered(partition, wrong)
    if partition.start_offset > covered:
        return covered
    hole = hole_offset(partition)
    if hole is not None and hole < covered < partition.end_offset and has_jump(partition):
        hole = covered
    found = [hole, wrong_epoch_offset(partition)]
    cut = cut_offset(partition)
    if cut is not None:
        # Records after the truncation point are discarded too, unless a snapshot has them.
        found += [max(cut, covered)] if max(cut + 1, partition.end_offset) > covered else []
    return min((offset for offset in found if offset is not None and offset >= covered), default=None)


def quorum_state_of(file: FileEvidence | None) -> QuorumStateData | None:
    """Return the contents of quorum-state or of a copy of it; None if it cannot be read, or there is none."""
    fields = {name: value for name, value in ((file and file.contents) or {}).items() if name not in _OF_COPIES}
    try:
        if fields.get("voted_directory_id") is not None:
            fields["voted_directory_id"] = uuid_from_text(fields["voted_directory_id"])
        if fields.get("current_voters") is not None:
            fields["current_voters"] = tuple(fields["current_voters"])
        return QuorumStateData(**fields)
    except (RaftLogError, TypeError, ValueError):
        return None


def voters_in_force(replica: Replica) -> VoterSet:
    """Return the voters at the end of a log, by its last Voters record or snapshot, or else the static voters.

    Only the ids of static voters are known, from the last LeaderChange or from quorum-state. The set may be empty.
    """
    statements = [each for each in log_statements(replica.evidence) if each.seen.offset < replica.end.offset]
    sets = [(statement.seen.offset, voters_of(statement)) for statement in statements]
    sets += [
        (snapshot.offset, snapshot.voter_set)
        for snapshot in snapshot_statements(replica.evidence)
        if snapshot.file.task.path not in replica.misnamed
    ]
    named = [(offset, voters) for offset, voters in sets if voters is not None]
    if named:
        return max(named, key=lambda each: each[0])[1]
    for statement in reversed(statements):
        if isinstance(statement.value, LeaderChangeMessage):
            return static_voters(voter.id for voter in statement.value.voters)
    return static_voters((replica.state and replica.state.current_voters) or ())


def static_voters(ids: Iterable[int]) -> VoterSet:
    """Return voters of which only the ids are known.

    Source: VoterSet#fromInetSocketAddresses.
    """
    nodes = (VoterNode(ReplicaKey(voter_id), Endpoints(), SupportedVersionRange(0, 0)) for voter_id in sorted(set(ids)))
    return VoterSet.of(nodes)
