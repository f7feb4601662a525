# SPDX-License-Identifier: Apache-2.0
"""Describes the change from one voter set to the next, and whether it is safe."""

import attrs

from raftlog.voters.voter_set import ReplicaKey, VoterNode, VoterSet


@attrs.frozen
class VoterDifference:
    """The difference of two voter sets, as ascending ids. A voter with a new directory id is removed and added.

    Attributes:
        added: new voters.
        removed: voters that are no longer in the set.
        updated: voters with other endpoints or supported versions, or with a directory id that was not known before.
    """

    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    updated: tuple[int, ...] = ()

    @classmethod
    def between(cls, before: VoterSet, after: VoterSet) -> "VoterDifference":
        """Compare two sets."""
        stayed = [node for node in after.voters.values() if _is_same_voter(before, node)]
        stayed_ids = {node.voter_key.id for node in stayed}
        return cls(
            tuple(sorted(after.voter_ids - stayed_ids)),
            tuple(sorted(before.voter_ids - stayed_ids)),
            tuple(node.voter_key.id for node in stayed if before.voters[node.voter_key.id] != node),
        )

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.updated)

    def __str__(self) -> str:
        parts = (("added", self.added), ("removed", self.removed), ("updated", self.updated))
        return ", ".join(f"{what} {', '.join(map(str, ids))}" for what, ids in parts if ids) or "nothing changed"


def _is_same_voter(before: VoterSet, node: VoterNode) -> bool:
    known = before.voters.get(node.voter_key.id)
    return known is not None and known.voter_key.directory_id in (None, node.voter_key.directory_id)


def disjoint_majorities(one: VoterSet, other: VoterSet) -> tuple[list[ReplicaKey], list[ReplicaKey]] | None:
    """Return a majority of each set without a common voter, smallest and first by id; None if there are none."""
    if one.has_overlapping_majority(other):
        return None
    shared = sorted(one.voter_keys & other.voter_keys)
    mine = [*sorted(one.voter_keys - other.voter_keys), *shared][: one.majority_size]
    left = [key for key in shared if key not in mine]
    theirs = [*sorted(other.voter_keys - one.voter_keys), *left][: other.majority_size]
    return mine, theirs


def rewritten_text(before: VoterSet, before_offset: int, after: VoterSet) -> str:
    """Return one clause about a voter set that was put in place of another by a tool, and what follows from that.

    Args:
        before: the set that was given up.
        before_offset: of its record.
        after: the set in its place.
    """
    given_up = ", ".join(map(str, sorted(before.voter_keys - after.voter_keys)))
    disks = f": the disks of {given_up} must never start again" if given_up else ""
    return f"voters {before} of offset {before_offset} were rewritten to {after}, by no leader{disks}"
