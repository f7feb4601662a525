# SPDX-License-Identifier: Apache-2.0
"""Says what a salvaged log does not have, and what those records were."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.file_paths import name_of
from raftlog.tools.auditing.contents.records_at_risk import MOST_RANGES, describe_records, range_words
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.verdict_words import copy_name, offsets_text
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.salvage.choosing import Chosen
from raftlog.tools.salvage.longest_log import LongestLog
from raftlog.tools.salvage.merging import Stretch
from raftlog.tools.salvage.runs import NamedSegment, Run
from raftlog.tools.salvage.salvage_plan import DamagedBytes, Loss
from raftlog.tools.salvage.vouching import VouchedLog
from raftlog.tools.salvage.winning import Known

_MOST_LINES: Final = 20
_NO_BATCH: Final = "no batch that a leader could have written"
SegmentSize = tuple[NamedSegment, int]
"""A segment with its size in bytes."""
_HOLE: Final = "no source has them whole, in a place that can be vouched for"
_AFTER_HOLE: Final = "they are whole, and after a hole that no snapshot covers"


@attrs.frozen
class Witness:
    """A source, as the survey saw it.

    Attributes:
        evidence: of its metadata log; None if it has none.
        copy: the same, as the proof has it.
    """

    evidence: PartitionEvidence | None
    copy: Copy | None


def find_losses(found: LongestLog, chosen: Chosen, end_offset: int, witnesses: Sequence[Witness]) -> Iterator[Loss]:
    """Yield what is lost after the end of a log, in the order of offsets.

    Args:
        found: what the sources have.
        chosen: the log.
        end_offset: of what is known to have been there, exclusive.
        witnesses: the sources, by number.
    """
    position = chosen.end.offset
    after = (each for each in chosen.unused if each.start_offset >= chosen.end.offset)
    for count, stretch in enumerate(after):
        yield from _hole(position, stretch.start_offset)
        words = _words(stretch, witnesses) if count < MOST_RANGES else ()
        yield Loss(stretch.start_offset, stretch.end_offset, stretch.size_bytes, _AFTER_HOLE, words)
        position = stretch.end_offset
    yield from _hole(position, max(end_offset, found.winner.known.end.offset))


def damaged_after(
    found: LongestLog, chosen: Chosen, sizes: Sequence[Sequence[SegmentSize]], witnesses: Sequence[Witness]
) -> Iterator[DamagedBytes]:
    """Yield the bytes of sources that may have been records after the end of a log: torn tails, and garbage.

    That is whatever is no sound batch, if no sound batch follows it in that source, or if the one before it ends at or
    after the end of the log.

    Args:
        found: what the sources have.
        chosen: the log.
        sizes: the segments of each source, by ascending base offset; none of a source that is left out.
        witnesses: the sources, by number.
    """
    for number, (log, segments) in enumerate(zip(found.logs, sizes, strict=True)):
        runs = [*log.runs, *log.doubted]
        files = [segment.file for segment, _ in segments]
        last = max(((files.index(run.file), run.position) for run in runs), default=(-1, -1))
        for index, (segment, size_bytes) in enumerate(segments):
            here = [run for run in runs if run.file == segment.file]
            for position, end_position, offset in _gaps(here, log.runs, segment.base_offset, size_bytes):
                if (index, position) > last or offset >= chosen.end.offset:
                    reason = _reason(witnesses[number].evidence, segment.file, position, end_position)
                    yield DamagedBytes(number, segment.file, position, end_position - position, offset, reason)


def _gaps(
    runs: Iterable[Run], vouched: Collection[Run], base_offset: int, size_bytes: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the positions between the runs of a segment (inclusive and exclusive), with the end offset before them.

    Runs that nothing vouches for may claim any offset.
    """
    position, offset = 0, base_offset
    for run in sorted(runs, key=lambda each: each.position):
        if run.position > position:
            yield position, run.position, offset
        position, offset = run.end_position, run.end_offset if run in vouched else offset
    if size_bytes > position:
        yield position, size_bytes, offset


def _reason(evidence: PartitionEvidence | None, file: str, position: int, end_position: int) -> str:
    """Return what the survey found between two positions of a segment."""
    segments = () if evidence is None else evidence.segments
    findings = (finding for each in segments if name_of(each.task.path) == file for finding in each.findings)
    at = ((finding.position, finding.reason) for finding in findings if finding.position is not None)
    return next((reason for where, reason in sorted(at) if position <= where < end_position), _NO_BATCH)


