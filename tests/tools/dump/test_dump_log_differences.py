# SPDX-License-Identifier: Apache-2.0
"""Where dump-log differs from Kafka's on damage, as docs/dump-log.md states it; damage never gives exit code 0."""

from pathlib import Path

import pytest

from raftlog.records.messages.releases import DIALECTS, Release
from tests.kafka.edge_bytes import LOG_APPEND_TIME, NONE, ZSTD, Batch, int16, int32, message, records
from tests.tools.console import run
from tests.tools.made_logs import LOG_NAME

SHAPES = {
    "shallow": (),
    "shallow, one by one": ("--limit", "99"),
    "deep": ("--deep-iteration",),
    "print": ("--print-data-log",),
    "jsonl": ("--format", "jsonl"),
    "jsonl, shallow": ("--format", "jsonl", "--shallow"),
    "table": ("--format", "table"),
    "table, shallow": ("--format", "table", "--shallow"),
}
PAIRS = records((b"k0", b"v0"), (None, b"v1"), (b"k2", None))
SOUND = Batch(records=PAIRS).to_bytes()
NEXT = Batch(records=PAIRS, base_offset=6).to_bytes()


def second(**fields: object) -> bytes:
    """Make the batch after a sound one."""
    return Batch(records=PAIRS, base_offset=3, **fields).to_bytes()  # type: ignore[arg-type]


def flipped_length() -> bytes:
    """Make a batch whose length leads into the one after it."""
    data = bytearray(second())
    data[11] += 3
    return bytes(data)


def flipped_value() -> bytes:
    """Make a batch whose CRC does not hold, with a length that is right."""
    data = bytearray(second())
    data[-1] ^= 1
    return bytes(data)


