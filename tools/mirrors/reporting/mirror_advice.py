# SPDX-License-Identifier: Apache-2.0
"""What to do about each finding of ``raftlog verify-mirror``, for the operator who fails over."""

from collections.abc import Iterator
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.mirrors.pair_report import MirrorOutcome

ADVICE: Final = {
    "mirror.lost": "Keep the source: records that were mirrored, or passed over, are not in the mirror.",
    "mirror.hole": "Keep the source: offsets of the mirror have no record. Verify the files of the target.",
    "mirror.source-recreated": "Keep the mirror: the source was made anew, and what was mirrored may be its last copy.",
    "mirror.shrunk": "Find out who has cut the mirror, or made it anew, before groups move to it.",
    "mirror.checkpoint-ahead": "Set the offsets of the groups by hand before they move: they would pass over records.",
    "mirror.changed": "Find out which side is right before the other one is given up: records differ.",
    "mirror.reordered": "Do not rely on the order of the records that have changed places.",
    "mirror.duplicate": "Let consumers expect records twice.",
    "mirror.anchor": "Do not trust offsets that were translated by the syncs that are wrong.",
    "mirror.sync": "Do not trust offsets that were translated by the syncs that are wrong.",
    "mirror.cycle": "Stop the flow that brings topics back to where they came from.",
    "mirror.late-start": "Check whether the mirror was meant to begin after the first record of the source.",
    "mirror.foreign": "Find out who wrote the records that only the mirror has: they may be the last copies.",
    "mirror.written-to": "Stop MirrorMaker before it goes on, if the fail-over is done: others write to the mirror.",
    "mirror.checkpoint-odd": "Compare the offsets of these groups with those of their applications before they move.",
    "mirror.heartbeat-gap": "Look into the logs of MirrorMaker at the times at which the flow stood still.",
    "mirror.unpaired": "Check whether the topics without a mirror are meant to be mirrored.",
}
"""By rule, one sentence or two. Rules that are never above harmless have none."""
_OF_FILES: Final = "Verify the files that have findings of their own, and mirror again what they have lost."


def next_steps(outcome: MirrorOutcome) -> Iterator[str]:
    """Yield what to do, the most urgent first."""
    worst: dict[str, Severity] = {}
    found = [(each.rule, each.severity) for pair in outcome.pairs for each in pair.findings]
    found += [(each.rule, each.severity) for each in outcome.flow_findings]
    for rule, severity in found:
        worst[rule] = max(worst.get(rule, Severity.HARMLESS), severity)
    serious = [rule for rule, severity in worst.items() if severity > Severity.HARMLESS]
    for severity in reversed(Severity):
        yield from dict.fromkeys(ADVICE[rule] for rule in sorted(serious) if worst[rule] is severity)
    if any(each.severity > Severity.HARMLESS for each in outcome.problems):
        yield _OF_FILES
    counts = outcome.counts
    if counts.lag:
        yield f"A fail-over now goes on without the last {_records(counts.lag)} of the source."
    if counts.unverifiable:
        yield f"Not compared: {_records(counts.unverifiable)}, of which one side is gone, or cannot be read."
    skipped = sum(move.skipped or 0 for pair in outcome.pairs for move in pair.moves)
    if skipped:
        yield f"Groups that move now pass over {_records(skipped)} that they have not read."


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
