# SPDX-License-Identifier: Apache-2.0
"""A selection shows the records that a look through all of them would find: with indexes, without, with false ones."""

import functools
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raftlog.records.files.index_entries import OFFSET_INDEX, TIME_INDEX, OffsetIndexEntry, TimeIndexEntry
from raftlog.storage.reading.file_source import FileSource
from tests.golden_files import GOLDEN
from tests.strategies import legacy_message
from tests.tools.console import dump, dump_jsonl
from tests.tools.made_logs import TIMESTAMP, batch, write_log

PARTITIONS = {
    "one segment": GOLDEN / "data-topics/data/n1/c-none-0",
    "two segments and transactions": GOLDEN / "data-topics/data/n1/txn-0",
    "metadata": GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0",
    "log start above zero": GOLDEN / "wire/data/n1/__cluster_metadata-0",
    "compressed by the broker": GOLDEN / "data-topics/data/n1/broker-zstd-0",
    "LogAppendTime": GOLDEN / "data-topics/data/n1/append-time-0",
    "offsets": GOLDEN / "data-topics/data/n1/__consumer_offsets-0",
}
RECORD_WITHOUT_FILE = ("kind", "file")
Line = dict[str, Any]


def plain(lines: list[Line]) -> list[Line]:
    """Records without the file that they were read from."""
    return [{name: value for name, value in line.items() if name not in RECORD_WITHOUT_FILE} for line in lines]


@functools.cache
def all_records(partition: str) -> list[Line]:
    """All records of a partition's segments, snapshots left out."""
    return dump_jsonl(*sorted(PARTITIONS[partition].glob("*.log"))).of_kind("record")


def selected(path: Path, options: list[str]) -> list[Line]:
    """The output of a selection for a partition's segments; also checks that there is no finding."""
    outcome = dump_jsonl(*options, path / "*.log")
    assert (outcome.exit_code, outcome.messages) == (0, "")
    return plain(outcome.of_kind("record"))


