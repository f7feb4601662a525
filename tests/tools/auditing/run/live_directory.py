# SPDX-License-Identifier: Apache-2.0
"""A node's directory, what a running node does to it, and an audit between whose steps the node does it."""

import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.storage.reading import directory_listing, file_source
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.storage.reading.file_source import FileSource
from tests.golden_files import GOLDEN
from tests.tools.auditing.made_segments import with_base_offset, with_epoch
from tests.tools.auditing.spoiled_logs import batches_of
from tests.tools.made_logs import TIMESTAMP, batch

NODE: Final = GOLDEN / "data-topics/data/n1"
METADATA: Final = "__cluster_metadata-0"
IDS: Final = {"orders": "7aXvM2WVQ9GBjJzzCzyBIA", "bills": "wnTzhQ0bTkaTfuC0c9uGRw"}
PREALLOCATED: Final = 240
"""Bytes of an index that is being written, as small as the tests are."""

Step = Callable[[], object]


def write_small(path: Path, text: str) -> None:
    """Write a small file as Kafka does: whole, and under its name at once."""
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text)
    beside.replace(path)


def _checkpoint(entries: dict[str, int]) -> str:
    return f"0\n{len(entries)}\n" + "".join(f"{name} 0 {offset}\n" for name, offset in entries.items())


def _batches(start: int, end: int) -> bytes:
    return b"".join(batch(offset, (b"x" * 50,), timestamp=TIMESTAMP + offset) for offset in range(start, end))


