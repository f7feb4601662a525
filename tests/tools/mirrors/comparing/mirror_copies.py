# SPDX-License-Identifier: Apache-2.0
"""Mirrors that a real MirrorMaker made, in memory, and copies of them that hold other records."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import attrs
import numpy as np

from raftlog.records.reference import ReferenceRecord, record_digest
from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, DigestRows
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.pairing import MirrorPair, find_pairs
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.flow import find_configs, find_progress, find_syncs
from tests.golden_files import GOLDEN
from tests.tools.mirrors.comparing.summed_logs import compare_logs

DATA: Final = GOLDEN / "mirror/data"
FOREIGN: Final = -1
"""Stands for the index, or the offset in the source, of a record that the source does not have."""


class Content(NamedTuple):
    """What two records must have in common to be the same."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


@functools.cache
def digest_of(content: Content) -> tuple[int, int]:
    timestamp, key, value, headers = content
    return record_digest(ReferenceRecord(0, timestamp, key, value, list(headers)))


@attrs.frozen(eq=False)
class ArrayLog:
    """A log in memory.

    Attributes:
        rows: its records.
        start_offset, end_offset: its bounds.
        contents: of each record; None for an offset without one.
    """

    rows: DigestRows
    start_offset: int
    end_offset: int
    contents: tuple[Content | None, ...]

    @property
    def has_aborted(self) -> bool:
        return bool((self.rows.flags & ABORTED).any())

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        yield self.rows.between(start, end)

    def with_contents(self, changed: Mapping[int, Content]) -> "ArrayLog":
        """Return the log with other contents at some indices."""
        digests, contents = self.rows.digests.copy(), list(self.contents)
        for index, each in changed.items():
            digests[index], contents[index] = digest_of(each), each
        rows = DigestRows(self.rows.offsets, digests, self.rows.flags)
        return attrs.evolve(self, rows=rows, contents=tuple(contents))


@attrs.frozen(eq=False)
class Mirror:
    """A partition and its mirror.

    Attributes:
        pair: the two.
        source: its log.
        target: that of the mirror.
        syncs: that pair them.
        mirrored_end: what Connect has stored.
        origins: for each record of the target, the offset of the source's record that it is a copy of, or ``FOREIGN``.
        reads_committed: whether the task leaves out aborted records; None if that is not known.
        was_so: whether the task has mirrored it so: what else it has written agrees with the syncs.
        has_all_syncs: whether no sync was compacted away.
    """

    pair: MirrorPair
    source: ArrayLog
    target: ArrayLog
    syncs: tuple[Sync, ...]
    mirrored_end: int
    origins: tuple[int, ...]
    reads_committed: bool | None = False
    was_so: bool = False
    has_all_syncs: bool = True

    @property
    def name(self) -> str:
        return f"{self.pair.source}-{self.pair.partition}"

    def compared(self) -> PairResult:
        mirrored_end, isolation = self.mirrored_end, self.reads_committed
        return compare_logs(self.source, self.target, self.syncs, mirrored_end, reads_committed=isolation)

    def source_at(self, at: int) -> int:
        """Return the offset of a record of the source by its index."""
        return int(self.source.rows.offsets[at])

    def sync_at(self, at: int) -> int | None:
        """Return the index of the sync of a record of the target."""
        return next((number for number, each in enumerate(self.syncs) if each.downstream == at), None)

    def with_sync(self, number: int, **changes: int) -> "Mirror":
        """Return the mirror with a sync that says something else."""
        syncs = list(self.syncs)
        syncs[number] = attrs.evolve(syncs[number], **changes)
        return attrs.evolve(self, syncs=tuple(syncs))


@attrs.frozen
class Planted:
    """A mirror with a fault, and what must be found.

    Attributes:
        mirror: with the fault.
        kinds: one of these, once; nothing if empty.
        source: an offset of the source that must be named, or None.
        target: an offset of the target that must be named, or None.
        count: how many records must be named, or None.
        equals: equal records of the source, one of which is lost: the place that is named must be among them.
        words: what the finding must say.
        hole: the offsets of the target that have no record: a finding in files, which a comparison of rows leaves out.
    """

    mirror: Mirror
    kinds: frozenset[Kind]
    source: int | None = None
    target: int | None = None
    count: int | None = None
    equals: OffsetRange | None = None
    words: str = ""
    hole: OffsetRange | None = None

    def verdict(self) -> str:
        """Return ``found``, or what went wrong."""
        found = self.mirror.compared().differences
        if not self.kinds:
            return "found" if not found else f"false: {found}"
        if len(found) != 1 or found[0].kind not in self.kinds:
            return f"{'missed' if not found else 'other'}: {found}"
        (each,) = found
        is_there = self.is_at(each.source, each.target) and self.count in (None, each.count)
        return "found" if is_there else f"elsewhere: {each}"

    def is_at(self, source: OffsetRange, target: OffsetRange) -> bool:
        """Whether places are those of the fault."""
        is_among = self.equals is None or self.equals.start <= source.start <= source.end <= self.equals.end
        if Kind.LOST in self.kinds:  # If records repeat, the lost one may come after all that are there.
            target = OffsetRange(target.start, target.end + 1)
        return is_among and _has(source, self.source) and _has(target, self.target)


