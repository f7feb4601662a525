# SPDX-License-Identifier: Apache-2.0
"""Faults in copies of real mirrors: ``python -m tests.tools.mirrors.comparing.planted_mirrors`` plants all of them.

It plants every kind at every record of the mirrors in ``tests/golden/mirror`` and prints the table of docs/mirrors.md.
Each kind that changes records has two forms: the task mirrored it so, and later syncs agree; or the files of the
target were changed afterwards, and they do not.
"""

import functools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.pair import PairResult, compare_pair
from raftlog.tools.mirrors.comparing.rows import ABORTED, UNKNOWN, DigestRows
from raftlog.tools.mirrors.naming import configured_policy
from raftlog.tools.mirrors.pairing import find_pairs
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.flow import find_configs, find_progress, find_syncs
from tests.golden_files import GOLDEN

DATA: Final = GOLDEN / "mirror/data"


@attrs.frozen(eq=False)
class ArrayLog:
    """A log in memory."""

    rows: DigestRows
    start_offset: int
    end_offset: int

    @property
    def has_aborted(self) -> bool:
        return bool((self.rows.flags & ABORTED).any())

    def read(self, start: int, end: int) -> Iterator[DigestRows]:
        yield self.rows.between(start, end)


@attrs.frozen(eq=False)
class Mirror:
    """A partition and its mirror.

    Attributes:
        name: of the partition.
        source: its log.
        target: that of the mirror.
        syncs: that pair them.
        mirrored_end: what Connect has stored.
    """

    name: str
    source: ArrayLog
    target: ArrayLog
    syncs: tuple[Sync, ...]
    mirrored_end: int

    def compared(self) -> PairResult:
        return compare_pair(self.source, self.target, self.syncs, self.mirrored_end, reads_committed=False)


@attrs.frozen
class Planted:
    """A mirror with a fault, and what must be found.

    Attributes:
        mirror: with the fault.
        kinds: one of these, once; nothing if empty.
        source: an offset of the source that must be named, or None.
        target: an offset of the target that must be named, or None.
    """

    mirror: Mirror
    kinds: frozenset[Kind]
    source: int | None = None
    target: int | None = None

    def verdict(self) -> str:
        """Return ``found``, or what went wrong."""
        found = self.mirror.compared().differences
        if not self.kinds:
            return "found" if not found else f"false: {found}"
        if len(found) != 1 or found[0].kind not in self.kinds:
            return f"{'missed' if not found else 'other'}: {found}"
        (each,) = found
        is_there = _has(each.source, self.source) and _has(each.target, self.target)
        return "found" if is_there else f"elsewhere: {each}"


def _has(place: OffsetRange, offset: int | None) -> bool:
    return offset is None or place.start <= offset <= max(place.start, place.end - 1)


@functools.cache
def real_mirrors() -> tuple[Mirror, ...]:
    """The mirrors that a real MirrorMaker made."""
    source, target = Cluster([str(DATA / "n1")]), Cluster([str(DATA / "n2")])
    ((config,), _) = find_configs(target)
    aliases = config.source_alias, config.target_alias
    policy = configured_policy(config.properties, aliases=aliases)
    syncs = find_syncs(source, target, policy, aliases, is_on_target=False).syncs
    progress, _ = find_progress(target, config.source_alias)
    found = []
    for pair in find_pairs(source.topics, target.topics, policy, config.source_alias, [topic for topic, _ in syncs]):
        logs = []
        for cluster, topic in ((source, pair.source), (target, pair.target)):
            log = cluster.log(topic, pair.partition)
            assert log is not None
            rows = DigestRows.joined(log.rows.read(0, log.rows.end_offset))
            logs.append(ArrayLog(rows, log.rows.start_offset, log.rows.end_offset))
        key = pair.source, pair.partition
        ours, theirs = logs
        found.append(Mirror(f"{pair.source}-{pair.partition}", ours, theirs, tuple(syncs[key]), progress[key]))
    return tuple(found)


# Targets with other records


