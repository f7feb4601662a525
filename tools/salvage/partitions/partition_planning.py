# SPDX-License-Identifier: Apache-2.0
"""Plans the salvage of a topic's partition: which copies count, which is the base, what is taken, and what is lost."""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, ForeignDirectoryError, RepairRefusedError
from raftlog.file_system import join
from raftlog.offsets import EpochEntry
from raftlog.records.files.file_names import DirectoryName, FileKind
from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.proof.lineage import Lineage
from raftlog.tools.repair.sources import Source
from raftlog.tools.salvage.partitions.partition_belief import Belief
from raftlog.tools.salvage.partitions.partition_compaction import read_logs
from raftlog.tools.salvage.partitions.partition_copies import PartitionCopy, read_copy
from raftlog.tools.salvage.partitions.partition_lineage import Base, CopyKnowledge, choose_base
from raftlog.tools.salvage.partitions.partition_losses import (
    chosen_stretches,
    doubted_words,
    dropped_words,
    elsewhere_words,
    find_losses,
    small_file_words,
)
from raftlog.tools.salvage.partitions.partition_merging import TopicMerged, TopicStretch, merge_copies
from raftlog.tools.salvage.partitions.partition_plan import LeftOut, PartitionSalvage
from raftlog.tools.salvage.partitions.partition_proof import find_problems, is_of_broker
from raftlog.tools.salvage.partitions.partition_runs import Seen, TopicRun, read_covered
from raftlog.tools.salvage.partitions.partition_vouching import NumberedRun, VouchedPartition
from raftlog.tools.salvage.winning import Known
from raftlog.uuid_text import uuid_to_text

_PIECE_BYTES: Final = 1 << 20
_NO_END: Final = (1 << 63) - 1


@attrs.frozen
class PartitionRequest:
    """What is asked for.

    Attributes:
        partition: its name.
        belief: what the metadata say; None without.
        metadata: paths of the metadata, as they were given.
        steps_over: whether the log is to go on after holes.
        assumes_topic_id: whether a copy that does not say of which topic it is counts as of the metadata's.
    """

    partition: DirectoryName
    belief: Belief | None = None
    metadata: tuple[str, ...] = ()
    steps_over: bool = False
    assumes_topic_id: bool = False


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
    used, left_out = _of_topic(copies, request)
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


