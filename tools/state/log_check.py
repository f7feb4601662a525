# SPDX-License-Identifier: Apache-2.0
"""``raftlog state --check``: whether controllers of Kafka would start with a log, as text and as JSON lines."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import RaftLogError, StateNotThereError, fresh_copy, without_frames
from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.loading.control_records import CONTROL_RULES
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import NEWER_RULES, SNAPSHOT_END, LoadFault
from raftlog.tools.state.damage import StateDamage, damage_of
from raftlog.tools.state.positions import Position
from raftlog.tools.state.snapshot_effect import replayed
from raftlog.tools.state.state_lines import proof_remarks
from raftlog.tools.state.state_search import Span, StateSource, with_span
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.table_lines import table

_COLUMNS: Final = ("RELEASES", "STARTS", "OFFSET", "INDEX", "RECORD", "RULE", "REASON")
_MEMBERS: Final = tuple(each for each in LoadFault._fields if each != "place")
_NEWEST: Final = CHECKED_RELEASES[-1]


@attrs.frozen
class LogCheck:
    """What became of the log of one replica.

    Attributes:
        span: the batches that were replayed.
        end_offset: the end of the last one, exclusive.
        asked: the releases that were asked, oldest first; all are judged.
        faults: the first fault of each release that does not start.
        damage: what keeps the files from saying whether the others start.
        proven_offset: up to which records are proven to be committed by all given files, exclusive.
    """

    span: Span
    end_offset: int
    asked: Sequence[str]
    faults: Mapping[str, LoadFault]
    damage: StateDamage | None
    proven_offset: int

    @property
    def lowest_release(self) -> str | None:
        """The lowest release that starts, up to the damage if there is one; None if none does."""
        return next((each for each in CHECKED_RELEASES if each not in self.faults), None)

    @property
    def is_fine(self) -> bool:
        """Whether what was asked starts: one release, or else all from the lowest one that starts on."""
        lowest = self.lowest_release
        if lowest is None or self.damage is not None:
            return False
        is_one = len(self.asked) < len(CHECKED_RELEASES)
        expected = self.asked if is_one else CHECKED_RELEASES[CHECKED_RELEASES.index(lowest) :]
        return not any(each in self.faults for each in expected)

    @property
    def is_proven(self) -> bool:
        """Whether all that was replayed is proven to be committed."""
        fork = self.span.copy.forks_at
        return self.end_offset <= self.proven_offset and (fork is None or self.end_offset <= fork)


def checks(
    among: Sequence[StateSource], position: Position, asked: Sequence[str], proven_offset: int
) -> tuple[list[LogCheck], list[RaftLogError]]:
    """Replay the log of each replica from its own newest snapshot on, as its node does.

    Returns:
        What became of each replica that has the position, and the errors of the others.

    Raises:
        RaftLogError: no replica has it.
    """
    found: list[LogCheck] = []
    problems: list[RaftLogError] = []
    for copy in among:
        try:
            found.append(with_span([copy], position, lambda span: checked(span, asked, proven_offset)))
        except RaftLogError as error:
            problems.append(without_frames(error))
    if not found:
        others = [each for each in problems if not isinstance(each, StateNotThereError)]
        raise fresh_copy(others[0]) if others else StateNotThereError("; ".join(map(str, problems)))
    return found, problems


def checked(span: Span, asked: Sequence[str], proven_offset: int) -> LogCheck:
    """Replay the batches of a state by the rules of all releases.

    Raises:
        RaftLogError: a file cannot be read.
    """
    check = replayed(span.of_snapshot(), span.start_offset, span.of_log())
    damage = damage_of(span.copy, span.asked_offset)
    return LogCheck(span, check.end_offset, asked, check.finish(), damage, proven_offset)


def check_lines(found: LogCheck, *, cluster_id: str | None) -> Iterator[str]:
    """Yield what was replayed, a table of the releases, and the answer, for people."""
    span = found.span
    start = "the start of the log" if span.snapshot is None else snapshot_name(span.snapshot)
    yield f"Cluster {cluster_id or '(id not known)'} before offset {found.end_offset}."
    yield f"Read from {span.copy.path}: {start} and the records after it."
    if found.end_offset < span.asked_offset:
        yield f"Offset {span.asked_offset} is inside a batch: this is about the log before it."
    yield from proof_remarks(span.copy, found.end_offset, span.later_times, found.proven_offset)
    yield ""
    yield from table([_COLUMNS, *_rows(found)], frozenset({2, 3}))
    yield ""
    yield from _places(found)
    yield from _answer(found)


def _rows(found: LogCheck) -> Iterator[tuple[object, ...]]:
    """Yield a row for each range of adjacent releases of which the same is said."""
    for row, releases in itertools.groupby(found.asked, lambda release: _row(found, release)):
        first, *others = releases
        text = f"{first} to {others[-1]}" if others else first
        *cells, (before, verb, after) = row
        verb = verb.removesuffix("s") if others else verb
        yield text, *cells, f"{before}{text} {verb} {after}" if verb else before


def _row(found: LogCheck, release: str) -> tuple[object, object, object, object, object, tuple[str, str, str]]:
    """Return what is said of a release; the reason is in parts, without the name of the release."""
    fault = found.faults.get(release)
    if fault is None and found.damage is not None:
        reason = f"starts, up to the damage at offset {found.damage.offset}"
        return "?", found.damage.offset, "-", "-", "-", (reason, "", "")
    if fault is None:
        return "yes", "-", "-", "-", "-", ("-", "", "")
    index = "-" if fault.record_index is None else fault.record_index
    reason = f"in the snapshot: {fault.reason}" if fault.is_in_snapshot else fault.reason
    return "no", fault.offset, index, fault.record or "-", fault.rule, _without_release(reason, release)


def _without_release(reason: str, release: str) -> tuple[str, str, str]:
    """Split a reason that says what a release supports or knows: what is before its name, the verb, and the rest."""
    for verb in ("supports", "knows"):
        before, found, after = reason.rpartition(f", and {release} {verb} ")
        if found:
            return f"{before}, and ", verb, after
    return reason, "", ""


def _places(found: LogCheck) -> Iterator[str]:
    """Yield where the records are that releases refuse, each batch once."""
    faults = (found.faults[each] for each in found.asked if each in found.faults)
    places = dict.fromkeys((each.offset, each.place) for each in faults if each.place is not None)
    for offset, place in places:
        yield f"Offset {offset} is in the batch at position {place.position} of {place.path}."


def _answer(found: LogCheck) -> Iterator[str]:
    lowest, damage = found.lowest_release, found.damage
    if damage is not None:
        yield f"It is not known whether a controller starts with this log: {damage.reason}."
    if lowest is None:
        yield f"No controller of {', '.join(CHECKED_RELEASES)} starts with this log."
    elif damage is None:
        yield f"The lowest release whose controllers start with this log is {lowest}."
    faults = [found.faults[each] for each in found.asked if each in found.faults]
    if not faults:
        return
    fault = faults[-1]
    if fault.rule in NEWER_RULES and lowest is not None:
        if len(found.asked) == 1:
            yield f"This log needs a newer release than {found.asked[0]}: the lowest that starts is {lowest}."
    elif fault.rule in NEWER_RULES and found.faults[_NEWEST].rule in NEWER_RULES:
        yield f"This log has records of a newer release than {_NEWEST}, or wrong ones."
    elif fault.rule == SNAPSHOT_END:
        yield "A newer snapshot, which 'raftlog snapshot' can write, has the transaction, and does not end before it."
    elif fault.record_index is not None and fault.rule not in NEWER_RULES | CONTROL_RULES:
        yield "'raftlog snapshot' can write a snapshot without the records that they refuse."


def check_json(found: LogCheck, asked: str, *, cluster_id: str | None) -> Iterator[str]:
    """Yield the line about a replica's log, and one for each release that was asked."""
    span, damage = found.span, found.damage
    yield json_line(
        "load_check",
        None,
        cluster_id=cluster_id,
        **path_member("directory", span.copy.path),
        asked=asked,
        asked_offset=span.asked_offset,
        end_offset=found.end_offset,
        snapshot=None if span.snapshot is None else snapshot_name(span.snapshot),
        later_times=span.later_times,
        forks_at=span.copy.forks_at,
        proven_offset=found.proven_offset,
        is_proven=found.is_proven,
        damage=None if damage is None else damage.reason,
        lowest_release=found.lowest_release if damage is None else None,
    )
    for release in found.asked:
        fault = found.faults.get(release)
        members = dict.fromkeys(_MEMBERS) if fault is None else fault.members
        if fault is not None and fault.place is not None:
            members |= {**path_member("file", fault.place.path), "position": fault.place.position}
        starts: bool | None = fault is None
        if fault is None and damage is not None:
            starts = None
            members |= {"offset": damage.offset, "reason": damage.reason}
        where = path_member("directory", span.copy.path)
        yield json_line("release", None, **where, release=release, starts=starts, **members)
