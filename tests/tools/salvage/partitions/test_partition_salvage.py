# SPDX-License-Identifier: Apache-2.0
"""``raftlog salvage --partition`` from end to end: copies of a real topic, metadata, damage, and what is made."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from raftlog.errors import RepairRefusedError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.checksum import crc32c
from raftlog.records.files.checkpoint_files import PartitionOffset, write_offset_checkpoint
from raftlog.records.files.property_files import PartitionMetadata, read_partition_metadata, write_partition_metadata
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.plan import load_plan
from raftlog.tools.salvage.partitions.partition_building import build_partition
from raftlog.tools.salvage.partitions.partition_plan import PartitionSalvage
from raftlog.uuid_text import uuid_to_text
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.repair.repaired import everything
from tests.tools.salvage.salvaged import content
from tests.tools.state.made_metadata import ORDERS, VERSION, metadata_batch, metadata_log, record

NODE: Final = GOLDEN / "data-topics/data/n1"
TXN: Final = "txn-0"
"""Two segments: offsets 0 to 34, and 35 to 91. Each has four batches, of which some are transactional."""
TXN_ID: Final = read_partition_metadata((NODE / TXN / "partition.metadata").read_bytes()).topic_id
CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"


def brokers(place: Path, *ids: int, partition: str = TXN) -> list[Path]:
    """Log directories of brokers that each have a copy of a partition."""
    found = []
    for broker in ids:
        directory = place / f"broker-{broker}"
        shutil.copytree(NODE / partition, directory / partition)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id={broker}\n")
        found.append(directory)
    return found


def metadata(
    place: Path,
    topic: str = "txn",
    topic_id: Any = TXN_ID,
    *,
    isr: tuple[int, ...] = (1,),
    policy: str = "",
    voters: tuple[int, ...] = (9,),
    **fields: Any,
) -> Path:
    """The log directory of controller 9, whose metadata have a topic of one partition with replicas 1, 2 and 3."""
    known = {
        "partitionId": 0,
        "topicId": topic_id,
        "replicas": [1, 2, 3],
        "isr": list(isr),
        "leader": 1,
        "leaderEpoch": 1,
    }
    records = [record("TopicRecord", name=topic, topicId=topic_id), record("PartitionRecord", **(known | fields))]
    if policy:
        own = {"resourceType": 2, "resourceName": topic, "name": "cleanup.policy", "value": policy}
        records.append(record("ConfigRecord", **own))
    directory = metadata_log(place / "controller", [VERSION], records)
    if voters:
        (directory / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=9\n")
        state: dict[str, Any] = {"clusterId": "", "leaderId": 9, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0}
        state |= {"currentVoters": [{"voterId": each} for each in voters], "data_version": 0}
        (directory / "__cluster_metadata-0" / "quorum-state").write_text(json.dumps(state))
    return directory


def plan(*sources: Path, file: Path, partition: str = TXN, options: tuple[str | Path, ...] = ()) -> Outcome:
    """Plan a salvage; JSON lines are printed."""
    given = ("--partition", partition, "--plan", file, "--format", "jsonl", "-j1", *options)
    return run("salvage", *sources, *given)


def planned(*sources: Path, file: Path, partition: str = TXN, options: tuple[str | Path, ...] = ()) -> dict[str, Any]:
    """The members of the JSON line of a plan that is made without complaint."""
    found = plan(*sources, file=file, partition=partition, options=options)
    assert (found.exit_code, found.messages) == (0, "")
    (line,) = found.of_kind("partition_salvage_plan")
    return line


def made(file: Path, out: Path) -> dict[str, Any]:
    """The members of the JSON line of a plan that is carried out without complaint."""
    found = run("salvage", "--apply", file, "--out", out, "--format", "jsonl", "-j1")
    assert (found.exit_code, found.messages) == (0, "")
    (line,) = found.of_kind("partition_salvaged")
    return line


def batches(directory: Path) -> list[RecordBatch]:
    """The batches of a partition's log."""
    pieces = (piece for path in sorted(directory.glob("*.log")) for piece in split(BufferSource(path.read_bytes())))
    return [piece for piece in pieces if isinstance(piece, RecordBatch)]


