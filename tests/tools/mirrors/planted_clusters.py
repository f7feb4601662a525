# SPDX-License-Identifier: Apache-2.0
"""Two clusters with a real mirror, and beside it copies of it, each with a fault of its own, with right CRCs."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.mirrors.mirror_records import (
    MirrorRecordType,
    OffsetSync,
    OffsetSyncKey,
    read_mirror_record,
    write_mirror_record,
)
from raftlog.tools.mirrors import verify_mirror
from raftlog.tools.mirrors.reading.log_reading import LogSummer
from tests.tools.console import Outcome, run
from tests.tools.made_logs import flip
from tests.tools.mirrors.changed_mirror import SYNCS, Entry, copied, rewrite

AT: Final = 150
"""The offset of the fault, which no sync names."""
_END: Final = 320

Records = Sequence[RecordView]


@attrs.frozen
class Fault:
    """A fault in a copy of a mirror of 320 records.

    Attributes:
        rules: what must be found of it, above harmless.
        target: the entries of the target.
        shift: what is added to the downstream offset of syncs after the fault.
        keeps: the only sync that is left, by its downstream offset; None for all.
        flipped: the byte of the target's log that is damaged, if any.
    """

    rules: tuple[str, ...]
    target: Callable[[Records], Iterable[Entry]] = enumerate
    shift: int = 0
    keeps: int | None = None
    flipped: int | None = None

    def sync(self, sync: OffsetSync, topic: str) -> OffsetSync | None:
        """Return a sync of the copy, of one of the mirror."""
        downstream = sync.downstream_offset
        if self.keeps not in (None, downstream):
            return None
        moved = downstream + self.shift * (downstream > AT)
        return OffsetSync(OffsetSyncKey(topic, sync.key.partition), sync.upstream_offset, moved)


def _other(record: RecordView) -> Record:
    return Record(0, record.timestamp, record.key, b"other")


def _lost(records: Records) -> Iterable[Entry]:
    return enumerate([*records[:AT], *records[AT + 1 :]])


def _changed(records: Records) -> Iterable[Entry]:
    return enumerate([*records[:AT], _other(records[AT]), *records[AT + 1 :]])


FAULTS: Final = {
    "lost": Fault(("mirror.lost",), _lost, -1),
    "lost-since": Fault(("mirror.lost",), _lost),
    "hole": Fault(("mirror.hole",), lambda records: (each for each in enumerate(records) if each[0] != AT)),
    "changed": Fault(("mirror.changed",), _changed),
    "reordered": Fault(
        ("mirror.reordered",),
        lambda records: enumerate([*records[:AT], records[AT + 1], records[AT], *records[AT + 2 :]]),
    ),
    "foreign": Fault(
        ("mirror.foreign",), lambda records: enumerate([*records[:AT], _other(records[AT]), *records[AT:]]), 1
    ),
    "copy": Fault(("mirror.duplicate",), lambda records: enumerate([*records[:AT], records[0], *records[AT:]]), 1),
    "written-to": Fault(("mirror.written-to",), lambda records: enumerate([*records, *map(_other, records[:7])])),
    "damaged": Fault((), flipped=9_000),
    "one-sync": Fault((), keeps=198),
    "one-sync-lost": Fault(("mirror.lost",), _lost, -1, 198),
    "one-sync-changed": Fault(("mirror.changed",), _changed, 0, 99),
}
"""By the topic that has it."""


def plant(directory: Path) -> tuple[Path, Path]:
    """Copy both clusters, plant all faults, and return the log directories of the source and of the target."""
    source, target = copied(directory)
    for name, fault in FAULTS.items():
        shutil.copytree(source / "orders-0", source / f"{name}-0")
        mirror = target / f"A.{name}-0"
        shutil.copytree(target / "A.orders-0", mirror)
        rewrite(mirror, fault.target)
        if fault.flipped is not None:
            flip(next(mirror.glob("*.log")), fault.flipped)
    rewrite(source / SYNCS, _with_copies)
    return source, target


def _with_copies(records: Records) -> Iterator[Entry]:
    """Yield the syncs, and those of the copies after them."""
    yield from enumerate(records)
    offset = len(records)
    for name, fault in FAULTS.items():
        for each in records:
            sync = read_mirror_record(MirrorRecordType.OFFSET_SYNC, each.key, each.value)
            assert isinstance(sync, OffsetSync)
            found = fault.sync(sync, name) if (sync.key.topic, sync.key.partition) == ("orders", 0) else None
            if found is not None:
                yield offset, Record(offset, each.timestamp, *write_mirror_record(found))
                offset += 1


def verified(source: Path, target: Path, *options: str) -> Outcome:
    """What the verb prints of two clusters."""
    return run("verify-mirror", "--source", source, "--target", target, *options)


def rules_by_topic(outcome: Outcome) -> dict[str, list[str]]:
    """The rules of all that is above harmless, by topic of the source."""
    found: dict[str, list[str]] = {}
    for line in outcome.of_kind("finding"):
        if line["severity"] != "harmless":
            found.setdefault(line["source"]["topic"], []).append(line["rule"])
    return found


def read_by(patch: pytest.MonkeyPatch, summer: LogSummer) -> None:
    """Let the verb read logs with a summer, whatever its options say."""

    @contextmanager
    def log_summer(*_: object) -> Iterator[LogSummer]:
        yield summer

    patch.setattr(verify_mirror, "log_summer", log_summer)
