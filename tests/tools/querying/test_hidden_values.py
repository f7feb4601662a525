# SPDX-License-Identifier: Apache-2.0
"""Secrets of the metadata and of Connect leave a query by no view, column, condition or format, unless asked for."""

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.tools.payloads.config_secrets import may_be_config_secret
from raftlog.tools.payloads.redaction import may_be_secret
from raftlog.tools.querying.hidden_values import with_hidden_secrets
from raftlog.tools.querying.query import FORMATS
from raftlog.tools.spark.rows.parts import FilePart
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, write_log
from tests.tools.made_secrets import MADE_RECORDS, SECRET, made_value

SECRETS = [made_value(*record) for record in MADE_RECORDS]
HIDDEN = "[redacted]"
PLAIN = write_metadata_record(
    metadata_record("ConfigRecord", {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "1"})
)
SESSION_KEY = b'{"key":"%s","algorithm":"HmacSHA256","creation-timestamp":7}' % SECRET.encode()
CONNECTOR = b'{"properties":{"connector.class":"c","a.password":"%s"}}' % SECRET.encode()
PLAIN_CONFIG = b'{"properties":{"connector.class":"c","topics":"t"}}'
QUESTIONS = (
    "FROM records",
    "FROM metadata",
    'SELECT base64(value), hex(value), min(value) OVER (), json FROM records LEFT JOIN metadata USING ("offset")',
)


def written(answer: bytes) -> bytes:
    """What is written, with base64 and hexadecimal digits of the secret as the secret."""
    found = [answer]
    for shift in range(3):  # Base64 of bytes inside of others depends on where they begin.
        inner = base64.b64encode(bytes(shift) + SECRET.encode())[4 if shift else 0 : -4]
        found.append(SECRET.encode() if inner in answer else b"")
    found.append(SECRET.encode() if SECRET.encode().hex().encode() in answer.lower() else b"")
    return b"".join(found)


@pytest.mark.parametrize(
    ("output_format", "folder"),
    [*((each, "__cluster_metadata-0") for each in FORMATS), ("jsonl", "elsewhere"), ("jsonl", "copy-0")],
)
def test_no_secret_is_written(output_format: str, folder: str, tmp_path: Path) -> None:
    """Every kind of secret, in every format, also in a file that has left its directory; with --no-redact, all are."""
    path = write_log(tmp_path / folder, batch(0, [*SECRETS, PLAIN], key=None))
    for number, sql in enumerate(QUESTIONS):
        shows = folder == "__cluster_metadata-0" or sql != "FROM metadata"
        for options in ((), ("--no-redact",)):
            arguments = ["query", "-j1", sql, path.parent, "--format", output_format, *options]
            if output_format == "parquet":
                out = tmp_path / f"{number}{len(options)}.parquet"
                assert run(*arguments, "--out", out).exit_code == 0
                answer = repr(pq.read_table(out).to_pylist()).encode()
            else:
                outcome = run(*arguments)
                assert outcome.exit_code == 0
                answer = outcome.output
            assert (SECRET.encode() in written(answer)) == (bool(options) and shows), (sql, options)


def test_a_secret_cannot_be_compared(tmp_path: Path) -> None:
    """Conditions see what is shown: they do not tell a secret bit by bit, nor its size."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, [*SECRETS, PLAIN], key=None))
    for condition in (f"contains(hex(value), '{SECRET.encode().hex().upper()}')", "octet_length(value) > 10"):
        sql = f'SELECT "offset" FROM records WHERE {condition}'
        rows = run("query", sql, path.parent, "--format", "jsonl").objects
        assert [row["offset"] for row in rows if row["offset"] < len(SECRETS)] == []
        rows = run("query", sql, path.parent, "--format", "jsonl", "--no-redact").objects
        assert [row["offset"] for row in rows if row["offset"] < len(SECRETS)] == list(range(len(SECRETS)))


def test_other_records_are_as_they_are(tmp_path: Path) -> None:
    """Only secrets are hidden, and a hidden value is no tombstone."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, [PLAIN, None, b"", b"\x01\x0b", SECRETS[0]], key=None))
    rows = run("query", 'SELECT value FROM records ORDER BY "offset"', path.parent, "--format", "jsonl").objects
    shown = [row.get("value", base64.b64decode(row.get("value_base64", ""))) for row in rows]
    assert shown == [PLAIN, None, "", b"\x01\x0b", HIDDEN]


