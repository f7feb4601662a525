# SPDX-License-Identifier: Apache-2.0
"""The world of an application: replica 1, as in the world of elections, with listeners and reads.

Listeners and reads are numbered in the order in which they began: 1, 2 and so on.
"""

from collections.abc import Callable
from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.seam.effects import (
    DeliverBatches,
    DeliverBootstrap,
    Delivering,
    DeliverSnapshot,
    EndShutdown,
    NotifyShutdown,
    ReadOutcome,
    ReadPolicy,
)
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.voters.kraft_version import KRaftVersion
from tests.scenarios.world import CommandError, World, command
from tests.scenarios.worlds.election_world import ElectionWorld


class ApplicationWorld(ElectionWorld):
    """LocalReplica 1 and an application on it."""

    def __init__(self) -> None:
        self._listeners: list[int] = []
        self._reading: dict[int, Delivering] = {}
        self._reads: list[int] = []

    @command
    def restart(self) -> str:
        """Start again with what is durable. There are no listeners then."""
        self._listeners, self._reading, self._reads = [], {}, []
        return super().restart()

    @command
    def register(self) -> str:
        """Register a listener."""
        self._listeners.append(self._replica.raft.register_listener())
        self._replica.settle()
        return self._what_happened()

    @command
    def unregister(self, listener: int) -> str:
        """Unregister a listener."""
        self._replica.raft.unregister_listener(self._listeners[listener - 1])
        self._replica.settle()
        return self._what_happened()

    @command
    def has_read(self, listener: int, next_offset: int | None = None, taken: bool = True) -> str:
        """A listener closes what it reads: it has taken all of it, or the records before an offset, or nothing."""
        if listener not in self._reading:
            raise CommandError(f"listener {listener} reads nothing")
        delivery = self._reading.pop(listener)
        end = delivery.end_offset if isinstance(delivery, DeliverBatches) else delivery.snapshot_id.offset
        reached = end if next_offset is None else next_offset
        self._replica.close(delivery.number, reached if taken else None)
        return self._what_happened()

    @command
    def read(self, timeout: int | None = None, lease: bool = False) -> str:
        """Begin a linearizable read."""
        policy = ReadPolicy.LEASE if lease else ReadPolicy.MAJORITY
        self._reads.append(self._replica.raft.read_barrier(policy, timeout_ms=timeout))
        self._replica.settle()
        return self._what_happened()

    @command
    def shutdown(self, timeout: int) -> str:
        """Shut down."""
        self._replica.raft.shutdown(timeout)
        self._replica.settle()
        return self._what_happened()

    @command
    def append(self, values: int = 1) -> str:
        """Append records, which are written after the linger, 25 ms."""
        self._replica.append(*[b"v"] * values)
        return self._what_happened()

    @command
    def snapshot(self, snapshot_id: OffsetAndEpoch, delete: bool = False) -> str:
        """Make a snapshot of committed records, and delete them or not. The core knows of it after its next write."""
        log = self._replica.log
        raw = log.create_snapshot(snapshot_id)
        if raw is None:
            raise CommandError("there is one, or the log has begun after it")
        voters = self._replica.machine.last_voter_set
        with RecordsSnapshotWriter(
            raw,
            0,
            last_contained_log_timestamp=0,
            kraft_version=KRaftVersion.KRAFT_VERSION_1,
            voter_set=voters,
        ) as writer:
            writer.freeze(0)
        if delete:
            log.delete_before_snapshot(snapshot_id)
        return f"log {log.start_offset}..{log.end_offset.offset}, snapshots {len(log.snapshot_ids)}"

    def _what_happened(self) -> str:
        replica = self._replica
        lines = [super()._what_happened()]
        for each in replica.deliveries:
            self._reading[self._place(each.listener)] = each
        lines += [f"listener {self._place(each.listener)} reads {_delivery_text(each)}" for each in replica.deliveries]
        for change in replica.leader_changes:
            leader = "no leader" if change.leader_id is None else f"leader {change.leader_id}"
            lines.append(f"listener {self._place(change.listener)} is told: epoch {change.epoch}, {leader}")
        for read in replica.reads:
            up_to = f" up to {read.offset}" if read.outcome is ReadOutcome.CONFIRMED else ""
            lines.append(f"read {self._reads.index(read.number) + 1}: {read.outcome.name}{up_to}")
        for ended in replica.ended:
            lines.append(f"append up to offset {ended.last_offset}: {ended.outcome.name}")
        for stop in replica.shutdowns:
            match stop:
                case NotifyShutdown():
                    lines.append(f"listener {self._place(stop.listener)} is told: shutting down")
                case EndShutdown():
                    lines.append("stopped, without a successor" if stop.has_timed_out else "stopped")
        replica.shutdowns.clear()
        replica.reads.clear()
        replica.ended.clear()
        replica.deliveries.clear()
        replica.leader_changes.clear()
        return "\n".join(lines)

    def _place(self, number: int) -> int:
        return self._listeners.index(number) + 1


def _delivery_text(delivery: Delivering) -> str:
    match delivery:
        case DeliverBatches():
            return f"offsets {delivery.offset}..{delivery.end_offset - 1}"
        case DeliverSnapshot():
            return f"snapshot {delivery.snapshot_id.offset}@{delivery.snapshot_id.epoch}"
        case DeliverBootstrap():
            return "the bootstrap snapshot"


APPLICATION_WORLDS: Final[dict[str, Callable[[], World]]] = {"core": ApplicationWorld}
