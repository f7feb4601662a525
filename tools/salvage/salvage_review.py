# SPDX-License-Identifier: Apache-2.0
"""Judges a salvaged log: what its sources show of it when it is planned, and what the audit says when it is made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from raftlog.file_paths import name_of
from raftlog.records.files.file_names import METADATA_TOPIC, FileKind
from raftlog.tools.auditing.evidence import (
    BatchSeen,
    ControlSeen,
    EpochSeen,
    FileEvidence,
    LogExtent,
    PartitionEvidence,
    Place,
    SurveyTask,
)
from raftlog.tools.auditing.history.quorum_statements import snapshot_statements
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.tools.auditing.proof.snapshot_names import ms_text
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.repair.reviewing import review
from raftlog.tools.repair.sources import Source, check_unchanged
from raftlog.tools.salvage.choosing import Chosen, FoundSnapshot
from raftlog.tools.salvage.losses import Witness
from raftlog.tools.salvage.merging import Piece

REFUTED_BY_OTHERS: Final = frozenset({"kraft-version-order"})
"""Rules by which a batch is damaged for what is before it in the log, and whose breach no result may have."""
UNREADABLE: Final = frozenset({"batch-attributes"})
"""Rules that Kafka's readers do not mind, and without which raftlog does not find a batch's header."""
OF_THE_PAST: Final = frozenset(
    {
        "batch-attributes",
        "batch-bare",
        "control-place",
        "controller-caps",
        "epoch-leader",
        "frame-empty",
        "kraft-version-voters",
        "leader-elected",
        "leader-voted",
        "leader-voters",
        "raft-frame",
        "raft-record",
        "record-attributes",
        "voters-accepted",
        "voters-one-change",
        "voters-overlap",
        "voters-range",
        "voters-rewritten",
        "voters-schema",
        "voters-uncommitted",
        "voters-version",
    }
)
"""What leaders have written cannot be undone: a source may show it. Damage of bytes, files and order must be gone."""


# After it was made


def review_salvaged(directory: str, sources: Sequence[Source], *, has_owner: bool) -> tuple[Finding, ...]:
    """Audit a new log directory, and return what is not harmless.

    Args:
        directory: that was made.
        sources: that its log is from.
        has_owner: whether it has an identity. Otherwise it has no election state either, which is no fault.

    Raises:
        RepairRefusedError: there is damage in it, other than what a leader of the past has written.
        SourceChangedError: a source has changed while it was read.
        MissingExtraError: a package of an extra is not installed.
    """
    findings = review(directory, sources, OF_THE_PAST.__contains__)
    for source in sources:
        check_unchanged(source, reads=False)
    return tuple(each for each in findings if has_owner or each.rule != "election-missing")


# Before it is made


def misfits(chosen: Chosen, ends: Iterable[BatchSeen], witnesses: Sequence[Witness]) -> Mapping[FoundSnapshot, str]:
    """Return the snapshots of a planned log that the log itself contradicts, with what does.

    A snapshot's own log may have lost what contradicts it. Its voters and its kraft.version must be those that are in
    force in the log of the result, and its timestamp that of the batch before its end, or of the one after it.

    Args:
        chosen: the log.
        ends: the batches of the log before the ends of snapshots.
        witnesses: what the survey saw of the sources, by number.
    """
    files = {}
    for each in chosen.snapshots:
        evidence = witnesses[each.source].evidence
        if evidence is not None:
            files[each] = evidence.snapshots_by_id[each.id]
    log = _planned(chosen, files.values(), witnesses)
    wrong = {each.path: each.reason for each in judge_voters(log) if each.path not in _paths(log.segments)}
    wrong |= dict(_of_other_time(log, {each.snapshot_offset: each for each in ends}))
    return {each: wrong[file.task.path] for each, file in files.items() if file.task.path in wrong}


def _paths(files: Iterable[FileEvidence]) -> set[str]:
    return {file.task.path for file in files}


def _of_other_time(log: PartitionEvidence, ends: Mapping[int, BatchSeen]) -> Iterator[tuple[str, str]]:
    for each in snapshot_statements(log):
        batch = ends.get(each.snapshot_id.offset)
        if batch is None or each.snapshot_id.offset <= log.start_offset:
            continue
        if each.timestamp not in {batch.max_timestamp, batch.next_timestamp} - {-1}:
            yield (
                each.file.task.path,
                f"its last contained timestamp is {ms_text(each.timestamp)}, but the batch before its end has"
                f" {ms_text(batch.max_timestamp)}",
            )


def _planned(chosen: Chosen, snapshots: Iterable[FileEvidence], witnesses: Sequence[Witness]) -> PartitionEvidence:
    """Return what a survey of a planned log would see of its control records, with some snapshots."""
    place = Place("", METADATA_TOPIC, 0)
    task = SurveyTask(place, "the planned log", FileKind.LOG, base_offset=chosen.start_offset, is_raft=True)
    end = chosen.end
    extent = LogExtent(chosen.start_offset, end.offset, 0, end.epoch, -1, 1, 1) if chosen.pieces else None
    epochs = tuple(EpochSeen(each.epoch, each.start_offset, end_offset=each.end_offset) for each in chosen.pieces)
    controls = sorted(_controls(chosen.pieces, witnesses), key=lambda each: each.offset)
    log = FileEvidence(task, extent=extent, epochs=epochs, controls=tuple(controls))
    return PartitionEvidence(place, (log, *snapshots))


def _controls(pieces: Iterable[Piece], witnesses: Sequence[Witness]) -> Iterator[ControlSeen]:
    seen: dict[tuple[int, str], Sequence[ControlSeen]] = {}
    for number, witness in enumerate(witnesses):
        for file in () if witness.evidence is None else witness.evidence.segments:
            seen[number, name_of(file.task.path)] = file.controls
    for piece in pieces:
        for each in seen.get((piece.source, piece.file), ()):
            if piece.position <= each.position < piece.end_position:
                yield each
