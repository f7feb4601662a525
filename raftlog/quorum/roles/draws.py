# SPDX-License-Identifier: Apache-2.0
"""The random choices of a replica, which its driver makes."""

from typing import Protocol


class Draws(Protocol):
    """One method per purpose, so that a test can dictate each choice."""

    def election_timeout_ms(self, election_timeout_ms: int) -> int:
        """Return the time until an election: the given time, or up to twice as long (exclusive); 0 for 0."""
        ...

    def bootstrap_index(self, count: int) -> int:
        """Return which of ``count`` bootstrap servers is tried first: 0 or more, below ``count``."""
        ...
