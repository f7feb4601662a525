# SPDX-License-Identifier: Apache-2.0
"""Faults planted in what a real Kafka wrote are found, each by its rule and at its place, and nothing else is said."""

import itertools
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raftlog.records.rules import Severity, Subject
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.catalogue.mirror_rules import MIRROR_RULES
from tests.planted.facts import contradictions
from tests.planted.fault import Fault, Faults
from tests.planted.faults import FAULTS, SUBJECTS
from tests.planted.ground import QUORUMS, SOURCES, CleanCopy
from tests.planted.plant import Field, Planted, is_of_raft
from tests.planted.table import PLACES, read_table, rules_text

UNPLANTED = {
    "codec-size": "the limit is beyond what a test should decompress",
    "decoder-raised": "of dump-log, when a decoder is named",
    "index-sanity": "of dump-log, which makes the check that a broker does; the audit's rules see more",
    "audit-failed": "needs a bug in raftlog",
    "file-gone": "needs a file that vanishes between two looks at it",
    "directory-changed": "needs a file that changes between two looks at it",
    "segment-size": "needs a file of 2 GiB",
    "election-handover": "what Kafka leaves of raftlog's copies, and harmless",
    "replica-rot": "stands beside the damage itself wherever another replica is sound, and is harmless",
    **{rule.id: "of verify-mirror, which has planted faults of its own" for rule in MIRROR_RULES},
}
"""Rules that no kind of fault is to be found by, each with the reason."""

OF_ANY_LOG = {
    Subject.BATCHES,
    Subject.LOGS,
    Subject.INDEXES,
    Subject.TIME_INDEX,
    Subject.LEADER_EPOCH_CHECKPOINT,
    Subject.PARTITION_METADATA,
    Subject.REPLICAS,
}
"""Subjects that are there with a topic's log as with a raft log."""

OF_SEVERAL = {
    Subject.REPLICAS,
    Subject.RAFT_REPLICAS,
    Subject.TOPIC_REPLICAS,
    Subject.LOG_DIRECTORIES,
}
"""Subjects that take more than one log directory."""

IN_ONE_SORT = {
    "codec-stream": False,  # Kafka does not compress its metadata log.
    "codec-trailing": False,  # Likewise.
    "index-sparse": False,  # It takes 100 KB of a segment, which no golden metadata log has.
    "segment-overlap": True,  # Golden topics of two segments have transactions, which would not be sound either.
}
"""Rules of any log that are broken in one sort alone, each with its reason: whether that is the metadata log."""


def problems(fault: Fault, place: int, field: Field) -> Iterator[str]:
    """What is wrong with what is said of a kind at a place: by the audit, or by one output against another."""
    planted = field.plant(fault, place)
    if not planted.is_right:
        yield str(planted)
    if planted.ground in QUORUMS:
        yield from (f"{fault.name}, place {place}: {each}" for each in contradictions(planted, field))


@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.subject for subject in SUBJECTS])
def test_each_kind_is_found_and_nothing_else(subject: Faults, field: Field) -> None:
    """Each kind is found at one place, with the right rule there, and no other finding is above harmless.

    Findings, ``raftlog quorum``, and the page with its advice say the same there: verdict, offsets, seed, and the nodes
    to start.
    """
    assert [problem for fault in subject for problem in problems(fault, 0, field)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_is_found_at_other_places(name: str, field: Field) -> None:
    """So it is at two other places."""
    assert [problem for place in _some_places(name) for problem in problems(FAULTS[name], place, field)] == []


@pytest.mark.volume
@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_is_found_wherever_it_is(name: str, field: Field) -> None:
    """So it is at all the places that the table counts."""
    assert [problem for place in range(PLACES) for problem in problems(FAULTS[name], place, field)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [rule for rule, found in CATALOGUE.items() if found.subject in OF_ANY_LOG and rule not in UNPLANTED],
)
def test_rules_of_any_log_are_broken_in_raft_and_in_topics(rule: str, field: Field) -> None:
    """A rule that counts as checked on any log is broken in the metadata log and in a topic's, except those named."""
    faults = [fault for fault in FAULTS.values() if rule in fault.rules]
    found = set[bool]()
    for place, fault in itertools.product(range(PLACES), faults):
        finding = field.found(fault, place)
        if finding is not None and finding.rule == rule:
            found.add(is_of_raft(finding))
        if len(found) == 2:
            break

    expected = {IN_ONE_SORT[rule]} if rule in IN_ONE_SORT else {True, False}
    assert found == expected


@pytest.mark.parametrize(
    "places",
    [
        pytest.param(range(2), marks=pytest.mark.slow, id="some"),
        pytest.param(range(PLACES), marks=pytest.mark.volume, id="all"),
    ],
)
@pytest.mark.parametrize("rule", [rule for rule in CATALOGUE if rule not in UNPLANTED])
def test_only_rules_of_several_log_directories_need_several(rule: str, places: range, field: Field) -> None:
    """A rule is broken in an audit of one log directory alone, unless its subject takes more than one."""
    found_alone = any(
        finding.rule == rule
        for fault in FAULTS.values()
        if rule in fault.rules
        for place in places
        if (found := field.found(fault, place)) is not None and found.rule == rule
        for finding in _found_alone(field.plant(fault, place), field)
    )

    assert found_alone == (CATALOGUE[rule].subject not in OF_SEVERAL)


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.subject for subject in SUBJECTS])
def test_only_rules_of_messages_need_messages(subject: Faults, field: Field) -> None:
    """An audit that does not read messages finds the same faults, except those of rules of messages."""
    for fault in subject:
        planted = field.plant(fault, 0)
        without = field.audit(field.directory / planted.ground, reads_messages=False)
        assert planted.found is not None
        needs_messages = CATALOGUE[planted.found.rule].subject is Subject.MESSAGES
        assert (planted.found not in without) == needs_messages, fault.name


