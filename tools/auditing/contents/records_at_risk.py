# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a quorum that may be lost or dropped, and says what they are about.

They are read from a replica that has them. What is read is bounded; the rest is counted by offsets only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import attrs

from raftlog.errors import RaftLogError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.control import ControlRecordType, read_control_key
from raftlog.tools.auditing.batch_reader import BatchReader, batches_in_range, read_batches
from raftlog.tools.auditing.contents.record_subjects import kind_and_subject, subject_text, topic_of
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.history.verdict_words import copy_name, has, offsets_text
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.terminal.value_text import ids_text, time_text

MOST_RECORDS: Final = 10_000
"""How many records of one range are read."""
MOST_BYTES: Final = 16 << 20
"""How many bytes of batches of one range are read, and how many to find the names of its topics."""
MOST_SUBJECTS: Final = 5
"""How many subjects of one kind of record are named."""
MOST_RANGES: Final = 8
"""How many ranges of one quorum are read."""
_METADATA: Final = "__cluster_metadata"
_MAX_OFFSET: Final = (1 << 63) - 1


@attrs.frozen
class KindOfRecords:
    """Records of one kind.

    Attributes:
        name: a type of metadata records, such as ``TOPIC_RECORD``; of control records, such as ``LEADER_CHANGE``; or
            ``data record``.
        count: of the records.
        subjects: the first of what they are about, such as names of topics; without the values of configs.
        subject_count: of all different subjects.
    """

    name: str
    count: int
    subjects: tuple[str, ...]
    subject_count: int


@attrs.frozen
class RecordsAtRisk:
    """Records of one replica that may be lost, or that are not in the lineage to keep.

    Attributes:
        path: log directory of a replica that has them.
        start_offset, end_offset: inclusive and exclusive.
        file: path of the segment in which they start; None if no record of them could be read.
        first_timestamp, last_timestamp: the least and the greatest timestamp in ms of what was read; None likewise.
        read_to: the end of what was read, exclusive.
        kinds: of the records, the most frequent first.
    """

    path: str
    start_offset: int
    end_offset: int
    file: str | None
    first_timestamp: int | None
    last_timestamp: int | None
    read_to: int
    kinds: tuple[KindOfRecords, ...]


class _Range(NamedTuple):
    """Offsets of a replica: the first one, and the one after the last one."""

    path: str
    start: int
    end: int

    def has(self, other: "_Range") -> bool:
        """Whether another one is a part of this one."""
        return self != other and self.path == other.path and self.start <= other.start and other.end <= self.end


def records_at_risk(
    view: QuorumView, evidence: Sequence[PartitionEvidence], read: BatchReader = read_batches
) -> tuple[RecordsAtRisk, ...]:
    """Return the records of a quorum that may be lost or dropped, by replica.

    Args:
        view: of the quorum.
        evidence: of its replicas.
        read: reads batches of a surveyed segment again.
    """
    by_path = {each.place.log_directory: each for each in evidence if each.is_raft}
    ranges = _ranges(view, by_path)[:MOST_RANGES]
    return tuple(describe_records(by_path[each.path], each.start, each.end, read) for each in ranges)


def at_risk_words(view: QuorumView, found: Iterable[RecordsAtRisk]) -> Iterator[str]:
    """Yield a sentence for operators about each range of records."""
    for each in found:
        yield from range_words(each, next(copy for copy in view.judgement.copies if copy.path == each.path))


def range_words(found: RecordsAtRisk, copy: Copy) -> Iterator[str]:
    """Yield a sentence, or two, about one range of records of a replica."""
    head = f"{offsets_text(found.start_offset, found.end_offset).capitalize()} on {copy_name(copy)}"
    if found.file is None or found.first_timestamp is None or found.last_timestamp is None:
        yield f"{head} could not be read."
        return
    part = "" if found.read_to == found.end_offset else f" up to offset {found.read_to - 1}, where reading stopped"
    written = " to ".join(dict.fromkeys(map(time_text, (found.first_timestamp, found.last_timestamp))))
    yield f"{head} hold{part}: {ids_text(map(_kind_text, found.kinds))}."
    yield f"They were written {written}, and begin in {found.file}."


def _kind_text(kind: KindOfRecords) -> str:
    rest = kind.subject_count - len(kind.subjects)
    more = f" and {rest:,} more" if rest else ""
    return f"{kind.count:,} {kind.name}" + (f" ({ids_text(kind.subjects)}{more})" if kind.subjects else "")