def _hole(start: int, end: int) -> Iterator[Loss]:
    if start < end:
        yield Loss(start, end, 0, _HOLE, ())


def _words(stretch: Stretch, witnesses: Sequence[Witness]) -> tuple[str, ...]:
    """Return what a stretch holds, by the first source that it would come from."""
    piece = stretch.pieces[0]
    return described_records(witnesses[piece.source], stretch.start_offset, piece.end_offset)


def described_records(witness: Witness, start: int, end: int) -> tuple[str, ...]:
    """Return what the records of a source from one offset to another (exclusive) are, in sentences."""
    if witness.evidence is None or witness.copy is None:
        return ()
    return tuple(range_words(describe_records(witness.evidence, start, end), witness.copy))


def dropped_words(
    found: LongestLog, chosen: Chosen, names: Mapping[int, str], witnesses: Sequence[Witness]
) -> Iterator[str]:
    """Yield which records of single sources are not used, as they are not known to be of the lineage.

    Args:
        found: what the sources have.
        chosen: the log. What is below its start is in its snapshot, and not lost.
        names: of the sources, by number.
        witnesses: the sources, by number.
    """
    described = 0
    for number, log in enumerate(found.logs):
        end, own_end = found.winner.ends[number], Known.of_runs(log.runs).end.offset
        start = max(end, chosen.start_offset, log.runs[0].start_offset if log.runs else 0)
        if start >= own_end:
            continue
        where = offsets_text(start, own_end)
        yield f"{names[number]} has {where} of another lineage, or of one that cannot be told from another."
        if described < MOST_RANGES:
            yield from described_records(witnesses[number], start, own_end)
            described += 1


def doubted_words(found: LongestLog, chosen: Chosen, names: Mapping[int, str]) -> Iterator[str]:
    """Yield which sound batches are not used, as nothing vouches for their place or epoch; the first of them."""
    return doubted_lines(
        (names[number], run)
        for number, log in enumerate(found.logs)
        for run in in_files(log.doubted)
        if not _is_had(run, chosen, log)
    )


def in_files(runs: Iterable[Run]) -> list[Run]:
    """Return runs in the order of their files and bytes."""
    return sorted(runs, key=lambda each: (each.file, each.position))


def doubted_lines(doubted: Iterable[tuple[str, Run]]) -> Iterator[str]:
    """Yield a line for each of the first runs, and one for the others.

    Args:
        doubted: the names of their sources, and the runs.
    """
    rest = iter(doubted)
    for name, run in itertools.islice(rest, _MOST_LINES):
        batches = "a batch" if run.batch_count == 1 else f"{run.batch_count:,} batches"
        where = f"{offsets_text(run.start_offset, run.end_offset)} of epoch {run.epoch}"
        yield f"{name}: {batches} at byte {run.position} of {run.file} would be {where}."
    if more := sum(1 for _ in rest):
        yield f"And {more:,} more of these."


def _is_had(run: Run, chosen: Chosen, log: VouchedLog) -> bool:
    """Whether a log has what a batch may be: the offsets that this claims, or those before a later batch beside it."""
    if chosen.start_offset <= run.start_offset and run.end_offset <= chosen.end.offset:
        return True
    after = (each for each in log.runs if (each.file, each.position) > (run.file, run.position))
    return any(each.end_offset <= chosen.end.offset for each in after)


def witnesses_of(
    directories: Sequence[str], evidence: Sequence[PartitionEvidence], copies: Sequence[Copy]
) -> list[Witness]:
    """Return what the survey saw of each source, by the paths of their log directories."""
    logs = {each.place.log_directory: each for each in evidence if each.is_raft}
    known = {copy.path: copy for copy in copies}
    return [Witness(logs.get(each), known.get(each)) for each in directories]


def source_names(directories: Sequence[str], witnesses: Sequence[Witness]) -> dict[int, str]:
    """Return the names of sources for operators, by number."""
    found = zip(directories, witnesses, strict=True)
    return {
        number: path if witness.copy is None else copy_name(witness.copy)
        for number, (path, witness) in enumerate(found)
    }