@st.composite
def selections(draw: st.DrawFn, records: list[Line]) -> tuple[list[str], Callable[[Line], bool]]:
    """Options, and the condition that they state."""
    offsets = st.sampled_from([record["offset"] for record in records])
    near_offsets = st.builds(lambda offset, step: max(0, offset + step), offsets, st.integers(-2, 2))
    times = st.sampled_from([record["timestamp"] for record in records])
    near_times = st.builds(lambda time, step: time + step, times, st.integers(-2, 2))
    epochs = st.sampled_from([record["partition_leader_epoch"] for record in records])
    types = st.sampled_from([record.get("type", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD") for record in records])
    keys = st.sampled_from([record.get("key") or "no key" for record in records])
    conditions: dict[str, tuple[st.SearchStrategy[Any], Callable[[Line, Any], bool]]] = {
        "--from": (near_offsets, lambda record, value: record["offset"] >= value),
        "--to": (near_offsets, lambda record, value: record["offset"] < value),
        "--since": (near_times, lambda record, value: record["timestamp"] >= value),
        "--until": (near_times, lambda record, value: record["timestamp"] < value),
        "--epoch": (epochs, lambda record, value: record["partition_leader_epoch"] == value),
        "--type": (types, lambda record, value: record.get("type") == value),
        "--key": (keys, lambda record, value: record.get("key") == value),
    }
    chosen = {
        name: draw(conditions[name][0]) for name in draw(st.sets(st.sampled_from(sorted(conditions)), max_size=3))
    }
    only_control = draw(st.integers(0, 4)) == 0
    options = [word for name, value in chosen.items() for word in (name, str(value))] + ["--control"] * only_control

    def holds(record: Line) -> bool:
        return all(conditions[name][1](record, value) for name, value in chosen.items()) and (
            record["is_control"] or not only_control
        )

    return options, holds


INDEX_STATES = ("there", "missing", "false")


def with_indexes(path: Path, parent: Path, state: str, data: st.DataObject) -> Path:
    """Copy a partition's segments, with their indexes as they are, without them, or with made-up ones."""
    folder = parent / path.name  # Its topic decides on the decoder.
    folder.mkdir()
    for file in path.iterdir():
        if file.suffix == ".log" or (state == "there" and file.suffix in {".index", ".timeindex"}):
            shutil.copy(file, folder)
    for log in folder.glob("*.log") if state == "false" else ():
        size = log.stat().st_size
        offset_entries = st.builds(OffsetIndexEntry, st.integers(-1, 300), st.integers(-1, size))
        timestamps = st.sampled_from([record["timestamp"] for record in dump_jsonl(log).of_kind("record")] or [0])
        time_entries = st.builds(TimeIndexEntry, timestamps, st.integers(0, 300))
        is_sorted = data.draw(st.booleans())
        order: Callable[[Any], Any] = sorted if is_sorted else list
        log.with_suffix(".index").write_bytes(
            OFFSET_INDEX.encode(order(data.draw(st.lists(offset_entries, max_size=20)))) + b"\0" * data.draw(SIZES)
        )
        log.with_suffix(".timeindex").write_bytes(
            TIME_INDEX.encode(order(data.draw(st.lists(time_entries, max_size=3)))) + b"\0" * data.draw(SIZES)
        )
    return folder


SIZES = st.sampled_from([0, 0, 1, 24, 1000])


@pytest.mark.parametrize("state", INDEX_STATES)
@given(partition=st.sampled_from(sorted(PARTITIONS)), data=st.data())
@settings(deadline=None, max_examples=30)
def test_any_selection_is_what_a_look_through_finds(
    state: str, partition: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any conditions on offset, time, epoch, type, key and control give the records that hold them, in order."""
    options, holds = data.draw(selections(all_records(partition)))
    folder = with_indexes(PARTITIONS[partition], tmp_path_factory.mktemp("log"), state, data)

    assert selected(folder, options) == plain([record for record in all_records(partition) if holds(record)])


@pytest.mark.parametrize("state", INDEX_STATES)
@given(partition=st.sampled_from(sorted(PARTITIONS)), last=st.integers(0, 300), data=st.data())
@settings(deadline=None, max_examples=10)
def test_the_last_offsets(
    state: str, partition: str, last: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """--last N gives the records of the last N offsets before the log's end, over its segments, by any indexes."""
    folder = with_indexes(PARTITIONS[partition], tmp_path_factory.mktemp("log"), state, data)
    end = max(line["last_offset"] for line in dump_jsonl("--shallow", folder).of_kind("batch")) + 1

    expected = [record for record in all_records(partition) if record["offset"] >= end - last]

    assert selected(folder, ["--last", str(last)]) == plain(expected)


@pytest.mark.parametrize("damaged", [1, 2])
def test_the_last_offsets_before_damage(damaged: int, tmp_path: Path) -> None:
    """If the batches that the index names last are damaged, the log ends before them."""
    data = b"".join(batch(offset) for offset in range(6))
    size = len(data) // 6
    broken = bytearray(data)
    for number in range(6 - damaged, 6):
        broken[(number + 1) * size - 1] ^= 1
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(broken)
    log.with_suffix(".index").write_bytes(OFFSET_INDEX.encode([OffsetIndexEntry(n, n * size) for n in range(1, 6)]))
    outcome = dump_jsonl("--last", "2", log)
    assert [line["offset"] for line in outcome.of_kind("record")] == [4 - damaged, 5 - damaged]


@given(limit=st.integers(0, 30), partition=st.sampled_from(sorted(PARTITIONS)), shallow=st.booleans())
@settings(deadline=None, max_examples=20)
def test_a_limit_is_a_prefix(limit: int, partition: str, shallow: bool) -> None:
    """--limit N gives the first N records over all files, or, without records, the first N batches."""
    paths = sorted(PARTITIONS[partition].glob("*.log"))
    kind, options = ("batch", ["--shallow"]) if shallow else ("record", [])

    limited = dump_jsonl("--limit", str(limit), *options, *paths).of_kind(kind)

    assert limited == dump_jsonl(*options, *paths).of_kind(kind)[:limit]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_since_and_until_take_iso_times(partition: str) -> None:
    """A time may be said as ISO 8601, which without a zone is UTC, or as milliseconds."""
    middle = all_records(partition)[len(all_records(partition)) // 2]["timestamp"]
    text = datetime.fromtimestamp(middle / 1000, UTC).isoformat(timespec="milliseconds")

    by_number = selected(PARTITIONS[partition], ["--since", str(middle)])

    assert by_number
    assert selected(PARTITIONS[partition], ["--since", text]) == by_number
    assert selected(PARTITIONS[partition], ["--since", text.removesuffix("+00:00")]) == by_number
    assert selected(PARTITIONS[partition], ["--since", text.replace("+00:00", "Z")]) == by_number


@pytest.mark.parametrize("name", ["KRAFT_VOTERS", "kraft_voters", "KRaftVoters", "KRaft_Voters"])
def test_a_type_in_any_spelling(name: str) -> None:
    """A type may be named as in JSON lines, in small letters, or as Kafka's schemas name it."""
    records = selected(PARTITIONS["metadata"], ["--type", name])

    assert records
    assert {record["type"] for record in records} == {"KRAFT_VOTERS"}


def test_types_add_up() -> None:
    """Of several types, records of each are shown."""
    types = {"LEADER_CHANGE", "TOPIC_RECORD"}
    records = selected(PARTITIONS["metadata"], ["--type", "LeaderChange", "--type", "TopicRecord"])

    assert {record["type"] for record in records} == types


def test_a_type_in_kafkas_words() -> None:
    """The format kafka, too, finds records by the type that fits the topic, and shows the batches that hold them."""
    outcome = dump("--deep-iteration", "--type", "TOPIC_RECORD", PARTITIONS["metadata"] / "*.log")

    expected = [record["offset"] for record in all_records("metadata") if record.get("type") == "TOPIC_RECORD"]
    lines = [line for line in outcome.text.splitlines() if line.startswith("| offset")]
    assert [int(line.split()[2]) for line in lines] == expected
    assert "baseOffset" in outcome.text


def test_a_batch_is_shown_with_its_records() -> None:
    """A selection by offset shows the batches that hold a wanted record, and no other."""
    lines = dump_jsonl("--from", "5", "--to", "6", PARTITIONS["metadata"]).objects
    shown = [line for line in lines if line["kind"] in {"batch", "record"}]

    assert [line["kind"] for line in shown] == ["batch", "record"]
    assert shown[0]["base_offset"] <= 5 <= shown[0]["last_offset"]


ONE_BATCH = batch(0, (b"0",), timestamp=0)
TWO_ENTRIES = [OffsetIndexEntry(0, 0), OffsetIndexEntry(1, len(ONE_BATCH))]


@st.composite
def times_and_indexes(draw: st.DrawFn) -> tuple[list[int], list[OffsetIndexEntry], list[TimeIndexEntry]]:
    """Times of one-record batches that do not go back, a true offset index, and a time index of anything."""
    times = sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=20)))
    size = len(ONE_BATCH)
    indexed = sorted(draw(st.sets(st.integers(0, len(times) - 1))))
    claims = st.builds(TimeIndexEntry, st.integers(0, 20), st.integers(0, len(times)))
    return times, [OffsetIndexEntry(offset, offset * size) for offset in indexed], draw(st.lists(claims, max_size=6))


@given(
    log=times_and_indexes(),
    option=st.sampled_from(["--from", "--since", "--to", "--until", "--last"]),
    value=st.integers(0, 21),
)
@example(log=([5, 5], TWO_ENTRIES, [TimeIndexEntry(0, 1)]), option="--since", value=3)
@example(log=([5, 5], TWO_ENTRIES, [TimeIndexEntry(5, 1)]), option="--since", value=5)
@settings(deadline=None, max_examples=50)
def test_any_index_of_times(
    log: tuple[list[int], list[OffsetIndexEntry], list[TimeIndexEntry]],
    option: str,
    value: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With a dense offset index and any time index, true or not, a range is what the times and offsets say."""
    times, offset_entries, time_entries = log
    batches = [batch(offset, (b"0",), timestamp=time) for offset, time in enumerate(times)]
    path = write_log(tmp_path_factory.mktemp("log"), *batches)
    path.with_suffix(".index").write_bytes(OFFSET_INDEX.encode(offset_entries))
    path.with_suffix(".timeindex").write_bytes(TIME_INDEX.encode(time_entries))

    offsets = [line["offset"] for line in dump_jsonl(option, str(value), path).of_kind("record")]

    holds: dict[str, Callable[[int, int], bool]] = {
        "--from": lambda offset, time: offset >= value,
        "--to": lambda offset, time: offset < value,
        "--since": lambda offset, time: time >= value,
        "--until": lambda offset, time: time < value,
        "--last": lambda offset, time: offset >= len(times) - value,
    }
    assert offsets == [offset for offset, time in enumerate(times) if holds[option](offset, time)]


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many bytes were read of files of each suffix."""
    counts: dict[str, int] = {}
    read_at = FileSource.read_at

    def counting(source: FileSource, position: int, size: int) -> memoryview:
        data = read_at(source, position, size)
        suffix = os.path.splitext(source.path)[1]
        counts[suffix] = counts.get(suffix, 0) + len(data)
        return data

    monkeypatch.setattr(FileSource, "read_at", counting)
    return counts


def indexed_log(folder: Path, count: int = 4000) -> Path:
    """Write a log of many batches, 1000 bytes or so each, with an index entry for every tenth."""
    batches = [batch(offset, (b"x" * 900,), timestamp=TIMESTAMP + 10 * offset) for offset in range(count)]
    offset_entries, time_entries = [], []
    position = 0
    for offset, each in enumerate(batches):
        if offset % 10 == 9:
            offset_entries.append(OffsetIndexEntry(offset, position))
            time_entries.append(TimeIndexEntry(TIMESTAMP + 10 * offset, offset))
        position += len(each)
    path = write_log(folder, *batches)
    path.with_suffix(".index").write_bytes(OFFSET_INDEX.encode(offset_entries) + bytes(4096))
    path.with_suffix(".timeindex").write_bytes(TIME_INDEX.encode(time_entries) + bytes(4092))
    return path


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "3990"),
        ("--since", str(TIMESTAMP + 39900)),
        ("--last", "10"),
        ("--last", "5", "--since", str(TIMESTAMP)),
        ("--from", "3000", "--to", "3001"),
    ],
)
def test_an_index_spares_the_reading(options: tuple[str, ...], tmp_path: Path, bytes_read: dict[str, int]) -> None:
    """By its indexes, a selection near the end of a log of 4 MB reads the end alone, and little of the indexes."""
    path = indexed_log(tmp_path)

    records = dump_jsonl(*options, path).of_kind("record")

    assert len(records) in {1, 5, 10}
    window = 1024 * 1024  # One read at most, where the end of the file is not near.
    assert bytes_read[".log"] <= (window if "--to" in options else 100_000)
    assert bytes_read[".index"] + bytes_read.get(".timeindex", 0) < 1000


