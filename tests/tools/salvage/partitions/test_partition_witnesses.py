# SPDX-License-Identifier: Apache-2.0
"""What files beside the batches say of a copy: how far it went, what was deleted, and that other metadata are later."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from raftlog.errors import RepairRefusedError
from raftlog.records.checksum import crc32c
from raftlog.records.files.checkpoint_files import PartitionOffset, write_offset_checkpoint
from raftlog.tools.repair.sources import read_partition_source
from raftlog.tools.salvage.partitions.partition_words import plan_words
from tests.tools.auditing.produced_logs import Step
from tests.tools.auditing.produced_logs import batches as produced
from tests.tools.console import run
from tests.tools.salvage.made_quorums import data_batch, leader_change
from tests.tools.salvage.partitions.made_partitions import NAME, PartitionDisk
from tests.tools.salvage.partitions.test_partition_salvage import (
    TRUTH,
    TXN,
    TXN_ID,
    batches,
    brokers,
    made,
    metadata,
    planned,
    spoil,
)
from tests.tools.salvage.partitions.test_partition_traps import BELIEF, COMPACTED, LOG, disk, lost, plan, spans, tens
from tests.tools.state.made_metadata import VERSION, metadata_batch, metadata_log, record

# How far a log went


@pytest.mark.parametrize("name", [f"{60:020}.log", f"{60:020}.index", f"{60:020}.snapshot"])
@pytest.mark.parametrize("how", ["byte", "cut"])
def test_the_name_of_a_later_file_shows_that_the_end_is_lost(how: str, name: str, tmp_path: Path) -> None:
    """A crash after a roll: the new file is there and empty, and the high watermark on the disk is an old one."""
    copy = disk(tmp_path / "0", LOG) if how == "byte" else disk(tmp_path / "0", LOG[:5])
    if how == "byte":
        copy.damage("byte", 5, 5)
    copy.contents[name] = bytearray()
    found = plan(BELIEF, copy.source(0, high_watermark=40))
    assert (found.end_offset, lost(found), found.known_end, found.has_lost_end) == (50, [(50, 60)], 60, True)


def test_a_later_file_that_begins_at_the_end_shows_no_loss(tmp_path: Path) -> None:
    """As after every roll."""
    copy = disk(tmp_path / "0", LOG)
    for name in (f"{60:020}.log", f"{60:020}.index", f"{60:020}.snapshot"):
        copy.contents[name] = bytearray()
    found = plan(BELIEF, copy.source(0, high_watermark=40))
    assert (found.end_offset, found.losses, found.has_lost_end) == (60, (), False)


def test_an_epoch_that_begins_after_the_end_shows_that_it_is_lost(tmp_path: Path) -> None:
    """A leader notes in its checkpoint where its log ends; at that end itself nothing is missing."""
    for start, is_lost in ((50, False), (51, True)):
        copy = PartitionDisk(tmp_path / "0", LOG[:5], {0: 0, 1: start})
        found = plan(attrs.evolve(BELIEF, leader_epoch=1), copy.source(0, high_watermark=40))
        assert (found.end_offset, bool(found.losses), found.has_lost_end) == (50, is_lost, is_lost)


@pytest.mark.parametrize("witness", ["name", "epoch"])
def test_a_lost_end_is_taken_from_another_member_of_the_isr(witness: str, tmp_path: Path) -> None:
    """Its log looks whole, and a new epoch without records has begun: without a witness its end would be the end."""
    leader = PartitionDisk(tmp_path / "0", LOG[:4], {0: 0, 1: 60} if witness == "epoch" else {0: 0})
    if witness == "name":
        leader.contents[f"{60:020}.log"] = bytearray()
    sources = leader.source(0, high_watermark=30), disk(tmp_path / "1", LOG).source(1)
    found = plan(attrs.evolve(BELIEF, leader_epoch=1, isr=(0, 1)), *sources)
    assert (found.is_proven, found.end_offset, found.losses) == (True, 60, ())


def test_a_file_of_another_lineage_shows_no_loss(tmp_path: Path) -> None:
    """A follower has not heard of the leader's epoch: what it has after the start of that was never committed."""
    leader = PartitionDisk(tmp_path / "0", [*LOG[:3], *tens(3, epoch=1)], {0: 0, 1: 30})
    follower = disk(tmp_path / "1", LOG, rolls=(5,))
    belief = attrs.evolve(BELIEF, leader_epoch=1, isr=(0, 1))
    for high_watermark, end in ((30, 40), (40, 40), (41, 41)):
        found = plan(belief, leader.source(0), follower.source(1, high_watermark=high_watermark))
        assert (found.is_proven, found.end_offset, found.known_end) == (True, 40, end)


