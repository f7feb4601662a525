# SPDX-License-Identifier: Apache-2.0
"""Messages in records of the metadata log: read where that is asked for, and as ``dump-log`` reads them."""

from pathlib import Path

import pytest

from raftlog.records.batches.builder import RecordBatchBuilder
from tests.golden_files import GOLDEN
from tests.planted.segments import change_record
from tests.tools.console import run

NAME = f"{0:020}.log"
FEATURE = bytes([1, 12, 0]) + b"\x11metadata.version\x00\x1b\x00"
"""A FeatureLevelRecord."""
UNKNOWN = bytes([1, 99, 0])


def partition(folder: Path, *values: bytes | None, name: str = "__cluster_metadata-0", codec: int = 0) -> Path:
    """Write a log of one batch."""
    builder = RecordBatchBuilder(0, partition_leader_epoch=3)
    builder.extend([(0, None, value) for value in values])
    (folder / name).mkdir(parents=True)
    (folder / name / NAME).write_bytes(builder.build())
    return folder / name


def found(path: Path, *options: str) -> list[tuple[str, int, int, int]]:
    """Return rule, position, offset and epoch of the findings about messages."""
    outcome = run("verify", "-j", "1", "--format", "jsonl", *options, path)
    return [
        (each["rule"], each["position"], each["offset"], each["epoch"])
        for each in outcome.of_kind("finding")
        if each["rule"].startswith("message-")
    ]


def test_messages_are_read_if_that_is_asked_for(tmp_path: Path) -> None:
    """Each record that is not a message is a finding at its offset, at the position of its batch."""
    path = partition(tmp_path, FEATURE, UNKNOWN, FEATURE[:-1], b"\7", FEATURE + b"\0")

    assert found(path) == []
    assert found(path, "--messages") == [
        ("message-field", 0, 2, 3),
        ("message-field", 0, 4, 3),
        ("message-frame", 0, 1, 3),
        ("message-frame", 0, 3, 3),
    ]


def test_they_are_those_of_dump_log(tmp_path: Path) -> None:
    """Both verbs find the same, in the same words."""
    path = partition(tmp_path, FEATURE[:-1], UNKNOWN)
    dumped = run("dump-log", "--format", "jsonl", "--cluster-metadata-decoder", "--files", path / NAME)
    verified = run("verify", "-j", "1", "--format", "jsonl", "--messages", path)

    expected = {(each["rule"], each["reason"], each["offset"]) for each in dumped.of_kind("finding")}
    verified_findings = [each for each in verified.of_kind("finding") if each["rule"].startswith("message-")]
    assert {(each["rule"], each["reason"], each["offset"]) for each in verified_findings} == expected
    assert len(expected) == 2


@pytest.mark.parametrize("name", ["orders-0", "__consumer_offsets-0"])
def test_records_of_other_topics_are_bytes(name: str, tmp_path: Path) -> None:
    """Only the metadata log has metadata records."""
    assert found(partition(tmp_path, UNKNOWN, name=name), "--messages") == []


@pytest.mark.parametrize("attributes", [0, 1, 0x80, 0xFF])
def test_records_have_no_attributes(attributes: int, tmp_path: Path) -> None:
    """They are looked at where records are read one by one."""
    path = partition(tmp_path, FEATURE, FEATURE)
    log = path / NAME
    log.write_bytes(change_record(log.read_bytes(), 1, attributes=attributes))
    with_messages = run("verify", "-j", "1", "--format", "jsonl", "--messages", path).of_kind("finding")
    without = run("verify", "-j", "1", "--format", "jsonl", path).of_kind("finding")

    more = [(each["rule"], each["offset"], each["reason"]) for each in with_messages if each not in without]
    assert more == ([("record-attributes", 1, f"a record has attributes {attributes:#04x}")] if attributes else [])


def test_no_value_is_one_finding(tmp_path: Path) -> None:
    """A record without a value is reported as that."""
    assert found(partition(tmp_path, None), "--messages") == []


@pytest.mark.parametrize("name", ["dynamic-quorum", "static-upgrade", "wire"])
def test_kafkas_own_logs_are_clean(name: str) -> None:
    """All messages in logs and snapshots that a real Kafka wrote read."""
    assert run("verify", "-j", "1", "--messages", GOLDEN / name / "data").exit_code == 0


def test_checked_rules_are_reported(tmp_path: Path) -> None:
    """In an audit's tables the rules of messages have passed only where messages were read."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = partition(tmp_path / "data", FEATURE)
    for options, status in ([], "skipped"), (["--messages"], "pass"):
        out = tmp_path / f"out{len(options)}"
        run("audit", "-j", "1", "--out", out, *options, path)
        checks = {row["rule"]: row["status"] for row in pq.read_table(out / "checks").to_pylist()}
        assert {checks[f"message-{what}"] for what in ("field", "version", "frame")} == {status}
        assert {checks["decoder-raised"], checks["index-sanity"]} == {"skipped"}


def test_messages_are_read_by_a_later_run_that_asks(tmp_path: Path) -> None:
    """Stored evidence has no facts about messages if they were not read."""
    pytest.importorskip("pyarrow")
    path, out = partition(tmp_path / "data", UNKNOWN), tmp_path / "out"

    run("audit", "-j", "1", "--out", out, path)
    assert "message-frame" not in (out / "report.html").read_text()
    run("audit", "-j", "1", "--messages", "--out", out, path)
    assert "message-frame" in (out / "report.html").read_text()
