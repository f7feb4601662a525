# SPDX-License-Identifier: Apache-2.0
"""``count_logs`` counts what plain loops count, on any log and around any damage."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.spark.rows.arrays import codec_label
from raftlog.tools.stats.keys import KeyPrefix
from raftlog.tools.stats.log_stats import HOUR_MS, LogStats, StatsRequest, count_logs
from tests.golden_files import GOLDEN
from tests.tools.made_logs import TIMESTAMP, batch, control_batch, flip, write_log
from tests.tools.stats.naive_stats import Naive, naive_stats

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


def test_a_snapshot_covers_batches_up_to_its_end() -> None:
    """Node 3's newest snapshot ends with its log; older ones count apart; node 1's newest ends inside its log."""
    path = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0"
    (found,) = stats_of(path)[0].snapshots
    sizes = {each.name: each.stat().st_size for each in path.glob("*.checkpoint")}
    newest = max(sizes)
    assert found.newest is not None
    assert (found.newest.offset, found.size_bytes) == (230, sizes.pop(newest))
    assert found.older_bytes == sum(sizes.values())
    batches = [each for each in _pieces(path) if isinstance(each, RecordBatch)]
    assert (found.covered_bytes, found.later_bytes) == (sum(each.size_bytes for each in batches), 0)

    path = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0"
    (found,) = stats_of(path)[0].snapshots
    batches = [each for each in _pieces(path) if isinstance(each, RecordBatch)]
    below = sum(each.size_bytes for each in batches if each.next_offset <= 81)
    assert (found.covered_bytes, found.later_bytes) == (below, sum(each.size_bytes for each in batches) - below)


def test_replicas_count_apart(tmp_path: Path) -> None:
    """The same partition in two directories is two groups."""
    for node in ("n1", "n2"):
        write_log(tmp_path / node / "orders-0", batch())
        (tmp_path / node / "meta.properties").write_text("version=1\n")
    stats, _ = stats_of(tmp_path)
    assert [Path(place.log_directory).name for place, _ in stats.groups["partition"].rows()] == ["n1", "n2"]
    assert len(stats.compaction) == 2
