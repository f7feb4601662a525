# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line with place and rule, the right exit code, and the rest of the input is still read."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.rules import RULES
from raftlog.records.varint import varint
from raftlog.tools.dump.output_formats import FORMATS
from tests.strategies import batch_bytes, with_crc, with_length
from tests.tools.console import Outcome, dump, dump_jsonl, run_process
from tests.tools.made_logs import LOG_NAME, batch, control_batch, write_log

BEFORE = batch(0, (b"before",))
AFTER = batch(20, (b"after",))
FAR = batch(0x7654321076543210, (b"far",))
"""A batch without a zero at its start: what is left of it cannot be taken for padding."""
OTHER = batch(0, (b"elsewhere",))
POSITION = len(BEFORE)

SEVERITY_CODES = {"suspicious": 3, "damaged": 2}


def _area(*records: bytes) -> bytes:
    return b"".join(varint(len(record)) + record for record in records)


def _with_header(position: int, field: bytes) -> bytes:
    data = batch(10)
    return data[:position] + field + data[position + len(field) :]


RECORD = b"\0" + b"\0" + b"\0" + varint(1) + b"k" + varint(1) + b"v" + b"\0"
"""A record without its length: attributes, deltas, key, value, no headers."""

BAD_BATCHES: dict[str, tuple[bytes, str]] = {
    "a length of 2 GiB": (_with_header(8, b"\x7f\xff\xff\xff"), "batch-overrun"),
    "a negative length": (_with_header(8, b"\xff\xff\xff\xff"), "batch-length"),
    "a length of nothing": (_with_header(8, bytes(4)), "batch-length"),
    "a length below a header's": (_with_header(8, b"\0\0\0\x30"), "batch-length"),
    "a flipped byte": (_with_header(65, b"\xff"), "batch-crc"),
    "an unknown magic": (_with_header(16, b"\x03"), "batch-magic"),
    "a negative magic": (_with_header(16, b"\xff"), "batch-magic"),
    "a negative count": (batch_bytes(_area(RECORD), base_offset=10, count=-1), "batch-count"),
    "a count of nothing": (batch_bytes(_area(RECORD), base_offset=10, count=0), "batch-trailing"),
    "a count above": (batch_bytes(_area(RECORD), base_offset=10, last_offset_delta=1, count=2), "batch-missing"),
    "a vast count": (batch_bytes(_area(RECORD), base_offset=10, last_offset_delta=9, count=2**31 - 1), "batch-missing"),
    "an unknown codec": (batch_bytes(_area(RECORD), base_offset=10, attributes=5, count=1), "batch-codec"),
    "a stream that is none": (batch_bytes(b"no gzip", base_offset=10, attributes=1, count=1), "codec-stream"),
    "a varint without an end": (batch_bytes(b"\xff" * 12, base_offset=10, count=1), "varint-length"),
    "a varint out of range": (batch_bytes(b"\xff\xff\xff\xff\x7f", base_offset=10, count=1), "varint-range"),
    "a negative record length": (batch_bytes(varint(-1), base_offset=10, count=1), "record-length"),
    "a vast record length": (batch_bytes(varint(2**31 - 1), base_offset=10, count=1), "record-length"),
    "a negative key length": (batch_bytes(_area(b"\0\0\0" + varint(-2) + b"\x01\0"), count=1), "record-field"),
    "a vast value length": (batch_bytes(_area(b"\0\0\0\x01" + varint(2**30) + b"\0"), count=1), "record-field"),
    "a negative header count": (batch_bytes(_area(b"\0\0\0\x01\x01" + varint(-1)), count=1), "record-headers"),
    "a vast header count": (batch_bytes(_area(b"\0\0\0\x01\x01" + varint(2**31 - 1)), count=1), "record-headers"),
    "a null header key": (batch_bytes(_area(b"\0\0\0\x01\x01\x02\x01\x01"), count=1), "record-header-key"),
    "bytes after a record": (batch_bytes(_area(RECORD + b"!"), base_offset=10, count=1), "record-end"),
    "an unknown control type": (control_batch(10, b"\0\0\0\x2a", b"\0\0"), "control-type"),
    "a later control version": (control_batch(10, b"\0\0\0\x04", b"\0\x01\0"), "control-version"),
    "a short control key": (control_batch(10, b"\0", b"\0\0"), "control-key"),
    "no control key": (control_batch(10, None, b"\0\0"), "control-key"),
    "a short control value": (control_batch(10, b"\0\0\0\x06", b"\0"), "control-value"),
}