def test_an_empty_log_with_a_later_witness_has_lost_its_records(tmp_path: Path) -> None:
    """Not all were deleted: a snapshot of producers, or an epoch, is after its only file."""
    for name, epochs, is_empty in ((100, {0: 0}, True), (101, {0: 0}, False), (100, {0: 0, 1: 101}, False)):
        shutil.rmtree(tmp_path / "0", ignore_errors=True)
        copy = PartitionDisk(tmp_path / "0", [], epochs)
        copy.contents = {f"{100:020}.log": bytearray(), f"{name:020}.snapshot": bytearray()}
        stale = disk(tmp_path / "1", LOG[:2]).source(1)
        found = plan(attrs.evolve(BELIEF, leader_epoch=1), copy.source(0, high_watermark=100), stale)
        assert (found.is_proven, found.start_offset) == (is_empty, 100 if is_empty else 0)


def test_what_another_copy_knows_to_be_committed_is_named(tmp_path: Path) -> None:
    """Its high watermark is after the base's end, and it has no records there either."""
    for high_watermark, count in ((50, 0), (51, 1)):
        sources = (
            disk(tmp_path / "0", LOG[:5]).source(0, high_watermark=30),
            disk(tmp_path / "1", LOG[:3]).source(1, high_watermark=high_watermark),
        )
        found = plan(BELIEF, *sources)
        assert (found.end_offset, len(found.elsewhere)) == (50, count)
    assert "offset 50 " in found.elsewhere[0]
    text = "\n".join(plan_words(found, sources, "p"))
    assert "Lost: nothing else" in text


def test_what_may_have_been_before_the_base_is_named_once(tmp_path: Path) -> None:
    """It is lost if the base's own file has bytes of it; else it may have been deleted, if another copy has a file."""
    damaged = disk(tmp_path / "0", LOG, 0).source(0)
    found = plan(BELIEF, damaged)
    assert (lost(found), found.open_gaps) == ([(0, 10)], ())
    base = disk(tmp_path / "1", LOG, lost=(0,), rolls=(2,))
    base.has_checkpoint = False
    other = disk(tmp_path / "2", LOG, 0, 1, rolls=(2,)).source(1)
    for start, gaps in ((None, ((0, 20),)), (19, ((19, 20),)), (20, ())):
        found = plan(BELIEF, base.source(0, log_start=start), other)
        assert (lost(found), found.open_gaps, found.start_offset) == ([], gaps, 20)
    assert plan(BELIEF, base.source(0)).open_gaps == ()


@pytest.mark.parametrize(("high_watermark", "is_used"), [(None, False), (59, False), (60, True), (61, False)])
def test_the_end_of_the_log_vouches_for_the_last_batch(
    high_watermark: int | None, is_used: bool, tmp_path: Path
) -> None:
    """It is alone after damage, or after a gap of a compacted log: it has its place if it ends where the log does."""
    source = disk(tmp_path / "0", LOG, 4).source(0, high_watermark=high_watermark)
    found = plan(BELIEF, source, steps_over=True)
    assert (spans(found)[-1][2], bool(found.doubted)) == (60 if is_used else 40, not is_used)
    source = disk(tmp_path / "1", [*LOG[:4], LOG[5]]).source(0, high_watermark=high_watermark)
    found = plan(COMPACTED, source)
    assert (found.end_offset, bool(found.doubted)) == (60 if is_used else 40, not is_used)


# Files of a compaction that was killed


