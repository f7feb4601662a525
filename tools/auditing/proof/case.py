# SPDX-License-Identifier: Apache-2.0
"""The facts that a verdict and its advice share: what is proven, the lineage to keep, and its voters."""

import functools
from collections.abc import Sequence
from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.copies import Copy, latest_epoch, of_voters
from raftlog.tools.auditing.proof.lineage import Lineage, completed, longest, parting
from raftlog.tools.auditing.proof.proofs import Proof, conflicting, proofs
from raftlog.voters.voter_set import VoterSet


class Case:
    """The directories of a quorum, with what follows from them; nothing changes.

    Args:
        copies: of stopped nodes; at least one.
        leader_id: the leader of the latest epoch that any file has seen; None if it is not known.
    """

    def __init__(self, copies: Sequence[Copy], leader_id: int | None = None) -> None:
        self.copies: Final = copies
        self.leader_id: Final = leader_id
        self.proofs: Final[Sequence[Proof]] = proofs(copies)
        self.conflict: Final = conflicting(self.proofs)
        known = [copy.lineage for copy in copies]
        self._lineages = {copy.path: completed(copy.lineage, known) for copy in copies}

    def lineage_of(self, copy: Copy) -> Lineage:
        """Return the lineage of a replica, with what other replicas know of the offsets before its log."""
        return self._lineages[copy.path]

    @property
    def proven(self) -> OffsetAndEpoch:
        """End of what is proven to be committed, exclusive, with the epoch of the last record."""
        return self.proofs[0].point if self.proofs else OffsetAndEpoch(0, -1)

    def has_proven(self, copy: Copy) -> bool:
        """Whether a replica has all that is proven, without a gap."""
        return copy.lineage.contains(self.proven)

    @functools.cached_property
    def seed(self) -> Copy | None:
        """The copy to go on from: of those with all that is proven, by epoch, then by offset; None if there is none.

        Of equal ones, one without damage is preferred, and then a voter.
        """
        found = [each for each in self.copies if each.can_start and each.key is not None and self.has_proven(each)]
        usual = self.usual_voters
        ranks = {
            each.path: (each.lineage.end, each.is_sound, not each.has_damage, each.is_voter_of(usual)) for each in found
        }
        return max(found, key=lambda each: ranks[each.path], default=None)

    @functools.cached_property
    def lineage(self) -> Lineage:
        """The one to keep."""
        if self.seed is not None:
            return self.lineage_of(self.seed)
        if self.proofs:
            return self.proofs[0].lineage
        return longest(list(self._lineages.values()))

    @functools.cached_property
    def usual_voters(self) -> VoterSet:
        """The voters of the most up-to-date log that names some."""
        in_order = sorted(self.copies, key=lambda each: each.end, reverse=True)
        return next((each.voters_in_force for each in in_order if len(each.voters_in_force)), VoterSet())

    @functools.cached_property
    def voters(self) -> VoterSet:
        """The voters in force at the end of the lineage to keep."""
        if self.seed is not None and len(self.seed.voters_in_force):
            return self.seed.voters_in_force
        return self.voters_of_proof if len(self.voters_of_proof) else self.usual_voters

    @functools.cached_property
    def voters_of_proof(self) -> VoterSet:
        """The voters in force at the end of what is proven; empty if nothing is."""
        if not self.proofs:
            return VoterSet()
        top = self.proofs[0]
        for copy in sorted(self.copies, key=lambda each: each.end, reverse=True):
            named = copy.voters_before(top.point.offset)
            knows = top.point in copy.snapshots or copy.lineage.contains(top.point)
            if knows and named is not None and len(named.voters):
                return named.voters
        return self.usual_voters

    @functools.cached_property
    def present(self) -> list[Copy]:
        """One copy of each of the voters that are here."""
        return of_voters(self.copies, self.voters)

    @functools.cached_property
    def lacking(self) -> list[Copy]:
        """The voters of the time that lack what is proven to be committed."""
        return [each for each in of_voters(self.copies, self.voters_of_proof) if not self.has_proven(each)]

    def has_rewritten(self, copy: Copy) -> bool:
        """Whether a log has a later epoch in place of what is proven: its leader was elected without that."""
        if not self.proofs or self.has_proven(copy):
            return False
        later = copy.lineage.end.epoch > self.proven.epoch
        return later and parting(self.lineage_of(copy), self.proofs[0].lineage) is not None

    @functools.cached_property
    def leaders(self) -> list[Copy]:
        """The directory of the leader of the latest epoch, if it is here and still a voter."""
        return [each for each in self.present if each.key is not None and each.key.id == self.leader_id]

    @functools.cached_property
    def longer_than_leader(self) -> OffsetAndEpoch | None:
        """The longest log of the latest epoch, if its leader's own was shorter without any damage; or None.

        A leader has what it wrote, so that it has lost records.
        """
        latest = latest_epoch(self.copies)
        ends = [each.lineage.end for each in self.copies if each.lineage.end.epoch == latest]
        longest_end = max(ends, default=None)
        if not self.leaders or longest_end is None or not self.leaders[0].is_reach_known:
            return None
        return longest_end if max(self.leaders[0].reach, self.leaders[0].lineage.end) < longest_end else None
