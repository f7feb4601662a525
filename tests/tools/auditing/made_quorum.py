# SPDX-License-Identifier: Apache-2.0
"""Evidence of raft logs, made by hand: as surveys would return it, without files."""

import uuid
from collections.abc import Iterable
from typing import Any, Self

import attrs
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    write_control_record,
)
from raftlog.records.messages.voters import voters_record
from raftlog.tools.auditing.evidence import (
    BatchSeen,
    ControlSeen,
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.catalogue.findings import Finding
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet

TOPIC = "__cluster_metadata"
START_MS = 1_700_000_000_000
BATCH_BYTES = 100


def voter(voter_id: int, directory: int = 0, port: int = 9093, versions: tuple[int, int] = (0, 1)) -> VoterNode:
    """A voter; its directory id is made of its id, and another one of a number."""
    directory_id = uuid.UUID(int=voter_id * 1000 + directory + 1)
    listeners = Endpoints.of({"CONTROLLER": (f"node{voter_id}", port)})
    return VoterNode(ReplicaKey(voter_id, directory_id), listeners, SupportedVersionRange(*versions))


def voters(*ids: int) -> VoterSet:
    """A voter set."""
    return VoterSet.of(map(voter, ids))


def leader_change(leader_id: int, named: Iterable[int], granting: Iterable[int] | None = None) -> LeaderChangeMessage:
    """A LeaderChange; everybody voted for the leader, unless said otherwise."""
    ids = tuple(named)
    return LeaderChangeMessage(
        leader_id, tuple(map(Voter, ids)), tuple(map(Voter, ids if granting is None else granting))
    )


@attrs.define
class MadeLog:
    """A replica's log in the making; batches are 100 bytes each, a millisecond an offset unless ``now`` says otherwise.

    Attributes:
        start_offset: of the first segment.
        node: name of its log directory.
        controls, epochs: what was written so far.
        snapshot_batches: those in which snapshots end; the caller adds them.
        now: when the next batch is written, in ms after ``START_MS``; None for its offsets.
    """

    start_offset: int = 0
    node: str = "n1"
    epoch: int = 1
    controls: list[ControlSeen] = attrs.field(factory=list)
    epochs: list[EpochSeen] = attrs.field(factory=list)
    others: list[FileEvidence] = attrs.field(factory=list)
    end_offset: int = attrs.field(default=attrs.Factory(lambda self: self.start_offset, takes_self=True))
    batch_count: int = 0
    snapshot_batches: list[BatchSeen] = attrs.field(factory=list)
    now: int | None = None

    @property
    def place(self) -> Place:
        return Place(self.node, TOPIC, 0)

    @property
    def path(self) -> str:
        """Of the segment."""
        return f"{self.node}/{TOPIC}-0/{self.start_offset:020}.log"

    def write(self, *values: ControlValue, epoch: int | None = None) -> int:
        """Append a batch of control records, and return its base offset."""
        self.epoch = self.epoch if epoch is None else epoch
        base_offset, position = self.end_offset, self.batch_count * BATCH_BYTES
        for offset, value in enumerate(values, base_offset):
            record = write_control_record(value)
            self.controls.append(ControlSeen(offset, self.epoch, self._ms(offset), base_offset, position, *record))
        self._extend(len(values), isinstance(values[0], LeaderChangeMessage))
        return base_offset

    def data(self, count: int = 1) -> Self:
        """Append a batch of data records."""
        self._extend(count, opens_with_leader=False)
        return self

    def lead(self, leader_id: int, named: Iterable[int], *also: ControlValue, epoch: int | None = None) -> int:
        """Begin an epoch, the next one unless said otherwise; return the offset of its LeaderChange."""
        epoch = (self.epoch + 1 if self.epochs else self.epoch) if epoch is None else epoch
        return self.write(leader_change(leader_id, named), *also, epoch=epoch)

    def bootstrap(self, first: VoterSet) -> Self:
        """Write what a formatted quorum starts with: a snapshot at 0, and the first epoch."""
        self.snapshot(0, epoch=0, named=first)
        self.lead(min(first.voter_ids), first.voter_ids, KRaftVersionRecord(1), voters_record(first))
        return self

    def change(self, after: VoterSet | VotersRecord) -> int:
        """Write a voter set in a batch of its own, and return its offset."""
        return self.write(after if isinstance(after, VotersRecord) else voters_record(after))

    def snapshot(
        self,
        end_offset: int,
        *,
        epoch: int,
        kraft_version: int = 1,
        named: VoterSet | VotersRecord | None = None,
        last_ms: int | None = None,
    ) -> Self:
        """Put a snapshot beside the log, which names a kraft.version, unless it is 0, and voters.

        Its header has the time of the last record before its end, in ms after ``START_MS``: the offset of that, unless
        said otherwise.
        """
        values: list[ControlValue] = [SnapshotHeaderRecord(START_MS + (end_offset - 1 if last_ms is None else last_ms))]
        values += [KRaftVersionRecord(kraft_version)] if kraft_version else []
        if named is not None:
            values.append(named if isinstance(named, VotersRecord) else voters_record(named))
        path = f"{self.node}/{TOPIC}-0/{end_offset:020}-{epoch:010}.checkpoint"
        task = SurveyTask(
            self.place, path, FileKind.SNAPSHOT, snapshot_id=OffsetAndEpoch(end_offset, epoch), is_raft=True
        )
        controls = tuple(
            ControlSeen(offset, epoch, START_MS, 0, 0, *write_control_record(value))
            for offset, value in enumerate(values)
        )
        extent = LogExtent(0, len(values) + 1, epoch, epoch, START_MS, 2, len(values) + 1)
        self.others.append(FileEvidence(task, extent=extent, controls=controls))
        return self

    def small_file(self, name: str, kind: FileKind | None, **contents: Any) -> Self:
        """Put a small file beside the log."""
        task = SurveyTask(self.place, f"{self.node}/{TOPIC}-0/{name}", kind, is_raft=True)
        self.others.append(FileEvidence(task, contents=contents))
        return self

    def state(self, epoch: int, leader_id: int = -1, vote: int = -1, name: str = "quorum-state", **more: Any) -> Self:
        """Put a quorum-state beside the log, or a copy of one."""
        fields: dict[str, Any] = {
            "data_version": 1,
            "leader_id": leader_id,
            "leader_epoch": epoch,
            "voted_id": vote,
            "voted_directory_id": None,
            "current_voters": [],
            "cluster_id": "",
            "applied_offset": 0,
        }
        return self.small_file(name, FileKind.QUORUM_STATE if name == "quorum-state" else None, **(fields | more))

    def evidence(self, *findings: Finding) -> PartitionEvidence:
        """The evidence of all of it, with some findings inside the segment."""
        task = SurveyTask(self.place, self.path, FileKind.LOG, base_offset=self.start_offset, is_raft=True)
        extent = None
        if self.epochs:
            extent = LogExtent(
                self.start_offset,
                self.end_offset,
                self.epochs[0].epoch,
                self.epochs[-1].epoch,
                self._ms(self.end_offset - 1),
                self.batch_count,
                self.end_offset - self.start_offset,
            )
        log = FileEvidence(
            task,
            findings,
            extent=extent,
            epochs=tuple(self.epochs),
            controls=tuple(self.controls),
            snapshot_batches=tuple(self.snapshot_batches),
        )
        return PartitionEvidence(self.place, tuple(sorted([log, *self.others], key=lambda file: file.task.path)))

    def _ms(self, offset: int) -> int:
        return START_MS + (offset if self.now is None else self.now)

    def _extend(self, count: int, opens_with_leader: bool) -> None:
        start, self.end_offset = self.end_offset, self.end_offset + count
        if self.epochs and self.epochs[-1].epoch == self.epoch:
            last = self._ms(self.end_offset - 1)
            self.epochs[-1] = attrs.evolve(self.epochs[-1], end_offset=self.end_offset, last_timestamp=last)
        else:
            position = self.batch_count * BATCH_BYTES
            times = self._ms(start), opens_with_leader, self._ms(self.end_offset - 1)
            self.epochs.append(EpochSeen(self.epoch, start, position, self.end_offset, *times))
        self.batch_count += 1


def log_directory(node: str, node_id: int, directory_id: uuid.UUID | None, cluster_id: str = "A") -> PartitionEvidence:
    """The meta.properties of a log directory."""
    contents = {
        "version": 1,
        "cluster_id": cluster_id,
        "node_id": node_id,
        "directory_id": None if directory_id is None else uuid_to_text(directory_id),
        "others": [],
    }
    task = SurveyTask(Place(node), f"{node}/meta.properties", FileKind.META_PROPERTIES)
    return PartitionEvidence(Place(node), (FileEvidence(task, contents=contents),))


@st.composite
def histories(draw: st.DrawFn) -> MadeLog:
    """A log that a sound quorum writes, with the snapshots that it makes."""
    now = VoterSet.of(map(voter, draw(st.sets(st.integers(1, 5), min_size=1))))
    log = MadeLog()
    if draw(st.booleans()):
        log.snapshot(0, epoch=0, named=now)
    log.lead(min(now.voter_ids), now.voter_ids, KRaftVersionRecord(1), voters_record(now))
    for _ in range(draw(st.integers(0, 8))):
        match draw(st.sampled_from(["data", "lead", "add", "remove", "update", "snapshot"])):
            case "data":
                log.data(draw(st.integers(1, 5)))
            case "lead":
                log.lead(draw(st.sampled_from(sorted(now.voter_ids))), now.voter_ids)
            case "add":
                now = now.add_voter(voter(draw(st.integers(1, 7)))) or now
                log.change(now)
            case "remove":
                key = draw(st.sampled_from(sorted(now.voter_keys)))
                now = now.remove_voter(key) or now
                log.change(now)
            case "update":
                node = now.voters[draw(st.sampled_from(sorted(now.voter_ids)))]
                updated = attrs.evolve(node, listeners=voter(node.voter_key.id, port=draw(st.integers(1, 9))).listeners)
                now = now.update_voter(updated) or now
                log.change(now)
            case "snapshot":
                log.snapshot(log.end_offset, epoch=log.epoch, named=now)
    return log
