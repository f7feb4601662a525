# SPDX-License-Identifier: Apache-2.0
"""Batch headers as a table: a few facts about all batches, and numpy columns that are created on first use."""

import functools
from typing import TYPE_CHECKING, Any, Final, cast

from raftlog.records.batches.batch import CONTROL_FLAG, DELETE_HORIZON_FLAG, TRANSACTIONAL_FLAG
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.columns.columns import BatchColumns
from raftlog.records.kernel_choice import kernel

if TYPE_CHECKING:
    import numpy as np

    Longs = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_CODEC: Final = 7
OFFSETS_CANNOT_BE: Final = 1
OFFSETS_GO_BACK: Final = 2
OFFSETS_HAVE_GAPS: Final = 4
COUNTS_DIFFER: Final = 8
EPOCHS_GO_BACK: Final = 16
TIMESTAMPS_GO_BACK: Final = 32
"""Flags of problems in a batch, or between two consecutive batches.

``OFFSETS_CANNOT_BE``: an offset is negative or exceeds 64 bits. ``OFFSETS_HAVE_GAPS`` is also set if offsets go back.
``COUNTS_DIFFER``: a batch does not have one record per offset.
"""


class BatchTable:
    """Columns over adjacent batches with valid CRCs: one row per batch, 64-bit integers.

    Args:
        batches: the headers.

    Attributes:
        all_attributes: the attribute bits that are set in at least one batch.
        may_be_compressed: whether a batch names a codec.
        have_producers: whether a batch has a producer id, a producer epoch or a base sequence.
        least_epoch: the least partition leader epoch.
        least_timestamp: the least of base and max timestamps, in ms.
        greatest_timestamp: the greatest max timestamp, in ms.
        total_records: total number of records according to the headers, without negative counts.
        disorder: the flags ``OFFSETS_CANNOT_BE`` to ``TIMESTAMPS_GO_BACK`` that apply, combined.
    """

    def __init__(self, batches: BatchColumns) -> None:
        self._batches = batches
        (
            self.all_attributes,
            shared_producers,
            self.least_epoch,
            self.least_timestamp,
            self.greatest_timestamp,
            self.total_records,
            self.disorder,
        ) = kernel.header_facts(self.run.data, self.run.positions)
        self.have_producers = shared_producers != -1
        self.may_be_compressed = self.all_attributes & _CODEC != 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def shows_compaction(self) -> bool:
        """Whether a batch shows signs of compaction: its records are not one per offset, or it has a delete horizon."""
        return bool(self.disorder & COUNTS_DIFFER or self.all_attributes & DELETE_HORIZON_FLAG)

    @property
    def run(self) -> BatchRun:
        """The batches, for access to single ones."""
        return self._batches.run

    @property
    def least_base_offset(self) -> int:
        """The least base offset."""
        if self.disorder & (OFFSETS_CANNOT_BE | OFFSETS_GO_BACK):
            return int(self.base_offsets.min())
        first_offset: int = self.run.batch(0).base_offset
        return first_offset

    def rows(self, rows: "Longs") -> "BatchTable":
        """Return a table of the given rows; reading a few batches this way avoids creating columns for all."""
        import numpy as np

        run = self.run
        positions = np.frombuffer(run.positions, dtype=np.int64)[rows]
        sizes = np.frombuffer(run.sizes, dtype=np.int32)[rows]
        return BatchTable(BatchColumns(BatchRun(run.data, run.position, positions.data, sizes.data)))

    @functools.cached_property
    def positions(self) -> "Longs":
        """Byte positions in the file."""
        import numpy as np

        return np.frombuffer(self.run.positions, dtype=np.int64) + self.run.position

    @functools.cached_property
    def sizes(self) -> "Longs":
        """Sizes in bytes, headers included."""
        import numpy as np

        return np.frombuffer(self.run.sizes, dtype=np.int32).astype(np.int64)

    @functools.cached_property
    def base_offsets(self) -> "Longs":
        """Offsets of first records, inclusive."""
        return self._batches.to_numpy("base_offset")

    @functools.cached_property
    def last_offset_deltas(self) -> "Longs":
        """The last record's offset minus the base offset, according to the headers."""
        return self._batches.to_numpy("last_offset_delta")

    @functools.cached_property
    def last_offsets(self) -> "Longs":
        """Offsets of last records, inclusive; values beyond 64 bits wrap."""
        import numpy as np

        column = np.empty(len(self), dtype=np.int64)
        kernel.last_offsets(self.run.data, self.run.positions, column.data)
        return column

    @functools.cached_property
    def end_offsets(self) -> "Longs":
        """Offsets after the last records, exclusive; values beyond 64 bits wrap."""
        return self.last_offsets + 1

    @functools.cached_property
    def have_offsets(self) -> "Flags":
        """Which batches have valid offsets: not negative, in ascending order, within 64 bits."""
        return cast("Flags", (self.base_offsets >= 0) & (self.end_offsets > self.base_offsets))

    @functools.cached_property
    def record_counts(self) -> "Longs":
        """Numbers of records, according to the headers."""
        return self._batches.to_numpy("record_count")

    @functools.cached_property
    def epochs(self) -> "Longs":
        """Partition leader epochs."""
        return self._batches.to_numpy("partition_leader_epoch")

    @functools.cached_property
    def attributes(self) -> "Longs":
        """Attributes, as signed 16-bit numbers."""
        return self._batches.to_numpy("attributes")

    @functools.cached_property
    def are_control(self) -> "Flags":
        """Which batches are control batches."""
        return cast("Flags", (self.attributes & CONTROL_FLAG) != 0)

    @functools.cached_property
    def are_transactional(self) -> "Flags":
        """Which batches are part of a transaction, or its marker."""
        return cast("Flags", (self.attributes & TRANSACTIONAL_FLAG) != 0)

    @functools.cached_property
    def base_timestamps(self) -> "Longs":
        """Base timestamps, to which records' timestamp deltas are relative, in ms."""
        return self._batches.to_numpy("base_timestamp")

    @functools.cached_property
    def max_timestamps(self) -> "Longs":
        """Max timestamps according to the headers, in ms."""
        return self._batches.to_numpy("max_timestamp")

    @functools.cached_property
    def producer_ids(self) -> "Longs":
        """Producer ids, -1 for none."""
        return self._batches.to_numpy("producer_id")

    @functools.cached_property
    def producer_epochs(self) -> "Longs":
        """Producer epochs, -1 for none."""
        return self._batches.to_numpy("producer_epoch")

    @functools.cached_property
    def base_sequences(self) -> "Longs":
        """Sequences of first records, -1 for none."""
        return self._batches.to_numpy("base_sequence")
