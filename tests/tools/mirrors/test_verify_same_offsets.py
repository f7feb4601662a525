# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror --policy same-offsets``: mirrors with their sources' offsets, and replicas of one log."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.mirrors.comparing.rows import DigestRows
from raftlog.tools.mirrors.on_spark import spark_summer
from raftlog.tools.mirrors.on_spark.spark_summer import SparkSummer
from raftlog.tools.mirrors.reading.log_rows import LogRows
from tests.tools.console import Outcome, run
from tests.tools.made_logs import control_batch
from tests.tools.mirrors.changed_mirror import MIRROR, Entry, log_bytes, rewrite
from tests.tools.mirrors.faulty.faulty_files import records_in
from tests.tools.mirrors.on_spark.parts_here import over_all
from tests.tools.mirrors.planted_clusters import read_by
from tests.tools.mirrors.test_verify_mirror import with_change, without
from tests.tools.mirrors.verb_runs import found, of_flow, refused, verified

SAME = ("--policy", "same-offsets")
ABORT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x00"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A copy of the source cluster, as cluster mirroring would make it."""
    return Path(shutil.copytree(MIRROR / "n1", tmp_path / "target"))


def same(target: Path) -> Outcome:
    return verified(MIRROR / "n1", target, *SAME)


def test_a_copy_has_the_same_offsets(target: Path) -> None:
    """All records of users' topics, aborted ones too; no anchors are needed, and groups go on where they stand."""
    outcome = same(target)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    compared = {
        f"{line['source']['topic']}-{line['source']['partition']}": line["compared"] for line in outcome.of_kind("pair")
    }
    users = {"internal-looking-0": 10, "orders-0": 320, "orders-1": 150, "tx.orders-0": 60}
    assert users.items() <= compared.items()
    assert compared["heartbeats-0"] == 40  # No name but those that begin with two underscores is left out.
    (flow,) = outcome.of_kind("flow")
    assert flow["left_out"] == ["__cluster_metadata", "__consumer_offsets", "__transaction_state"]
    assert (flow["policy"], flow["source_alias"], flow["syncs_topic"]) == ("same-offsets", "source", None)
    moves = [(line["committed"], line["position"], line["read_again"]) for line in outcome.of_kind("move")]
    assert moves[:2] == [(273, 273, 0), (150, 150, 0)]
    assert outcome.of_kind("flow_finding") == []


def test_a_difference_is_at_one_offset(target: Path) -> None:
    """Changed, or without a record: the same offset on both sides."""
    rewrite(target / "orders-0", with_change(150, value=b"other"))
    rewrite(target / "orders-1", without(100, shifts=False))
    outcome = same(target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 150, 150), ("mirror.hole", 100, 100)])


def test_times_that_a_broker_has_stamped_are_copied(target: Path, tmp_path: Path) -> None:
    """Brokers copy batches as they are: another LogAppendTime is another record."""
    source = Path(shutil.copytree(MIRROR / "n1", tmp_path / "source"))
    for cluster, stamp_ms in ((source, 1_800_000_000_000), (target, 1_800_000_000_001)):
        rewrite(cluster / "orders-1", enumerate, append_time_ms=stamp_ms)
    outcome = verified(source, target, *SAME)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 0, 0)])
    (line,) = outcome.of_kind("finding")
    assert line["reason"].endswith("the first one has another timestamp")


def test_after_a_fail_over_others_have_written(target: Path) -> None:
    """The target was cut at its last stable offset and got a marker: what it has since is one finding, the rest lag."""

    def cut(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate(records[:300])

    def own(records: list[RecordView]) -> Iterator[Entry]:
        yield from ((301 + at, Record(0, 1_900_000_000_000, b"new", b"%d" % at)) for at in range(5))

    log = next((target / "orders-0").glob("*.log"))
    rewrite(target / "orders-0", cut)
    kept = log.read_bytes() + control_batch(300, *ABORT)
    rewrite(target / "orders-0", own)
    log.write_bytes(kept + log.read_bytes())
    outcome = same(target)
    assert (outcome.exit_code, found(outcome)) == (3, [("mirror.written-to", 300, 301)])
    (pair,) = [line for line in outcome.of_kind("pair") if line["source"] == {"topic": "orders", "partition": 0}]
    assert (pair["compared"], pair["lag"], pair["next_source_offset"]) == (300, 20, 300)


def test_another_topic_id_is_another_topic(target: Path) -> None:
    """Mirrors with the same offsets have the topic ids of their sources."""
    metadata = write_partition_metadata(PartitionMetadata(0, uuid.UUID(int=5)))
    (target / "orders-1/partition.metadata").write_bytes(metadata)
    outcome = same(target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.source-recreated", None, None)])


@pytest.mark.parametrize("option", [("--syncs", "source"), ("--isolation", "read_committed"), ("--separator", "_")])
def test_what_says_nothing_of_it_is_refused(option: tuple[str, str]) -> None:
    """Such mirrors have no syncs, and nothing is left out of them."""
    line = refused("--source", MIRROR / "n1", "--target", MIRROR / "n2", *SAME, *option)
    assert line.endswith(f"{option[0]} says nothing of mirrors with the offsets of their sources")


def test_what_one_side_has_alone_is_told(target: Path) -> None:
    """A partition, and a topic, that the directories of one side do not have."""
    shutil.rmtree(target / "orders-1")
    (target / "tx.orders-0").rename(target / "other-0")
    found_of_flow = of_flow(same(target))
    assert found_of_flow == [("mirror.unpaired", topic) for topic in ("orders", "other", "tx.orders")]


def test_another_marker_is_a_difference(target: Path) -> None:
    """A transaction that was committed, and is aborted in the target: no data record differs."""
    source = Path(shutil.copytree(target, target.parent / "source"))
    for cluster, kind in ((source, b"\x00\x00\x00\x01"), (target, ABORT[0])):
        log = next((cluster / "orders-1").glob("*.log"))
        log.write_bytes(log.read_bytes() + control_batch(150, kind, ABORT[1]))
    outcome = verified(source, target, *SAME)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 150, 150)])
    shutil.copytree(source, target, dirs_exist_ok=True)
    assert found(verified(source, target, *SAME)) == []


