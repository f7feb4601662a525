# SPDX-License-Identifier: Apache-2.0
"""An image that reports what each record changes."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import attrs

from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch, OpenTransaction
from raftlog.tools.image.replay import Replay
from raftlog.tools.image.tables import Key, watched


class Change(NamedTuple):
    """A change of one entry.

    Attributes:
        offset: of the record that made it.
        timestamp: of the batch with which it had effect, in ms: in a transaction, that is the one that ends it.
        record_index: of that record in its batch, from 0.
        record: the name of its type's schema.
        key: of the entry: the name of its table, and its keys there.
        before, after: the entry; None if there is none.
    """

    offset: int
    timestamp: int
    record_index: int
    record: str
    key: Key
    before: Any
    after: Any


@attrs.define
class WatchedImage(ClusterImage):
    """An image that reports each change as it happens; make one with ``watched_image``."""

    report: Callable[[Change], None] = attrs.field(kw_only=True, eq=False, repr=False)
    _offset: int = attrs.field(default=-1, init=False, eq=False)
    _record_index: int = attrs.field(default=-1, init=False, eq=False)
    _at: int = attrs.field(default=-1, init=False, eq=False)
    _record: str = attrs.field(default="", init=False, eq=False)

    def apply(self, batch: MetadataBatch) -> None:
        """Advance the image by the next batch, and report what it changes."""
        self._at = batch.timestamp
        super().apply(batch)

    def _replay(self, offset: int, index: int, name: str, replay: Replay, message: Mapping[str, Any]) -> None:
        self._offset, self._record_index, self._record = offset, index, name
        super()._replay(offset, index, name, replay, message)

    def noted(self, key: Key, before: Any, after: Any) -> None:
        """Report a change that the record being replayed makes."""
        self.report(Change(self._offset, self._at, self._record_index, self._record, key, before, after))


def watched_image(image: ClusterImage, report: Callable[[Change], None]) -> WatchedImage:
    """Return an image in the same state, which reports each change from there on.

    Args:
        image: is not changed by advancing the result.
        report: is called with each change, in order.
    """
    found = WatchedImage(
        end_offset=image.end_offset,
        epoch=image.epoch,
        timestamp=image.timestamp,
        read_to=image.read_to,
        refusals=list(image.refusals),
        report=report,
    )
    if image.transaction is not None:
        open_ = image.transaction
        found.transaction = OpenTransaction(open_.offset, open_.name, list(open_.pending))
    found.tables = watched(image.tables, found.noted)
    return found
