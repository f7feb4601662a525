# SPDX-License-Identifier: Apache-2.0
"""Decides which candidate can be elected: its log must be at least as up to date as those of a majority of voters.

Source: QuorumState#canGrantVote, Raft (Ongaro) 5.4.1.
"""

from collections.abc import Iterable

from raftlog.offsets import OffsetAndEpoch


def is_up_to_date(candidate_end: OffsetAndEpoch, voter_end: OffsetAndEpoch) -> bool:
    """Whether a voter may grant its vote: the epochs of the last records are compared first, then the log ends.

    Args:
        candidate_end: end offset of the candidate's log, exclusive, with the epoch of its last record.
        voter_end: that of the voter's log.
    """
    return candidate_end >= voter_end


def can_be_elected(
    candidate_end: OffsetAndEpoch, voter_ends: Iterable[OffsetAndEpoch], majority_size: int, ungiven_votes: int = 0
) -> bool:
    """Whether a candidate gets a majority of votes.

    Args:
        candidate_end: end offset of its log, exclusive, with the epoch of its last record.
        voter_ends: the same for each voter that may vote, including the candidate if it is a voter.
        majority_size: of the voter set.
        ungiven_votes: how many other voters are assumed to grant their votes.
    """
    granting = sum(is_up_to_date(candidate_end, voter_end) for voter_end in voter_ends)
    return granting + ungiven_votes >= majority_size