def dump_all(folder: Path, data: bytes, output_format: str, *options: str) -> Outcome:
    """Dump a log with some bytes in its middle, and another log after it."""
    bad = write_log(folder / "bad-0", BEFORE, data, AFTER)
    other = write_log(folder / "other-0", OTHER)
    return dump("--format", output_format, "--print-data-log", *options, bad, other)


def assert_one_line(outcome: Outcome, path: Path, rule: str) -> None:
    """Check that standard error is one line that names file, rule and severity."""
    (complaint,) = outcome.complaints
    assert complaint.startswith(f"raftlog: {path}, ")
    assert complaint.endswith(f"[{rule}]")
    assert f": {RULES[rule].severity.value}: " in complaint


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_costs_no_more_than_itself(name: str, output_format: str, tmp_path: Path) -> None:
    """One line has the place of a bad batch and the rule; the batches around it, and the next file, are printed."""
    data, rule = BAD_BATCHES[name]

    outcome = dump_all(tmp_path, data, output_format)

    assert_one_line(outcome, tmp_path / "bad-0" / LOG_NAME, rule)
    place = re.search(r", position (\d+), ", outcome.messages.replace(":", ","))
    assert place is not None
    assert POSITION <= int(place[1]) < POSITION + len(data)
    assert outcome.exit_code == SEVERITY_CODES[RULES[rule].severity.value]
    for word in ("before", "after", "elsewhere"):
        assert word in outcome.text


@pytest.mark.parametrize(
    "codec", [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD]
)
def test_bad_records_in_a_compressed_batch(codec: CompressionType, tmp_path: Path) -> None:
    """A fault inside a compressed area is reported at the batch: bytes inside it have no position in the file."""
    area = compress(codec, _area(RECORD) + b"\xff" * 12)
    data = batch_bytes(area, base_offset=10, attributes=codec, last_offset_delta=1, count=2)

    outcome = dump_all(tmp_path, data, "jsonl")

    assert_one_line(outcome, tmp_path / "bad-0" / LOG_NAME, "varint-length")
    (finding,) = outcome.of_kind("finding")
    assert (finding["position"], finding["offset"]) == (POSITION, 10)
    assert [record["offset"] for record in outcome.of_kind("record")] == [0, 10, 20, 0]


BAD_MESSAGES = {
    b"": "message-frame",
    b"\x02\x02\0": "message-frame",
    b"\x01\x63\0": "message-frame",
    b"\x01\x02\x7f": "message-field",
    b"\x01\x02\0\xff": "message-field",
}
"""Metadata records: nothing, an unknown frame, an unknown type, a later version that is cut, one that is cut."""


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("value", BAD_MESSAGES)
def test_a_metadata_record_that_does_not_decode(value: bytes, output_format: str, tmp_path: Path) -> None:
    """A metadata record that does not decode is one suspicious line, and its record prints all the same."""
    path = write_log(tmp_path, batch(10, (value,), key=None))

    outcome = dump("--format", output_format, "--cluster-metadata-decoder", path)

    assert_one_line(outcome, path, BAD_MESSAGES[value])
    assert "position 0, offset 10" in outcome.messages
    assert outcome.exit_code == 3
    undecoded = dump("--format", output_format, "--print-data-log", path)
    findings = outcome.text.count('"kind":"finding"')
    assert len(outcome.text.splitlines()) - findings == len(undecoded.text.splitlines())


