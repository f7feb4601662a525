# SPDX-License-Identifier: Apache-2.0
"""What a run of the model covers: its replicas, its faults, and how many of each."""

import attrs

BUDGETS = ("values", "changes", "crashes", "wipes", "snapshots", "timeouts", "resignations")
"""What is limited by number over a whole behaviour. A step that is none of these is not limited."""


@attrs.frozen
class Bounds:
    """A run of the model: which behaviours it has. Without bounds there would be no end of them.

    Attributes:
        name: of the run.
        replicas: number of identities. An identity is a directory of a node: a wiped disk is another one.
        voters: how many of them are voters at first.
        epochs: the last epoch.
        values: number of appended values.
        changes: number of voter changes: each adds or removes one.
        crashes: number of crashes, each of which may lose any part of what is not flushed, and ends with a restart.
        wipes: number of replicas that lose their disk for good.
        snapshots: number of snapshots that move a log's start.
        timeouts: number of fetches that are given up by their sender; they remain in the network.
        resignations: number of leaders that resign.
        has_flush: whether appends are flushed in a step of their own; else at once.
        has_queue: whether a log is written in a step of its own, after the replica has decided that it shall be; else
            at once.
        has_duplicates: whether requests stay in the network after they were handled, so that they may be again.
        has_pre_vote: whether a replica asks for pre-votes before it stands.
        entries_per_fetch: the most that an answer has.
        candidates: which replicas may stand in each epoch from 1 on, as bits; empty for any.
    """

    name: str
    replicas: int
    voters: int
    epochs: int
    values: int = 0
    changes: int = 0
    crashes: int = 0
    wipes: int = 0
    snapshots: int = 0
    timeouts: int = 0
    resignations: int = 0
    has_flush: bool = False
    has_queue: bool = False
    has_duplicates: bool = False
    has_pre_vote: bool = False
    entries_per_fetch: int = 9
    candidates: tuple[int, ...] = ()

    @property
    def initial_voters(self) -> int:
        """The first voter set, as bits."""
        return (1 << self.voters) - 1

    @property
    def limits(self) -> tuple[int, ...]:
        """The most of each of BUDGETS."""
        return tuple(getattr(self, name) for name in BUDGETS)

    def may_stand(self, replica: int, epoch: int) -> bool:
        """Return whether the bounds let a replica stand in an epoch."""
        if epoch > self.epochs:
            return False
        return not self.candidates or bool(self.candidates[epoch - 1] >> replica & 1)

    def __str__(self) -> str:
        counts = [f"{getattr(self, name)} {name}" for name in BUDGETS if getattr(self, name)]
        switches = {
            "flush": self.has_flush,
            "queue": self.has_queue,
            "duplicates": self.has_duplicates,
            "pre-vote": self.has_pre_vote,
            f"{self.entries_per_fetch} entries per fetch": self.entries_per_fetch < 9,
            "candidates " + "/".join(f"{each:b}" for each in self.candidates): bool(self.candidates),
        }
        spares = f" + {self.replicas - self.voters}" if self.replicas > self.voters else ""
        sizes = [f"{self.voters}{spares} replicas", f"{self.epochs} epochs"]
        return ", ".join([*sizes, *counts, *(name for name, is_on in switches.items() if is_on)])
