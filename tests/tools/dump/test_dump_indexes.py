# SPDX-License-Identifier: Apache-2.0
"""Files beside a log: their entries are listed, and faults are findings with a position."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.files.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
)
from raftlog.tools.dump.output_formats import FORMATS
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, dump, dump_jsonl
from tests.tools.made_logs import LOG_NAME, TIMESTAMP, batch, write_log

NODE = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0"
BATCHES = [batch(3 * offset, (b"v",) * 3, timestamp=TIMESTAMP + 10 * offset) for offset in range(6)]
OFFSET_ENTRIES = [OffsetIndexEntry(3 * each + 2, sum(map(len, BATCHES[:each]))) for each in (1, 3, 5)]
TIME_ENTRIES = [TimeIndexEntry(TIMESTAMP + 10 * each + 2, 3 * each + 2) for each in (1, 3, 5)]


def write_segment(folder: Path, offset_index: bytes | None = None, time_index: bytes | None = None) -> Path:
    """Write a segment with indexes, and return the log's path."""
    path = write_log(folder, *BATCHES)
    for suffix, data in ((".index", offset_index), (".timeindex", time_index)):
        if data is not None:
            path.with_suffix(suffix).write_bytes(data)
    return path


def assert_finding(outcome: Outcome, rule: str, position: int | None, exit_code: int = 2) -> dict[str, Any]:
    """Check that there is one finding, on standard error too, and return it."""
    (finding,) = outcome.of_kind("finding")
    assert (finding["rule"], finding["position"], outcome.exit_code) == (rule, position, exit_code)
    (complaint,) = outcome.complaints
    assert complaint.endswith(f"[{rule}]")
    return finding


def offset_index(folder: Path, entries: list[OffsetIndexEntry], tail: bytes = b"", *options: str) -> Outcome:
    """Dump an offset index of these entries beside the segment."""
    path = write_segment(folder, OFFSET_INDEX.encode(entries) + tail)
    return dump_jsonl(*options, path.with_suffix(".index"))


def time_index(folder: Path, entries: list[TimeIndexEntry], tail: bytes = b"", *options: str) -> Outcome:
    """Dump a time index of these entries beside the segment."""
    path = write_segment(folder, None, TIME_INDEX.encode(entries) + tail)
    return dump_jsonl(*options, path.with_suffix(".timeindex"))


@pytest.mark.parametrize("padding", [0, 1, 1000])
def test_indexes_that_hold(padding: int, tmp_path: Path) -> None:
    """Indexes that agree with their segment have no finding, with and without zeros after their entries."""
    offsets = offset_index(tmp_path, OFFSET_ENTRIES, bytes(8 * padding))
    times = time_index(tmp_path, TIME_ENTRIES, bytes(12 * padding))

    assert (offsets.exit_code, times.exit_code) == (0, 0)
    assert (offsets.messages, times.messages) == ("", "")
    assert [(line["offset"], line["position"]) for line in offsets.of_kind("offset_index_entry")] == OFFSET_ENTRIES
    assert [(line["timestamp"], line["offset"]) for line in times.of_kind("time_index_entry")] == TIME_ENTRIES


@pytest.mark.parametrize("changed", [0, 1, 2])
@pytest.mark.parametrize("field", ["relative_offset", "position"])
@pytest.mark.parametrize("step", [-1, 1])
def test_an_offset_index_that_is_one_off(changed: int, field: str, step: int, tmp_path: Path) -> None:
    """An entry that is one off, in its offset or its position, is damage at that entry; all entries are listed."""
    entries = list(OFFSET_ENTRIES)
    entries[changed] = entries[changed]._replace(**{field: getattr(entries[changed], field) + step})

    outcome = offset_index(tmp_path, entries)

    finding = assert_finding(outcome, "index-entry", 8 * changed)
    assert finding["offset"] == entries[changed].relative_offset
    assert len(outcome.of_kind("offset_index_entry")) == 3


def test_an_offset_index_past_the_end(tmp_path: Path) -> None:
    """An entry for a position after the segment's end is damage."""
    beyond = OffsetIndexEntry(30, 2**31 - 1)

    assert "no batch" in assert_finding(offset_index(tmp_path, [*OFFSET_ENTRIES, beyond]), "index-entry", 24)["reason"]


def test_an_offset_index_out_of_order(tmp_path: Path) -> None:
    """An entry that does not follow the one before it is damage, at its position."""
    assert_finding(offset_index(tmp_path, [OFFSET_ENTRIES[1], OFFSET_ENTRIES[0]]), "index-order", 8)


