# SPDX-License-Identifier: Apache-2.0
"""Faults that one, two or all replicas have, and two faults at once: each is found, and no sound replica is blamed."""

import itertools
from pathlib import Path

import pytest

from raftlog.tools.auditing.run.run import audit
from tests.planted.facts import contradictions_on
from tests.planted.faults import FAULTS
from tests.planted.ground import QUORUMS
from tests.planted.plant import Field, is_alarm
from tests.planted.spread import Spread, plant_two, spread
from tests.planted.table import PLACES
from tests.spark.planted_trees import plant_all

OF_A_BATCH = (
    "append-time-in-raft",
    "producer-in-raft",
    "record-with-attributes",
    "controller-that-caps",
    "leader-without-its-own-vote",
    "leader-that-is-no-voter",
    "voters-changed-by-a-new-leader",
    "voters-changed-again-at-once",
)
"""Kinds about a batch, which a leader may have written to every replica, or one replica to itself."""

OF_A_DIRECTORY = ("directory-without-id", "node-of-negative-id", "topic-of-other-id")
"""Kinds about a file of one log directory, beside a log."""

FEWER_ALIKE = {"directory-without-id": 1, "node-of-negative-id": 1, "voters-changed-again-at-once": 2}
"""Kinds for which fewer than three golden log directories have the same files."""

PAIRS = (
    *itertools.combinations(OF_A_BATCH, 2),
    *itertools.product(OF_A_BATCH, ("node-of-negative-id", "topic-of-other-id")),
    ("quorum-state-of-another-cluster", "leader-without-its-own-vote"),
    ("quorum-state-of-another-cluster", "directory-without-id"),
    ("directory-of-other-node", "topic-of-other-id"),
)
"""Kinds that can be planted one after the other."""


def _problems(said: Spread, field: Field) -> list[str]:
    """What is wrong with what was said of a fault of several replicas.

    A batch that other replicas have in another form is reported as that, too; the sound replicas are not.
    """
    found = [] if said.found else ["not found"]
    places = {(str(spot.path), spot.position) for spot in said.spots}
    found += [str(alarm) for alarm in said.alarms if (alarm.path, alarm.position) not in places]
    return found + list(contradictions_on(said.ground, field))


def _judged(name: str, count: int, places: range, field: Field) -> list[str] | None:
    """Plant a kind at the first place where so many replicas have the same files, and return what is wrong."""
    for place in places:
        said = spread(field, FAULTS[name], place, count)
        if said is not None:
            assert len(said.holders) == count
            return _problems(said, field)
    return None


@pytest.mark.parametrize("name", [*OF_A_BATCH, *OF_A_DIRECTORY])
def test_on_one_two_and_three_replicas(name: str, field: Field) -> None:
    """A fault is found, and no replica without it is blamed, also where three of four or five have it."""
    most = FEWER_ALIKE.get(name, 3)
    told = [_judged(name, count, range(PLACES), field) for count in (1, 2, 3)]

    assert told == [[] if count <= most else None for count in (1, 2, 3)]


def test_a_fault_of_one_cluster_hides_none_of_another(tmp_path: Path) -> None:
    """A snapshot that differs from its log is told although replicas of another cluster differ."""
    names = [name for name, fault in FAULTS.items() if "snapshot-records" in fault.rules]
    names += [
        next(
            name for name, fault in FAULTS.items() if fault.rules == ("replica-batch",) and fault.grounds[0] in QUORUMS
        )
    ]
    spots = plant_all(tmp_path, names)
    said = [each for judged in audit([str(tmp_path)], 1, reads_messages=True) for each in judged.findings]

    assert [
        name
        for name, spot in spots.items()
        if not any(each.rule in FAULTS[name].rules and spot.is_named_by(each) for each in said)
    ] == []


@pytest.mark.parametrize("pair", PAIRS[::4], ids=" and ".join)
def test_two_at_once(pair: tuple[str, str], field: Field) -> None:
    """Each is found as if it were alone, and nothing else is said, nor does anything contradict itself."""
    assert _problems_of_two(pair, 0, field) == []


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_two_at_once_wherever_they_are(pair: tuple[str, str], field: Field) -> None:
    """So it is for every pair, at several places."""
    assert [_problems_of_two(pair, place, field) for place in range(3)] == [[], [], []]


def _problems_of_two(pair: tuple[str, str], place: int, field: Field) -> list[str]:
    faults = FAULTS[pair[0]], FAULTS[pair[1]]
    ground, spots = plant_two(field, faults, place)
    said = field.audit(field.directory / ground)
    told = list(contradictions_on(ground, field))
    found = [
        [each for each in said if each.rule in fault.rules and spot.is_named_by(each)]
        for fault, spot in zip(faults, spots, strict=True)
    ]
    told += [
        f"{fault.name} is not found at {spot}" for fault, spot, of in zip(faults, spots, found, strict=True) if not of
    ]
    clean = field.clean(ground)
    told += [str(each) for each in said if each not in clean and is_alarm(each) and each not in itertools.chain(*found)]
    return told