def with_target(mirror: Mirror, order: Sequence[int], fresh: int | None = None, *, was_so: bool, at: int = 0) -> Mirror:
    """Return a mirror whose target has other records.

    Args:
        mirror: a sound one.
        order: for each record of the new target, the index of its content in the old one; -1 for a foreign one.
        fresh: the index in the new target at which content is made up, keeping its place; None for no such record.
        was_so: whether the syncs agree.
        at: index in the old target from which on syncs are moved.
    """
    old = mirror.target.rows
    digests = old.digests[np.array([max(each, 0) for each in order])].copy()
    for index, each in enumerate(order):
        if each < 0 or index == fresh:
            digests[index] ^= np.uint64(0x5555555555555555)
    more = len(order) - len(old)
    offsets = np.concatenate([old.offsets, old.offsets[-1:] + np.arange(1, max(more, 0) + 1)])[: len(order)]
    rows = DigestRows(offsets, digests, np.zeros(len(order), np.uint8))
    target = ArrayLog(rows, 0, int(offsets[-1]) + 1 if len(offsets) else 0)
    syncs = mirror.syncs
    if was_so and more:
        moved_from = int(old.offsets[at]) if at < len(old) else mirror.target.end_offset
        syncs = tuple(
            attrs.evolve(each, downstream=each.downstream + more * (each.downstream >= moved_from)) for each in syncs
        )
    return attrs.evolve(mirror, target=target, syncs=syncs)


Plant = Callable[[Mirror, int, random.Random], Iterator[Planted]]


def _source_at(mirror: Mirror, at: int) -> int:
    return int(mirror.source.rows.offsets[at])


def lost(mirror: Mirror, at: int, was_so: bool) -> Iterator[Planted]:
    size = len(mirror.target.rows)
    order = [each for each in range(size) if each != at]
    syncs = tuple(each for each in mirror.syncs if each.downstream != at) if was_so else mirror.syncs
    broken = with_target(attrs.evolve(mirror, syncs=syncs), order, was_so=was_so, at=at)
    if at == 0 and was_so:  # The mirror begins later: the second record may have a sync, or not.
        first = Sync(_source_at(mirror, 1), 0, mirror.syncs[0].producer_id, mirror.syncs[0].offset)
        rest = tuple(each for each in broken.syncs if each.downstream > 0)
        broken = attrs.evolve(broken, syncs=(first, *rest))
        yield Planted(broken, frozenset({Kind.LATE_START}), 0)
        return
    if broken.syncs:
        yield Planted(broken, frozenset({Kind.LOST}), _source_at(mirror, at), at)


