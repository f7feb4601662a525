# SPDX-License-Identifier: Apache-2.0
"""Compares consecutive segments of a log, and finds a log that ends earlier than it once did."""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.durable_ends import durable_end_offset, ends_seen
from raftlog.tools.catalogue.audit_rules import RELATIVE_RULES, TAIL_RULES, UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding

_MOST_BYTES: Final = (1 << 31) - 1
_INDEX_INTERVAL_BYTES: Final = 4096
_LOST_WITHIN: Final = frozenset(
    {*UNREADABLE_RULES, "batch-length", "batch-overrun", "batch-magic", "batch-crc", "batch-count"}
)
"""Rules of findings about bytes anywhere in a log that hold no readable batch, but may have held some."""


def judge_segments(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report problems between the segments of a log."""
    segments = evidence.segments
    for segment in segments:
        yield from _size(segment)
        yield from _missing_indexes(segment)
    for before, after in itertools.pairwise(segments):
        if before.task.base_offset == after.task.base_offset:
            reason = f"a second segment of base offset {after.task.base_offset}: the other is {before.task.path}"
            yield Finding(after.task.path, "segment-twice", reason, offset=after.task.base_offset)
    yield from _names_too_low(evidence)
    for border in _borders(segments, is_raft=evidence.is_raft):
        yield _judge_border(border, is_raft=evidence.is_raft)


def has_lost_tail(evidence: PartitionEvidence) -> bool:
    """Whether a finding shows that the log had bytes after its last sound batch."""
    segments = evidence.segments
    if not segments:
        return False
    end_offset = evidence.end_offset
    orphans = (file for file in evidence.files if any(each.rule == "index-orphan" for each in file.findings))
    return (
        _ends_damaged(segments[-1])
        or any(finding.rule == "index-beyond" for finding in segments[-1].findings)
        or any((file.task.base_offset or 0) >= end_offset for file in orphans)
    )


def judge_log_end(evidence: PartitionEvidence) -> Iterator[Finding]:
    """Report a file that shows that a raft log once reached a higher offset; at most one finding.

    A durable end that raftlog has recorded always counts, since its records may have been acknowledged. Damage at the
    end of the log is then part of this finding's reason, and has no finding of its own (``explained_elsewhere``).
    Kafka's files are weaker evidence: they may cover records that were never flushed.
    """
    segments = evidence.segments
    if not segments:
        return
    end_offset, path = evidence.end_offset, segments[-1].task.path
    durable = durable_end_offset(evidence)
    if durable is not None and durable > end_offset:
        damage = _in_words(_damaged_tail(segments[-1]))
        reason = f"the log ends at offset {end_offset}, but was durable up to {durable}{damage}"
        yield Finding(path, "log-end-durable", reason, offset=end_offset)
        return
    seen = max(ends_seen(evidence), default=(0, ""))
    if seen[0] > end_offset + stray_offsets(evidence) and not has_lost_tail(evidence):
        reason = f"the log ends at offset {end_offset}, but {seen[1]} shows that it once ended at {seen[0]} or later"
        yield Finding(path, "log-end", reason, offset=end_offset)


def explained_elsewhere(evidence: PartitionEvidence, said: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of surveys that are part of the reason of a finding about the whole log.

    That is damage at the end of a segment before records that are lost, and what a segment's wrong name makes look like
    missing offsets.

    Args:
        evidence: of a log.
        said: the findings about it.
    """
    worse = {(finding.rule, finding.path) for finding in said}
    for misnamed in misnamed_segments(evidence):
        if ("segment-start", misnamed.segment.task.path) in worse:
            yield from _consequences(misnamed, evidence)
    segments = evidence.segments
    for segment, following in itertools.zip_longest(segments, segments[1:]):
        place = ("segment-gap", following.task.path) if following else ("log-end-durable", segment.task.path)
        if place in worse:
            yield from _damaged_tail(segment)


@attrs.frozen
class Misnamed:
    """A segment whose name is too low: the segment before it ends, or a snapshot does, where its first batch starts.

    Attributes:
        segment: the segment.
        start_offset: base offset of its first batch.
        end_before: end of the segments before it, exclusive; None if it is the first.
    """

    segment: FileEvidence
    start_offset: int
    end_before: int | None

    @property
    def base_offset(self) -> int:
        """The offset in its name."""
        return self.segment.task.base_offset or 0


def misnamed_segments(evidence: PartitionEvidence) -> Iterator[Misnamed]:
    """Yield the segments with a name that is too low, from which no record is missing nevertheless."""
    snapshot_ends = {snapshot_id.offset for snapshot_id in evidence.snapshots_by_id}
    end_before: int | None = None
    for segment in {segment.task.base_offset or 0: segment for segment in evidence.segments}.values():
        base_offset = segment.task.base_offset or 0
        own_end = base_offset
        if segment.extent is not None:
            start_offset, own_end = segment.extent.start_offset, segment.extent.end_offset
            is_next = start_offset == end_before if evidence.is_raft else start_offset >= (end_before or 0)
            if end_before is None:
                is_next = evidence.is_raft and start_offset in snapshot_ends
            overlapped_end = start_offset if end_before is None else end_before
            if base_offset < start_offset and is_next and base_offset < overlapped_end:
                yield Misnamed(segment, start_offset, end_before)
        end_before = max(end_before or 0, own_end)


def _names_too_low(evidence: PartitionEvidence) -> Iterator[Finding]:
    for misnamed in misnamed_segments(evidence):
        start_offset, end_before, base_offset = misnamed.start_offset, misnamed.end_before, misnamed.base_offset
        reason = f"it starts at offset {start_offset}, above the {base_offset} of its name"
        if end_before is None:
            reason += ", where a snapshot ends"
        else:
            hidden = f"offsets {base_offset} to {end_before - 1}"
            reason += f", and the segment before it ends at {end_before}: Kafka looks for {hidden} here and skips them"
        extent = misnamed.segment.extent
        epoch = None if extent is None else extent.first_epoch
        yield Finding(misnamed.segment.task.path, "segment-start", reason, 0, offset=start_offset, epoch=epoch)


def _consequences(misnamed: Misnamed, evidence: PartitionEvidence) -> Iterator[Finding]:
    """Yield the findings that follow from a name that is too low, in the segment and about its indexes."""
    segment, start_offset = misnamed.segment, misnamed.start_offset
    for finding in segment.findings:
        is_gap = finding.rule == "offset-gap" and finding.path == segment.task.path and finding.offset == start_offset
        if is_gap or finding.rule in RELATIVE_RULES:
            yield finding
    for file in evidence.files:  # Its indexes may have kept its real name.
        if file.task.base_offset == start_offset:
            yield from (finding for finding in file.findings if finding.rule == "index-orphan")


def stray_offsets(evidence: PartitionEvidence) -> int:
    """Return by how much the end offset of a log may be too low because of batches with wrong offsets at its end.

    All batches from the first of these on may have offsets that are too low.
    """
    return evidence.segments[-1].stray_offsets if evidence.segments else 0


def _damaged_tail(segment: FileEvidence) -> list[Finding]:
    """Return the findings about unreadable bytes after the last sound batch of a segment, in order."""
    start, found = segment.task.size_bytes, []
    for finding in reversed(segment.findings):
        position = finding.position or 0
        is_damage = finding.path == segment.task.path and finding.rule in _LOST_WITHIN | TAIL_RULES
        if is_damage and position + finding.size_bytes >= start:
            start = position
            found.append(finding)
    return found[::-1]


def _in_words(damage: Sequence[Finding]) -> str:
    return "".join(f"; {finding.reason} ({finding.rule})" for finding in damage[:1])


def _size(segment: FileEvidence) -> Iterator[Finding]:
    if segment.task.size_bytes > _MOST_BYTES:
        reason = f"{segment.task.size_bytes} bytes, more than {_MOST_BYTES}"
        yield Finding(segment.task.path, "segment-size", reason, _MOST_BYTES)


def _missing_indexes(segment: FileEvidence) -> Iterator[Finding]:
    missing = [kind.value for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX) if kind not in segment.task.indexes]
    if missing and segment.task.size_bytes > _INDEX_INTERVAL_BYTES:
        yield Finding(segment.task.path, "index-missing", f"it has no {' and no '.join(missing)} beside it")


