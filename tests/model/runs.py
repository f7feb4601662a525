# SPDX-License-Identifier: Apache-2.0
"""The runs of the model: each complete within its bounds, in three tiers by the time that they take."""

import enum
from typing import Final

import attrs

from tests.model.bounds import Bounds


class Tier(enum.Enum):
    """When a run is made."""

    QUICK = "make test"
    SLOW = "make test-slow"
    LARGE = "python -m tests.model"


@attrs.frozen
class Run:
    """A run of the model.

    Attributes:
        bounds: what it covers.
        tier: when it is made.
    """

    bounds: Bounds
    tier: Tier


MOST_STATES: Final = 3_000_000
"""In all quick and slow runs together."""
MOST_MEMORY_BYTES: Final = 256 << 20
"""Of the process of a quick or slow run: it holds the states of one run at a time."""

_QUICK, _SLOW, _LARGE = Tier


RUNS: Final = (
    # One replica, with everything that it can do.
    Run(
        Bounds(
            "one",
            1,
            1,
            3,
            values=2,
            crashes=2,
            wipes=1,
            snapshots=2,
            resignations=1,
            has_flush=True,
            has_queue=True,
            has_pre_vote=True,
        ),
        _QUICK,
    ),
    # Two, and the way from one to two and back.
    Run(
        Bounds("two", 2, 2, 2, values=1, resignations=1, crashes=1, snapshots=1, has_flush=True, has_duplicates=True),
        _QUICK,
    ),
    Run(Bounds("one-two-one", 2, 1, 2, changes=2, crashes=1, has_flush=True), _QUICK),
    # Work on a log that is done after it was decided on, maybe in another role; and candidates that are it once more.
    Run(
        Bounds("two-queue", 2, 2, 2, values=1, resignations=1, crashes=1, has_flush=True, has_queue=True),
        _QUICK,
    ),
    Run(Bounds("two-pre-vote-and-crashes", 2, 2, 2, crashes=2, has_flush=True, has_pre_vote=True), _QUICK),
    Run(
        Bounds(
            "two-all",
            2,
            2,
            1,
            values=1,
            changes=1,
            timeouts=1,
            resignations=1,
            has_pre_vote=True,
            crashes=1,
            wipes=1,
            snapshots=1,
            has_flush=True,
            has_queue=True,
            has_duplicates=True,
        ),
        _SLOW,
    ),
    Run(
        Bounds("one-two-one-all", 2, 1, 2, changes=2, crashes=1, snapshots=1, has_flush=True, has_duplicates=True),
        _SLOW,
    ),
    # Three: each kind of fault in runs of its own.
    Run(Bounds("three", 3, 3, 2), _QUICK),
    Run(Bounds("three-flush-and-crash", 3, 3, 2, crashes=1, has_flush=True), _SLOW),
    Run(Bounds("three-duplicates", 3, 3, 2, has_duplicates=True), _SLOW),
    Run(Bounds("three-pre-vote", 3, 3, 2, has_pre_vote=True), _SLOW),
    Run(Bounds("three-one-removed", 3, 3, 2, changes=1), _SLOW),
    Run(Bounds("three-queue", 3, 3, 2, has_flush=True, has_queue=True), _SLOW),
    Run(Bounds("two-and-a-third", 3, 2, 2, changes=1), _QUICK),
    Run(Bounds("two-and-a-third-queue", 3, 2, 2, changes=1, has_queue=True), _SLOW),
    Run(Bounds("disk-wiped-and-replaced", 3, 2, 1, values=1, changes=2, wipes=1), _SLOW),
    # More than is visited on each change.
    Run(Bounds("two-changed", 2, 2, 2, values=1, changes=1, crashes=1, snapshots=1, has_flush=True), _LARGE),
    Run(Bounds("three-removed-and-value", 3, 3, 1, values=1, changes=1), _LARGE),
    Run(Bounds("three-and-a-fourth", 4, 3, 1, changes=1), _LARGE),
    Run(Bounds("three-duplicates-and-value", 3, 3, 2, values=1, has_duplicates=True), _LARGE),
    Run(Bounds("three-queue-and-value", 3, 3, 2, values=1, has_flush=True, has_queue=True), _LARGE),
)
