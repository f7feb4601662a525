# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a mirror, in words, with the places on both sides."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.records.batches.record import RecordView
from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.clusters import PartitionLog
from raftlog.tools.terminal.value_text import counted, time_text

_RULES: Final = {
    MirrorFault.LOST: "mirror.lost",
    MirrorFault.HOLE: "mirror.hole",
    MirrorFault.CHANGED: "mirror.changed",
    MirrorFault.REORDERED: "mirror.reordered",
    MirrorFault.DUPLICATE: "mirror.duplicate",
    MirrorFault.FOREIGN: "mirror.foreign",
    MirrorFault.WRITTEN_TO: "mirror.written-to",
    MirrorFault.WRONG_ANCHOR: "mirror.anchor",
    MirrorFault.BAD_SYNC: "mirror.sync",
    MirrorFault.LATE_START: "mirror.late-start",
    MirrorFault.PASSED_OVER: "mirror.lost",
    MirrorFault.COPIED_AGAIN: "mirror.copied-again",
    MirrorFault.SOURCE_RECREATED: "mirror.source-recreated",
    MirrorFault.TARGET_SHRUNK: "mirror.shrunk",
}
_HOLE: Final = "mirror.hole"
RECORD_PARTS: Final = ("key", "value", "headers", "timestamp")
_MOST_PRODUCERS: Final = 5
_NO_DOUBTS: Final[Mapping[MirrorFault, str]] = {}


@attrs.frozen
class PairFinding:
    """One finding about a pair.

    Attributes:
        rule: its id.
        severity: of the rule, or less where the configuration explains it.
        reason: what is wrong.
        pair: the partition and its mirror.
        source: where in the source; None if nowhere.
        target: where in the target; None if nowhere.
    """

    rule: str
    severity: Severity
    reason: str
    pair: MirrorPair
    source: OffsetRange | None = None
    target: OffsetRange | None = None

    def __str__(self) -> str:
        return f"{self.pair}: {self.severity.value}: {self.reason} [{self.rule}]"


def rule_of(kind: MirrorFault) -> str:
    """Return the id of the rule that a kind of difference breaks."""
    return _RULES[kind]


def differing_parts(ours: RecordView, theirs: RecordView) -> tuple[str, ...]:
    """Return which of key, value, headers and timestamp of two records differ."""
    return tuple(name for name in RECORD_PARTS if getattr(ours, name) != getattr(theirs, name))


