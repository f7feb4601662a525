# SPDX-License-Identifier: Apache-2.0
"""Records that come at another place than their own: moved ones, and copies of earlier ones.

Differences are told window by window. Here they are seen together: what is lost in one window and comes in another one
has moved, and what looks foreign is a copy if the source has had an equal record before.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.rows import DigestRows

ReadRows = Callable[[OffsetRange], Iterable[DigestRows]]

_COMES: Final = frozenset({MirrorFault.FOREIGN, MirrorFault.DUPLICATE, MirrorFault.WRITTEN_TO})


def with_displaced(
    differences: Sequence[MirrorDifference], source: ReadRows, target: ReadRows
) -> Iterator[MirrorDifference]:
    """Yield differences, as they are seen together, in no order.

    Args:
        differences: of one lifetime.
        source: reads a range of the source.
        target: reads a range of the target.
    """
    yield from _with_copies(list(_with_moved(differences, source, target)), source, target)


def _with_moved(
    differences: Sequence[MirrorDifference], source: ReadRows, target: ReadRows
) -> Iterator[MirrorDifference]:
    lost = [each for each in differences if each.kind is MirrorFault.LOST and each.is_exact]
    come = [each for each in differences if each.kind in _COMES and each.is_exact]
    places: dict[bytes, list[MirrorDifference]] = defaultdict(list)
    if lost and come:
        for each in reversed(come):
            places[_contents(target, each.target, each.count)].append(each)
        places.pop(b"", None)
    origins: dict[MirrorDifference, MirrorDifference] = {}
    for each in lost if places else ():
        found = places.get(_contents(source, each.source, each.count))
        if found:
            origins[found.pop()] = each
    gone = set(origins.values())
    for each in differences:
        if each in origins:
            yield attrs.evolve(each, kind=MirrorFault.REORDERED, source=origins[each].source)
        elif each not in gone:
            yield each


def _contents(read: ReadRows, place: OffsetRange, count: int) -> bytes:
    """Return the digests of some records, or nothing if it is open which ones of a range they are."""
    rows = DigestRows.joined(read(place))
    return rows.digests[:count].tobytes() if count in (1, len(rows)) else b""


def _with_copies(
    differences: Sequence[MirrorDifference], source: ReadRows, target: ReadRows
) -> Iterator[MirrorDifference]:
    foreign = [each for each in differences if each.kind is MirrorFault.FOREIGN and each.is_exact]
    contents = {each: DigestRows.joined(target(each.target)).digests[:1] for each in foreign}
    copies = set()
    if foreign:
        for rows in source(OffsetRange(0, max(each.source.start for each in foreign))):
            for each in foreign:
                if (rows.between(0, each.source.start).digests == contents[each]).all(axis=1).any():
                    copies.add(each)
    for each in differences:
        yield attrs.evolve(each, kind=MirrorFault.DUPLICATE) if each in copies else each
