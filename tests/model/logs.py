# SPDX-License-Identifier: Apache-2.0
"""Logs of the model: a tuple of entries, each an int that has its epoch and what it is.

A log keeps all its entries, also those before its start: they stand for the state in the snapshot. A rule that looks at
one of them, but for the last, knows more than a replica can; the rules here do not.
"""

from typing import Final

Log = tuple[int, ...]

LEADER_CHANGE: Final = 0
VOTERS: Final = 1 << 24
"""With the bits of the voters, of which there are 24 at most: a voter set."""
_SHIFT: Final = 25

VALID: Final = "valid"
DIVERGING: Final = "diverging"
SNAPSHOT: Final = "snapshot"


def entry(epoch: int, payload: int) -> int:
    """Return an entry: a leader change, a voter set, or the value of a number from 1 to 63."""
    return epoch << _SHIFT | payload


def epoch_of(each: int) -> int:
    return each >> _SHIFT


def is_voters(each: int) -> bool:
    return bool(each & VOTERS)


def last_epoch(log: Log) -> int:
    """Return the epoch of the last entry, or 0 for an empty log."""
    return log[-1] >> _SHIFT if log else 0


def last_change_offset(log: Log) -> int:
    """Return the offset of the newest voter set, or -1."""
    for offset in range(len(log) - 1, -1, -1):
        if log[offset] & VOTERS:
            return offset
    return -1


def voters_in_force(log: Log, initial: int) -> int:
    """Return the newest voter set, committed or not, as bits."""
    offset = last_change_offset(log)
    return initial if offset < 0 else log[offset] & (VOTERS - 1)


def end_offset_for_epoch(log: Log, start: int, epoch: int) -> tuple[int, int]:
    """Return the greatest epoch at or below one, and its end offset (exclusive), from the entries after a start."""
    for offset in range(len(log) - 1, start - 1, -1):
        if epoch_of(log[offset]) <= epoch:
            return epoch_of(log[offset]), offset + 1
    if start and epoch_of(log[start - 1]) <= epoch:
        return epoch_of(log[start - 1]), start
    return epoch, start


def validate(log: Log, start: int, offset: int, epoch: int) -> tuple[str, int, int]:
    """Return how a leader's log answers a fetch from an offset whose sender's last entry has an epoch.

    For a divergence, also the epoch and the end offset to which the sender must truncate at most.
    """
    if start == 0 and offset == 0:
        return VALID, 0, 0
    if start:
        snapshot_epoch = epoch_of(log[start - 1])
        if offset < start or (offset == start and epoch != snapshot_epoch) or epoch < snapshot_epoch:
            return SNAPSHOT, 0, 0
    found, end = end_offset_for_epoch(log, start, epoch)
    if found != epoch or end < offset:
        return DIVERGING, found, end
    return VALID, 0, 0


def truncation_offset(log: Log, start: int, epoch: int, end: int) -> int:
    """Return where a log is cut that was told that the leader's entries of an epoch end at an offset."""
    if epoch == 0:
        return min(end, len(log))
    found, mine = end_offset_for_epoch(log, start, epoch)
    return min(mine, end) if found == epoch else mine


def common_length(one: Log, other: Log) -> int:
    """Return how many first entries two logs share."""
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return length


def members(bits: int) -> list[int]:
    """Return the replicas of a set, ascending."""
    return [each for each in range(bits.bit_length()) if bits >> each & 1]


def majority(bits: int) -> int:
    """Return how many of a set are a majority."""
    return bits.bit_count() // 2 + 1


def log_text(log: Log, start: int, flushed: int) -> str:
    """Return a log in words: a bracket where it starts, and a bar where what is flushed ends."""
    words = []
    for offset, each in enumerate(log):
        payload = each & ((1 << _SHIFT) - 1)
        what = "leader" if payload == LEADER_CHANGE else f"value {payload}"
        if is_voters(each):
            what = "voters {" + ",".join(map(str, members(payload & (VOTERS - 1)))) + "}"
        mark = ("| " if offset == flushed else "") + ("snapshot; " if 0 < start == offset else "")
        words.append(f"{mark}{epoch_of(each)}:{what}")
    return "[" + ", ".join(words) + "]"
