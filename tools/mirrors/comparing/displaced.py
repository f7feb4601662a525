# SPDX-License-Identifier: Apache-2.0
"""Records that come at another place than their own: moved ones, and copies of earlier ones.

Differences are told window by window. Here they are seen together: what is lost in one window and comes in another one
has moved, and what looks foreign is a copy if the source has had an equal record before.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from raftlog.tools.mirrors.comparing.differences import MirrorDifference, MirrorFault, OffsetRange
from raftlog.tools.mirrors.comparing.log_view import SummedView

_COMES: Final = frozenset({MirrorFault.FOREIGN, MirrorFault.DUPLICATE, MirrorFault.WRITTEN_TO})

_Contents = tuple[int, bytes]
"""How many records there are, and their sum."""


def with_displaced(
    differences: Sequence[MirrorDifference], source: SummedView, target: SummedView
) -> Iterator[MirrorDifference]:
    """Yield differences, as they are seen together, in no order.

    Args:
        differences: of one lifetime.
        source: the source.
        target: the target.
    """
    yield from _with_copies(list(_with_moved(differences, source, target)), source, target)


def _with_moved(
    differences: Sequence[MirrorDifference], source: SummedView, target: SummedView
) -> Iterator[MirrorDifference]:
    lost = [each for each in differences if each.kind is MirrorFault.LOST and each.is_exact]
    come = [each for each in differences if each.kind in _COMES and each.is_exact]
    places: dict[_Contents, list[MirrorDifference]] = defaultdict(list)
    for each in reversed(come if lost else ()):
        contents = _contents(target, each.target, each.count)
        if contents is not None:
            places[contents].append(each)
    origins: dict[MirrorDifference, MirrorDifference] = {}
    for each in lost if places else ():
        contents = _contents(source, each.source, each.count)
        if contents is not None and places.get(contents):
            origins[places[contents].pop()] = each
    gone = set(origins.values())
    for each in differences:
        if each in origins:
            yield attrs.evolve(each, kind=MirrorFault.REORDERED, source=origins[each].source)
        elif each not in gone:
            yield each


def _contents(view: SummedView, place: OffsetRange, count: int) -> _Contents | None:
    """Return what some records are; None if one is unknown, or if it is open which ones of a range they are."""
    if count not in {1, view.count(place)}:
        return None
    rank = view.rank(place.start)
    sums, are_known = view.known_sums(np.array([rank, rank + count], np.int64))
    return (count, sums[0].tobytes()) if are_known[0] else None


def _with_copies(
    differences: Sequence[MirrorDifference], source: SummedView, target: SummedView
) -> Iterator[MirrorDifference]:
    """Yield differences, where what looks foreign is a copy if the source has an equal record before it."""
    foreign = [each for each in differences if each.kind is MirrorFault.FOREIGN and each.is_exact]
    contents = [target.first_rows(each.target, 1).digests[0] for each in foreign]
    end = max((each.source.start for each in foreign), default=0)
    firsts = source.first_offsets(contents, end) if foreign else []
    pairs = zip(foreign, firsts, strict=True)
    copies = {each for each, first in pairs if first is not None and first < each.source.start}
    for each in differences:
        yield attrs.evolve(each, kind=MirrorFault.DUPLICATE) if each in copies else each
