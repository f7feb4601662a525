# SPDX-License-Identifier: Apache-2.0
"""The sentences of a report: the verdict, which replicas to keep, what to fetch again, and what is safe."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog.file_paths import name_of
from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.history.verdict_words import advice_words, fork_text, quorum_verdict, seed_has_all
from raftlog.tools.auditing.proof.restart import Way
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from raftlog.tools.auditing.run.run import Account
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.report.gathering import Gathering, LogFacts, ReplicaFacts, is_serious

_NAMED: Final = 12
"""The most directories that one sentence names."""
_DESCRIBED: Final = 3
"""The most places of damage that one sentence describes."""
_INDEXES: Final = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX})
_FEW_REPLICAS: Final = 3
"""Up to this many damaged replicas of topics' partitions are described one by one; more are grouped by rule."""


def headline(gathering: Gathering) -> str:
    """Return the verdict of an audit, and whether raft logs lack committed records, as sound files may not be all."""
    text = verdict_text(gathering.account)
    views = _views(gathering)
    verdicts = {view.judgement.ruling.verdict for view in views}
    if colour_of(gathering) != gathering.account.verdict:
        files = _count(gathering.account.files, "file")
        return f"Not known: the {files} here are sound, and cannot tell whether committed records are missing"
    if QuorumVerdict.UNKNOWN in verdicts:
        return f"{text}. Whether committed records of a raft log are missing, these files cannot tell"
    if QuorumVerdict.MISSING in verdicts:
        missing = [view for view in views if view.judgement.ruling.verdict is QuorumVerdict.MISSING]
        return f"{text}. A copy here still has all that is proven" if all(map(seed_has_all, missing)) else text
    if views and gathering.account.verdict in {"damaged", "data-loss"}:
        return f"{text}. No committed record of a raft log is missing"
    return text


def colour_of(gathering: Gathering) -> str:
    """Return the verdict that the headline has the colour of: sound files that cannot tell of a loss are not clean."""
    is_unknown = any(view.judgement.ruling.verdict is QuorumVerdict.UNKNOWN for view in _views(gathering))
    return "unreadable" if is_unknown and gathering.account.verdict == "clean" else gathering.account.verdict


def _views(gathering: Gathering) -> list[QuorumView]:
    return [log.view for log in gathering.logs.values() if log.view is not None]


def verdict_text(account: Account) -> str:
    """Return the verdict of an audit, as one line."""
    counts = account.by_severity
    damaged = _count(counts[Severity.DAMAGED], "finding") + " of damage"
    bytes_text = f", {account.damaged_bytes:,} bytes are in no sound batch" if account.damaged_bytes else ""
    match account.verdict:
        case "clean":
            return f"Clean: nothing above harmless in {_count(account.files, 'file')}"
        case "suspicious":
            return f"Suspicious: {_count(counts[Severity.SUSPICIOUS], 'finding')} to look at, nothing is damaged"
        case "unreadable":
            return f"Not known: {_count(account.unreadable, 'file', 'files or directories')} not readable"
        case "damaged":
            return f"Damaged: {damaged}{bytes_text}"
        case _:
            lost = _count(counts[Severity.DATA_LOSS], "finding") + " of lost records"
            more = f", {damaged}" if counts[Severity.DAMAGED] else ""
            return f"Data is lost: {lost}{more}{bytes_text}"


def next_steps(gathering: Gathering) -> Iterator[str]:
    """Yield the steps to take, each in one or two sentences, the most urgent first; none if nothing is to be done."""
    verdict = gathering.account.verdict
    if gathering.account.unreadable:
        yield (
            f"{_count(gathering.account.unreadable, 'file or directory', 'files or directories')} could not be read:"
            " fix that, and run the audit again. Until then, nothing here is known to be sound."
        )
    if verdict in {"damaged", "data-loss"}:
        yield "Before you start or delete anything, copy all directories as they are: each may have what others lost."
    is_grouped = sum(each.count for each in gathering.damaged.values()) > _FEW_REPLICAS
    for log in gathering.logs.values():
        prefix = f"{log.label}: " if gathering.logs.offered > 1 else ""
        if is_serious(log.worst) or (log.view is not None and _is_to_do(log.view)):
            yield from (prefix + line for line in _log_steps(log, is_grouped=is_grouped))
    if is_grouped:
        yield from _grouped_damage(gathering)
    if verdict == "suspicious":
        yield from _to_look_at(gathering)