class LiveNode:
    """A log directory of a running node: a metadata log, a topic of three segments, and one that will be deleted."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        path.mkdir(parents=True)
        for name in ("meta.properties", "bootstrap.checkpoint"):
            shutil.copy(NODE / name, path)
        shutil.copytree(NODE / METADATA, path / METADATA)
        for topic, starts in (("orders", (0, 10, 20)), ("bills", (0,))):
            folder = path / f"{topic}-0"
            folder.mkdir()
            for start in starts:
                self._segment(folder, start, is_active=start == starts[-1])
            (folder / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
            (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {IDS[topic]}\n")
        self.write_checkpoints({"orders": 30, "bills": 10})

    @property
    def orders(self) -> Path:
        """The directory of the topic with three segments."""
        return self.path / "orders-0"

    def write_checkpoints(self, ends: dict[str, int]) -> None:
        """Write the checkpoints of the log directory."""
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            write_small(self.path / name, _checkpoint(ends))

    def _segment(self, folder: Path, start: int, *, is_active: bool, suffix: str = "") -> None:
        end = start + 10
        stem = folder / f"{start:020}"
        stem.with_name(f"{stem.name}.log{suffix}").write_bytes(_batches(start, end))
        size = len(batch(start, (b"x" * 50,)))
        index = struct.pack(">ii", 5, 5 * size)
        times = struct.pack(">qi", TIMESTAMP + start + 5, 5)
        last = b"" if is_active else struct.pack(">qi", TIMESTAMP + end - 1, 9)
        room = PREALLOCATED if is_active else 0
        stem.with_name(f"{stem.name}.index{suffix}").write_bytes(index + bytes(max(0, room - len(index))))
        stem.with_name(f"{stem.name}.timeindex{suffix}").write_bytes(times + last + bytes(max(0, room - len(times))))

    def _rename(self, start: int, old: str, new: str) -> Iterator[Step]:
        for kind in ("log", "index", "timeindex"):
            path = self.orders / f"{start:020}.{kind}{old}"
            yield lambda path=path, kind=kind: path.rename(self.orders / f"{start:020}.{kind}{new}")  # type: ignore[misc]

    def retention(self) -> Iterator[Step]:
        """The first segment is renamed, and deleted later."""
        yield from self._rename(0, "", ".deleted")
        for kind in ("log", "index", "timeindex"):
            yield (self.orders / f"{0:020}.{kind}.deleted").unlink

    def deletion(self) -> Iterator[Step]:
        """The first segment is gone at once."""
        for kind in ("log", "index", "timeindex"):
            yield (self.orders / f"{0:020}.{kind}").unlink

    def compaction(self) -> Iterator[Step]:
        """The cleaner, which was here before, writes the first two segments as one, which takes their place."""
        (self.path / "cleaner-offset-checkpoint").write_text(_checkpoint({"orders": 0}))
        size = len(batch(0, (b"x" * 50,)))
        contents = {
            "log": _batches(0, 2) + _batches(15, 20),
            "index": struct.pack(">ii", 15, 2 * size),
            "timeindex": struct.pack(">qi", TIMESTAMP + 15, 15) + struct.pack(">qi", TIMESTAMP + 19, 19),
        }
        for kind, data in contents.items():
            path = self.orders / f"{0:020}.{kind}.cleaned"
            yield lambda path=path, data=data: path.write_bytes(data)  # type: ignore[misc]
        yield from self._rename(0, ".cleaned", ".swap")
        yield from self._rename(0, "", ".deleted")
        yield from self._rename(10, "", ".deleted")
        yield from self._rename(0, ".swap", "")

    def trim(self) -> Iterator[Step]:
        """An index that was preallocated is cut to its entries."""
        yield lambda: os.truncate(self.orders / f"{20:020}.index", 8)
        yield lambda: os.truncate(self.orders / f"{20:020}.timeindex", 12)

    def growth(self, end: int = 45) -> Iterator[Step]:
        """Records are appended, and entries of them to the index, over and over; then the checkpoints say so."""
        log, index = self.orders / f"{20:020}.log", self.orders / f"{20:020}.index"
        times = self.orders / f"{20:020}.timeindex"
        size = len(batch(0, (b"x" * 50,)))

        def append(path: Path, data: bytes) -> Step:
            def work() -> None:
                with path.open("ab") as file:
                    file.write(data)

            return work

        def enter(path: Path, number: int, data: bytes) -> Step:
            def work() -> None:
                with path.open("r+b") as file:
                    file.seek(number * len(data))
                    file.write(data)

            return work

        for number, offset in enumerate(range(30, end, 3), start=1):
            yield append(log, _batches(offset, offset + 3))
            yield enter(index, number, struct.pack(">ii", offset - 20, (offset - 20) * size))
            yield enter(times, number, struct.pack(">qi", TIMESTAMP + offset + 2, offset - 18))
        yield lambda: self.write_checkpoints({"orders": end, "bills": 10})

    def roll(self) -> Iterator[Step]:
        """The last segment is closed, and another one is begun and appended to."""
        times = self.orders / f"{20:020}.timeindex"
        yield lambda: times.write_bytes(times.read_bytes()[:12] + struct.pack(">qi", TIMESTAMP + 29, 9))
        yield lambda: os.truncate(self.orders / f"{20:020}.index", 8)
        stem = f"{30:020}"
        yield lambda: (self.orders / f"{stem}.log").write_bytes(b"")
        yield lambda: (self.orders / f"{stem}.index").write_bytes(bytes(PREALLOCATED))
        yield lambda: (self.orders / f"{stem}.timeindex").write_bytes(bytes(PREALLOCATED))
        yield lambda: (self.orders / f"{stem}.log").write_bytes(_batches(30, 33))
        yield lambda: self.write_checkpoints({"orders": 33, "bills": 10})

    def election(self) -> Iterator[Step]:
        """A leader is elected: its epoch is stored, its record appended, and the epoch noted."""
        folder = self.path / METADATA
        log = folder / f"{0:020}.log"
        batches = batches_of(log)
        end = 1 + struct.unpack(">q", batches[-1][:8])[0] + struct.unpack(">i", batches[-1][23:27])[0]
        epoch = struct.unpack(">i", batches[-1][12:16])[0]
        opening = next(each for each in batches if struct.unpack(">i", each[12:16])[0] == epoch)
        state = (folder / "quorum-state").read_text()
        yield lambda: write_small(
            folder / "quorum-state", state.replace(f'"leaderEpoch":{epoch}', f'"leaderEpoch":{epoch + 1}')
        )
        opened = with_epoch(with_base_offset(opening, end), epoch + 1)
        yield lambda: log.write_bytes(b"".join([*batches, opened]))
        lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()
        text = "\n".join([lines[0], str(int(lines[1]) + 1), *lines[2:], f"{epoch + 1} {end}"]) + "\n"
        yield lambda: write_small(folder / "leader-epoch-checkpoint", text)

    def topic_deletion(self) -> Iterator[Step]:
        """A topic's directory is renamed, the checkpoints forget it later, and it goes file by file."""
        gone = self.path / f"bills-0.{'0123456789abcdef' * 2}-delete"
        yield lambda: (self.path / "bills-0").rename(gone)
        yield lambda: self.write_checkpoints({"orders": 30})
        yield lambda: shutil.rmtree(gone)

    def topic_creation(self) -> Iterator[Step]:
        """A topic's directory appears, file by file, and the checkpoints name it."""
        folder = self.path / "new-0"
        yield folder.mkdir
        yield lambda: (folder / f"{0:020}.log").write_bytes(b"")
        yield lambda: (folder / f"{0:020}.index").write_bytes(bytes(PREALLOCATED))
        yield lambda: (folder / f"{0:020}.timeindex").write_bytes(bytes(PREALLOCATED))
        yield lambda: (folder / "partition.metadata").write_text("version: 0\ntopic_id: jKnTzhQ0bTkaTfuC0c9uGg\n")
        yield lambda: (folder / f"{0:020}.log").write_bytes(_batches(0, 5))
        yield lambda: write_small(folder / "leader-epoch-checkpoint", "0\n1\n1 0\n")
        yield lambda: self.write_checkpoints({"orders": 30, "bills": 10, "new": 5})