def test_segments_are_left_out_by_name(bytes_read: dict[str, int]) -> None:
    """Of a directory, segments that end before the first wanted offset or start after the last are not opened."""
    path = PARTITIONS["metadata"]
    first, second = sorted(path.glob("*.log"))
    start = int(second.stem)

    def read(*options: str) -> set[str]:
        return {line["file"] for line in dump_jsonl(*options, path).objects}

    assert read("--from", str(start)) == {str(second)}
    assert read("--from", str(start - 1)) == {str(first), str(second)}
    assert read("--to", str(start)) == {str(first)}
    assert read("--to", str(start + 1)) == {str(first), str(second)}
    assert read("--last", "3") == {str(second)}


def test_snapshots_have_numbers_of_their_own() -> None:
    """Asked for offsets, a directory's snapshots are left out; one that is named is taken by its own numbers."""
    path = PARTITIONS["metadata"]
    snapshot = sorted(path.glob("*.checkpoint"))[-1]
    count = len(dump_jsonl(snapshot).of_kind("record"))

    for options in (["--from", "0"], ["--last", "200"], ["--to", "1000"]):
        assert not any(line["file"].endswith(".checkpoint") for line in dump_jsonl(*options, path).objects)
    assert [line["offset"] for line in dump_jsonl("--last", "2", snapshot).of_kind("record")] == [count - 2, count - 1]


