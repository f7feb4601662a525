# SPDX-License-Identifier: Apache-2.0
"""Queries have the rows that Python's own readers find, and read and decode only what they name."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.legacy import LegacyBatch
from raftlog.records.files.index_entries import OFFSET_INDEX
from raftlog.tools.querying.scans import Logs, disjoint_parts
from raftlog.tools.querying.views import LOG_VIEWS, schema_of
from raftlog.tools.spark.rows.filters import Hints
from raftlog.tools.spark.rows.parts import FilePart
from tests.golden_files import GOLDEN
from tests.tools.console import dump_jsonl
from tests.tools.made_logs import LOG_NAME, TIMESTAMP, batch, flip, write_log
from tests.tools.querying.queries import Work, ask, ask_plainly
from tests.tools.spark.source_reads import plain_records

CORPORA = sorted(path for path in GOLDEN.rglob("data") if path.is_dir())
VALUE = bytes(range(256)) * 2
INTERVAL = 25_000
"""In bytes: ten batches, the interval of the index, take less."""


def text(path: Path) -> str:
    return str(path)


def segments(corpus: Path) -> list[Path]:
    """The segments of a corpus: files whose names are offsets, in directories that are not being deleted."""
    found = (path for path in sorted(corpus.rglob("*.log")) if not path.parent.name.endswith("-delete"))
    return [path for path in found if len(path.stem) == 20 and path.stem.isdecimal()]


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_records_and_batches_are_those_of_python(corpus: Path, tmp_path: Path) -> None:
    """All files that a Kafka wrote, and those that were damaged: each record and each batch, by file."""
    logs = Logs([text(corpus)], redact=False)
    records, batches = defaultdict(list), defaultdict(list)
    sql = 'SELECT file, "offset", epoch_ms(timestamp) AS time, key, value FROM records'
    for row in ask(logs, sql, tmp_path).to_pylist():
        records[row["file"]].append((row["offset"], row["time"], row["key"], row["value"]))
    for row in ask(logs, "SELECT * FROM batches", tmp_path).to_pylist():
        batches[row["file"]].append((row["baseOffset"], row["lastOffset"], row["position"], row["size"], row["magic"]))
    for path in segments(corpus):
        data = path.read_bytes()
        shown = [(offset, time if abs(time) < 2**53 else None, *rest) for offset, time, *rest in plain_records(data)]
        found = records.pop(text(path), [])
        assert [(row[0], row[1] if row[1] is None or abs(row[1]) < 2**53 else None, *row[2:]) for row in found] == shown
        assert batches.pop(text(path), []) == [
            (
                each.base_offset,
                each.last_offset,
                each.position,
                each.size_bytes,
                2 if isinstance(each, RecordBatch) else each.magic,
            )
            for each in split(BufferSource(data))
            if isinstance(each, RecordBatch | LegacyBatch)
        ]
    assert (records, batches) == ({}, {})


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_control_and_metadata_are_those_of_the_dump(corpus: Path, tmp_path: Path) -> None:
    """By file, offset, type and version; of sound records, whatever is beside them."""
    logs = Logs([text(corpus)])
    dumped: dict[str, list[Any]] = {"control": [], "metadata": []}
    files = [*segments(corpus), *sorted(corpus.rglob("*.checkpoint"))]
    for line in dump_jsonl(*files).of_kind("record"):
        if line.get("type") is not None:
            view = "control" if line["is_control"] else "metadata"
            dumped[view].append((line["file"], line["offset"], line["type"], line["version"]))
    for view, expected in dumped.items():
        rows = ask(logs, f'SELECT file, "offset", type, version FROM {view}', tmp_path).to_pylist()
        found = [tuple(row.values()) for row in rows if row["type"] is not None]
        if "damaged" not in corpus.parts:  # There the dump shows more: what it can read of a bad record.
            if view == "metadata":
                expected = [
                    each for each in expected if "__cluster_metadata-0" in each[0] or each[0].endswith(".checkpoint")
                ]
            assert sorted(found) == sorted(expected)
        else:
            assert {each[:2] for each in found} <= {each[:2] for each in expected}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Batches of ten records, with an index entry for every tenth batch, in two segments; and another topic."""
    return made_log(tmp_path / "logs")


