# SPDX-License-Identifier: Apache-2.0
"""``count_logs`` counts what plain loops count, on any log and around any damage."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.tools.auditing.evidence import Place
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.rows.arrays import codec_label
from raftlog.tools.stats.covering import SnapshotStats
from raftlog.tools.stats.keys import KeyPrefix
from raftlog.tools.stats.log_stats import HOUR_MS, LogStats, StatsRequest, count_logs
from tests.golden_files import GOLDEN
from tests.tools.made_logs import TIMESTAMP, batch, control_batch, flip, write_log
from tests.tools.stats.naive_stats import Naive, naive_stats

LOG = "__cluster_metadata-0"
CODECS = list(CompressionType)
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=40)), max_size=5),
        st.sampled_from(CODECS),
        st.integers(-1, 2),
        st.sampled_from([-1, 0, TIMESTAMP, TIMESTAMP + HOUR_MS - 1, TIMESTAMP + HOUR_MS]),
    ),
    min_size=1,
    max_size=8,
)


def made(drawn: list[Any]) -> list[bytes]:
    """Batches of the drawn records; those without records become control batches."""
    offset, found = 0, []
    for records, codec, producer_id, timestamp in drawn:
        options: dict[str, int] = {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0}
        if producer_id >= 0:
            options["base_sequence"] = 0
        if not records:
            found.append(control_batch(offset, b"\0\0\0" + bytes([max(producer_id, 0)]), b"\0\0\0\0\0\1"))
        else:
            found.append(_batch(offset, records, codec, timestamp, options))
        offset += max(1, len(records))
    return found


def _batch(
    offset: int, records: list[tuple[bytes | None, bytes | None]], codec: CompressionType, timestamp: int, more: Any
) -> bytes:
    from raftlog.records.batches.builder import RecordBatchBuilder

    builder = RecordBatchBuilder(offset, partition_leader_epoch=1, compression_type=codec, **more)
    for key, value in records:
        builder.append(timestamp, key, value)
    return builder.build()


def stats_of(path: Path, request: StatsRequest | None = None) -> tuple[LogStats, list[Finding]]:
    """The counts of some paths, and what was reported."""
    findings: list[Finding] = []
    return count_logs([str(path)], request or StatsRequest(prefix=KeyPrefix(2)), findings.append), findings


def check_same(stats: LogStats, naive: Naive) -> None:
    """Compare all counts but those of partitions and snapshots."""
    assert stats.totals == naive.totals
    for name, groups in naive.groups.items():
        assert {_renamed(name, key): list(sums) for key, sums in stats.groups[name].rows()} == groups
        assert stats.groups[name].is_exact
    summary, ordered = stats.batch_sizes.summary(), sorted(naive.sizes)
    assert (summary.least, summary.greatest) == (ordered[0], ordered[-1])
    assert summary.median == ordered[(len(ordered) - 1) // 2]


def _renamed(name: str, key: Any) -> Any:
    if name == "codec":
        return codec_label(key)
    if name in {"producer", "hour"}:
        return None if key < 0 else key * (HOUR_MS if name == "hour" else 1)
    return key


@settings(max_examples=40)
@given(BATCHES)
def test_counts_are_those_of_plain_loops(drawn: list[Any]) -> None:
    """For any batches of any codec, producers, times and control records."""
    batches = made(drawn)
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder) / "orders-0", *batches)
        stats, findings = stats_of(Path(folder) / "orders-0")
    naive = naive_stats("orders", batches, 2)
    assert not findings
    check_same(stats, naive)
    ((_, keys),) = stats.compaction
    assert (keys.records, keys.record_bytes, keys.key_count) == (naive.records, naive.record_bytes, len(naive.last))
    assert [keys.overwritten_records, keys.overwritten_bytes] == naive.overwritten


@settings(max_examples=30)
@given(BATCHES, st.data())
def test_damage_costs_its_batch_only(drawn: list[Any], data: st.DataObject) -> None:
    """With a flipped byte, all other batches are counted; the damaged one is reported, and its bytes are counted."""
    batches = made(drawn)
    index = data.draw(st.integers(0, len(batches) - 1))
    position = data.draw(st.integers(21, len(batches[index]) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "orders-0", *batches)
        flip(path, sum(map(len, batches[:index])) + position)
        stats, findings = stats_of(path.parent)
    rest = batches[:index] + batches[index + 1 :]
    assert stats.totals == naive_stats("orders", rest, 2).totals
    assert (stats.damaged_bytes, len(findings)) == (len(batches[index]), 1)
    assert (findings[0].rule, findings[0].position) == ("batch-crc", sum(map(len, batches[:index])))


def test_records_that_cannot_be_read_are_damage_too() -> None:
    """Of batches with a valid CRC, one that does not decompress, and others with a wrong count, are counted apart."""
    for name, rule in (("cut", "codec-stream"), ("count-low", "batch-trailing"), ("count-high", "batch-missing")):
        path = GOLDEN / f"damaged/data/codec-gzip-{name}"
        stats, findings = stats_of(path)
        (broken,) = _pieces(path)
        assert [(each.rule, each.position, each.offset) for each in findings] == [(rule, 0, broken.base_offset)]
        assert (stats.damaged_batches, stats.damaged_bytes) == (1, broken.size_bytes)
        assert stats.totals == [0, 0, 0, 0]


def _pieces(path: Path) -> list[Any]:
    files = sorted(path.rglob("*.log"))
    return [piece for file in files for piece in split(BufferSource(file.read_bytes()))]


@pytest.mark.parametrize("place", ["dynamic-quorum/data/n3/__cluster_metadata-0", "mirror/data/n1/tx.orders-0"])
def test_files_of_kafka_are_counted_alike(place: str) -> None:
    """Real metadata records and transactions, by the name of their types."""
    path = GOLDEN / place
    batches = [bytes(each.buffer) for each in _pieces(path) if isinstance(each, RecordBatch)]
    stats, findings = stats_of(path)
    check_same(stats, naive_stats(path.name.rpartition("-")[0], batches, 2))
    assert findings == []


@pytest.mark.parametrize(("suffix", "counted"), [(b"\0" * 100, "padding_bytes"), (b"\1" * 10, "damaged_bytes")])
def test_what_follows_the_batches_is_counted_apart(suffix: bytes, counted: str, tmp_path: Path) -> None:
    """Zeros, and a torn tail: each in its count, with a finding."""
    stats, findings = stats_of(write_log(tmp_path / "orders-0", batch(), suffix).parent)
    assert (stats.totals[0], getattr(stats, counted), len(findings)) == (1, len(suffix), 1)


@pytest.mark.parametrize(
    ("groupings", "compaction", "columns"),
    [
        ({"codec", "hour", "producer", "partition"}, False, ()),
        ({"codec"}, True, ("key", "value")),
        ({"type"}, False, ("key", "value")),
        ({"key"}, False, ("key", "value")),
    ],
    ids=["batches", "compaction", "type", "key"],
)
def test_only_what_is_asked_for_is_unpacked(
    groupings: set[str], compaction: bool, columns: tuple[str, ...], tmp_path: Path
) -> None:
    """Without types, keys and compaction, no key or value is unpacked; the totals are the same in each case."""
    request = StatsRequest(frozenset(groupings), compaction=compaction)
    assert request.columns == columns
    path = write_log(tmp_path / "orders-0", batch(), batch(1, (b"a", b"b"))).parent
    stats, _ = stats_of(path, request)
    assert set(stats.groups) == groupings
    assert stats.totals == stats_of(path)[0].totals
    assert bool(stats.compaction) == compaction


NODE_3 = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0"
"""Segments from 0 and 193, and snapshots up to 0, 81, 151 and 230; the newest ends with its log."""


def _copied(tmp_path: Path) -> Path:
    for path in NODE_3.iterdir():
        (tmp_path / LOG).mkdir(exist_ok=True)
        shutil.copyfile(path, tmp_path / LOG / path.name)
    return tmp_path / LOG


def _sizes(path: Path) -> tuple[dict[int, int], list[int]]:
    """The sizes of the snapshots by end, and the stored bytes of each segment."""
    found = {int(each.name[:20]): each.stat().st_size for each in path.glob("*.checkpoint")}
    return found, [each.stat().st_size for each in sorted(path.glob("*.log"))]


def test_a_snapshot_covers_whole_segments_before_the_last() -> None:
    """Node 3's newest ends with its log, and covers the first segment; node 1's ends inside of its only segment."""
    (found,) = stats_of(NODE_3)[0].snapshots
    snapshots, (first, last) = _sizes(NODE_3)
    assert found.newest == OffsetAndEpoch(230, 4)
    assert (found.size_bytes, found.older_bytes) == (snapshots[230], snapshots[81] + snapshots[151])
    assert (found.covered_bytes, found.later_bytes, found.unreadable) == (first, last, 0)

    path = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0"
    (found,) = stats_of(path)[0].snapshots
    assert (found.covered_bytes, found.later_bytes) == (0, sum(_sizes(path)[1]))


@pytest.mark.parametrize("damage", ["cut", "flip", "nowhere"])
def test_a_snapshot_that_cannot_be_read_covers_nothing(damage: str, tmp_path: Path) -> None:
    """Without its footer, with a flipped bit, or a symbolic link to nowhere: then the one before it counts."""
    path = _copied(tmp_path)
    newest = path / f"{230:020}-{4:010}.checkpoint"
    if damage == "cut":
        newest.write_bytes(newest.read_bytes()[:-75])
    elif damage == "flip":
        flip(newest, 70)
    else:
        newest.unlink()
        newest.symlink_to("missing")
    snapshots, sizes = _sizes(NODE_3)
    (found,) = stats_of(path)[0].snapshots
    assert found.newest == OffsetAndEpoch(151, 4)
    assert (found.older_bytes, found.unreadable) == (snapshots[81], 1)
    assert (found.covered_bytes, found.later_bytes) == (0, sum(sizes))


@pytest.mark.parametrize(("end", "is_covered"), [(192, False), (193, True), (194, True)])
def test_a_segment_is_covered_if_the_next_one_starts_at_the_end_or_before_it(end: int, is_covered: bool) -> None:
    """The last segment, which none follows, never is; and nothing is without a snapshot."""
    stats = SnapshotStats(Place("d", "t", 0), OffsetAndEpoch(end, 1))
    assert stats.covers(193) == is_covered
    assert not stats.covers(None)
    assert not SnapshotStats(Place("d", "t", 0)).covers(0)


def test_the_snapshot_of_formatting_covers_nothing(tmp_path: Path) -> None:
    """The one that ends at 0, also if it is the only one."""
    path = _copied(tmp_path)
    for end, epoch in ((81, 3), (151, 4), (230, 4)):
        (path / f"{end:020}-{epoch:010}.checkpoint").unlink()
    (found,) = stats_of(path)[0].snapshots
    assert (found.newest, found.size_bytes, found.older_bytes, found.covered_bytes) == (None, 0, 0, 0)


def test_keys_are_kept_for_one_partition_at_a_time(tmp_path: Path) -> None:
    """The counts of each stay; the tables of keys are gone."""
    for name in ("orders-0", "orders-1"):
        write_log(tmp_path / name, batch(key=b"a"), batch(1, key=b"b"), batch(2, key=b"a"))
    (tmp_path / "meta.properties").write_text("version=1\n")
    stats, _ = stats_of(tmp_path)
    assert [(keys.key_count, keys.overwritten_records, keys._last_sizes) for _, keys in stats.compaction] == [
        (2, 1, {})
    ] * 2


def test_replicas_count_apart(tmp_path: Path) -> None:
    """The same partition in two directories is two groups."""
    for node in ("n1", "n2"):
        write_log(tmp_path / node / "orders-0", batch())
        (tmp_path / node / "meta.properties").write_text("version=1\n")
    stats, _ = stats_of(tmp_path)
    assert [Path(place.log_directory).name for place, _ in stats.groups["partition"].rows()] == ["n1", "n2"]
    assert len(stats.compaction) == 2
