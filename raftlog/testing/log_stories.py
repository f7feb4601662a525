# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for the history of a raft log: epochs, voter changes, truncations and snapshots.

A ``LogStory`` is a list of steps that any ``ReplicatedLog`` can replay, with the state that must result::

    @given(log_stories())
    def test_my_log(story: LogStory) -> None:
        log, machine = MyLog(), KRaftControlRecordStateMachine(story.static_voters)
        story.replay(log, machine)
        assert log.end_offset.offset == story.end_offset
        assert all(machine.voter_set_at_offset(offset) == voters for offset, voters in story.voter_sets().items())

Raises:
    MissingExtraError: on import, if Hypothesis is not installed.
"""

from typing import Final

import attrs

from raftlog.errors import MissingExtraError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.snapshots import begin_snapshot
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import KRaftVersionRecord
from raftlog.records.messages.voters import voters_record
from raftlog.voters.kraft_version import KRaftVersion
from raftlog.voters.voter_set import ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

try:
    from hypothesis import strategies as st

    from raftlog.testing import strategies
except ImportError as error:
    raise MissingExtraError("testing", "raftlog.testing.log_stories") from error

_TIMESTAMP_MS: Final = 1_700_000_000_000
_MAX_VOTERS: Final = 5


@attrs.frozen
class Append:
    """A follower appends what a leader sends.

    Attributes:
        data: one batch.
        epoch: of the leader.
        voters: the set that the batch puts in force, or None.
    """

    data: bytes
    epoch: int
    voters: VoterSet | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return RecordBatch(self.data).next_offset


@attrs.frozen
class Commit:
    """The log is flushed, and the high watermark moves to an offset, exclusive, where a batch ends."""

    high_watermark: int


@attrs.frozen
class CutOff:
    """The log is truncated to an offset, exclusive, between two batches, not below the high watermark."""

    end_offset: int


@attrs.frozen
class TakeSnapshot:
    """A snapshot of the committed records below an offset, exclusive, is frozen.

    Attributes:
        end_offset: where a batch ends.
        takes_place: whether the log then starts there.
    """

    end_offset: int
    takes_place: bool


LogStep = Append | Commit | CutOff | TakeSnapshot


@attrs.frozen
class LogStory:
    """Steps to replay on a log, and the state that results.

    Attributes:
        static_voters: in force before a record names voters.
        steps: in order.
        start_offset: of the log at the end, inclusive.
        high_watermark: at the end, exclusive.
        snapshot_end_offset: of the newest snapshot, exclusive; 0 if there is none.
        batches: those that remain at the end, from offset 0 on, including those that a snapshot has replaced.
    """

    static_voters: VoterSet
    steps: tuple[LogStep, ...]
    start_offset: int
    high_watermark: int
    snapshot_end_offset: int
    batches: tuple[Append, ...]

    @property
    def end_offset(self) -> int:
        """The end of the log, exclusive."""
        return self.batches[-1].next_offset if self.batches else 0

    def voter_sets(self) -> dict[int, VoterSet | None]:
        """Return the voter set in force at each offset that a state machine knows at the end; None if not yet named.

        A state machine knows the offsets of the log, from the last offset of the newest snapshot on.
        """
        found, voters, offset = dict[int, VoterSet | None](), None, 0
        for batch in self.batches:
            while offset < batch.next_offset:
                # The last record of a batch names the voters.
                voters = batch.voters if batch.voters is not None and offset == batch.next_offset - 1 else voters
                found[offset] = voters
                offset += 1
        known_from = max(self.start_offset, self.snapshot_end_offset - 1)
        return {offset: voters for offset, voters in found.items() if offset >= known_from}

    def replay(self, log: ReplicatedLog, machine: KRaftControlRecordStateMachine | None = None) -> None:
        """Replay the steps on an empty log, and let a state machine follow it.

        Args:
            log: an empty log.
            machine: a state machine with the static voters that has read nothing; None makes one.
        """
        machine = machine or KRaftControlRecordStateMachine(self.static_voters)
        for step in self.steps:
            match step:
                case Append():
                    log.append_as_follower(step.data, step.epoch)
                case Commit():
                    log.flush()
                    log.update_high_watermark(step.high_watermark)
                case CutOff():
                    log.truncate_to(step.end_offset)
                    machine.truncate_new_entries(step.end_offset)
                case TakeSnapshot():
                    _take_snapshot(log, machine, step)
            update_state(machine, log)


def _take_snapshot(log: ReplicatedLog, machine: KRaftControlRecordStateMachine, step: TakeSnapshot) -> None:
    writer = begin_snapshot(log, machine, step.end_offset, now_ms=_TIMESTAMP_MS)
    if writer is not None:
        with writer:
            writer.freeze(_TIMESTAMP_MS)
    if step.takes_place and log.latest_snapshot_id is not None:
        log.delete_before_snapshot(log.latest_snapshot_id)


class _StoryWriter:
    """Draws the steps of a story one by one, each possible after those before it."""

    def __init__(self, draw: st.DrawFn, static_voters: VoterSet) -> None:
        self._draw = draw
        self._static_voters = static_voters
        self.steps: list[LogStep] = []
        self.batches: list[Append] = []
        self.epoch = 1
        self.start_offset = self.high_watermark = self.latest_snapshot = 0

    @property
    def end_offset(self) -> int:
        """Where the log ends, exclusive."""
        return self.batches[-1].next_offset if self.batches else 0

    def append_records(self) -> None:
        """A leader writes data, in its epoch or in a later one."""
        self.epoch += self._draw(st.sampled_from([0, 0, 0, 1, 2]))
        self._append(Append(self._draw(strategies.record_batches(self.end_offset, self.epoch)), self.epoch))

    def change_voters(self) -> None:
        """A leader adds or removes one voter; the first such record comes with the kraft.version."""
        known = next((batch.voters for batch in reversed(self.batches) if batch.voters is not None), None)
        voters = (known or self._static_voters) if known is None else self._changed(known)
        version = () if known is not None else (KRaftVersionRecord(KRaftVersion.KRAFT_VERSION_1),)
        data = write_control_batch(
            [*version, voters_record(voters)],
            base_offset=self.end_offset,
            epoch=self.epoch,
            timestamp=_TIMESTAMP_MS + self.end_offset,
        )
        self._append(Append(data, self.epoch, voters))

    def _changed(self, voters: VoterSet) -> VoterSet:
        keys = sorted(voters.voter_keys)
        if len(voters) > 1 and (len(voters) == _MAX_VOTERS or self._draw(st.booleans())):
            return voters.remove_voter(self._draw(st.sampled_from(keys))) or voters
        new_id = next(id_ for id_ in range(len(voters) + 1) if id_ not in voters.voter_ids)
        node = self._draw(strategies.voter_nodes(st.builds(ReplicaKey, st.just(new_id), st.uuids(allow_nil=False))))
        return voters.add_voter(_with_today_versions(node)) or voters

    def _append(self, step: Append) -> None:
        self.batches.append(step)
        self.steps.append(step)

    def commit(self) -> None:
        """The high watermark moves up."""
        ends = [batch.next_offset for batch in self.batches if batch.next_offset >= self.high_watermark]
        if ends:
            self.high_watermark = self._draw(st.sampled_from(ends))
            self.steps.append(Commit(self.high_watermark))

    def truncate(self) -> None:
        """The log is truncated, for a leader of a later epoch that has other records."""
        cuts = [0, *(batch.next_offset for batch in self.batches)]
        end_offset = self._draw(st.sampled_from([cut for cut in cuts if cut >= self.high_watermark]))
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.epoch += 1
        self.steps.append(CutOff(end_offset))

    def take_snapshot(self) -> None:
        """A snapshot is frozen, and may replace the records below it."""
        ends = [
            batch.next_offset
            for batch in self.batches
            if self.latest_snapshot < batch.next_offset <= self.high_watermark
        ]
        if ends:
            step = TakeSnapshot(self._draw(st.sampled_from(ends)), self._draw(st.booleans()))
            self.latest_snapshot = step.end_offset
            self.start_offset = step.end_offset if step.takes_place else self.start_offset
            self.steps.append(step)


def _with_today_versions(node: VoterNode) -> VoterNode:
    return attrs.evolve(node, supported_kraft_versions=SupportedVersionRange(0, 1))


@st.composite
def log_stories(draw: st.DrawFn, *, max_steps: int = 12) -> LogStory:
    """Stories of a log with up to five voters; every step is possible in a replica of a sound quorum.

    Args:
        draw: Hypothesis's.
        max_steps: of appends, voter changes, commits, truncations and snapshots together.
    """
    static_voters = draw(strategies.voter_sets(max_size=3, with_directory_ids=True))
    static_voters = VoterSet.of(map(_with_today_versions, static_voters.voters.values()))
    writer = _StoryWriter(draw, static_voters)
    kinds = st.sampled_from(["append_records", "change_voters", "commit", "truncate", "take_snapshot"])
    for kind in draw(st.lists(kinds, max_size=max_steps)):
        getattr(writer, kind)()
    return LogStory(
        static_voters,
        tuple(writer.steps),
        writer.start_offset,
        writer.high_watermark,
        writer.latest_snapshot,
        tuple(writer.batches),
    )
