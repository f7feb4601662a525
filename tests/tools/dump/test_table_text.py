# SPDX-License-Identifier: Apache-2.0
"""The table: one line for each batch and record, nothing that a terminal would act upon, times that people read."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.value_text import time_text
from tests.golden_files import GOLDEN
from tests.tools.console import dump
from tests.tools.made_logs import LOG_NAME, batch, control_batch, write_log

NODE = GOLDEN / "data-topics/data/n1"


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1700000000123, "2023-11-14T22:13:20.123Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "253402300800000"),
        (2**63 - 1, "9223372036854775807"),
        (-1, "-"),
    ],
)
def test_times(timestamp: int, text: str) -> None:
    """A time is ISO 8601 in UTC with milliseconds; no timestamp is a dash, one that no calendar has a number."""
    assert time_text(timestamp) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_timestamp(timestamp: int) -> None:
    """Every timestamp has a text of its own width at most."""
    assert 0 < len(time_text(timestamp)) <= 24


DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
ODD_CHARACTERS = "\x1b\x9b\r\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\U000e0041"


@given(st.text() | st.text(ODD_CHARACTERS))
def test_printable_text(text: str) -> None:
    """Printable text is one line without control and direction characters; applying it twice changes nothing."""
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in shown)
    assert not any(unicodedata.bidirectional(character) in DIRECTIONS for character in shown)
    assert printable(shown) == shown


@given(data=st.binary(max_size=40), header=st.binary(max_size=10))
@settings(deadline=None, max_examples=30)
def test_a_record_is_one_line(data: bytes, header: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a record holds, it takes one line, and no escape sequence reaches the terminal."""
    builder = RecordBatchBuilder(0)
    builder.append(0, data, b"\x1b[2J" + data, [(header, data)])
    path = write_log(tmp_path_factory.mktemp("log"), builder.build())

    text = dump("--format", "table", path).text

    assert len(text.splitlines()) == 5
    assert "\x1b" not in text


def test_every_golden_file_is_a_table() -> None:
    """All files of a node print, with as many lines of records as there are records."""
    outcome = dump("--format", "table", "--all", NODE)
    records = dump("--format", "jsonl", "--all", NODE).of_kind("record")

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert len(records) < len(outcome.text.splitlines())
    assert "None" not in dump("--format", "table", NODE).text


def test_values_without_text(tmp_path: Path) -> None:
    """A value that a decoder refuses is shown with its error or as it is, and null as null, never as Python's None."""
    path = write_log(
        tmp_path / "__cluster_metadata-0",
        batch(0, (b"garbage", None)),
        batch(2, (b"keyless", b""), key=None),
        control_batch(4, b"\0", b"x"),
        control_batch(5, b"\0\0\0\x2a", b"x"),
    )
    offsets = write_log(tmp_path / "__consumer_offsets-0", batch(0, (b"garbage", None), key=b"\x00\x63"))

    text = dump("--format", "table", path, offsets).text

    assert "None" not in text
    assert text.count("Error at ") == 3
    assert "UNKNOWN(42)" in text


def test_the_words_for_a_batch(tmp_path: Path) -> None:
    """A batch's line says its offsets, codec, producer, and whether it is control, transactional or damaged."""
    path = NODE / "txn-0" / LOG_NAME
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    text = dump("--format", "table", "--shallow", write_log(tmp_path, data)).text

    assert "CRC DOES NOT HOLD" in text
    assert "transactional, producer " in text
    assert "control, transactional" in dump("--format", "table", "--shallow", path.parent).text
    assert "zstd" in dump("--format", "table", NODE / "c-zstd-0" / LOG_NAME).text
