# SPDX-License-Identifier: Apache-2.0
"""``raftlog state --check``: whether controllers of Kafka would start with a log, as text and as JSON lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from raftlog.tools.state.state_search import Span
from raftlog.tools.terminal.json_lines import json_line, path_member
from raftlog.tools.terminal.table_lines import table

_COLUMNS: Final = ("RELEASE", "STARTS", "OFFSET", "INDEX", "RECORD", "RULE", "REASON")


@attrs.frozen
class LogCheck:
    """What became of a log.

    Attributes:
        span: the batches that were replayed.
        end_offset: the end of the last one, exclusive.
        releases: that were asked, oldest first.
        faults: the first fault of each release that does not start.
    """

    span: Span
    end_offset: int
    releases: Sequence[str]
    faults: Mapping[str, LoadFault]

    @property
    def lowest_release(self) -> str | None:
        """The lowest release that starts; None if none does."""
        return next((each for each in self.releases if each not in self.faults), None)

    @property
    def is_fine(self) -> bool:
        """Whether all releases from the lowest one that starts on do; older ones lack what the log uses."""
        lowest = self.lowest_release
        return lowest is not None and all(
            each not in self.faults for each in self.releases[self.releases.index(lowest) :]
        )


def checked(span: Span, releases: Sequence[str]) -> LogCheck:
    """Replay the batches of a state by the rules of some releases.

    Raises:
        RaftLogError: a file cannot be read.
    """
    check = LoadCheck(tuple(releases), in_snapshot=True)
    for batch in span.of_snapshot():
        check.apply(batch)
    check.begin_log(span.start_offset)
    for batch in span.of_log():
        check.apply(batch)
    return LogCheck(span, check.end_offset, releases, check.finish())


def check_lines(found: LogCheck, *, cluster_id: str | None) -> Iterator[str]:
    """Yield what was replayed, a table of the releases, and the answer, for people."""
    span = found.span
    start = "the start of the log" if span.snapshot is None else snapshot_name(span.snapshot)
    yield f"Cluster {cluster_id or '(id not known)'} before offset {found.end_offset}."
    yield f"Read from {span.copy.path}: {start} and the records after it."
    if found.end_offset < span.asked_offset:
        yield f"Offset {span.asked_offset} is inside a batch: this is about the log before it."
    yield ""
    yield from table([_COLUMNS, *map(_row, found.releases, map(found.faults.get, found.releases))], frozenset({2, 3}))
    yield ""
    if found.lowest_release is None:
        yield f"No controller of {', '.join(found.releases)} starts with this log."
        if any(fault.record_index is not None for fault in found.faults.values()):
            yield "'raftlog snapshot' can write a snapshot without the records that they refuse."
    else:
        yield f"The lowest release whose controllers start with this log is {found.lowest_release}."


def _row(release: str, fault: LoadFault | None) -> tuple[object, ...]:
    if fault is None:
        return release, "yes", "-", "-", "-", "-", "-"
    index = "-" if fault.record_index is None else fault.record_index
    reason = f"in the snapshot: {fault.reason}" if fault.is_in_snapshot else fault.reason
    return release, "no", fault.offset, index, fault.record or "-", fault.rule, reason


def check_json(found: LogCheck, asked: str, *, cluster_id: str | None) -> Iterator[str]:
    """Yield the line about the log, and one for each release."""
    span = found.span
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
        lowest_release=found.lowest_release,
    )
    for release in found.releases:
        fault = found.faults.get(release)
        members = dict.fromkeys(LoadFault._fields) if fault is None else fault._asdict()
        yield json_line("release", None, release=release, starts=fault is None, **members)