def test_negative_numbers_in_an_offset_index(tmp_path: Path) -> None:
    """A negative offset or position breaks the order, and does not stop the run."""
    outcome = offset_index(tmp_path, [OffsetIndexEntry(-5, -7)])

    assert outcome.exit_code == 2
    assert {finding["rule"] for finding in outcome.of_kind("finding")} == {"index-order", "index-entry"}


@pytest.mark.parametrize("size", [1, 7])
def test_part_of_an_entry(size: int, tmp_path: Path) -> None:
    """Bytes after the last whole entry are damage; the whole ones are listed and checked."""
    assert_finding(offset_index(tmp_path / "a", OFFSET_ENTRIES, b"\1" * size), "index-size", 24)
    assert_finding(time_index(tmp_path / "b", TIME_ENTRIES, b"\1" * size), "index-size", 36)


@pytest.mark.parametrize("changed", [0, 1, 2])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_time_index_with_another_timestamp(changed: int, step: int, tmp_path: Path) -> None:
    """An entry whose timestamp is not its batch's largest is damage at that entry."""
    entries = list(TIME_ENTRIES)
    entries[changed] = entries[changed]._replace(timestamp=entries[changed].timestamp + step)

    assert_finding(time_index(tmp_path, entries), "index-timestamp", 12 * changed)


@pytest.mark.parametrize("changed", [0, 1, 2])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_time_index_with_another_offset(changed: int, step: int, tmp_path: Path) -> None:
    """An entry that names no batch's last offset is damage at that entry."""
    entries = list(TIME_ENTRIES)
    entries[changed] = entries[changed]._replace(relative_offset=entries[changed].relative_offset + step)

    assert_finding(time_index(tmp_path, entries), "index-entry", 12 * changed)


def test_a_time_index_out_of_order(tmp_path: Path) -> None:
    """Timestamps that do not grow, and offsets that go back, are damage."""
    outcome = time_index(tmp_path, [TIME_ENTRIES[1], TIME_ENTRIES[0]])

    assert outcome.exit_code == 2
    assert "index-order" in {finding["rule"] for finding in outcome.of_kind("finding")}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_without_its_segment(suffix: str, tmp_path: Path) -> None:
    """An index without a log beside it is listed, and suspicious; nothing is made in its directory."""
    data = OFFSET_INDEX.encode(OFFSET_ENTRIES) if suffix == ".index" else TIME_INDEX.encode(TIME_ENTRIES)
    path = tmp_path / f"00000000000000000000{suffix}"
    path.write_bytes(data)

    outcome = dump_jsonl(path)

    assert_finding(outcome, "index-orphan", None, exit_code=3)
    assert len(outcome.objects) == 2 + 3
    assert list(tmp_path.iterdir()) == [path]


def test_indexes_of_deleted_segments() -> None:
    """The indexes of a segment that is being deleted are checked against that segment."""
    folder = GOLDEN / "wire/data/n1/__cluster_metadata-0"
    deleted = sorted(folder.glob("*.deleted"))
    assert len(deleted) == 3

    outcome = dump_jsonl(*deleted)

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert outcome.of_kind("record")


def test_a_transaction_index(tmp_path: Path) -> None:
    """Entries are listed; disorder and part of an entry are damage, zeros at the end suspicious."""
    entries = [AbortedTransaction(0, 7, 10, 20, 5), AbortedTransaction(0, 8, 25, 30, 22)]
    path = tmp_path / "00000000000000000000.txnindex"

    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    good = dump_jsonl(path)
    path.write_bytes(TRANSACTION_INDEX.encode(entries[::-1]))
    assert_finding(dump_jsonl(path), "index-order", 34)
    path.write_bytes(TRANSACTION_INDEX.encode(entries) + b"\1" * 5)
    assert_finding(dump_jsonl(path), "index-size", 68)
    path.write_bytes(TRANSACTION_INDEX.encode(entries) + bytes(68))
    assert_finding(dump_jsonl(path), "tail-zero", 68, exit_code=3)
    path.write_bytes(TRANSACTION_INDEX.encode([entries[0]._replace(version=1)]))
    assert_finding(dump_jsonl(path), "file-format", 0)

    assert good.exit_code == 0
    assert [line["producer_id"] for line in good.of_kind("aborted_transaction")] == [7, 8]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_verify_index_only(suffix: str, tmp_path: Path) -> None:
    """--verify-index-only checks the same, and prints no entries."""
    log = write_segment(tmp_path, OFFSET_INDEX.encode(OFFSET_ENTRIES[:1] * 2), TIME_INDEX.encode(TIME_ENTRIES[:1] * 2))

    whole = dump_jsonl(log.with_suffix(suffix))
    checked = dump_jsonl("--verify-index-only", log.with_suffix(suffix))

    assert checked.of_kind("finding") == whole.of_kind("finding") != []
    assert [line["kind"] for line in checked.objects if not line["kind"].endswith("entry")] == [
        line["kind"] for line in checked.objects
    ]
    assert checked.exit_code == whole.exit_code == 2