OPERATIONS: Final = (
    LiveNode.retention,
    LiveNode.deletion,
    LiveNode.compaction,
    LiveNode.trim,
    LiveNode.growth,
    LiveNode.roll,
    LiveNode.election,
    LiveNode.topic_deletion,
    LiveNode.topic_creation,
)


class Moments:
    """The moments at which a node may do something: before each look at a directory or file, and each read.

    Threads that read at the same time wait for each other, so that each step is done when the next one begins.

    Args:
        steps: what the node does.
        first: the moment of the first step; each other is at the moment after.
        at_once: whether all steps are done at the first moment.
    """

    def __init__(self, steps: Sequence[Step] = (), first: int = 0, *, at_once: bool = False) -> None:
        self._steps = list(steps)
        self._first = first
        self._at_once = at_once
        self.turn = threading.RLock()
        self.count = 0

    def pass_one(self) -> None:
        """A moment passes."""
        with self.turn:
            while self._steps and self.count >= self._first:
                self._steps.pop(0)()
                if not self._at_once:
                    break
            self.count += 1

    def end(self) -> None:
        """The rest happens, after all looks."""
        while self._steps:
            self._steps.pop(0)()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let a moment pass before everything that depends on the state of a file system."""
        self._before(monkeypatch, FileSource, "read_at")
        self._before(monkeypatch, file_source, "_open")
        self._before(monkeypatch, DirectoryListing, "exists")
        self._before(monkeypatch, DirectoryListing, "identity")
        self._before(monkeypatch, DirectoryListing, "entries")
        self._before(monkeypatch, directory_listing, "_of_local")
        self._before(monkeypatch, directory_listing._LocalEntry, "status")

    def _before(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def after_a_moment(*given: Any, **named: Any) -> Any:
            self.pass_one()
            return real(*given, **named)

        monkeypatch.setattr(owner, name, after_a_moment)
