# SPDX-License-Identifier: Apache-2.0
"""JSON lines: the published schema, the integers, the bytes, and nulls that are not empty."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.batches.record import Record
from tests.golden_files import GOLDEN
from tests.strategies import INT32_MAX, INT64_MAX, planned_batches
from tests.tools.console import dump_jsonl, run_process
from tests.tools.line_schema import SCHEMA, read_lines
from tests.tools.made_logs import LOG_NAME, batch, write_log

SCENARIOS = ("data-topics", "dynamic-quorum", "groups", "killed", "mirror", "static-upgrade", "wire")
NODES = sorted(path.parent for scenario in SCENARIOS for path in (GOLDEN / scenario).rglob("meta.properties"))


def test_the_schema_is_one() -> None:
    """The schema keeps to the metaschema, and each kind is listed once."""
    Draft202012Validator.check_schema(SCHEMA)
    kinds = [reference["$ref"].removeprefix("#/$defs/") for reference in SCHEMA["oneOf"]]
    assert sorted({*kinds, "header"}) == sorted(SCHEMA["$defs"])
    assert len(set(kinds)) == len(kinds)
    assert all(SCHEMA["$defs"][kind]["properties"]["kind"] == {"const": kind} for kind in kinds)


def test_all_scenarios_have_nodes() -> None:
    """The nodes of all seven scenarios are dumped below."""
    assert {node.relative_to(GOLDEN).parts[0] for node in NODES} == set(SCENARIOS)
    assert len(NODES) >= 20


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.relative_to(GOLDEN).as_posix())
def test_every_file_of_kafkas_keeps_the_schema(node: Path) -> None:
    """All files of a node, indexes and small ones too, give lines of the schema: all bytes explained, no finding."""
    outcome = dump_jsonl("--all", node)
    lines = read_lines(outcome.output)

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert len({line["file"] for line in lines}) == sum(path.is_file() for path in node.rglob("*"))
    for line in lines:
        if line["kind"] == "coverage":
            assert line["explained_bytes"] == os.path.getsize(line["file"])


def stored_records(path: Path) -> list[tuple[RecordBatch, Record]]:
    """Read the records of a file with the library alone."""
    batches = [each for each in split(BufferSource(path.read_bytes())) if isinstance(each, RecordBatch)]
    return [(each, record) for each in batches for record in each.records()]


def bytes_of(line: dict[str, Any], name: str) -> bytes | None:
    """Undo the rule for bytes."""
    if f"{name}_base64" in line:
        assert name not in line
        return base64.b64decode(line[f"{name}_base64"], validate=True)
    return None if line[name] is None else line[name].encode()


@pytest.mark.parametrize("topic", ["java-0", "txn-0", "c-none-0", "c-zstd-0", "append-time-0"])
def test_lines_hold_what_the_records_hold(topic: str) -> None:
    """Offsets, timestamps, keys, values and headers of a topic can be read back from its lines."""
    path = GOLDEN / "data-topics/data/n1" / topic / LOG_NAME
    lines = dump_jsonl(path).of_kind("record")
    records = stored_records(path)

    assert len(lines) == len(records) > 0
    for line, (stored_batch, record) in zip(lines, records, strict=True):
        assert (line["offset"], line["timestamp"]) == (record.offset, record.timestamp)
        assert line["partition_leader_epoch"] == stored_batch.partition_leader_epoch
        if not stored_batch.is_control:
            assert (bytes_of(line, "key"), bytes_of(line, "value")) == (record.key, record.value)
        headers = [(bytes_of(header, "key"), bytes_of(header, "value")) for header in line["headers"]]
        assert headers == [tuple(header) for header in record.headers]


@given(planned=planned_batches())
@settings(deadline=None, max_examples=40)
def test_any_record_can_be_read_back(planned: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a batch holds, the lines give it back: 64-bit integers as integers, null apart from empty."""
    path = write_log(tmp_path_factory.mktemp("log"), planned.build())
    expected = stored_records(path)

    lines = read_lines(dump_jsonl("--no-redact", path).output)
    batch_line = lines[1]
    records = [line for line in lines if line["kind"] == "record"]

    stored_batch = expected[0][0]
    assert batch_line["max_timestamp"] == stored_batch.max_timestamp
    assert batch_line["producer_id"] == stored_batch.producer_id
    assert batch_line["last_sequence"] == stored_batch.last_sequence
    assert [line["timestamp"] for line in records] == [record.timestamp for _, record in expected]
    for line, (_, record) in zip(records, expected, strict=True):
        assert line["key_size"] == (-1 if record.key is None else len(record.key))
        assert line["value_size"] == (-1 if record.value is None else len(record.value))
        if not stored_batch.is_control:
            assert (bytes_of(line, "key"), bytes_of(line, "value")) == (record.key, record.value)


def test_the_largest_numbers_stay_integers(tmp_path: Path) -> None:
    """Integers at the ends of 64 bits are written as integers, digit for digit."""
    builder = RecordBatchBuilder(
        INT64_MAX - 1, producer_id=INT64_MAX, producer_epoch=2**15 - 1, base_sequence=INT32_MAX
    )
    builder.append(INT64_MAX, b"k", b"v")
    outcome = dump_jsonl(write_log(tmp_path, builder.build()))

    assert f'"producer_id":{INT64_MAX},' in outcome.text
    assert f'"offset":{INT64_MAX - 1},' in outcome.text
    assert f'"timestamp":{INT64_MAX},' in outcome.text


@pytest.mark.parametrize("name", ["a\nb.log", "a\x1bb.log", os.fsdecode(b"\xff\xfe.log"), "\u2028.log", "\u00fc.log"])
def test_any_file_name(name: str, tmp_path: Path) -> None:
    """A file whose name is not plain text is named in base64; its messages are one line."""
    path = write_log(tmp_path, batch(), bytes(100), name=name)

    outcome = dump_jsonl(path)

    lines = read_lines(outcome.output)
    assert {bytes_of(line, "file") for line in lines} == {os.fsencode(path)}
    assert len(outcome.complaints) == 1


def test_any_file_name_in_kafkas_words(tmp_path: Path) -> None:
    """The format kafka prints a name byte for byte, as Kafka does."""
    path = write_log(tmp_path, batch(), name=os.fsdecode(b"\xff\xfe.log"))

    assert run_process("dump-log", os.fsencode(path)).output.startswith(b"Dumping " + os.fsencode(path) + b"\n")