def spoil(directory: Path, offset: int, *, with_crc: bool = False, partition: str = TXN) -> None:
    """Flip a bit in the batch that has an offset; with a CRC that holds, or without."""
    for path in (directory / partition).glob("*.log"):
        data = bytearray(path.read_bytes())
        for batch in split(BufferSource(bytes(data))):
            if isinstance(batch, RecordBatch) and batch.base_offset <= offset < batch.next_offset:
                start, end = batch.position, batch.position + batch.size_bytes
                data[start + 34] ^= 1
                if with_crc:
                    data[start + 17 : start + 21] = crc32c(data[start + 21 : end]).to_bytes(4, "big")
        path.write_bytes(data)


TRUTH: Final = batches(NODE / TXN)


def test_what_is_bad_in_one_copy_is_taken_from_another(tmp_path: Path) -> None:
    """Each of three copies is damaged in another place: the result is the whole log, and says from where it is."""
    copies = brokers(tmp_path, 1, 2, 3)
    for directory, batch in zip(copies, TRUTH[1:], strict=False):
        spoil(directory, batch.base_offset)
    before = everything(tmp_path)
    controller = metadata(tmp_path)
    line = planned(*copies, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["is_proven"], line["unproven"], line["losses"], line["base"]) == (True, [], [], 0)
    assert (line["start_offset"], line["end_offset"], line["batch_count"]) == (0, 92, len(TRUTH))
    assert {each["source"] for each in line["pieces"]} == {0, 1}
    fact = made(tmp_path / "plan", tmp_path / "new")
    assert (fact["end_offset"], fact["is_proven"], fact["findings"]) == (92, True, [])
    assert batches(tmp_path / "new" / TXN) == TRUTH
    names = sorted(path.name for path in (tmp_path / "new" / TXN).iterdir())
    assert names == [f"{0:020}.log", f"{35:020}.log", "leader-epoch-checkpoint", "partition.metadata"]
    for name in names[2:]:
        assert (tmp_path / "new" / TXN / name).read_bytes() == (NODE / TXN / name).read_bytes()
    assert run("verify", "--format", "jsonl", tmp_path / "new").of_kind("finding") == []
    assert {name: data for name, data in everything(tmp_path).items() if name in before} == before


@pytest.mark.parametrize("number", range(1, len(TRUTH) - 1))
def test_a_hole_ends_the_log_unless_it_is_stepped_over(number: int, tmp_path: Path) -> None:
    """A batch that is bad in both copies: it is named with its offsets and bytes, and so is what is after it."""
    copies = brokers(tmp_path, 1, 2)
    lost = TRUTH[number]
    for directory in copies:
        spoil(directory, lost.base_offset)
    options = ("--metadata", metadata(tmp_path))
    line = planned(*copies, file=tmp_path / "plan", options=options)
    assert (line["start_offset"], line["end_offset"]) == (0, lost.base_offset)
    hole, after = line["losses"]
    assert (hole["start_offset"], hole["end_offset"], hole["size_bytes"]) == (lost.base_offset, lost.next_offset, 0)
    where = f"bytes {lost.position} to {lost.position + lost.size_bytes} (exclusive) of"
    assert [where in words for words in hole["words"]] == [True, True]
    assert (after["start_offset"], after["end_offset"]) == (lost.next_offset, 92)
    assert after["size_bytes"] == sum(each.size_bytes for each in TRUTH[number + 1 :])
    made(tmp_path / "plan", tmp_path / "cut")
    assert batches(tmp_path / "cut" / TXN) == TRUTH[:number]

    over = planned(*copies, file=tmp_path / "over", options=(*options, "--step-over"))
    assert (over["end_offset"], over["losses"]) == (92, [hole])
    is_open = sum(1 if not each.is_control else -1 for each in TRUTH[:number] if each.is_transactional) > 0
    assert bool(over["unsure_transactions"]) == is_open
    made(tmp_path / "over", tmp_path / "new")
    assert batches(tmp_path / "new" / TXN) == [*TRUTH[:number], *TRUTH[number + 1 :]]


def test_without_metadata_the_plan_says_that_it_is_unproven(tmp_path: Path) -> None:
    """In the text, in JSON, in the file and when it is carried out."""
    (copy,) = brokers(tmp_path, 1)
    text = run("salvage", copy / TXN, "--partition", TXN, "--plan", tmp_path / "plan")
    assert text.exit_code == 0
    assert "The choice is UNPROVEN:" in text.text
    assert "no metadata were given" in text.text.replace("\n", " ")
    assert content(tmp_path / "plan")["is_proven"] is False
    assert len(content(tmp_path / "plan")["unproven"]) == 1
    assert "UNPROVEN" in run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new").text


