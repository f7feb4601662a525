# SPDX-License-Identifier: Apache-2.0
"""Finds what a sound snapshot of a metadata log makes superfluous, from the evidence of the audit.

A snapshot counts only if the audit has read it to its footer and found nothing above harmless in it or about it: every
CRC holds, and its id does not contradict the log beside it. A segment is offered only if all of its offsets are below
the end of such a snapshot, a segment follows it that starts there or before, and all segments before it are offered:
so the log that is left starts at or below the end of the snapshot, which is what Kafka's startup asks for.

Source: KafkaRaftLog#recoverSnapshots, #deleteBeforeSnapshot.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from raftlog.file_paths import directory_of, name_of
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileName, FileState
from raftlog.records.rules import Severity
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.catalogue.audit_rules import UNREADABLE_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.free.left_overs import COPY_FIRST, PartitionNames
from raftlog.tools.free.offers import Offers
from raftlog.tools.free.rules import (
    COVERED_SEGMENT,
    DELETED_SNAPSHOT,
    INDEX,
    OLD_PRODUCERS,
    OLD_SNAPSHOT,
    PARTIAL_SNAPSHOT,
)

_FAILED: Final = "audit-failed"
_UNSOUND: Final = (
    "a snapshot that is newer than every sound one, and not sound itself: keep a copy; the node may not start with it"
)
_REBUILT: tuple[FileKind, ...] = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
"""Made anew from the segment. A transaction index is not among them: Kafka trusts that a missing one was empty."""


@attrs.frozen
class JudgedLog:
    """A metadata log in one directory, as the audit sees it.

    Attributes:
        evidence: of all its files.
        findings: those above harmless, by path.
        failures: findings of the same run that raftlog itself failed: then no judgement is complete.
    """

    evidence: PartitionEvidence
    findings: dict[str, list[Finding]]
    failures: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, evidence: PartitionEvidence, findings: Iterable[Finding]) -> "JudgedLog":
        """Keep of all findings those in this log's directory that are above harmless, and failures of raftlog."""
        directory = directory_of(evidence.files[0].task.path)
        by_path: dict[str, list[Finding]] = {}
        failures = []
        for finding in findings:
            is_here = finding.path == directory or directory_of(finding.path) == directory
            if is_here and finding.severity is not Severity.HARMLESS:
                by_path.setdefault(finding.path, []).append(finding)
            if finding.rule == _FAILED:
                failures.append(finding)
        return cls(evidence, by_path, tuple(failures))

    @property
    def directory(self) -> str:
        """The path of its directory."""
        return directory_of(self.evidence.files[0].task.path)

    @property
    def damage(self) -> Finding | None:
        """The first damage outside of snapshots, or what could not be read: each file may be needed for a repair."""
        unknown = (each for found in self.findings.values() for each in found if _is_unknown(each))
        found = (each for path, findings in self.findings.items() if not _is_snapshot(path) for each in findings)
        damage = (each for each in found if each.severity >= Severity.DAMAGED)
        return next(itertools.chain(self.failures, unknown, damage), None)

    def is_sound(self, file: FileEvidence) -> bool:
        """Whether the audit has read a file of batches, and found nothing above harmless in it or about it."""
        return file.coverage is not None and file.task.path not in self.findings

    @property
    def newest_sound_snapshot(self) -> OffsetAndEpoch | None:
        """The id of the newest snapshot that can take the place of the log below it; None if there is none."""
        snapshots = self.evidence.snapshots_by_id.items()
        sound = [
            id_
            for id_, file in snapshots
            if id_ != BOOTSTRAP_SNAPSHOT_ID
            and id_.offset >= self.evidence.start_offset
            and self.is_sound(file)
            and (_has_data(file) or not self._has_data_below(id_.offset))
        ]
        return max(sound, default=None)

    def _has_data_below(self, end_offset: int) -> bool:
        segments = self.evidence.segments
        return any(_has_data(each) for each in segments if (each.task.base_offset or 0) < end_offset)


def offer_covered(log: JudgedLog, names: PartitionNames, offers: Offers) -> None:
    """Offer what the newest sound snapshot covers, unfinished and deleted snapshots, and indexes.

    Args:
        log: with its evidence.
        names: the names in its directory.
        offers: is added to.

    Raises:
        StorageError: a file cannot be looked up.
    """
    if (damage := log.damage) is not None:
        reason = f"the log is damaged ({damage.rule}), and each file may be needed to repair it"
        removed = "; startup removes .deleted, .part and .cleaned files: copy the directory elsewhere first"
        offers.keep(log.directory, f"{reason}{removed if names.has_vanishing_files else ''}")
        return
    if names.has_swap_files:
        return
    _keep_padding(log, offers)
    newest = log.newest_sound_snapshot
    _offer_snapshots(log, names, newest, offers)
    offered = 0 if newest is None else _offer_segments(_covered(log, newest), newest, offers)
    _offer_producers(names, offers)
    _offer_indexes(log.evidence.segments[offered:], log, offers)


