# SPDX-License-Identifier: Apache-2.0
"""Small partitions with a past, made without raftlog's tools: leaders, an ISR, followers that truncate; and damage."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from hypothesis import strategies as st

from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import (
    PartitionOffset,
    write_leader_epoch_checkpoint,
    write_offset_checkpoint,
)
from raftlog.records.files.file_names import DirectoryName
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.repair.sources import Source, read_partition_source
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.uuid_text import uuid_to_text
from tests.tools.salvage.made_quorums import Batch, Disk, data_batch, end_of

ORDERS: Final = UUID(int=77)
NAME: Final = DirectoryName("orders", 0)
Step = tuple[str, int, int]


class PartitionPast:
    """What the brokers of a partition have done.

    Attributes:
        logs: of each broker, as batches.
        checkpoints: where each epoch began, for each broker, as ``leader-epoch-checkpoint`` has it.
        isr: the brokers of the ISR.
        committed: the batches below the high watermark.
    """

    def __init__(self, count: int) -> None:
        self.logs: list[list[Batch]] = [[] for _ in range(count)]
        self.checkpoints: list[dict[int, int]] = [{} for _ in range(count)]
        self.leader = 0
        self.epoch = 0
        self.isr = set(range(count))
        self.committed: list[Batch] = []
        self._led = {0: 0}
        self._made = 0
        self.checkpoints[0][0] = 0

    def __repr__(self) -> str:
        logs = ("[" + " ".join(f"{each.start}e{each.epoch}" for each in log) + "]" for log in self.logs)
        isr = sorted(self.isr)
        return (
            f"Past({', '.join(logs)}, leader {self.leader} e{self.epoch}, isr {isr}, {len(self.committed)} committed)"
        )

    def do(self, step: Step) -> None:
        """Take a step: what, which broker, and how much."""
        kind, number, amount = step
        broker = number % len(self.logs)
        match kind:
            case "append":
                self._append(self.leader, self.epoch, 1 + amount)
            case "alone" if broker != self.leader and broker in self._led:
                self._append(broker, self._led[broker], 1 + amount)  # It has not heard of the next leader.
            case "fetch" if broker != self.leader:
                self._fetch(broker, 1 + amount)
            case "shrink" if broker != self.leader:
                self.isr.discard(broker)
            case "expand" if self.logs[broker] == self.logs[self.leader]:
                self.isr.add(broker)
            case "elect" if broker in self.isr:
                self.leader = broker
                self.epoch += 1
                self._led[broker] = self.epoch
                self.checkpoints[broker][self.epoch] = end_of(self.logs[broker])[1]
            case _:
                pass
        self._commit()

    def belief(self) -> Belief:
        """What the metadata say."""
        brokers = tuple(range(len(self.logs)))
        isr = tuple(sorted(self.isr))
        return Belief("c", "/m", 9, 9, uuid_to_text(ORDERS), self.leader, self.epoch, brokers, isr, (), False)

    def _append(self, broker: int, epoch: int, count: int) -> None:
        self._made += 1
        start = end_of(self.logs[broker])[1]
        self.logs[broker].append(data_batch(start, epoch, count, b"record %d " % self._made))
        self.checkpoints[broker].setdefault(epoch, start)

    def _fetch(self, broker: int, amount: int) -> None:
        leaders, mine = self.logs[self.leader], self.logs[broker]
        same = _same(leaders, mine)
        self.logs[broker] = leaders[: same + amount]
        end = end_of(leaders[:same])[1]
        entries = {epoch: start for epoch, start in self.checkpoints[broker].items() if start < end}
        for batch in leaders[same : same + amount]:
            entries.setdefault(batch.epoch, batch.start)
        self.checkpoints[broker] = entries
        self._led.pop(broker, None)

    def _commit(self) -> None:
        leaders = self.logs[self.leader]
        count = min(_same(leaders, self.logs[broker]) for broker in self.isr)
        self.committed = max(self.committed, leaders[:count], key=len)


def _same(one: Sequence[Batch], other: Sequence[Batch]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "append", "fetch", "fetch", "fetch", "shrink", "expand", "elect", "alone"]
        ),
        st.integers(0, 2),
        st.integers(0, 4),
    ),
    min_size=3,
    max_size=30,
)


@st.composite
def partition_pasts(draw: st.DrawFn) -> PartitionPast:
    """A past of one to three brokers, with a record."""
    past = PartitionPast(draw(st.sampled_from([1, 2, 3, 3, 3])))
    past.do(("append", 0, 0))
    for step in draw(STEPS):
        past.do(step)
    return past


class PartitionDisk(Disk):
    """The files of one broker, and which of its batches are as they were."""

    def __init__(self, path: Path, log: Sequence[Batch], entries: dict[int, int], rolls: Sequence[int] = ()) -> None:
        super().__init__(path, log, rolls)
        self._entries = entries

    @property
    def checkpoint(self) -> list[EpochEntry]:
        """The entries of leader-epoch-checkpoint."""
        return [EpochEntry(epoch, start) for epoch, start in sorted(self._entries.items())]

    def source(
        self,
        node_id: int | None,
        topic_id: UUID | None = ORDERS,
        *,
        directory_id: UUID | None = None,
        high_watermark: int | None = None,
        log_start: int | None = None,
        cleaned_to: int | None = None,
    ) -> Source:
        """Write the files."""
        directory = self.path / str(NAME)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        for name, data in self.contents.items():
            (directory / name).write_bytes(data)
        if self.has_checkpoint:
            (directory / "leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint(self.checkpoint))
        if topic_id is not None:
            (directory / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, topic_id)))
        if node_id is not None:
            own = "" if directory_id is None else f"directory.id={uuid_to_text(directory_id)}\n"
            (self.path / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node_id}\n{own}")
        offsets = {"replication": high_watermark, "log-start": log_start, "cleaner": cleaned_to}
        for name, offset in offsets.items():
            path = self.path / f"{name}-offset-checkpoint"
            path.unlink(missing_ok=True)
            if offset is not None:
                path.write_bytes(write_offset_checkpoint([PartitionOffset(NAME.topic, NAME.partition, offset)]))
        return read_partition_source(str(self.path), str(NAME))