@pytest.mark.parametrize(
    ("isr", "fields", "ids", "proven", "base"),
    [
        ((2, 3), {"leader": 2}, (1, 2), True, 1),
        ((2, 3), {"leader": 2}, (1, 3), True, 1),
        ((3,), {"leader": 3}, (1, 2), False, 0),
        ((), {"leader": -1, "eligibleLeaderReplicas": [2]}, (1, 2), True, 1),
        ((), {"leader": -1}, (1, 2), False, 0),
        ((1,), {"leaderRecoveryState": 1}, (1, 2), False, 0),
    ],
)
def test_isr_and_eligible_leaders_choose_the_base(
    isr: tuple[int, ...], fields: dict[str, Any], ids: tuple[int, ...], proven: bool, base: int, tmp_path: Path
) -> None:
    """Their copies hold all that was committed; if none is here, or the leader is recovering, nothing is proven."""
    copies = brokers(tmp_path, *ids)
    controller = metadata(tmp_path, isr=isr, **fields)
    line = planned(*copies, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["is_proven"], line["base"]) == (proven, base)
    assert bool(line["unproven"]) is not proven


def test_different_bytes_are_settled_by_the_isr_alone(tmp_path: Path) -> None:
    """With a copy of the ISR its batch is taken, and no other from there on of the copy that differs; without, none."""
    copies = brokers(tmp_path, 1, 2)
    batch = TRUTH[2]
    spoil(copies[0], batch.base_offset, with_crc=True)
    controller = metadata(tmp_path, isr=(2,), leader=2)
    line = planned(*copies, file=tmp_path / "plan", options=("--metadata", controller))
    (conflict,) = line["conflicts"]
    assert (conflict["offset"], conflict["kept"], conflict["left_out"]) == (batch.base_offset, [1], [0])
    assert (conflict["is_settled"], line["end_offset"]) == (True, 92)
    made(tmp_path / "plan", tmp_path / "new")
    assert batches(tmp_path / "new" / TXN) == TRUTH

    line = planned(*copies, file=tmp_path / "unproven")
    assert (line["conflicts"][0]["is_settled"], line["end_offset"]) == (False, batch.base_offset)


def test_another_topic_of_the_same_name_is_left_out(tmp_path: Path) -> None:
    """By the id that the metadata have; so is a copy that does not say of which topic it is."""
    copies = brokers(tmp_path, 1, 2, 3)
    (copies[1] / TXN / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, ORDERS)))
    (copies[2] / TXN / "partition.metadata").unlink()
    controller = metadata(tmp_path, isr=(1, 2, 3))
    line = planned(*copies, file=tmp_path / "plan", options=("--metadata", controller))
    assert [each["source"] for each in line["left_out"]] == [1, 2]
    assert uuid_to_text(ORDERS) in line["left_out"][0]["reason"]
    assert "no partition.metadata" in line["left_out"][1]["reason"]
    assert (line["is_proven"], {each["source"] for each in line["pieces"]}) == (True, {0})


