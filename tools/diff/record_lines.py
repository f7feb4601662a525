# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog diff`` prints of records that differ (``docs/diff-1.schema.json``)."""

from collections.abc import Iterator
from typing import Any, Final

from raftlog.tools.auditing.history.divergence import DivergenceKind
from raftlog.tools.auditing.history.verdict_words import offsets_text
from raftlog.tools.diff.compared_replicas import Pair
from raftlog.tools.diff.record_comparison import CONTROL, RecordComparison, RecordDifference, RecordFault
from raftlog.tools.mirrors.pair_findings import RECORD_PARTS, parts_text
from raftlog.tools.terminal.value_text import counted
from raftlog.tools.terminal.verb_output import Fact

_WORDS: Final = {
    RecordFault.CHANGED: "changed",
    RecordFault.LEFT_ONLY: "only left",
    RecordFault.RIGHT_ONLY: "only right",
}
_PARTS: Final = (*RECORD_PARTS, CONTROL)


def record_facts(pair: Pair, common: dict[str, Any], *, shows_all: bool) -> Iterator[Fact]:
    """Yield which records of two replicas differ: counts, then the places.

    Args:
        pair: the replicas. Their records were compared, or it is known why not.
        common: the members that name the pair.
        shows_all: whether to show all places, and not only the first one of each kind.
    """
    found = pair.records
    if found is None:
        line = f"  records were not compared: {pair.unanswered}"
        yield Fact(line, "records", {**common, **_members(None), "problem": pair.unanswered})
        return
    is_compacted = any(each.of.kind is DivergenceKind.COMPACTION for each in pair.differences)
    line = f"  records from offset {found.start_offset} on: {', '.join(_counts(found))}"
    if is_compacted and found.count(RecordFault.LEFT_ONLY) + found.count(RecordFault.RIGHT_ONLY):
        line += "; compaction explains some"
    yield Fact(line, "records", {**common, **_members(found), "problem": None})
    shown = set[RecordFault]()
    for each in found.differences:
        if shows_all or each.fault not in shown:
            shown.add(each.fault)
            yield _place_fact(each, common)


def _counts(found: RecordComparison) -> Iterator[str]:
    yield f"{found.compared:,} compared"
    for fault, words in _WORDS.items():
        if count := found.count(fault):
            parts = f" ({_parts(found, count)})" if fault is RecordFault.CHANGED else ""
            yield f"{count:,} {words}{parts}"
    if found.unverifiable:
        yield f"{found.unverifiable:,} not compared, since one side is gone or damaged"
    if not found.differences:
        yield "no difference"


def _parts(found: RecordComparison, changed: int) -> str:
    """Return in how many changed records each part differs."""
    counts = ", ".join(f"{found.parts[each]:,} in {each}" for each in _PARTS if found.parts.get(each))
    return counts if found.read_again == changed else f"of the first {found.read_again:,}: {counts}"


def _members(found: RecordComparison | None) -> dict[str, Any]:
    """Return the counts as JSON members; null if there are none."""
    parts = None if found is None else {each: found.parts.get(each, 0) for each in _PARTS}
    return {
        "start_offset": None if found is None else found.start_offset,
        "compared": None if found is None else found.compared,
        "unverifiable": None if found is None else found.unverifiable,
        **{_member(fault): None if found is None else found.count(fault) for fault in RecordFault},
        "read_again": None if found is None else found.read_again,
        "changed_in": parts,
    }


def _member(fault: RecordFault) -> str:
    return fault.value.replace("-", "_")


def _place_fact(each: RecordDifference, common: dict[str, Any]) -> Fact:
    place = each.place
    first = f", the first one in {parts_text(each.parts)}" if each.parts and each.count > 1 else ""
    parts = first or (f" in {parts_text(each.parts)}" if each.parts else "")
    rest = "" if each.is_exact else f", {counted(each.count, 'record')} in more places than are told one by one"
    own = f": {counted(each.count, 'record')}" if each.is_exact and each.count != place.offset_count else ""
    line = f"    {_WORDS[each.fault]} at {offsets_text(place.start, place.end)}{parts}{own}{rest}"
    members = {
        **common,
        "difference": _member(each.fault),
        "offset": place.start,
        "end_offset": place.end,
        "records": each.count,
        "is_exact": each.is_exact,
        "parts": list(each.parts),
    }
    return Fact(line, "record_difference", members)
