# SPDX-License-Identifier: Apache-2.0
"""A real mirror with a fault of each kind that the page has a section for."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from raftlog.records.batches.record import Record, RecordView
from tests.tools.made_logs import flip
from tests.tools.mirrors.changed_mirror import Entry, copied, rewrite

HOSTILE = "<script>document.title='owned'</script>"
"""The name of a log directory."""


def faulty_mirror(directory: Path) -> tuple[str, ...]:
    """Damage a copy of a real mirror, and return the arguments of ``verify-mirror`` for it.

    A record is changed, one is lost, the end is not mirrored; bytes are damaged; heartbeats are missing; a replica of
    the source ends early, in a directory with a name that is markup.
    """
    source, target = copied(directory)

    def faulty(records: list[RecordView]) -> Iterator[Entry]:
        for offset, each in enumerate([*records[:150], *records[151:310]]):
            other = Record(offset, each.timestamp, b"other", each.value)
            yield offset, other if offset == 40 else each

    rewrite(target / "A.orders-0", faulty)
    rewrite(target / "heartbeats-0", lambda records: enumerate([*records[:10], *records[15:30], *records[36:]]))
    (log,) = (target / "A.orders-1").glob("*.log")
    flip(log, 300)
    other = directory / HOSTILE.replace("/", "")
    shutil.copytree(source / "heartbeats-0", other / "heartbeats-0")
    shutil.copy(source / "meta.properties", other)
    rewrite(other / "heartbeats-0", lambda records: enumerate(records[:20]), producer_id=-1)
    rewrite(source / "heartbeats-0", enumerate, producer_id=-1)
    return ("--source", str(source), "--source", str(other), "--target", str(target))
