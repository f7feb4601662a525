# SPDX-License-Identifier: Apache-2.0
"""What each rule of the protocol is for: the rules broken one by one, and the invariant that each then breaks."""

from typing import Final

import attrs

from tests.model.bounds import Bounds
from tests.model.properties import (
    COMMITTED_AGREES,
    COMMITTED_STAYS,
    EPOCHS_GROW,
    EPOCHS_IN_ORDER,
    HIGH_WATERMARKS_GROW,
    LEADER_COMPLETE,
    LOGS_MATCH,
    ON_A_MAJORITY,
    ONE_CHANGE,
    ONE_LEADER,
    ONE_VOTE,
    POINTERS_IN_ORDER,
    SETS_OVERLAP,
)


@attrs.frozen
class BrokenRule:
    """A rule that is broken, where that shows, and as what.

    Attributes:
        rule: what is wrong, as the steps of the model name it.
        invariant: the invariant that is then broken. It alone is looked at, so that a rule is shown to matter for this.
        bounds: small bounds in which it shows. Without the broken rule, the invariants hold in them.
        replays: the bugs of the catalogue that broke this rule.
        is_deep: whether the counterexample takes seconds to find.
    """

    rule: str
    invariant: str
    bounds: Bounds
    replays: str = ""
    is_deep: bool = False


def _in_turn(*candidates: int) -> tuple[int, ...]:
    """Only one replica stands in each epoch: that makes deep behaviours few, and is no less a counterexample."""
    return tuple(1 << each for each in candidates)


_ALONE = Bounds("one replica", 1, 1, 2, crashes=1, has_flush=True)
_FIGURE_8 = Bounds("figure 8 of Raft", 3, 3, 4, candidates=_in_turn(0, 1, 0, 1), entries_per_fetch=1)
_LOST_TAIL = Bounds("a lost tail", 3, 3, 2, crashes=1, has_flush=True, candidates=_in_turn(0, 1))
_LOST_SAME = Bounds("a restart in the epoch", 2, 2, 1, values=2, crashes=1, has_flush=True)
_RESTART = Bounds("a restart of a voter", 3, 3, 1, crashes=1)
_DIVERGENCE = Bounds("divergence", 3, 3, 3, values=1, candidates=_in_turn(0, 1, 0))
_SPARE = Bounds(
    "a change by each of two leaders", 3, 2, 3, changes=2, crashes=1, has_flush=True, candidates=_in_turn(0, 1, 2)
)
_GROWN = Bounds("two additions", 3, 1, 2, changes=2, crashes=1, has_flush=True, candidates=_in_turn(0, 0))
_SWAP = Bounds("one voter, and another", 2, 1, 2, changes=1, crashes=1, has_flush=True)
_WIPE = Bounds("a wiped disk", 3, 3, 2, wipes=1)
_SNAPSHOT = Bounds("a snapshot", 3, 3, 2, values=1, snapshots=1, candidates=_in_turn(0, 1))

BROKEN_RULES: Final = (
    BrokenRule("half of the voters elect", ONE_LEADER, Bounds("two replicas", 2, 2, 1)),
    BrokenRule("a vote is not durable", ONE_VOTE, _RESTART, "R12"),
    BrokenRule("a vote is not durable", ONE_LEADER, _RESTART, "R12"),
    BrokenRule("a leader forgets its vote in a restart", ONE_LEADER, attrs.evolve(_RESTART, has_flush=True), "K2"),
    BrokenRule("a leader goes on leading after a restart", LOGS_MATCH, _LOST_SAME, "K1"),
    BrokenRule("leadership is not durable", LOGS_MATCH, _LOST_SAME, "K1"),
    BrokenRule("votes do not compare logs", LEADER_COMPLETE, Bounds("two elections", 3, 3, 2)),
    BrokenRule("votes do not compare logs", COMMITTED_STAYS, Bounds("two elections", 3, 3, 2)),
    BrokenRule("a candidate claims what is not flushed", LEADER_COMPLETE, _LOST_TAIL),
    BrokenRule("the leader counts what is not flushed", ON_A_MAJORITY, _LOST_TAIL, "K34"),
    BrokenRule("the leader counts what is not flushed", LEADER_COMPLETE, _ALONE, "K34"),
    BrokenRule("a follower fetches before it has flushed", ON_A_MAJORITY, _LOST_TAIL, "K10, R16"),
    BrokenRule("a follower fetches before it has flushed", LEADER_COMPLETE, _LOST_TAIL, "K10, R16"),
    BrokenRule("entries of earlier epochs are committed by count", LEADER_COMPLETE, _FIGURE_8, "R2"),
    BrokenRule(
        "the high watermark may fall",
        HIGH_WATERMARKS_GROW,
        Bounds("an addition", 2, 1, 1, values=1, changes=1, entries_per_fetch=1),
        "K9, R3",
    ),
    BrokenRule(
        "a high watermark beyond the log is taken",
        POINTERS_IN_ORDER,
        Bounds("slow follower", 3, 3, 1, values=1, entries_per_fetch=1),
    ),
    BrokenRule(
        "a removed leader counts itself", ON_A_MAJORITY, Bounds("a leader is removed", 3, 3, 1, changes=1), "K9"
    ),
    BrokenRule("replicas that are no voters count", ON_A_MAJORITY, Bounds("an observer", 3, 2, 1)),
    BrokenRule("a fetch is served without comparing epochs", LOGS_MATCH, _DIVERGENCE, "K26"),
    BrokenRule("a diverging fetch counts", ON_A_MAJORITY, _DIVERGENCE, "K23"),
    BrokenRule(
        "a late diverging answer is taken",
        COMMITTED_STAYS,
        attrs.evolve(_DIVERGENCE, values=0, has_duplicates=True),
        "R30",
    ),
    BrokenRule("the high watermark is taken from a diverging answer", COMMITTED_AGREES, _DIVERGENCE, "K24"),
    BrokenRule("voters are changed before an entry of the epoch is committed", LEADER_COMPLETE, _SPARE, "R1", True),
    BrokenRule("voters are changed while a change is uncommitted", ONE_CHANGE, _GROWN, "R4, K17"),
    BrokenRule("voters are changed while a change is uncommitted", LEADER_COMPLETE, _GROWN, "R4, K17", True),
    BrokenRule("a voter is swapped for another in one entry", SETS_OVERLAP, _SWAP, "R31"),
    BrokenRule("a voter is swapped for another in one entry", LEADER_COMPLETE, _SWAP, "R31"),
    BrokenRule("a wiped disk keeps its identity", LEADER_COMPLETE, _WIPE, "K22, R9"),
    BrokenRule("a wiped disk keeps its identity", EPOCHS_GROW, _WIPE, "R13"),
    BrokenRule("a snapshot has what is not committed", COMMITTED_AGREES, _SNAPSHOT),
    BrokenRule("a fetch before the log start gets records", LOGS_MATCH, _SNAPSHOT, "R19"),
    BrokenRule("a log after an installed snapshot is kept", EPOCHS_IN_ORDER, _SNAPSHOT, "R18"),
)
