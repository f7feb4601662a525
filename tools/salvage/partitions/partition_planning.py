# SPDX-License-Identifier: Apache-2.0
"""Plans the salvage of a topic's partition: which copies count, which is the base, what is taken, and what is lost."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, ForeignDirectoryError, RepairRefusedError
from raftlog.file_system import join
from raftlog.records.files.file_names import DirectoryName, FileKind
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_copies import PartitionCopy, read_copy
from raftlog.tools.salvage.partitions.partition_lineage import Base, CopyKnowledge, choose_base
from raftlog.tools.salvage.partitions.partition_losses import (
    chosen_stretches,
    doubted_words,
    dropped_words,
    find_losses,
)
from raftlog.tools.salvage.partitions.partition_merging import Seen, TopicMerged, merge_copies, read_covered
from raftlog.tools.salvage.partitions.partition_plan import LeftOut, PartitionSalvage
from raftlog.tools.salvage.partitions.partition_runs import RunReader, TopicRun
from raftlog.tools.salvage.partitions.partition_vouching import (
    NumberedRun,
    VouchedPartition,
    vouch_partition,
    with_copies_elsewhere,
)
from raftlog.tools.salvage.winning import Known
from raftlog.tools.terminal.value_text import ids_text
from raftlog.uuid_text import uuid_to_text

_PIECE_BYTES: Final = 1 << 20


@attrs.frozen
class PartitionRequest:
    """What is asked for.

    Attributes:
        partition: its name.
        belief: what the metadata say; None without.
        metadata: paths of the metadata, as they were given.
        steps_over: whether the log is to go on after holes.
    """

    partition: DirectoryName
    belief: Belief | None = None
    metadata: tuple[str, ...] = ()
    steps_over: bool = False


def plan_partition(sources: Sequence[Source], request: PartitionRequest) -> PartitionSalvage:
    """Return what is to be done. Every log is read twice or three times, and never held in memory.

    Args:
        sources: log directories with the partition; their brokers are stopped.
        request: what is asked for.

    Raises:
        ForeignDirectoryError: the sources are of different clusters, or without metadata of different topics.
        DecodeError: no source has a batch that can be vouched for.
        RepairRefusedError: no source is of the topic that the metadata have, or a log is too old.
        StorageError: a file cannot be read.
    """
    copies = [read_copy(number, source, request.partition) for number, source in enumerate(sources)]
    copies.sort(key=lambda each: (each.node_id is None, each.node_id or 0, each.directory))
    cluster_id = _check_clusters(copies, request.belief)
    used, left_out = _of_topic(copies, request.belief)
    return _Planning(used, request, cluster_id, tuple(left_out)).planned()


def _check_clusters(copies: Sequence[PartitionCopy], belief: Belief | None) -> str | None:
    """Return the id of the one cluster that the sources and the metadata are of, as far as they say."""
    cluster_id = None if belief is None else belief.cluster_id
    for copy in copies:
        if None not in {copy.cluster_id, cluster_id} and copy.cluster_id != cluster_id:
            path = copy.source.path(FileKind.META_PROPERTIES.value)
            raise ForeignDirectoryError(path, "cluster.id", str(copy.cluster_id), str(cluster_id))
        cluster_id = cluster_id or copy.cluster_id
    return cluster_id


def _of_topic(copies: Sequence[PartitionCopy], belief: Belief | None) -> tuple[list[PartitionCopy], list[LeftOut]]:
    """Divide the copies: a topic of the same name that was made again has other records at the same offsets."""
    ids = {copy.number: uuid_to_text(copy.topic_id) for copy in copies if copy.topic_id is not None}
    wanted = next(iter(ids.values()), None) if belief is None else belief.topic_id
    used: list[PartitionCopy] = []
    left_out: list[LeftOut] = []
    for copy in copies:
        found = ids.get(copy.number)
        if found == wanted:
            used.append(copy)
        elif found is None:
            reason = f"no {FileKind.PARTITION_METADATA.value} that can be read says that it is of topic id {wanted}"
            left_out.append(LeftOut(copy.number, reason))
        elif belief is None:
            path = join(copy.directory, FileKind.PARTITION_METADATA.value)
            raise ForeignDirectoryError(path, "topic_id", found, str(wanted))
        else:
            reason = f"it is of topic id {found}, another topic of this name, and the metadata have {wanted}"
            left_out.append(LeftOut(copy.number, reason))
    if not used:
        first = copies[0]
        raise RepairRefusedError(f"{first.directory}: {left_out[0].reason}; no other source is of that topic")
    return used, sorted(left_out, key=lambda each: each.source)


class _Planning:
    """The facts of a plan in the making; nothing changes once it is made."""

    def __init__(
        self,
        copies: Sequence[PartitionCopy],
        request: PartitionRequest,
        cluster_id: str | None,
        left_out: tuple[LeftOut, ...],
    ) -> None:
        self._copies = copies
        self._request = request
        self._belief = request.belief
        self._cluster_id = cluster_id
        self._left_out = left_out
        is_compacted = any(copy.is_cleaned for copy in copies) or (
            request.belief is not None and request.belief.is_compacted
        )
        self._is_compacted, self._logs = _vouched(copies, is_compacted=is_compacted)
        self._knowledge = [self._known(copy, log) for copy, log in zip(copies, self._logs, strict=True)]

    def planned(self) -> PartitionSalvage:
        base = self._base()
        copy = self._copies[base.index]
        unproven = tuple(self._problems(base))
        merged = self._merged(base, is_proven=not unproven)
        first = max(copy.start_offset, copy.segments[0].base_offset)
        chosen, later = chosen_stretches(merged, first, steps_over=self._request.steps_over)
        if not chosen:
            raise _nothing(self._copies)
        known_end = max(base.winner.known.end.offset, *(self._copies[i].high_watermark for i in self._reliable(base)))
        topic_id = next((each.topic_id for each in self._copies if each.topic_id is not None), None)
        taken = {piece.source for stretch in chosen for piece in stretch.pieces}
        last = chosen[-1]
        losses = tuple(find_losses(first, chosen, later, known_end, self._copies, self._logs))
        return PartitionSalvage(
            str(self._request.partition),
            self._cluster_id,
            None if topic_id is None else uuid_to_text(topic_id),
            copy.number,
            not unproven,
            unproven,
            self._belief,
            self._request.metadata,
            chosen[0].start_offset,
            last.end_offset,
            last.pieces[-1].epoch,
            tuple(piece for stretch in chosen for piece in stretch.pieces),
            sum(stretch.batch_count for stretch in chosen),
            None if topic_id is None else next(each.number for each in self._copies if each.topic_id is not None),
            known_end,
            all(self._knowledge[index].has_lost_end for index in self._reliable(base)),
            self._request.steps_over,
            losses,
            merged.conflicts,
            self._left_out,
            tuple(dropped_words(self._copies, self._logs, base.winner.ends, chosen[0].start_offset)),
            tuple(doubted_words(self._copies, self._logs, chosen)),
            self._is_compacted,
            merged.cleaned_apart if len(taken) > 1 else None,
            last.open_transactions,
            tuple(sorted({each for stretch in chosen[:-1] for each in stretch.open_transactions})),
        )

    def _base(self) -> Base:
        holders = () if self._belief is None else self._belief.holders
        leader_epoch = None if self._belief is None else self._belief.leader_epoch
        base = choose_base(self._knowledge, holders, leader_epoch)
        if base is None:
            raise _nothing(self._copies)
        return base

    def _reliable(self, base: Base) -> list[int]:
        """Return the copies whose word of how far the log went counts: of the brokers that hold all, or the base."""
        holders = () if self._belief is None else self._belief.holders
        return [index for index, copy in enumerate(self._copies) if copy.node_id in holders] or [base.index]

    def _problems(self, base: Base) -> Iterator[str]:
        """Yield why the choice of the base is not proven."""
        belief = self._belief
        if belief is None:
            yield (
                "no metadata were given (--metadata), so that nobody says whose copy holds all that was committed: the"
                " most up-to-date one is taken"
            )
            return
        yield from belief.problems
        if not base.is_holder:
            holders = ids_text(belief.holders) if belief.holders else "of nobody"
            yield (
                f"no copy of a broker that holds all that was committed (by the metadata: {holders}) is here with"
                " records that can be vouched for: the most up-to-date one of the others is taken"
            )
        for copy, log in zip(self._copies, self._logs, strict=True):
            epoch = max((run.epoch for run in log.runs), default=-1)
            if epoch > belief.leader_epoch:
                yield (
                    f"{copy.name} has batches of leader epoch {epoch}, and the metadata know {belief.leader_epoch}:"
                    " they are older than the log, or the batches are of another lineage; such batches are not used"
                )

    def _merged(self, base: Base, *, is_proven: bool) -> TopicMerged:
        ends = base.winner.ends

        def read(number: int) -> Iterator[Seen]:
            index = next(index for index, copy in enumerate(self._copies) if copy.number == number)
            return read_covered(self._copies[index].directory, self._logs[index].runs, ends[index])

        by_end = sorted(range(len(self._copies)), key=lambda index: -ends[index])
        others = [self._copies[index].number for index in by_end if index != base.index]
        copy = self._copies[base.index]
        ranks = [copy.number, *others]
        start = copy.start_offset
        return merge_copies(read, ranks, start, is_compacted=self._is_compacted, is_settled=is_proven)

    def _known(self, copy: PartitionCopy, log: VouchedPartition) -> CopyKnowledge:
        known = Known.of_runs(log.runs)
        if log.checkpoint:
            end = known.end.offset
            entries = CopyKnowledge(known, log.checkpoint).claim.cut(end)
            known = known.joined(entries)
        return CopyKnowledge(known, log.checkpoint, copy.node_id, _has_lost_end(copy, log))


def _nothing(copies: Sequence[PartitionCopy]) -> DecodeError:
    reason = "no sound batch is in any source that could be vouched for: there is no log to make"
    return DecodeError(reason, path=copies[0].directory)


def _has_lost_end(copy: PartitionCopy, log: VouchedPartition) -> bool:
    """Whether a copy may have had records after the last one that can be vouched for."""
    end = log.runs[-1].end_offset if log.runs else 0
    if copy.high_watermark > end:
        return True
    if not copy.segments:
        return False
    last = copy.segments[-1]
    position = log.runs[-1].end_position if log.runs and log.runs[-1].file == last.file else 0
    with FileSource(f"{copy.directory}/{last.file}") as source:
        return position < source.size()


def _vouched(copies: Sequence[PartitionCopy], *, is_compacted: bool) -> tuple[bool, tuple[VouchedPartition, ...]]:
    """Return whether the log was compacted, and what of each copy can be vouched for."""
    runs, has_cleaned = _runs(copies, is_compacted=is_compacted)
    if has_cleaned and not is_compacted:
        runs, _ = _runs(copies, is_compacted=True)
    logs = [vouch_partition(found, copy.checkpoint) for found, copy in zip(runs, copies, strict=True)]

    def are_equal(one: NumberedRun, other: NumberedRun) -> bool:
        pieces = [_bytes(f"{copies[index].directory}/{run.file}", run) for index, run in (one, other)]
        return all(left == right for left, right in zip(*pieces, strict=True))

    nodes = [copy.node_id for copy in copies]
    return is_compacted or has_cleaned, with_copies_elsewhere(logs, nodes, are_equal)


def _runs(copies: Sequence[PartitionCopy], *, is_compacted: bool) -> tuple[list[list[TopicRun]], bool]:
    found, has_cleaned = [], False
    for copy in copies:
        reader = RunReader(is_compacted=is_compacted)
        found.append(list(reader.runs(copy.directory, copy.segments)))
        has_cleaned = has_cleaned or reader.has_cleaned
    return found, has_cleaned


def _bytes(path: str, run: TopicRun) -> Iterator[memoryview]:
    with FileSource(path) as source:
        for position in range(run.position, run.end_position, _PIECE_BYTES):
            yield source.read_at(position, min(_PIECE_BYTES, run.end_position - position))