@pytest.mark.parametrize("output_format", FORMATS)
@given(size=st.integers(1, 5000))
@example(size=1)
@example(size=16)
@example(size=17)
@example(size=18)
@example(size=61)
@example(size=5000)
@settings(deadline=None, max_examples=25)
def test_zeros_at_the_end(output_format: str, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Zeros after the last batch, however many, are one suspicious finding that says where and how many."""
    folder = tmp_path_factory.mktemp("zeros")
    bad = write_log(folder, BEFORE, bytes(size))
    other = write_log(folder / "other-0", OTHER)

    outcome = dump("--format", output_format, "--print-data-log", bad, other)

    assert outcome.exit_code == 3
    (complaint,) = outcome.complaints
    assert complaint.startswith(f"raftlog: {bad}, position {POSITION}: suspicious: ")
    assert complaint.endswith(f" {size} bytes [tail-zero]")
    assert "elsewhere" in outcome.text


@pytest.mark.parametrize("output_format", FORMATS)
@given(size=st.integers(1, 2 * len(FAR)))
@settings(deadline=None, max_examples=25)
def test_a_batch_that_is_cut(output_format: str, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file that ends inside a batch, inside its header too, is one suspicious finding; a whole batch is none."""
    folder = tmp_path_factory.mktemp("cut")
    whole, rest = divmod(size, len(FAR))
    path = write_log(folder, (FAR * 3)[:size])

    outcome = dump("--format", output_format, "--print-data-log", path)

    assert outcome.exit_code == (3 if rest else 0)
    assert len(outcome.complaints) == (1 if rest else 0)
    assert outcome.text.count("far") == whole
    if rest > 0:
        assert_one_line(outcome, path, "tail-torn")
        assert f"position {whole * len(FAR)}" in outcome.messages


@pytest.mark.parametrize("output_format", FORMATS)
def test_an_empty_file_is_clean(output_format: str, tmp_path: Path) -> None:
    """A file without a byte has a header line in each format, no finding, and exit code 0."""
    outcome = dump("--format", output_format, write_log(tmp_path))

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert len(outcome.text.splitlines()) >= 1


def test_a_file_that_cannot_be_found(tmp_path: Path) -> None:
    """A path that names nothing is an error on one line, and the next file is dumped."""
    missing = tmp_path / "missing.log"

    outcome = dump("--print-data-log", missing, write_log(tmp_path, OTHER))

    assert outcome.exit_code == 1
    assert outcome.messages == f"raftlog: {missing}: open failed: No such file or directory\n"
    assert "elsewhere" in outcome.text


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: (path.mkdir(), (path / "notes.txt").touch())])
def test_a_directory_without_logs(make: Callable[[Path], object], tmp_path: Path) -> None:
    """A directory that holds no logs is an error on one line, and the next path is dumped."""
    folder = tmp_path / "empty"
    make(folder)

    outcome = dump("--print-data-log", folder, write_log(tmp_path, OTHER))

    assert outcome.exit_code == 1
    assert outcome.messages == f"raftlog: {folder}: read failed: the directory holds no logs\n"
    assert "elsewhere" in outcome.text


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    """A pattern without a match is an error on one line."""
    outcome = dump(f"{tmp_path}/*.log")

    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert outcome.messages == f"raftlog: {tmp_path}/*.log: open failed: no file matches\n"


def _refuse(monkeypatch: pytest.MonkeyPatch, name: str, path: Path) -> None:
    """Make a call of the operating system refuse one path, also to a super-user."""
    original = getattr(os, name)

    def refusing(given_path: str, *arguments: int) -> object:
        if str(given_path) == str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), given_path)
        return original(given_path, *arguments)

    monkeypatch.setattr(os, name, refusing)