@pytest.mark.parametrize(
    ("gone", "cleaned", "expected"),
    [
        ((20,), (), [(0, 0, 60)]),  # One segment replaces one, and the old one is removed.
        ((20, 40), (), [(0, 0, 40)]),
        ((), (), [(0, 0, 60)]),
        ((20,), (40,), [(0, 0, 60)]),
        ((20,), (20,), [(0, 0, 20), (0, 40, 60)]),  # The new one is not whole yet: Kafka does not take it either.
    ],
)
def test_a_segment_that_compaction_had_not_renamed_yet_counts(
    gone: Sequence[int], cleaned: Sequence[int], expected: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    """A node was killed between the removal of old segments and the renaming of the new one."""
    copy = disk(tmp_path / "0", LOG, rolls=(2, 4))
    copy.contents[f"{20:020}.log.swap"] = bytearray(copy.contents[f"{20:020}.log"])
    for offset in cleaned:
        copy.contents[f"{offset:020}.log.cleaned"] = bytearray()
    for offset in gone:
        copy.contents[f"{offset:020}.log.deleted"] = copy.contents.pop(f"{offset:020}.log")
    found = plan(COMPACTED, copy.source(0))
    joined: list[tuple[int, int, int]] = []
    for source, start, end in spans(found):
        if joined and joined[-1][2] == start:
            start = joined.pop()[1]
        joined.append((source, start, end))
    assert joined == expected
    assert bool(found.open_gaps) == (len(expected) > 1)


# What was deleted, and what cannot be read


def test_what_the_start_of_the_log_says_was_deleted_is_named(tmp_path: Path) -> None:
    """A checkpoint of a log directory has no checksum: whoever reads the plan may know that it is wrong."""
    copy = disk(tmp_path / "0", LOG)
    for start, count in ((None, 0), (0, 0), (1, 1), (59, 1)):
        found = plan(BELIEF, copy.source(0, log_start=start))
        assert (found.end_offset, len(found.dropped)) == (60, count)
    assert "all below offset 59 were deleted" in found.dropped[0]
    for start in (60, 1000):
        with pytest.raises(RepairRefusedError, match=f"below offset {start}, where the log begins"):
            plan(BELIEF, copy.source(0, log_start=start))


@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "cleaner-offset-checkpoint", f"{NAME}/leader-epoch-checkpoint"]
)
def test_a_small_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    """It counts as not there: what it would have said, nobody knows."""
    disk(tmp_path / "0", LOG).source(0, high_watermark=60)
    (tmp_path / "0" / name).write_text("0\n2\n1 0\n0 5\n" if "epoch" in name else "0\nx\n")
    found = plan(BELIEF, read_partition_source(str(tmp_path / "0"), str(NAME)))
    assert (found.end_offset, found.dropped) == (60, (f"{tmp_path}/0/{name} cannot be read, and counts as not there.",))


# Which metadata


def test_metadata_that_are_older_than_those_of_a_source_prove_nothing(tmp_path: Path) -> None:
    """A broker has the metadata, too: if these go on further, the ISR may have changed."""
    (copy,) = brokers(tmp_path, 1)
    controller = metadata(tmp_path)
    log = controller / "__cluster_metadata-0"
    shutil.copytree(log, copy / "__cluster_metadata-0")
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["is_proven"], line["unproven"]) == (True, [])
    more = [record("PartitionChangeRecord", partitionId=0, topicId=TXN_ID, isr=[2], leader=2)]
    later = metadata_log(tmp_path / "later", [VERSION], more, more, more)
    shutil.rmtree(copy / "__cluster_metadata-0")
    shutil.copytree(later / "__cluster_metadata-0", copy / "__cluster_metadata-0")
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", controller))
    assert (line["is_proven"], len(line["unproven"])) == (False, 1)
    assert "they are older" in line["unproven"][0]


def test_a_tail_that_the_quorum_has_replaced_is_not_later_if_it_was_given(tmp_path: Path) -> None:
    """The broker has fetched records that were never committed: with its metadata beside the others, that shows."""
    (copy,) = brokers(tmp_path, 1)
    controller = metadata(tmp_path)
    shutil.copytree(controller / "__cluster_metadata-0", copy / "__cluster_metadata-0")
    change = record("PartitionChangeRecord", partitionId=0, topicId=TXN_ID, isr=[1, 2])
    replaced = b"".join(metadata_batch(3 + each, [change], 1_000_000) for each in range(3))
    for directory, data in ((controller, leader_change(3, 2, 9, [9]).data), (copy, replaced)):
        with (directory / "__cluster_metadata-0" / f"{0:020}.log").open("ab") as log:
            log.write(data)
    state = controller / "__cluster_metadata-0" / "quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch": 1', '"leaderEpoch": 2'))
    for given, is_proven in (((controller,), False), ((controller, copy), True)):
        options = [each for directory in given for each in ("--metadata", directory)]
        line = planned(copy, file=tmp_path / "plan", options=tuple(options))
        assert (line["is_proven"], line["belief"]["end_offset"], line["belief"]["isr"]) == (is_proven, 4, [1])


