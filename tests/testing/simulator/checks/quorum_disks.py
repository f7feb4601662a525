# SPDX-License-Identifier: Apache-2.0
"""A witness and the ledgers of a few replicas, with few words: batches of one record, by offset and epoch."""

from collections.abc import Iterable

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.disk_witness import DiskWitness
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.checks.replay import Replay, VotersAt
from tests.quorum.messages import records_at
from tests.quorum.single_replica import replica_key


class QuorumDisks:
    """The disks of voters 1 to ``count``.

    Attributes:
        committed: the batches that were committed, in that order.
        witness: of all disks.
        ledgers: by replica id.
        replay: of what is committed.
    """

    def __init__(self, count: int) -> None:
        self.committed: list[StoredBatch] = []
        keys = frozenset(map(replica_key, range(1, count + 1)))
        self.replay = Replay(VotersAt(-1, 1, keys))
        self.witness = DiskWitness(CommittedHistory(self._committed), self.replay)
        self.ledgers: dict[int, Ledger] = {key.id: self.witness.add(key, keys) for key in sorted(keys)}

    def _committed(self, batch: StoredBatch, content: RecordBatch) -> None:
        self.committed.append(batch)
        self.replay.committed(batch, content)

    @property
    def committed_end(self) -> int:
        """The end of what is committed, exclusive."""
        return self.witness.history.end_offset

    def lead(self, replica: int, epoch: int) -> None:
        """Let a replica begin an epoch."""
        self.enter(replica, epoch)
        self.witness.entered_epoch(self.ledgers[replica], epoch)

    def enter(self, replica: int, epoch: int) -> None:
        """Give a replica's disk an election state of an epoch."""
        self.witness.asked_to_store(self.ledgers[replica], QuorumStateData(1, leader_epoch=epoch))

    def append(self, replicas: Iterable[int], epoch: int, count: int = 1) -> None:
        """Append batches to some logs."""
        for replica in replicas:
            ledger = self.ledgers[replica]
            for _ in range(count):
                batch = RecordBatch(records_at(ledger.end_offset, epoch, 1))
                self.witness.appended(ledger, [batch], is_leader=False)

    def sync(self, *replicas: int) -> None:
        """Sync some logs."""
        for replica in replicas:
            self.witness.synced(self.ledgers[replica], self.ledgers[replica].end_offset)