@pytest.mark.parametrize("options", [(), ("--last", "1"), ("--from", "1")])
def test_a_file_that_may_not_be_read(options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without permission is an error on one line, and the next file is dumped."""
    secret = write_log(tmp_path / "a-0", OTHER)
    good = write_log(tmp_path / "b-0", OTHER, batch(1, (b"elsewhere",)))
    _refuse(monkeypatch, "open", secret)

    outcome = dump_jsonl(*options, secret, good)

    assert outcome.exit_code == 1
    assert outcome.messages == f"raftlog: {secret}: open failed: Permission denied\n"
    assert outcome.of_kind("record")[-1]["value"] == "elsewhere"


def test_a_partition_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition without permission in a log directory is an error: exit code 0 would say that all was read."""
    write_log(tmp_path / "a-0", OTHER)
    write_log(tmp_path / "b-0", OTHER)
    _refuse(monkeypatch, "scandir", tmp_path / "a-0")

    outcome = dump_jsonl(tmp_path)

    assert outcome.exit_code == 1
    assert outcome.messages == f"raftlog: {tmp_path}/a-0: list failed: Permission denied\n"
    assert [each["value"] for each in outcome.of_kind("record")] == ["elsewhere"]


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read error is an error on one line that says where; the next file is dumped."""
    bad, good = write_log(tmp_path / "a-0", BEFORE), write_log(tmp_path / "b-0", OTHER)
    pread = os.pread
    calls = []

    def failing(descriptor: int, size: int, position: int) -> bytes:
        calls.append(position)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", failing)
    outcome = dump("--print-data-log", bad, good)

    assert outcome.exit_code == 1
    assert outcome.messages == f"raftlog: {bad}: read at position 0 failed: Input/output error\n"
    assert "elsewhere" in outcome.text


def test_damage_outranks_an_error_which_outranks_suspicion(tmp_path: Path) -> None:
    """Of several, damage decides the exit code, then a file that could not be read, then suspicion."""
    damaged = write_log(tmp_path / "a-0", BAD_BATCHES["a flipped byte"][0], AFTER)
    suspicious = write_log(tmp_path / "b-0", BEFORE, bytes(100))
    missing = tmp_path / "missing.log"

    assert dump(damaged, missing, suspicious).exit_code == 2
    assert dump(missing, suspicious).exit_code == 1
    assert dump(suspicious).exit_code == 3


DECODERS = """
import json

def raises(data):
    raise RuntimeError("line one\\nline two \\x1b[31m")

def half(data):
    if data == b"before":
        raise KeyError("half")
    return data.decode().upper()

def surrogate(data):
    return "\\ud800"

def recursive(data):
    made = []
    made.append(made)
    return made

def not_a_number(data):
    return float("nan")

not_callable = 3
"""


@pytest.fixture
def decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of decoders that do odd things."""
    (tmp_path / "odd_decoders.py").write_text(DECODERS)
    (tmp_path / "broken_decoders.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "odd_decoders"


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("name", ["raises", "surrogate", "recursive", "not_a_number"])
def test_a_decoder_that_raises(name: str, output_format: str, part: str, decoders: str, tmp_path: Path) -> None:
    """A decoder that raises, or does not return text, is one suspicious line per record; the record prints as it is."""
    path = write_log(tmp_path / "a-0", BEFORE, AFTER)

    outcome = dump("--format", output_format, f"--{part}-decoder-class", f"{decoders}:{name}", path)

    assert outcome.exit_code == 3
    assert len(outcome.complaints) == 2
    for complaint in outcome.complaints:
        assert f"suspicious: the {part} decoder raised " in complaint
        assert complaint.endswith("[decoder-raised]")
        assert complaint.isprintable()
    assert "before" in outcome.text
    assert "after" in outcome.text


def test_a_decoder_that_raises_at_times(decoders: str, tmp_path: Path) -> None:
    """A record that the decoder takes prints decoded beside one that it does not take."""
    path = write_log(tmp_path / "a-0", BEFORE, AFTER)

    outcome = dump_jsonl("--value-decoder-class", f"{decoders}:half", path)

    first, second = outcome.of_kind("record")
    assert (first["value"], "data" in first) == ("before", False)
    assert (second["data"], "value" in second) == ("AFTER", False)
    (finding,) = outcome.of_kind("finding")
    assert (finding["position"], finding["offset"], finding["rule"]) == (0, 0, "decoder-raised")


@pytest.mark.parametrize(
    "name",
    [
        "no_such_module:f",
        "odd_decoders:no_such_name",
        "odd_decoders",
        "odd_decoders:not_callable",
        ":f",
        "broken_decoders:f",
    ],
)
def test_a_decoder_that_is_none(name: str, decoders: str, tmp_path: Path) -> None:
    """A decoder that does not exist is an error on one line, before anything is read."""
    outcome = dump("--value-decoder-class", name, write_log(tmp_path / "a-0", BEFORE))

    assert (outcome.exit_code, outcome.output) == (1, b"")
    (complaint,) = outcome.complaints
    assert complaint.startswith(f"raftlog dump-log: {name}")


def test_a_codec_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches whose codec is not installed are listed; one line names the extra once, and the exit code is 1."""
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    data = with_crc(with_length(batch_bytes(b"\0" * 20, attributes=4, count=1)))
    path = write_log(tmp_path, data, data, AFTER)

    outcome = dump_jsonl(path)

    assert outcome.exit_code == 1
    assert outcome.messages.count("\n") == 1
    assert "raftlog[codecs]" in outcome.messages
    assert len(outcome.of_kind("batch")) == 3
    assert [record["value"] for record in outcome.of_kind("record")] == ["after"]


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_stream_that_is_closed(closed: str, tmp_path: Path) -> None:
    """Without standard output there is one line; without standard error or standard input the rest works."""
    path = write_log(tmp_path, BEFORE, bytes(100))
    path_of = "-" if closed == "0" else str(path)

    outcome = run_process("dump-log", path_of, preexec_fn=lambda: os.close(int(closed)))

    assert "Traceback" not in outcome.messages
    assert outcome.exit_code == (3 if closed == "2" else 1)
    assert len(outcome.complaints) == (0 if closed == "2" else 1)
