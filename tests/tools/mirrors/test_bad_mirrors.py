# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror`` on clusters that do not fit, and on mirrors that were made in unusual ways.

Each is a finding or one clear line, and all that can be compared is.
"""

import itertools
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.control import EndTxnMarker, write_control_record
from raftlog.records.messages.mirrors.mirror_records import OffsetSync, OffsetSyncKey, write_mirror_record
from tests.tools.console import Outcome
from tests.tools.made_logs import flip
from tests.tools.mirrors.changed_mirror import (
    MIRROR,
    SYNCS,
    Entry,
    copied,
    log_bytes,
    move_syncs,
    remove_indexes,
    rewrite,
    with_contents,
)
from tests.tools.mirrors.faulty.faulty_files import CHECKPOINTS, COMMITS, records_in
from tests.tools.mirrors.faulty.record_faults import checkpoint_of
from tests.tools.mirrors.verb_runs import found, of_flow, refused, verified

ONE: Final = MIRROR / "n1"
TWO: Final = MIRROR / "n2"
ORDERS: Final = {"topic": "orders", "partition": 0}


def total(outcome: Outcome) -> tuple[int, int]:
    """How many pairs and how many records were compared."""
    (line,) = outcome.of_kind("total")
    return line["pairs"], line["compared"]


def pair_of(outcome: Outcome, source: dict[str, Any]) -> dict[str, Any]:
    """What was counted of the pair of a partition."""
    (line,) = [line for line in outcome.of_kind("pair") if line["source"] == source]
    return dict(line)


def reasons(outcome: Outcome) -> list[str]:
    """Why there are findings about the flow."""
    return [line["reason"] for line in outcome.of_kind("flow_finding")]


def has_no_finding(outcome: Outcome) -> bool:
    """Whether nothing above harmless was found, and nothing was said."""
    return (outcome.exit_code, found(outcome), of_flow(outcome), outcome.messages) == (0, [], [], "")


# Clusters that do not fit


def test_source_and_target_that_are_swapped_are_refused() -> None:
    """The line says that they may be."""
    line = refused("--source", TWO, "--target", ONE)
    assert "there are no offset syncs" in line
    assert "are source and target swapped?" in line


@pytest.mark.parametrize("cluster", [ONE, TWO], ids=["the source", "the target"])
def test_one_cluster_twice_is_refused(cluster: Path, tmp_path: Path) -> None:
    """By the ids of its topics, in the same directory and in a copy of it; without metadata, by the directory."""
    assert "the same cluster" in refused("--source", cluster, "--target", cluster)
    one, two = copied(tmp_path)
    copy = {ONE: one, TWO: two}[cluster]
    assert "the same cluster" in refused("--source", cluster, "--target", copy)
    shutil.rmtree(copy / "__cluster_metadata-0")
    assert "the same cluster" in refused("--source", copy, "--target", copy)


def test_a_flow_without_syncs_is_refused(tmp_path: Path) -> None:
    """The line names the topic that is not there."""
    source, target = copied(tmp_path)
    shutil.rmtree(source / SYNCS)
    line = refused("--source", source, "--target", target)
    assert line.endswith("there are no offset syncs: no topic mm2-offset-syncs.B.internal is here")


def test_syncs_on_both_clusters_are_chosen_from(tmp_path: Path) -> None:
    """By the configuration, or else by an option: without either the line says which."""
    source, target = copied(tmp_path)
    shutil.copytree(source / SYNCS, target / "mm2-offset-syncs.A.internal-0")
    assert has_no_finding(verified(source, target))
    shutil.rmtree(target / "mm2-configs.A.internal-0")
    clusters = ("--source", source, "--target", target, "--source-alias", "A", "--target-alias", "B")
    assert "both clusters have offset syncs of this flow: say which with --syncs source or target" in refused(*clusters)
    for place in ("source", "target"):
        outcome = verified(source, target, *map(str, clusters[4:]), "--syncs", place)
        assert (found(outcome), total(outcome)) == ([], (5, 580))


def test_one_of_two_flows_is_chosen(tmp_path: Path) -> None:
    """The target is that of two flows: the line names both, and an alias chooses."""
    source, target = copied(tmp_path)
    other = target / "mm2-configs.C.internal-0"
    shutil.copytree(target / "mm2-configs.A.internal-0", other)
    rewrite(other, lambda records: [(each.offset, _said_by(each, b'"A"', b'"C"')) for each in records])
    line = refused("--source", source, "--target", target)
    assert "A -> B (mm2-configs.A.internal), C -> B (mm2-configs.C.internal)" in line
    assert has_no_finding(verified(source, target, "--source-alias", "A"))


def _said_by(record: RecordView, old: bytes, new: bytes) -> Record:
    """Return a record of a Connect worker in which a text is another one."""
    key, value = (None if each is None else bytes(each).replace(old, new) for each in (record.key, record.value))
    return with_contents(record, key, value)


def test_syncs_of_unknown_partitions_are_told(tmp_path: Path) -> None:
    """Of a topic that no cluster has, and of a partition that no topic has; all others are compared."""
    source, target = copied(tmp_path)

    def more(records: list[RecordView]) -> Iterator[Entry]:
        yield from enumerate(records)
        for number, key in enumerate([("gone", 0), ("orders", 7), ("gone", 3)], len(records)):
            yield number, with_contents(records[-1], *write_mirror_record(OffsetSync(OffsetSyncKey(*key), 5, 5)))

    rewrite(source / SYNCS, more)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome), total(outcome)) == (3, [], (5, 580))
    assert of_flow(outcome) == [("mirror.unpaired", "gone"), ("mirror.unpaired", "orders")]
    assert reasons(outcome) == [
        "offset syncs name gone-0, gone-3, and no given directory has it or its mirror",
        "offset syncs name orders-7, and no given directory has it or its mirror",
    ]


@pytest.mark.parametrize(
    ("is_source", "reason"),
    [
        (True, "the given directories of the source do not have orders-1, whose mirror is A.orders-1"),
        (False, "the given directories of the target do not have A.orders-1, the mirror of orders-1"),
    ],
    ids=["of the source", "of the target"],
)
def test_a_partition_on_one_side_only_is_told(is_source: bool, reason: str, tmp_path: Path) -> None:
    """The log of the other side is not in the given directories; all others are compared."""
    source, target = copied(tmp_path)
    shutil.rmtree(source / "orders-1" if is_source else target / "A.orders-1")
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome), total(outcome)) == (3, [], (4, 430))
    assert (of_flow(outcome), reasons(outcome)) == ([("mirror.unpaired", "orders")], [reason])


# Names


def renamed(directory: Path, alias: str, separator: str) -> tuple[Path, Path]:
    """Copy both clusters, where A has another alias, and another separator is used, as the configuration says.

    Their metadata are left out.
    """
    source, target = copied(directory)
    for cluster in (source, target):
        shutil.rmtree(cluster / "__cluster_metadata-0")
    syncs = SYNCS.removesuffix("-0").replace(".", separator)
    (source / SYNCS).rename(source / f"{syncs}-0")
    for path in sorted(target.iterdir()):
        if path.name.startswith("A."):
            name = path.name.removeprefix("A.")
            name = name.replace(".", separator) if name.endswith(".internal-0") else name
            path.rename(target / f"{alias}{separator}{name}")
        elif ".A." in path.name:
            rewrite(path, lambda records: [(each.offset, _said_by(each, b'"A"', _json(alias))) for each in records])
            path.rename(target / path.name.replace(".A.", f".{alias}."))
    checkpoints = target / f"{alias}{separator}checkpoints{separator}internal-0"
    rewrite(checkpoints, lambda records: [(each.offset, _checkpoint(each, alias + separator)) for each in records])
    shutil.rmtree(target / COMMITS)
    if separator != ".":
        more = b'"properties":{"replication.policy.separator":%s,' % _json(separator)
        configs = target / f"mm2-configs.{alias}.internal-0"
        rewrite(configs, lambda records: [(each.offset, _said_by(each, b'"properties":{', more)) for each in records])
    return source, target


def _json(text: str) -> bytes:
    return json.dumps(text).encode()


def _checkpoint(record: RecordView, prefix: str) -> Record:
    read = checkpoint_of(record)
    key = attrs.evolve(read.key, topic=prefix + read.key.topic.removeprefix("A."))
    return with_contents(record, *write_mirror_record(attrs.evolve(read, key=key)))


@pytest.mark.parametrize("separator", ["_", "-", "--", "..", "._-", "mm2"])
def test_any_separator_that_topics_can_have_is_literal(separator: str, tmp_path: Path) -> None:
    """One of several characters, and one of characters of patterns."""
    source, target = renamed(tmp_path, "A", separator)
    outcome = verified(source, target)
    assert (has_no_finding(outcome), total(outcome)) == (True, (5, 580))
    assert len(outcome.of_kind("move")) == 4


@pytest.mark.parametrize("separator", ["+", "|", ".*", "[A", "", "\\."])
def test_a_separator_that_no_topic_has_is_refused(separator: str) -> None:
    """Characters of patterns mean themselves, so that no topic is named so; an empty one is no separator."""
    line = refused("--source", ONE, "--target", TWO, "--separator", separator)
    expected = (
        f"no topic mm2-offset-syncs{separator}B{separator}internal is here" if separator else "separator is empty"
    )
    assert expected in line


@pytest.mark.parametrize("alias", ["eu.west", "A.", "A.B", "heartbeats"])
def test_an_alias_may_hold_the_separator(alias: str, tmp_path: Path) -> None:
    """Kafka takes only its first part for the source; that it is one is known from the configuration."""
    source, target = renamed(tmp_path, alias, ".")
    outcome = verified(source, target)
    assert (has_no_finding(outcome), total(outcome)) == (True, (5, 580))


@pytest.mark.parametrize("option", ["--source-alias", "--target-alias"])
def test_an_empty_alias_is_refused(option: str) -> None:
    """It is not taken for none."""
    assert "an alias is empty" in refused("--source", ONE, "--target", TWO, option, "")


# Logs


def test_a_log_above_all_syncs_is_compared_by_its_contents(tmp_path: Path) -> None:
    """Retention has taken all that syncs name, on both sides: the rest is compared, and nothing is lag."""
    source, target = copied(tmp_path)
    move_syncs(source, "orders", lambda sync: sync if sync.key.partition or sync.upstream_offset < 315 else None)
    for partition in (source / "orders-0", target / "A.orders-0"):
        _cut_front(partition, 315)
    outcome = verified(source, target)
    assert has_no_finding(outcome)
    line = pair_of(outcome, ORDERS)
    assert [line[name] for name in ("compared", "unverifiable", "lag", "anchors_equal")] == [5, 0, 0, 0]
    assert line["anchors_unverifiable"] == 24


def _cut_front(partition: Path, start: int) -> None:
    records = [each for each in records_in(partition) if each.offset >= start]
    for path in partition.glob("*.log"):
        path.unlink()
    remove_indexes(partition)
    (partition / f"{start:020}.log").write_bytes(log_bytes([(each.offset, each) for each in records]))


def test_damage_of_the_source_makes_records_unverifiable(tmp_path: Path) -> None:
    """The audit's finding stands beside; what is around the damage is compared."""
    source, target = copied(tmp_path)
    (log,) = (source / "orders-0").glob("*.log")
    flip(log, 200)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [])
    assert "[batch-crc]" in outcome.messages
    line = pair_of(outcome, ORDERS)
    assert line["compared"] + line["unverifiable"] == 320
    assert line["unverifiable"] > 0
    assert total(outcome)[0] == 5