@pytest.mark.parametrize(("end", "reason", "skipped"), [(200, "the target ends at 200", 0), (400, "others wrote", 73)])
def test_a_group_that_would_pass_over_what_others_wrote(target: Path, end: int, reason: str, skipped: int) -> None:
    """The target was cut at 200, where it ends, or has its own records: a group at 273 has not read those before."""

    def cut(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate(records[:200])
        yield from ((at, Record(0, 1_900_000_000_000, b"new", b"%d" % at)) for at in range(200, end))

    rewrite(target / "orders-0", cut)
    outcome = same(target)
    ahead = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.checkpoint-ahead"]
    assert [reason in line["reason"] for line in ahead] == [True]
    assert outcome.exit_code == 2
    (move,) = (
        line
        for line in outcome.of_kind("move")
        if line["from"] == "source" and line["source"] == {"topic": "orders", "partition": 0}
    )
    assert move["skipped"] == skipped


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("state", ["not-there", "damaged"])
def test_what_is_not_looked_for_without_metadata_is_said(side: str, state: str, target: Path) -> None:
    """In a line for the side without, and not for the other one."""
    source = Path(shutil.copytree(target, target.parent / "source"))
    metadata = (source if side == "source" else target) / "__cluster_metadata-0"
    if state == "not-there":
        shutil.rmtree(metadata)
    else:
        for path in [*metadata.glob("*.log"), *metadata.glob("*.checkpoint")]:
            path.write_bytes(b"")
    lines = run("verify-mirror", "--source", source, "--target", target, *SAME).text.splitlines()
    said = [each for each in lines if each.startswith("The metadata of the ")]
    what = "not here" if state == "not-there" else "damaged"
    assert len(said) == 1
    assert said[0].startswith(f"The metadata of the {side} are {what}: ")
    assert said[0].endswith(", and partitions without a log here are not looked for.")
    assert "The metadata" not in run("verify-mirror", "--source", MIRROR / "n1", "--target", MIRROR / "n1", *SAME).text


def test_what_was_passed_over_is_told_without_a_task(target: Path) -> None:
    """Brokers copy batches: the words speak of both logs, and of no task."""
    source = Path(shutil.copytree(target, target.parent / "source"))
    rewrite(target / "orders-0", lambda records: enumerate(records[:100]))
    for each in (source / "orders-0").iterdir():
        if each.suffix != ".metadata":
            each.unlink()
    later = log_bytes([(each.offset, each) for each in records_in(MIRROR / "n1/orders-0") if each.offset >= 200])
    (source / f"orders-0/{200:020}.log").write_bytes(later)
    lost = [each for each in verified(source, target, *SAME).of_kind("finding") if each["rule"] == "mirror.lost"]
    assert [each["reason"] for each in lost] == [
        "offsets 100 to 199 of orders-0 are in neither log: retention had removed them there before they were mirrored"
    ]


def test_a_long_gap_is_one_step(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch far above the others, otherwise on each side: the offsets between are not looked at one by one."""
    source = Path(shutil.copytree(target, target.parent / "source"))
    for cluster, value in ((source, b"here"), (target, b"there")):
        log = next((cluster / "orders-0").glob("*.log"))
        far = log_bytes([(1 << 45, Record(0, 1_900_000_000_000, None, value))], producer_id=-1)
        log.write_bytes(log.read_bytes() + far)
    rows: list[int] = []
    real = LogRows.read

    def counted(self: LogRows, start: int, end: int) -> Iterator[DigestRows]:
        for each in real(self, start, end):
            rows.append(len(each))
            yield each

    monkeypatch.setattr(LogRows, "read", counted)
    outcome = verified(source, target, *SAME)
    assert ("mirror.changed", 1 << 45, 1 << 45) in found(outcome)
    assert sum(rows) < 10_000


def test_holes_without_metadata_are_doubtful(target: Path) -> None:
    """What only one side has is told: compaction may explain it if no metadata say that topics are not compacted."""
    source = Path(shutil.copytree(target, target.parent / "source"))
    rewrite(target / "orders-0", without(150, shifts=False))
    rewrite(source / "orders-1", without(70, shifts=False))
    for cluster in (source, target):
        shutil.rmtree(cluster / "__cluster_metadata-0")
    outcome = verified(source, target, *SAME)
    assert (outcome.exit_code, found(outcome)) == (3, [("mirror.hole", 150, 150), ("mirror.foreign", 70, 70)])
    shutil.rmtree(target)
    shutil.copytree(source, target)
    assert found(verified(source, target, *SAME)) == []


@pytest.mark.parametrize("part_size", [1 << 40, 1])
def test_logs_in_parts_are_compared_alike(part_size: int, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tasks of Spark read them, whole or batch by batch: the same output, to the byte."""
    rewrite(target / "orders-0", with_change(150, value=b"other"))
    rewrite(target / "orders-1", without(100, shifts=False))
    alone = same(target)
    monkeypatch.setattr(spark_summer, "run_on_workers", over_all)
    none: Any = None
    read_by(monkeypatch, SparkSummer(none, part_size))
    assert same(target) == alone
