# SPDX-License-Identifier: Apache-2.0
"""Computes the high watermark: the offset up to which a majority has flushed the leader's log.

Source: LeaderState#maybeUpdateHighWatermark. Differs: Kafka counts the leader's own records before they are flushed.
"""

from collections.abc import Iterable


def majority_offset(end_offsets: Iterable[int], majority_size: int) -> int | None:
    """Return the greatest offset, exclusive, that a majority of logs reaches; None if there are fewer logs than that.

    Args:
        end_offsets: of the voters' logs, exclusive; one entry per voter whose end is known.
        majority_size: of the voter set, 1 or more.
    """
    if majority_size < 1:
        raise ValueError(f"a majority of {majority_size} voters")
    ends = sorted(end_offsets, reverse=True)
    return ends[majority_size - 1] if len(ends) >= majority_size else None


def advanced_high_watermark(
    high_watermark: int, flushed_offsets: Iterable[int], majority_size: int, epoch_start_offset: int
) -> int:
    """Return the high watermark that follows from what voters have flushed; it never falls.

    Records of earlier epochs are committed only together with the first record of the leader's own epoch. Even if a
    majority has copies of them, a leader that lacks them may still be elected.

    Args:
        high_watermark: known so far, exclusive.
        flushed_offsets: of the voters' logs, the leader's included, exclusive. Up to there, each log must be known to
            equal the leader's.
        majority_size: of the voter set, 1 or more.
        epoch_start_offset: the first offset of the leader's epoch.

    Source: LeaderState#maybeUpdateHighWatermark, Raft (Ongaro) 5.4.2.
    """
    reached = majority_offset(flushed_offsets, majority_size)
    if reached is None or reached <= epoch_start_offset:
        return high_watermark
    return max(high_watermark, reached)
