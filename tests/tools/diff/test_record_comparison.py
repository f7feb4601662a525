# SPDX-License-Identifier: Apache-2.0
"""Which records of two replicas differ: what ``raftlog diff`` says, beside ``verify-mirror --policy same-offsets``."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from raftlog.errors import StorageError
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.record import RecordView
from raftlog.tools.audit_verbs import two_looks
from raftlog.tools.auditing.history.divergence import DivergenceKind
from raftlog.tools.auditing.run.engine import survey_all
from raftlog.tools.diff import record_comparison
from raftlog.tools.diff.compared_replicas import Pair, compare_twice
from raftlog.tools.diff.record_comparison import RecordFault
from raftlog.tools.mirrors.comparing.differences import MirrorFault
from raftlog.tools.mirrors.naming import IdentityPolicy
from raftlog.tools.mirrors.pair_report import FlowReport, PairReport
from raftlog.tools.mirrors.reading import log_reading
from raftlog.tools.mirrors.reading.clusters import Cluster
from raftlog.tools.mirrors.reading.log_reading import LocalSummer
from raftlog.tools.mirrors.verification import MirrorVerification
from tests.checkout import ROOT
from tests.tools.console import Outcome, run
from tests.tools.made_logs import control_batch, flip
from tests.tools.mirrors.changed_mirror import MIRROR, Entry, log_bytes, rewrite, with_contents
from tests.tools.mirrors.comparing.mirror_copies import ArrayLog, real_mirrors
from tests.tools.mirrors.comparing.planted_mirrors import KINDS, planted
from tests.tools.mirrors.faulty.faulty_files import entries_of
from tests.tools.mirrors.test_verify_mirror import with_change, without

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/diff-1.schema.json").read_text()))
LOG = f"{0:020}.log"
PARTITION = "orders-0"
KINDS_OF = {
    MirrorFault.CHANGED: RecordFault.CHANGED,
    MirrorFault.HOLE: RecordFault.LEFT_ONLY,
    MirrorFault.FOREIGN: RecordFault.RIGHT_ONLY,
    MirrorFault.WRITTEN_TO: RecordFault.RIGHT_ONLY,
}
MOST_OF_A_KIND = 4
Counts = dict[RecordFault, int]


def pair_of(left: Path, right: Path) -> Pair:
    """What ``diff`` compares of two log directories with one partition."""
    ((pair,),) = compare_twice([str(left), str(right)], lambda tasks: survey_all(tasks, 1)).pairs
    return pair


def report_of(left: Path, right: Path) -> PairReport:
    """What ``verify-mirror --policy same-offsets`` says of the same directories."""
    flow = FlowReport(("left", "right"), IdentityPolicy("left"), None, None, False)
    clusters = Cluster([str(left)]), Cluster([str(right)])
    (report,) = MirrorVerification(*clusters, flow, None, None, LocalSummer()).pairs()
    return report


def counts_of(report: PairReport) -> Counts:
    """Its counts, in the words of ``diff``."""
    found = Counter[RecordFault]()
    for each in report.result.differences:
        found[KINDS_OF[each.kind]] += each.count
    found[RecordFault.LEFT_ONLY] += report.result.counts.lag
    return {fault: found[fault] for fault in RecordFault}


def agreeing(left: Path, right: Path) -> Counts | None:
    """The counts of ``diff``, which are those of ``verify-mirror``; None if it says nothing of records."""
    pair, counts = pair_of(left, right), counts_of(report_of(left, right))
    kinds = {each.of.kind for each in pair.differences}
    if pair.records is None:
        assert pair.unanswered == ""
        assert kinds <= {DivergenceKind.COMPACTION}
        assert counts[RecordFault.CHANGED] == 0
        assert bool(kinds) == any(counts.values())
        return None
    assert {fault: pair.records.count(fault) for fault in RecordFault} == counts
    return counts


def write(root: Path, side: str, data: bytes) -> Path:
    """Write the only segment of the partition in a log directory."""
    log = root / side / PARTITION / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(data)
    return root / side


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    """Two replicas that are the same, whose batches have no producer."""
    for side in ("left", "right"):
        shutil.copytree(MIRROR / "n1" / PARTITION, tmp_path / side / PARTITION)
        rewrite(tmp_path / side / PARTITION, enumerate, producer_id=-1)
    return tmp_path / "left", tmp_path / "right"


def diff(left: Path, right: Path, *options: str) -> Outcome:
    """What the verb prints as JSON lines, which fit the published schema."""
    outcome = run("diff", "--format", "jsonl", *options, left, right)
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome


def places(outcome: Outcome) -> list[tuple[object, ...]]:
    return [(each["difference"], each["offset"], each["end_offset"]) for each in outcome.of_kind("record_difference")]


# Beside the comparison of mirrors


def written(log: ArrayLog, root: Path, side: str) -> Path:
    return write(root, side, log_bytes(list(entries_of(log)), end=log.end_offset))


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_verify_mirror_over_planted_faults(kind: str, tmp_path: Path) -> None:
    """For each kind of fault in copies of real mirrors: as many records of each kind differ, by the same code."""
    real = {each.pair: each.target for each in real_mirrors()}
    sampled = list(planted(kind, step=211, first=17)) or list(planted(kind, step=23))
    assert sampled
    for each in sampled[:MOST_OF_A_KIND]:
        left = written(real[each.mirror.pair], tmp_path, "left")
        agreeing(left, written(each.mirror.target, tmp_path, "right"))


@attrs.frozen
class Batch:
    """Adjacent records.

    Attributes:
        values: what each record has; None for one that was removed.
        epoch: of their leader.
        has_key: whether compaction may remove them.
    """

    values: tuple[int | None, ...]
    epoch: int = 1
    has_key: bool = False


def batch_bytes(batches: Sequence[Batch]) -> bytes:
    found, offset = [], 0
    for each in batches:
        last = len(each.values) - 1
        builder = RecordBatchBuilder(offset, partition_leader_epoch=each.epoch, last_offset_delta=last)
        for at, value in enumerate(each.values, offset):
            if value is not None:
                key = b"key" if each.has_key else None
                builder.append(1_000 * each.epoch + value, key, b"%d" % value, offset=at)
        if any(value is not None for value in each.values):
            found.append(builder.build())
        offset += len(each.values)
    return b"".join(found)


def changed_batches(chance: random.Random, batches: Sequence[Batch]) -> list[Batch]:
    """The same batches, of which some have other records or fewer; perhaps cut, or with others of a later epoch."""
    found = []
    for each in batches:
        values = [chance.choice([value, 50, None]) if chance.random() < 0.1 else value for value in each.values]
        found.append(attrs.evolve(each, values=tuple(values)))
    fork = chance.randrange(2 * len(found))
    tail = [Batch((70 + at,) * 3, epoch=2) for at in range(chance.randrange(4))]
    return found[: max(1, fork)] + (tail if fork < len(found) else [])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_counts_are_those_of_verify_mirror(tmp_path: Path, seed: int) -> None:
    """Of any logs that differ in records, by their ends, or from a fork on."""
    chance = random.Random(seed)
    batches = [
        Batch(tuple(range(chance.randint(1, 5))), has_key=chance.random() < 0.5) for _ in range(chance.randint(1, 12))
    ]
    sides = [write(tmp_path, "left", batch_bytes(batches))]
    sides.append(write(tmp_path, "right", batch_bytes(changed_batches(chance, batches))))
    chance.shuffle(sides)
    agreeing(*sides)


# What is said


def test_a_changed_record_is_told_with_what_differs(copies: tuple[Path, Path]) -> None:
    """How many records have changed in which part, and where; the batch is judged as without."""
    left, right = copies
    rewrite(right / PARTITION, with_change(150, value=b"other", key=b"another"), producer_id=-1)
    outcome = diff(left, right)
    assert outcome.exit_code == 2
    assert [each["divergence"] for each in outcome.of_kind("divergence")] == ["conflicting batch"]
    (records,) = outcome.of_kind("records")
    assert (records["start_offset"], records["compared"], records["unverifiable"]) == (140, 180, 0)
    assert (records["changed"], records["left_only"], records["right_only"]) == (1, 0, 0)
    assert records["changed_in"] == {"key": 1, "value": 1, "headers": 0, "timestamp": 0, "control": 0}
    (place,) = outcome.of_kind("record_difference")
    assert (place["difference"], place["offset"], place["end_offset"]) == ("changed", 150, 151)
    assert place["parts"] == ["key", "value"]
    assert run("diff", left, right).text.splitlines()[-2:] == [
        "  records from offset 140 on: 180 compared, 1 changed (1 in key, 1 in value)",
        "    changed at offset 150 in key and value",
    ]


@pytest.mark.parametrize("part", ["key", "value", "headers", "timestamp"])
def test_each_part_of_a_record_is_told(part: str, copies: tuple[Path, Path]) -> None:
    """Key, value, headers or timestamp alone; an empty key is not the same as none."""
    left, right = copies
    change = {"key": b"", "value": b"", "headers": (), "timestamp": 7}[part]
    before = {"key": None, "value": None, "headers": ((b"name", b"value"),), "timestamp": 8}[part]
    rewrite(left / PARTITION, with_change(5, **{part: before}), producer_id=-1)
    rewrite(right / PARTITION, with_change(5, **{part: change}), producer_id=-1)
    (place,) = diff(left, right).of_kind("record_difference")
    assert (place["offset"], place["parts"]) == (5, [part])


@pytest.mark.parametrize("cuts_left", [True, False])
def test_one_side_that_is_cut(cuts_left: bool, copies: tuple[Path, Path]) -> None:
    """The records after its end are on the other side alone; that stays harmless."""
    cut, whole = copies if cuts_left else copies[::-1]
    rewrite(cut / PARTITION, lambda records: enumerate(records[:300]), producer_id=-1)
    outcome = diff(*copies)
    assert outcome.exit_code == 0
    (records,) = outcome.of_kind("records")
    name = "right_only" if cuts_left else "left_only"
    assert (records["start_offset"], records[name], records["changed"]) == (300, 20, 0)
    assert places(outcome) == [(name, 300, 320)]
    assert agreeing(cut, whole)


def test_a_fork_shows_the_records_of_each_branch(tmp_path: Path) -> None:
    """What only the abandoned branch has, and what only the other one has, from the offset at which they part."""
    first = [Batch((1, 2, 3)), Batch((4, 5))]
    left = write(tmp_path, "left", batch_bytes([*first, Batch((6, 7, 8))]))
    right = write(tmp_path, "right", batch_bytes([*first, Batch((1_006,), epoch=2)]))
    outcome = diff(left, right)
    assert [each["divergence"] for each in outcome.of_kind("divergence")] == ["conflicting epoch"]
    assert sorted(places(outcome)) == [("left_only", 5, 8), ("right_only", 5, 6)]
    (records,) = outcome.of_kind("records")
    assert (records["compared"], records["changed"]) == (0, 0)
    assert agreeing(left, right) == {RecordFault.CHANGED: 0, RecordFault.LEFT_ONLY: 3, RecordFault.RIGHT_ONLY: 1}


def test_compaction_that_is_normal_says_nothing_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it read anything; and nothing is read of logs that are the same."""

    def fail(*_: object) -> None:
        raise AssertionError("a log was read again")

    monkeypatch.setattr(log_reading, "read_log", fail)
    left = write(tmp_path, "left", batch_bytes([Batch((1, 2, 3), has_key=True), Batch((4,))]))
    right = write(tmp_path, "right", batch_bytes([Batch((1, None, 3), has_key=True), Batch((4,))]))
    outcome = diff(left, right, "--all")
    assert (outcome.exit_code, outcome.of_kind("records")) == (0, [])
    assert [each["divergence"] for each in outcome.of_kind("divergence")] == ["compaction only"]
    assert diff(left, left).of_kind("records") == []


