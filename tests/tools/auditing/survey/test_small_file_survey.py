# SPDX-License-Identifier: Apache-2.0
"""Surveying small files: what they say, what is wrong with them, and which need not be there."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import write_leader_epoch_checkpoint
from raftlog.records.files.file_names import FileKind, FileState, parse_file_name
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.recovery.recovery_point import FlushMark, RecoveryPoint
from raftlog.storage.state.quorum_state_store import QuorumStateCopy
from raftlog.tools.auditing.evidence import EpochSeen, FileEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.small_file_survey import has_contents, survey_small_file
from raftlog.tools.input.inputs import LARGEST_SMALL_FILE_BYTES
from tests.flush_marks import slot_of
from tests.golden_files import GOLDEN

STATE = QuorumStateData(1, leader_id=2, leader_epoch=7)
POINT = RecoveryPoint(40, 0, 3, is_clean=True, epochs=(EpochEntry(1, 0), EpochEntry(4, 20)))
MARKS = slot_of(FlushMark(3, 44)).ljust(4096, b"\0") + slot_of(FlushMark(3, 48))


def survey(name: str, data: bytes = b"", topic: str = "__cluster_metadata") -> FileEvidence:
    """Survey a file of some name."""
    parsed = parse_file_name(name)
    task = SurveyTask(
        Place("node", topic, 0),
        f"node/{topic}-0/{name}",
        None if parsed is None else parsed.kind,
        FileState.CURRENT if parsed is None else parsed.state,
        None if parsed is None else parsed.base_offset,
        None if parsed is None else parsed.snapshot_id,
    )
    return survey_small_file(task, data)


def rules(evidence: FileEvidence) -> list[tuple[str, int | None]]:
    """Return rules and places."""
    return [(finding.rule, finding.position) for finding in evidence.findings]


SMALL = [
    path
    for path in sorted(GOLDEN.rglob("*"))
    if "damaged" not in path.relative_to(GOLDEN).parts and (name := parse_file_name(path.name)) is not None
    if name.state is FileState.CURRENT and name.kind not in {FileKind.LOG, FileKind.SNAPSHOT}
    if name.kind is not FileKind.BOOTSTRAP_SNAPSHOT and not path.name.endswith("index")
]


def test_kafkas_files_have_no_findings() -> None:
    """Small files of a real Kafka have contents and no findings."""
    assert len(SMALL) > 100
    for path in SMALL:
        topic = path.parent.name.rpartition("-")[0]
        evidence = survey(path.name, path.read_bytes(), topic)
        assert evidence.findings == ()
        assert evidence.contents is not None


BROKEN: dict[str, tuple[bytes, str, int]] = {
    "leader-epoch-checkpoint": (b"0\n2\n3 24\n", "file-format", 2),
    "recovery-point-offset-checkpoint": (b"0\n1\nt 0\n", "file-format", 4),
    "cleaner-offset-checkpoint": (b"7\n", "file-format", 0),
    "quorum-state": (b"{", "file-format", 1),
    "meta.properties": (b"version=7\n", "file-format", 0),
    "partition.metadata": (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg", "topic-id", 11),
    "00000000000000000042.snapshot": (b"\0\1\0\0\0\0\0\0\0\0", "file-crc", 2),
    "raftlog-quorum-state-1": (QuorumStateCopy(STATE, 3).encode().replace(b"7", b"8"), "file-crc", 0),
    "raftlog-recovery-point": (POINT.encode().replace(b"40", b"41"), "file-crc", 0),
    "raftlog-flush-mark": (MARKS[:10] + b"\1" + MARKS[11:], "file-crc", 0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_finding(name: str) -> None:
    """A file that cannot be decoded, or fails its check, is one finding with its place."""
    data, rule, position = BROKEN[name]
    ((found, place),) = rules(survey(name, data))
    assert found == rule
    assert place is not None
    assert place == position or name.startswith("raftlog-")


def test_a_partition_is_named_once() -> None:
    """A checkpoint of offsets names each partition once; of two lines, Kafka takes the later one."""
    data = b"0\n3\norders 0 5\norders 1 5\norders 0 7\n"
    evidence = survey("replication-offset-checkpoint", data)
    assert rules(evidence) == [("file-format", data.index(b"orders 0 7"))]
    assert evidence.findings[0].reason == "orders-0 has offset 7 here, and 5 before"


@pytest.mark.parametrize(("node_id", "found"), [(-1, [("file-format", 10)]), (0, []), (7, [])])
def test_a_node_id_is_not_negative(node_id: int, found: list[tuple[str, int | None]]) -> None:
    """Kafka refuses a negative node id."""
    data = f"version=1\nnode.id={node_id}\ncluster.id=A\ndirectory.id=tDM8jPouu6fvIOxsMmWQKw\n".encode()
    assert rules(survey("meta.properties", data)) == found


@pytest.mark.parametrize(
    ("name", "data", "contents"),
    [
        ("raftlog-recovery-point", POINT.encode(), {"durable_end_offset": 40, "generation": 3, "is_clean": True}),
        ("raftlog-flush-mark", MARKS, {"marks": [{"generation": 3, "durable_end_offset": end} for end in (44, 48)]}),
        ("raftlog-flush-mark", bytes(4136), {"marks": []}),
        ("raftlog-quorum-state-2", QuorumStateCopy(STATE, 9, True).encode(), {"sequence": 9, "is_vote_lost": True}),
        ("raftlog-quorum-state-1", QuorumStateCopy(STATE, 9).encode(), {"leader_epoch": 7, "leader_id": 2}),
        ("cleaner-offset-checkpoint", b"0\n1\nt 2 9\n", {"entries": [{"topic": "t", "partition": 2, "offset": 9}]}),
        ("00000000000000000042.snapshot", bytes.fromhex("000148674bc700000000"), {"entries": []}),
    ],
)
def test_contents(name: str, data: bytes, contents: dict[str, Any]) -> None:
    """Files that dump-log does not print as objects, and raftlog's own, have their fields."""
    evidence = survey(name, data)
    assert evidence.findings == ()
    assert evidence.contents is not None
    assert evidence.contents.items() >= contents.items()
    assert FileEvidence.from_json(evidence.to_json()) == evidence


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("notes.txt", "file-unknown"),
        ("00000000000000000042.log.deleted", "file-left-over"),
        ("00000000000000000042.log.cleaned", "file-left-over"),
        ("00000000000000000042.log.swap", "file-left-over"),
        ("quorum-state.tmp", "file-left-over"),
        ("raftlog-recovery-point.tmp", "file-left-over"),
        ("raftlog-reserve.tmp", "file-left-over"),
        ("00000000000000000042.log.damaged-512", "file-left-over"),
        ("00000000000000000042.log.torn-512-1", "file-left-over"),
        ("00000000000000000042.log.superseded-00000000000000000090-0000000007", "file-left-over"),
        ("00000000000000000042-0000000003.checkpoint.deleted", "file-left-over"),
        ("00000000000000000042-0000000003-123.checkpoint.part", "snapshot-unfinished"),
        (".lock", None),
        (".kafka_cleanshutdown", None),
        ("raftlog-reserve", None),
    ],
)
def test_files_that_are_judged_by_name(name: str, rule: str | None) -> None:
    """A left-over file is harmless and not read; an unknown file is reported."""
    evidence = survey(name, b"\xff whatever")
    assert rules(evidence) == ([] if rule is None else [(rule, None)])
    assert evidence.contents is None
    assert not has_contents(evidence.task)


