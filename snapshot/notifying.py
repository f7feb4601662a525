# SPDX-License-Identifier: Apache-2.0
"""Telling others of a snapshot once it is one.

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
        on_frozen: is given the snapshot's id. What it raises, ``freeze`` raises; the snapshot is frozen all the same.
        on_freeze: is called before a freeze, and returns what the disk must do after it. What it raises, ``freeze``
            raises, and nothing was frozen.
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
