# SPDX-License-Identifier: Apache-2.0
"""The world of a log with snapshots: they are written in steps, frozen, fetched, deleted and cleaned up."""

from collections.abc import Callable
from typing import Final

from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.reader import verify_snapshot
from raftlog.testing.contracts.made_batches import TIMESTAMP, snapshot_bytes
from tests.offset_notation import offset_and_epoch_text
from tests.scenarios.world import CommandError, World, command
from tests.scenarios.worlds.log_world import LOG_FORMS, LogWorld

DAY_MS: Final = 24 * 3600 * 1000
RETENTION: Final = Retention(max_bytes=None, max_age_ms=7 * DAY_MS)
"""A snapshot may be replaced by a later one a week after its last record was written."""


class SnapshotWorld(LogWorld):
    """A log, and at most one snapshot that is being written in steps."""

    _writer: RawSnapshotWriter | None = None

    @command
    def state(self) -> str:
        """Print the log, and the frozen snapshots."""
        return f"{super().state()}\nsnapshots: {' '.join(map(offset_and_epoch_text, self.log.snapshot_ids)) or 'none'}"

    @command
    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Begin a snapshot of the log's own records."""
        return self._begin(self.log.create_snapshot(snapshot_id))

    @command
    def fetch_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Begin a snapshot that the leader sends."""
        return self._begin(self.log.create_snapshot_unchecked(snapshot_id))

    def _begin(self, writer: RawSnapshotWriter | None) -> str:
        self._writer = writer
        return "no snapshot is needed" if writer is None else f"writing {offset_and_epoch_text(writer.snapshot_id)}"

    @property
    def writer(self) -> RawSnapshotWriter:
        """Of the snapshot that is being written."""
        if self._writer is None:
            raise CommandError("no snapshot is being written")
        return self._writer

    @command
    def write(self, part: str = "whole", *, day: int = 0) -> str:
        """Write the whole snapshot, its first or second half, or a copy with one wrong byte.

        Args:
            part: whole, first-half, second-half or damaged.
            day: on which the last record in the snapshot was written.
        """
        data = snapshot_bytes(self.writer.snapshot_id, last_contained_log_timestamp=TIMESTAMP + day * DAY_MS)
        middle = len(data) // 2
        damaged = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        parts = {"whole": data, "first-half": data[:middle], "second-half": data[middle:], "damaged": damaged}
        if part not in parts:
            raise CommandError(f"'{part}' is none of {', '.join(parts)}")
        self.writer.append(parts[part])
        return f"wrote {part}"

    @command
    def freeze(self) -> str:
        """Freeze the snapshot that is being written."""
        self.writer.freeze()
        self.writer.close()
        return self.state()

    @command
    def abandon(self) -> str:
        """Close the snapshot that is being written, without freezing it."""
        self.writer.close()
        return self.state()

    @command
    def snapshot(self, snapshot_id: OffsetAndEpoch, *, day: int = 0) -> str:
        """Create, write and freeze a snapshot of the log's own records; another one may be under way."""
        return self._written_at_once(self.log.create_snapshot(snapshot_id), day)

    @command
    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Fetch, write and freeze a snapshot of the leader; another one may be under way."""
        return self._written_at_once(self.log.create_snapshot_unchecked(snapshot_id), 0)

    def _written_at_once(self, writer: RawSnapshotWriter | None, day: int) -> str:
        if writer is None:
            return "no snapshot is needed"
        under_way, self._writer = self._writer, writer
        try:
            self.write(day=day)
            return self.freeze()
        finally:
            self._writer = under_way

    @command
    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Verify a snapshot, and print what it holds."""
        reader = self.log.read_snapshot(snapshot_id)
        if reader is None:
            return "there is no such snapshot"
        with reader:
            found = verify_snapshot(reader, snapshot_id)
        name = offset_and_epoch_text(found.snapshot_id)
        return f"snapshot {name}: {found.batch_count} batches, {found.record_count} data record"

    @command
    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> str:
        """Delete the records and snapshots that a snapshot replaces."""
        return self._done(self.log.delete_before_snapshot(snapshot_id))

    @command
    def truncate_to_latest_snapshot(self) -> str:
        """Restart the log at the latest snapshot, if that is ahead of it."""
        return self._done(self.log.truncate_to_latest_snapshot())

    @command
    def clean(self, *, day: int) -> str:
        """Delete what retention no longer keeps on a day."""
        return self._done(self.log.clean(TIMESTAMP + day * DAY_MS))

    def _done(self, has_changed: bool) -> str:
        return self.state() if has_changed else "nothing to do"


SNAPSHOT_WORLDS: Final[dict[str, Callable[[], World]]] = {
    name: lambda make=make: SnapshotWorld(make(RETENTION))  # type: ignore[misc]
    for name, make in LOG_FORMS.items()
}
"""A world for each form of log; a scenario prints the same in all of them."""