def _to_look_at(gathering: Gathering) -> Iterator[str]:
    """Yield a sentence for each rule with suspicious findings: a normal trace of a crash, or a real problem."""
    suspicious = {rule: each for rule, each in gathering.first_of_rule.items() if each.severity is Severity.SUSPICIOUS}
    for rule, first in list(suspicious.items())[:_NAMED]:
        count = gathering.account.by_rule[rule]
        more = "" if count == 1 else f", and {count - 1:,} more of this rule"
        yield f"Look at {first.path}: {first.reason}{more}. One cause of that: {CATALOGUE[rule].example}."
    if len(suspicious) > _NAMED:
        yield f"{_count(len(suspicious) - _NAMED, 'more rule', 'more rules')}: see the findings."


def _grouped_damage(gathering: Gathering) -> Iterator[str]:
    """Yield a sentence for all replicas of partitions that break the same rule."""
    groups = sorted(gathering.damaged.items(), key=lambda each: (-each[1].count, each[0]))
    for (rule, has_sound), replicas in groups:
        claim = CATALOGUE[rule].claim
        way = (
            "Other replicas of these partitions that are here are undamaged: fetch again from them."
            if has_sound
            else "No undamaged replica of them was given: look for one before you delete anything."
        )
        counted = _count(replicas.count, "replica breaks", "replicas break")
        yield f"{counted} the rule {rule}, that {claim}: {_named(replicas.names, replicas.count)}. {way}"


def safe_texts(gathering: Gathering) -> Iterator[str]:
    """Yield what is safe, as sentences."""
    logs = gathering.files
    unread = gathering.account.unread_bytes
    yield (
        f"{gathering.sound_file_count:,} of {logs.offered:,} segments and snapshots have no finding above harmless"
        " inside them."
    )
    count = gathering.clean_place_count
    if count:
        names = _named(gathering.clean_places, count)
        yield f"{_count(count, 'partition')} without such a finding in any file: {names}."
    if unread:
        yield (
            f"{unread:,} bytes were not read, so they may be damaged: they belong to no log, to files that are being"
            " deleted, or to files that could not be read."
        )


def replica_name(replica: ReplicaFacts) -> str:
    """Return the name of a replica: its node, if that is known, and its directory."""
    return replica.log_directory if replica.node_id is None else f"node {replica.node_id} ({replica.log_directory})"


# One log


def _is_to_do(view: QuorumView) -> bool:
    """Whether a quorum needs more than to start all its voters."""
    judgement = view.judgement
    is_whole = judgement.ruling.verdict is QuorumVerdict.NOTHING_MISSING and judgement.way is Way.START
    return not is_whole or bool(judgement.stay_down)


def _log_steps(log: LogFacts, *, is_grouped: bool) -> Iterator[str]:
    if log.view is not None:
        yield from _quorum_steps(log, log.view)
        yield from _to_copy(log, log.view)
    elif forked := [replica_name(replica) for replica in log.replicas if replica.is_forked]:
        yield (
            f"These contradict the most up-to-date replica: {_named(forked, len(forked))}. One side will be truncated."
            " The findings of replica-* rules say where they diverge; keep both sides until the cause is understood."
        )
    if log.is_raft or not is_grouped:
        yield from _to_fetch(log)