def _ranges(view: QuorumView, by_path: dict[str, PartitionEvidence]) -> list[_Range]:
    """Return the ranges that logs here have, without those inside others; equal ones of equal logs once."""
    found: dict[tuple[int, int, int | None], _Range] = {}
    for each in _all_ranges(view):
        replica = by_path.get(each.path)
        if replica is None:
            continue
        start, end = max(each.start, replica.start_offset), min(each.end, replica.end_offset)
        if start < end:
            copy = next(copy for copy in view.judgement.copies if copy.path == each.path)
            found.setdefault((start, end, copy.lineage.epoch_at(end - 1)), _Range(each.path, start, end))
    ranges = list(found.values())
    return [each for each in ranges if not any(other.has(each) for other in ranges)]


def _all_ranges(view: QuorumView) -> Iterator[_Range]:
    judgement = view.judgement
    missing_from, parting = judgement.ruling.missing_from, judgement.parting_offset
    for proof in judgement.conflict or judgement.proofs[:1]:
        start = missing_from if parting is None else parting
        if start is not None:
            holders = (copy for copy in judgement.copies if has(copy, proof))
            yield from (_Range(copy.path, start, proof.point.offset) for copy in holders)
    for fork in judgement.forks:
        yield _Range(fork.copy.path, fork.offset, fork.copy.end.offset)
    for member in view.members:
        if member.path is not None and member.at_risk is not None and member.end is not None:
            yield _Range(member.path, member.at_risk, member.end.offset)


def describe_records(
    replica: PartitionEvidence, start: int, end: int, read: BatchReader = read_batches
) -> RecordsAtRisk:
    """Return what some records of a raft log are about.

    Args:
        replica: that has them.
        start: the first offset.
        end: the offset after the last one.
        read: reads batches of a surveyed segment again.
    """
    is_metadata = replica.place.topic == _METADATA
    counts: Counter[str] = Counter()
    subjects: dict[str, dict[tuple[UUID | None, str], None]] = {}
    names: dict[UUID, str] = {}
    file, timestamps, read_to, record_count, size_bytes = None, list[int](), start, 0, 0
    for segment, batch in batches_in_range(replica, start, end, read):
        if record_count >= MOST_RECORDS or size_bytes >= MOST_BYTES:
            break
        file = file or segment.task.path
        size_bytes += batch.size_bytes
        for name, topic, rest in _kinds(batch, start, end, names, is_metadata=is_metadata):
            counts[name] += 1
            record_count += 1
            if topic is not None or rest:
                subjects.setdefault(name, {})[topic, rest] = None
        timestamps += [batch.base_timestamp, batch.max_timestamp]
        read_to = min(end, batch.next_offset)
    wanted = {topic for found in subjects.values() for topic, _ in found if topic is not None} - names.keys()
    names |= _names_before(replica, start, wanted, read)
    kinds = []
    for name, count in counts.most_common():
        found = list(subjects.get(name, ()))
        shown = tuple(subject_text(topic, rest, names) for topic, rest in found[:MOST_SUBJECTS])
        kinds.append(KindOfRecords(name, count, shown, len(found)))
    first, last = (min(timestamps), max(timestamps)) if timestamps else (None, None)
    return RecordsAtRisk(replica.place.log_directory, start, end, file, first, last, read_to, tuple(kinds))


def _kinds(
    batch: RecordBatch, start: int, end: int, names: dict[UUID, str], *, is_metadata: bool
) -> Iterator[tuple[str, UUID | None, str]]:
    try:
        for record in batch.records(check_crc=False):
            if not start <= record.offset < end:
                continue
            if batch.is_control:
                kind = read_control_key(record.key)
                yield kind.name if isinstance(kind, ControlRecordType) else f"control record {kind}", None, ""
                continue
            if (topic := topic_of(record.value) if is_metadata else None) is not None:
                names[topic[0]] = topic[1]
            yield kind_and_subject(record, is_metadata=is_metadata)
    except RaftLogError:
        return  # The findings say what is wrong there.


def _names_before(replica: PartitionEvidence, end: int, wanted: set[UUID], read: BatchReader) -> dict[UUID, str]:
    """Return the names of topics that records before an offset have created, as far as they are found soon."""
    found: dict[UUID, str] = {}
    size_bytes = 0
    files = [*replica.snapshots, *replica.segments]
    for batch in (batch for file in files if wanted for batch in read(file, 0, _MAX_OFFSET)):
        if wanted <= found.keys() or size_bytes >= MOST_BYTES:
            break
        size_bytes += batch.size_bytes
        for topic in _topics(batch):
            if topic[0] in wanted:
                found[topic[0]] = topic[1]
    return found


def _topics(batch: RecordBatch) -> Iterator[tuple[UUID, str]]:
    try:
        for record in () if batch.is_control else batch.records(check_crc=False):
            topic = topic_of(record.value)
            if topic is not None:
                yield topic
    except RaftLogError:
        return
