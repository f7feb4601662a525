# SPDX-License-Identifier: Apache-2.0
"""Faults in files with right CRCs are found by the whole verb, at the right places, and nothing else is."""

from collections.abc import Iterator

import pytest

from tests.tools.mirrors.comparing.planted_mirrors import KINDS, planted
from tests.tools.mirrors.faulty.faulty_files import FaultyFiles
from tests.tools.mirrors.faulty.flow_faults import FLOW_KINDS, verdicts
from tests.tools.mirrors.faulty.record_faults import verdict
from tests.tools.mirrors.on_spark.parts_here import summer_here, without_spark
from tests.tools.mirrors.planted_clusters import read_by

pytestmark = pytest.mark.slow

STEP = 97
FIRST = 11
SMALL_STEP = 7
"""For kinds that few records can have."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyFiles]:
    """Copies of both clusters, which are again as they were after each fault."""
    made = FaultyFiles.made(tmp_path_factory.mktemp("clusters"))
    assert made.findings() == []
    yield made
    assert made.findings() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_records_is_found_in_files(kind: str, files: FaultyFiles) -> None:
    """At some places of each mirror: the right rule and places on both sides, and what follows for groups."""
    sampled = list(planted(kind, step=STEP, first=FIRST)) or list(planted(kind, step=SMALL_STEP))
    assert sampled
    assert [verdict(files, each) for each in sampled] == ["found"] * len(sampled)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_one_batch_show_the_same(kind: str, files: FaultyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """At fewer places, where logs are read in parts as small as they can be, as tasks of Spark read them."""
    read_by(monkeypatch, summer_here(1))
    sampled = list(planted(kind, step=3 * STEP, first=FIRST)) or list(planted(kind, step=SMALL_STEP))
    assert sampled
    with without_spark():
        assert [verdict(files, each) for each in sampled] == ["found"] * len(sampled)


@pytest.mark.parametrize("kind", FLOW_KINDS)
def test_a_fault_of_the_flow_is_found_in_files(kind: str, files: FaultyFiles) -> None:
    """Checkpoints, offsets of groups, heartbeats and names: some of each kind."""
    found = list(verdicts(files, kind, step=STEP))
    assert found
    assert found == ["found"] * len(found)