def _quorum_steps(log: LogFacts, view: QuorumView) -> Iterator[str]:
    """Yield the verdict on a quorum and what follows from it; the verdict alone if all voters can be started."""
    judgement = view.judgement
    yield f"{quorum_verdict(view)}."
    yield from (f"Fork: {fork_text(fork)}." for fork in judgement.forks)
    yield from _majority(view)
    if not _is_to_do(view) and not judgement.forks:
        return
    yield from advice_words(judgement)
    seeds = [each for each in log.replicas if judgement.seed and each.log_directory == judgement.seed.path]
    if doubts := sum(replica.counts[Severity.SUSPICIOUS] for replica in seeds):
        yield f"Look first at the {_count(doubts, 'suspicious finding')} there."


def _majority(view: QuorumView) -> Iterator[str]:
    if not len(view.voters):
        yield "Nothing here names the voters: add the directories of the other nodes."
    elif not view.has_majority:
        absent = ", ".join(str(member.key.id) for member in view.members if member.status == "Absent" and member.key)
        unfit = f", {view.quarantined} of them in quarantine" if view.quarantined else ""
        counts = f"Only {view.present} of {len(view.voters)} voters are here{unfit}"
        yield f"{counts}, but {view.voters.majority_size} are needed{_to_get(absent)}"


def _to_get(absent: str) -> str:
    if not absent:
        return "."
    return f": get the directories of {absent} before you decide. They may have committed records that are not here."


def _to_copy(log: LogFacts, view: QuorumView) -> Iterator[str]:
    """Yield which part of a log to copy before startup recovery truncates it."""
    damaged_from = {member.path: member.damaged_from for member in view.members}
    starts = [(replica, damaged_from.get(replica.log_directory)) for replica in log.replicas]
    places = [f"{replica_name(replica)} from offset {start} on" for replica, start in starts if start is not None]
    if places:
        yield f"Copy before a restart truncates it: what is left of {_named(places, len(places))}."


def _to_fetch(log: LogFacts) -> Iterator[str]:
    damaged = [replica for replica in log.replicas if replica.is_damaged]
    for replica in damaged[:_NAMED]:
        yield _fetch_text(log, replica)
    if len(damaged) > _NAMED:
        yield f"{len(damaged) - _NAMED:,} more replicas are damaged: the table of replicas shows where."
    if damaged and log.is_raft:
        yield (
            "Replace one replica at a time, while a majority runs without it. If voters have directory ids, an emptied"
            " node is a new voter: remove the old one, and add the new one once it has caught up."
        )


def _fetch_text(log: LogFacts, replica: ReplicaFacts) -> str:
    name = replica_name(replica)
    if replica.damage_count == len(replica.damage) and all(map(_is_of_index, replica.damage)):
        first = replica.damage[0]
        way = "Kafka builds all indexes of a segment anew whose .index is deleted while the node is down"
        return f"On {name} only indexes are damaged, no record ({first.path}: {first.reason}). {way}."
    found = {finding.offset: finding for finding in reversed(replica.damage) if finding.offset is not None}
    if not found:
        return f"{name} is damaged, but no record is known to be damaged: {replica.damage[0].reason}."
    offsets = sorted(found)
    places = ", ".join(f"offset {offset} ({found[offset].reason})" for offset in offsets[:_DESCRIBED])
    more = f" and more: {replica.damage_count:,} findings of damage" if len(offsets) > _DESCRIBED else ""
    sources = [replica_name(other) for other in log.replicas if _has(other, replica, offsets)]
    if sources:
        return f"Fetch again from {_named(sources, len(sources))} what is damaged on {name}: {places}{more}."
    if len(log.replicas) > 1:
        return f"No undamaged replica here has all that is damaged on {name}: {places}{more}."
    return f"No other replica was given to replace what is damaged on {name}: {places}{more}."


def _is_of_index(finding: Finding) -> bool:
    name = parse_file_name(name_of(finding.path))
    return name is not None and name.kind in _INDEXES


def _has(source: ReplicaFacts, damaged: ReplicaFacts, offsets: Sequence[int]) -> bool:
    """Whether a replica certainly has the records that are damaged on another one."""
    if source is damaged or source.is_damaged or source.is_forked or damaged.is_forked:
        return False
    return source.start_offset <= offsets[0] and offsets[-1] < source.end_offset


def _named(names: Sequence[str], count: int) -> str:
    more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
