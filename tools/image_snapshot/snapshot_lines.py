# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog snapshot`` says of a snapshot that it has written, as text and as JSON lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.image_snapshot.snapshot_writing import SnapshotContent
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadFault
from raftlog.tools.state.state_search import Span
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact

_MOST_NAMED: Final = 20
"""How many records without effect text names; JSON names all."""


@attrs.frozen
class WrittenSnapshot:
    """A snapshot that was written.

    Attributes:
        span: what it was made of.
        content: what it says.
        path: of its file.
        size_bytes: of its file.
        proven_offset: up to which records are proven to be committed, exclusive.
    """

    span: Span
    content: SnapshotContent
    path: str
    size_bytes: int
    proven_offset: int

    @property
    def is_proven(self) -> bool:
        """Whether all that it says is proven to be committed."""
        return self.span.asked_offset <= self.proven_offset


def snapshot_facts(written: WrittenSnapshot) -> Iterator[Fact]:
    """Yield what was written and what becomes of it, then each record without effect, then each later fault."""
    content, effect = written.content, written.content.effect
    end = content.snapshot_id
    members = {
        **path_member("file", written.path),
        **path_member("directory", written.span.copy.path),
        "end_offset": end.offset,
        "epoch": end.epoch,
        "timestamp": content.timestamp,
        "kraft_version": int(content.kraft_version),
        "voter_ids": [] if content.voters is None else sorted(content.voters.voters),
        "record_count": len(content.values),
        "size_bytes": written.size_bytes,
        "skipped_count": len(content.skipped),
        "loaded_by": list(content.loaded_by),
        "log_end_offset": effect.end_offset,
        "newer_snapshot": None if effect.newer_snapshot is None else snapshot_name(effect.newer_snapshot),
        "damage": None if effect.damage is None else effect.damage.reason,
        "starting": [] if effect.damage is not None else _starting(content),
        "proven_offset": written.proven_offset,
        "is_proven": written.is_proven,
    }
    yield Fact(list(_texts(written)), "snapshot", members)
    yield from _skipped(content)
    for release, fault in effect.faults.items():
        yield Fact([], "later_fault", {"release": release, **fault.members})


def _starting(content: SnapshotContent) -> list[str]:
    """Return the releases that start with it beside the log, up to a damage if there is one."""
    return [each for each in _judged(content) if each not in content.effect.faults]


def _judged(content: SnapshotContent) -> Sequence[str]:
    return content.loaded_by if content.effect.newer_snapshot is None else CHECKED_RELEASES


def _texts(written: WrittenSnapshot) -> Iterator[str]:
    content, effect = written.content, written.content.effect
    end = content.snapshot_id
    yield f"{written.path}: the cluster before offset {end.offset}, epoch {end.epoch}: {len(content.values)} records"
    if not written.is_proven:
        yield f"Records from offset {written.proven_offset} on are not proven to be committed by the given files."
    if effect.newer_snapshot is not None:
        newer = snapshot_name(effect.newer_snapshot)
        yield f"Controllers begin with {newer} instead, which is newer, where it is beside it."
    starting = _starting(content)
    start = f"With this snapshot beside the log, controllers of {', '.join(starting)} start"
    if starting and effect.damage is not None:
        place = f"the damage at offset {effect.damage.offset}: {effect.damage.reason}"
        yield f"{start}, up to {place}."
    elif starting:
        yield f"{start}: they load it and the rest."
    elif effect.damage is not None:
        yield f"The log is not sound: {effect.damage.reason}."
    yield from _dying(content)


def _dying(content: SnapshotContent) -> Iterator[str]:
    """Yield a sentence for each later fault; releases that do not load the snapshot itself are not named."""
    by_fault: dict[LoadFault, list[str]] = {}
    for release in _judged(content):
        if release in content.effect.faults:
            by_fault.setdefault(content.effect.faults[release], []).append(release)
    for fault, releases in by_fault.items():
        what = "" if fault.record_index is None else f", the {fault.record or 'record of an unknown type'}"
        index = "" if fault.record_index is None else f" (index {fault.record_index})"
        die = f"controllers of {', '.join(releases)} still die at offset {fault.offset}"
        yield f"With this snapshot beside the log as it is, {die}{what}{index}: {fault.rule}: {fault.reason}"


def _skipped(content: SnapshotContent) -> Iterator[Fact]:
    rest = content.skipped[_MOST_NAMED:]
    counts = Counter(each.rule for each in rest)
    for number, fault in enumerate(content.skipped):
        lines = [_skipped_text(fault)] if number < _MOST_NAMED else []
        if number == _MOST_NAMED:
            of_rules = ", ".join(f"{rule} {count}" for rule, count in sorted(counts.items()))
            lines = [f"And {len(rest)} more records have no effect here: {of_rules}"]
        yield Fact(lines, "skipped_record", fault.members)


def _skipped_text(fault: LoadFault) -> str:
    where = "of the snapshot " if fault.is_in_snapshot else ""
    record = fault.record or "record of an unknown type"
    place = f"the {record} at offset {fault.offset} {where}(index {fault.record_index})"
    return f"Kafka's own stops at {place}, which has no effect here: {fault.rule}: {fault.reason}"
