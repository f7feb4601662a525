# SPDX-License-Identifier: Apache-2.0
"""What is compared inside a process, on which shapes, and the goals."""

from collections.abc import Mapping
from typing import Final

import attrs

from tests.benchmarks.measure import Mode

METADATA_LIKE: Final = "metadata-like"
METADATA_LOG: Final = "metadata-log"
THOUSANDS: Final = ("small", "tiny", "large")
UNCOMPRESSED: Final = (*THOUSANDS, METADATA_LIKE)
SPARK: Final = "spark-"
"""How the ids of all rows start that are measured on Spark."""
COMPRESSED: Final = ("small-lz4", "small-zstd", "small-snappy", "small-gzip")


@attrs.frozen
class Sizes:
    """How much is measured.

    Attributes:
        by_contender: how large inputs are, in MiB before compression: a contender that is slow gets the start of a log.
        shapes: which of them are measured.
        dumped: as ``by_contender``, of what whole programs print, so that their start weighs as in daily use.
        many_segments: how large each of many segments is.
        memory: how much to read to see how fast memory is.
        metadata_log: how often the real metadata log is repeated: up to this size.
        metadata_records: how many the log has of which a state is made.
        queried: how large the log is that is queried.
        mirrored: how large a log is that is compared with its mirror.
        largest_segment: that memory and the opening of a log are measured with.
        appended: how large all batches are that are appended one by one, by shape.
        control_batches: how many a state machine reads.
        voter_sets: how many a state machine knows when it is asked.
        snapshot: how large a snapshot is.
        committed: how large all records are that a quorum commits.
        committed_by_peer: how many records a peer commits, by how many are under way at once.
        rounds: of which the median counts.
    """

    by_contender: Mapping[str, float]
    shapes: frozenset[str]
    dumped: Mapping[Mode, float]
    many_segments: Mapping[Mode, float]
    memory: float
    metadata_log: float
    metadata_records: int
    queried: float
    mirrored: float
    largest_segment: float
    appended: Mapping[str, float]
    control_batches: int
    voter_sets: int
    snapshot: float
    committed: float
    committed_by_peer: Mapping[int, int]
    rounds: int


FULL: Final = Sizes(
    {"compiled": 64, "interpreted": 2, "aiokafka": 64, "kafka-python": 2, "kio": 1},
    frozenset({*UNCOMPRESSED, *COMPRESSED}),
    {"compiled": 256, "interpreted": 2},
    {"compiled": 64, "interpreted": 0.5},
    memory=256,
    metadata_log=200,
    metadata_records=1_000_000,
    queried=1024,
    mirrored=1024,
    largest_segment=1024,
    appended={"1-KiB-batches": 4, "small": 12, "large": 32},
    control_batches=1_000_000,
    voter_sets=10_000,
    snapshot=64,
    committed=4,
    committed_by_peer={1024: 100_000, 1: 500},
    rounds=5,
)
QUICK: Final = Sizes(
    {"compiled": 8, "interpreted": 0.25, "aiokafka": 8, "kafka-python": 0.5, "kio": 0.1},
    frozenset({"small", METADATA_LIKE, "small-zstd"}),
    {"compiled": 32, "interpreted": 0.25},
    {},
    memory=64,
    metadata_log=4,
    metadata_records=20_000,
    queried=32,
    mirrored=32,
    largest_segment=64,
    appended={"1-KiB-batches": 0.05, "small": 2},
    control_batches=100_000,
    voter_sets=1_000,
    snapshot=8,
    committed=1,
    committed_by_peer={1024: 20_000, 1: 100},
    rounds=3,
)


@attrs.frozen
class Work:
    """An operation of raftlog on some shapes, and what the peers do for the same end.

    Attributes:
        id, what: of the rows.
        ours, theirs: the operations.
        shapes: of the inputs.
        goals, interpreted_goals: by peer; 0 is none.
        is_by_size: whether bytes are counted, and not records. What reads only headers gets a whole log, whoever it is:
            a short one would be in the cache.
    """

    id: str
    what: str
    ours: str
    theirs: str
    shapes: tuple[str, ...]
    goals: Mapping[str, float]
    interpreted_goals: Mapping[str, float] = attrs.Factory(dict)
    is_by_size: bool = False


_COLUMNS: Final = "columns and CRC, all record fields"
_OBJECTS: Final = "lazy objects, four attributes read"
WORKS: Final = (
    Work("scan", "scan and CRC", "scan", "scan", THOUSANDS, {"aiokafka": 6, "kafka-python": 1.8}, is_by_size=True),
    Work(
        "scan", "scan and CRC", "scan", "scan", (METADATA_LIKE,), {"aiokafka": 3, "kafka-python": 17}, is_by_size=True
    ),
    Work("columns", _COLUMNS, "columns", "decode", ("small", "tiny"), {"aiokafka": 7, "kafka-python": 80, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", ("large",), {"aiokafka": 6, "kafka-python": 30, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", (METADATA_LIKE,), {"aiokafka": 4, "kafka-python": 60, "kio": 0}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-lz4",), {"aiokafka": 2}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-zstd", "small-snappy"), {"aiokafka": 1.5}),
    Work("columns", _COLUMNS, "columns", "decode", ("small-gzip",), {"aiokafka": 1.1}),
    Work("arrow", "Arrow table with keys and values", "arrow", "decode", UNCOMPRESSED, {"aiokafka": 3}),
    Work(
        "objects",
        _OBJECTS,
        "attributes",
        "attributes",
        THOUSANDS,
        {"aiokafka": 1.2, "kafka-python": 0},
        {"kafka-python": 1.5},
    ),
    Work(
        "objects",
        _OBJECTS,
        "attributes",
        "attributes",
        (METADATA_LIKE,),
        {"aiokafka": 0.9, "kafka-python": 0},
        {"kafka-python": 1.5},
    ),
    Work(
        "encode",
        "encode 1000-record batches",
        "encode",
        "encode",
        THOUSANDS,
        {"aiokafka": 5, "kafka-python": 0},
        {"kafka-python": 3},
    ),
)