def _of_topic(copies: Sequence[PartitionCopy], request: PartitionRequest) -> tuple[list[PartitionCopy], list[LeftOut]]:
    """Divide the copies: a topic of the same name that was made again has other records at the same offsets."""
    belief = request.belief
    ids = {copy.number: uuid_to_text(copy.topic_id) for copy in copies if copy.topic_id is not None}
    wanted = next(iter(ids.values()), None) if belief is None else belief.topic_id
    used: list[PartitionCopy] = []
    left_out: list[LeftOut] = []
    for copy in copies:
        found = ids.get(copy.number)
        if found == wanted or (found is None and request.assumes_topic_id):
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
        policy = None if request.belief is None else request.belief.is_compacted

        def are_equal(one: NumberedRun, other: NumberedRun) -> bool:
            pieces = [_bytes(f"{copies[index].directory}/{run.file}", run) for index, run in (one, other)]
            return all(left == right for left, right in zip(*pieces, strict=True))

        self._compaction, self._logs = read_logs(copies, policy, are_equal)
        self._knowledge = [self._known(copy, log) for copy, log in zip(copies, self._logs, strict=True)]

    def planned(self) -> PartitionSalvage:
        base = self._base()
        copy, log = self._copies[base.index], self._logs[base.index]
        unproven = tuple(self._problems(base))
        empty_at = None if log.runs else self._knowledge[base.index].empty_at
        if empty_at is None:
            merged = self._merged(base, is_proven=not unproven)
        else:
            merged = TopicMerged((TopicStretch((), empty_at),), (), None)
        first = max(copy.start_offset, copy.segments[0].base_offset)
        chosen, early, later = chosen_stretches(merged, first, steps_over=self._request.steps_over)
        if not chosen:
            raise _deleted(copy)
        start = chosen[0].start_offset
        early_epochs = self._early_epochs(copy, log, chosen[0])
        known_end = self._end(base)
        taken = {piece.source for stretch in chosen for piece in stretch.pieces}
        last = chosen[-1]
        losses = tuple(find_losses(first, chosen, early, later, known_end, self._copies, self._logs))
        topic_id, topic_id_source = self._topic_id()
        return PartitionSalvage(
            partition=str(self._request.partition),
            cluster_id=self._cluster_id,
            topic_id=topic_id,
            base=copy.number,
            is_proven=not unproven,
            unproven=unproven,
            belief=self._belief,
            metadata=self._request.metadata,
            start_offset=start,
            end_offset=last.end_offset,
            log_start=copy.start_offset,
            epoch=last.epoch,
            pieces=tuple(piece for stretch in chosen for piece in stretch.pieces),
            batch_count=sum(stretch.batch_count for stretch in chosen),
            topic_id_source=topic_id_source,
            known_end=known_end,
            has_lost_end=all(self._knowledge[index].has_lost_end for index in self._reliable(base)),
            steps_over=self._request.steps_over,
            losses=losses,
            conflicts=merged.conflicts,
            left_out=self._left_out,
            dropped=self._dropped(base, start if last.pieces else 0),
            doubted=tuple(doubted_words(self._copies, self._logs, chosen)),
            is_compacted=self._compaction.below > 0,
            compacted_below=self._compaction.end_offset,
            compaction_reason=self._compaction.reason,
            open_gaps=(*self._gap_before(copy, log, first, [*early, *chosen]), *_inside(merged.open_gaps, chosen)),
            elsewhere=tuple(elsewhere_words(self._copies, self._logs, base.index, base.winner.ends, known_end)),
            early_epochs=early_epochs,
            cleaned_apart=merged.cleaned_apart if len(taken) > 1 else None,
            open_transactions=last.open_transactions,
            unsure_transactions=tuple(sorted({each for stretch in chosen[:-1] for each in stretch.open_transactions})),
        )

    def _dropped(self, base: Base, start_offset: int) -> tuple[str, ...]:
        index = base.index
        found = dropped_words(self._copies, self._logs, base.winner.ends, start_offset)
        return (*found, *small_file_words(self._copies, self._copies[index], self._logs[index]))

    def _end(self, base: Base) -> int:
        """Return the offset up to which the log is known to have gone, exclusive."""
        found = [base.winner.known.end.offset]
        for index in self._reliable(base):
            copy, end = self._copies[index], base.winner.ends[index]
            is_apart = index != base.index and self._knowledge[index].known.end.offset > end
            found.append(copy.high_watermark if is_apart else _known_end(copy, self._logs[index]))
        return max(found)

    def _problems(self, base: Base) -> Iterator[str]:
        yield from find_problems(self._belief, base, self._copies, self._logs, self._knowledge)
        if self._request.assumes_topic_id:
            for copy in self._copies:
                if copy.topic_id is None:
                    yield f"{copy.name} does not say of which topic it is, and --assume-topic-id takes it for this one"

    def _topic_id(self) -> tuple[str | None, int | None]:
        """Return the topic's id, and the source whose file has it."""
        copy = next((each for each in self._copies if each.topic_id is not None), None)
        if copy is not None and copy.topic_id is not None:
            return uuid_to_text(copy.topic_id), copy.number
        return (None if self._belief is None else self._belief.topic_id), None

    def _early_epochs(self, copy: PartitionCopy, log: VouchedPartition, first: TopicStretch) -> tuple[EpochEntry, ...]:
        """Return the epochs before the log's first batch, which tiered storage needs: its own leader-epoch-checkpoint.

        Source: RemoteLogManager.RLMExpirationTask: remote segments without an epoch of the checkpoint are deleted.
        """
        if not first.pieces:
            return log.checkpoint
        start, epoch = first.pieces[0].start_offset, first.first_epoch
        known = Lineage(log.checkpoint, _NO_END).epoch_at(start)
        if known == epoch:
            return tuple(each for each in log.checkpoint if each.start_offset < start)
        if self._belief is not None and self._belief.is_tiered:
            raise RepairRefusedError(
                f"{copy.directory}: the topic has remote.storage.enable, and no sound leader-epoch-checkpoint says"
                " which epochs its remote segments are of: Kafka would delete them"
            )
        return ()

    def _gap_before(
        self, copy: PartitionCopy, log: VouchedPartition, first: int, known: Sequence[TopicStretch]
    ) -> Iterator[tuple[int, int]]:
        """Yield what may have been before all that is there.

        The base's leader-epoch-checkpoint begins where the log does; and other copies begin with their first file.

        Source: LeaderEpochFileCache#truncateFromStartAsyncFlush.
        """
        start = min([first, *(stretch.start_offset for stretch in known)])
        is_tiered = self._belief is not None and self._belief.is_tiered
        witnesses = [each.start_offset for each in log.checkpoint[:1] if not is_tiered]
        witnesses += [each.segments[0].base_offset for each in self._copies if each.segments]
        least = max(min(witnesses, default=start), copy.start_offset)
        if least < start:
            yield least, start

    def _base(self) -> Base:
        holders = () if self._belief is None else self._belief.holders
        leader_epoch = None if self._belief is None else self._belief.leader_epoch
        leader = None if self._belief is None else self._belief.leader
        base = choose_base(self._knowledge, holders, leader_epoch, leader)
        if base is None:
            raise _nothing(self._copies)
        return base

    def _reliable(self, base: Base) -> list[int]:
        """Return the copies whose word of how far the log went counts: of the brokers that hold all, or the base."""
        holders = () if self._belief is None else self._belief.holders
        return [index for index, each in enumerate(self._knowledge) if each.node_id in holders] or [base.index]

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
        return merge_copies(read, ranks, start, compacted_below=self._compaction.below, is_settled=is_proven)

    def _known(self, copy: PartitionCopy, log: VouchedPartition) -> CopyKnowledge:
        known = Known.of_runs(log.runs)
        if log.checkpoint:
            end = known.end.offset
            entries = CopyKnowledge(known, log.checkpoint).claim.cut(end)
            known = known.joined(entries)
        node_id = copy.node_id if is_of_broker(copy, self._belief) else None
        has_lost_end, empty_at = _has_lost_end(copy, log), _empty_at(copy, log)
        is_end_known = copy.high_watermark > 0 and not has_lost_end
        return CopyKnowledge(known, log.checkpoint, node_id, has_lost_end, is_end_known, empty_at)


