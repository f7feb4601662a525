# SPDX-License-Identifier: Apache-2.0
"""Compares replicas of one partition: one leader per epoch, one batch per epoch and offset, one history."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import attrs

from raftlog.file_paths import directory_of
from raftlog.invariants import instance_of
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.records.rules import Severity
from raftlog.tools.auditing.agreement.topic_id_rules import topic_id_file
from raftlog.tools.auditing.batch_reader import BatchReader
from raftlog.tools.auditing.evidence import ControlSeen, FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.divergence import Divergence, DivergenceKind, Side, divergences
from raftlog.tools.auditing.history.histories import by_history, first_leader
from raftlog.tools.auditing.history.lost_branches import proof_of_branch, proofs_of
from raftlog.tools.auditing.history.quorum_statements import Statement
from raftlog.tools.auditing.history.replicas import quorum_state_of
from raftlog.tools.auditing.history.verdict_words import proof_text
from raftlog.tools.auditing.proof.proofs import Proof
from raftlog.tools.catalogue.findings import Finding

_RULES: Final = {
    DivergenceKind.PREFIX: "replica-behind",
    DivergenceKind.TRUNCATED_TAIL: "replica-behind",
    DivergenceKind.APART: "replica-behind",
    DivergenceKind.CONFLICTING_EPOCH: "replica-forked",
    DivergenceKind.CONFLICTING_BATCH: "replica-batch",
    DivergenceKind.HEADER_ROT: "replica-batch",
    DivergenceKind.BIT_ROT: "replica-rot",
    DivergenceKind.LOST_RECORDS: "replica-lost",
    DivergenceKind.COMPACTION: "replica-compacted",
}

_CONTRADICTIONS: Final = frozenset(
    {DivergenceKind.CONFLICTING_EPOCH, DivergenceKind.CONFLICTING_BATCH, DivergenceKind.HEADER_ROT}
)
"""Kinds of differences in which one of two replicas is wrong; other replicas may show which one."""

_OLD: Final = "it was stopped, or restored from an older copy: if restored it must not vote before it has caught up"


def judge_replicas(replicas: Sequence[PartitionEvidence], read: BatchReader) -> Iterator[Finding]:
    """Report contradictions between replicas of one partition.

    Each replica is compared with the most up-to-date one, which would win an election: the one with the greatest last
    epoch, then the greatest end offset. If most replicas contradict that one in the same way, it is the one reported.

    Args:
        replicas: replicas of one topic and partition, in any order; fewer than two yield no findings.
        read: reads batches of a surveyed segment again, if digests differ.
    """
    histories = by_history(replicas, lambda replica: replica)
    yield from _judge_histories(histories)
    for of_one_cluster in histories:
        for of_one_topic in _by_topic_id(of_one_cluster):
            yield from _judge_history(of_one_topic, read)


@attrs.frozen
class LineageFault:
    """Why a replica is not of the lineage of the others.

    Attributes:
        finding: the contradiction.
        is_shown: whether something shows that it is this replica that is wrong: a later epoch, most replicas, a proof
            of what was committed, or a finding about its batch. Otherwise the other side may be the wrong one.
    """

    finding: Finding
    is_shown: bool


def sound_lineage_faults(replicas: Sequence[PartitionEvidence], read: BatchReader) -> dict[str, LineageFault]:
    """Return the replicas whose log is not of the lineage that the others show to be sound, each with why.

    Such a replica has forked, has another batch at an offset of an epoch, or has gone on without what is proven to be
    committed. One that only ends earlier, or is damaged, is of that lineage.

    Args:
        replicas: of one log: of one cluster, topic id and partition; each has segments.
        read: reads batches of a surveyed segment again.

    Returns:
        By the path of the log's directory, the first contradiction.
    """
    found: dict[str, LineageFault] = {}
    if len(replicas) > 1:
        for difference, finding in _judged_differences(replicas, read):
            if difference.of.kind in _CONTRADICTIONS:
                is_shown = difference.is_decided or finding.rule == "replica-lost"
                found.setdefault(directory_of(finding.path), LineageFault(finding, is_shown))
    return found


def _judged_differences(
    replicas: Sequence[PartitionEvidence], read: BatchReader
) -> Iterator[tuple["_Difference", Finding]]:
    blamed = list(_blamed(list(_differences(replicas, read)), replicas))
    proven = functools.cache(lambda: proofs_of(replicas))  # They may need files, and only forks need them.
    for difference in (*blamed, *_forks_of_others(blamed, replicas, read)):
        yield difference, _judge_difference(difference, replicas, proven)


def _judge_history(replicas: Sequence[PartitionEvidence], read: BatchReader) -> Iterator[Finding]:
    """Report contradictions between replicas of one log."""
    with_logs = [replica for replica in replicas if replica.segments]
    of_leaders = list(_judge_leaders(with_logs))
    yield from of_leaders
    if len(with_logs) < 2:
        return
    led_apart = {finding.offset for finding in of_leaders}
    lost = set[tuple[str, int | None]]()
    for difference, finding in _judged_differences(with_logs, read):
        is_led_apart = difference.of.kind is DivergenceKind.CONFLICTING_BATCH and difference.of.offset in led_apart
        if is_led_apart or _is_reported(difference.of, with_logs):
            continue
        # Who went on without what was committed is told once, not for each replica that kept it.
        if finding.rule != "replica-lost" or (finding.path, finding.offset) not in lost:
            yield finding
        if difference.of.kind is DivergenceKind.CONFLICTING_EPOCH:
            lost.add((finding.path, finding.offset))


def _forks_of_others(
    blamed: Sequence["_Difference"], replicas: Sequence[PartitionEvidence], read: BatchReader
) -> list["_Difference"]:
    """Return forks that are seen only without the newest replica, if that has forked too, and before them."""
    forked = {directory_of(each.of.right.path) for each in blamed if each.of.kind is DivergenceKind.CONFLICTING_EPOCH}
    newest = max(replicas, key=_up_to_date)
    others = [replica for replica in replicas if replica is not newest]
    if len(others) < 2 or directory_of(newest.segments[0].task.path) not in forked:
        return []
    of_others = list(_blamed(list(_differences(others, read)), others))
    of_others += _forks_of_others(of_others, others, read)
    return [
        each
        for each in of_others
        if each.of.kind is DivergenceKind.CONFLICTING_EPOCH and directory_of(each.of.right.path) not in forked
    ]


@attrs.frozen
class _Difference:
    """How a replica differs from the newest one.

    Attributes:
        of: the difference; findings are reported about its right side.
        newest_epoch: the newest replica's epoch at the offset of the difference.
        other: the replica that is compared with the newest one.
        newest: that one.
        is_decided: whether something shows which of the two is wrong, if they contradict each other.
    """

    of: Divergence
    newest_epoch: int | None
    other: PartitionEvidence
    newest: PartitionEvidence
    is_decided: bool = True

    @property
    def way(self) -> tuple[object, ...]:
        """A key that is equal for replicas that differ from the newest one in the same way."""
        return self.of.kind, self.of.offset, self.of.right.epoch, self.of.right.crc


def _differences(replicas: Sequence[PartitionEvidence], read: BatchReader) -> Iterator[_Difference]:
    """Compare replicas with the newest; offsets below its log start, with the newest replica that has them."""
    end_offset = None
    remaining = sorted(replicas, key=_up_to_date, reverse=True)
    while remaining:
        newest, *others = remaining
        for replica in others:
            for divergence in divergences(newest, replica, read, end_offset):
                yield _Difference(divergence, divergence.left.epoch, replica, newest)
        end_offset = newest.start_offset
        remaining = [replica for replica in others if replica.start_offset < end_offset]


def _up_to_date(replica: PartitionEvidence) -> tuple[int, int]:
    return replica.last_epoch, replica.end_offset


def _blamed(found: Sequence[_Difference], replicas: Sequence[PartitionEvidence]) -> Iterator[_Difference]:
    """Report differences; if most replicas differ from the newest in the same way, the newest is reported, once.

    A batch that breaks a rule by itself is the wrong one, however many replicas have it.
    """
    counts = Counter(difference.way for difference in found)
    seen: set[tuple[object, ...]] = set()
    for difference in found:
        divergence, way = difference.of, difference.way
        if divergence.kind not in _CONTRADICTIONS:
            yield difference
            continue
        holders = sum(each.start_offset <= divergence.offset < each.end_offset for each in replicas)
        is_left, is_right = (_is_suspect(side, replicas) for side in (divergence.left, divergence.right))
        if is_left == is_right and 2 * counts[way] <= holders:
            yield attrs.evolve(difference, is_decided=_is_newest_upheld(difference, found, replicas))
        elif way not in seen:
            seen.add(way)
            turned = attrs.evolve(divergence, left=divergence.right, right=divergence.left)
            yield difference if is_right and not is_left else attrs.evolve(difference, of=turned)


def _is_newest_upheld(
    difference: _Difference, found: Sequence[_Difference], replicas: Sequence[PartitionEvidence]
) -> bool:
    """Whether a later epoch, or most replicas, uphold the newest replica against one that contradicts it."""
    newest, offset = difference.newest, difference.of.offset
    if newest.last_epoch > difference.other.last_epoch:
        return True
    against = {
        each.other.place
        for each in found
        if each.newest is newest and each.of.kind in _CONTRADICTIONS and each.of.offset <= offset
    }
    holders = [each.place for each in replicas if each.start_offset <= offset < each.end_offset]
    return 2 * sum(place not in against for place in holders) > len(holders)


def _is_suspect(side: Side, replicas: Sequence[PartitionEvidence]) -> bool:
    """Whether a finding above harmless is about the batch of one side."""
    files = (file for replica in replicas for file in replica.segments if file.task.path == side.path)
    return side.position is not None and any(_has_finding_at(side.position, file) for file in files)


def _has_finding_at(position: int, file: FileEvidence) -> bool:
    """Whether a finding above harmless is about the batch at a position of a segment."""
    at = (each for each in file.findings if each.position == position and each.path == file.task.path)
    return any(finding.severity > Severity.HARMLESS for finding in at)


def _judge_difference(
    difference: _Difference, replicas: Sequence[PartitionEvidence], proven: Callable[[], Sequence[Proof]]
) -> Finding:
    divergence = difference.of
    rule = _RULES[divergence.kind]
    if divergence.kind is DivergenceKind.CONFLICTING_EPOCH:
        proof = proof_of_branch(difference.other, divergence.offset, difference.newest_epoch, proven())
        if proof is not None:
            return _lost(difference, proof)
    side, reason = divergence.right, describe(divergence)
    if rule == "replica-behind" and side.epoch is None and _is_old(difference.other, replicas):
        reason = f"{reason}; {_OLD}"
    return Finding(side.path, rule, reason, side.position, offset=divergence.offset, epoch=divergence.epoch)


def _lost(difference: _Difference, proof: Proof) -> Finding:
    """Return that the newest replica went on without what is proven: it is the one that is named."""
    divergence = difference.of
    if divergence.right.epoch != difference.newest_epoch:
        divergence = attrs.evolve(divergence, left=divergence.right, right=divergence.left)
    side, branch = divergence.right, difference.other.place.log_directory
    reason = f"{describe(divergence)}; but {proof_text(proof)} proves that what {branch} has was committed"
    return Finding(side.path, "replica-lost", reason, side.position, offset=divergence.offset, epoch=side.epoch)


def _is_old(replica: PartitionEvidence, replicas: Sequence[PartitionEvidence]) -> bool:
    """Whether a raft replica has only epochs that are earlier than those of each other replica."""
    state = quorum_state_of(replica.small_file(FileKind.QUORUM_STATE))
    least = min((other.last_epoch for other in replicas if other is not replica), default=-1)
    return state is not None and max(state.leader_epoch, replica.last_epoch) < least


def _is_reported(divergence: Divergence, replicas: Sequence[PartitionEvidence]) -> bool:
    """Whether one of two batches has a finding of its own that is at least as severe."""
    if divergence.kind not in {DivergenceKind.HEADER_ROT, DivergenceKind.CONFLICTING_BATCH}:
        return False
    paths = {divergence.left.path, divergence.right.path}
    return any(
        finding.severity >= Severity.DAMAGED
        for replica in replicas
        for file in replica.segments
        for finding in file.findings
        if finding.path in paths and (finding.offset == divergence.offset or _is_of_epoch(finding, divergence))
    )


def _is_of_epoch(finding: Finding, divergence: Divergence) -> bool:
    """Whether a finding reports an epoch that does not start with a LeaderChange, because of a changed header."""
    epochs = {divergence.left.epoch, divergence.right.epoch}
    is_opening = finding.rule == "epoch-opening" and finding.epoch in epochs
    return is_opening and divergence.kind is DivergenceKind.HEADER_ROT


def describe(divergence: Divergence) -> str:
    """Describe in a sentence how two logs differ, from the side of the right one."""
    left, right, offset = divergence.left, divergence.right, divergence.offset
    count = divergence.end_offset - offset
    match divergence.kind:
        case DivergenceKind.APART:
            return f"it has no offset in common with {left.path}"
        case DivergenceKind.PREFIX | DivergenceKind.TRUNCATED_TAIL:
            is_cut, offsets = divergence.kind is DivergenceKind.TRUNCATED_TAIL, "offset" if count == 1 else "offsets"
            if right.epoch is None:
                cut = " in a torn write" if is_cut else ""
                return f"the log ends at offset {offset}{cut}: {count} {offsets} fewer than {left.path}"
            cut = f", at which {left.path} has a torn write" if is_cut else ""
            return f"the log continues after offset {offset}{cut}: {count} {offsets} more than {left.path}"
        case DivergenceKind.CONFLICTING_EPOCH:
            return f"epoch {right.epoch} from offset {offset} on, but {left.path} has epoch {left.epoch}"
        case DivergenceKind.CONFLICTING_BATCH:
            return f"the batch has CRC {right.crc}, but CRC {left.crc} in {left.path}, and both are valid"
        case DivergenceKind.HEADER_ROT:
            return (
                f"the batch has epoch {right.epoch}, but epoch {left.epoch} in {left.path}, with the same CRC: "
                "a header was changed"
            )
        case DivergenceKind.BIT_ROT:
            whole, broken = (left, right) if right.epoch is None else (right, left)
            return f"{_offsets(offset, count)} damaged or missing in {broken.path}, and sound in {whole.path}"
        case DivergenceKind.LOST_RECORDS:
            there, here = (left, right) if right.epoch is None else (right, left)
            return f"{_offsets(offset, count)} in {there.path}, but not in {here.path}"
        case DivergenceKind.COMPACTION:
            return f"compaction kept other records between offsets {offset} and {divergence.end_offset} in {left.path}"


def _offsets(start: int, count: int) -> str:
    return f"offset {start} is" if count == 1 else f"offsets {start} to {start + count - 1} are"


def _by_topic_id(replicas: Sequence[PartitionEvidence]) -> Collection[list[PartitionEvidence]]:
    """Divide replicas by topic id; replicas without one are with the first. Raft logs all have one topic id."""
    by_id: dict[object, list[PartitionEvidence]] = {}
    for replica in replicas:
        file = None if replica.is_raft else topic_id_file(replica)
        usual = next(iter(by_id), None)
        topic_id = usual if file is None or file.contents is None else file.contents["topic_id"]
        by_id.setdefault(topic_id, []).append(replica)
    return by_id.values()


def _judge_histories(histories: Sequence[Sequence[PartitionEvidence]]) -> Iterator[Finding]:
    """Report logs of another cluster, one log per cluster."""
    for (first, *_), of_other in itertools.product(histories[:1], histories[1:]):
        path, seen = of_other[0].files[0].task.path, None
        reason = f"this log and the one in {first.place.log_directory} have no record and no voter in common"
        mine, theirs = first_leader(of_other[0]), first_leader(first)
        if mine is not None and theirs is not None:
            path, seen = mine.file.task.path, mine.seen
            reason = f"{_led_text(mine)}, but in {theirs.file.task.path} {_led_text(theirs)}"
        reason += ": they are two clusters with one id, which are not compared further"
        yield Finding(
            path,
            "cluster-twice",
            reason,
            None if seen is None else seen.position,
            offset=None if seen is None else seen.offset,
            epoch=None if seen is None else seen.epoch,
        )


def _led_text(opening: Statement) -> str:
    change = instance_of(opening.value, LeaderChangeMessage)
    ids = ", ".join(str(voter.id) for voter in change.voters)
    return f"epoch {opening.seen.epoch} begins with leader {change.leader_id} of voters {ids}"


def _judge_leaders(replicas: Sequence[PartitionEvidence]) -> Iterator[Finding]:
    """Report replicas whose leader of an epoch differs from that in most replicas, unless its record is reported."""
    by_epoch: dict[int, list[tuple[int, ControlSeen, str]]] = {}
    for replica in replicas:
        known: set[int] = set()  # Another rule reports two leaders of an epoch in one log.
        for file in replica.segments:
            for control, message in file.control_values():
                if not isinstance(message, LeaderChangeMessage) or control.epoch in known:
                    continue
                known.add(control.epoch)
                if not _has_finding_at(control.position, file):
                    by_epoch.setdefault(control.epoch, []).append((message.leader_id, control, file.task.path))
    for epoch, said in by_epoch.items():
        usual = Counter(leader_id for leader_id, _, _ in said).most_common(1)[0][0]
        witness = next(path for leader_id, _, path in said if leader_id == usual)
        for leader_id, control, path in said:
            if leader_id != usual:
                reason = f"epoch {epoch} is led by {leader_id}, but in {witness} by {usual}"
                yield Finding(path, "replica-leader", reason, control.position, offset=control.offset, epoch=epoch)