def lost_so(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    yield from lost(mirror, at, True)


def lost_since(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    yield from lost(mirror, at, False)


def hole(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    """The offset stays, without a record: no difference, but a hole."""
    rows = mirror.target.rows
    flags = rows.flags.copy()
    flags[at] = UNKNOWN
    target = attrs.evolve(mirror.target, rows=DigestRows(rows.offsets, rows.digests, flags))
    yield Planted(attrs.evolve(mirror, target=target), frozenset())


def changed(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    broken = with_target(mirror, range(len(mirror.target.rows)), at, was_so=True)
    yield Planted(broken, frozenset({Kind.CHANGED}), _source_at(mirror, at), at)


def swapped(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    digests = mirror.target.rows.digests
    if at + 1 < len(digests) and (digests[at] != digests[at + 1]).any():
        order = list(range(len(digests)))
        order[at : at + 2] = at + 1, at
        yield Planted(with_target(mirror, order, was_so=True), frozenset({Kind.REORDERED, Kind.CHANGED}))


def more(mirror: Mirror, at: int, content: int, kinds: set[Kind], *, was_so: bool) -> Iterator[Planted]:
    order = list(range(len(mirror.target.rows)))
    order.insert(at, content)
    yield Planted(with_target(mirror, order, was_so=was_so, at=at), frozenset(kinds), None, at)


def doubled_so(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    yield from more(mirror, at + 1, at, {Kind.DUPLICATE, Kind.WRITTEN_TO}, was_so=True)


def doubled_since(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    yield from more(mirror, at + 1, at, {Kind.DUPLICATE, Kind.WRITTEN_TO}, was_so=False)


def foreign_so(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    if at:
        yield from more(mirror, at, -1, {Kind.FOREIGN}, was_so=True)


def foreign_since(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    if at:
        yield from more(mirror, at, -1, {Kind.FOREIGN}, was_so=False)


def written_to(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    if at == len(mirror.target.rows) - 1:
        order = [*range(at + 1), *([-1] * chance.randrange(1, 40))]
        yield Planted(with_target(mirror, order, was_so=False), frozenset({Kind.WRITTEN_TO}), None, at + 1)


def _sync_at(mirror: Mirror, at: int) -> int | None:
    return next((number for number, each in enumerate(mirror.syncs) if each.downstream == at), None)


def _with_sync(mirror: Mirror, number: int, **changes: int) -> Mirror:
    syncs = list(mirror.syncs)
    syncs[number] = attrs.evolve(syncs[number], **changes)
    return attrs.evolve(mirror, syncs=tuple(syncs))


WRONG: Final = frozenset({Kind.WRONG_ANCHOR, Kind.BAD_SYNC})


def wrong_upstream(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    number = _sync_at(mirror, at)
    if number is not None:
        right = mirror.syncs[number].upstream
        upstream = chance.choice([right + 1, right - 1, chance.randrange(mirror.source.end_offset + 5)])
        if upstream != right:
            yield Planted(_with_sync(mirror, number, upstream=upstream), WRONG)


def wrong_downstream(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    number = _sync_at(mirror, at)
    if number is not None:
        downstream = chance.choice([at + 1, at - 1, chance.randrange(mirror.target.end_offset + 5)])
        if downstream != at:
            yield Planted(_with_sync(mirror, number, downstream=downstream), WRONG)


def dropped_sync(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    number = _sync_at(mirror, at)
    if number is not None and len(mirror.syncs) > 1:
        syncs = (*mirror.syncs[:number], *mirror.syncs[number + 1 :])
        yield Planted(attrs.evolve(mirror, syncs=syncs), frozenset())


def skipped(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """A task restarts, and goes on some records too late."""
    size = len(mirror.target.rows)
    if 0 < at < size - 2:
        gap = chance.randrange(1, min(20, size - at - 1))
        order = [*range(at), *range(at + gap, size)]
        broken = with_target(mirror, order, was_so=True, at=at + gap)
        old, again = mirror.syncs, mirror.syncs[0].producer_id + 1
        kept = [each for each, was in zip(broken.syncs, old, strict=True) if was.downstream < at]
        later = [
            attrs.evolve(each, producer_id=again)
            for each, was in zip(broken.syncs, old, strict=True)
            if was.downstream > at + gap
        ]
        first = Sync(_source_at(mirror, at + gap), at, again, -2)
        syncs = (*kept, first, *later)
        yield Planted(attrs.evolve(broken, syncs=syncs), frozenset({Kind.LOST}), _source_at(mirror, at), at)


def copied_again(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """A task restarts, and goes on some records too early."""
    if at:
        size, back = len(mirror.target.rows), chance.randrange(1, at + 1)
        order = [*range(at), *range(at - back, size)]
        broken = with_target(mirror, order, was_so=True, at=at)
        old, again = mirror.syncs, mirror.syncs[0].producer_id + 1
        kept = [each for each, was in zip(broken.syncs, old, strict=True) if was.downstream < at]
        later = [
            attrs.evolve(each, producer_id=again)
            for each, was in zip(broken.syncs, old, strict=True)
            if was.downstream >= at
        ]
        first = Sync(_source_at(mirror, at - back), at, again, -2)
        syncs = (*kept, first, *later)
        yield Planted(attrs.evolve(broken, syncs=syncs), frozenset({Kind.COPIED_AGAIN}), None, at)


KINDS: Final[dict[str, Plant]] = {
    "a lost record, mirrored so": lost_so,
    "a lost record, taken out since": lost_since,
    "an offset without a record": hole,
    "a changed record": changed,
    "neighbours that changed places": swapped,
    "a record twice, mirrored so": doubled_so,
    "a record twice, put in since": doubled_since,
    "a foreign record, mirrored so": foreign_so,
    "a foreign record, put in since": foreign_since,
    "others write after the mirror": written_to,
    "a sync with a wrong offset of the source": wrong_upstream,
    "a sync with a wrong offset of the target": wrong_downstream,
    "a sync that is gone": dropped_sync,
    "a restart that skips": skipped,
    "a restart that copies again": copied_again,
}


def planted(kind: str, *, step: int = 1, first: int = 0) -> Iterator[Planted]:
    """Yield mirrors with faults of a kind, at each place, or at each of some."""
    for mirror in real_mirrors():
        for at in range(first, len(mirror.target.rows), step):
            yield from KINDS[kind](mirror, at, random.Random(f"{kind} {mirror.name} {at}"))


def main() -> None:
    """Plant all, and print the table and what was not found."""
    wrong = []
    print("| fault | planted | found | others |\n|---|---:|---:|---:|")
    for kind in KINDS:
        verdicts = [(each.verdict(), each) for each in planted(kind)]
        count = Counter(verdict == "found" for verdict, _ in verdicts)
        print(f"| {kind} | {len(verdicts):,} | {count[True]:,} | {count[False]:,} |", flush=True)
        wrong += [(kind, each.mirror.name, verdict) for verdict, each in verdicts if verdict != "found"]
    for each in wrong[:200]:
        print(*each, file=sys.stderr)


if __name__ == "__main__":
    main()
