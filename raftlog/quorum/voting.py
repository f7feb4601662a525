# SPDX-License-Identifier: Apache-2.0
"""Who can be elected: a majority of the voters grants its vote to a log that is at least as up to date as theirs.

Source: QuorumState#canGrantVote, Raft (Ongaro) 5.4.1.
"""

from collections.abc import Iterable

from raftlog.offsets import OffsetAndEpoch


def is_up_to_date(candidate_end: OffsetAndEpoch, voter_end: OffsetAndEpoch) -> bool:
    """Whether a voter may grant its vote: the epoch of the last record decides, then the log end.

    Args:
        candidate_end: end offset of the candidate's log, exclusive, with the epoch of its last record.
        voter_end: that of the voter's.
    """
    return candidate_end >= voter_end


def can_be_elected(
    candidate_end: OffsetAndEpoch, voter_ends: Iterable[OffsetAndEpoch], majority_size: int, ungiven_votes: int = 0
) -> bool:
    """Whether a candidate gets a majority of votes.

    Args:
        candidate_end: end offset of its log, exclusive, with the epoch of its last record.
        voter_ends: the same of each voter that may vote, the candidate included where it is a voter.
        majority_size: of the voter set.
        ungiven_votes: how many other voters are assumed to grant theirs.
    """
    granting = sum(is_up_to_date(candidate_end, voter_end) for voter_end in voter_ends)
    return granting + ungiven_votes >= majority_size
