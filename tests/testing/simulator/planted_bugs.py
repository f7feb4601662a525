# SPDX-License-Identifier: Apache-2.0
"""Bugs to plant in the core and its log, so that each invariant of the simulator is seen to find something."""

from typing import Any, Final

import attrs

from raftlog.log import decisions
from raftlog.offsets import OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.quorum import acting
from raftlog.quorum.elections import votes_asked
from raftlog.quorum.following import fetching, truncating
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.leading import appending, leading_epoch, reading
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles import starting, votes
from raftlog.quorum.roles.roles import Prospective, Resigned, Unattached
from raftlog.quorum.roles.transitions import Surroundings
from raftlog.quorum.seam.effects import AppendOutcome, EndAppend, RaiseHighWatermark
from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.voters.voter_set import VoterSet
from tests.mutants.catalogue import MUTANTS
from tests.mutants.planting import Mutant, Wrong, all_of, instead, instead_of_property, missing, swapped
from tests.testing.simulator.fresh_mutants import FRESH_MUTANTS
from tests.testing.simulator.planted_autopilot import AUTOPILOT
from tests.testing.simulator.planted_disks import DISKS
from tests.testing.simulator.planted_life import LIFE
from tests.testing.simulator.planted_machines import MACHINES


def _changing_the_vote(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(core.role, Unattached | Prospective):
            core.role = attrs.evolve(core.role, voted_key=None)
        return right(core, *arguments, **options)

    return may_grant_vote


def _with_half_of_the_votes(right: Any) -> Wrong:
    return lambda self: len(self.granted) >= max(1, len(self.voters) // 2)


def _forgetting_the_epoch(right: Wrong) -> Wrong:
    def starting_role(stored: Any, last_epoch: int, around: Any, *, may_stand: bool) -> Any:
        older = None if stored is None else attrs.evolve(stored, leader_epoch=max(0, stored.leader_epoch - 1))
        role = right(older, 0, around, may_stand=may_stand)
        return Unattached(role.epoch, election_deadline_ms=300) if isinstance(role, Resigned) else role

    return starting_role


def _at_any_offset(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, candidate: Any, log_end: Any, *, is_pre_vote: bool) -> bool:
        return bool(right(core, candidate, attrs.evolve(log_end, offset=10**9, epoch=10**6), is_pre_vote=is_pre_vote))

    return may_grant_vote


def _and_back_again(right: Wrong) -> Wrong:
    def raise_high_watermark(core: Any, offset: int) -> None:
        right(core, offset)
        core.outbox.on_log(lambda number: RaiseHighWatermark(number, max(0, offset - 1)))

    return raise_high_watermark


def _with_a_minority(right: Wrong) -> Wrong:
    return lambda before, ends, majority_size, start: right(before, ends, max(1, majority_size - 1), start)


def _when_handed_over(right: Wrong) -> Wrong:
    def end_committed(core: Any, leadership: Any) -> None:
        known = core.high_watermark
        core.high_watermark = leadership.handed_end_offset
        right(core, leadership)
        core.high_watermark = known

    return end_committed


def _telling_twice(right: Wrong) -> Wrong:
    def end_committed(core: Any, leadership: Any) -> None:
        pending = list(leadership.pending)[:1]
        right(core, leadership)
        if pending and pending[0] not in leadership.pending:
            outcome = AppendOutcome.COMMITTED
            core.outbox.tell(EndAppend(pending[0].number, pending[0].last_offset, outcome))

    return end_committed


def _the_last_first(right: Wrong) -> Wrong:
    def end_committed(core: Any, leadership: Any) -> None:
        leadership.pending.reverse()
        right(core, leadership)
        leadership.pending.reverse()

    return end_committed


def _writing_twice(right: Wrong) -> Wrong:
    def append(batches: Any, epoch: int, values: Any, now_ms: int, **options: Any) -> Any:
        right(batches, epoch, values, now_ms, **options)
        return right(batches, epoch, values, now_ms, **options)

    return append


def _without_flushing(right: Wrong) -> Wrong:
    def append(core: Any, role: Any, answer: Any) -> None:
        identity = core.identity
        core.identity = attrs.evolve(identity, can_become_voter=False)
        right(_Observer(core), role, answer)
        core.identity = identity

    return append


class _Observer:
    """A replica that takes itself for an observer."""

    is_voter = False

    def __init__(self, core: Any) -> None:
        object.__setattr__(self, "_core", core)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._core, name, value)


def _always_valid(right: Wrong) -> Wrong:
    def validate(log: Any, offset: int, epoch: int) -> Any:
        return ValidOffsetAndEpoch.valid(OffsetAndEpoch(offset, epoch))

    return validate


def _to_the_start(right: Wrong) -> Wrong:
    return lambda log, end_offset: 0


def _forgetting_what_is_committed(right: Wrong) -> Wrong:
    def truncate(core: Any, role: Any, answer: Any) -> Any:
        core.committed_offset, core.high_watermark = 0, None
        return right(core, role, answer)

    return truncate


def _one_batch_too_far(right: Wrong) -> Wrong:
    return lambda log, end_offset: max(0, right(log, end_offset) - 1)


def _never(_: Any) -> None:
    return None


def _at_once(right: Wrong) -> Wrong:
    return lambda core: core.now_ms


def _but_not_followers(right: Wrong) -> Wrong:
    def deadline_ms(core: Any) -> int | None:
        return None if type(core.role).__name__ in ("Follower", "Unattached") else right(core)

    return deadline_ms


def _at_its_word(right: Wrong) -> Wrong:
    return lambda core, leadership: leadership.reads.newest


def _up_to_the_log_end(right: Wrong) -> Wrong:
    def begin(core: Any, leadership: Any) -> None:
        right(core, leadership)
        pending, end = leadership.reads.pending, core.log.state.end_offset
        for index, each in enumerate(pending):
            pending[index] = each._replace(offset=end + 1)

    return begin


_Expected: Final = type("_Expected", (dict,), {"get": dict.__getitem__})
"""The requests that were sent: the core takes each number that it is given for that of one of them."""


def _expecting_each_answer(right: Wrong) -> Wrong:
    def init(core: Any, *arguments: Any, **options: Any) -> None:
        right(core, *arguments, **options)
        core.sent = _Expected(core.sent)

    return init


def _without_what_began_the_epoch(right: Wrong) -> Wrong:
    def begin(core: Any, leadership: Any) -> None:
        right(core, leadership)
        pending, start = leadership.reads.pending, leadership.epoch_start_offset
        for index, each in enumerate(pending):
            if start is not None and each.offset == start + 1:
                pending[index] = each._replace(offset=start)

    return begin


def _only_to_better_logs(right: Wrong) -> Wrong:
    def may_grant_vote(core: Any, candidate: Any, log_end: Any, *, is_pre_vote: bool) -> bool:
        is_better = is_pre_vote or log_end != core.log.end
        return is_better and bool(right(core, candidate, log_end, is_pre_vote=is_pre_vote))

    return may_grant_vote


def _much_later(right: Wrong) -> Wrong:
    return lambda around: right(around) + around.config.election_timeout_ms * 2


def _bug(name: str, rule: str, plant: Any) -> Mutant:
    return Mutant(name, rule, "", plant, ())


_OWN: Final = (
    _bug("votes-again", "a voter votes once in an epoch", swapped(votes_asked, "may_grant_vote", _changing_the_vote)),
    _bug(
        "half-wins",
        "a majority of votes wins an election",
        instead_of_property(votes.Votes, "is_won", _with_half_of_the_votes(None)),
    ),
    _bug(
        "voters-by-id",
        "a voter is a replica with its directory",
        instead(VoterSet, "is_voter", lambda voters, key: key.id in voters.voters),
    ),
    _bug(
        "stands-unflushed",
        "a replica stands when its log is durable and at rest",
        instead_of_property(LocalReplica, "may_begin_election", lambda core: core.may_stand and core.is_voter),
    ),
    _bug(
        "refuses-equal-logs",
        "a vote is given to a candidate whose log is as good as one's own",
        swapped(votes_asked, "may_grant_vote", _only_to_better_logs),
    ),
    _bug(
        "elections-late",
        "a voter without a leader stands within its longest timeout",
        swapped(Surroundings, "new_election_deadline_ms", _much_later),
    ),
    _bug("epoch-back", "the epoch never falls", swapped(starting, "starting_role", _forgetting_the_epoch)),
    _bug(
        "any-candidate",
        "a vote is for a candidate whose log is up to date",
        swapped(votes_asked, "may_grant_vote", _at_any_offset),
    ),
    _bug(
        "minority-commits",
        "a majority commits",
        swapped(leading_epoch, "advanced_high_watermark", _with_a_minority),
    ),
    _bug(
        "told-when-written",
        "an append is acknowledged when it is committed",
        swapped(appending, "end_committed", _when_handed_over),
    ),
    _bug(
        "high-watermark-back",
        "the high watermark rises",
        swapped(LocalReplica, "raise_high_watermark", _and_back_again),
    ),
    _bug(
        "reads-unconfirmed",
        "a read is confirmed by a majority after it began",
        swapped(reading, "_confirmed_by_majority", _at_its_word),
    ),
    _bug("reads-uncommitted", "a read is of what is committed", swapped(reading, "_begin", _up_to_the_log_end)),
    _bug(
        "reads-without-leader-change",
        "a read is of all that was committed before it",
        swapped(reading, "_begin", _without_what_began_the_epoch),
    ),
    _bug("told-twice", "an append ends once", swapped(appending, "end_committed", _telling_twice)),
    _bug(
        "told-out-of-order",
        "appends end in the order of their offsets",
        swapped(appending, "end_committed", _the_last_first),
    ),
    _bug("written-twice", "records are written once", swapped(BatchAccumulator, "append", _writing_twice)),
    _bug("unflushed-fetch", "a Fetch names what is durable", swapped(fetching, "_append", _without_flushing)),
    _bug(
        "no-divergence",
        "a leader finds out where a follower's log diverges",
        swapped(decisions, "validate_offset_and_epoch", _always_valid),
    ),
    _bug(
        "truncates-committed",
        "committed records are not truncated",
        all_of(
            instead(decisions, "check_truncation", lambda *_: None),
            instead(decisions, "proven_end_offset", lambda log: log.start_offset),
            swapped(truncating, "truncate", _forgetting_what_is_committed),
            swapped(decisions, "truncation_offset", _one_batch_too_far),
        ),
    ),
    _bug(
        "no-elections",
        "a follower without a leader begins an election",
        swapped(acting, "deadline_ms", _but_not_followers),
    ),
    _bug(
        "late-answer",
        "a late answer, or a second one, is ignored",
        swapped(LocalReplica, "__init__", _expecting_each_answer),
    ),
    _bug(
        "votes-in-quarantine",
        "a replica that has lost records does not vote",
        instead_of_property(LocalReplica, "may_stand", lambda core: core.may_vote),
    ),
    _bug(
        "votes-after-a-loss",
        "a replica that may have forgotten a vote does not vote",
        instead_of_property(LocalReplica, "may_stand", lambda core: not core.log.is_quarantined),
    ),
    _bug(
        "counted-in-quarantine",
        "a replica that has lost records is not counted",
        instead_of_property(LocalReplica, "fetching_id", lambda core: core.identity.key.id),
    ),
    _bug("any-number-of-appends", "appends that wait are bounded", missing(Leadership, "check_room")),
    _bug("no-pause", "what is due is done once", swapped(acting, "deadline_ms", _at_once)),
)
_OF_CATALOGUE: Final = (
    "R-unknown",
    "R-acknowledged",
    "R-unflushed",
    "R2",
    "K23",
    "R12-told",
    "K1-core",
    "R-longer-log-votes",
    "K24-core",
    "R-read-end",
    "K9-resigns",
    *("R-waiting-fetches", "R-failed-update", "K5-end", "K6", "K7", "R8", "K14-core"),
    *("R-caught-up", "R11-removing", "K16"),
    *("K20-listener", "K27-listeners", "K-cleaning", "K-cleaning-pause"),
    *("W3-remembered", "K31", "R17-update", "R-forgetful-counts", "K-chunk-loop"),
    *("R10", "R-two-to-one-read", "R-two-to-one-parked", "S-after-a-failure", "R-read-fetch", "R-read-answer"),
    *("K9-read", "S-full-stands", "S-full-forever", "S-full-failed", "K19", "K27-pinned", "K-told-directory"),
    *(
        "K18-lost",
        "R4-core",
        "R4-uncommitted",
        "R-caught-up-anew",
        "R23-told",
        "R29-pause",
        *("R28-partial", "R-put-off", "K31-high-watermark", "R-epoch-without-records"),
        "R11-adding",
    ),
    *("W3-remembered", "K31", "K28-inside", "K29-name", "S-no-return", "W-proven", "K33-read", "R14-roll"),
    *("K31-once", "R18", "K31-behind", "K31-empty", "S-reserve"),
    *("K31-alarm", "K31-hidden", "K31-durable", "K31-inside", "K31-nothing-left"),
    *("R14-crc", "R17-lower-mark", "R18-diverging", "R18-named-again", "R28-unverified"),
    *("K31-hole", "R17-unreadable", "R17-unread-mark", "R17-early-epochs", "R17-unread-epochs", "R17-unread-log"),
)
_CATALOGUED: Final = tuple(map(MUTANTS.__getitem__, _OF_CATALOGUE))
_OF_FRESH: Final = (
    "F1-pre-votes-count",
    "F2-oldest-state",
    "F3-epoch-at-the-end",
    "F4-majority-of-election",
    "F5-voters-before-commit",
    "F8-read-by-old-fetch",
    "F9-stopped-listener",
)
"""Those of the fresh mutants that few schedules find."""
_FRESH: Final = tuple(each for each in FRESH_MUTANTS if each.name in _OF_FRESH)
_ALL: Final = (*_OWN, *LIFE, *DISKS, *AUTOPILOT, *MACHINES, *_CATALOGUED, *_FRESH)
BUGS: Final[dict[str, Mutant]] = {each.name: each for each in _ALL}
"""The bugs by name."""