@pytest.mark.parametrize(
    ("part", "hides"),
    [
        (FilePart("a", "__cluster_metadata", 0), True),
        (FilePart("a", "elsewhere", None), True),
        (FilePart("a", None, None), True),
        (FilePart("a", "copy", 0, is_snapshot=True), True),
        (FilePart("a", "orders", 0), False),
    ],
)
def test_what_only_starts_like_a_secret(part: FilePart, hides: bool) -> None:
    """A record that is cut is hidden unless the topic has another name: there a value may be any bytes."""
    cut = [SECRETS[0][:-1], SECRETS[0] + b"!", SECRETS[0][:1] + SECRETS[0][1:2] + b"\xff" * 9]
    rows = pa.RecordBatch.from_pydict({"value": pa.array([*cut, SECRETS[0]], pa.binary())})
    shown = with_hidden_secrets(rows, part).column("value").to_pylist()
    assert shown == [*([HIDDEN.encode()] * 3 if hides else cut), HIDDEN.encode()]


@pytest.mark.parametrize("folder", ["mm2-configs.A.internal-0", "connect-configs-0", "elsewhere"])
def test_secrets_of_connect(folder: str, tmp_path: Path) -> None:
    """A session key and a configuration with a password are hidden as a whole, with and without the key's column."""
    path = write_log(tmp_path / folder, batch(0, [SESSION_KEY, CONNECTOR, PLAIN_CONFIG, None], key=b"session-key"))
    for column in ("value", "key, value"):
        sql = f'SELECT {column} FROM records WHERE "offset" < 4 ORDER BY "offset"'
        rows = run("query", sql, path.parent, "--format", "jsonl").objects
        assert [row["value"] for row in rows] == [HIDDEN, HIDDEN, PLAIN_CONFIG.decode(), None]
        shown = run("query", sql, path.parent, "--format", "jsonl", "--no-redact").objects
        assert [row["value"] for row in shown] == [
            SESSION_KEY.decode(),
            CONNECTOR.decode(),
            PLAIN_CONFIG.decode(),
            None,
        ]
    sql = f"SELECT count(*) AS found FROM records WHERE contains(hex(value), '{SECRET.encode().hex().upper()}')"
    assert run("query", sql, path.parent, "--format", "jsonl").objects == [{"found": 0}]


def test_configurations_that_cannot_be_read() -> None:
    """In a topic of configurations a value that is no JSON object is hidden; in other topics it is shown."""
    values = [SESSION_KEY[:-1], b"text", b"", b'{"a.password":"p"}', b"{}"]
    rows = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    hidden = HIDDEN.encode()
    shown = with_hidden_secrets(rows, FilePart("a", "mm2-configs.A.internal", 0)).column("value").to_pylist()
    assert shown == [hidden] * 4 + [b"{}"]
    shown = with_hidden_secrets(rows, FilePart("a", "orders", 0)).column("value").to_pylist()
    assert shown == [hidden, *values[1:]]


@given(
    st.lists(
        st.none()
        | st.binary(max_size=4)
        | st.sampled_from([*SECRETS, PLAIN, SESSION_KEY, SESSION_KEY[:-1], CONNECTOR, PLAIN_CONFIG])
    ),
    st.sampled_from(["orders", "__cluster_metadata", "mm2-configs.A.internal"]),
    st.integers(0, 3),
)
def test_each_value_is_judged_by_itself(values: list[bytes | None], topic: str, skipped: int) -> None:
    """The naive model: row by row; also of a part of a record batch."""
    rows = pa.RecordBatch.from_pydict(
        {"offset": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, pa.binary())}
    ).slice(skipped)
    found = with_hidden_secrets(rows, FilePart("a", topic, 0))
    is_metadata = topic == "__cluster_metadata"
    is_config = topic.startswith("mm2-configs.")
    hidden = [
        HIDDEN.encode()
        if may_be_secret(each, if_unreadable=is_metadata) or may_be_config_secret(each, is_config=is_config)
        else each
        for each in values
    ]
    assert found.column("value").to_pylist() == hidden[skipped:]
    assert found.schema == rows.schema
    assert found.column("offset").to_pylist() == list(range(len(values)))[skipped:]


def test_secrets_that_a_kafka_wrote(tmp_path: Path) -> None:
    """All values that are hidden are credentials of the metadata log, and there are some."""
    node = GOLDEN / "dynamic-quorum/data/n1"
    sql = 'SELECT "offset", value FROM records ORDER BY "offset"'
    shown, hidden = (run("query", sql, node, "--format", "jsonl", *more).objects for more in ([], ["--no-redact"]))
    raw: dict[int, bytes] = {}
    for path in sorted((node / "__cluster_metadata-0").glob("*.log")):
        for piece in split(BufferSource(path.read_bytes())):
            if isinstance(piece, RecordBatch) and not piece.is_control:
                raw |= {record.offset: bytes(record.value or b"") for record in piece.records()}
    differing = {row["offset"] for row, other in zip(shown, hidden, strict=True) if row != other}
    assert differing == {offset for offset, value in raw.items() if may_be_secret(value)}
    assert differing
