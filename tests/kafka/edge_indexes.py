# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a table of cases is read a row at a time, the longest rows too
"""Edge cases of what lies beside a segment: indexes, transaction indexes, producer snapshots, and of the options."""

import struct
from collections.abc import Iterator

import crc32c

from tests.kafka.edge_bytes import (
    BASE_TIME,
    LOG_APPEND_TIME,
    Batch,
    flipped,
    index,
    int16,
    int32,
    int64,
    message,
    records,
    time_index,
)
from tests.kafka.edge_case import LOG, Call, Case, shaped

INDEX = "00000000000000000000.index"
TIME_INDEX = "00000000000000000000.timeindex"
CHECKS = ("shallow", "verify", "sanity")


def _batch(offset: int, minutes: int) -> bytes:
    pairs = records((b"k", b"v"), (None, b"w"))
    time = BASE_TIME + minutes * 60_000
    return Batch(records=pairs, base_offset=offset, base_timestamp=time, max_timestamp=time).to_bytes()


BATCHES = [_batch(2 * n, n) for n in range(4)]
SIZE = len(BATCHES[0])
SEGMENT = b"".join(BATCHES)


def cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _offset_index_cases()
    yield from _time_index_cases()
    yield from _transaction_index_cases()
    yield from _producer_snapshot_cases()
    yield from _option_cases()


def _offset_index_cases() -> Iterator[Case]:
    good = [(1, 0), (3, SIZE), (5, 2 * SIZE)]
    for name, data in {
        "good": index(*good), "empty": b"", "zero-tail": index(*good) + bytes(48), "all-zero": bytes(80),
        "partial-entry": index(*good) + b"\0\0\0", "one-byte": b"\0", "first-offset-zero": index((0, 0), (3, SIZE)),
        "zero-inside": index((3, SIZE), (0, 0), (5, 2 * SIZE)), "unsorted": index((5, 2 * SIZE), (3, SIZE), (1, 0)),
        "wrong-offsets": index((0, 0), (2, SIZE), (7, 2 * SIZE)), "repeated": index((2, SIZE), (2, SIZE)),
        "negative-offset": index((-1, 0)), "descending-to-negative": index((1, 0), (-5, SIZE)),
        "inside-a-batch": index((3, SIZE + 5)), "at-the-end": index((7, 4 * SIZE)), "past-the-end": index((9, 5 * SIZE)),
        "negative-position": index((1, -1)),
    }.items():  # fmt: skip
        yield Case(f"index-{name}", {LOG: SEGMENT, INDEX: data}, shaped(CHECKS, INDEX))
    for size in (0, 11, 17, SIZE - 1, SIZE, SIZE + 1, -1):
        call = Call(f"max-{size}", ("--max-message-size", str(size), "--files", "{}/" + INDEX))
        yield Case(f"index-message-size-{size}", {LOG: SEGMENT, INDEX: index(*good)}, (call,))
    yield Case("index-without-log", {INDEX: index(*good)}, shaped(("shallow", "sanity"), INDEX))
    yield Case("index-empty-log", {LOG: b"", INDEX: index(*good)}, shaped(CHECKS, INDEX))
    yield Case("index-empty-both", {LOG: b"", INDEX: b""}, shaped(CHECKS, INDEX))
    yield Case("index-torn-log", {LOG: SEGMENT[:-5], INDEX: index(*good, (7, 3 * SIZE))}, shaped(CHECKS, INDEX))
    based = {
        "00000000000000000100.log": _batch(100, 0) + _batch(102, 1),
        "00000000000000000100.index": index((1, 0), (3, SIZE)),
    }
    yield Case("index-based", based, shaped(CHECKS, "00000000000000000100.index"))
    yield Case(
        "index-based-zero-tail",
        based | {"00000000000000000100.index": index((1, 0)) + bytes(16)},
        shaped(CHECKS, "00000000000000000100.index"),
    )
    legacy = message(1, 0, b"k", b"v") + message(0, 1, b"k", b"v")
    yield Case(
        "index-legacy",
        {LOG: legacy, INDEX: index((0, 0), (1, len(message(1, 0, b"k", b"v"))))},
        shaped(("shallow",), INDEX),
    )


