# SPDX-License-Identifier: Apache-2.0
"""Judging what a replica remembers of elections, beside its log."""

import uuid
from typing import Any

import attrs
import pytest

from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.election_rules import judge_election
from raftlog.uuid_text import uuid_to_text
from tests.tools.auditing.made_quorum import TOPIC, MadeLog, leader_change, voter, voters

STATE_PATH = f"n1/{TOPIC}-0/quorum-state"
COPY = "raftlog-quorum-state-1"
SECOND_COPY = "raftlog-quorum-state-2"


def log() -> MadeLog:
    """A log of epochs 1 and 3, led by 1 and then by 2."""
    made = MadeLog().bootstrap(voters(1, 2, 3)).data(3)
    made.lead(2, (1, 2, 3), epoch=3)
    return made


def found(evidence: PartitionEvidence) -> list[tuple[str, str, int | None]]:
    """Rules, paths and epochs of what is wrong."""
    return [(finding.rule, finding.path, finding.epoch) for finding in judge_election(evidence)]


SOUND: dict[str, dict[str, Any]] = {
    "the leader is known": {"epoch": 3, "leader_id": 2, "vote": 2},
    "a vote for a loser": {"epoch": 3, "leader_id": 2, "vote": 1},
    "nothing but the epoch": {"epoch": 3},
    "a later epoch": {"epoch": 9, "leader_id": 3, "vote": 3},
    "a vote with a directory": {
        "epoch": 3,
        "vote": 2,
        "voted_directory_id": uuid_to_text(voter(2).voter_key.directory_id or uuid.UUID(int=0)),
    },
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_state_is_silent(name: str) -> None:
    """The state of a voter after an election is sound."""
    assert found(log().state(**SOUND[name]).evidence()) == []


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "an old copy": ("election-stale", {"epoch": 2, "leader_id": 1, "vote": 9}),
    "another leader": ("election-leader", {"epoch": 3, "leader_id": 1, "vote": 9}),
    "a vote for nobody that voted": ("election-vote", {"epoch": 3, "vote": 9}),
    "a leader that never was a voter": ("election-stranger", {"epoch": 9, "leader_id": 77, "vote": 78}),
    "no epoch is left": ("election-last-epoch", {"epoch": 2147483647, "leader_id": 77, "vote": 78}),
    "a vote for another directory": (
        "election-vote",
        {"epoch": 3, "vote": 2, "voted_directory_id": uuid_to_text(uuid.UUID(int=99))},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_state(name: str) -> None:
    """A state that contradicts the log is one finding, in the file."""
    rule, fields = WRONG[name]

    assert found(log().state(**fields).evidence()) == [(rule, STATE_PATH, fields["epoch"])]


def test_a_missing_state() -> None:
    """A log of several epochs has a quorum-state, if the whole directory was looked at."""
    evidence = log().evidence()
    named = tuple(attrs.evolve(file, task=attrs.evolve(file.task, was_named=True)) for file in evidence.files)

    assert found(evidence) == [("election-missing", STATE_PATH, None)]
    assert found(PartitionEvidence(evidence.place, named)) == []
    assert found(MadeLog().snapshot(0, epoch=0, named=voters(1)).evidence()) == []


def test_a_state_that_does_not_read_is_reported_elsewhere() -> None:
    """A file without contents is not missing."""
    made = log().state(3)
    made.others[-1] = attrs.evolve(made.others[-1], contents=None)

    assert found(made.evidence()) == []


def test_one_batch_of_a_wrong_epoch_makes_no_state_stale() -> None:
    """A last batch that claims an epoch without a LeaderChange is at fault itself."""
    made = log().state(3, leader_id=2)
    made.epoch = 12
    made.data(1)

    assert found(made.evidence()) == []


def test_a_leader_change_that_contradicts_itself_is_reported_elsewhere() -> None:
    """A leader that could not have been elected does not contradict quorum-state."""
    made = MadeLog().state(1, leader_id=2)
    made.write(leader_change(9, (1, 2, 3)))

    assert found(made.evidence()) == []


def test_static_voters_may_be_voted_for() -> None:
    """Voters in quorum-state itself are used, and nothing is judged if no voter is known."""
    made = MadeLog().data(2)

    assert found(made.state(1, vote=4, data_version=0, current_voters=[4, 5, 6]).evidence()) == []
    assert found(MadeLog().data(2).state(1, vote=4).evidence()) == []


def test_copies() -> None:
    """Raftlog's copies say what quorum-state does; one that does not is named, and the second one not again."""
    same: dict[str, Any] = {"epoch": 3, "leader_id": 2, "vote": 1}
    made = log().state(**same).state(**same, name=COPY, sequence=4, is_vote_lost=False)
    assert found(made.evidence()) == []

    made = log().state(**same).state(9, name=COPY).state(9, name=SECOND_COPY)
    assert found(made.evidence()) == [("election-copies", f"n1/{TOPIC}-0/{COPY}", 9)]


VOTED: dict[str, Any] = {"epoch": 3, "vote": 1}

COPIES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, str]] = {
    "an epoch of Kafka's": ({"epoch": 4, "leader_id": 2}, VOTED, VOTED, "election-handover"),
    "the leader of the epoch of the vote": ({**VOTED, "leader_id": 2}, VOTED, VOTED, "election-handover"),
    "that leader without the vote": ({"epoch": 3, "leader_id": 2}, VOTED, VOTED, "election-handover"),
    "a vote where there was none": (VOTED, {"epoch": 3}, {"epoch": 3}, "election-handover"),
    "another vote": ({"epoch": 3, "vote": 2}, VOTED, VOTED, "election-copies"),
    "no vote any more": ({"epoch": 3}, VOTED, VOTED, "election-copies"),
    "another leader": (
        {"epoch": 3, "leader_id": 2},
        {"epoch": 3, "leader_id": 1},
        {"epoch": 3, "leader_id": 1},
        "election-copies",
    ),
    "an epoch below": ({"epoch": 3, "leader_id": 2}, {"epoch": 4}, {"epoch": 4}, "election-copies"),
    "one copy is as new": ({"epoch": 4}, {"epoch": 4}, VOTED, "election-copies"),
    "one copy is gone": ({"epoch": 4}, VOTED, None, "election-copies"),
    "copies of two writes": ({"epoch": 4}, {**VOTED, "sequence": 8}, VOTED, "election-copies"),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_that_kafka_has_overtaken(name: str) -> None:
    """Kafka leaves both copies older than a quorum-state that may follow them; other differences are reported."""
    kafkas, first, second, rule = COPIES[name]
    made = log().state(**kafkas).state(**{"sequence": 7, "is_vote_lost": False, **first}, name=COPY)
    if second is not None:
        made.state(**{"sequence": 7, "is_vote_lost": False, **second}, name=SECOND_COPY)

    assert [each for each, _, _ in found(made.evidence())] == [rule]


def test_a_missing_state_with_a_copy() -> None:
    """The copy is named, as it can replace the file."""
    (finding,) = judge_election(log().state(3, leader_id=2, name=COPY).evidence())

    assert finding.rule == "election-missing"
    assert "a copy: epoch 3, leader 2" in finding.reason
