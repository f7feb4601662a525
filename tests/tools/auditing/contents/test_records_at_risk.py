# SPDX-License-Identifier: Apache-2.0
"""The records that may be lost are the ones that Kafka's own tool shows at these offsets."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import split
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.storage.reading.file_source import open_source
from raftlog.tools.auditing.contents import records_at_risk as module
from raftlog.tools.auditing.contents.records_at_risk import RecordsAtRisk, describe_records
from raftlog.tools.auditing.evidence import PartitionEvidence
from tests.golden_files import GOLDEN
from tests.tools.auditing.test_quorum_corpus import surveyed
from tests.tools.console import run

DATA = GOLDEN / "dynamic-quorum" / "data"
EXPECTED = GOLDEN / "dynamic-quorum" / "expected"
_RECORD = re.compile(r'^\| offset: (\d+) .*? payload: \{"type":"(\w+)"', re.MULTILINE)
PER_BATCH = 3
COUNT = 12
"""Offsets in the log that is made here."""


@pytest.fixture
def made(tmp_path: Path) -> PartitionEvidence:
    """A metadata log that creates topics 0 to 11 in batches of three, in two segments of six, and names each again."""
    directory = tmp_path / "n1" / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    for base in (0, COUNT // 2):
        data = b""
        for start in range(base, base + COUNT // 2, PER_BATCH):
            builder = RecordBatchBuilder(start, partition_leader_epoch=1)
            builder.extend([(1000 + offset, None, topic(offset)) for offset in range(start, start + PER_BATCH)])
            data += builder.build()
        (directory / f"{base:020}.log").write_bytes(data)
    return raft_log(tmp_path / "n1")


def topic(offset: int) -> bytes:
    """A record that creates a topic, or, at odd offsets, a partition of the one before."""
    if offset % 2:
        return write_metadata_record(
            metadata_record("PartitionRecord", {"topicId": UUID(int=offset), "partitionId": 0})
        )
    return write_metadata_record(
        metadata_record("TopicRecord", {"topicId": UUID(int=offset + 1), "name": f"t{offset}"})
    )


def raft_log(directory: Path) -> PartitionEvidence:
    """The evidence of the raft log in a log directory."""
    return next(each for each in surveyed([directory]) if each.is_raft)


def subjects(found: RecordsAtRisk) -> dict[str, tuple[str, ...]]:
    """The subjects by kind."""
    return {kind.name: kind.subjects for kind in found.kinds}


def test_every_range_of_a_log(made: PartitionEvidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly its records are told, wherever batches and segments begin, with topics that were created before it."""
    monkeypatch.setattr(module, "MOST_SUBJECTS", COUNT)
    for start in range(COUNT):
        for end in range(start + 1, COUNT + 1):
            found = describe_records(made, start, end)
            offsets = range(start, end)
            told = subjects(found)
            assert told.get("TOPIC_RECORD", ()) == tuple(f"t{each}" for each in offsets if each % 2 == 0)
            assert told.get("PARTITION_RECORD", ()) == tuple(f"t{each - 1}-0" for each in offsets if each % 2)
            assert (found.start_offset, found.end_offset, found.read_to) == (start, end, end)
            assert found.file == made.segments[start // (COUNT // 2)].task.path
            first, last = start // PER_BATCH * PER_BATCH, (end - 1) // PER_BATCH * PER_BATCH + PER_BATCH - 1
            assert (found.first_timestamp, found.last_timestamp) == (1000 + first, 1000 + last)


@pytest.mark.parametrize("start", [193, 205, 229])
def test_kafkas_own_tool_shows_the_same_types(start: int) -> None:
    """The counts are those of dump-log on a real log."""
    found = describe_records(raft_log(DATA / "n3"), start, 230)
    text = (EXPECTED / "n3.__cluster_metadata-0.00000000000000000193.log.metadata.txt").read_text()
    types = Counter(name for offset, name in _RECORD.findall(text) if start <= int(offset) < 230)
    assert {kind.name: kind.count for kind in found.kinds} == types


@pytest.mark.parametrize(("most", "read_to"), [(2, 3), (3, 3), (4, 6), (COUNT, COUNT)])
def test_no_more_records_are_read(
    made: PartitionEvidence, monkeypatch: pytest.MonkeyPatch, most: int, read_to: int
) -> None:
    """Reading stops after the batch with which the limit is reached."""
    monkeypatch.setattr(module, "MOST_RECORDS", most)
    found = describe_records(made, 0, COUNT)
    assert (found.read_to, sum(kind.count for kind in found.kinds)) == (read_to, read_to)


def test_no_more_bytes_are_read(made: PartitionEvidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for bytes."""
    size = next(size for _, size in batches(Path(made.segments[0].task.path)))
    for most, read_to in ((size, 3), (size + 1, 6)):
        monkeypatch.setattr(module, "MOST_BYTES", most)
        assert describe_records(made, 0, COUNT).read_to == read_to


def test_names_of_topics_are_not_looked_for_without_end(
    made: PartitionEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is not named soon is shown by its id."""
    size = next(size for _, size in batches(Path(made.segments[0].task.path)))
    monkeypatch.setattr(module, "MOST_BYTES", size)
    assert subjects(describe_records(made, 1, 2)) == {"PARTITION_RECORD": ("t0-0",)}
    assert subjects(describe_records(made, 7, 8)) == {"PARTITION_RECORD": ("AAAAAAAAAAAAAAAAAAAABw-0",)}


def test_only_some_subjects_are_named(made: PartitionEvidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted."""
    for most in (5, 6, 7):
        monkeypatch.setattr(module, "MOST_SUBJECTS", most)
        kind = next(each for each in describe_records(made, 0, COUNT).kinds if each.name == "TOPIC_RECORD")
        assert (kind.count, kind.subject_count, len(kind.subjects)) == (6, 6, min(most, 6))


def test_a_log_that_is_gone(made: PartitionEvidence) -> None:
    """What cannot be read any more is no error."""
    for segment in made.segments:
        Path(segment.task.path).unlink()
    found = describe_records(made, 2, 5)
    assert (found.file, found.first_timestamp, found.last_timestamp, found.read_to, found.kinds) == (
        *(None, None, None),
        2,
        (),
    )


# What the verb and the page say


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A quorum of which two of three voters have lost what a snapshot of the third one proves."""
    for node in ("n2", "n3", "n4"):
        shutil.copytree(DATA / node, tmp_path / node)
    for node in ("n2", "n4"):
        log = tmp_path / node / "__cluster_metadata-0"
        (log / "00000000000000000230-0000000004.checkpoint").unlink(missing_ok=True)
        for segment in log.glob("*.log"):
            keep = sum(size for offset, size in batches(segment) if offset < 205)
            segment.write_bytes(segment.read_bytes()[:keep])
    return tmp_path


def batches(segment: Path) -> Iterator[tuple[int, int]]:
    """Base offset and size in bytes of each batch."""
    with open_source(str(segment)) as source:
        for piece in split(source):
            assert isinstance(piece, RecordBatch)
            yield piece.base_offset, piece.size_bytes


def test_the_verb_tells_what_may_be_lost(cut: Path) -> None:
    """Once, though the same records are proven and at risk: kinds, topics, times and the file."""
    paths = [cut / node for node in ("n2", "n3", "n4")]
    text = run("quorum", *paths).text
    log = cut / "n3" / "__cluster_metadata-0" / "00000000000000000193.log"
    assert "May be lost: offsets 205 to 229 of 3" in text
    assert text.count("Offsets 205 to 229") == 1
    assert (
        f"Offsets 205 to 229 on node 3 ({cut / 'n3'}) hold: 15 PARTITION_CHANGE_RECORD (orders-2-0, orders-2-1,"
        " orders-2-2, orders-2-3, orders-1-0 and 10 more), 8 NO_OP_RECORD, 2 BROKER_REGISTRATION_CHANGE_RECORD"
        " (broker 101).\n"
        f"They were written 2026-11-21T10:48:46.997Z to 2026-11-21T10:48:50.502Z, and begin in {log}.\n"
    ) in text
    quorum = next(json.loads(line) for line in run("quorum", "--format", "jsonl", *paths).text.splitlines())
    found = quorum["records_at_risk"]
    assert [(each["start_offset"], each["end_offset"], each["read_to"]) for each in found] == [(205, 230, 230)]
    assert found[0]["kinds"][2] == {
        "name": "BROKER_REGISTRATION_CHANGE_RECORD",
        "count": 2,
        "subjects": ["broker 101"],
        "subject_count": 1,
    }


def test_nothing_is_told_of_a_sound_quorum() -> None:
    """Where nothing is at risk, nothing is read."""
    outcome = run("quorum", "--format", "jsonl", *sorted(DATA.iterdir()))
    assert outcome.objects[0]["records_at_risk"] == []