def parts_text(parts: Sequence[str]) -> str:
    """Return the names of some parts of a record in a clause."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def findings_of(
    pair: MirrorPair,
    logs: tuple[PartitionLog, PartitionLog],
    result: PairResult,
    holes: Iterable[tuple[OffsetRange, OffsetRange | None]] = (),
    *,
    has_transforms: bool = False,
    is_source_compacted: bool | None = False,
    reads_committed: bool | None = False,
    is_target_known: bool = True,
    has_task: bool = True,
    doubts: Mapping[MirrorFault, str] = _NO_DOUBTS,
) -> Iterator[PairFinding]:
    """Yield the findings about a pair.

    Args:
        pair: the partition and its mirror.
        logs: of the source, and of the target.
        result: of their comparison.
        holes: offsets of the target that no record has, each with where theirs are in the source; None if not known.
        has_transforms: whether the connector changes records: then a change is only suspicious.
        is_source_compacted: whether compaction may have removed records of the source; None if that is not known. What
            was passed over is then nothing, or only suspicious.
        reads_committed: whether the task leaves out aborted records; None if that is not known. What was passed over is
            only suspicious unless it does not.
        is_target_known: whether metadata say that the target is not compacted. Otherwise its holes are one finding, and
            only suspicious.
        has_task: whether a task mirrors records, and not brokers their batches.
        doubts: what else may explain a kind of difference, in words: it is only suspicious then.

    Raises:
        StorageError: a segment cannot be read.
    """
    words = _Words(pair, logs, has_task=has_task)
    for each in result.differences:
        rule = _RULES[each.kind]
        severity = CATALOGUE[rule].severity
        if each.kind is MirrorFault.PASSED_OVER and is_source_compacted:
            continue
        doubt = doubts.get(each.kind, "")
        if each.kind is MirrorFault.PASSED_OVER:
            doubt += "; or compaction has removed them: no metadata of the source say" * (is_source_compacted is None)
            doubt += "; or they are aborted records, which were left out" * (reads_committed is not False)
        if doubt or (has_transforms and each.kind in {MirrorFault.CHANGED, MirrorFault.REORDERED}):
            severity = Severity.SUSPICIOUS
        yield PairFinding(rule, severity, words.of(each) + doubt, pair, each.source, each.target)
    yield from _hole_findings(words, pair, list(holes), is_target_known=is_target_known)
    counts = result.counts
    for rule, count, reason in (
        ("mirror.lag", counts.lag, "{} at the end of the source not mirrored yet"),
        ("mirror.below-log-start", counts.unverifiable, "{} not compared: one side is gone, or cannot be read"),
        ("mirror.aborted", counts.aborted, "{} of aborted transactions left out"),
    ):
        if count:
            yield PairFinding(rule, CATALOGUE[rule].severity, reason.format(_records(count)), pair)


def _hole_findings(
    words: "_Words",
    pair: MirrorPair,
    holes: Sequence[tuple[OffsetRange, OffsetRange | None]],
    *,
    is_target_known: bool,
) -> Iterator[PairFinding]:
    severity = CATALOGUE[_HOLE].severity if is_target_known else Severity.SUSPICIOUS
    for hole, source_place in holes if is_target_known else holes[:1]:
        reason = words.hole(hole, source_place)
        if not is_target_known:
            others = sum(each.offset_count for each, _ in holes[1:])
            reason += f"; {counted(others, 'later offset')} {'has' if others == 1 else 'have'} none" if others else ""
            reason += "; lost, or compacted: no metadata of the target say"
        yield PairFinding(_HOLE, severity, reason, pair, source_place, hole)


class _Words:
    """Tells differences."""

    def __init__(self, pair: MirrorPair, logs: tuple[PartitionLog, PartitionLog], *, has_task: bool) -> None:
        self._has_task = has_task
        self._source_log, self._target_log = logs
        self._source, self._target = f"{pair.source}-{pair.partition}", f"{pair.target}-{pair.partition}"

    def of(self, each: MirrorDifference) -> str:
        """Return what is wrong, in a clause."""
        source, target = f"{_places(each.source)} of {self._source}", f"{_places(each.target)} of {self._target}"
        if not each.is_exact:
            return f"{source} and {target} have too many differences to tell them apart"
        if each.kind in {MirrorFault.WRONG_ANCHOR, MirrorFault.BAD_SYNC}:
            why = ", which have different records" if each.kind is MirrorFault.WRONG_ANCHOR else f": {each.why}"
            return f"an offset sync (offset {each.sync}) pairs {source} with {target}{why}"
        if each.kind in {MirrorFault.COPIED_AGAIN, MirrorFault.PASSED_OVER}:
            return self._went_on(each, source, target)
        match each.kind:
            case MirrorFault.LOST:
                return self._lost(each, source)
            case MirrorFault.HOLE:
                return self.hole(each.target, each.source)
            case MirrorFault.CHANGED | MirrorFault.FOREIGN:
                return self._has_other(each, source, target)
            case MirrorFault.REORDERED:
                what = "record at {} is" if each.count == 1 else "records at {} are"
                return f"the {what.format(source)} at another place: {target}"
            case MirrorFault.DUPLICATE:
                return f"{target}: the same as before offset {each.source.start} of {self._source}, once more"
            case MirrorFault.WRITTEN_TO:
                where = f"at the end of {self._target}, from offset {each.target.start} on"
                return f"others wrote {_records(each.count)} {where}{self._writers(each)}"
            case MirrorFault.LATE_START:
                return f"the mirror begins after {source}: {_records(each.count)} were never mirrored"
            case MirrorFault.SOURCE_RECREATED:
                return f"{self._source} is another topic than the one that was mirrored to {target}: it was made anew"
            case _:
                return f"{self._target} has gone back to offset {each.target.start}: it was cut, or made anew"

    def _went_on(self, each: MirrorDifference, source: str, target: str) -> str:
        """Return where a task went on, if that is not after what was mirrored."""
        if each.kind is MirrorFault.PASSED_OVER and not self._has_task:
            return f"{source} are in neither log: retention had removed them there before they were mirrored"
        if each.kind is MirrorFault.PASSED_OVER:
            return (
                f"the task passed over {source} before it mirrored to offset {each.target.start} of {self._target}:"
                " its offset was out of range, since retention had removed them before they were mirrored"
            )
        why = "another task went on"
        if each.by_one_task:
            why = f"the task went back to offset {each.source.start}, since its offset was out of range"
        return f"{_records(each.count)} at {source} were mirrored again, to {target}, when {why}"

    def hole(self, target: OffsetRange, source: OffsetRange | None) -> str:
        """Return that offsets of the target have no record."""
        of = "" if source is None else f": {_places(source)} of {self._source} should be there"
        return f"{_places(target)} of {self._target} {'has' if target.offset_count == 1 else 'have'} no record{of}"

    def _lost(self, each: MirrorDifference, source: str) -> str:
        where = f"{self._target} (offset {each.target.start})"
        if not each.is_open:
            source = source if each.source.offset_count == each.count else f"{_records(each.count)} at {source}"
            return f"{source} {'is' if each.count == 1 else 'are'} missing in {where}"
        of = "one of the equal records" if each.count == 1 else f"{each.count} of the equal records"
        return f"{of} at {source} {'is' if each.count == 1 else 'are'} missing in {where}"

    def _has_other(self, each: MirrorDifference, source: str, target: str) -> str:
        """Return that the target has another record than the source, or one where that has none."""
        if each.kind is MirrorFault.CHANGED:
            return self._changed(each, source, target)
        if not each.source.offset_count:
            return (
                f"{target} has a record that {self._source} does not have before {_places(each.source)}: another"
                " client wrote it, or the source has lost it"
            )
        has, it = ("has a record", "it") if each.count == 1 else ("have records", "them")
        return f"{target} {has}, and {self._source} has none there: others wrote {it}, or the source lost {it}"

    def _changed(self, each: MirrorDifference, source: str, target: str) -> str:
        parts = self._changed_parts(each)
        if each.count > 1:
            return f"{target} have other records than {source}: the first one has another {parts}"
        return f"{target} has another {parts} than {source}"

    def _changed_parts(self, each: MirrorDifference) -> str:
        """Return which parts of the first record differ."""
        ours = _record_at(self._source_log, each.source.start)
        theirs = _record_at(self._target_log, each.target.start)
        if ours is None or theirs is None:
            return "record"
        is_stamped = self._target_log.end.is_append_time and self._has_task
        return parts_text([each for each in differing_parts(ours, theirs) if each != "timestamp" or not is_stamped])

    def _writers(self, each: MirrorDifference) -> str:
        """Return when others wrote first, and which producers."""
        first = _record_at(self._target_log, each.target.start)
        when = "" if first is None else f", first at {time_text(first.timestamp)}"
        producers = sorted(self._target_log.producers(each.target.start, _MOST_PRODUCERS))
        known = [str(producer) for producer in producers if producer >= 0]
        return f"{when}, producer {' and '.join(known)}" if known else f"{when}, without a producer id"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _places(place: OffsetRange) -> str:
    return offsets_text(place.start, max(place.end, place.start + 1))


def _record_at(log: PartitionLog, offset: int) -> RecordView | None:
    return next(iter(log.rows.records(offset, offset + 1)), None)
