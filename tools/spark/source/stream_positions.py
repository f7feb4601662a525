# SPDX-License-Identifier: Apache-2.0
"""Where a stream starts and ends in each log, and checks that the logs still have what it has read.

A place is the next offset to read, and the epoch of the record before it, -1 if there is none. Together they identify a
history: a log that was truncated and written again has another epoch there.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from raftlog.errors import DivergedStreamError, OptionError
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.spark.rows.options import LATEST, OffsetBound, SourceOptions
from raftlog.tools.spark.rows.parts import log_name
from raftlog.tools.spark.source.batch_places import BatchPlaces, SeenBatch
from raftlog.tools.spark.source.data_loss import DataLoss
from raftlog.tools.spark.source.offset_ranges import AFTER_ALL, offset_range
from raftlog.tools.spark.source.planning import Listing, Partition, check_something_is_committed, list_partitions
from raftlog.tools.spark.source.stream_checks import NO_EPOCH, EpochWitness, contradicting_epoch, shares
from raftlog.tools.spark.source.stream_identity import Identity, identities
from raftlog.tools.spark.source.transactions import TransactionFollower

if TYPE_CHECKING:
    from raftlog.tools.spark.source.committed import CommittedEnds

Positions = Mapping[str, OffsetAndEpoch]
"""Places by log, such as ``orders-0``."""


@attrs.frozen(slots=False)
class StreamLogs:
    """The logs of a stream in their present state.

    Attributes:
        options: of the source.
        listing: the logs under the paths.
        partitions: the logs by name.
        places: finds their batches.
        transactions: finds out which records are committed.
        loss: is told of records that are gone.
    """

    options: SourceOptions
    listing: Listing
    partitions: Mapping[str, Partition]
    places: BatchPlaces
    transactions: TransactionFollower
    loss: DataLoss

    @functools.cached_property
    def identities(self) -> Mapping[str, Identity]:
        """The cluster ids and topic ids of the logs, from files beside them."""
        return identities(self.partitions)

    def first(self) -> dict[str, OffsetAndEpoch]:
        """Return where a new stream starts: at the starting option, or else at the ends of the logs.

        Raises:
            OptionError: only committed records are wanted, and nothing is proven to be committed.
        """
        for partition in self.partitions.values():
            check_something_is_committed(partition)
        return {name: self._first_of(partition) for name, partition in self.partitions.items()}

    def latest(
        self, start: Positions, most: int | None = None, last: Positions | None = None
    ) -> dict[str, OffsetAndEpoch]:
        """Return where the next micro-batch ends.

        Args:
            start: where the stream is.
            most: as of ``within``.
            last: as of ``ends``.

        Raises:
            DivergedStreamError, OptionError: as ``ends``.
        """
        return self.within(start, self.ends(start, last), most)

    def ends(self, start: Positions, last: Positions | None = None) -> dict[str, OffsetAndEpoch]:
        """Return up to where the logs can be read now. A log that is missing ends at the stream's place.

        Args:
            start: where the stream is.
            last: where the stream stops: it reads only these logs, up to there; None for the ends of all logs.

        Raises:
            DivergedStreamError: a log no longer has the records that the stream has read.
            OptionError: a log is missing, or starts after the stream's place, and ``failOnDataLoss`` is true.
        """
        self.check(start)
        names = [name for name in self.partitions if last is None or name in last or name in start]
        begins = {name: self._begin_of(name, start) for name in names}
        ends = {name: self._end_of(self.partitions[name]) for name in names}
        if last is not None:
            ends = {name: min(end, last.get(name, begins[name]), key=_offset) for name, end in ends.items()}
        ends = {name: max(end, begins[name], key=_offset) for name, end in ends.items()}
        gone = {name: place for name, place in start.items() if name not in ends}
        return gone | ends

    def within(self, start: Positions, ends: Positions, most: int | None) -> dict[str, OffsetAndEpoch]:
        """Return where the next micro-batch ends if it has a limit.

        Args:
            start: where the stream is.
            ends: up to where the logs can be read.
            most: the most offsets to read of all logs together; a log with unread offsets still gets at least one
                batch. None for no limit.
        """
        found = dict(ends)
        begins = {name: self._begin_of(name, start) for name in ends if name in self.partitions}
        waiting = {name: ends[name].offset - begin.offset for name, begin in begins.items()}
        if most is not None and sum(waiting.values()) > most:
            for name, share in shares(waiting, most).items():
                found[name] = self._end_within(self.partitions[name], begins[name].offset, share, ends[name])
        return found

    def between(self, start: Positions, end: Positions) -> SourceOptions:
        """Return the options of a query for the records between two places of each log.

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
        """Check that each log has the epoch of its place and, with ``failOnDataLoss``, still has that offset.

        Raises:
            DivergedStreamError, OptionError: as ``latest``.
        """
        self.check_histories(places)
        for name, place in places.items():
            self._check_is_there(name, place.offset)

    def check_histories(self, places: Positions, *, by_epochs_alone: bool = False) -> None:
        """Check that no existing log has another history before its place.

        Args:
            places: by log.
            by_epochs_alone: whether to accept a log that ends before its place, since it may be damaged there.

        Raises:
            DivergedStreamError: a log has another history.
        """
        for name, place in places.items():
            partition = self.partitions.get(name)
            if partition is None:
                continue
            end = self._log_end(partition)
            if end.offset < place.offset and place.epoch != NO_EPOCH and not by_epochs_alone:
                raise DivergedStreamError(name, place.offset, place.epoch, end.offset, end.epoch)
            epoch = contradicting_epoch(place, self._witnesses(partition, place.offset))
            if epoch is not None:
                raise DivergedStreamError(name, place.offset, place.epoch, place.offset, epoch)

    def _check_is_there(self, name: str, offset: int) -> None:
        partition = self.partitions.get(name)
        if partition is None:
            self.loss.report("path", f"{name} is missing", "without it")
        elif offset < partition.start_offset:
            self.loss.report("path", f"{name} starts at {partition.start_offset}, so that {offset} is missing")

    def _witnesses(self, partition: Partition, offset: int) -> Iterator[EpochWitness]:
        """Yield evidence for the epoch before an offset: the batch there or, if it was removed, its neighbours."""
        before = self.places.last(partition.segments, offset)
        if before is not None:
            yield _witness(before)
        if before is None or before.next_offset < offset:
            yield from map(EpochWitness.of_snapshot, partition.snapshot_ids)
            after = self.places.first(partition.segments, offset)
            if after is not None:
                yield _witness(after)

    def _first_of(self, partition: Partition) -> OffsetAndEpoch:
        if not self.options.starting.option or self.options.starting.of(partition.key) == LATEST:
            return self._end_of(partition)
        first, _ = offset_range(self.options, partition.key, partition.segments, self.loss, partition.log_start)
        if first == AFTER_ALL:
            return self._end_of(partition)
        return _start_of(partition) if first is None else self._place_at(partition, first)

    def _begin_of(self, name: str, start: Positions) -> OffsetAndEpoch:
        """Return where the stream continues: at its place, or at the log start if that is later or the log is new."""
        log_start = _start_of(self.partitions[name])
        return max(start.get(name, log_start), log_start, key=_offset)

    def _end_of(self, partition: Partition) -> OffsetAndEpoch:
        """Return where the sound batches end or, if that is earlier, what is proven to be committed.

        For ``read_committed``, it is where the first open transaction starts.
        """
        end = self._log_end(partition)
        if partition.committed is not None:
            end = min(partition.committed.point, end, key=_offset)
        if self.options.read_committed:
            stable_end = self.transactions.find(partition.segments, partition.producer_snapshots).stable_end
            if stable_end is not None and stable_end < end.offset:
                return self._place_at(partition, stable_end)
        return end

    def _log_end(self, partition: Partition) -> OffsetAndEpoch:
        """Return where the log ends. The end of an empty log after a snapshot has the epoch of that snapshot."""
        last = self.places.last(partition.segments)
        if last is not None and last.next_offset >= partition.start_offset:
            return OffsetAndEpoch(last.next_offset, last.epoch)
        offset = max(partition.segments[-1].base_offset or 0, partition.start_offset)
        epochs = [each.epoch for each in partition.snapshot_ids if each.offset == offset]
        return OffsetAndEpoch(offset, max(epochs, default=NO_EPOCH))

    def _place_at(self, partition: Partition, offset: int) -> OffsetAndEpoch:
        before = self.places.last(partition.segments, offset)
        return OffsetAndEpoch(offset, NO_EPOCH if before is None else before.epoch)

    def _end_within(self, partition: Partition, begin: int, count: int, end: OffsetAndEpoch) -> OffsetAndEpoch:
        """Return the end of the last batch that ends within ``count`` offsets, or else of the first batch."""
        last = self.places.last(partition.segments, begin + count)
        if last is not None and last.next_offset > begin + count:
            last = self.places.last(partition.segments, last.base_offset)
        if last is None or last.next_offset <= begin:
            last = self.places.first(partition.segments, begin)
        return end if last is None else min(OffsetAndEpoch(last.next_offset, last.epoch), end, key=_offset)


