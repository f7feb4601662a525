# SPDX-License-Identifier: Apache-2.0
"""Writes the results of ``raftlog verify-mirror`` as tables (``mirror_columns``), a summary and a page."""

import contextlib
import datetime
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from raftlog import __version__
from raftlog.records.rules import Severity
from raftlog.tools.auditing.run.audit_output import AuditOutput
from raftlog.tools.auditing.run.object_store_output import open_output
from raftlog.tools.catalogue.audit_columns import Row
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.following import GroupMove, MirrorFinding
from raftlog.tools.mirrors.pair_findings import PairFinding
from raftlog.tools.mirrors.pair_report import MirrorOutcome, PairReport
from raftlog.tools.mirrors.pairing import MirrorPair
from raftlog.tools.mirrors.reporting.mirror_columns import OF_MIRRORS
from raftlog.tools.mirrors.reporting.mirror_page import mirror_page
from raftlog.tools.terminal.standard_error import unicode_text

_GREATEST: Final = (1 << 63) - 1
"""The greatest offset of a column: an end after it, of a sync that names it, is told as that."""


@contextlib.contextmanager
def opened_results(out: str) -> Iterator[Callable[[MirrorOutcome], None]]:
    """Open a directory, or a URI in an object store, before work begins; what is returned writes all results to it.

    Args:
        out: where to. It is made if it is not there; that of earlier runs keeps theirs.

    Raises:
        LogDirectoryError: there is something else, or another run writes there.
        StorageError: it cannot be written.
        MissingExtraError: pyarrow is not installed.
    """
    started = datetime.datetime.now(datetime.UTC)
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with open_output(out, run_id, OF_MIRRORS) as output:
        yield lambda outcome: _write(output, run_id, outcome, started)


def _write(output: AuditOutput, run_id: str, outcome: MirrorOutcome, started: datetime.datetime) -> None:
    for table, row in _rows(outcome):
        output.add(table, row)
    row = _run_row(outcome, started, datetime.datetime.now(datetime.UTC))
    output.add("runs", row)
    times = {name: row[name].isoformat(timespec="milliseconds") for name in ("started", "finished")}
    summary = {"run_id": run_id, "success": outcome.verdict == "clean", **row, **times}
    output.complete(summary, mirror_page(outcome, run_id))


def _rows(outcome: MirrorOutcome) -> Iterator[tuple[str, Row]]:
    source, target = outcome.flow.aliases
    for report in outcome.pairs:
        yield "pairs", _pair_row(report)
        yield from (("findings", _finding_row(each)) for each in report.findings)
        for alias, moves in ((source, report.moves), (target, report.moves_back)):
            yield from (("moves", _move_row(report.pair, alias, each)) for each in moves)
    yield from (("findings", _flow_row(each)) for each in outcome.flow_findings)
    yield from (("findings", _file_row(each)) for each in outcome.problems)
    syncs = {} if outcome.flow.syncs is None else outcome.flow.syncs.syncs
    found = sorted((each.offset, place, each) for place, of_place in syncs.items() for each in of_place)
    for offset, (topic, partition), each in found:
        yield (
            "syncs",
            {
                "topic": unicode_text(topic),
                "partition": partition,
                "upstream_offset": each.upstream,
                "downstream_offset": each.downstream,
                "producer_id": each.producer_id,
                "sync_offset": offset,
                "timestamp": _time(each.timestamp_ms),
            },
        )


def _run_row(outcome: MirrorOutcome, started: datetime.datetime, finished: datetime.datetime) -> Row:
    flow = outcome.flow
    return {
        "raftlog_version": __version__,
        "started": started,
        "finished": finished,
        "sources": list(map(unicode_text, outcome.sources)),
        "targets": list(map(unicode_text, outcome.targets)),
        "source_alias": unicode_text(flow.aliases[0]),
        "target_alias": unicode_text(flow.aliases[1]),
        "policy": flow.policy_name,
        "verdict": outcome.verdict,
        "pairs": len(outcome.pairs),
        **attrs.asdict(outcome.counts),
        **{severity.value.replace("-", "_"): outcome.severities[severity] for severity in Severity},
    }


def _pair(pair: MirrorPair) -> Row:
    topics = {"source_topic": unicode_text(pair.source), "target_topic": unicode_text(pair.target)}
    return topics | {"partition": pair.partition}


def _pair_row(report: PairReport) -> Row:
    result, (source, target) = report.result, report.replicas
    return _pair(report.pair) | {
        "worst": report.worst.value,
        **attrs.asdict(result.counts),
        "anchors_equal": result.equal_anchors,
        "anchors_unverifiable": result.unverifiable_anchors,
        "anchors_wrong": result.wrong_anchors,
        "lifetimes": result.lifetimes,
        "next_source_offset": result.next_source,
        "source_directory": unicode_text(source.directory),
        "source_reason": unicode_text(source.reason),
        "target_directory": unicode_text(target.directory),
        "target_reason": unicode_text(target.reason),
    }


def _finding_row(each: PairFinding) -> Row:
    places: dict[str, Any] = {}
    for side, place in (("source", each.source), ("target", each.target)):
        end = None if place is None else min(place.end, _GREATEST)
        places |= {f"{side}_start_offset": place and place.start, f"{side}_end_offset": end}
    return _about(each) | _pair(each.pair) | places


def _flow_row(each: MirrorFinding) -> Row:
    times = {"since": _time(each.since_ms), "until": _time(each.until_ms)}
    return _about(each) | {"subject": unicode_text(each.subject)} | times


def _file_row(each: Finding) -> Row:
    return _about(each) | {"file": unicode_text(each.path), "position": each.position, "offset": each.offset}


def _about(each: PairFinding | MirrorFinding | Finding) -> Row:
    return {"rule": each.rule, "severity": each.severity.value, "reason": unicode_text(each.reason)}


def _move_row(pair: MirrorPair, alias: str, each: GroupMove) -> Row:
    fields = attrs.asdict(each)
    times = {name: _time(fields.pop(f"{name}_ms")) for name in ("newest_source", "newest_target")}
    names = {"from_alias": unicode_text(alias), "group": unicode_text(each.group), "origin": each.origin.value}
    return _pair(pair) | fields | names | times


def _time(time_ms: int | None) -> int | None:
    """Return a time as a column takes it; null if it is not known."""
    return None if time_ms is None or time_ms < 0 else time_ms