def _has(place: OffsetRange, offset: int | None) -> bool:
    return offset is None or place.start <= offset <= max(place.start, place.end - 1)


@functools.cache
def real_mirrors() -> tuple[Mirror, ...]:
    """The mirrors that a real MirrorMaker made. Each of their targets has all records of its source, at 0, 1, ..."""
    source, target = Cluster([str(DATA / "n1")]), Cluster([str(DATA / "n2")])
    ((config,), _) = find_configs(target)
    aliases = config.source_alias, config.target_alias
    policy = configured_policy(config.properties, aliases=aliases)
    syncs = find_syncs(source, target, policy, aliases, is_on_target=False).syncs
    progress, _ = find_progress(target, config.source_alias)
    found = []
    for pair in find_pairs(source.topics, target.topics, policy, config.source_alias, [topic for topic, _ in syncs]):
        key = pair.source, pair.partition
        ours, theirs = _log(source, *key), _log(target, pair.target, pair.partition)
        origins = tuple(ours.rows.offsets.tolist())
        found.append(Mirror(pair, ours, theirs, tuple(syncs[key]), progress[key], origins))
    return tuple(found)


def _log(cluster: Cluster, topic: str, partition: int) -> ArrayLog:
    log = cluster.log(topic, partition)
    assert log is not None
    rows = DigestRows.joined(log.rows.read(0, log.rows.end_offset))
    contents = tuple(
        Content(each.timestamp, each.key, each.value, tuple((name, value) for name, value in each.headers))
        for each in log.rows.records(0, log.rows.end_offset)
    )
    return ArrayLog(rows, log.rows.start_offset, log.rows.end_offset, contents)


_UNCHANGED: Final[Mapping[int, Content]] = MappingProxyType({})


def with_target(
    mirror: Mirror, order: Sequence[int], changed: Mapping[int, Content] = _UNCHANGED, *, was_so: bool
) -> Mirror:
    """Return a mirror whose target has other records, at offsets 0, 1, ...

    Args:
        mirror: a sound one.
        order: for each record of the new target, its index in the old one; ``FOREIGN`` for what only the target has.
        changed: other contents, by the index in the new target.
        was_so: whether the task mirrored it so. Then syncs name the new offsets; those of records that are not there
            are gone.
    """
    old = mirror.target
    contents = [old.contents[each] if each >= 0 else foreign(mirror, index) for index, each in enumerate(order)]
    for index, each in changed.items():
        contents[index] = each
    digests = np.array([digest_of(each) for each in contents if each is not None], np.uint64).reshape(-1, 2)
    rows = DigestRows(np.arange(len(order)), digests, np.zeros(len(order), np.uint8))
    origins = tuple(mirror.origins[each] if each >= 0 else FOREIGN for each in order)
    syncs = mirror.syncs
    if was_so:
        places: dict[int, int] = {}
        for index, former in enumerate(order):
            places.setdefault(former, index)
        syncs = tuple(
            attrs.evolve(each, downstream=places[each.downstream]) for each in syncs if each.downstream in places
        )
    target = ArrayLog(rows, 0, len(order), tuple(contents))
    return attrs.evolve(mirror, target=target, syncs=syncs, origins=origins, was_so=was_so)


def without_offsets(mirror: Mirror, first: int, last: int) -> Mirror:
    """Return a mirror whose target has no record at the offsets from one (inclusive) to another (exclusive)."""
    old = mirror.target
    flags = old.rows.flags.copy()
    flags[first:last] = UNKNOWN
    contents = tuple(None if first <= index < last else each for index, each in enumerate(old.contents))
    target = attrs.evolve(old, rows=DigestRows(old.rows.offsets, old.rows.digests, flags), contents=contents)
    return attrs.evolve(mirror, target=target)


def foreign(mirror: Mirror, index: int) -> Content:
    """Return a content that no mirror has."""
    last = mirror.target.contents[-1]
    assert last is not None
    return Content(last.timestamp, b"nobody", b"knows %d" % index)


def copied_content(mirror: Mirror, at: int) -> Content:
    """Return the content of a record of the target."""
    content = mirror.target.contents[at]
    assert content is not None
    return content


def with_equal_records(mirror: Mirror, at: int, count: int) -> Mirror:
    """Return a mirror in which so many records from an index on are equal, on both sides."""
    changed = dict.fromkeys(range(at, at + count), copied_content(mirror, at))
    source, target = mirror.source.with_contents(changed), mirror.target.with_contents(changed)
    return attrs.evolve(mirror, source=source, target=target)
