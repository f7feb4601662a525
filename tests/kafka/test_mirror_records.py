# SPDX-License-Identifier: Apache-2.0
"""MirrorMaker's own classes read and write records as ours do, and refuse what ours refuse, but for two things."""

import random
import subprocess
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.java_text import displayed
from raftlog.records.messages.mirrors.mirror_records import (
    Checkpoint,
    CheckpointKey,
    Heartbeat,
    HeartbeatKey,
    MirrorRecord,
    MirrorRecordType,
    OffsetSync,
    OffsetSyncKey,
    mirror_record_type,
    read_mirror_record,
    write_mirror_record,
)
from tests.hang_limit import HANG_S
from tests.kafka import dump_tool
from tests.kafka.controller import install_jars
from tests.kafka.java_programs import class_path
from tests.records.messages.mirrors.mirror_corpus import A, B, records_of
from tests.records.outcome import outcome

pytestmark = dump_tool.marks("Kafka's MirrorMaker")

RELEASES: Final = ("3.9.1", "4.3.1")
DRAWN: Final = 3000
TEXTS: Final = (
    b"",
    b"a",
    b"eu",
    b"orders",
    "\u00e9\u2028\U0001f600".encode(),
    b"\0",
    b"a\xff",
    b"\xed\xa0\x80",
    b"x" * 300,
)
NUMBERS: Final = (0, 1, -1, 127, 2**31 - 1, -(2**31))
OFFSETS: Final = (*NUMBERS, 2**63 - 1, -(2**63))

Bytes = tuple[MirrorRecordType, bytes, bytes]
"""The type, the key and the value of a record."""

_HERE: Final = Path(__file__).resolve().parent / "mirror"


def answers(release: str, records: Iterable[Bytes]) -> list[list[str] | None]:
    """Return the fields that a release reads, and key and value as it writes them; None for what it refuses."""
    classes = class_path(install_jars(_HERE / "pom.xml", release), _HERE / "MirrorRecords.java")
    command = ["java", *dump_tool.JVM_OPTIONS, "-cp", classes, "MirrorRecords"]
    text = "".join(f"{kind.name} {key.hex()} {value.hex()}\n" for kind, key, value in records)
    done = subprocess.run(command, input=text, check=True, capture_output=True, encoding="ascii", timeout=HANG_S)
    return [None if line == "refused" else line.split(" ") for line in done.stdout.splitlines()]


def fields(record: MirrorRecord) -> list[str]:
    """Return what the Java program prints of a record's fields."""

    def text(value: str) -> str:
        return f"={displayed(value).encode().hex()}"

    match record:
        case OffsetSync(OffsetSyncKey(topic, partition), upstream, downstream):
            return [text(topic), str(partition), str(upstream), str(downstream)]
        case Checkpoint(CheckpointKey(group, topic, partition), upstream, downstream, metadata):
            return [text(group), text(topic), str(partition), str(upstream), str(downstream), text(metadata)]
        case Heartbeat(HeartbeatKey(source, target), timestamp):
            return [text(source), text(target), str(timestamp)]
    raise AssertionError(record)


def drawn_records() -> Iterator[Bytes]:
    """Yield the records of a real mirror, and others drawn."""
    for node, topic, kind in (
        (A, "mm2-offset-syncs.B.internal", MirrorRecordType.OFFSET_SYNC),
        (B, "A.checkpoints.internal", MirrorRecordType.CHECKPOINT),
        (B, "heartbeats", MirrorRecordType.HEARTBEAT),
    ):
        for record in records_of(node, topic):
            yield kind, bytes(record.key or b""), bytes(record.value or b"")
    drawn = random.Random(22)

    def text() -> str:
        return drawn.choice(TEXTS).decode("utf-8", "surrogateescape")

    for _ in range(DRAWN):
        offsets = drawn.choice(OFFSETS), drawn.choice(OFFSETS)
        made: MirrorRecord
        match drawn.randrange(3):
            case 0:
                made = OffsetSync(OffsetSyncKey(text(), drawn.choice(NUMBERS)), *offsets)
            case 1:
                made = Checkpoint(CheckpointKey(text(), text(), drawn.choice(NUMBERS)), *offsets, text())
            case _:
                made = Heartbeat(HeartbeatKey(text(), text()), offsets[0])
        key, value = write_mirror_record(made)
        yield mirror_record_type(made), key, value or b""


def damaged(seed: Bytes, drawn: random.Random) -> Iterator[Bytes]:
    """Yield a record with key or value cut at every place, with bytes more, and with each byte changed."""
    kind, *parts = seed
    for which in (0, 1):
        part = parts[which]
        others = [*(part[:end] for end in range(len(part))), part + b"!", part + bytes(9)]
        for position in range(len(part)):
            others += [part[:position] + bytes([byte]) + part[position + 1 :] for byte in drawn.sample(range(256), 6)]
        for other in others:
            yield kind, *((other, parts[1]) if which == 0 else (parts[0], other))


@pytest.mark.parametrize("release", RELEASES)
def test_records(release: str) -> None:
    """Real and drawn records have the same fields; those whose texts are UTF-8 are written with the same bytes."""
    records = list(drawn_records())
    rewritten = 0
    for (kind, key, value), answer in zip(records, answers(release, records), strict=True):
        read = read_mirror_record(kind, key, value)
        assert answer is not None
        assert answer[:-2] == fields(read)
        if "efbfbd" not in "".join(answer[:-2]):  # Java does not keep bytes that are not UTF-8.
            assert answer[-2:] == [f"={key.hex()}", f"={value.hex()}"]
            rewritten += 1
    assert len(records) == 52 + 4 + 41 + DRAWN
    assert rewritten > DRAWN // 3


@pytest.mark.parametrize("release", RELEASES)
def test_damaged_records(release: str) -> None:
    """What Kafka refuses, we refuse; what we refuse and Kafka reads has another version, or bytes left over."""
    drawn = random.Random(23)
    seeds = [each for each in drawn_records() if max(map(len, each[1:])) < 40][::60]
    records = [other for seed in seeds for other in damaged(seed, drawn)]
    verdicts = {"read": 0, "refused": 0, "by us alone": 0}
    for (kind, key, value), answer in zip(records, answers(release, records), strict=True):
        read = outcome(partial(read_mirror_record, kind, key, value))
        if not isinstance(read, InvalidRecordError):
            assert not isinstance(read, DecodeError)
            assert answer is not None, (kind, key, value)
            assert answer[:-2] == fields(read)
            verdicts["read"] += 1
            continue
        is_ours = read.rule == "message-version" or "left over" in read.reason
        assert answer is None or is_ours, (kind, key, value, read)
        verdicts["refused" if answer is None else "by us alone"] += 1
    assert min(verdicts.values()) > 100
