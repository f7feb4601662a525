# SPDX-License-Identifier: Apache-2.0
"""Changes of a file or of names that are not certainly durable yet, each with its fate."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import attrs

from raftlog.testing.file_system.crash_states import Fate

C_co = TypeVar("C_co", covariant=True)


@attrs.define(eq=False)
class Pending(Generic[C_co]):
    """A change and its fate so far; compared by identity."""

    change: C_co
    fate: Fate = Fate.OPEN


def decide(covered: Iterable[Pending[object]], fate: Fate) -> None:
    """Set the fate of the changes that a sync covered, except those that another sync has decided meanwhile."""
    for each in covered:
        if each.fate is Fate.OPEN:
            each.fate = fate
