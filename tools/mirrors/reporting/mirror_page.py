# SPDX-License-Identifier: Apache-2.0
"""The page of ``raftlog verify-mirror``, for the operator who fails over: one file, without scripts or the network."""

from collections.abc import Iterator, Sequence
from typing import Final

from raftlog import __version__
from raftlog.records.rules import Severity
from raftlog.tools.mirrors.pair_report import MirrorOutcome
from raftlog.tools.mirrors.reporting.mirror_advice import next_steps
from raftlog.tools.mirrors.reporting.mirror_sections import (
    differences_section,
    files_section,
    moves_section,
    names_section,
    pairs_section,
    replicas_section,
    times_section,
)
from raftlog.tools.report.markup import Markup, element
from raftlog.tools.report.page import document, section
from raftlog.tools.report.tables import Cell, facts, listed
from raftlog.tools.terminal.value_text import counted

_MOST_PATHS: Final = 20
_TOLD: Final = (
    ("topics", "Topics"),
    ("topics.exclude", "Topics that are left out"),
    ("offset.lag.max", "offset.lag.max"),
    ("transforms", "Transforms"),
    ("sync.group.offsets.enabled", "Offsets of groups are synced"),
    ("emit.heartbeats.interval.seconds", "Seconds between heartbeats"),
)
"""Properties of the connector that are shown; others may hold secrets."""


def mirror_page(outcome: MirrorOutcome, run: str = "") -> str:
    """Return the page. It is valid Unicode, whatever the names of topics and files are.

    Args:
        outcome: what was found.
        run: name of the run to show; empty for none.
    """
    title = headline(outcome)
    kind = "verdict" if outcome.verdict == "clean" else f"verdict {outcome.verdict}"
    verdict = element("div", element("h1", title), element("p", _summary(outcome)), class_=kind)
    shown = [(name, content) for name, content in _parts(outcome, run) if content is not None]
    sections = [(name, section(number, name, content)) for number, (name, content) in enumerate(shown, 1)]
    return document(title, verdict, sections)


def headline(outcome: MirrorOutcome) -> str:
    """Return the verdict in a line."""
    source, target = outcome.flow.aliases
    counts = outcome.severities
    lost, damaged, odd = (counts[each] for each in (Severity.DATA_LOSS, Severity.DAMAGED, Severity.SUSPICIOUS))
    damage = f"{counted(damaged, 'finding')} of damage"
    if lost:
        more = f", {damage}" if damaged else ""
        return f"Data is lost from {source} to {target}: {counted(lost, 'finding')} of lost records{more}"
    if damaged:
        return f"Damaged: {damage} from {source} to {target}"
    if odd:
        return f"Suspicious: {counted(odd, 'finding')} to look at from {source} to {target}, nothing is damaged"
    if not outcome.counts.compared:
        return f"Not known: no record of {source} was compared with one of {target}"
    return f"Clean: the mirror in {target} holds what {source} holds, as far as it was compared"


def _summary(outcome: MirrorOutcome) -> str:
    counts = outcome.counts
    parts = [counted(len(outcome.pairs), "pair"), f"{counts.compared:,} records compared"]
    parts += [f"{counts.unverifiable:,} unverifiable"] if counts.unverifiable else []
    parts += [f"{counts.lag:,} not mirrored yet"]
    parts += [f"{counts.aborted:,} aborted ones left out"] if counts.aborted else []
    return ", ".join(parts)


def _parts(outcome: MirrorOutcome, run: str) -> Iterator[tuple[str, Markup | None]]:
    source, target = outcome.flow.aliases
    steps = list(next_steps(outcome))
    yield "What to do next", listed(steps) if steps else element("p", "Nothing needs to be done before a fail-over.")
    yield "Pairs", pairs_section(outcome.pairs, has_syncs=outcome.flow.syncs is not None)
    yield "Differences", differences_section(outcome.pairs)
    yield (
        f"Groups that move from {source} to {target} now",
        moves_section((each.pair, each.moves) for each in outcome.pairs),
    )
    yield (
        f"Groups that come back to {source} then",
        moves_section((each.pair, each.moves_back) for each in outcome.pairs),
    )
    yield "When the flow stood still", times_section(outcome.spans, outcome.flow_findings)
    yield "Names of topics", names_section(outcome.flow_findings)
    yield "Replicas", replicas_section(outcome.pairs)
    yield "Files", files_section(outcome.problems)
    yield "What was taken from the configuration", facts(_facts(outcome, run))


def _facts(outcome: MirrorOutcome, run: str) -> Iterator[tuple[str, Cell]]:
    flow, config = outcome.flow, outcome.flow.config
    yield "Flow", " -> ".join(flow.aliases)
    yield "From", _paths(outcome.sources)
    yield "To", _paths(outcome.targets)
    yield "Configuration", f"{config.topic} of the target" if config else "none: options say all"
    yield "Policy", flow.policy_name
    if flow.syncs is not None:
        yield "Separator", repr(flow.policy.separator)
        yield "Isolation", flow.isolation or "not known"
        count = sum(map(len, flow.syncs.syncs.values()))
        where = f"{flow.syncs.topic} of the {'target' if flow.syncs.is_on_target else 'source'}"
        yield "Offset syncs", f"{count:,} in {where}"
    for sentence in flow.left_undone:
        yield "Not looked for", sentence
    for name, words in _TOLD:
        if config is not None and config.properties.get(name):
            yield words, config.properties[name]
    yield "Made by", f"raftlog {__version__}"
    if run:
        yield "Run", run


def _paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_PATHS:,} more" if len(paths) > _MOST_PATHS else ""
    return ", ".join(paths[:_MOST_PATHS]) + more
