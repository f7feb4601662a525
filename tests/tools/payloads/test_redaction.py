# SPDX-License-Identifier: Apache-2.0
"""Secrets of metadata records show only where they were asked for."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raftlog.errors import DecodeError
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.metadata import metadata_record, read_metadata_record, write_metadata_record
from raftlog.tools.dump.output_formats import FORMATS
from tests.golden_files import record_files
from tests.strategies import legacy_message
from tests.tools.console import Outcome, dump
from tests.tools.made_logs import batch, write_log
from tests.tools.made_secrets import MADE_RECORDS, SCRAM_FIELDS, SECRET, made_value

HIDING_FORMATS = [each.name for each in FORMATS.values() if each.hides_secrets]


def shown_bytes(outcome: Outcome) -> bytes:
    """Everything that a run showed, with base64 undone wherever a JSON line may hold some."""

    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from strings(item)
        elif isinstance(value, str):
            yield value

    decoded = []
    for line in outcome.output.splitlines():
        for text in strings(json.loads(line)) if line.startswith(b"{") else line.decode().replace('"', " ").split():
            try:
                decoded.append(base64.b64decode(text, validate=True))
            except ValueError:
                continue
    return b"\n".join([outcome.output, outcome.messages.encode(), *decoded])


def scram_secrets(path: Path) -> Iterator[bytes]:
    """Yield the salts and keys of a metadata log or snapshot."""
    for piece in split(BufferSource(path.read_bytes())):
        for record in piece.records() if isinstance(piece, RecordBatch) and not piece.is_control else ():
            try:
                decoded = read_metadata_record(record.value)
            except DecodeError:
                continue
            if decoded.type.name == "UserScramCredentialRecord":
                yield from (bytes(decoded.message[field]) for field in SCRAM_FIELDS)


def golden_secrets() -> dict[Path, frozenset[bytes]]:
    """Return golden files that hold SCRAM credentials, with them: one for each set of them."""
    paths = [path for path in record_files() if path.parent.name == "__cluster_metadata-0"]
    by_secrets = {frozenset(scram_secrets(path)): path for path in paths}
    return {path: secrets for secrets, path in by_secrets.items() if secrets}


def test_every_format_but_kafkas_hides_secrets() -> None:
    """Only the format that prints what kafka-dump-log prints shows them."""
    assert set(FORMATS) - set(HIDING_FORMATS) == {"kafka"}


def test_kafkas_own_secrets_are_hidden(tmp_path: Path) -> None:
    """No salt and no key of the golden files shows, in any place of a line, also if the file has left its directory."""
    files = golden_secrets()
    assert len(files) >= 5
    for index, (path, secrets) in enumerate(files.items()):
        stray = tmp_path / str(index) / f"stray{path.suffix}"
        stray.parent.mkdir()
        shutil.copy(path, stray)
        for named in (path, stray):
            for output_format in HIDING_FORMATS:
                shown = shown_bytes(dump("--format", output_format, named))
                assert not [secret for secret in secrets if secret in shown], (named, output_format)


def test_kafkas_own_secrets_are_shown_when_asked_for() -> None:
    """With --no-redact, and in the format kafka, every salt and key is there; of the latter a note says so, once."""
    for path, secrets in list(golden_secrets().items())[:4]:
        open_lines = dump("--format", "jsonl", "--no-redact", path)
        kafka = dump("--cluster-metadata-decoder", path, path)

        for secret in secrets:
            assert secret in shown_bytes(open_lines)
            assert base64.b64encode(secret) in kafka.output
        assert open_lines.messages == ""
        assert kafka.messages.count("secrets are shown") == 1


def test_no_note_without_payloads() -> None:
    """The format kafka says that secrets are shown only if it shows payloads."""
    path = next(iter(golden_secrets()))

    assert dump("--deep-iteration", path).messages == ""
    assert "secrets" in dump("--print-data-log", path).messages


@pytest.mark.parametrize("folder", ["__cluster_metadata-0", "elsewhere"])
@pytest.mark.parametrize("output_format", HIDING_FORMATS)
@pytest.mark.parametrize("record", MADE_RECORDS, ids=lambda record: record[1].get("name", record[0]))
def test_every_kind_of_secret(
    record: tuple[str, dict[str, Any], tuple[str, ...]], output_format: str, folder: str, tmp_path: Path
) -> None:
    """SCRAM credentials, delegation tokens and configs with secrets are hidden unless --no-redact is given."""
    path = write_log(tmp_path / folder, batch(0, (made_value(*record),), key=None))

    assert SECRET.encode() not in shown_bytes(dump("--format", output_format, path))
    shown = shown_bytes(dump("--format", output_format, "--no-redact", path))
    assert SECRET.encode() in shown


@pytest.mark.parametrize("folder", ["__cluster_metadata-0", "elsewhere"])
@pytest.mark.parametrize("output_format", HIDING_FORMATS)
@pytest.mark.parametrize("options", [(), ("--cluster-metadata-decoder",), ("--value-decoder-class", "builtins:repr")])
def test_a_secret_that_does_not_decode(
    options: tuple[str, ...], output_format: str, folder: str, tmp_path: Path
) -> None:
    """A record that starts like one with a secret is hidden even if it is cut or too long, with any decoder."""
    value = made_value(*MADE_RECORDS[0])
    path = write_log(tmp_path / folder, batch(0, (value, value[:-1], value + b"!"), key=None))

    assert SECRET.encode() not in shown_bytes(dump("--format", output_format, *options, path))


@pytest.mark.parametrize("output_format", HIDING_FORMATS)
def test_a_secret_in_an_old_message(output_format: str, tmp_path: Path) -> None:
    """A metadata record in a message of magic 1 is hidden too."""
    path = write_log(tmp_path, legacy_message(1, 0, None, made_value(*MADE_RECORDS[0])))

    assert SECRET.encode() not in shown_bytes(dump("--format", output_format, path))


def test_other_values_than_secrets_are_not_hidden(tmp_path: Path) -> None:
    """Other configs, null values, and values that only start like a secret's first byte are shown as they are."""
    config = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "86400000"}
    values = [
        write_metadata_record(metadata_record("ConfigRecord", config)),
        write_metadata_record(metadata_record("ConfigRecord", config | {"name": "ssl.key.password", "value": None})),
        b"\x01\x02",
        b"\x01",
        b"",
        None,
    ]
    path = write_log(tmp_path, batch(0, values, key=None))

    outcome = dump("--format", "jsonl", path)

    assert not any("redacted" in line for line in outcome.of_kind("record"))


def test_hidden_findings_are_counted(tmp_path: Path) -> None:
    """A redacted line keeps its plain fields, and says that something was hidden."""
    name, plain, fields = MADE_RECORDS[-1]
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, (made_value(name, plain, fields),), key=None))

    (record,) = dump("--format", "jsonl", path).of_kind("record")

    assert record["redacted"] is True
    assert record["data"] == plain | {"value": "[redacted]"}