def test_a_later_leader_epoch_is_not_known_to_the_metadata(tmp_path: Path) -> None:
    """Its batches are left out, and the plan is unproven; at the epoch itself nothing is wrong."""
    (copy,) = brokers(tmp_path, 1)
    for path in (copy / TXN).glob("*35.log"):
        data = bytearray(path.read_bytes())
        for batch in split(BufferSource(bytes(data))):
            assert isinstance(batch, RecordBatch)
            data[batch.position + 15] = 2
        path.write_bytes(data)
    (copy / TXN / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 35\n")
    for epoch, end in ((1, 35), (2, 92), (3, 92)):
        controller = metadata(tmp_path / str(epoch), leaderEpoch=epoch)
        line = planned(copy, file=tmp_path / f"plan-{epoch}", options=("--metadata", controller))
        assert (line["end_offset"], line["is_proven"], bool(line["dropped"])) == (end, epoch > 1, epoch < 2)
    made(tmp_path / "plan-2", tmp_path / "new")
    assert (tmp_path / "new" / TXN / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 35\n"


def test_a_false_checkpoint_is_named(tmp_path: Path) -> None:
    """One that contradicts its batches vouches for nothing."""
    (copy,) = brokers(tmp_path, 1)
    (copy / TXN / "leader-epoch-checkpoint").write_text("0\n1\n5 0\n")
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    assert (line["end_offset"], len(line["dropped"])) == (92, 1)
    assert "contradicts its batches" in line["dropped"][0]


def test_the_high_watermark_shows_what_is_lost(tmp_path: Path) -> None:
    """A file that was cut between two batches looks whole; what was committed is known beside it."""
    (copy,) = brokers(tmp_path, 1)
    (copy / "replication-offset-checkpoint").write_bytes(write_offset_checkpoint([PartitionOffset("txn", 0, 92)]))
    last = TRUTH[-1]
    os.truncate(next((copy / TXN).glob("*35.log")), last.position)
    (copy / TXN / f"{92:020}.snapshot").unlink()  # Its name shows it, too.
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    assert (line["end_offset"], line["known_end"], line["has_lost_end"]) == (last.base_offset, 92, True)
    assert [(each["start_offset"], each["end_offset"]) for each in line["losses"]] == [(last.base_offset, 92)]


def test_records_below_the_start_of_the_log_stay_deleted(tmp_path: Path) -> None:
    """By the checkpoint of the base: batches that end at or below it do not come back."""
    (copy,) = brokers(tmp_path, 1)
    start = TRUTH[2].base_offset
    for offset in (start - 1, start, start + 1):
        checkpoint = write_offset_checkpoint([PartitionOffset("txn", 0, offset)])
        (copy / "log-start-offset-checkpoint").write_bytes(checkpoint)
        line = planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path / str(offset))))
        expected = next(each.base_offset for each in TRUTH if each.next_offset > offset)
        assert (line["pieces"][0]["start_offset"], line["losses"]) == (expected, [])


def test_a_compacted_log_is_taken_with_its_gaps(tmp_path: Path) -> None:
    """Where batches are gone but bytes are not, nothing is lost, if the topic is compacted."""
    copies = brokers(tmp_path, 1, 2)
    for directory in copies:
        path = next((directory / TXN).glob("*0.log"))
        data = path.read_bytes()
        gone = TRUTH[1]
        path.write_bytes(data[: gone.position] + data[gone.position + gone.size_bytes :])
    spoil(copies[0], TRUTH[2].base_offset)
    options = ("--metadata", metadata(tmp_path / "c", policy="compact,delete"))
    line = planned(*copies, file=tmp_path / "plan", options=options)
    assert (line["is_compacted"], line["losses"], line["end_offset"]) == (True, [], 92)
    made(tmp_path / "plan", tmp_path / "new")
    assert batches(tmp_path / "new" / TXN) == [TRUTH[0], *TRUTH[2:]]

    options = ("--metadata", metadata(tmp_path / "d", policy="delete"))
    line = planned(*copies, file=tmp_path / "plan", options=options)
    assert (line["is_compacted"], line["end_offset"]) == (False, TRUTH[1].base_offset)


def test_every_real_partition_is_salvaged_as_it_is(tmp_path: Path) -> None:
    """All partitions of two clusters with records, by the metadata that are beside them: byte for byte, and proven."""
    count = 0
    for home in (NODE, GOLDEN / "groups/data/n1", GOLDEN / "mirror/data/n1"):
        for number, path in enumerate(sorted(home.glob("*-*/partition.metadata"))):
            source = path.parent
            if source.name.startswith("__cluster_metadata") or "." in source.name or not batches(source):
                continue
            count += 1
            name = f"{home.parent.parent.name}-{number}"
            options = ("--metadata", home)
            line = planned(home, file=tmp_path / name, partition=source.name, options=options)
            assert (line["is_proven"], line["losses"]) == (True, [])
            made(tmp_path / name, tmp_path / f"{name}-new")
            assert batches(tmp_path / f"{name}-new" / source.name) == batches(source)
    assert count >= 10


