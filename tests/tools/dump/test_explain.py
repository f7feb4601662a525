# SPDX-License-Identifier: Apache-2.0
"""``raftlog explain``: rules by their ids, and the bytes at an offset or a position."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.batches.compression import CompressionType
from raftlog.tools.catalogue.audit_rules import ASKED_FOR, CATALOGUE
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, write_log
from tests.tools.made_secrets import MADE_RECORDS, made_value

METADATA = GOLDEN / "dynamic-quorum/data/n1/__cluster_metadata-0"
ZSTD = GOLDEN / "data-topics/data/n1/c-zstd-0/00000000000000000000.log"


def _metadata_log() -> Path:
    return sorted(METADATA.glob("*.log"))[0]


SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/explain-1.schema.json").read_text()))


def test_every_rule_is_explained() -> None:
    """Each rule of the catalogue has a claim, an example and a source, and explain prints them."""
    for rule in CATALOGUE:
        (found,) = run("explain", rule, "--format", "jsonl").objects
        SCHEMA.validate(found)
        assert found.pop("kind") == "rule"
        assert found.pop("only_by") == ASKED_FOR.get(rule)
        assert all(found.values())
        assert found["severity"] in {"harmless", "suspicious", "damaged", "data-loss"}


def test_a_rule_in_words() -> None:
    """A rule's text has its claim first."""
    outcome = run("explain", "epoch-order")
    assert outcome.exit_code == 0
    assert outcome.text.startswith("epoch-order: epochs of batches do not decrease\n  severity  damaged\n")


def test_a_rule_that_is_not_always_checked() -> None:
    """Its text says what checks it; that of another rule does not."""
    assert run("explain", "index-sanity").text.endswith("  only by   dump-log --index-sanity-check\n")
    assert ASKED_FOR.keys() < CATALOGUE.keys()


def test_unknown_rules_and_files_without_a_place() -> None:
    """A misspelt rule is answered with those that are near; a file without a place, with what is missing."""
    outcome = run("explain", "epoch-ordr")
    assert outcome.exit_code == 1
    assert outcome.complaints[0].startswith("raftlog explain: no rule is called epoch-ordr; there are epoch-order")
    assert "--offset or --position" in run("explain", ZSTD).messages
    assert "'raftlog verify --rules'" in run("explain", "qqqqq").messages


def test_the_batch_that_holds_an_offset() -> None:
    """An offset in the middle of a batch shows that batch: its fields are adjacent, and its records follow."""
    outcome = run("explain", ZSTD, "--offset", "120", "--format", "jsonl")
    assert outcome.exit_code == 0
    heading, *fields = outcome.objects
    for line in outcome.objects:
        SCHEMA.validate(line)
    assert (heading["base_offset"], heading["last_offset"]) == (100, 149)
    assert fields[0]["position"] == heading["position"]
    assert sum(field["size"] for field in fields if not field["is_decompressed"]) == heading["size"]
    assert len([field for field in fields if field["name"] == "value length"]) == 50


def test_control_records_and_messages_are_read() -> None:
    """Control records and metadata records are shown as the messages that they are."""
    text = run("explain", _metadata_log(), "--position", "0").text
    assert "LEADER_CHANGE {" in text
    assert "version 0, type 2: LEADER_CHANGE" in text
    assert "KRAFT_VOTERS {" in text


def test_secrets_are_hidden_unless_asked_for() -> None:
    """The bytes of a record with a secret are neither in the text nor in the JSON, unless they are asked for."""
    offset = next(
        each["offset"]
        for each in run("dump-log", "--format", "jsonl", "--no-redact", _metadata_log()).of_kind("record")
        if each.get("type") == "USER_SCRAM_CREDENTIAL_RECORD"
    )
    hidden = run("explain", _metadata_log(), "--offset", str(offset))
    assert "(hidden: it holds a secret)" in hidden.text
    fields = run("explain", _metadata_log(), "--offset", str(offset), "--format", "jsonl").of_kind("field")
    assert [field["bytes_base64"] for field in fields if field["name"] == "value"].count(None) == 1
    shown = run("explain", _metadata_log(), "--offset", str(offset), "--no-redact")
    assert "(hidden" not in shown.text


@pytest.mark.parametrize(("value", "hides"), [(made_value(*MADE_RECORDS[0]), True), (b"v", False)])
def test_a_compressed_secret_is_hidden_in_both_forms(value: bytes, hides: bool, tmp_path: Path) -> None:
    """Who has the compressed bytes of a batch has what is in them."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(0, (value,), key=None, codec=CompressionType.GZIP))
    fields = run("explain", path, "--offset", "0", "--format", "jsonl").of_kind("field")
    found = {field["name"]: field["bytes_base64"] for field in fields}
    assert (found["records"] is None, found["value"] is None) == (hides, hides)
    fields = run("explain", path, "--offset", "0", "--format", "jsonl", "--no-redact").of_kind("field")
    assert all(field["bytes_base64"] is not None for field in fields)


def test_damage_is_shown_for_what_it_is(tmp_path: Path) -> None:
    """A batch whose CRC does not hold is annotated with what does not hold, and the exit code says damage."""
    data = bytearray(ZSTD.read_bytes())
    data[-1] ^= 1
    path = tmp_path / ZSTD.name
    path.write_bytes(data)
    outcome = run("explain", path, "--position", str(len(data) - 1))
    assert outcome.exit_code == 2
    assert "[batch-crc]" in outcome.text
    assert "does not hold for bytes 21 to" in outcome.text


def test_a_torn_tail_and_zeros_are_shown(tmp_path: Path) -> None:
    """Bytes at the end of a file that are not a batch are suspicious, not damaged."""
    data = ZSTD.read_bytes()
    torn, padded = tmp_path / "1.log", tmp_path / "2.log"
    torn.write_bytes(data + data[:40])
    padded.write_bytes(data + bytes(100))
    outcome = run("explain", torn, "--position", str(len(data) + 3))
    assert outcome.exit_code == 3
    assert "[tail-torn]" in outcome.text
    assert "the file ends here" in outcome.text
    assert "zeros to the end of the file [tail-zero]" in run("explain", padded, "--position", str(len(data))).text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((ZSTD, "--offset", "99999"), "no batch has offset 99999"),
        ((ZSTD, "--position", "99999999"), "no batch has position 99999999"),
        (("nowhere.log", "--offset", "1"), "nowhere.log"),
    ],
)
def test_places_that_are_not_there(arguments: tuple[str | Path, ...], complaint: str) -> None:
    """An offset, a position or a file that is not there is one clear line."""
    outcome = run("explain", *arguments)
    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1
    assert complaint in outcome.complaints[0]


def test_long_fields_are_cut_unless_all_is_wanted() -> None:
    """A long field says how many bytes are not shown; --all shows them."""
    cut = run("explain", ZSTD, "--offset", "0").text
    assert "more bytes" in cut
    assert "more bytes" not in run("explain", ZSTD, "--offset", "0", "--all").text