def _time_index_cases() -> Iterator[Case]:
    offsets = index((1, 0), (3, SIZE), (5, 2 * SIZE))
    good = [(BASE_TIME, 1), (BASE_TIME + 60_000, 3), (BASE_TIME + 120_000, 5)]
    for name, data in {
        "good": time_index(*good), "empty": b"", "zero-tail": time_index(*good) + bytes(24), "all-zero": bytes(36),
        "partial-entry": time_index(*good) + bytes(5), "unsorted": time_index(*good[::-1]), "repeated": time_index(good[1], good[1]),
        "wrong-timestamp": time_index((BASE_TIME + 1, 1)), "wrong-offset": time_index((BASE_TIME, 2)),
        "past-the-end": time_index((BASE_TIME, 99)), "last-batch": time_index((BASE_TIME + 180_000, 7)),
        "before-the-base": time_index((BASE_TIME, -3)), "negative-timestamp": time_index((-1, 1)),
        "offsets-descend": time_index((BASE_TIME, 5), (BASE_TIME + 60_000, 3)),
    }.items():  # fmt: skip
        yield Case(f"timeindex-{name}", {LOG: SEGMENT, INDEX: offsets, TIME_INDEX: data}, shaped(CHECKS, TIME_INDEX))
    entries = time_index(*good)
    yield Case("timeindex-empty-index", {LOG: SEGMENT, INDEX: b"", TIME_INDEX: entries}, shaped(CHECKS, TIME_INDEX))
    zero_index = {LOG: SEGMENT, INDEX: offsets + bytes(40), TIME_INDEX: entries}
    yield Case("timeindex-zero-tail-index", zero_index, shaped(CHECKS, TIME_INDEX))
    # The tool makes the missing index: one call a folder.
    yield Case("timeindex-without-index", {LOG: SEGMENT, TIME_INDEX: entries}, shaped(("shallow",), TIME_INDEX))
    yield Case("timeindex-without-index-sanity", {LOG: SEGMENT, TIME_INDEX: entries}, shaped(("sanity",), TIME_INDEX))
    yield Case("timeindex-without-log", {INDEX: offsets, TIME_INDEX: entries}, shaped(("shallow",), TIME_INDEX))
    late = Batch(records=records((b"k", b"v")), attributes=LOG_APPEND_TIME, max_timestamp=BASE_TIME + 9).to_bytes()
    append_time = {LOG: late, INDEX: b"", TIME_INDEX: time_index((BASE_TIME + 9, 0))}
    yield Case("timeindex-append-time", append_time, shaped(CHECKS, TIME_INDEX))
    bad = {LOG: flipped(SEGMENT, SIZE + 62, 3), INDEX: offsets, TIME_INDEX: entries}
    yield Case("timeindex-bad-records", bad, shaped(("shallow",), TIME_INDEX))


def _transaction_index_cases() -> Iterator[Case]:
    name = "00000000000000000000.txnindex"

    def entry(version: int, first: int, last: int, stable: int) -> bytes:
        return int16(version) + int64(7) + int64(first) + int64(last) + int64(stable)

    good = entry(0, 3, 9, 2) + entry(0, 20, 20, 19)
    for case, data in {
        "good": good, "empty": b"", "partial-entry": good + entry(0, 30, 31, 25)[:-1], "version-1": entry(1, 3, 9, 2),
        "version-negative": entry(-1, 3, 9, 2), "unsorted": good[34:] + good[:34], "overlap": entry(0, 3, 9, 2) + entry(0, 5, 7, 1),
        "negative": entry(0, -1, -2, -3), "zeros": bytes(70), "based-below": entry(0, 3, 9, 2), "partial-only": good[:33],
    }.items():  # fmt: skip
        file = "00000000000000000100.txnindex" if case == "based-below" else name
        yield Case(f"txnindex-{case}", {file: data}, shaped(CHECKS, file))


