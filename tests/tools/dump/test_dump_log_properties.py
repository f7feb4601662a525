# SPDX-License-Identifier: Apache-2.0
"""Whatever the bytes are, ``raftlog dump-log`` ends with one of its exit codes and accounts for every byte."""

import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.records.rules import RULES, Severity
from raftlog.tools.dump.output_formats import FORMATS
from tests.golden_files import GOLDEN
from tests.strategies import legacy_batches, logs, mutated, ready_made_batches, with_mutated_area
from tests.tools.console import dump
from tests.tools.line_schema import read_lines
from tests.tools.made_logs import LOG_NAME, batch, write_log

WORST = {Severity.HARMLESS: 0, Severity.SUSPICIOUS: 3, Severity.DAMAGED: 2, Severity.DATA_LOSS: 2}
DECODERS = (
    "--print-data-log",
    "--cluster-metadata-decoder",
    "--offsets-decoder",
    "--transaction-log-decoder",
    "--share-group-state-decoder",
    "--mirror-decoder",
)
OPTIONS = (*DECODERS, "--decode-corrupt", "--shallow", "--no-redact", "--skip-record-metadata", "--deep-iteration")
NODE = GOLDEN / "data-topics/data/n1"
METADATA = (NODE / "__cluster_metadata-0" / LOG_NAME).read_bytes()[:4000]

option_lists = st.lists(st.sampled_from(OPTIONS), max_size=3)


@st.composite
def damaged_logs(draw: st.DrawFn) -> bytes:
    """Logs of batches of every kind, some of them changed, with anything at their end."""
    batches = draw(logs() | st.lists(ready_made_batches | legacy_batches() | with_mutated_area(), max_size=4))
    for index in range(len(batches)):
        if draw(st.booleans()):
            batches[index] = draw(mutated(batches[index]))
    return b"".join(batches) + draw(st.sampled_from([b"", bytes(7), bytes(600), b"\xff" * 30]))


@given(data=damaged_logs(), options=option_lists)
@settings(deadline=None, max_examples=30)
def test_any_log_in_every_format(data: bytes, options: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """All formats end with the same exit code and say the same; JSON lines keep to their schema and account for all."""
    path = write_log(tmp_path_factory.mktemp("log"), data)

    outcomes = {each: dump("--format", each, *options, path) for each in FORMATS}
    lines = read_lines(outcomes["jsonl"].output)
    findings = [line for line in lines if line["kind"] == "finding"]
    (coverage,) = [line for line in lines if line["kind"] == "coverage"]

    assert {outcome.exit_code for outcome in outcomes.values()} <= {0, 2, 3}
    alike = [outcomes[each.name] for each in FORMATS.values() if each.decodes_unasked]
    assert {(outcome.exit_code, outcome.messages) for outcome in alike} == {
        (outcomes["jsonl"].exit_code, outcomes["jsonl"].messages)
    }
    worst = {WORST[RULES[finding["rule"]].severity] for finding in findings}
    assert outcomes["jsonl"].exit_code == (2 if 2 in worst else 3 if worst else 0)
    assert len(outcomes["jsonl"].complaints) == len(findings)
    assert sum(coverage[f"{each}_bytes"] for each in ("explained", "damaged", "padding")) == len(data)


@given(data=damaged_logs(), options=option_lists, output_format=st.sampled_from(list(FORMATS)))
@settings(deadline=None, max_examples=30)
def test_the_quick_way_prints_the_same(
    data: bytes, options: list[str], output_format: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A limit that is not reached, which makes a dump take one record at a time, changes nothing."""
    path = write_log(tmp_path_factory.mktemp("log"), data)

    quick = dump("--format", output_format, *options, path)

    assert dump("--format", output_format, *options, "--limit", "1000000", path) == quick


@pytest.mark.parametrize("topic", ["java-0", "txn-0", "c-lz4-0", "__consumer_offsets-0", "__cluster_metadata-0"])
@pytest.mark.parametrize("output_format", FORMATS)
def test_the_quick_way_prints_kafkas_topics_the_same(topic: str, output_format: str) -> None:
    """So it is for what Kafka wrote."""
    options = ("--format", output_format, "--print-data-log")

    assert dump(*options, "--limit", "1000000", NODE / topic) == dump(*options, NODE / topic)


@given(data=mutated(METADATA, max_changes=2))
@settings(deadline=None, max_examples=30)
def test_a_damaged_metadata_log(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A metadata log with a change in it is decoded all around the damage, without an exception."""
    path = write_log(tmp_path_factory.mktemp("log") / "__cluster_metadata-0", data)

    outcome = dump("--format", "jsonl", "--decode-corrupt", path)

    assert outcome.exit_code in {0, 2, 3}
    (coverage,) = [line for line in read_lines(outcome.output) if line["kind"] == "coverage"]
    assert sum(coverage[f"{each}_bytes"] for each in ("explained", "damaged", "padding")) == len(data)


PARTITION = NODE / "txn-0"
BESIDE = {
    path.name: path.read_bytes()
    for path in (*NODE.iterdir(), *PARTITION.iterdir(), NODE / "__cluster_metadata-0/quorum-state")
    if path.is_file() and path.suffix != ".log"
} | {"00000000000000000000.txnindex": b"".join(n.to_bytes(8, "big") for n in range(17))}


@given(name=st.sampled_from(sorted(BESIDE)), data=st.data())
@settings(deadline=None, max_examples=30)
def test_any_file_beside_a_log(name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Indexes, snapshots and small files with changes in them print or are findings, in every format."""
    folder = tmp_path_factory.mktemp("txn-0")
    write_log(folder, (PARTITION / LOG_NAME).read_bytes())
    (folder / name).write_bytes(data.draw(mutated(BESIDE[name]) | st.binary(max_size=200)))

    outcomes = {each: dump("--all", "--shallow", "--format", each, folder) for each in FORMATS}

    assert {outcome.exit_code for outcome in outcomes.values()} <= {0, 2, 3}
    read_lines(outcomes["jsonl"].output)


@given(data=st.binary(max_size=300), text=st.text(max_size=20))
@settings(deadline=None, max_examples=30)
def test_any_key_value_and_header(data: bytes, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a key, value or header holds, a line of JSON is one line for every reader of lines."""
    builder = RecordBatchBuilder(0)
    odd = "\u2028\u2029".encode()
    fields = [data, text.encode("utf-8", "replace"), odd, "\x85\x1c\x0b".encode(), None]
    for field in fields:
        builder.append(0, field, field, [(field or b"", field), (odd, data)])
    path = write_log(tmp_path_factory.mktemp("log"), builder.build())

    lines = read_lines(dump("--format", "jsonl", path).output)

    assert [line["kind"] for line in lines] == ["file", "batch", *["record"] * len(fields), "coverage"]


def test_what_a_decoder_makes_is_one_line(tmp_path: Path) -> None:
    """A name in a decoded message may hold what ends a line for some readers, and comes through whole."""
    name = "a\x85\u2028\u2029\x1cb"
    value = write_metadata_record(metadata_record("TopicRecord", {"name": name, "topicId": uuid.UUID(int=7)}))
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, (value,), key=None))

    (record,) = [line for line in read_lines(dump("--format", "jsonl", path).output) if line["kind"] == "record"]

    assert record["data"]["name"] == name