def made_log(root: Path) -> Path:
    codecs = [CompressionType.NONE, CompressionType.ZSTD, CompressionType.GZIP]
    for first, topic in ((0, "orders-0"), (1500, "orders-0"), (0, "other-3")):
        data, entries = bytearray(), []
        for number in range(150):
            base = first + number * 10
            if number % 10 == 0:
                entries.append((base + 9 - first, len(data)))
            key = b"key" if number % 2 else None
            values = [VALUE + bytes([number])] * 10
            data += batch(base, values, key=key, timestamp=TIMESTAMP + base * 1000, codec=codecs[number % 3])
        write_log(root / topic, data, name=f"{first:020}.log")
        (root / topic / f"{first:020}.index").write_bytes(b"".join(OFFSET_INDEX.pack(*entry) for entry in entries))
    (root / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\n")
    return root


def test_columns_that_are_not_named_are_not_decoded(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is asked for what a query names; the share of decoded bytes follows; headers decompress nothing."""
    logs = Logs([text(log)])
    decoded = {}
    for sql, columns in {
        "SELECT count(*) FROM batches": None,
        "SELECT max(size), min(baseOffset) FROM batches": None,
        "SELECT count(*) FROM records": set(),
        "SELECT max(producerId), max(codec) FROM records": set(),
        'SELECT sum("offset") FROM records WHERE leaderEpoch = 1': {"offset"},
        "SELECT max(sequence) FROM records": {"offset"},
        "SELECT max(timestamp) FROM records": {"timestamp"},
        "SELECT count(key) FROM records": {"key"},
        "SELECT count(value) FROM records": {"value"},
        "SELECT * FROM records": {"offset", "timestamp", "key", "value", "headers"},
    }.items():
        with monkeypatch.context() as patched:
            work = Work.counted(patched)
            ask(logs, sql, tmp_path)
        assert set(work.columns) == (set() if columns is None else {frozenset(columns)})
        decoded[sql] = work.decoded_bytes
    whole = decoded["SELECT * FROM records"]
    values = 4500 * (len(VALUE) + 1)
    assert whole > values
    assert decoded["SELECT count(value) FROM records"] > values
    for sql in ("SELECT count(key) FROM records", "SELECT max(timestamp) FROM records", "SELECT count(*) FROM records"):
        assert decoded[sql] < whole // 20
    assert decoded["SELECT count(*) FROM batches"] < decoded["SELECT max(size), min(baseOffset) FROM batches"] < 10_000


@pytest.mark.parametrize("first", [0, 9, 10, 1234, 1499, 1500, 1501, 2999])
@pytest.mark.parametrize("count", [1, 10, 95])
def test_a_range_of_offsets_reads_one_index_interval_more(
    log: Path, first: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of the range is read, and at most one interval of the index before it; no other segment or topic."""
    logs = Logs([text(log)])
    batches = ask(logs, "SELECT * FROM batches WHERE topic = 'orders' ORDER BY baseOffset", tmp_path).to_pylist()
    needed = sum(each["size"] for each in batches if each["lastOffset"] >= first and each["baseOffset"] < first + count)
    interval = max(sum(each["size"] for each in batches[start : start + 10]) for start in range(0, 300, 10))
    work = Work.counted(monkeypatch)

    sql = f"""SELECT count(*) AS n, min("offset") AS low, max("offset") AS high FROM records
              WHERE topic = 'orders' AND "offset" >= {first} AND "offset" < {first + count}"""
    (row,) = ask(logs, sql, tmp_path).to_pylist()

    last = min(first + count, 3000) - 1
    assert row == {"n": last + 1 - first, "low": first, "high": last}
    assert needed <= work.part_bytes <= needed + interval
    assert work.read_bytes <= needed + 4 * interval + 61 * 25  # The end is looked for by headers, in growing steps.


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 0), (2999, 2999)],
        [(5, 14), (700, 731)],
        [(1490, 1499), (1500, 1500)],  # Adjacent ones are one.
        [(95, 104), (106, 109), (111, 112)],  # In one interval: no batch is read twice.
        [(300, 309), (1700, 1709), (2400, 2400)],
        [(40, 41), (5000, 6000)],
    ],
    ids=str,
)
@pytest.mark.parametrize("written", ["BETWEEN", "IN"])
def test_each_of_several_ranges_reads_one_index_interval_more(
    log: Path, ranges: list[tuple[int, int]], written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is between ranges is not read: of each, its batches are, and at most one interval of the index before it."""
    logs = Logs([text(log)])
    wanted = [each for low, high in ranges for each in range(low, min(high, 5010) + 1)][:50]  # Arrow's longest list.
    if written == "BETWEEN":
        condition = " OR ".join(f'"offset" BETWEEN {low} AND {high}' for low, high in ranges)
        wanted = [each for low, high in ranges for each in range(low, high + 1)]
    else:
        condition = f'"offset" IN ({", ".join(map(str, wanted))})'
    batches = ask(logs, "SELECT * FROM batches WHERE topic = 'orders' ORDER BY baseOffset", tmp_path).to_pylist()
    needed = sum(
        each["size"] for each in batches if any(each["baseOffset"] <= one <= each["lastOffset"] for one in wanted)
    )
    work = Work.counted(monkeypatch)

    sql = f"""SELECT "offset" AS o FROM records WHERE topic = 'orders' AND ({condition})"""
    rows = ask(logs, sql, tmp_path).to_pylist()

    assert [row["o"] for row in rows] == [each for each in wanted if each < 3000]
    assert needed <= work.part_bytes <= needed + len(ranges) * INTERVAL


@pytest.mark.parametrize(
    "condition",
    [
        "topic = 'nowhere'",
        "topic = 'orders' AND partition = 1",
        "nodeId = 8",
        "nodeId IS NULL",
        "directory = '/elsewhere'",
        "file LIKE '/elsewhere%' AND file = '/elsewhere/x.log'",
        '"offset" >= 3000',
        '"offset" < 0',
        '"offset" IN (5000, 6000)',
        '"offset" = 20 AND "offset" = 30',
        "timestamp >= '2030-01-01'",
    ],
)
def test_what_cannot_match_is_not_read(
    condition: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte of a file of batches is decoded for a condition that no batch meets."""
    logs = Logs([text(log)])
    work = Work.counted(monkeypatch)
    assert ask(logs, f"SELECT count(*) AS n FROM records WHERE {condition}", tmp_path).to_pylist() == [{"n": 0}]
    assert (work.columns, work.decoded_bytes) == ([], 0)
    if "timestamp" not in condition:  # Headers tell the times, so that they are read.
        assert work.part_bytes <= 2 * INTERVAL


OFFSETS = st.integers(-2, 3002)
TIMES = st.builds("make_timestamptz({}::BIGINT * 1000)".format, st.integers(TIMESTAMP - 2000, TIMESTAMP + 3_002_000))
LITERALS = {
    '"offset"': OFFSETS.map(str),
    "batchBaseOffset": OFFSETS.map(str),
    "timestamp": TIMES,
    "topic": st.sampled_from(["'orders'", "'other'", "'none'", "NULL"]),
    "partition": st.sampled_from(["0", "3", "NULL"]),
    "nodeId": st.sampled_from(["7", "8"]),
    "leaderEpoch": st.sampled_from(["1", "2"]),
    "key": st.sampled_from(["'key'::BLOB", "'kex'::BLOB"]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    """A comparison of a column with one or two values."""
    column = draw(st.sampled_from(sorted(LITERALS)))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "IN", "BETWEEN", "IS NULL", "IS DISTINCT FROM"]))
    low, high = draw(LITERALS[column]), draw(LITERALS[column])
    match operator:
        case "IN":
            return f"{column} IN ({low}, {high})"
        case "BETWEEN":
            return f"{column} BETWEEN {low} AND {high}"
        case "IS NULL":
            return f"{column} IS NULL"
    return f"{column} {operator} {low}"


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Logs, dict[str, Any], Path]:
    """A log, its records and batches as tables in memory, and a directory for DuckDB."""
    spill = tmp_path_factory.mktemp("spill")
    logs = Logs([text(made_log(tmp_path_factory.mktemp("whole")))])
    tables = {name: ask(logs, f"SELECT * FROM {name}", spill) for name in ("records", "batches")}
    return logs, tables, spill


