# SPDX-License-Identifier: Apache-2.0
"""Which replica of a partition is compared: the one that reaches furthest, of those that the audit calls sound."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.replica_choice import ReplicaChoice
from tests.tools.made_logs import flip, write_log

OLD, NEW = uuid.UUID(int=70), uuid.UUID(int=71)
LOG = "orders-0/00000000000000000000.log"
BATCH_BYTES = 69
"""The size of each batch."""


def replica(
    root: Path, name: str, epochs: Sequence[int], topic_id: uuid.UUID | None = None, content: bytes = b""
) -> Path:
    """A log directory with one partition, of one batch of one record for each epoch that is given."""
    parts = []
    for offset, epoch in enumerate(epochs):
        builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch)
        builder.append(1_700_000_000_000 + offset, b"%d" % epoch, content)
        parts.append(builder.build())
    directory = root / name
    write_log(directory / "orders-0", *parts)
    if topic_id is not None:
        metadata = write_partition_metadata(PartitionMetadata(0, topic_id))
        (directory / "orders-0/partition.metadata").write_bytes(metadata)
    return directory


def chosen(*directories: Path, topic_id: uuid.UUID | None = None) -> tuple[str, ReplicaChoice]:
    """The name of the log directory that is compared, and why."""
    ids = {} if topic_id is None else {"orders": topic_id}
    log = Cluster([str(each) for each in directories], ids).log("orders", 0)
    assert log is not None
    assert Path(log.segments[0].path).parent == Path(log.choice.directory)
    return Path(log.choice.directory).parent.name, log.choice


def test_the_only_replica_is_compared(tmp_path: Path) -> None:
    """It is named, and nothing else is surveyed."""
    name, choice = chosen(replica(tmp_path, "a", [1] * 4))
    assert (name, choice.reason, choice.passed) == ("a", "it is the only replica here", ())


@settings(max_examples=12)
@given(ends=st.lists(st.integers(1, 6), min_size=2, max_size=3), epochs=st.lists(st.booleans(), min_size=6, max_size=6))
def test_of_prefixes_the_longest_is_compared(
    ends: list[int], epochs: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Replicas that only end earlier are of one lineage: the longest counts, and of equal ones the first by path."""
    root = tmp_path_factory.mktemp("replicas")
    whole = [1 + sum(epochs[: at + 1]) for at in range(6)]
    made = [replica(root, f"r{number}", whole[:end]) for number, end in enumerate(ends)]
    name, choice = chosen(*made)
    assert name == f"r{ends.index(max(ends))}"
    assert f"of {len(ends)} replicas, it reaches furthest: it ends at offset {max(ends)} of epoch" in choice.reason
    assert len(choice.passed) == len(ends) - 1
    assert choice.findings == ()


def test_a_later_epoch_reaches_further_than_a_later_offset(tmp_path: Path) -> None:
    """Of two that have forked the later epoch is what a leader went on with."""
    old, new = replica(tmp_path, "old", [1] * 9), replica(tmp_path, "new", [1, 1, 1, 2, 2])
    name, choice = chosen(old, new)
    assert name == "new"
    (passed,) = choice.passed
    assert choice.reason == "of 2 replicas, it alone is sound: it ends at offset 5 of epoch 2"
    assert "[replica-forked]" in passed.reason
    assert [each.rule for each in choice.findings] == ["replica-forked"]


def test_a_replica_that_most_contradict_is_not_compared(tmp_path: Path) -> None:
    """As in the audit, two that agree show that a third one, of a later epoch, has forked."""
    forked = replica(tmp_path, "a", [1, 1, 1, 2, 2, 2])
    name, choice = chosen(forked, replica(tmp_path, "b", [1] * 5), replica(tmp_path, "c", [1] * 4))
    assert name == "b"
    assert choice.reason.startswith("of 2 sound replicas among 3, it reaches furthest: it ends at offset 5 of epoch 1")
    assert ["[replica-forked]" in each.reason for each in choice.passed] == [True, False]


def test_other_batches_of_one_epoch_are_contradicted(tmp_path: Path) -> None:
    """Of three replicas, the longest one has other bytes at offset 0 than both others."""
    odd = replica(tmp_path, "a", [1] * 6, content=b"odd")
    name, choice = chosen(odd, replica(tmp_path, "b", [1] * 3), replica(tmp_path, "c", [1] * 5))
    assert name == "c"
    assert "[replica-batch]" in choice.passed[0].reason


def test_offsets_out_of_place_end_what_a_replica_reaches(tmp_path: Path) -> None:
    """What follows them may be anywhere, so that a shorter one that is whole reaches further."""
    damaged, whole = replica(tmp_path, "a", [1] * 6), replica(tmp_path, "b", [1] * 3)
    flip(damaged / LOG, BATCH_BYTES + 2)
    name, choice = chosen(damaged, whole)
    assert name == "b"
    assert choice.reason.endswith("; another one goes on to offset 6, after offsets that are out of place")
    assert [each.reason for each in choice.passed] == [
        "it ends at offset 1 of epoch 1, and is damaged at offset 1, where offsets are out of place: what follows,"
        " up to offset 6, does not count"
    ]
    assert {each.path for each in choice.findings} == {str(damaged / LOG)}


def test_the_replica_that_is_compared_is_told_as_damaged_if_offsets_are_out_of_place(tmp_path: Path) -> None:
    """It reaches further before them than one that is whole: that what follows does not count is said, and found."""
    damaged, whole = replica(tmp_path, "a", [1] * 6), replica(tmp_path, "b", [1] * 2)
    flip(damaged / LOG, 4 * BATCH_BYTES + 2)
    name, choice = chosen(damaged, whole)
    assert name == "a"
    assert ", where offsets are out of place: what follows, up to offset 6, does not count" in choice.reason
    assert {each.path for each in choice.findings} == {str(damaged / LOG)}


