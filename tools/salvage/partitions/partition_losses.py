# SPDX-License-Identifier: Apache-2.0
"""Chooses which stretches the result has, and says what it does not have, and why.

The log ends before the first hole, unless it is asked to step over: what is before a hole is what every consumer could
have seen at some time, and what is after it is not. A hole at the beginning is as if retention had removed more.
"""

import bisect
from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.salvage.losses import doubted_lines, in_files
from raftlog.tools.salvage.partitions.partition_copies import PartitionCopy
from raftlog.tools.salvage.partitions.partition_merging import TopicMerged, TopicStretch
from raftlog.tools.salvage.partitions.partition_runs import TopicRun
from raftlog.tools.salvage.partitions.partition_vouching import VouchedPartition
from raftlog.tools.salvage.salvage_plan import Loss

_HOLE: Final = "no source has them whole, in a place that can be vouched for"
_BEFORE: Final = (
    "they are whole, and before a hole at the beginning of the base: --step-over keeps them, if they were not deleted"
)
_AFTER_HOLE: Final = "they are whole, and after a hole: --step-over keeps them"


def chosen_stretches(
    merged: TopicMerged, first: int, *, steps_over: bool
) -> tuple[Sequence[TopicStretch], Sequence[TopicStretch], Sequence[TopicStretch]]:
    """Return the stretches of the result, and those before and after them, which it does not have.

    Args:
        merged: what the copies have. Nothing is in it that the base says was deleted.
        first: where the base's log begins: what others have before it was deleted there, or the base has lost it.
        steps_over: whether the log goes on after holes.
    """
    found = [stretch for stretch in merged.stretches if stretch.end_offset > first] or list(merged.stretches[-1:])
    early = merged.stretches[: len(merged.stretches) - len(found)]
    return (merged.stretches, [], []) if steps_over else (found[:1], early, found[1:])


def find_losses(
    first: int,
    chosen: Sequence[TopicStretch],
    early: Sequence[TopicStretch],
    later: Sequence[TopicStretch],
    known_end: int,
    copies: Sequence[PartitionCopy],
    logs: Sequence[VouchedPartition],
) -> Iterator[Loss]:
    """Yield what the result does not have, in the order of offsets.

    Args:
        first: where the base's log begins.
        chosen: the stretches of the result.
        early: those before them.
        later: those after them.
        known_end: of what is known to have been there, exclusive.
        copies: the replicas.
        logs: what of them can be vouched for, in the same order.
    """
    position = min(first, *(stretch.start_offset for stretch in (*early, *chosen)))
    for stretches, reason in ((early, _BEFORE), (chosen, ""), (later, _AFTER_HOLE)):
        for stretch in stretches:
            yield from _hole(position, stretch.start_offset, copies, logs)
            if reason:
                batches = "a batch" if stretch.batch_count == 1 else f"{stretch.batch_count:,} batches"
                words = (f"{batches}, up to leader epoch {stretch.epoch}.",)
                yield Loss(stretch.start_offset, stretch.end_offset, stretch.size_bytes, reason, words)
            position = stretch.end_offset
    yield from _hole(position, known_end, copies, logs)


def _hole(start: int, end: int, copies: Sequence[PartitionCopy], logs: Sequence[VouchedPartition]) -> Iterator[Loss]:
    if start < end:
        words = (_where(start, end, copy, log) for copy, log in zip(copies, logs, strict=True))
        yield Loss(start, end, 0, _HOLE, tuple(each for each in words if each))


def _where(start: int, end: int, copy: PartitionCopy, log: VouchedPartition) -> str:
    """Return where a copy has bytes that may have been these offsets, and what is beside them."""
    number = bisect.bisect_right(log.runs, start, key=lambda run: run.end_offset)
    before = log.runs[number - 1] if number else None
    number = bisect.bisect_left(log.runs, end, key=lambda run: run.start_offset)
    after = log.runs[number] if number < len(log.runs) else None
    beside = [f"leader epoch {run.epoch} {side}" for run, side in ((before, "before"), (after, "after")) if run]
    sides = f", with {' and '.join(beside)}" if beside else ""
    places = ", ".join(_places(before, after, copy))
    return f"{copy.name} has {places} there{sides}." if places else f"{copy.name} has no bytes there{sides}."


