# SPDX-License-Identifier: Apache-2.0
"""Directories that a real Kafka wrote: nothing is wrong with their quorums, on one node, on some, or on all."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from raftlog.tools.auditing.evidence import PartitionEvidence, SurveyTask, group_by_place
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from raftlog.tools.auditing.judgement.election_rules import judge_election
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from tests.golden_files import GOLDEN

CLEAN = (
    "dynamic-quorum/data",
    "static-upgrade/data",
    "static-upgrade/before-upgrade",
    "wire/data",
    "killed/data",
    "killed/killed-0",
    "killed/killed-1",
    "killed/killed-2",
    "data-topics/data",
    "groups/data",
    "mirror/data",
)


def surveyed(paths: Iterable[Path]) -> list[PartitionEvidence]:
    """The evidence of log directories and the partitions in them."""
    tasks = [task for task in find_tasks(map(str, paths)) if isinstance(task, SurveyTask)]
    return group_by_place(map(survey, tasks))


@pytest.mark.parametrize("name", CLEAN)
def test_a_real_quorum_is_silent(name: str) -> None:
    """No judgement of voters, elections or directories has anything to say."""
    nodes = sorted((GOLDEN / name).iterdir())
    places = surveyed(nodes)

    assert any(place.is_raft for place in places)
    assert [finding for place in places for finding in (*judge_voters(place), *judge_election(place))] == []
    assert list(judge_directories(places)) == []
    for node in nodes:
        here = [place for place in places if place.place.log_directory == str(node)]
        assert list(judge_directories(here)) == []