@pytest.mark.parametrize(
    ("size", "name", "reason", "other"),
    [
        (5, "a", "it ends at offset 6 of epoch 1, and is damaged at offset 1", "it ends at offset 5 of epoch 1"),
        (
            6,
            "b",
            "it ends at offset 6 of epoch 1",
            "it ends at offset 6 of epoch 1, and is damaged at offset 1, with 1 record less",
        ),
        (7, "b", "it ends at offset 7 of epoch 1", "it ends at offset 6 of epoch 1, and is damaged at offset 1"),
    ],
)
def test_a_damaged_replica_is_compared_if_it_alone_reaches_the_end(
    size: int, name: str, reason: str, other: str, tmp_path: Path
) -> None:
    """An old copy that is whole says nothing of what was written since. Damage is told, whichever is compared."""
    damaged, whole = replica(tmp_path, "a", [1] * 6), replica(tmp_path, "b", [1] * size)
    flip(damaged / LOG, 2 * BATCH_BYTES - 3)
    found, choice = chosen(damaged, whole)
    assert (found, choice.reason) == (name, f"of 2 replicas, it reaches furthest: {reason}")
    assert [each.reason for each in choice.passed] == [other]
    # That of the replica that is compared is found when its records are read.
    told = [(each.path, each.rule, each.position) for each in choice.findings]
    assert told == ([] if name == "a" else [(str(damaged / LOG), "batch-crc", BATCH_BYTES)])


@pytest.mark.parametrize("missing", [0, 2], ids=["a later log start", "a segment is missing"])
def test_of_replicas_that_end_alike_the_one_with_most_records_is_compared(missing: int, tmp_path: Path) -> None:
    """Whichever comes first by path."""
    less, whole = replica(tmp_path, "a", [1] * 6), replica(tmp_path, "b", [1] * 6)
    data = (less / LOG).read_bytes()
    (less / LOG).unlink()
    for start in {0, 2, 4} - {missing}:
        batches = data[start * BATCH_BYTES : (start + 2) * BATCH_BYTES]
        (less / f"orders-0/{start:020}.log").write_bytes(batches)
    for pair in ((less, whole), (whole, less)):
        name, choice = chosen(*pair)
        assert name == "b"
        assert choice.passed[0].reason == "it ends at offset 6 of epoch 1, with 2 records less"


@pytest.mark.parametrize(("others", "is_doubtful"), [(0, True), (1, False)])
def test_without_a_majority_nothing_shows_which_replica_is_right(
    others: int, is_doubtful: bool, tmp_path: Path
) -> None:
    """Two replicas of one epoch that differ: neither is called sound, until a third one agrees with one of them."""
    made = [replica(tmp_path, "a", [1] * 6, content=b"odd"), replica(tmp_path, "b", [1] * 6)]
    made += [replica(tmp_path, f"c{number}", [1] * 5) for number in range(others)]
    name, choice = chosen(*made)
    assert (name, choice.is_doubtful) == ("b" if others else "a", is_doubtful)
    assert ("nothing shows which is right" in choice.reason) is is_doubtful
    assert ("nothing shows which is right" in choice.passed[0].reason) is is_doubtful
    assert "alone is sound" not in choice.reason
    assert [each.rule for each in choice.findings] == ["replica-batch"]


@pytest.mark.parametrize(("others", "is_doubtful"), [(0, True), (1, False)])
def test_two_topic_ids_are_told(others: int, is_doubtful: bool, tmp_path: Path) -> None:
    """Without metadata and a majority, nothing shows which topic it is; and the ids are a finding."""
    made = [replica(tmp_path, "a", [1] * 6, OLD), replica(tmp_path, "b", [1] * 5, NEW)]
    made += [replica(tmp_path, f"c{number}", [1] * 4, NEW) for number in range(others)]
    name, choice = chosen(*made)
    assert (name, choice.is_doubtful) == ("b" if others else "a", is_doubtful)
    assert "alone is sound" not in choice.reason
    assert [each.rule for each in choice.findings] == ["topic-id"]


def test_a_replica_of_another_topic_is_not_compared(tmp_path: Path) -> None:
    """The metadata decide which id is the topic's; without them, the one that most replicas have."""
    long_ago = replica(tmp_path, "a", [3] * 9, OLD)
    now = replica(tmp_path, "b", [1] * 2, NEW)
    name, choice = chosen(long_ago, now, topic_id=NEW)
    assert (name, choice.passed[0].reason) == (
        "b",
        "its topic id is AAAAAAAAAAAAAAAAAAAARg, and that of the topic is AAAAAAAAAAAAAAAAAAAARw [topic-id]",
    )
    name, choice = chosen(long_ago, now, replica(tmp_path, "c", [1] * 3, NEW))
    assert name == "c"
    assert choice.passed[0].reason.startswith("the topic id is AAAAAAAAAAAAAAAAAAAARg, but 2 other files")


def test_without_a_sound_replica_the_furthest_is_compared(tmp_path: Path) -> None:
    """It is said that it is not sound."""
    name, choice = chosen(replica(tmp_path, "a", [1] * 3, OLD), replica(tmp_path, "b", [1] * 2, OLD), topic_id=NEW)
    assert name == "a"
    assert "; no replica is sound: its topic id is" in choice.reason
