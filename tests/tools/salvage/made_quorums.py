# SPDX-License-Identifier: Apache-2.0
"""Small quorums with a past, made without raftlog's core: their logs as lists of batches, and damage to their files."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
from hypothesis import strategies as st

from raftlog.offsets import EpochEntry
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.checksum import crc32c
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from raftlog.tools.salvage.longest_log import ReplicaFiles
from raftlog.tools.salvage.runs import NamedSegment

TIMESTAMP: Final = 1_700_000_000_000
LOG: Final = "__cluster_metadata-0"


@attrs.frozen
class Batch:
    """A batch of a made log."""

    start: int
    end: int
    epoch: int
    is_leader_change: bool
    data: bytes


def leader_change(start: int, epoch: int, leader: int, voters: Sequence[int] = (0, 1, 2)) -> Batch:
    """The batch that begins an epoch."""
    named = tuple(Voter(each) for each in voters)
    message = LeaderChangeMessage(leader, named, named)
    data = write_control_batch([message], base_offset=start, epoch=epoch, timestamp=TIMESTAMP + start)
    return Batch(start, start + 1, epoch, True, bytes(data))


def data_batch(start: int, epoch: int, count: int, text: bytes) -> Batch:
    """A batch of data records."""
    builder = RecordBatchBuilder(start, partition_leader_epoch=epoch)
    for index in range(count):
        builder.append(TIMESTAMP + start + index, None, text + b"%d" % index)
    return Batch(start, start + count, epoch, False, builder.build())


class Past:
    """What a quorum has done.

    Attributes:
        logs: of each replica, as batches.
        committed: how many batches of the leader's log are committed, at most.
    """

    def __init__(self, count: int) -> None:
        self.logs: list[list[Batch]] = [[] for _ in range(count)]
        self.leader: int | None = None
        self.epoch = 0
        self.committed: list[Batch] = []
        self._led: dict[int, int] = {}
        self._made = 0

    def do(self, step: tuple[str, int, int]) -> None:
        """Take a step: what, which replica, and how much."""
        kind, number, amount = step
        replica = number % len(self.logs)
        match kind:
            case "elect":
                self._elect(replica, 1 + amount % 3)
            case "append" if self.leader is not None:
                self._append(self.leader, self.epoch, 1 + amount)
            case "alone" if self._led.get(replica, -1) == end_of(self.logs[replica])[0] >= 0:
                self._append(replica, self._led[replica], 1 + amount)  # It has not heard of later epochs.
            case "sync" if self.leader not in {None, replica}:
                self._sync(replica, amount + 1)
            case _:
                pass

    def __repr__(self) -> str:
        logs = ("[" + " ".join(f"{each.start}e{each.epoch}" for each in log) + "]" for log in self.logs)
        return f"Past({', '.join(logs)}, {len(self.committed)} committed)"

    @property
    def true_log(self) -> list[Batch]:
        """The most up-to-date log."""
        return max(self.logs, key=end_of)

    def _elect(self, replica: int, step: int) -> None:
        votes = sum(end_of(log) <= end_of(self.logs[replica]) for log in self.logs)
        if votes <= len(self.logs) // 2:
            return
        self.epoch += step
        self.leader = replica
        self._led[replica] = self.epoch
        self.logs[replica].append(leader_change(end_of(self.logs[replica])[1], self.epoch, replica))

    def _append(self, replica: int, epoch: int, count: int) -> None:
        self._made += 1
        text = b"record %d " % self._made
        self.logs[replica].append(data_batch(end_of(self.logs[replica])[1], epoch, count, text))

    def _sync(self, replica: int, amount: int) -> None:
        assert self.leader is not None
        leaders, mine = self.logs[self.leader], self.logs[replica]
        same = 0
        while same < min(len(leaders), len(mine)) and leaders[same] == mine[same]:
            same += 1
        self.logs[replica] = leaders[: same + amount]
        for count in range(len(leaders), 0, -1):
            has = sum(log[:count] == leaders[:count] for log in self.logs)
            if leaders[count - 1].epoch == self.epoch and has > len(self.logs) // 2:
                self.committed = max(self.committed, leaders[:count], key=len)
                return


def end_of(log: Sequence[Batch]) -> tuple[int, int]:
    """Epoch and end offset of a log."""
    return (log[-1].epoch, log[-1].end) if log else (-1, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["elect", "append", "append", "append", "sync", "sync", "sync", "alone"]),
        st.integers(0, 4),
        st.integers(0, 4),
    ),
    min_size=3,
    max_size=30,
)


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """A past of one to five replicas, in which a leader was elected."""
    past = Past(draw(st.sampled_from([1, 2, 3, 3, 3, 4, 5])))
    past.do(("elect", 0, 0))
    for step in draw(STEPS):
        past.do(step)
    return past


class Disk:
    """The files of one replica, and which of its batches are as they were.

    Args:
        path: the log directory to make.
        log: its batches.
        rolls: batches that begin a segment, by number.

    Attributes:
        intact: numbers of batches that are as they were.
        path: the log directory.
    """

    def __init__(self, path: Path, log: Sequence[Batch], rolls: Sequence[int] = ()) -> None:
        shutil.rmtree(path, ignore_errors=True)
        self.path = path
        self.log = log
        self.intact = set(range(len(log)))
        self.has_checkpoint = True
        self.files: dict[str, list[int]] = {}
        (path / LOG).mkdir(parents=True)
        for number, batch in enumerate(log):
            if not self.files or number in rolls:
                self.files[f"{batch.start:020}.log"] = []
            self.files[[*self.files][-1]].append(number)
        self.contents = {name: bytearray(b"".join(log[i].data for i in own)) for name, own in self.files.items()}

    def place(self, number: int) -> tuple[str, int]:
        """The file and the position of a batch."""
        for name, numbers in self.files.items():
            if number in numbers:
                return name, sum(len(self.log[each].data) for each in numbers if each < number)
        raise AssertionError(number)

    def damage(self, kind: str, number: int, amount: int) -> None:
        """Damage a batch: its bytes, its base offset, its epoch; or lose it, its whole file, or all from it on."""
        number %= len(self.log)
        name, position = self.place(number)
        size = len(self.log[number].data)
        if name not in self.contents or position + size > len(self.contents[name]):
            return
        data = self.contents[name]
        match kind:
            case "byte" | "crc" | "length":
                start, count = {"byte": (21, size - 21), "crc": (17, 4), "length": (8, 4)}[kind]
                data[position + start + amount % count] ^= 1 << amount % 5
            case "offset":
                data[position + 7 - amount % 2] ^= 1 << amount % 5
            case "epoch":
                data[position + 15] ^= 1 << amount % 5
            case "zeros":
                data[position : position + size] = bytes(size)
            case "tail":
                del data[position + amount % size :]
                self.intact -= {each for each in self.files[name] if each >= number}
            case "stale":  # An older block of the same size or less in its place.
                older = self.log[amount % (number + 1)].data[:size]
                data[position : position + len(older)] = older
                if older == self.log[number].data:
                    return
            case "rewritten":  # Other bytes, and the CRC holds: its base timestamp is wrong.
                data[position + 34] ^= 1 << amount % 5
                data[position + 17 : position + 21] = crc32c(data[position + 21 : position + size]).to_bytes(4, "big")
            case "file":
                del self.contents[name]
                self.intact -= set(self.files[name])
        self.intact.discard(number)

    def written(self, node_id: int | None = None) -> ReplicaFiles:
        """Write the files."""
        for name, data in self.contents.items():
            (self.path / LOG / name).write_bytes(data)
        segments = tuple(NamedSegment(name, int(name[:20])) for name in sorted(self.contents))
        checkpoint = tuple(self.checkpoint) if self.has_checkpoint else ()
        state_epoch = self.log[-1].epoch if self.log else None
        has_losses = len(self.intact) < len(self.log)
        return ReplicaFiles(str(self.path / LOG), segments, checkpoint, node_id, state_epoch, has_losses)

    @property
    def checkpoint(self) -> list[EpochEntry]:
        """The entries of leader-epoch-checkpoint."""
        return [EpochEntry(batch.epoch, batch.start) for batch in self.log if batch.is_leader_change]


DAMAGE = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["byte", "crc", "length", "offset", "epoch", "zeros", "tail", "stale", "file"]),
    st.integers(0, 40),
    st.integers(0, 1000),
)