@given(condition=CONDITIONS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_conditions_leave_out_no_row(condition: str, whole: tuple[Logs, dict[str, Any], Path]) -> None:
    """For any condition, the rows are those that DuckDB finds by itself in a table of all records."""
    logs, tables, spill = whole
    sql = f'SELECT topic, "offset", octet_length(key) AS size FROM records WHERE {condition} ORDER BY ALL'
    assert ask(logs, sql, spill).to_pylist() == ask_plainly(tables, sql, spill).to_pylist()


RANGES = st.lists(st.tuples(OFFSETS, OFFSETS).map(sorted), min_size=1, max_size=6)
FORMS = {
    "records": "SELECT topic, {0} AS o FROM {1} WHERE {2} ORDER BY ALL",
    "batches": "SELECT topic, {0} AS o, count(*) AS n FROM {1} WHERE {2} GROUP BY ALL ORDER BY ALL",
}


@given(view=st.sampled_from(sorted(FORMS)), ranges=RANGES, data=st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_ranges_leave_out_no_row_and_double_none(
    view: str, ranges: list[list[int]], data: st.DataObject, whole: tuple[Logs, dict[str, Any], Path]
) -> None:
    """However ranges of offsets overlap, the rows are those of a table of all, each once."""
    logs, tables, spill = whole
    columns = {"records": ['"offset"', "batchBaseOffset"], "batches": ["baseOffset", "lastOffset"]}[view]
    conditions = [f"{data.draw(st.sampled_from(columns))} BETWEEN {low} AND {high}" for low, high in ranges]
    sql = FORMS[view].format(columns[0], view, " OR ".join(conditions))
    assert ask(logs, sql, spill).to_pylist() == ask_plainly(tables, sql, spill).to_pylist()


PLACES = st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda each: (each[0], each[0] + each[1]))


@given(st.lists(PLACES, max_size=6), st.integers(0, 40))
def test_parts_are_disjoint_and_cover_the_same_bytes(places: list[tuple[int, int]], position: int) -> None:
    """Each byte of the given parts is in one part, which has the offsets of all of them; no other byte is in any."""
    given = [(FilePart("f", start=start, end=end), Hints(start, end)) for start, end in places]
    found = list(disjoint_parts(given))
    assert sum(part.start <= position < part.end for part, _ in found) == any(
        start <= position < end for start, end in places
    )
    assert [part for part, _ in found] == sorted((part for part, _ in found), key=lambda part: part.start)
    for start, end in places:
        assert any(
            part.start <= start <= end <= part.end and hints == Hints(part.start, part.end) for part, hints in found
        )


def test_joins_and_repeated_scans(log: Path, tmp_path: Path) -> None:
    """One query may read a view several times, and several views at once."""
    sql = """SELECT b.topic, count(*) AS records, count(DISTINCT b.baseOffset) AS batches FROM batches b
             JOIN records r ON r.file = b.file AND r.batchBaseOffset = b.baseOffset
             WHERE b.baseOffset IN (SELECT max(baseOffset) FROM batches GROUP BY topic) GROUP BY ALL ORDER BY ALL"""
    rows = ask(Logs([text(log)]), sql, tmp_path).to_pylist()
    assert rows == [{"topic": "orders", "records": 20, "batches": 2}, {"topic": "other", "records": 10, "batches": 1}]


def test_damage_is_left_out_and_kept(tmp_path: Path) -> None:
    """The sound batches around it have their rows, and the damage is known once, however often it is read."""
    path = write_log(tmp_path / "orders-0", batch(0), batch(1), batch(2), batch(3))
    size = len(batch(1))
    flip(path, size + 65)
    flip(path, 2 * size + 65)
    logs = Logs([text(tmp_path)])
    for _ in range(2):
        assert ask(logs, 'SELECT "offset" AS o FROM records', tmp_path).to_pylist() == [{"o": 0}, {"o": 3}]
    (finding,) = logs.damage.findings.values()
    assert (finding.path, finding.rule, finding.position) == (str(path), "batch-crc", size)
    assert logs.damage.with_more <= {str(path)}


def test_a_file_that_is_gone_is_known(tmp_path: Path) -> None:
    """A segment that the node deletes after the listing has no rows, and that is not silent."""
    path = write_log(tmp_path / "orders-0", batch(0))
    logs = Logs([text(tmp_path)])
    path.unlink()
    assert ask(logs, "SELECT * FROM records", tmp_path).num_rows == 0
    assert set(logs.damage.losses) == {str(path)}


def test_a_named_segment_has_no_node(tmp_path: Path) -> None:
    """What the path does not say is null, and a condition on it finds that."""
    path = write_log(tmp_path, batch(0))
    assert path.name == LOG_NAME
    sql = "SELECT partition, nodeId FROM records WHERE partition IS NULL AND nodeId IS NULL"
    assert ask(Logs([text(path)]), sql, tmp_path).to_pylist() == [{"partition": None, "nodeId": None}]


@pytest.mark.parametrize("view", LOG_VIEWS)
def test_the_first_columns_cost_nothing(view: str) -> None:
    """DuckDB reads the first column if it needs none."""
    assert schema_of(view).names[:2] == ["directory", "nodeId"]