def test_nothing_is_written_into_the_metadata(tmp_path: Path) -> None:
    """They are only read, as all sources are: a directory that Kafka does not know in its log directory stops it."""
    (copy,) = brokers(tmp_path, 1)
    controller = metadata(tmp_path)
    for given in (controller, controller / "__cluster_metadata-0", tmp_path / "link"):
        if given.name == "link":
            given.symlink_to(controller)
        arguments = (copy, "--partition", TXN, "--metadata", given, "-j1", "--plan")
        refused = run("salvage", *arguments, controller / "plan")
        assert (refused.exit_code, "is inside the source" in refused.messages) == (1, True)
        assert run("salvage", *arguments, tmp_path / "plan").exit_code == 0
        refused = run("salvage", "--apply", tmp_path / "plan", "--out", controller / "new", "-j1")
        assert (refused.exit_code, "is inside the source" in refused.messages) == (1, True)
        assert {path.name for path in controller.iterdir()} == {"__cluster_metadata-0", "meta.properties"}


def test_a_plan_is_carried_out_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of the metadata are absolute in it, as those of the sources."""
    brokers(tmp_path, 1)
    metadata(tmp_path)
    monkeypatch.chdir(tmp_path)
    planned(Path("broker-1"), file=Path("plan"), options=("--metadata", "controller"))
    (tmp_path / "elsewhere").mkdir()
    os.chdir("elsewhere")
    made(Path("../plan"), Path("new"))
    assert batches(tmp_path / "elsewhere" / "new" / TXN) == TRUTH


# What is made


def empty(copy: Path) -> None:
    """Remove all files of a partition but those that say of which topic it is."""
    for path in (copy / TXN).iterdir():
        if path.name != "partition.metadata":
            path.unlink()


def odd_batch(start: int) -> bytes:
    """A batch of nine records without keys, for ten offsets."""
    data = bytearray(data_batch(start, 0, 9, b"odd").data)
    data[23:27] = (9).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    "steps",
    [
        [Step(), Step(producer_id=8), Step(), Step(producer_id=8, sequence=2)],
        [Step(epoch=2), Step(epoch=1, sequence=2), Step(epoch=2, sequence=4), Step(epoch=2, sequence=6)],
    ],
    ids=["sequence-twice", "producer-epoch"],
)
def test_what_a_producer_has_done_wrong_is_no_reason_to_refuse(steps: list[Step], tmp_path: Path) -> None:
    """The source shows it, too: the log is salvaged with it, and the audit names it."""
    (copy,) = brokers(tmp_path, 1)
    empty(copy)
    written = produced(steps)
    (copy / TXN / f"{0:020}.log").write_bytes(b"".join(written))
    spoil(copy, 7)
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    assert line["end_offset"] == 6
    fact = run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new", "--format", "jsonl", "-j1")
    assert (fact.exit_code, fact.messages) == (0, "")
    (found,) = fact.of_kind("partition_salvaged")
    assert [each["severity"] for each in found["findings"]] == ["damaged"]
    assert [bytes(each.buffer) for each in batches(tmp_path / "new" / TXN)] == written[:3]


def test_a_last_batch_that_was_not_the_last_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """The audit sees only of the last batch of a segment that it has fewer records than offsets, and no key."""
    (copy,) = brokers(tmp_path, 1)
    empty(copy)
    (copy / TXN / f"{0:020}.log").write_bytes(b"".join(each.data for each in LOG[:2]) + odd_batch(20) + LOG[3].data)
    spoil(copy, 30)
    options = ("--metadata", metadata(tmp_path, policy="compact"))
    line = planned(copy, file=tmp_path / "plan", options=options)
    assert line["end_offset"] == 30
    fact = run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new", "-j1")
    assert (fact.exit_code, "batch-span" in fact.text) == (0, True)


def test_it_is_said_which_broker_starts_first(tmp_path: Path) -> None:
    """If a damaged replica of another broker leads, it truncates the new one, even if nothing was lost."""
    (copy,) = brokers(tmp_path, 1)
    planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    words = " ".join(run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new").text.split())
    assert "Start that broker before the others, and look that it leads" in words
    assert f"move its {TXN} out of its log directories" in words


def test_the_start_of_the_log_is_not_undone(tmp_path: Path) -> None:
    """The first batch begins before it: the line of the broker's checkpoint stays, if it is the base's."""
    (copy,) = brokers(tmp_path, 1)
    start = TRUTH[1].base_offset + 1
    checkpoint = write_offset_checkpoint([PartitionOffset("txn", 0, start)])
    (copy / "log-start-offset-checkpoint").write_bytes(checkpoint)
    line = planned(copy, file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    assert (line["start_offset"], line["log_start"]) == (start - 1, start)
    words = " ".join(run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new").text.split())
    assert f"with an offset above {start}, remove the line" in words