def _inside(gaps: Sequence[tuple[int, int]], chosen: Sequence[TopicStretch]) -> Iterator[tuple[int, int]]:
    return (each for each in gaps if chosen[0].start_offset < each[0] and each[1] < chosen[-1].end_offset)


def _deleted(copy: PartitionCopy) -> RepairRefusedError:
    return RepairRefusedError(
        f"{copy.directory}: all that can be vouched for is below offset {copy.start_offset}, where the log begins by"
        f" {FileKind.LOG_START_OFFSET_CHECKPOINT.value}: it was deleted. If that is wrong, salvage a copy without that"
        " file"
    )


def _nothing(copies: Sequence[PartitionCopy]) -> DecodeError:
    reason = "no sound batch is in any source that could be vouched for: there is no log to make"
    return DecodeError(reason, path=copies[0].directory)


def _known_end(copy: PartitionCopy, log: VouchedPartition) -> int:
    """Return the offset up to which a log is known to have gone, exclusive: an epoch begins where the log ended."""
    return max([copy.known_end, *(each.start_offset for each in log.checkpoint[-1:])])


def _empty_at(copy: PartitionCopy, log: VouchedPartition) -> int | None:
    """Return where a log without records begins and ends, as after all were deleted; None if it has lost some.

    A crash may leave an empty file, too. So its high watermark must be known, and nothing may be known to be after it.
    """
    if len(copy.segments) != 1 or copy.high_watermark == 0 or _known_end(copy, log) > copy.segments[0].base_offset:
        return None
    with FileSource(f"{copy.directory}/{copy.segments[0].file}") as source:
        return None if source.size() else copy.segments[0].base_offset


def _has_lost_end(copy: PartitionCopy, log: VouchedPartition) -> bool:
    """Whether a copy may have had records after the last one that can be vouched for."""
    if not log.runs and _empty_at(copy, log) is not None:
        return False
    end = log.runs[-1].end_offset if log.runs else 0
    if _known_end(copy, log) > end:
        return True
    if not copy.segments:
        return False
    last = copy.segments[-1]
    position = log.runs[-1].end_position if log.runs and log.runs[-1].file == last.file else 0
    with FileSource(f"{copy.directory}/{last.file}") as source:
        return position < source.size()


def _bytes(path: str, run: TopicRun) -> Iterator[memoryview]:
    with FileSource(path) as source:
        for position in range(run.position, run.end_position, _PIECE_BYTES):
            yield source.read_at(position, min(_PIECE_BYTES, run.end_position - position))
