# SPDX-License-Identifier: Apache-2.0
"""Decoders by the names of Kafka's classes: what they print, and what they make of bytes that do not fit."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.dump.output_formats import FORMATS
from raftlog.tools.payloads.decoder_classes import _DECODERS, class_decoder
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import dump, dump_jsonl
from tests.tools.made_logs import batch, write_log

DAMAGED = GOLDEN / "damaged"
PACKAGES = ("org.apache.kafka.tools.api.{}Decoder", "kafka.serializer.{}Decoder", "{}")
DESERIALIZER = "org.apache.kafka.common.serialization.{}Deserializer"
CALLS = [
    call
    for line in (DAMAGED / "manifest.json").read_text().splitlines()
    if "-decoder-class" in line and (call := json.loads(line.strip().rstrip(",").removeprefix("[")))["exit"] == 0
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call["out"]))
def test_the_words_of_a_real_kafka(call: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of kafka-dump-log with a decoder class is printed for its name, its former name and its short one."""
    monkeypatch.chdir(DAMAGED)
    arguments = [str(word) for word in call["argv"]]  # type: ignore[attr-defined]
    expected = (DAMAGED / "expected" / str(call["out"])).read_bytes()
    for package in PACKAGES:
        renamed = [
            re.sub(r"org\.apache\.kafka\.tools\.api\.(\w+)Decoder", package.format(r"\1"), each) for each in arguments
        ]
        outcome = dump(*renamed)
        assert (outcome.exit_code, outcome.output) == (0, expected)


def test_there_are_such_calls() -> None:
    """A real Kafka was asked for an integer, a long and no name at all."""
    assert len(CALLS) == 3


@pytest.mark.parametrize(("kind", "size"), [("Integer", 4), ("Long", 8)])
@given(number=st.integers(-(2**63), 2**63 - 1), more=st.binary(max_size=3))
def test_a_decoder_of_numbers_reads_the_first_bytes(kind: str, size: int, number: int, more: bytes) -> None:
    """A decoder reads as many bytes as it needs, and leaves alone what follows; one byte fewer is an error."""
    number >>= 64 - 8 * size
    data = number.to_bytes(size, "big", signed=True)
    for package in PACKAGES:
        decoder = class_decoder(package.format(kind))
        assert decoder is not None
        assert decoder(data + more) == number
        with pytest.raises(ValueError, match=rf"{size - 1} bytes, and {kind}Decoder takes {size}"):
            decoder(data[:-1])


@pytest.mark.parametrize(("kind", "size"), [("Short", 2), ("Integer", 4), ("Long", 8)])
def test_a_deserializer_of_numbers_takes_no_byte_more_or_fewer(kind: str, size: int) -> None:
    """A deserializer reads exactly as many bytes as it needs."""
    decoder = class_decoder(DESERIALIZER.format(kind))
    assert decoder is not None
    assert decoder(b"\xff" * size) == -1
    for wrong in (size - 1, size + 1):
        with pytest.raises(ValueError, match=f"{wrong} bytes, and {kind}Deserializer takes {size}"):
            decoder(bytes(wrong))


@pytest.mark.parametrize(
    "name",
    [
        *(package.format(kind) for package in PACKAGES for kind in ("String", "Default")),
        *(DESERIALIZER.format(kind) for kind in ("String", "ByteArray", "Bytes", "ByteBuffer")),
    ],
)
@pytest.mark.parametrize("output_format", FORMATS)
def test_text_and_bytes_are_shown_as_without_a_decoder(name: str, output_format: str, tmp_path: Path) -> None:
    """Decoders of text and of bytes change nothing in any format."""
    path = write_log(tmp_path, batch(0, (b"text \xff", None), key=b"key"))
    options = ("--key-decoder-class", name, "--value-decoder-class", name, "--format", output_format)
    assert dump(*options, path) == dump("--print-data-log", "--format", output_format, path)


def test_bytes_that_do_not_fit_are_a_finding(tmp_path: Path) -> None:
    """Where Kafka's run ends, the record prints as text beside a finding, and the next one is decoded."""
    path = write_log(tmp_path, batch(0, (b"abc", b"\0\0\1\2", b"\0\0\1\2rest"), key=b""))

    kafka = dump("--value-decoder-class", "Integer", path)
    lines = dump_jsonl("--value-decoder-class", "Integer", path)

    assert kafka.exit_code == lines.exit_code == 3
    assert [line.rpartition("payload: ")[2] for line in kafka.text.splitlines()[3:]] == ["abc", "258", "258"]
    assert "the value decoder raised ValueError: 3 bytes, and IntegerDecoder takes 4" in kafka.messages
    assert [record.get("data") for record in lines.of_kind("record")] == [None, 258, 258]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("integer", "did you mean Integer?"),
        ("org.apache.kafka.tools.api.StringDecodr", "did you mean org.apache.kafka.tools.api.StringDecoder?"),
        ("com.x.Avro", "it knows String, Default, Integer, Long and MODULE:NAME of Python"),
    ],
)
def test_a_class_that_raftlog_does_not_have(name: str, hint: str, tmp_path: Path) -> None:
    """An unknown class is one line with the name that may have been meant, and nothing is read."""
    outcome = dump("--value-decoder-class", name, write_log(tmp_path, batch()))
    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert outcome.messages == f"raftlog dump-log: {name}: raftlog has no such decoder; {hint}\n"


def test_the_document_names_every_class() -> None:
    """docs/dump-log.md has all classes, and no other."""
    table = (ROOT / "docs/dump-log.md").read_text().partition("## Decoder classes")[2]
    named = set(re.findall(r"`([A-Z][A-Za-z]*(?:Decoder|Deserializer))`", table))
    assert named == {name.rpartition(".")[2] for name in _DECODERS if "." in name}