INSANE = {
    ".index": OFFSET_INDEX.encode([OffsetIndexEntry(1, 1), OffsetIndexEntry(-1, 2)]),
    ".timeindex": TIME_INDEX.encode([TimeIndexEntry(5, 1), TimeIndexEntry(4, 2)]),
}
"""Indexes whose last entry lies before the base offset, or before the first."""


@pytest.mark.parametrize("suffix", INSANE)
def test_index_sanity_check(suffix: str, tmp_path: Path) -> None:
    """--index-sanity-check looks at the ends of the index alone, as a broker does: its segment need not fit."""
    index = write_segment(
        tmp_path, OFFSET_INDEX.encode([OffsetIndexEntry(1, 1)]), TIME_INDEX.encode([TimeIndexEntry(1, 1)])
    ).with_suffix(suffix)

    passed = dump("--index-sanity-check", index)
    index.write_bytes(INSANE[suffix])
    failed = dump("--index-sanity-check", index)

    assert (passed.text, passed.exit_code) == (f"Dumping {index}\n{index} passed sanity check.\n", 0)
    assert (failed.text, failed.exit_code) == (f"Dumping {index}\n", 3)
    assert failed.messages.endswith("[index-sanity]\n")


@pytest.mark.parametrize("dialect", ["3.9", "4.2", "4.3"])
def test_part_of_an_entry_and_the_sanity_check(dialect: str, tmp_path: Path) -> None:
    """Part of an entry does not pass, but in an offset index since 4.3."""
    log = write_segment(tmp_path, OFFSET_INDEX.encode(OFFSET_ENTRIES) + b"\1", TIME_INDEX.encode(TIME_ENTRIES) + b"\1")

    offsets, times = (
        dump("--dialect", dialect, "--index-sanity-check", log.with_suffix(suffix))
        for suffix in (".index", ".timeindex")
    )

    assert (offsets.exit_code, times.exit_code) == (0 if dialect == "4.3" else 3, 3)
    assert ("passed" in offsets.text, "passed" in times.text) == (dialect == "4.3", False)


@pytest.mark.parametrize("middle", [0, 5])
def test_the_list_ends_at_a_later_entry_for_the_base_offset(middle: int, tmp_path: Path) -> None:
    """As in Kafka, the list ends at an entry for the base offset that is not the first; its place is a finding."""
    offsets = offset_index(tmp_path, [OFFSET_ENTRIES[0], OffsetIndexEntry(0, middle), OFFSET_ENTRIES[1]])
    times = time_index(tmp_path, [TIME_ENTRIES[0], TimeIndexEntry(middle, 0), TIME_ENTRIES[1]])

    assert [line["offset"] for line in offsets.of_kind("offset_index_entry")] == [OFFSET_ENTRIES[0].relative_offset]
    assert [line["offset"] for line in times.of_kind("time_index_entry")] == [TIME_ENTRIES[0].relative_offset]
    assert [(finding["rule"], finding["position"]) for finding in offsets.of_kind("finding")] == [("index-order", 8)]
    assert [(finding["rule"], finding["position"]) for finding in times.of_kind("finding")] == [("index-order", 12)]


def test_versions_in_a_transaction_index(tmp_path: Path) -> None:
    """Kafka's words show a negative version, and 0 for any other; entries of zeros are listed like all."""
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(b"".join(version.to_bytes(2, "big") + bytes(32) for version in (1, 0xFFFE, 0)))

    assert [line.split(" producerId")[0] for line in dump(path).text.splitlines()[1:]] == [
        "version: 0",
        "version: -2",
        "version: 0",
    ]


def test_an_empty_index(tmp_path: Path) -> None:
    """An offset index without a byte is reported as empty in Kafka's words; it is not a finding."""
    log = write_segment(tmp_path, b"", b"")

    assert dump(log.with_suffix(".index")).text.endswith(".index is empty.\n")
    assert dump_jsonl(log.with_suffix(".index"), log.with_suffix(".timeindex")).exit_code == 0