def _offer_segments(covered: Sequence[FileEvidence], newest: OffsetAndEpoch, offers: Offers) -> int:
    """Offer the first segments, up to one that cannot go as a whole, and return how many."""
    for number, file in enumerate(covered):
        files = [file.task.path, *file.task.indexes.values()]
        if reason := offers.offer(COVERED_SEGMENT, files, _covered_by(newest)):
            offers.keep(file.task.path, f"{reason}; without it, the log would have a gap before the segments after it")
            return number
    return len(covered)


def _covered(log: JudgedLog, newest: OffsetAndEpoch) -> list[FileEvidence]:
    """Return the first segments, as far as the snapshot covers them and the audit finds nothing; never the last one."""
    found = []
    for segment, following in itertools.pairwise(log.evidence.segments):
        next_base, extent = following.task.base_offset, segment.extent
        ends_below = extent is None or extent.end_offset <= newest.offset
        if next_base is None or next_base > newest.offset or not ends_below or not log.is_sound(segment):
            break
        found.append(segment)
    return found


def _offer_snapshots(log: JudgedLog, names: PartitionNames, newest: OffsetAndEpoch | None, offers: Offers) -> None:
    for id_, file in log.evidence.snapshots_by_id.items():
        if id_ in {BOOTSTRAP_SNAPSHOT_ID, newest}:
            continue
        if newest is not None and _is_replaced(id_, newest):
            offers.offer(OLD_SNAPSHOT, [file.task.path], _covered_by(newest))
        elif not log.is_sound(file):
            offers.keep(file.task.path, _UNSOUND)
        elif newest is not None:
            offers.keep(file.task.path, f"its end or its epoch is after that of {FileName.of_snapshot(newest)}")
        else:
            offers.keep(file.task.path, "it has no data record, or does not reach the log's start: it covers nothing")
    has_base = newest is not None or log.evidence.start_offset == 0
    for name in names.of_state(FileState.PART, FileKind.SNAPSHOT):
        if has_base:
            offers.offer(PARTIAL_SNAPSHOT, [names.path(name)])
        else:
            offers.keep(names.path(name), f"the log has no sound snapshot, and this may be nearly whole; {COPY_FIRST}")
    for name, each in names.of_state(FileState.DELETED, FileKind.SNAPSHOT).items():
        if newest is not None and each.snapshot_id is not None and _is_replaced(each.snapshot_id, newest):
            offers.offer(DELETED_SNAPSHOT, [names.path(name)])
        else:
            offers.keep(names.path(name), f"there is no sound snapshot that has all of it; {COPY_FIRST}")


def _offer_producers(names: PartitionNames, offers: Offers) -> None:
    """Offer the producer snapshots of segments but the newest; those of no segment are offered by their names alone."""
    producers = names.of_state(FileState.CURRENT, FileKind.PRODUCER_SNAPSHOT)
    bases = set(names.base_offsets)
    for name, each in producers.items():
        if each.base_offset in bases and name != max(producers):
            offers.offer(OLD_PRODUCERS, [names.path(name)])


def _offer_indexes(segments: Iterable[FileEvidence], log: JudgedLog, offers: Offers) -> None:
    for segment in segments:
        if log.is_sound(segment):
            for kind, path in segment.task.indexes.items():
                if kind in _REBUILT:
                    offers.offer(INDEX, [path])


def _keep_padding(log: JudgedLog, offers: Offers) -> None:
    for segment in log.evidence.segments:
        if segment.coverage is not None and segment.coverage.padding_bytes:
            zeros = f"its last {segment.coverage.padding_bytes} bytes are zeros, which the next startup cuts off"
            offers.keep(segment.task.path, zeros)


def _is_replaced(id_: OffsetAndEpoch, newest: OffsetAndEpoch) -> bool:
    """Whether one snapshot has all that another has: by the order of ids, a shorter one may be newer."""
    return id_.offset <= newest.offset and id_.epoch <= newest.epoch


def _is_unknown(finding: Finding) -> bool:
    """Whether a finding says that the condition of a file could not be told."""
    return finding.rule in UNREADABLE_RULES


def _has_data(file: FileEvidence) -> bool:
    """Whether a file of a raft log has a record that is no control record."""
    return file.extent is not None and file.extent.record_count > len(file.controls)


def _covered_by(newest: OffsetAndEpoch) -> str:
    return f"by {FileName.of_snapshot(newest)}"


def _is_snapshot(path: str) -> bool:
    return name_of(path).endswith(FileKind.SNAPSHOT.value)
