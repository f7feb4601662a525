# SPDX-License-Identifier: Apache-2.0
"""A difference between what a broker's directories and the metadata say."""

from uuid import UUID

import attrs

from raftlog.tools.beliefs.difference_kinds import DifferenceKind


@attrs.frozen
class BrokerDifference:
    """One difference.

    Attributes:
        kind: what it is, and what follows from it.
        node_id: of the broker; None if it is not known.
        seen: what both sides say, in words.
        path: of the directory; None if it is about something that is not there.
        topic: name of the topic; None if it is not about a partition.
        topic_id: its id; None if it is not known.
        partition: number of the partition.
    """

    kind: DifferenceKind
    node_id: int | None
    seen: str
    path: str | None = None
    topic: str | None = None
    topic_id: UUID | None = None
    partition: int | None = None
