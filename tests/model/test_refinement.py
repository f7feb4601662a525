# SPDX-License-Identifier: Apache-2.0
"""The refinement check accepts what the model does, and refuses what it does with a broken rule."""

import random

import pytest

from tests.model.bounds import Bounds
from tests.model.logs import entry
from tests.model.protocol import Protocol, Transition
from tests.model.refinement import Event, NotInTheModelError, View, behaviour_events, replay
from tests.model.replica import CANDIDATE, FOLLOWER, LEADER, UNATTACHED, UNKNOWN

WALKS = 200
BOUNDS = (
    Bounds("faults", 3, 3, 6, values=4, crashes=3, resignations=1, snapshots=1, has_flush=True, has_duplicates=True),
    Bounds("changes", 4, 2, 5, values=2, crashes=1, changes=4, has_flush=True),
    Bounds("pre-votes", 3, 3, 4, values=3, crashes=2, has_flush=True, has_pre_vote=True),
    Bounds("alone", 2, 1, 4, values=3, crashes=2, changes=2, snapshots=1, has_flush=True),
    Bounds("queue", 3, 3, 6, values=4, crashes=2, resignations=2, has_flush=True, has_queue=True),
)

RARE = ("stands", "asks", "gives up", "crashes", "resigns", "enters")


def walk(bounds: Bounds, seed: int, length: int = 120) -> tuple[Protocol, list[Transition]]:
    """Go through the model at random, and not only from one election to the next."""
    protocol, chance = Protocol(bounds), random.Random(seed)
    state, path = protocol.initial(), []
    for _ in range(length):
        steps = [step for step in protocol.expand(state) if step.state != state]
        if not steps:
            break
        weights = [1 if step.label.startswith(RARE) else 20 for step in steps]
        path.append(chance.choices(steps, weights)[0])
        state = path[-1].state
    return protocol, path


def accepted(bounds: Bounds, *events: Event) -> bool:
    try:
        replay(events, bounds.replicas, bounds.initial_voters)
    except NotInTheModelError:
        return False
    return True


STANDS = Event(0, View(CANDIDATE, 1, 0, (), 0, 0, 0))
VOTES = Event(1, View(UNATTACHED, 1, 0, (), 0, 0, 0))
LEADS = Event(0, View(LEADER, 1, 0, (entry(1, 0),), 0, 0, 0))
FLUSHES = Event(0, LEADS.view._replace(flushed=1))
FOLLOWS = Event(1, View(FOLLOWER, 1, 0, (), 0, 0, 0))
TAKES = Event(1, FOLLOWS.view._replace(log=(entry(1, 0),)))
ACKNOWLEDGES = Event(1, TAKES.view._replace(flushed=1))
COMMITS = Event(0, FLUSHES.view._replace(high_watermark=1))
SOUND = (STANDS, VOTES, LEADS, FLUSHES, FOLLOWS, TAKES, ACKNOWLEDGES, COMMITS)
TWO = Bounds("two", 2, 2, 1)


def test_an_event_is_refused_without_the_one_that_it_needs() -> None:
    """An election and a commit are accepted; without the candidacy, the vote or the follower's flush, they are not.

    One event may be several steps: a follower that learns of its leader, takes its entries and flushes them.
    """
    assert accepted(TWO, *SOUND)
    assert accepted(TWO, *(each for each in SOUND if each not in (FOLLOWS, TAKES, FLUSHES)))
    for missing in (STANDS, VOTES, ACKNOWLEDGES):
        assert not accepted(TWO, *(each for each in SOUND if each != missing)), missing


