# SPDX-License-Identifier: Apache-2.0
"""Faults of records and of syncs in copies of real mirrors.

Each kind can be planted at every record of the mirrors in ``tests/golden/mirror``. A kind that changes records has two
forms: the task mirrored it so, and later syncs agree; or the files of the target were changed since, and they do not.
``planted_table`` plants all of them, in memory and in files, and prints the table of docs/mirrors.md.
"""

import functools
import random
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from raftlog.tools.mirrors.comparing.differences import MirrorFault as Kind
from raftlog.tools.mirrors.comparing.differences import OffsetRange
from raftlog.tools.mirrors.comparing.lifetimes import Sync
from raftlog.tools.mirrors.comparing.rows import ABORTED
from tests.tools.mirrors.comparing.mirror_copies import (
    FOREIGN,
    Content,
    Mirror,
    Planted,
    copied_content,
    real_mirrors,
    with_equal_records,
    with_target,
    without_offsets,
)

Plant = Callable[[Mirror, int, random.Random], Iterator[Planted]]

WRONG: Final = frozenset({Kind.WRONG_ANCHOR, Kind.BAD_SYNC})
_DRAWN: Final = 10
"""So many wrong offsets are drawn for a sync."""
_MOST_AT_ONCE: Final = 40
"""Of records that are lost together, or that another task skips."""


# Records that are lost


def _lost(mirror: Mirror, at: int, count: int = 1, *, was_so: bool) -> Iterator[Planted]:
    size = len(mirror.target.rows)
    if count >= size:
        return
    order = [each for each in range(size) if not at <= each < at + count]
    broken = with_target(mirror, order, was_so=was_so)
    if at == 0 and was_so:  # The mirror begins later: with a sync of its first record, as each task does.
        first = Sync(mirror.source_at(count), 0, mirror.syncs[0].producer_id, mirror.syncs[0].offset)
        syncs = (first, *(each for each in broken.syncs if each.downstream > 0))
        yield Planted(attrs.evolve(broken, syncs=syncs), frozenset({Kind.LATE_START}), mirror.source_at(0), 0, count)
    elif broken.syncs:
        yield Planted(broken, frozenset({Kind.LOST}), mirror.source_at(at), at, count)


def lost(mirror: Mirror, at: int, _: random.Random, *, was_so: bool) -> Iterator[Planted]:
    yield from _lost(mirror, at, was_so=was_so)


def lost_last(mirror: Mirror, at: int, _: random.Random, *, was_so: bool) -> Iterator[Planted]:
    """Connect's offset says that they were mirrored, whatever their number."""
    if 0 < at < len(mirror.target.rows) and len(mirror.target.rows) - at <= _MOST_AT_ONCE:
        yield from _lost(mirror, at, len(mirror.target.rows) - at, was_so=was_so)


def lost_batch(mirror: Mirror, at: int, chance: random.Random, *, was_so: bool) -> Iterator[Planted]:
    count = chance.randrange(2, _MOST_AT_ONCE)
    if at + count <= len(mirror.target.rows):
        yield from _lost(mirror, at, count, was_so=was_so)


def lost_of_equals(mirror: Mirror, at: int, chance: random.Random, *, was_so: bool) -> Iterator[Planted]:
    """One of some adjacent equal records: which one is not known."""
    count = chance.randrange(2, 6)
    if 0 < at < len(mirror.target.rows) - count:
        equal = with_equal_records(mirror, at, count)
        equals = OffsetRange(mirror.source_at(at), mirror.source_at(at + count - 1) + 1)
        for each in _lost(equal, at + chance.randrange(count), was_so=was_so):
            has_sync = any(equals.start <= sync.upstream < equals.end for sync in mirror.syncs)
            source = None if has_sync else each.source  # A sync may hold with the next one in the place of its own.
            yield attrs.evolve(each, source=source, target=None, equals=equals)


def _aborted(mirror: Mirror) -> list[int]:
    return [at for at, flag in enumerate(mirror.source.rows.flags.tolist()) if flag & ABORTED]


def lost_aborted(mirror: Mirror, at: int, chance: random.Random, *, was_so: bool) -> Iterator[Planted]:
    """A record of an aborted transaction, by a task that reads them too, whether or not that is known."""
    if at in _aborted(mirror):
        isolation = chance.choice([False, None])
        for each in _lost(mirror, at, was_so=was_so):
            yield attrs.evolve(each, mirror=attrs.evolve(each.mirror, reads_committed=isolation))