KEPT: Final = [number for number in range(320) if number % 7 and not 100 <= number < 140]
"""What compaction leaves of a partition: single ones are gone, and some in a row."""


def test_a_source_that_was_compacted_since_is_compared(tmp_path: Path) -> None:
    """What it no longer has is not verified; the rest is."""
    source, target = copied(tmp_path)
    rewrite(source / "orders-0", lambda records: [(each, records[each]) for each in KEPT])
    outcome = verified(source, target)
    assert has_no_finding(outcome)
    line = pair_of(outcome, ORDERS)
    assert (line["compared"], line["unverifiable"], line["lag"]) == (len(KEPT), 320 - len(KEPT), 0)


def test_a_source_that_was_compacted_before_is_compared(tmp_path: Path) -> None:
    """Its mirror has no place for what was not there any more: offsets drift apart, and syncs say so."""
    source, target = copied(tmp_path)
    rewrite(source / "orders-0", lambda records: [(each, records[each]) for each in KEPT])
    rewrite(target / "A.orders-0", lambda records: [(number, records[each]) for number, each in enumerate(KEPT)])
    _sync(source, KEPT)
    _without_groups(target)
    outcome = verified(source, target)
    assert has_no_finding(outcome)
    line = pair_of(outcome, ORDERS)
    assert (line["compared"], line["lag"]) == (len(KEPT), 0)