@pytest.mark.parametrize("name", SOURCES)
def test_clean_grounds_are_clean(name: str, field: Field) -> None:
    """Before a fault is planted, nothing above harmless is said."""
    assert [str(each) for each in field.clean(name) if each.severity is not Severity.HARMLESS] == []


def test_every_rule_is_broken_by_some_kind() -> None:
    """Every rule finds some kind of fault, except those that are named here with a reason."""
    planted = {rule for fault in FAULTS.values() for rule in fault.rules}

    assert planted | UNPLANTED.keys() == set(CATALOGUE)
    assert not planted & UNPLANTED.keys()


def test_there_are_many_kinds() -> None:
    """There are more than 60 kinds of faults, each with a sentence, rules and grounds that there are."""
    assert len(FAULTS) > 60
    for fault in FAULTS.values():
        assert fault.what
        assert fault.rules
        assert set(fault.grounds) <= set(SOURCES)


def test_the_table_is_of_these_kinds() -> None:
    """The table of docs/audit.md has each kind once, with its rules, found at all places and with no false alarm."""
    rows = read_table()

    assert [(row.name, row.what, row.rules) for row in rows] == [
        (fault.name, fault.what, rules_text(fault)) for fault in FAULTS.values()
    ]
    assert {(row.planted, row.found, row.false_alarms) for row in rows} == {(PLACES, PLACES, 0)}


def _found_alone(planted: Planted, field: Field) -> list[Finding]:
    """What an audit says of the log directory alone in which a fault is."""
    return field.audit(log_directory_of(planted, field.directory / planted.ground))


def log_directory_of(planted: Planted, root: Path) -> Path:
    """Return the log directory of the file that a finding names."""
    assert planted.found is not None
    if planted.ground == "mirror":
        return root  # This ground is a log directory itself.
    return root / Path(planted.found.path).relative_to(root).parts[0]


def _some_places(name: str) -> tuple[int, int]:
    """Two of the places of a kind, others for other kinds, and none that the quick tests have."""
    others = range(1, PLACES)
    first, step = zlib.crc32(name.encode()) % len(others), 1 + zlib.adler32(name.encode()) % (len(others) - 1)
    return others[first], others[(first + step) % len(others)]


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _flip(path: Path) -> None:
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def _replace(path: Path) -> None:
    other = next(each for each in path.parent.iterdir() if each.is_file() and each != path)
    other.rename(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("spoil", [_append, _flip, Path.unlink, _replace, _link])
def test_a_copy_is_made_clean_again(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    """Whatever was done to a copy, making it clean brings back exactly what was copied."""
    copy = CleanCopy("wire", tmp_path / "copy")
    before = {path: path.read_bytes() for path in copy.root.rglob("*") if path.is_file()}
    spoil(max(copy.root.rglob("*.log")))
    (copy.root / "n9/x-0").mkdir(parents=True)
    (copy.root / "n9/x-0/new.log").write_bytes(b"new")
    copy.restore()

    assert {path: path.read_bytes() for path in copy.root.rglob("*") if path.is_file()} == before
    assert not (copy.root / "n9").exists()
