# SPDX-License-Identifier: Apache-2.0
"""The output of ``raftlog verify-mirror``: lines for people, or JSON lines (``docs/verify-mirror-1.schema.json``)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.following import GroupMove, MirrorFinding
from raftlog.tools.mirrors.pair_findings import PairFinding
from raftlog.tools.mirrors.pair_report import FlowReport, MirrorOutcome, PairReport
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reading.flow import FoundSyncs
from raftlog.tools.mirrors.reading.replica_choice import ReplicaChoice
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.value_text import time_text
from raftlog.tools.terminal.verb_output import Fact

_NONE: Final = "-"
_MOVE_COLUMNS: Final = (
    *("GROUP", "PARTITION", "COMMITTED", "GOES ON AT", "BY", "READ AGAIN", "SKIPPED", "MISSING"),
    *("NEWEST IN SOURCE", "NEWEST IN TARGET"),
)
_MOVE_NUMBERS: Final = frozenset({2, 3, 5, 6, 7})


def flow_fact(flow: FlowReport) -> Fact:
    """Return what the flow was taken to be, and where that is from; and which metadata could not be read."""
    fact = _same_offsets_fact(flow) if flow.syncs is None else _synced_fact(flow, flow.syncs)
    source, target = flow.metadata
    members = {"source_metadata": source.value, "target_metadata": target.value}
    return Fact([*fact.lines[:-1], *flow.left_undone, ""], "flow", {**fact.members, **members})


def _synced_fact(flow: FlowReport, syncs: FoundSyncs) -> Fact:
    lag = flow.config.properties.get("offset.lag.max") if flow.config else None
    where = f"as {flow.config.topic} of the target says" if flow.config else "as the options say"
    words = [f"policy {flow.policy_name}", f"separator {flow.policy.separator!r}"]
    words += [] if lag is None else [f"offset.lag.max {lag}"]
    words += [] if flow.isolation is None else [flow.isolation]
    words += ["with transforms"] if flow.config and flow.config.has_transforms else []
    cluster = "target" if syncs.is_on_target else "source"
    count = sum(map(len, syncs.syncs.values()))
    source, target = flow.aliases
    lines = [
        f"{source} -> {target}: {', '.join(words)}, {where}.",
        f"{count:,} offset syncs are in {syncs.topic} of the {cluster}.",
        "",
    ]
    members = {
        "source_alias": source,
        "target_alias": target,
        "policy": flow.policy_name,
        "separator": flow.policy.separator,
        "isolation": flow.isolation,
        "config_topic": flow.config.topic if flow.config else None,
        "has_transforms": flow.config.has_transforms if flow.config else None,
        "syncs_topic": syncs.topic,
        "syncs_cluster": cluster,
        "syncs": count,
    }
    return Fact(lines, "flow", members)


def _same_offsets_fact(flow: FlowReport) -> Fact:
    source, target = flow.aliases
    names = ("separator", "isolation", "config_topic", "has_transforms", "syncs_topic", "syncs_cluster")
    members: dict[str, Any] = {"source_alias": source, "target_alias": target, "policy": flow.policy_name, "syncs": 0}
    members |= dict.fromkeys(names) | {"left_out": list(flow.left_out)}
    lines = [f"{source} -> {target}: policy {flow.policy_name}, as the options say."]
    if flow.left_out:
        lines.append(f"Not compared, since each cluster has its own: {', '.join(flow.left_out)}.")
    return Fact([*lines, ""], "flow", members)


def pair_facts(report: PairReport, *, has_syncs: bool = True) -> Iterator[Fact]:
    """Yield what was found of a pair: its counts, then its findings.

    Args:
        report: of the pair.
        has_syncs: whether there are anchors to be told of.
    """
    result, counts = report.result, report.result.counts
    parts = [f"{counts.compared:,} records compared"]
    parts += [f"{count:,} {word}" for count, word in _other_counts(report) if count]
    parts += [f"{result.equal_anchors:,} of {result.anchors:,} anchors equal"] if has_syncs else []
    parts += [f"{count:,} {word}" for count, word in _anchor_counts(report) if count]
    members: dict[str, Any] = {
        "source": _partition(report.pair.source, report.pair.partition),
        "target": _partition(report.pair.target, report.pair.partition),
        "compared": counts.compared,
        "unverifiable": counts.unverifiable,
        "lag": counts.lag,
        "aborted": counts.aborted,
        "anchors_equal": result.equal_anchors,
        "anchors_unverifiable": result.unverifiable_anchors,
        "anchors_wrong": result.wrong_anchors,
        "lifetimes": result.lifetimes,
        "next_source_offset": result.next_source,
        "source_replica": _replica(report.replicas[0]),
        "target_replica": _replica(report.replicas[1]),
    }
    yield Fact([f"{report.pair}: {', '.join(parts)}", *_replica_lines(report)], "pair", members)
    for each in report.findings:
        yield Fact(f"  {each.severity.value}: {each.reason} [{each.rule}]", "finding", _finding(each))


def flow_finding_facts(found: Sequence[MirrorFinding]) -> Iterator[Fact]:
    """Yield what was found of heartbeats and names."""
    for number, each in enumerate(found):
        gap = "" if each.since_ms is None or each.until_ms is None else f", {_times(each.since_ms, each.until_ms)}"
        line = f"{each.subject}: {each.severity.value}: {each.reason}{gap} [{each.rule}]"
        members = {
            "rule": each.rule,
            "severity": each.severity.value,
            "subject": each.subject,
            "reason": each.reason,
            "since_ms": each.since_ms,
            "until_ms": each.until_ms,
        }
        yield Fact(["", line] if number == 0 else [line], "flow_finding", members)


def move_facts(flow: FlowReport, reports: Sequence[PairReport]) -> Iterator[Fact]:
    """Yield what becomes of each group that moves to the target, and of each that comes back, as two tables."""
    source, target = flow.aliases
    for words, origin, moves in (
        (f"Groups that move from {source} to {target} now", source, [(each.pair, each.moves) for each in reports]),
        (f"Groups that come back to {source} then", target, [(each.pair, each.moves_back) for each in reports]),
    ):
        found = [(pair, each) for pair, of_pair in moves for each in of_pair]
        if not found:
            continue
        rows = [_MOVE_COLUMNS, *(_move_row(pair, each) for pair, each in found)]
        lines = table(rows, _MOVE_NUMBERS)
        yield Fact(["", f"{words}:", lines[0]], "moves", {"from": origin, "groups": len(found)})
        for line, (pair, each) in zip(lines[1:], found, strict=True):
            yield Fact(line, "move", _move_members(pair, each, origin))


def _move_row(pair: MirrorPair, each: GroupMove) -> tuple[object, ...]:
    counts = (_NONE if count is None else count for count in (each.read_again, each.skipped, each.missing))
    times = (_NONE if ms is None else time_text(ms) for ms in (each.newest_source_ms, each.newest_target_ms))
    committed = _NONE if each.committed is None else each.committed
    partition = f"{pair.source}-{pair.partition}"
    return (each.group, partition, committed, each.position, each.origin.value, *counts, *times)


def _move_members(pair: MirrorPair, each: GroupMove, origin: str) -> dict[str, Any]:
    return {
        "from": origin,
        "group": each.group,
        "source": _partition(pair.source, pair.partition),
        "target": _partition(pair.target, pair.partition),
        "committed": each.committed,
        "translated": each.translated,
        "position": each.position,
        "origin": each.origin.value,
        "read_again": each.read_again,
        "skipped": each.skipped,
        "missing": each.missing,
        "newest_source_ms": each.newest_source_ms,
        "newest_target_ms": each.newest_target_ms,
    }


def _times(since_ms: int, until_ms: int) -> str:
    return f"from {time_text(since_ms)} to {time_text(until_ms)}"


def total_fact(outcome: MirrorOutcome) -> Fact:
    """Return what was found of all pairs, of the flow and of files."""
    reports, severities, compared = outcome.pairs, outcome.severities, outcome.counts.compared
    serious = [(each, severities[each]) for each in reversed(Severity) if severities[each]]
    words = ", ".join(f"{count:,} {each.value}" for each, count in serious if each is not Severity.HARMLESS)
    line = f"{len(reports):,} pairs, {compared:,} records compared: {words or 'no finding above harmless'}."
    members = {"pairs": len(reports), "compared": compared, "findings": {each.value: count for each, count in serious}}
    return Fact(["", line] if reports else ["There are no pairs."], "total", members)


def _replica_lines(report: PairReport) -> Iterator[str]:
    """Yield which replica was compared of each side that has several, and why not the others."""
    for side, choice in zip(("source", "target"), report.replicas, strict=True):
        if choice.passed:
            yield f"  {side} replica {choice.directory}: {choice.reason}"
            yield from (f"    not {each.directory}: {each.reason}" for each in choice.passed)


def _replica(choice: ReplicaChoice) -> dict[str, Any]:
    others = [path_member("directory", each.directory) | {"reason": each.reason} for each in choice.passed]
    return path_member("directory", choice.directory) | {"reason": choice.reason, "not_compared": others}


def _other_counts(report: PairReport) -> Iterator[tuple[int, str]]:
    counts = report.result.counts
    yield counts.unverifiable, "unverifiable"
    yield counts.lag, "not mirrored yet"
    yield counts.aborted, "aborted ones left out"


def _anchor_counts(report: PairReport) -> Iterator[tuple[int, str]]:
    yield report.result.unverifiable_anchors, "unverifiable"
    yield report.result.wrong_anchors, "wrong"


def _partition(topic: str, partition: int) -> dict[str, Any]:
    return {"topic": topic, "partition": partition}


def _finding(each: PairFinding) -> dict[str, Any]:
    pair = each.pair
    return {
        "rule": each.rule,
        "severity": each.severity.value,
        "source": _partition(pair.source, pair.partition) | _range(each.source),
        "target": _partition(pair.target, pair.partition) | _range(each.target),
        "reason": each.reason,
    }


def _range(place: OffsetRange | None) -> dict[str, Any]:
    return {
        "start_offset": None if place is None else place.start,
        "end_offset": None if place is None else place.end,
    }