def test_a_vast_index_is_refused(tmp_path: Path) -> None:
    """An index above 64 MiB is an error on one line: nothing of that size is an index."""
    path = tmp_path / "00000000000000000000.index"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 8)

    outcome = dump(path)

    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1


BROKEN = {
    "leader-epoch-checkpoint": b"0\n2\n0 0\n",
    "recovery-point-offset-checkpoint": b"0\n1\ntopic x 5\n",
    "log-start-offset-checkpoint": b"not a number\n",
    "replication-offset-checkpoint": b"1\n0\n",
    "quorum-state": b'{"leaderId":1',
    "meta.properties": b"version=7\n",
    "partition.metadata": b"version: 0\ntopic_id: short",
}


@pytest.mark.parametrize("output_format", [each.name for each in FORMATS.values() if not each.prints_kafkas_files_only])
@pytest.mark.parametrize("name", BROKEN)
def test_a_small_file_that_is_broken(name: str, output_format: str, tmp_path: Path) -> None:
    """A small file that does not read is damage on one line with its place; the next file is dumped."""
    (tmp_path / name).write_bytes(BROKEN[name])
    log = write_log(tmp_path, batch(0, (b"elsewhere",)))

    outcome = dump("--format", output_format, tmp_path / name, log)

    (complaint,) = outcome.complaints
    assert complaint.startswith(f"raftlog: {tmp_path / name}, position ")
    assert complaint.endswith("[file-format]")
    assert outcome.exit_code == 2
    assert "elsewhere" in outcome.text


def test_a_producer_snapshot_that_is_broken(tmp_path: Path) -> None:
    """A producer snapshot whose CRC does not hold is damage, by the rule for it."""
    whole = next((GOLDEN / "data-topics/data/n1/txn-0").glob("*.snapshot")).read_bytes()
    path = tmp_path / "00000000000000000035.snapshot"
    path.write_bytes(whole[:-1] + bytes((whole[-1] ^ 1,)))

    assert_finding(
        dump_jsonl(path), "file-crc", None if dump_jsonl(path).of_kind("finding")[0]["position"] is None else 2
    )


@pytest.mark.parametrize("name", [*BROKEN, "notes.txt", "frames"])
def test_the_format_kafka_ignores_other_files(name: str, tmp_path: Path) -> None:
    """Files that kafka-dump-log ignores are ignored in its format, with a line on standard error."""
    (tmp_path / name).write_bytes(b"anything")

    outcome = dump(tmp_path / name)

    assert (outcome.exit_code, outcome.text) == (0, f"Dumping {tmp_path / name}\n")
    assert outcome.messages == f"raftlog: {tmp_path / name}: ignored, not a file that dump-log prints\n"


def test_small_files_are_reported() -> None:
    """The small files of a partition are objects with their contents."""
    lines = {line["kind"]: line for line in dump_jsonl("--all", NODE).objects}

    assert lines["quorum_state"]["data_version"] == 1
    assert lines["leader_epoch_checkpoint"]["entries"][0] == {"epoch": 2, "start_offset": 0}
    assert lines["partition_metadata"]["topic_id"] == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(entries=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 600)), max_size=8), padding=st.integers(0, 3))
@settings(deadline=None, max_examples=30)
def test_an_entry_is_damage_unless_a_batch_agrees(
    entries: list[tuple[int, int]], padding: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of any entries, exactly those are index-entry findings that name no batch's start and last offset."""
    made = [OffsetIndexEntry(*entry) for entry in entries]
    true = {(3 * index + 2, sum(map(len, BATCHES[:index]))) for index in range(len(BATCHES))}

    outcome = offset_index(tmp_path_factory.mktemp("log"), made, bytes(8 * padding))

    findings = [finding for finding in outcome.of_kind("finding") if finding["rule"] == "index-entry"]
    assert [finding["position"] // 8 for finding in findings] == [
        index for index, entry in enumerate(made) if entry not in true
    ]


def test_golden_indexes_without_their_logs_are_orphans(tmp_path: Path) -> None:
    """Kafka's own indexes are listed without their logs, entry by entry as with them."""
    for path in NODE.glob("*index"):
        shutil.copy(path, tmp_path)
    (tmp_path / LOG_NAME).unlink(missing_ok=True)

    def entries(folder: Path) -> list[dict[str, Any]]:
        lines = dump_jsonl(*sorted(folder.glob("*index"))).objects
        return [line | {"file": ""} for line in lines if line["kind"].endswith("_entry")]

    assert entries(tmp_path) == entries(NODE) != []