def _committed(mirror: Mirror, chance: random.Random) -> Mirror:
    aborted = frozenset(_aborted(mirror))
    order = [each for each in range(len(mirror.target.rows)) if each not in aborted]
    return attrs.evolve(with_target(mirror, order, was_so=True), reads_committed=chance.choice([True, None]))


def aborted_left_out(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """All records of aborted transactions, by a task that reads committed, whether or not that is known."""
    if at in _aborted(mirror):
        yield Planted(_committed(mirror, chance), frozenset())


def lost_committed(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """One more than those of aborted transactions."""
    committed = _committed(mirror, chance)
    if _aborted(mirror) and 0 < at < len(committed.target.rows):
        order = [each for each in range(len(committed.target.rows)) if each != at]
        yield Planted(with_target(committed, order, was_so=True), frozenset({Kind.LOST}), committed.origins[at], at, 1)


def hole(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    """The offset stays, without a record: no difference, but a hole."""
    yield Planted(without_offsets(mirror, at, at + 1), frozenset(), hole=OffsetRange(at, at + 1))


def hole_of_a_batch(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    last = at + chance.randrange(2, _MOST_AT_ONCE)
    if last < len(mirror.target.rows):
        yield Planted(without_offsets(mirror, at, last), frozenset(), hole=OffsetRange(at, last))


# Records that are changed, or at other places


def _changed(mirror: Mirror, at: int, content: Content, words: str) -> Iterator[Planted]:
    order = range(len(mirror.target.rows))
    broken = with_target(mirror, order, {at: content}, was_so=True)
    words = f"another {words} than"
    yield Planted(broken, frozenset({Kind.CHANGED}), mirror.source_at(at), at, 1, words=words)


def changed_key(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    content = copied_content(mirror, at)
    yield from _changed(mirror, at, content._replace(key=(content.key or b"") + b"!"), "key")


def changed_value(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    content = copied_content(mirror, at)
    yield from _changed(mirror, at, content._replace(value=(content.value or b"") + b"!"), "value")


def changed_header(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """The value of one header; or there is one more, if there was none."""
    content = copied_content(mirror, at)
    headers = list(content.headers) or [(b"h", None)]
    number = chance.randrange(len(headers))
    name, value = headers[number]
    headers[number] = name, (value or b"") + b"!"
    yield from _changed(mirror, at, content._replace(headers=tuple(headers)), "headers")


def changed_timestamp(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    content = copied_content(mirror, at)
    yield from _changed(mirror, at, content._replace(timestamp=content.timestamp + chance.choice([-1, 1])), "timestamp")


def null_to_empty(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    """Each null of a record, in turn."""
    content = copied_content(mirror, at)
    if content.key is None:
        yield from _changed(mirror, at, content._replace(key=b""), "key")
    if content.value is None:
        yield from _changed(mirror, at, content._replace(value=b""), "value")
    for number, (name, value) in enumerate(content.headers):
        if value is None:
            headers = (*content.headers[:number], (name, b""), *content.headers[number + 1 :])
            yield from _changed(mirror, at, content._replace(headers=headers), "headers")


def swapped(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    contents = mirror.target.contents
    if at + 1 < len(contents) and contents[at] != contents[at + 1]:
        order = list(range(len(contents)))
        order[at : at + 2] = at + 1, at
        changed = {at: copied_content(mirror, at + 1), at + 1: copied_content(mirror, at)}
        broken = with_target(mirror, range(len(contents)), changed, was_so=True)
        broken = attrs.evolve(broken, origins=tuple(mirror.origins[each] for each in order))
        yield Planted(broken, frozenset({Kind.REORDERED, Kind.CHANGED}))


def moved(mirror: Mirror, at: int, chance: random.Random, *, was_so: bool) -> Iterator[Planted]:
    """A record comes too late, or too early, so that a sync is between its place and where it should be."""
    size = len(mirror.target.rows)
    places = [each for each in range(max(0, at - 30), min(size, at + 31)) if abs(each - at) > 1]
    downstream = [each.downstream for each in mirror.syncs]
    places = [each for each in places if any(min(at, each) < sync < max(at, each) for sync in downstream)]
    if not places or at == 0:
        return
    place = chance.choice(places)
    order = list(range(size))
    order.insert(place, order.pop(at))
    content = copied_content(mirror, at)
    if any(
        copied_content(mirror, each) == content for each in (*order[place - 1 : place], *order[place + 1 : place + 2])
    ):
        return  # Either of two equal records may be the one.
    broken = with_target(mirror, order, was_so=was_so)
    if was_so:  # What its own sync would say does not rise.
        broken = attrs.evolve(broken, syncs=tuple(each for each in broken.syncs if each.downstream != place))
    yield Planted(broken, frozenset({Kind.REORDERED}), mirror.source_at(at), place, 1)


# Records that only the target has


def _more(mirror: Mirror, at: int, index: int, kinds: set[Kind], *, was_so: bool) -> Iterator[Planted]:
    order = list(range(len(mirror.target.rows)))
    order.insert(at, index)
    yield Planted(with_target(mirror, order, was_so=was_so), frozenset(kinds), None, at, 1)


def doubled(mirror: Mirror, at: int, _: random.Random, *, was_so: bool) -> Iterator[Planted]:
    yield from _more(mirror, at + 1, at, {Kind.DUPLICATE, Kind.WRITTEN_TO}, was_so=was_so)


def foreign(mirror: Mirror, at: int, _: random.Random, *, was_so: bool) -> Iterator[Planted]:
    if at:
        yield from _more(mirror, at, FOREIGN, {Kind.FOREIGN}, was_so=was_so)


def written_to(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """Others write after the last record, of all or of some: Connect has then stored no more either."""
    if at:
        order = [*range(at), *([FOREIGN] * chance.randrange(1, _MOST_AT_ONCE))]
        broken = with_target(mirror, order, was_so=True)
        broken = attrs.evolve(broken, mirrored_end=mirror.source_at(at - 1) + 1)
        yield Planted(broken, frozenset({Kind.WRITTEN_TO}), None, at, len(order) - at)


# Syncs


def wrong_upstream(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    number = mirror.sync_at(at)
    if number is not None:
        right = mirror.syncs[number].upstream
        drawn = [right + 1, right - 1, *(chance.randrange(mirror.source.end_offset + 5) for _ in range(_DRAWN - 2))]
        for upstream in dict.fromkeys(each for each in drawn if each != right):
            yield Planted(mirror.with_sync(number, upstream=upstream), WRONG)


def wrong_downstream(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    number = mirror.sync_at(at)
    if number is not None:
        drawn = [at + 1, at - 1, *(chance.randrange(mirror.target.end_offset + 5) for _ in range(_DRAWN - 2))]
        for downstream in dict.fromkeys(each for each in drawn if each != at):
            yield Planted(mirror.with_sync(number, downstream=downstream), WRONG)


def sync_of_a_marker(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    """A sync names an offset of the source that has no data record, but a control batch."""
    number = mirror.sync_at(at)
    if number is not None:
        offsets = set(range(mirror.source.end_offset)) - set(mirror.source.rows.offsets.tolist())
        for upstream in sorted(offsets):
            yield Planted(mirror.with_sync(number, upstream=upstream), WRONG)


def sync_of_a_lost_record(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    """The record of a sync is lost, and the sync names the place where it would be."""
    number = mirror.sync_at(at)
    if number and at + 1 < len(mirror.target.rows):
        for each in _lost(mirror, at, was_so=True):
            syncs = [*each.mirror.syncs]
            syncs.insert(number, mirror.syncs[number])
            kept = tuple(sync for sync in syncs if sync.downstream != at or sync is mirror.syncs[number])
            yield attrs.evolve(each, mirror=attrs.evolve(each.mirror, syncs=kept))


def dropped_sync(mirror: Mirror, at: int, _: random.Random) -> Iterator[Planted]:
    number = mirror.sync_at(at)
    if number is not None and len(mirror.syncs) > 1:
        syncs = (*mirror.syncs[:number], *mirror.syncs[number + 1 :])
        yield Planted(attrs.evolve(mirror, syncs=syncs, has_all_syncs=False), frozenset())


# Tasks and topics that begin again


def _restarted(mirror: Mirror, at: int, first: int, broken: Mirror) -> Mirror:
    """Return a broken mirror in which another task goes on: at an index of the target, with a record of the old one."""
    again = mirror.syncs[0].producer_id + 1
    new = {each.upstream: each for each in broken.syncs}
    kept = [new[each.upstream] for each in mirror.syncs if each.downstream < at and each.upstream in new]
    later = [new[each.upstream] for each in mirror.syncs if each.downstream >= max(at, first + 1)]
    syncs = (*kept, Sync(mirror.source_at(first), at, again, -2), *later)
    is_later = [False] * (len(kept) + 1) + [True] * len(later)
    return attrs.evolve(
        broken,
        syncs=tuple(
            attrs.evolve(each, producer_id=again) if late else each for each, late in zip(syncs, is_later, strict=True)
        ),
    )


def skipped(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """A task restarts, and goes on some records too late."""
    size = len(mirror.target.rows)
    if 0 < at < size - 2:
        gap = chance.randrange(1, min(20, size - at - 1))
        order = [*range(at), *range(at + gap, size)]
        broken = _restarted(mirror, at, at + gap, with_target(mirror, order, was_so=True))
        yield Planted(broken, frozenset({Kind.LOST}), mirror.source_at(at), at, gap)


def copied_again(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """A task restarts, and goes on some records too early."""
    if at:
        size, back = len(mirror.target.rows), chance.randrange(1, at + 1)
        order = [*range(at), *range(at - back, size)]
        broken = _restarted(mirror, at, at - back, with_target(mirror, order, was_so=True))
        yield Planted(broken, frozenset({Kind.COPIED_AGAIN}), mirror.source_at(at - back), at, back)


def made_anew(mirror: Mirror, at: int, chance: random.Random) -> Iterator[Planted]:
    """The target is made anew while the task goes on, or another one does: what was mirrored before is gone."""
    if at:
        again = mirror.syncs[0].producer_id + chance.randrange(2)
        former = tuple(each for each in mirror.syncs if each.downstream < at)
        broken = with_target(mirror, range(at, len(mirror.target.rows)), was_so=True)
        later = (attrs.evolve(each, producer_id=again) for each in broken.syncs if each.downstream > 0)
        syncs = (*former, Sync(mirror.source_at(at), 0, again, -2), *later)
        yield Planted(attrs.evolve(broken, syncs=syncs), frozenset({Kind.TARGET_SHRUNK}), mirror.source_at(at), 0)


def _both(kind: str, plant: Callable[..., Iterator[Planted]]) -> dict[str, Plant]:
    """Return the two forms of a fault."""
    return {
        f"{kind}, mirrored so": functools.partial(plant, was_so=True),
        f"{kind}, since": functools.partial(plant, was_so=False),
    }


KINDS: Final[dict[str, Plant]] = {
    **_both("a lost record", lost),
    **_both("the last records are lost", lost_last),
    **_both("a lost batch", lost_batch),
    **_both("one of equal records is lost", lost_of_equals),
    **_both("a lost record of an aborted transaction", lost_aborted),
    "aborted records left out, reads committed": aborted_left_out,
    "one more lost, reads committed": lost_committed,
    "an offset without a record": hole,
    "offsets of a batch without records": hole_of_a_batch,
    "another key": changed_key,
    "another value": changed_value,
    "another header": changed_header,
    "another timestamp": changed_timestamp,
    "empty, not null": null_to_empty,
    "neighbours that changed places": swapped,
    **_both("a record at another place, over a sync", moved),
    **_both("a record twice", doubled),
    **_both("a foreign record", foreign),
    "others write after the mirror": written_to,
    "a sync with a wrong offset of the source": wrong_upstream,
    "a sync with a wrong offset of the target": wrong_downstream,
    "a sync of a control record": sync_of_a_marker,
    "a sync of a lost record": sync_of_a_lost_record,
    "a sync that is gone": dropped_sync,
    "a restart that skips": skipped,
    "a restart that copies again": copied_again,
    "a target made anew": made_anew,
}


def planted(kind: str, *, step: int = 1, first: int = 0) -> Iterator[Planted]:
    """Yield mirrors with faults of a kind, at each place, or at each of some."""
    for mirror in real_mirrors():
        for at in range(first, len(mirror.target.rows), step):
            yield from KINDS[kind](mirror, at, random.Random(f"{kind} {mirror.name} {at}"))
