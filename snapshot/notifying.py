# SPDX-License-Identifier: Apache-2.0
"""Telling others of a snapshot once it is one.

Source: NotifyingRawSnapshotWriter.
"""

from collections.abc import Callable

from raftlog.offsets import OffsetAndEpoch
from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.raw import RawSnapshotWriter


class NotifyingRawSnapshotWriter(ForwardingRawSnapshotWriter):
    """A ``RawSnapshotWriter`` that calls back once, after a freeze that succeeded.

    Args:
        writer: what writes the snapshot.
        on_frozen: is given the snapshot's id. What it raises, ``freeze`` raises; the snapshot is frozen all the same.
        check_freeze: is called before a freeze. What it raises, ``freeze`` raises, and nothing was frozen.
    """

    def __init__(
        self,
        writer: RawSnapshotWriter,
        on_frozen: Callable[[OffsetAndEpoch], None],
        *,
        check_freeze: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(writer)
        self._on_frozen = on_frozen
        self._check_freeze = check_freeze

    def freeze(self) -> None:
        """Make the snapshot durable under its name, and call back; see ``RawSnapshotWriter``."""
        self._check_freeze()
        super().freeze()  # A second one raises.
        self._on_frozen(self.snapshot_id)