def _producer_snapshot_cases() -> Iterator[Case]:
    name = "00000000000000000010.snapshot"

    def entry(producer: int, last_sequence: int, last_offset: int, delta: int, current: int = -1) -> bytes:
        times = int64(BASE_TIME) + int32(4) + int64(current)
        return int64(producer) + int16(1) + int32(last_sequence) + int64(last_offset) + int32(delta) + times

    def snapshot(body: bytes, version: int = 1, crc_error: int = 0) -> bytes:
        return int16(version) + struct.pack(">I", crc32c.crc32c(body) ^ crc_error) + body

    two = int32(2) + entry(7, 5, 9, 2) + entry(8, 0, 3, 0, 3)
    for case, data in {
        "good": snapshot(two), "none": snapshot(int32(0)), "no-batch": snapshot(int32(1) + entry(7, -1, -1, 0)),
        "no-batch-open": snapshot(int32(1) + entry(7, -1, -1, 0, 5)), "no-batch-sequence": snapshot(int32(1) + entry(7, 4, -1, 2)),
        "sequence-wrap": snapshot(int32(1) + entry(7, 1, 9, 4)), "open-at-zero": snapshot(int32(1) + entry(7, 1, 9, 0, 0)),
        "same-producer": snapshot(int32(2) + entry(7, 5, 9, 2) + entry(7, 6, 10, 0)), "negative-delta": snapshot(int32(1) + entry(7, 5, 9, -2)),
        "bad-crc": snapshot(two, 1, 1), "version-0": snapshot(two, 0), "version-2": snapshot(two, 2), "empty": b"", "one-byte": b"\0",
        "short-header": b"\0\1\0\0", "cut": snapshot(two)[:-1], "count-high": snapshot(int32(3) + two[4:]),
        "count-low": snapshot(int32(1) + two[4:]), "count-negative": snapshot(int32(-1)), "count-vast": snapshot(int32(2**31 - 1)),
        "trailing-bytes": snapshot(two + b"\1"), "zeros": bytes(40),
        "order": snapshot(int32(4) + b"".join(entry(producer, 5, 9, 2) for producer in (900, 2, 2**40, 33))),
    }.items():  # fmt: skip
        yield Case(f"snapshot-{case}", {name: data}, shaped(("shallow",), name))


def _option_cases() -> Iterator[Case]:
    """Names and arguments that the tool refuses or ignores."""
    file = "{}/" + LOG
    arguments: dict[str, tuple[str, ...]] = {
        "none": (), "help": ("--help",), "version": ("--version",), "no-files": ("--deep-iteration",), "unknown": ("--frobnicate", "--files", file),
        "files-twice": ("--files", file, "--files", file), "files-missing-value": ("--files",), "positional": ("--files", file, "extra.log"),
        "max-bytes-text": ("--max-bytes", "many", "--files", file), "equals": (f"--files={file}",), "short": ("--deep", "--files", file),
        "missing-file": ("--files", "{}/5.log"), "unknown-suffix": ("--files", "{}/a.log.deleted"), "no-dot": ("--files", "{}/plain"),
        "unknown-then-log": ("--files", "{}/a.log.deleted," + file), "no-dot-then-log": ("--files", "{}/plain," + file),
        "not-a-number": ("--files", "{}/abc.log"), "checkpoint-no-dash": ("--files", "{}/5.checkpoint"),
        "checkpoint-text": ("--files", "{}/a-b.checkpoint"), "folder": ("--files", "{}"), "two-commas": ("--files", file + ",," + file),
        "trailing-comma": ("--files", file + ","), "empty-name": ("--files", ""), "number-in-folder": ("--files", "{}/./" + LOG),
        "two-decoders": ("--offsets-decoder", "--cluster-metadata-decoder", "--files", file),
        "key-decoder": ("--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--print-data-log", "--files", file),
        "value-decoder": ("--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder", "--files", file),
        "value-decoder-bare": ("--value-decoder-class", "--files", file),
        "decoder-unknown": ("--value-decoder-class", "no.such.Decoder", "--files", file),
        "verify-log": ("--verify-index-only", "--files", file), "sanity-log": ("--index-sanity-check", "--files", file),
        "upper-case": ("--files", "{}/B.LOG"), "hidden": ("--files", "{}/.log"),
    }  # fmt: skip
    value = Batch(records=records((bytes(8), int32(258)), (bytes(7) + b"\2", b"\xff\xff\xff\xff"))).to_bytes()
    files = {LOG: value, "a.log.deleted": value, "plain": value, "abc.log": value, "5.checkpoint": value}
    files |= {"a-b.checkpoint": value, "B.LOG": value, ".log": value}
    yield Case("options", files, tuple(Call(name, given) for name, given in arguments.items()))
