# SPDX-License-Identifier: Apache-2.0
"""Calls back after a snapshot was frozen.

Source: NotifyingRawSnapshotWriter.
"""

from collections.abc import Callable, Sequence

from raftlog.disk_work import DiskStep, DiskWork
from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter


def no_steps() -> Sequence[DiskStep]:
    """Add nothing to a freeze."""
    return ()


class NotifyingRawSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that calls back once, after a freeze that succeeded.

    Args:
        writer: what writes the snapshot.
        on_frozen: called with the snapshot's id. ``freeze`` passes on its exceptions; the snapshot is frozen all the
            same.
        on_freeze: called before a freeze; returns steps that the disk must do after it. ``freeze`` passes on its
            exceptions; nothing is frozen then.
    """

    def __init__(
        self,
        writer: RawSnapshotWriter,
        on_frozen: Callable[[OffsetAndEpoch], None],
        *,
        on_freeze: Callable[[], Sequence[DiskStep]] = no_steps,
    ) -> None:
        super().__init__(writer)
        self._on_frozen = on_frozen
        self._on_freeze = on_freeze

    def prepare_freeze(self) -> DiskWork[None]:
        """Prepare to make the snapshot durable under its name, and to call back; see ``RawSnapshotWriter``."""
        steps = self._on_freeze()
        work = super().prepare_freeze()  # A second one raises.
        return work.add(*steps).then(lambda _: self._on_frozen(self.snapshot_id))
