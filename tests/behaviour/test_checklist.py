# SPDX-License-Identifier: Apache-2.0
"""Every clause of Kafka's suites in ``clauses.txt`` has a test here that is named after it.

A clause ``testAddAt`` is ``test_add_at``. Where two suites have a test of one name, the suite's name comes first, as in
``test_tree_map_log_history_add_at``.
"""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent

MODULES: Final = {
    "KRaftControlRecordStateMachineTest": "test_control_record_state_machine.py",
    "VoterSetTest": "test_voter_set.py",
    "VoterSetHistoryTest": "test_voter_set.py",
    "TreeMapLogHistoryTest": "test_voter_set.py",
    "RecordsIteratorTest": "test_records_iterator.py",
    "BatchAccumulatorTest": "test_batch_accumulator.py",
    "KafkaRaftClientReconfigTest": "test_raft_client_reconfig_*.py",
    "KafkaRaftClientAutoJoinTest": "test_raft_client_auto_join.py",
    "KafkaMetadataLogTest": "test_metadata_log.py",
    "KafkaRaftClientSnapshotTest": "test_raft_client_snapshot.py",
    "FileRawSnapshotTest": "test_snapshot_files.py",
    "NotifyingRawSnapshotWriterTest": "test_snapshot_files.py",
    "RecordsSnapshotWriterTest": "test_snapshot_files.py",
    "SnapshotWriterReaderTest": "test_snapshot_files.py",
    "SnapshotsTest": "test_snapshot_files.py",
}
"""Where the tests of a suite are; a star stands for any text."""

MISSPELLED: Final = {"testKBuilderRaftVersion1WithVoterSet": "testBuilderKRaftVersion1WithVoterSet"}
"""What Kafka calls a test, and what it means."""


def _snake_case(name: str) -> str:
    """Return a Java name in Python's case: ``KRaft`` and ``LEO`` are words."""
    spaced = re.sub(r"(KRaft|LEO|[A-Z][a-z]+|[0-9]+)", r"_\1", name)
    return re.sub("_+", "_", spaced).strip("_").lower()


def _clauses() -> list[tuple[str, str]]:
    found, suite = [], ""
    for line in (HERE / "clauses.txt").read_text().splitlines():
        if line.startswith(" "):
            found += [(suite, name) for name in line.split()]
        elif not line.startswith("#"):
            suite = line
    return found


def _tests(modules: str) -> set[str]:
    trees = [ast.parse(path.read_text()) for path in HERE.glob(modules)]
    functions = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {name for name in functions if name.startswith("test_")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("testBuilderKRaftVersion0", "test_builder_kraft_version_0"),
        ("testValidateOffsetLessThanLEO", "test_validate_offset_less_than_leo"),
        ("TestNoStaticVoterSet", "test_no_static_voter_set"),
    ],
)
def test_names_in_pythons_case(name: str, expected: str) -> None:
    """A clause's name in Python's case."""
    assert _snake_case(name) == expected


def test_every_suite_has_a_module() -> None:
    """Each suite of the list, and no other, has its module."""
    assert {suite for suite, _ in _clauses()} == set(MODULES)


def test_every_clause_has_a_test() -> None:
    """Each clause has a test named after it, alone or with its suite."""
    missing = []
    for suite, clause in _clauses():
        name = _snake_case(MISSPELLED.get(clause, clause))
        long_name = f"test_{_snake_case(suite.removesuffix('Test'))}{name.removeprefix('test')}"
        if not {name, long_name} & _tests(MODULES[suite]):
            missing.append(f"{suite}#{clause}: {name}")
    assert not missing