def _sync(source: Path, upstream: Sequence[int], downstream: Sequence[int] | None = None) -> int:
    """Write the syncs of orders-0 that MirrorMaker would: of the first record, and after each gap or 10 records.

    Returns:
        How many there are.
    """
    places = list(zip(upstream, downstream or range(len(upstream)), strict=True))
    due = [places[0]]
    for before, place in itertools.pairwise(places):
        if place[0] != before[0] + 1 or place[1] - due[-1][1] > 10:
            due.append(place)

    def change(records: list[RecordView]) -> Iterator[Entry]:
        key = OffsetSyncKey("orders", 0)
        new = [with_contents(records[0], *write_mirror_record(OffsetSync(key, *place))) for place in due]
        yield from enumerate([*records, *new])

    move_syncs(source, "orders", lambda sync: sync if sync.key.partition else None)
    rewrite(source / SYNCS, change)
    return len(due)


def _without_groups(target: Path) -> None:
    """Remove what follows from other syncs."""
    for name in (CHECKPOINTS, COMMITS):
        shutil.rmtree(target / name)


@pytest.mark.parametrize("aborted_count", [0, 1, 30], ids=["none", "one", "as many as a transaction"])
def test_an_exactly_once_target_is_compared(aborted_count: int, tmp_path: Path) -> None:
    """Its markers take offsets, and are no records and no holes; what was aborted was mirrored again."""
    source, target = copied(tmp_path)
    records = records_in(target / "A.orders-0")
    written: list[bytes] = []
    places: list[int] = []
    offset = sequence = 0
    for first in range(0, len(records), 30):
        batch = records[first : first + 30]
        for part in [batch[:aborted_count], batch] if aborted_count else [batch]:
            written.append(_transaction(offset, sequence, part, is_committed=part is batch))
            sequence += len(part)
            if part is batch:
                places += range(offset, offset + len(batch))
            offset += len(part) + 1
    (log,) = (target / "A.orders-0").glob("*.log")
    log.write_bytes(b"".join(written))
    remove_indexes(target / "A.orders-0")
    syncs = _sync(source, range(320), places)
    _without_groups(target)
    outcome = verified(source, target)
    assert (has_no_finding(outcome), total(outcome)) == (True, (5, 580))
    assert pair_of(outcome, ORDERS)["anchors_equal"] == syncs


def _transaction(offset: int, sequence: int, records: Sequence[RecordView], *, is_committed: bool) -> bytes:
    options: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    builder = RecordBatchBuilder(offset, partition_leader_epoch=0, base_sequence=sequence, **options)
    for each in records:
        builder.append(each.timestamp, each.key, each.value, each.headers)
    marker = RecordBatchBuilder(offset + len(records), partition_leader_epoch=0, is_control=True, **options)
    marker.append(records[-1].timestamp, *write_control_record(EndTxnMarker(is_committed, 0, 0)))
    return builder.build() + marker.build()