def test_damaged_metadata_prove_nothing(tmp_path: Path) -> None:
    """Records after the damage may have changed the ISR: the state before it is used, and the plan is unproven."""
    (copy,) = brokers(tmp_path, 1)
    controller = metadata(tmp_path, policy="delete")
    log = controller / "__cluster_metadata-0" / f"{0:020}.log"
    whole = log.read_bytes()
    more = metadata_batch(4, [record("PartitionChangeRecord", partitionId=0, topicId=TXN_ID, isr=[2])], 1_000)
    log.write_bytes(whole + more)
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["belief"]["isr"], line["is_proven"]) == ([2], True)  # The leader holds all, too.
    log.write_bytes(whole + more[:-1] + b"\x55")
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["belief"]["isr"], line["is_proven"]) == ([1], False)
    assert "damaged from offset 4 on" in line["unproven"][0]
    log.write_bytes(b"\x55" * len(whole))
    found = plan(copy, file=tmp_path / "none", options=("--metadata", controller))
    assert (found.exit_code, len(found.complaints)) == (1, 1)


# Bad input


def bad_input(place: Path) -> Iterator[tuple[tuple[str | Path, ...], int, str]]:
    """What is given, the exit code, and what is said."""
    one, two = brokers(place, 1, 2)
    good = metadata(place)
    (place / "empty").mkdir()
    yield (one, "--partition", "orders-0"), 1, "has no orders-0"
    yield (place / "missing", "--partition", TXN), 1, "has no txn-0"
    yield (one, two / "txn-1", "--partition", TXN), 1, "has no txn-0"
    yield (one, "--partition", "txn"), 1, "no partition has this name"
    yield (one, "--partition", f"{TXN}.{'a' * 32}-stray"), 1, "no partition has this name"
    yield (one, "--partition", "__cluster_metadata-0"), 1, "without --partition"
    yield (one, "--partition", TXN, "--metadata", place / "empty"), 1, "no __cluster_metadata-0"
    yield (one, "--partition", TXN, "--metadata", place / "missing"), 1, "missing"
    yield (one, "--partition", TXN, "--metadata", metadata(place / "a", "other")), 1, "have no topic txn"
    yield (one, "--partition", TXN, "--metadata", metadata(place / "b", partitionId=1)), 1, "have 1 partitions of txn"
    yield (one, "--partition", TXN, "--metadata", metadata(place / "e", topic_id=ORDERS)), 1, "no other source is of"
    other = metadata(place / "f")
    (other / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=9\n")
    yield (one, "--partition", TXN, "--metadata", other), 1, "cluster.id is"
    yield (one, "--partition", TXN, "--node-id", "1"), 1, "--node-id is for the metadata log"
    yield (one, "--partition", TXN, "--replace", "1"), 1, "--replace is for the metadata log"
    yield (one, "--metadata", good), 1, "--metadata goes with --partition"
    yield (one, "--step-over"), 1, "--step-over goes with --partition"
    yield (one, "--partition", TXN, "--assume-topic-id"), 1, "--assume-topic-id goes with --metadata"
    (two / TXN / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, ORDERS)))
    yield (one, two, "--partition", TXN), 1, "topic_id is"
    for path in (one / TXN).glob("*.log"):
        path.write_bytes(bytes(path.stat().st_size))
    yield (one, "--partition", TXN, "--metadata", good), 2, "no sound batch"


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    """Each with the right exit code, and no plan is there."""
    for arguments, exit_code, words in bad_input(tmp_path):
        found = run("salvage", *arguments, "--plan", tmp_path / "plan", "-j1")
        assert (found.exit_code, len(found.complaints)) == (exit_code, 1), (arguments, found.messages)
        assert words in found.messages
        assert not (tmp_path / "plan").exists()


def test_metadata_of_a_part_of_the_controllers_prove_nothing(tmp_path: Path) -> None:
    """The others may have later changes, and what is here may never have been committed."""
    (copy,) = brokers(tmp_path, 1)
    for number, voters in enumerate(((9,), (8, 9), (7, 8, 9), ())):
        controller = metadata(tmp_path / str(number), voters=voters)
        line = planned(copy, file=tmp_path / f"plan-{number}", options=("--metadata", controller))
        assert (line["is_proven"], line["end_offset"]) == (number == 0, 92)
        assert [any(words in each for each in line["unproven"]) for words in ("no majority", "not proven to be")] == [
            number > 0,
            number > 0,
        ]