@pytest.mark.parametrize(
    ("prefix", "wrong"),
    [
        (2, Event(1, View(UNATTACHED, 3, UNKNOWN, (), 0, 0, 0))),  # No replica is in that epoch.
        (0, VOTES),  # Nobody has asked for its vote.
        (2, Event(1, View(UNATTACHED, 1, UNKNOWN, (), 0, 0, 0), is_crash=True)),  # It forgets its vote.
        (2, Event(0, LEADS.view._replace(log=(entry(1, 1),)))),  # It leads without an entry for that.
        (3, Event(0, LEADS.view._replace(log=(entry(1, 0), entry(2, 1))))),  # An entry of another epoch.
        (3, Event(0, LEADS.view._replace(high_watermark=1))),  # One replica has it, and has not flushed it.
        (5, Event(1, FOLLOWS.view._replace(log=(entry(1, 0), entry(1, 1))))),  # The leader does not have that.
        (5, Event(1, TAKES.view._replace(high_watermark=1))),  # It is not committed.
        (7, Event(1, FOLLOWS.view)),  # It drops an entry that the leader has.
        (8, Event(0, LEADS.view._replace(role=FOLLOWER))),  # A leader follows itself.
        (8, Event(0, COMMITS.view._replace(high_watermark=0), is_crash=True)),  # It leads on after a restart.
    ],
)
def test_wrong_events_are_refused(prefix: int, wrong: Event) -> None:
    """After a sound beginning, one event that is none of the model."""
    assert accepted(TWO, *SOUND[:prefix])
    assert not accepted(TWO, *SOUND[:prefix], wrong)


THREE = Bounds("three", 3, 3, 3)
SECOND = Event(1, View(CANDIDATE, 2, 1, (), 0, 0, 0))
LOSES = Event(0, View(UNATTACHED, 2, UNKNOWN, (), 0, 0, 0))
VOTES_TOO = Event(0, LOSES.view._replace(vote=1))
BEGUN = LOSES.view._replace(log=(entry(1, 0),))
LEARNS = Event(2, View(FOLLOWER, 1, UNKNOWN, (), 0, 0, 0))
LEAVES = Event(2, LEARNS.view._replace(role=UNATTACHED, epoch=2))


@pytest.mark.parametrize(
    ("is_accepted", "events"),
    [
        (True, (VOTES_TOO, Event(0, VOTES_TOO.view._replace(log=BEGUN.log, flushed=1)))),
        (True, (Event(0, BEGUN),)),
        (True, (Event(0, BEGUN), Event(0, BEGUN._replace(flushed=1)))),
        (False, (Event(0, BEGUN._replace(log=(entry(1, 1),))),)),  # Not how the epoch begins.
        (False, (Event(0, BEGUN._replace(log=(entry(2, 0),))),)),  # It does not lead that epoch.
        (False, (Event(0, BEGUN), Event(0, BEGUN._replace(log=(*BEGUN.log, entry(1, 1)))))),  # One thing at a time.
        (False, (Event(0, BEGUN), Event(0, VOTES_TOO.view._replace(log=BEGUN.log)))),  # That is in its log already.
        (False, (Event(0, LOSES.view, is_crash=True), Event(0, BEGUN))),  # The crash has lost it.
        (False, (Event(0, View(CANDIDATE, 3, 0, (), 0, 0, 0)), Event(0, BEGUN._replace(epoch=3)))),  # It was at rest.
        (False, (Event(1, View(CANDIDATE, 2, 1, BEGUN.log, 0, 0, 0)),)),  # It has never led.
    ],
)
def test_a_log_is_written_late_as_it_was_decided_before(is_accepted: bool, events: tuple[Event, ...]) -> None:
    """A leader loses its epoch before the first entry of it is in its log, and votes for another replica."""
    before = (STANDS, VOTES, Event(0, View(LEADER, 1, 0, (), 0, 0, 0)), SECOND, LOSES)
    assert accepted(THREE, *before)
    assert accepted(THREE, *before, *events) is is_accepted


def test_a_follower_that_has_left_its_epoch_writes_what_it_has_fetched() -> None:
    """The entries of its leader, and no others."""
    before = (STANDS, VOTES, LEADS, LEARNS, SECOND, LEAVES)
    assert accepted(THREE, *before, Event(2, LEAVES.view._replace(log=(entry(1, 0),))))
    assert not accepted(THREE, *before, Event(2, LEAVES.view._replace(log=(entry(1, 0), entry(1, 1)))))
    assert not accepted(THREE, *(before[:3]), *before[4:], Event(2, LEAVES.view._replace(log=(entry(1, 0),))))


@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda bounds: bounds.name)
def test_behaviours_of_the_model_are_accepted(bounds: Bounds) -> None:
    """Random behaviours, of which the check sees only the views."""
    committed = 0
    for seed in range(WALKS // len(BOUNDS)):
        protocol, path = walk(bounds, seed)
        check = replay(behaviour_events(protocol, path), bounds.replicas, bounds.initial_voters)
        committed += max(replica.high_watermark for replica in check.replicas)
    assert committed > WALKS // len(BOUNDS)
