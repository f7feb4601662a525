# SPDX-License-Identifier: Apache-2.0
"""Findings, ``raftlog quorum`` and the page with its advice say the same about each planted fault."""

import pytest

from tests.planted.facts import contradictions
from tests.planted.fault import Faults
from tests.planted.faults import FAULTS, SUBJECTS
from tests.planted.ground import QUORUMS
from tests.planted.plant import Field
from tests.planted.table import PLACES


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Where faults are planted."""
    return Field(tmp_path_factory.mktemp("facts"))


@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.subject for subject in SUBJECTS])
def test_one_source(subject: Faults, field: Field) -> None:
    """At one place of each kind, no output contradicts another: verdict, offsets, seed, and the nodes to start."""
    found = [
        f"{fault.name}: {each}"
        for fault in subject
        if set(fault.grounds) & set(QUORUMS)
        for each in contradictions(field.plant(fault, 0), field)
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if set(fault.grounds) & set(QUORUMS)])
def test_one_source_wherever_it_is(name: str, field: Field) -> None:
    """Nor does it at any other place."""
    found = [
        f"place {place}: {each}"
        for place in range(1, PLACES)
        for each in contradictions(field.plant(FAULTS[name], place), field)
    ]
    assert found == []