def list_logs(
    options: SourceOptions,
    places: BatchPlaces | None = None,
    transactions: TransactionFollower | None = None,
    loss: DataLoss | None = None,
    committed: "CommittedEnds | None" = None,
) -> StreamLogs:
    """List the logs of a stream, without snapshots, since their records were in the log before.

    Args:
        options: of the source.
        places: remembers earlier searches for batches in the same logs.
        transactions: remembers earlier searches for transactions in the same logs.
        loss: is told of records that are gone; it remembers earlier losses.
        committed: finds what is proven to be committed, if only that is wanted; it remembers evidence.

    Raises:
        StorageError: a path does not exist, or cannot be read.
        OptionError: as ``list_partitions`` and ``CommittedEnds.bound``; two directories have the same log; or an option
            is not for streams.
    """
    places = BatchPlaces() if places is None else places
    if options.ending.option:
        raise OptionError(options.ending.option, "a stream has no end")
    listing = list_partitions(options)
    if options.committed_only:
        from raftlog.tools.spark.source.committed import CommittedEnds  # Only now: the audit comes with it.

        listing = (committed or CommittedEnds()).bound(listing)
    found = tuple(attrs.evolve(each, snapshots=()) for each in listing.partitions if each.segments)
    partitions: dict[str, Partition] = {}
    for each in found:
        name = log_name(each.topic, each.number)
        if name in partitions:
            where = f"{partitions[name].place.log_directory} and in {each.place.log_directory}"
            raise OptionError("path", f"{name} is in {where}: a stream reads one replica of a log")
        partitions[name] = each
    places.keep_only({segment.path for each in found for segment in each.segments})
    return StreamLogs(
        options,
        # What a micro-batch reads was proven when its end was chosen, whatever can be proven when it is planned.
        attrs.evolve(listing, partitions=tuple(attrs.evolve(each, committed=None) for each in found)),
        partitions,
        places,
        transactions or TransactionFollower(),
        loss or DataLoss(fails=options.fails_on_loss),
    )


def _start_of(partition: Partition) -> OffsetAndEpoch:
    return OffsetAndEpoch(partition.start_offset, NO_EPOCH)


def _witness(batch: SeenBatch) -> EpochWitness:
    return EpochWitness(batch.base_offset, batch.next_offset, batch.epoch)


def _offset(place: OffsetAndEpoch) -> int:
    return place.offset