TORN = Batch(records=records((b"k", bytes(range(1, 250)) * 8)), base_offset=3).to_bytes()
CUT = 1024 - len(SOUND)
CASES = {
    # What stands behind the sound batch: lines with offsets, of these with isvalid false, exit code, rule.
    "length is not trusted": (flipped_length() + NEXT, 2, 0, 2, "batch-crc"),
    "length is trusted": (flipped_value() + NEXT, 3, 1, 2, "batch-crc"),
    "length is trusted at the end": (flipped_value(), 2, 1, 2, "batch-crc"),
    "few zeros at the end": (second()[:-7] + bytes(7), 2, 1, 2, "batch-crc"),
    "zeros from a sector on": (TORN[:CUT] + bytes(len(TORN) - CUT), 1, 0, 3, "tail-zero"),
    "17 zeros": (bytes(17), 1, 0, 3, "tail-zero"),
    "18 zeros": (bytes(18), 1, 0, 3, "tail-zero"),
    "codec 4": (second(attributes=ZSTD), 2, 0, 0, None),
    "codec 5": (second(attributes=5, body=b"x") + NEXT, 3, 0, 2, "batch-codec"),
    "codec 6": (second(attributes=6, body=b"x") + NEXT, 3, 0, 2, "batch-codec"),
    "codec 7": (second(attributes=7, body=b"x") + NEXT, 3, 0, 2, "batch-codec"),
    "codec 6 of a control batch": (second(attributes=38, body=b"x") + NEXT, 3, 0, 2, "batch-codec"),
    "a count of -1": (second(count=-1) + NEXT, 3, 0, 2, "batch-count"),
    "a count of 0": (Batch(base_offset=3).to_bytes() + NEXT, 3, 0, 0, None),
    "codec 6 in magic 1": (message(1, 3, b"k", b"v", 6), 1, 0, 2, "batch-codec"),
    "zstd in magic 1": (message(1, 3, b"k", b"v", ZSTD), 1, 0, 2, "codec-stream"),
    "log append time": (second(attributes=LOG_APPEND_TIME), 2, 0, 0, None),
    "unused bits": (second(attributes=NONE | 0x7F80), 2, 0, 0, None),
    "the highest bit": (second(attributes=-32768), 2, 0, 0, None),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_bytes_that_fail_a_check_are_reported(name: str, shape: str, tmp_path: Path) -> None:
    """Each shape of output gives the same exit code, names the rule, and in Kafka's words prints the lines stated."""
    rest, lines, invalid, exit_code, rule = CASES[name]
    path = tmp_path / LOG_NAME
    path.write_bytes(SOUND + rest)

    outcome = run("dump-log", *SHAPES[shape], path)

    assert outcome.exit_code == exit_code, outcome.messages
    assert rule is None or f"[{rule}]" in outcome.messages
    if "jsonl" not in shape and "table" not in shape:
        assert outcome.text.count("baseOffset: ") == lines
        assert outcome.text.count("magic: 2") - outcome.text.count("isvalid: true") <= invalid
        assert sum("baseOffset" in line and "isvalid: false" in line for line in outcome.text.split("\n")) == invalid


def transaction_value(state: int) -> bytes:
    """Make the value of a transaction without partitions."""
    return int16(0) + (5).to_bytes(8, "big") + int16(1) + int32(60_000) + bytes([state]) + int32(0) + bytes(16)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
@pytest.mark.parametrize("state", [-1, 0, 7, 8, 127])
def test_an_unknown_state_of_a_transaction_is_reported(state: int, dialect: Release, tmp_path: Path) -> None:
    """In each dialect a state beyond those that Kafka has names is a finding, and is printed all the same."""
    path = tmp_path / LOG_NAME
    pair = (int16(0) + int16(2) + b"id", transaction_value(state & 0xFF))
    path.write_bytes(Batch(records=records(pair)).to_bytes())

    outcome = run("dump-log", "--transaction-log-decoder", "--dialect", dialect.name, path)

    is_known = 0 <= state <= 7
    assert outcome.exit_code == (0 if is_known else 3), outcome.messages
    assert (f"unknown transaction state {state}" in outcome.messages) == (not is_known)
    printed = "state=" if dialect < DIALECTS["4.1"] else f'"transactionStatus":{state}'
    assert printed in outcome.text


OVERRUN = second()[:8] + int32(79) + second()[12:]
TAILS = {
    # What stands behind the sound batch: how many bytes Kafka's format calls invalid at the end; 0 is no line.
    "nothing": (b"", 0),
    "17 zeros": (bytes(17), 17),
    "18 zeros": (bytes(18), 0),
    "a batch that is cut": (second()[:-1], 89),
    "zeros from a sector on": (TORN[:CUT] + bytes(len(TORN) - CUT), len(TORN)),
    "zeros from a sector on, and more": (TORN[:CUT] + bytes(len(TORN) - CUT + 17), len(TORN) + 17),
    "a length beyond the end": (OVERRUN, len(OVERRUN)),
    "a length beyond the end, before a batch": (OVERRUN[:-1] + NEXT, 0),
    "letters, and zeros": (b"x" * 40 + bytes(100), 140),
    "12 bytes and 5 zeros": (b"\xff" * 12 + bytes(5), 17),
    "12 bytes and 6 zeros": (b"\xff" * 12 + bytes(6), 0),
    "17 bytes before a batch": (b"\xff" * 17 + NEXT, 0),
    "a damaged batch, and 17 zeros": (flipped_value() + bytes(17), 17),
}


@pytest.mark.parametrize("options", [(), ("--limit", "99"), ("--deep-iteration",)])
@pytest.mark.parametrize("name", TAILS)
def test_the_tail_has_one_line(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """Bytes after the last batch are counted once, with the zeros after them; not with `--max-bytes`."""
    rest, size = TAILS[name]
    path = tmp_path / LOG_NAME
    path.write_bytes(SOUND + rest)

    lines = run("dump-log", *options, path).text.splitlines()
    limited = run("dump-log", *options, "--max-bytes", "99999", path).text.splitlines()

    said = [line for line in lines if line.startswith("Found")]
    assert said == ([f"Found {size} invalid bytes at the end of {LOG_NAME}"] if size else [])
    assert limited == [line for line in lines if line not in said]