def test_a_copy_without_a_topic_id_is_used_if_that_is_asked_for(tmp_path: Path) -> None:
    """The result has the metadata's topic id, without which Kafka does not load it; the plan is unproven."""
    (copy,) = brokers(tmp_path, 1)
    (copy / TXN / "partition.metadata").unlink()
    options = ("--metadata", metadata(tmp_path), "--assume-topic-id")
    line = planned(copy, file=tmp_path / "plan", options=options)
    assert (line["is_proven"], line["topic_id"], line["topic_id_source"]) == (False, uuid_to_text(TXN_ID), None)
    assert "--assume-topic-id" in line["unproven"][0]
    made(tmp_path / "plan", tmp_path / "new")
    name = "partition.metadata"
    assert (tmp_path / "new" / TXN / name).read_bytes() == (NODE / TXN / name).read_bytes()
    text = run("salvage", copy, "--partition", TXN, "--plan", tmp_path / "without")
    assert "No source has a partition.metadata" in text.text


def test_epochs_before_the_first_batch_stay_in_the_checkpoint(tmp_path: Path) -> None:
    """Remote segments of tiered storage are known by them."""
    (copy,) = brokers(tmp_path, 1)
    (copy / TXN / f"{0:020}.log").unlink()
    for entries in ("0\n1\n0 0\n", "0\n2\n0 0\n1 92\n"):
        (copy / TXN / "leader-epoch-checkpoint").write_text(entries)
        planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path / str(len(entries)))))
        made(tmp_path / "plan", tmp_path / f"new-{len(entries)}")
        found = (tmp_path / f"new-{len(entries)}" / TXN / "leader-epoch-checkpoint").read_text()
        assert found == "0\n1\n0 0\n"


def test_it_is_said_where_the_result_belongs(tmp_path: Path) -> None:
    """To the leader, or else to another broker that holds all; in the directory that the metadata have."""
    copies = brokers(tmp_path, 1, 2)
    home = UUID(int=1 << 70)
    for number, (leader, isr, broker) in enumerate(((1, (1, 2), 1), (-1, (2,), 2))):
        controller = metadata(tmp_path / str(number), isr=isr, leader=leader, directories=[home] * 3)
        options = ("--metadata", controller)
        planned(*copies, file=tmp_path / f"plan-{number}", options=options)
        text = run("salvage", "--apply", tmp_path / f"plan-{number}", "--out", tmp_path / f"new-{number}").text
        words = " ".join(text.split())
        assert f"the stopped broker {broker}, in its directory {uuid_to_text(home)}" in words
        assert "log-start-offset-checkpoint" in words
        assert "Keep a copy" in words


def test_a_plan_is_refused_if_what_it_was_made_of_has_changed(tmp_path: Path) -> None:
    """A source; or what the metadata say of the partition, and nothing else of them."""
    (copy,) = brokers(tmp_path, 1)
    controller = metadata(tmp_path)
    planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    log = controller / "__cluster_metadata-0" / f"{0:020}.log"
    before = log.read_bytes()
    shutil.rmtree(controller)
    metadata(tmp_path, leaderEpoch=2)
    refused = run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new")
    assert (refused.exit_code, len(refused.complaints)) == (1, 1)
    assert "say something else of txn-0" in refused.messages
    shutil.rmtree(controller)
    metadata(tmp_path, policy="delete")
    assert log.read_bytes() != before
    spoil(copy, 0)
    refused = run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new")
    assert (refused.exit_code, "make a new plan" in refused.messages) == (1, True)
    assert not (tmp_path / "new").exists()
    spoil(copy, 0)
    planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    made(tmp_path / "plan", tmp_path / "new")


def test_a_log_that_is_not_the_one_that_was_planned_is_refused(tmp_path: Path) -> None:
    """What is built is read again: other bytes in a source do not get a name, even if nobody noticed the change."""
    (copy,) = brokers(tmp_path, 1)
    planned(copy, file=tmp_path / "plan")
    plan_ = load_plan(str(tmp_path / "plan"), "salvage")
    spoil(copy, 40)
    (tmp_path / "new").mkdir()
    with pytest.raises(RepairRefusedError, match="what was made is no sound log"):
        build_partition(LocalFileSystem(), plan_.sources, plan_.content_as(PartitionSalvage), str(tmp_path / "new"))
