# SPDX-License-Identifier: Apache-2.0
"""What the consensus core knows of its replica's log: immutable views, which the driver hands in."""

import functools

import attrs

from raftlog.log.control_records import KRaftControlRecordStateMachine
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.state import LogState, snapshot_ids_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.voters.history import HistoryEntry
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import VoterSet


@attrs.frozen
class ControlRecordView:
    """The voter sets and the kraft.version that a log's control records have put in force.

    Attributes:
        static_voters: the configured set, in force while no record names another.
        voter_sets: those of the log's records, with their offsets, oldest first.
        kraft_version: in force at the log end.
    """

    static_voters: VoterSet
    voter_sets: tuple[HistoryEntry[VoterSet], ...] = ()
    kraft_version: KRaftVersion = KRaftVersion.KRAFT_VERSION_0

    @functools.cached_property
    def last_voter_set(self) -> VoterSet:
        """The voter set in force at the log end, committed or not."""
        return self.voter_sets[-1].value if self.voter_sets else self.static_voters

    @property
    def last_voter_set_offset(self) -> int | None:
        """The offset of the last VotersRecord: None for the static set, -1 for that of the bootstrap snapshot."""
        return self.voter_sets[-1].offset if self.voter_sets else None

    def trimmed(self, end_offset: int) -> "ControlRecordView":
        """Return the view after a snapshot with an end offset, exclusive: nothing before its last offset is known.

        Source: KRaftControlRecordStateMachine#truncateOldEntries.
        """
        first = max((i for i, each in enumerate(self.voter_sets) if each.offset < end_offset), default=0)
        return attrs.evolve(self, voter_sets=self.voter_sets[first:])


def control_record_view(machine: KRaftControlRecordStateMachine) -> ControlRecordView:
    """Return the view of a state machine that has read its log to the end."""
    return ControlRecordView(machine.static_voters, tuple(machine.voter_sets()), machine.last_kraft_version)


@attrs.frozen
class LogView:
    """A log at one moment.

    Attributes:
        state: offsets, epochs and snapshots.
        flushed_offset: the end, exclusive, of the durable records.
        generation: how often the log was truncated or opened.
        control_records: voters and kraft.version.
        is_quarantined: whether the log lost records that may have been acknowledged. Such a replica neither votes nor
            stands for election.
    """

    state: LogState
    flushed_offset: int
    generation: int
    control_records: ControlRecordView
    is_quarantined: bool = False

    @property
    def end(self) -> OffsetAndEpoch:
        """The log end, exclusive, with the epoch of the last record or snapshot: how up to date the log is."""
        return OffsetAndEpoch(self.state.end_offset, self.state.last_fetched_epoch)

    def with_snapshot(self, snapshot_id: OffsetAndEpoch) -> "LogView":
        """Return the view after a snapshot of this log's own records was frozen."""
        snapshot_ids = snapshot_ids_of((*self.state.snapshot_ids, snapshot_id))
        return attrs.evolve(
            self,
            state=attrs.evolve(self.state, snapshot_ids=snapshot_ids),
            control_records=self.control_records.trimmed(snapshot_id.offset),
        )

    def is_older_than(self, other: "LogView") -> bool:
        """Whether this is an earlier view of the same log: the log has grown since, or was truncated."""
        if self.generation != other.generation:
            return self.generation < other.generation
        return self.state.end_offset < other.state.end_offset or self.flushed_offset < other.flushed_offset


def log_view(log: ReplicatedLog, control_records: ControlRecordView) -> LogView:
    """Return the view of a log whose control records were read to the end."""
    return LogView(log.state, log.flushed_offset, log.generation, control_records, log.quarantine is not None)
