# SPDX-License-Identifier: Apache-2.0
"""How far a stream has read: an offset and an epoch for each log, and whether a log still has them.

The offset is the next one to read; the epoch is that of the record before it, -1 where there is none. Together they
name a place in the history of a log: one that was truncated and written anew has another epoch there.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from raftlog.errors import DivergedStreamError, OptionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batch import RecordBatch
from raftlog.records.batch_run import BatchRun
from raftlog.records.iterator import split_runs
from raftlog.storage.file_source import open_source
from raftlog.storage.index_seek import IndexSeek
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.spark.offset_ranges import offset_range
from raftlog.tools.spark.options import LATEST, OffsetBound, SourceOptions
from raftlog.tools.spark.planning import Listing, Partition, list_partitions
from raftlog.tools.spark.transactions import find_transactions

NO_EPOCH: Final = -1
_BEYOND_ALL: Final = (1 << 63) - 1

Positions = Mapping[str, OffsetAndEpoch]
"""By log, such as ``orders-0``."""


@attrs.frozen
class StreamLogs:
    """The logs of a stream, as they are now.

    Attributes:
        options: what the user asks for.
        listing: what stands under the paths.
        partitions: the logs by name.
    """

    options: SourceOptions
    listing: Listing
    partitions: Mapping[str, Partition]

    def first(self) -> dict[str, OffsetAndEpoch]:
        """Return where a new stream starts: at the options' place, or at the ends of the logs if they say none."""
        return {name: self._first_of(partition) for name, partition in self.partitions.items()}

    def latest(self, start: Positions, most: int | None) -> dict[str, OffsetAndEpoch]:
        """Return up to where a stream can read.

        Args:
            start: where it is.
            most: how many offsets it is to read at most, of all logs together, but one batch of each; None for any.

        Raises:
            DivergedStreamError: a log is not the one any more that the stream has read.
            OptionError: a log is gone, or its start is behind the stream, and that is an error.
        """
        self.check(start)
        ends = {name: self._end_of(partition) for name, partition in self.partitions.items()}
        begins = {name: start.get(name) or self._start_of(partition) for name, partition in self.partitions.items()}
        waiting = {name: max(0, end.offset - begins[name].offset) for name, end in ends.items()}
        total = sum(waiting.values())
        if most is not None and total > most:
            for name, count in waiting.items():
                limit = begins[name].offset + max(1, count * most // total)
                ends[name] = self._batch_end_from(self.partitions[name], min(limit, ends[name].offset), ends[name])
        kept = {name: place for name, place in start.items() if name not in ends}
        return kept | {name: end if waiting[name] else begins[name] for name, end in ends.items()}

    def between(self, start: Positions, end: Positions) -> SourceOptions:
        """Return the options for a query of what stands between two places.

        Raises:
            DivergedStreamError, OptionError: as ``latest``.
        """
        self.check(start)
        self.check(end)
        keys = {name: partition.key for name, partition in self.partitions.items()}
        return attrs.evolve(
            self.options,
            starting=OffsetBound(each={keys[name]: place.offset for name, place in start.items() if name in keys}),
            ending=OffsetBound(default=0, each={keys[name]: end[name].offset for name in keys if name in end}),
        )

    def check(self, places: Positions) -> None:
        """Check that each log has the epoch that it is said to have.

        Raises:
            DivergedStreamError, OptionError: as ``latest``.
        """
        for name, place in places.items():
            partition = self.partitions.get(name)
            if partition is None:
                if self.options.fails_on_loss:
                    raise OptionError("path", f"{name} is gone: say failOnDataLoss=false to go on without it")
                continue
            found = self._place_at(partition, place.offset)
            if found is not None and place.epoch != NO_EPOCH and found != place:
                raise DivergedStreamError(name, place.offset, place.epoch, found.offset, found.epoch)

    def _first_of(self, partition: Partition) -> OffsetAndEpoch:
        if not self.options.starting.option or self.options.starting.of(partition.key) == LATEST:
            return self._end_of(partition)
        first, _ = offset_range(self.options, partition.key, partition.segments)
        return self._start_of(partition) if first is None else OffsetAndEpoch(first, NO_EPOCH)

    def _start_of(self, partition: Partition) -> OffsetAndEpoch:
        return OffsetAndEpoch((partition.segments[0].base_offset or 0) if partition.segments else 0, NO_EPOCH)

    def _end_of(self, partition: Partition) -> OffsetAndEpoch:
        """Return where the sound batches end, or, if committed records alone are wanted, the first open transaction."""
        end = _last_place(partition)
        if self.options.read_committed:
            stable_end = find_transactions(partition.segments, partition.producer_snapshots).stable_end
            if stable_end is not None and stable_end < end.offset:
                return self._place_at(partition, stable_end) or OffsetAndEpoch(stable_end, NO_EPOCH)
        return end

    def _place_at(self, partition: Partition, offset: int) -> OffsetAndEpoch | None:
        """Return an offset with the epoch of the record before it, the log's end if that is less; None if gone."""
        end = _last_place(partition)
        if end.offset < offset:
            return end
        batch = _batch_with(partition, offset - 1)
        return None if batch is None else OffsetAndEpoch(offset, batch.partition_leader_epoch)

    def _batch_end_from(self, partition: Partition, offset: int, end: OffsetAndEpoch) -> OffsetAndEpoch:
        """Return the end of the batch that holds the offset before a given one."""
        batch = _batch_with(partition, offset - 1)
        return end if batch is None else OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)


def list_logs(options: SourceOptions) -> StreamLogs:
    """List the logs of a stream.

    Raises:
        StorageError: a path is not there, or cannot be read.
        OptionError: as ``list_partitions``; or a log is there twice.
    """
    listing = list_partitions(options)
    partitions: dict[str, Partition] = {}
    for each in listing.partitions:
        name = f"{each.topic}-{each.number}"
        if name in partitions:
            places = f"{partitions[name].place.log_directory} and in {each.place.log_directory}"
            raise OptionError("path", f"{name} is in {places}: a stream reads one replica of a log")
        partitions[name] = each
    return StreamLogs(options, listing, partitions)


def _last_place(partition: Partition) -> OffsetAndEpoch:
    for segment in reversed(partition.segments):
        for batch in _batches_from(segment, _BEYOND_ALL, last_only=True):
            return OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)
    newest = partition.segments[-1].base_offset if partition.segments else 0
    return OffsetAndEpoch(newest or 0, NO_EPOCH)


def _batch_with(partition: Partition, offset: int) -> RecordBatch | None:
    """Return the batch that holds an offset, or, where compaction took it, the one before; None if neither is there."""
    for segment in reversed(partition.segments):
        if segment.base_offset is None or segment.base_offset <= offset:
            found = None
            for batch in _batches_from(segment, offset):
                if batch.base_offset > offset:
                    break
                found = batch
            if found is not None:
                return found
    return None


def _batches_from(segment: SurveyTask, offset: int, *, last_only: bool = False) -> Iterator[RecordBatch]:
    """Yield the sound batches from the last indexed one on that starts at an offset or before it."""
    last = None
    with open_source(segment.path) as source:
        start = IndexSeek(segment.path, segment.base_offset).position_before(source, offset)
        for piece in split_runs(source, start=start):
            if isinstance(piece, BatchRun):
                if last_only:
                    last = piece.batch(len(piece) - 1)
                else:
                    yield from piece.batches()
    if last is not None:
        yield last