def _places(before: TopicRun | None, after: TopicRun | None, copy: PartitionCopy) -> Iterator[str]:
    """Yield the ranges of bytes between two runs of a copy."""
    names = [segment.file for segment in copy.segments]
    first = 0 if before is None else names.index(before.file)
    last = len(names) - 1 if after is None else names.index(after.file)
    for name in names[first : last + 1]:
        start = before.end_position if before is not None and name == before.file else 0
        if after is not None and name == after.file:
            end = after.position
        else:
            with FileSource(f"{copy.directory}/{name}") as source:
                end = source.size()
        if start < end:
            yield f"bytes {start} to {end} (exclusive) of {name}"


def dropped_words(
    copies: Sequence[PartitionCopy], logs: Sequence[VouchedPartition], ends: Sequence[int], start_offset: int
) -> Iterator[str]:
    """Yield which records of single copies are not used, as they are not known to be of the lineage.

    Args:
        copies: the replicas.
        logs: what of them can be vouched for, in the same order.
        ends: up to where each is of the lineage, exclusive.
        start_offset: of the result: what is below it was deleted.
    """
    for copy, log, end in zip(copies, logs, ends, strict=True):
        beyond = [run for run in log.runs if run.end_offset > max(end, start_offset)]
        if beyond:
            start = max(end, start_offset, beyond[0].start_offset)
            epochs = sorted({run.epoch for run in beyond})
            named = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
            where = offsets_text(start, beyond[-1].end_offset)
            yield f"{copy.name} has {where} of {named}, of another lineage, or of one that cannot be told from another."
        if log.has_false_checkpoint:
            yield f"the leader-epoch-checkpoint of {copy.name} contradicts its batches, and vouches for nothing."


def small_file_words(copies: Sequence[PartitionCopy], base: PartitionCopy, log: VouchedPartition) -> Iterator[str]:
    """Yield which small files cannot be read, and which records do not come back as one says that they were deleted.

    Args:
        copies: the replicas.
        base: the one that is right.
        log: what of it can be vouched for.
    """
    for copy in copies:
        yield from (f"{copy.source.path(name)} cannot be read, and counts as not there." for name in copy.unread)
    first = log.runs[0].start_offset if log.runs else base.start_offset
    if first < base.start_offset:
        yield (
            f"{base.name} has records from offset {first} on, and by its log-start-offset-checkpoint all below offset"
            f" {base.start_offset} were deleted."
        )


def elsewhere_words(
    copies: Sequence[PartitionCopy],
    logs: Sequence[VouchedPartition],
    base: int,
    ends: Sequence[int],
    known_end: int,
) -> Iterator[str]:
    """Yield which sound records were committed, or may have been, and are not used all the same.

    Those below a copy's high watermark that another lineage has replaced, or that no source has; and those that
    contradict others.

    Args:
        copies: the replicas.
        logs: what of them can be vouched for, in the same order.
        base: the copy that is right, by its index.
        ends: up to where each is of the lineage, exclusive.
        known_end: of what is known to have been there, by the base and the brokers that hold all, exclusive.
    """
    for index, (copy, log, end) in enumerate(zip(copies, logs, ends, strict=True)):
        beyond = next((max(end, run.start_offset) for run in log.runs if run.end_offset > end), None)
        if index != base and beyond is not None and beyond < copy.high_watermark:
            where = offsets_text(beyond, copy.high_watermark)
            yield (
                f"{copy.name} has {where}, which were committed by its high watermark: if they are of another lineage,"
                " an unclean election has replaced them. Keep that copy."
            )
        gone = max([known_end, *(run.end_offset for run in log.runs[-1:])])
        if copy.high_watermark > gone:
            where = offsets_text(gone, copy.high_watermark)
            yield f"{where} were committed by the high watermark of {copy.name}, and no source has them."
        if log.contradicted:
            count = sum(run.batch_count for run in log.contradicted)
            start = min(run.start_offset for run in log.contradicted)
            end_offset = max(run.end_offset for run in log.contradicted)
            batches = "a sound batch" if count == 1 else f"{count:,} sound batches"
            where = offsets_text(start, end_offset)
            yield f"{copy.name} has {batches} within {where}, whose offsets or epochs contradict those of more batches."


def doubted_words(
    copies: Sequence[PartitionCopy], logs: Sequence[VouchedPartition], chosen: Sequence[TopicStretch]
) -> Iterator[str]:
    """Yield which sound batches are not used, as nothing vouches for their place or epoch; the first of them."""
    return doubted_lines(
        (copy.name, run)
        for copy, log in zip(copies, logs, strict=True)
        for run in in_files(log.doubted)
        if not any(each.start_offset <= run.start_offset and run.end_offset <= each.end_offset for each in chosen)
    )