@attrs.frozen
class _Border:
    """A segment that does not start where the preceding segments end.

    Attributes:
        segment: the segment.
        before: the segment before it.
        end_offset: end of the preceding segments, exclusive.
        start_offset: its start.
    """

    segment: FileEvidence
    before: FileEvidence
    end_offset: int
    start_offset: int


def holes_between(evidence: PartitionEvidence) -> Iterator[tuple[FileEvidence, int, int]]:
    """Yield segments that start after the end of the preceding segments.

    A gap after a torn tail is reported as a torn tail.
    """
    for border in _borders(evidence.segments, is_raft=evidence.is_raft):
        if border.start_offset > border.end_offset and not _ends_damaged(border.before):
            yield border.segment, border.end_offset, border.start_offset


def _judge_border(border: _Border, *, is_raft: bool) -> Finding:
    if border.start_offset > border.end_offset:
        return _gap(border, is_raft=is_raft)
    reason = f"it starts at offset {border.start_offset}, but the segment before it ends at {border.end_offset}"
    return Finding(border.segment.task.path, "segment-overlap", reason, offset=border.start_offset)


def _borders(segments: Sequence[FileEvidence], *, is_raft: bool) -> Iterator[_Border]:
    """Yield the segments that do not start where the preceding segments end.

    Of two segments with one base offset, only one is compared.
    """
    end_offset: int | None = None
    before: FileEvidence | None = None
    by_base_offset = {segment.task.base_offset or 0: segment for segment in segments}
    for base_offset, segment in by_base_offset.items():
        first_offset = base_offset if segment.extent is None else segment.extent.start_offset
        # A segment whose first batch does not match its name has been reported: its batches count, not its name.
        start_offset = max(base_offset, first_offset) if is_raft else base_offset
        if before is not None and end_offset is not None:
            missing = min(base_offset, first_offset) - end_offset
            if start_offset < end_offset and first_offset >= base_offset and first_offset < end_offset:
                yield _Border(segment, before, end_offset, start_offset)
            elif missing > 0 and not _explains(before, missing):
                yield _Border(segment, before, end_offset, base_offset)
        own_end = base_offset if segment.extent is None else segment.extent.end_offset
        end_offset, before = max(end_offset or 0, own_end), segment


