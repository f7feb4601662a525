# SPDX-License-Identifier: Apache-2.0
"""The records that brokers act on are those of a naive reading of the whole log, wherever reading begins."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.tools.auditing.acts import acted_records as module
from raftlog.tools.auditing.acts.acted_records import (
    ActedRecord,
    LeaderEpochBegun,
    Registered,
    TopicCreated,
    acted_records,
)
from raftlog.tools.auditing.batch_reader import read_batches
from raftlog.tools.auditing.evidence import PartitionEvidence
from tests.golden_files import GOLDEN
from tests.tools.auditing.contents.test_records_at_risk import raft_log

DATA = GOLDEN / "dynamic-quorum" / "data"
EPOCH = 5

Step = tuple[str, int, int]
"""What a record does, with a small number, and another one."""


def acted(log: PartitionEvidence, start: int, end: int) -> list[ActedRecord]:
    """Return what is found in a part of a log."""
    return acted_records(log, start, end, read_batches)


def topic_id(number: int) -> UUID:
    """Return the id of a topic."""
    return UUID(int=number + 1)


def value_of(step: Step, base_offset: int) -> bytes:
    """Return the record that does a step, as Kafka writes it."""
    name, number, other = step
    fields: dict[str, Any] = {"topicId": topic_id(number), "partitionId": other}
    match name:
        case "register" | "register-again":
            epoch = base_offset if name == "register" else base_offset - 1 - other
            record = metadata_record("RegisterBrokerRecord", {"brokerId": number, "brokerEpoch": epoch})
        case "topic":
            record = metadata_record("TopicRecord", {"topicId": topic_id(number), "name": f"t{number}"})
        case "partition":
            record = metadata_record("PartitionRecord", {**fields, "leaderEpoch": number})
        case "change":
            record = metadata_record("PartitionChangeRecord", {**fields, "isr": [1]})
        case "lead":
            record = metadata_record("PartitionChangeRecord", {**fields, "leader": number - 1})
        case _:
            record = metadata_record("RemoveTopicRecord", {"topicId": topic_id(number)})
    return write_metadata_record(record)


def naive(batches: Sequence[Sequence[Step]]) -> Iterator[ActedRecord]:
    """Read a log from its start."""
    names: dict[int, str] = {}
    epochs: dict[tuple[int, int], int] = {}
    offset = 0
    for batch in batches:
        base_offset = offset
        for name, number, other in batch:
            offset += 1
            point = OffsetAndEpoch(offset, EPOCH)
            if name == "register":
                yield Registered(point, number, base_offset)
            elif name == "topic":
                names[number] = f"t{number}"
                yield TopicCreated(point, f"t{number}", topic_id(number))
            elif name in {"partition", "lead"}:
                if name == "partition":
                    epochs[number, other] = number
                elif (number, other) in epochs:
                    epochs[number, other] += 1
                if number in names and (number, other) in epochs:
                    epoch = epochs[number, other]
                    yield LeaderEpochBegun(point, names[number], topic_id(number), other, epoch)


def write(batches: Sequence[Sequence[Step]], directory: Path, per_segment: int) -> PartitionEvidence:
    """Write a log, and return its evidence."""
    log = directory / "__cluster_metadata-0"
    log.mkdir(parents=True)
    offset, path = 0, log
    for index, batch in enumerate(batches):
        path = log / f"{offset:020}.log" if index % per_segment == 0 else path
        builder = RecordBatchBuilder(offset, partition_leader_epoch=EPOCH)
        builder.extend([(1000, None, value_of(step, offset)) for step in batch])
        with path.open("ab") as file:
            file.write(builder.build())
        offset += len(batch)
    return raft_log(directory)


STEPS = st.tuples(
    st.sampled_from(["register", "register-again", "topic", "partition", "change", "lead", "lead", "other"]),
    st.integers(0, 2),
    st.integers(0, 1),
)
LOGS = st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=1, max_size=12)


@given(LOGS, st.data())
def test_a_part_of_a_log(batches: list[list[Step]], data: st.DataObject) -> None:
    """What is found from any offset to any other is what reading all of the log finds there."""
    end_offset = sum(map(len, batches))
    start = data.draw(st.integers(0, end_offset))
    end = data.draw(st.integers(start, end_offset))
    with TemporaryDirectory() as directory:
        log = write(batches, Path(directory) / "n1", data.draw(st.integers(1, 4)))
        found = acted(log, start, end)
    assert found == [each for each in naive(batches) if start < each.point.offset <= end]


@given(LOGS, st.data())
def test_records_that_are_gone(batches: list[list[Step]], data: st.DataObject) -> None:
    """If a batch cannot be read, nothing is found that is not so: above all no leader epoch that is too early."""
    end_offset = sum(map(len, batches))
    start = data.draw(st.integers(0, end_offset))
    with TemporaryDirectory() as directory:
        log = write(batches, Path(directory) / "n1", data.draw(st.integers(1, 4)))
        segment = data.draw(st.sampled_from(log.segments))
        batch = data.draw(st.sampled_from(list(read_batches(segment, 0, end_offset))))
        content = bytearray(Path(segment.task.path).read_bytes())
        content[batch.position + data.draw(st.integers(21, batch.size_bytes - 1))] ^= 0xFF
        Path(segment.task.path).write_bytes(content)
        found = acted(log, start, end_offset)
    assert set(found) <= {each for each in naive(batches) if each.point.offset > start}


@pytest.mark.parametrize("start", [0, 4])
@pytest.mark.parametrize("damaged", range(4))
def test_leader_epochs_after_a_damaged_batch(tmp_path: Path, damaged: int, start: int) -> None:
    """They are not known until a record names one again; of a PartitionRecord itself nothing more is needed."""
    again: list[Step] = [("partition", 1, 0)]
    steps: list[Step] = [("topic", 1, 0), ("partition", 1, 0), ("lead", 1, 0), ("lead", 1, 0), ("lead", 1, 0), *again]
    log = write([[step] for step in steps], tmp_path / "n1", 6)
    path = Path(log.segments[0].task.path)
    batches = list(read_batches(log.segments[0], 0, 6))
    content = bytearray(path.read_bytes())
    content[batches[damaged].position + 70] ^= 1
    path.write_bytes(content)
    whole = list(naive([[step] for step in steps]))
    after = [whole[5]] if damaged else []  # Without the name of the topic, no directory can be its.
    before = whole[:damaged] if start == 0 else []
    found = acted(log, start, 6)
    assert found == [*before, *after]


@pytest.mark.parametrize("node", ["n1", "n2", "n3", "n4", "n101"])
@pytest.mark.parametrize("start", [81, 84, 96, 119, 163, 167, 181, 205])
def test_replicas_of_a_real_quorum(node: str, start: int) -> None:
    """It is the same on all replicas, those too that know the records before only by a snapshot."""
    log, whole = raft_log(DATA / node), raft_log(DATA / "n1")
    found = acted(log, start, 229)
    assert found == [each for each in acted(whole, 0, 229) if each.point.offset > start]
    assert any(isinstance(each, LeaderEpochBegun) for each in found)


def test_without_what_was_before(tmp_path: Path) -> None:
    """Leader epochs that follow from records that are gone are not guessed; topics need nothing before."""
    shutil.copytree(DATA / "n4", tmp_path / "n4")
    for path in tmp_path.rglob("*.checkpoint"):
        path.unlink()
    found = acted(raft_log(tmp_path / "n4"), 81, 229)
    whole = acted(raft_log(DATA / "n4"), 81, 229)
    assert [each for each in found if isinstance(each, TopicCreated)] == [
        each for each in whole if isinstance(each, TopicCreated)
    ]
    assert set(found) < set(whole)


LONG: list[list[Step]] = [[("topic", 1, 0)], [("partition", 1, 0)], [("lead", 1, 0)], [("lead", 1, 0)]]


@pytest.mark.parametrize(("batch_count", "expected"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_no_more_bytes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_count: int, expected: int
) -> None:
    """Reading stops before the batch with which the limit would be exceeded."""
    log = write(LONG, tmp_path / "n1", 4)
    sizes = [batch.size_bytes for batch in read_batches(log.segments[0], 0, 4)]
    monkeypatch.setattr(module, "MOST_BYTES", sum(sizes[:batch_count]))
    assert len(acted(log, 0, 4)) == expected


def test_what_was_before_is_not_read_if_it_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leader epochs are then not known."""
    log = write(LONG, tmp_path / "n1", 4)
    size = log.segments[0].task.size_bytes
    for most, count in ((size, 1), (size - 1, 0)):
        monkeypatch.setattr(module, "MOST_BYTES", most)
        assert len(acted(log, 3, 4)) == count