def test_the_end_of_a_damaged_log(tmp_path: Path) -> None:
    """The last offsets count from the last batch whose CRC holds, even after damage, and an empty segment's name."""
    write_log(tmp_path / "t-0", batch(0), batch(1), b"\xff" * 100, batch(9), batch(10))
    write_log(tmp_path / "t-0", name="00000000000000000011.log")

    lines = dump_jsonl("--last", "2", tmp_path / "t-0").of_kind("record")

    assert [line["offset"] for line in lines] == [9, 10]


def test_a_segment_with_another_name(tmp_path: Path) -> None:
    """A log whose name says no offset is never left out of its directory."""
    write_log(tmp_path / "t-0", batch(5), name="copy.log")

    assert len(dump_jsonl("--from", "5", tmp_path / "t-0").of_kind("record")) == 1
    assert len(dump_jsonl("--last", "1", tmp_path / "t-0").of_kind("record")) == 1


def test_old_messages_are_selected_too(tmp_path: Path) -> None:
    """Messages of magic 1 are found by offset, time and key."""
    messages = [legacy_message(1, offset, b"k%d" % offset, b"v", timestamp=1000 + offset) for offset in range(10)]
    path = write_log(tmp_path, *messages)

    assert [line["offset"] for line in dump_jsonl("--from", "3", "--to", "5", path).of_kind("record")] == [3, 4]
    assert [line["offset"] for line in dump_jsonl("--since", "1008", path).of_kind("record")] == [8, 9]
    assert [line["offset"] for line in dump_jsonl("--last", "1", path).of_kind("record")] == [9]
    assert [line["offset"] for line in dump_jsonl("--key", "k7", path).of_kind("record")] == [7]
    assert dump_jsonl("--control", path).of_kind("record") == []


def test_an_index_that_points_into_a_record(tmp_path: Path) -> None:
    """A batch that is stored in a record is not taken for one of the log, though an index points at it."""
    inner = batch(0, (b"not of this log",))
    outer = batch(0, (b"." * 100 + inner, b"second"))
    path = write_log(tmp_path, outer, batch(2))
    entries = [OffsetIndexEntry(1, outer.index(inner))]
    path.with_suffix(".index").write_bytes(OFFSET_INDEX.encode(entries))

    lines = dump_jsonl("--from", "1", path).of_kind("record")

    assert [line["value"] for line in lines] == ["second", "v"]
