# SPDX-License-Identifier: Apache-2.0
"""Kafka's own RecordsIterator beside the rule about records that are longer than their batch as it is stored."""

import subprocess
from pathlib import Path

import pytest

from raftlog.records.batches.accumulator import BatchAccumulator
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.raft_frames import too_long_for_raft
from tests.hang_limit import HANG_S
from tests.kafka import dump_tool
from tests.kafka.controller import install_server
from tests.kafka.java_programs import class_path
from tests.raft_frames import batch_with_a_record_longer_by
from tests.strategies import TIMESTAMP

pytestmark = dump_tool.marks("Kafka's code")


def read_as_kafka(batches: list[bytes], folder: Path) -> list[str]:
    """How many records Kafka's raft reader reads of each batch, or what it throws."""
    names = []
    for number, batch in enumerate(batches):
        (folder / str(number)).write_bytes(batch)
        names.append(str(number))
    compiled = class_path(install_server(), Path(__file__).with_name("ReadRaft.java"))
    command = ["java", *dump_tool.JVM_OPTIONS, "-cp", compiled, "ReadRaft", *names]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=HANG_S)
    return done.stdout.splitlines()


def test_the_limit_is_kafkas(tmp_path: Path) -> None:
    """A record as long as its stored batch is read, first or after others; with one byte more, Kafka throws."""
    shapes = [(difference, before) for difference in (-200, -1, 0, 1, 2, 200) for before in (0, 1, 5)]
    batches = [batch_with_a_record_longer_by(difference, before=before) for difference, before in shapes]

    read = read_as_kafka(batches, tmp_path)

    for (difference, before), batch, found in zip(shapes, batches, read, strict=True):
        if too_long_for_raft(RecordBatch(batch)) is None:
            assert (difference <= 0, found) == (True, str(before + 1))
        else:
            assert difference > 0
            assert "is larger than the entire size of the batch" in found


@pytest.mark.parametrize("codec", CompressionType)
def test_kafka_reads_what_the_accumulator_compresses(codec: CompressionType, tmp_path: Path) -> None:
    """Long and short values that compress well, by each codec, come back from Kafka's raft reader."""
    batches = []
    for size in (1, 40, 90, 150, 3000, 100_000):
        accumulator = BatchAccumulator(1, 0, compression_type=codec)
        accumulator.append(1, [b"x" * size, *[b"y" * 30] * 50], TIMESTAMP)
        batches += [each.data for each in accumulator.drain()]

    assert read_as_kafka(batches, tmp_path) == ["51"] * 6
