# SPDX-License-Identifier: Apache-2.0
"""The directories of a running quorum, and what its nodes do one after the other while they are read."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from tests.golden_files import GOLDEN
from tests.tools.auditing.made_segments import with_base_offset, with_epoch
from tests.tools.auditing.run.live_directory import METADATA, Step, write_small
from tests.tools.auditing.spoiled_logs import batches_of

LEADER: Final = "n3"
BROKER: Final = "z101"
"""An observer, which is listed after all voters."""
NODES: Final = (LEADER, "n4", "n2", BROKER)
"""Records reach them in this order."""
END: Final = 230
"""The end of the leader's log at first; a follower and the broker lack its last record."""
EPOCH: Final = 4
_STATE: Final = f'"leaderEpoch":{EPOCH}'


class LiveQuorum:
    """The log directories of a quorum, below one directory."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        for node in NODES:
            shutil.copytree(GOLDEN / "dynamic-quorum" / "data" / node.replace("z", "n"), path / node)
        for each in path.rglob("*"):
            each.chmod(0o755 if each.is_dir() else 0o644)
        self._batches: Final = batches_of(self._log(LEADER))
        self._sound_size: Final = self._log("n2").stat().st_size

    def _folder(self, node: str) -> Path:
        return self.path / node / METADATA

    def _log(self, node: str) -> Path:
        return max(self._folder(node).glob("*.log"))

    def _append(self, node: str, batch: bytes) -> Step:
        def work() -> None:
            with self._log(node).open("ab") as file:
                file.write(batch)

        return work

    def _record(self, offset: int, epoch: int = EPOCH) -> bytes:
        """A record that changes nothing, as leaders write every half second."""
        return with_epoch(with_base_offset(self._batches[-1], offset), epoch)

    def _opening(self, offset: int) -> bytes:
        """The first record of the next epoch."""
        voters = (Voter(2), Voter(3), Voter(4))
        time_ms = RecordBatch(self._batches[-1]).max_timestamp
        leads = LeaderChangeMessage(3, voters, voters)
        return write_control_batch([leads], base_offset=offset, epoch=EPOCH + 1, timestamp=time_ms)

    def _lacking(self) -> Iterator[Step]:
        """The last record of the leader reaches those that lack it."""
        for node in ("n2", BROKER):
            yield self._append(node, self._batches[-1])

    def fork(self, offset: int) -> Step:
        """A follower gets a record of another leader, where the leader has, or may have, its own."""
        return self._append("n2", self._opening(offset))

    def truncation(self) -> Step:
        """The follower truncates it."""
        return lambda: os.truncate(self._log("n2"), self._sound_size)

    def replication(self) -> Iterator[Step]:
        """Records reach one replica after the other, and the broker makes a snapshot of them."""
        yield from self._lacking()
        for offset in range(END, END + 3):
            for node in NODES:
                yield self._append(node, self._record(offset))
        newest = max(self._folder(LEADER).glob("*.checkpoint"))
        made = self._folder(BROKER) / f"{END + 3:020}-{EPOCH:010}.checkpoint"
        yield lambda: shutil.copy(newest, made.with_suffix(".checkpoint.part"))
        yield lambda: made.with_suffix(".checkpoint.part").rename(made)

    def election(self) -> Iterator[Step]:
        """The leader is elected again: replicas store the epoch, then its record and more reach them."""
        yield from self._lacking()
        for node in NODES:
            state = self._folder(node) / "quorum-state"
            text = state.read_text().replace(_STATE, f'"leaderEpoch":{EPOCH + 1}')
            yield lambda state=state, text=text: write_small(state, text)  # type: ignore[misc]
        opened = self._opening(END)
        for batch in (opened, self._record(END + 1, EPOCH + 1)):
            for node in NODES:
                yield self._append(node, batch)
                if batch is opened:
                    epochs = self._folder(node) / "leader-epoch-checkpoint"
                    lines = epochs.read_text().splitlines()
                    text = "\n".join([lines[0], str(int(lines[1]) + 1), *lines[2:], f"{EPOCH + 1} {END}"]) + "\n"
                    yield lambda epochs=epochs, text=text: write_small(epochs, text)  # type: ignore[misc]

    def cleaning(self) -> Iterator[Step]:
        """The leader deletes the segment and the snapshots below its newest snapshot."""
        folder = self._folder(LEADER)
        old = sorted(folder.glob("*.checkpoint"))[:-1]
        for path in [*old, *(folder / f"{0:020}.{kind}" for kind in ("log", "index", "timeindex"))]:
            yield lambda path=path: path.rename(f"{path}.deleted")  # type: ignore[misc]
        for path in folder.glob("*.deleted"):
            yield path.unlink


QUORUM_OPERATIONS: Final = (LiveQuorum.replication, LiveQuorum.election, LiveQuorum.cleaning)