def test_compaction_beside_a_change_is_said(tmp_path: Path) -> None:
    """Records that one side has alone may have been compacted, if that explains other batches."""
    left = write(tmp_path, "left", batch_bytes([Batch((1, 2, 3), has_key=True), Batch((4,))]))
    right = write(tmp_path, "right", batch_bytes([Batch((1, None, 3), has_key=True), Batch((5,))]))
    lines = run("diff", left, right).text.splitlines()
    assert "  records from offset 0 on: 3 compared, 1 changed (1 in value, 1 in timestamp), 1 only left" in lines[-3]
    assert lines[-3].endswith("; compaction explains some")


def test_a_damaged_batch_leaves_its_records_unverifiable(copies: tuple[Path, Path]) -> None:
    """They are not called missing: the damage is told of its own."""
    left, right = copies
    flip(right / PARTITION / LOG, 100)
    outcome = diff(left, right)
    assert [each["divergence"] for each in outcome.of_kind("divergence")] == ["bit rot"]
    (records,) = outcome.of_kind("records")
    assert (records["unverifiable"], records["left_only"], records["compared"]) == (20, 0, 300)
    assert (
        "300 compared, 20 not compared, since one side is gone or damaged, no difference"
        in run("diff", left, right).text
    )


def test_another_marker_is_told(copies: tuple[Path, Path]) -> None:
    """A transaction that was committed on one side, and aborted on the other."""
    for path, kind in zip(copies, (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"), strict=True):
        log = path / PARTITION / LOG
        log.write_bytes(log.read_bytes() + control_batch(320, kind, b"\x00\x00\x00\x00\x00\x00"))
    outcome = diff(*copies)
    (place,) = outcome.of_kind("record_difference")
    assert (place["difference"], place["offset"], place["parts"]) == ("changed", 320, ["control"])


def in_each(offsets: Sequence[int]) -> Callable[[list[RecordView]], Iterator[Entry]]:
    """Other values at some offsets."""

    def change(records: list[RecordView]) -> Iterator[Entry]:
        for at, each in enumerate(records):
            yield at, with_contents(each, each.key, b"other") if at in offsets else each

    return change


def test_the_first_place_of_each_kind_is_shown_and_with_all_each(copies: tuple[Path, Path]) -> None:
    """Two ranges of changes, and two offsets that one side lacks."""
    left, right = copies
    rewrite(right / PARTITION, in_each([3, 4, 9]), producer_id=-1)
    rewrite(left / PARTITION, without(40, shifts=False), producer_id=-1)
    assert places(diff(left, right)) == [("changed", 3, 5), ("right_only", 40, 41)]
    assert places(diff(left, right, "--all")) == [("changed", 3, 5), ("changed", 9, 10), ("right_only", 40, 41)]


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_so_many_changed_records_are_read_again(
    most: int, copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, at and after the limit: all are counted as changed, and of how many the parts are known is said."""
    monkeypatch.setattr(record_comparison, "MOST_READ_AGAIN", most)
    left, right = copies
    rewrite(right / PARTITION, in_each([3, 4, 9]), producer_id=-1)
    outcome = diff(left, right, "--all")
    (records,) = outcome.of_kind("records")
    known = min(most, 3)
    assert (records["changed"], records["read_again"], records["changed_in"]["value"]) == (3, known, known)
    parts = [each["parts"] for each in outcome.of_kind("record_difference")]
    assert parts == [["value"], ["value"] if most > 2 else []]
    assert ("(of the first" in run("diff", left, right).text) is (most < 3)


def test_of_files_that_changed_meanwhile_no_record_is_told(
    copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node has written between both looks: what differs by then may never have been so at one moment."""
    left, right = copies
    rewrite(right / PARTITION, with_change(150, value=b"other"), producer_id=-1)
    log, calls, real = left / PARTITION / LOG, list[int](), two_looks._listed

    def listed(*given: Any) -> Any:
        calls.append(1)
        if len(calls) % 2 == 0:
            log.write_bytes(log.read_bytes() + control_batch(320, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00"))
        return real(*given)

    monkeypatch.setattr(two_looks, "_listed", listed)
    outcome = diff(left, right)
    (records,) = outcome.of_kind("records")
    assert (records["problem"], records["changed"]) == ("files changed while they were read", None)
    assert outcome.exit_code == 2
    assert "  records were not compared: files changed while they were read" in run("diff", left, right).text


def test_records_that_cannot_be_read_are_no_result(copies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """That a segment is unreadable by then is said in place of counts."""

    def fail(*_: object) -> None:
        raise StorageError("orders-0", "read", "the disk failed")

    monkeypatch.setattr(log_reading, "read_log", fail)
    left, right = copies
    rewrite(right / PARTITION, with_change(150, value=b"other"), producer_id=-1)
    (records,) = diff(left, right).of_kind("records")
    assert "the disk failed" in records["problem"]


def test_blocks_that_differ_without_a_batch_are_compared(tmp_path: Path) -> None:
    """A batch once more, out of order: no batch in sequence differs, and no record does."""
    data = batch_bytes([Batch((1, 2)), Batch((3, 4)), Batch((5,))])
    left = write(tmp_path, "left", data)
    right = write(tmp_path, "right", data + batch_bytes([Batch((1, 2))]))
    outcome = diff(left, right)
    assert (outcome.exit_code, outcome.of_kind("divergence")) == (0, [])
    (records,) = outcome.of_kind("records")
    assert (records["start_offset"], records["compared"], records["changed"]) == (0, 5, 0)
    assert places(outcome) == []
