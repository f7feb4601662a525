# SPDX-License-Identifier: Apache-2.0
"""What was done to a file or to names and is not certainly durable yet: each change with what has become of it."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import attrs

from raftlog.testing.file_system.crash_states import Fate

C_co = TypeVar("C_co", covariant=True)


@attrs.define(eq=False)
class Pending(Generic[C_co]):
    """A change, and what has become of it so far; equal to itself alone."""

    change: C_co
    fate: Fate = Fate.OPEN


def decide(covered: Iterable[Pending[object]], fate: Fate) -> None:
    """End a sync that has covered some changes; what another sync has decided meanwhile stays decided."""
    for each in covered:
        if each.fate is Fate.OPEN:
            each.fate = fate
