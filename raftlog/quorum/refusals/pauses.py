# SPDX-License-Identifier: Apache-2.0
"""How long to wait before something that was refused is tried again."""

from raftlog.invariants import invariant


def doubled_pause_ms(refusals: int, first_ms: int, longest_ms: int) -> int:
    """Return the pause after some refusals in a row: twice as long after each, up to a limit.

    Args:
        refusals: how many there were; at least 1.
        first_ms: after the first one.
        longest_ms: after any. At least 1 ms is waited.
    """
    pause_ms = min(max(first_ms, 1) << min(refusals - 1, 30), max(longest_ms, 1))
    invariant(pause_ms > 0, "a pause of {} ms after {} refusals", pause_ms, refusals)
    return pause_ms
