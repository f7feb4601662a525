# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror --policy same-offsets``: mirrors with their sources' offsets, and replicas of one log."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from tests.tools.console import Outcome
from tests.tools.made_logs import control_batch
from tests.tools.mirrors.changed_mirror import MIRROR, Entry, rewrite
from tests.tools.mirrors.test_verify_mirror import with_change, without
from tests.tools.mirrors.verb_runs import found, refused, verified

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
    assert [line["compared"] for line in outcome.of_kind("pair")] == [10, 320, 150, 60]
    (flow,) = outcome.of_kind("flow")
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