def _explains(segment: FileEvidence, missing: int) -> bool:
    """Whether the findings of a segment explain why so many offsets are missing after it.

    A torn tail does not explain it: only the last segment may have one, so elsewhere it is a loss.
    """
    is_lost_within = _ends_damaged(segment, _LOST_WITHIN) or _ends_out_of_line(segment)
    return is_lost_within or missing <= segment.stray_offsets


def _ends_out_of_line(segment: FileEvidence) -> bool:
    """Whether a batch of a segment has an offset of the following segment."""
    end_offset = segment.task.next_base_offset
    orders = (finding.offset for finding in segment.findings if finding.rule == "offset-order")
    return end_offset is not None and any(offset is not None and offset >= end_offset for offset in orders)


def _gap(border: _Border, *, is_raft: bool) -> Finding:
    path, end_offset, start_offset = border.segment.task.path, border.end_offset, border.start_offset
    reason = f"it starts at offset {start_offset}, but the segment before it ends at {end_offset}"
    if is_raft:
        lost = f"offsets {end_offset} to {start_offset - 1} are lost{_in_words(_damaged_tail(border.before))}"
        return Finding(path, "segment-gap", f"{reason}: {lost}", offset=end_offset)
    return Finding(path, "offset-compacted", reason, offset=end_offset)


def _ends_damaged(segment: FileEvidence, rules: Set[str] = _LOST_WITHIN | TAIL_RULES) -> bool:
    """Whether a segment ends in bytes without a batch, according to one of some rules."""
    return any(
        finding.position is None or finding.position + finding.size_bytes >= segment.task.size_bytes
        for finding in segment.findings
        if finding.rule in rules and finding.path == segment.task.path
    )
