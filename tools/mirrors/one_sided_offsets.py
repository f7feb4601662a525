# SPDX-License-Identifier: Apache-2.0
"""Offsets at which only one of two logs with the same offsets has a record: what may explain that."""

from collections.abc import Mapping, Sequence

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.mirrors.comparing.differences import MirrorFault
from raftlog.tools.mirrors.comparing.pair import PairResult


def without_explained(
    result: PairResult,
    are_compacted: tuple[bool | None, bool | None],
    damage: tuple[Sequence[Finding], Sequence[Finding]],
) -> tuple[PairResult, Mapping[MirrorFault, str]]:
    """Return a result without what compaction or damage explains, and what else is doubtful, and why.

    What only the source has is a hole of the target, and what only the target has is foreign, unless the other log is
    compacted, or has damage, which is told of its own.

    Args:
        result: of logs with the same offsets.
        are_compacted: whether compaction may have removed records of the source, and of the target; None if no
            metadata say.
        damage: what cannot be read of the source, and of the target.
    """
    explained, doubts = set[MirrorFault](), dict[MirrorFault, str]()
    for kind, side, is_compacted, unread in zip(
        (MirrorFault.FOREIGN, MirrorFault.HOLE), ("source", "target"), are_compacted, damage, strict=True
    ):
        if is_compacted or any(each.severity > Severity.HARMLESS for each in unread):
            explained.add(kind)
        elif is_compacted is None:
            doubts[kind] = f"; or compaction has removed what the {side} had there: no metadata of the {side} say"
    left = tuple(each for each in result.differences if each.kind not in explained)
    return attrs.evolve(result, differences=left), doubts