def test_the_topic_id_of_another_topic_is_its_own() -> None:
    """Only that of the metadata topic is known beforehand."""
    assert survey("partition.metadata", BROKEN["partition.metadata"][0], "orders").findings == ()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_epochs_that_do_not_increase_are_reported(entries: list[tuple[int, int]]) -> None:
    """Without the reported entries the others increase; if all do, none is reported; each has its line's position."""
    data = write_leader_epoch_checkpoint(EpochEntry(*entry) for entry in entries)

    evidence = survey("leader-epoch-checkpoint", data)

    reported = set()
    for finding in evidence.findings:
        assert finding.position is not None
        assert data[finding.position :].startswith(f"{finding.epoch} {finding.offset}\n".encode())
        reported.add(data[: finding.position].count(b"\n") - 2)  # Behind the version, and how many entries there are.
    left = [entry for index, entry in enumerate(entries) if index not in reported]
    assert are_increasing(left)
    assert bool(evidence.findings) != are_increasing(entries)
    assert evidence.epochs == tuple(EpochSeen(*entry) for entry in entries)


def are_increasing(entries: list[tuple[int, int]]) -> bool:
    """Whether each entry is above the one before it."""
    return all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(entries))


@given(st.integers(1, 5), st.integers(2, 5), st.sampled_from([(0, 0), (99, 0), (0, 99), (99, 99)]))
def test_one_entry_out_of_order_is_one_finding(before: int, after: int, wrong: tuple[int, int]) -> None:
    """Amid entries that increase, the one that does not is reported, be it too high or too low."""
    entries = [(10 + index, 10 + index) for index in range(before)]
    entries += [wrong, *((20 + index, 20 + index) for index in range(after))]
    (finding,) = survey("leader-epoch-checkpoint", write_leader_epoch_checkpoint(map(entry_of, entries))).findings
    assert (finding.epoch, finding.offset) == wrong


def entry_of(entry: tuple[int, int]) -> EpochEntry:
    """Return an entry of the checkpoint."""
    return EpochEntry(*entry)


def test_a_file_that_is_too_large_is_not_trusted() -> None:
    """Nothing is parsed of a file that no Kafka writes, as that would take memory without bound."""
    assert rules(survey("quorum-state", b" " * (LARGEST_SMALL_FILE_BYTES + 1))) == [("file-format", 0)]


@given(st.sampled_from(sorted(BROKEN)), st.binary(max_size=200))
def test_any_bytes_are_contents_or_a_finding(name: str, data: bytes) -> None:
    """Whatever is in a file, it has contents that travel as JSON, or a finding."""
    evidence = survey(name, data)
    assert evidence.contents is not None or evidence.findings
    assert FileEvidence.from_json(evidence.to_json()) == evidence


def test_raftlogs_files_are_known_by_name(tmp_path: Path) -> None:
    """Files with contents are read; a reserve, or an unknown file, is not."""
    names = {"raftlog-recovery-point": True, "raftlog-flush-mark": True, "raftlog-reserve": False, "notes": False}
    for name, is_read in names.items():
        assert has_contents(SurveyTask(Place(str(tmp_path)), f"x/{name}", None)) == is_read


def test_a_version_of_partition_metadata_that_there_is_not() -> None:
    """Kafka reads a version above 0 all the same, and writes none."""
    data = b"version: 7\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg"
    assert rules(survey("partition.metadata", data, "orders")) == [("file-format", 0)]


@pytest.mark.parametrize("name", ["recovery-point", "replication", "log-start", "cleaner"])
def test_a_checkpoint_of_a_negative_offset(name: str) -> None:
    """Each line with an impossible offset is reported, at its position."""
    assert rules(survey(f"{name}-offset-checkpoint", b"0\n3\na 0 0\nb 0 -5\nc 1 -1\n")) == [
        ("file-format", 10),
        ("file-format", 17),
    ]
