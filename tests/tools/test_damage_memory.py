# SPDX-License-Identifier: Apache-2.0
"""The cost of damage: undecodable batches that decompress to much must not add up, in any reader."""

import gc
import pickle
import re
import resource
from pathlib import Path

import pytest

from raftlog.errors import DecodeError, RaftLogError
from raftlog.records.batches.batch_run import BatchRun
from raftlog.records.batches.compression import CompressionType, compress
from raftlog.records.batches.iterator import BufferSource, split_runs
from raftlog.records.columns.columns import Chunk, read_columns, read_records
from raftlog.records.columns.record_areas import unpack_record_areas
from raftlog.records.columns.record_summaries import summarize_records
from raftlog.records.messages import primitives
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.spark.audit.survey_child import SurveyChild
from tests.strategies import batch_bytes
from tests.tools.console import run
from tests.tools.made_logs import LOG_NAME, batch, control_batch
from tests.tools.measured_process import MEBIBYTE, run_within
from tests.tools.spark.source_reads import rows

MOST_MEBIBYTES = 256
CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD]
COMMAND_IMPORTS = (
    "import numpy, json, pyarrow.parquet, raftlog.tools.audit_verbs.audit, raftlog.tools.auditing.run.full_audit,"
    " raftlog.tools.auditing.run.run, raftlog.tools.payloads.message_payloads, raftlog.tools.dump.dump_log,"
    " raftlog.tools.audit_verbs.verification, raftlog.tools.dump.explain, raftlog.tools.dump.table_text,"
    " raftlog.tools.dump.json_text,"
    " raftlog.records.columns.columns, raftlog.tools.auditing.survey.segment_survey, lz4.frame, cramjam, zstandard\n"
    "from raftlog.tools.command_line import main"
)
COMMAND_WORK = "code = main(arguments)"
READERS = {
    "read_columns": "for chunk in read_columns(open_source(arguments[0])): pass",
    "read_records": """
for start in range(0, os.path.getsize(arguments[0]), int(arguments[1])):
    try:
        for record in read_records(open_source(arguments[0]).read_at(start, int(arguments[1]))): pass
    except DecodeError as error:
        kept.append(without_frames(error))
""",
    "Arrow": """
for chunk in read_columns(open_source(arguments[0])):
    chunk.records.to_arrow()
    chunk.batches.to_arrow()
""",
    "spark records": "code = read_all('records')",
    "spark metadata": "code = read_all('metadata')",
    "spark control": "code = read_all('control')",
    "spark batches": "code = read_all('batches')",
}
READER_IMPORTS = """
import numpy, os, pyarrow, lz4.frame, cramjam, zstandard
from raftlog.errors import DecodeError, without_frames
from raftlog.records.columns.columns import read_columns, read_records
from raftlog.storage.reading.file_source import open_source
from tests.tools.spark.source_reads import rows
kept = []

def read_all(view):
    read = rows(arguments[0], view=view, mode="PERMISSIVE")
    return 0 if read else 9
"""


def broken(codec: CompressionType, size: int, base_offset: int = 0, *, is_control: bool = False) -> bytes:
    """Make a batch whose CRC holds, and whose records decompress to many zeros: none of them is a record."""
    attributes = codec | (0x20 if is_control else 0)
    return batch_bytes(compress(codec, bytes(size)), base_offset=base_offset, attributes=attributes, count=1)


def write_broken(directory: Path, codec: CompressionType, size: int, count: int) -> Path:
    """Write a segment of such batches, every second one of control records, in the directory of a partition."""
    (directory / "t-0").mkdir()
    path = directory / "t-0" / LOG_NAME
    kinds = [broken(codec, size, is_control=is_control) for is_control in (False, True)]
    with path.open("wb") as file:
        for offset in range(count):
            file.write(offset.to_bytes(8, "big") + kinds[offset % 2][8:])  # No CRC covers an offset.
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two thousand batches of 192 KiB each: 375 MiB in all, in a file of 150 KB."""
    return write_broken(tmp_path_factory.mktemp("many"), CompressionType.ZSTD, 192 * 1024, 2000)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty batches of 18 MiB each: 360 MiB in all, in a file of 12 KB."""
    return write_broken(tmp_path_factory.mktemp("few"), CompressionType.ZSTD, 18 * MEBIBYTE, 20)


@pytest.fixture(scope="module")
def voters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three control records of a million voters each, 15 MiB of them, in a file of 2 KB."""
    count = 1_000_000
    value = bytearray(4 + 2)  # The version and the leader's id, in front of two arrays; the second one is empty.
    primitives.write_unsigned(value, count + 1)
    value += b"\0\0\0\1\0" * count + b"\1\0"
    area = control_batch(0, b"\0\0\0\2", bytes(value))[61:]
    path = tmp_path_factory.mktemp("voters") / "__cluster_metadata-0" / LOG_NAME
    path.parent.mkdir()
    one = batch_bytes(compress(CompressionType.ZSTD, area), attributes=CompressionType.ZSTD | 0x20, count=1)
    path.write_bytes(b"".join(offset.to_bytes(8, "big") + one[8:] for offset in range(3)))
    return path


COMMANDS = [
    ["verify"],
    ["audit", "--engine", "local"],
    ["voters"],
    ["epochs"],
    ["dump-log"],
    ["dump-log", "--deep-iteration"],
    ["dump-log", "--print-data-log", "--decode-corrupt"],
    ["dump-log", "--print-data-log", "--limit", "9"],
    ["dump-log", "--cluster-metadata-decoder"],
    ["dump-log", "--format", "jsonl"],
    ["dump-log", "--format", "jsonl", "--shallow"],
    ["dump-log", "--format", "table"],
    ["dump-log", "--format", "table", "--decode-corrupt"],
    ["explain", "--offset", "1"],
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["many", "few", "voters"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_verb_needs_little_memory(
    command: list[str], shape: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each verb that reads records says that they are damaged, within 256 MiB of address space."""
    path = request.getfixturevalue(shape)
    output = ["--out", str(tmp_path / "out")] if command[0] == "audit" else []

    done = run_within(MOST_MEBIBYTES, COMMAND_IMPORTS, COMMAND_WORK, *command, *output, path)

    reads_records = command != ["dump-log"] and "--shallow" not in command
    assert done.outcome.exit_code == (2 if reads_records else 0), done.outcome.messages
    assert "fault of raftlog" not in done.outcome.messages


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["many", "few", "voters"])
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_needs_little_memory(reader: str, shape: str, request: pytest.FixtureRequest) -> None:
    """So do columns, records as objects, Arrow, and what a task of the Spark source does in its worker."""
    path = request.getfixturevalue(shape)
    size_of_one = path.stat().st_size // {"many": 2000, "few": 20, "voters": 3}[shape]

    limit = MOST_MEBIBYTES if reader.startswith("read_") else 4 * MOST_MEBIBYTES  # Arrow reserves address space ahead.

    done = run_within(limit, READER_IMPORTS, READERS[reader], path, str(size_of_one))

    shows_none = shape == "voters" and reader in ("spark records", "spark metadata")  # A view of data records.
    assert (done.outcome.exit_code, done.outcome.messages) == (9 if shows_none else 0, "")
    assert done.used_mebibytes < MOST_MEBIBYTES


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_no_codec_adds_up(codec: CompressionType, tmp_path: Path) -> None:
    """The output of each codec is released."""
    path = write_broken(tmp_path, codec, 2 * MEBIBYTE, 150)

    for command in (["verify"], ["dump-log", "--deep-iteration"], ["dump-log", "--format", "jsonl"]):
        done = run_within(MOST_MEBIBYTES, COMMAND_IMPORTS, COMMAND_WORK, *command, path)

        assert done.outcome.exit_code == 2, done.outcome.messages
        assert done.used_mebibytes < 64


@pytest.mark.slow
def test_the_child_of_a_worker_needs_little_memory(many: Path, tmp_path: Path) -> None:
    """On Spark, a file is read in a process beside the worker: within the limit too."""
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / LOG_NAME).write_bytes(broken(CompressionType.ZSTD, MEBIBYTE) + batch(1))
    child = SurveyChild(pickle.dumps(survey))
    try:
        (small,) = [task for task in find_tasks([str(tmp_path)]) if isinstance(task, SurveyTask)]
        (large,) = [task for task in find_tasks([str(many.parent.parent)]) if isinstance(task, SurveyTask)]
        child.surveyed(small)
        process = child._process
        assert process is not None
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmSize:\s*(\d+)", status)
        assert found is not None
        limit = int(found[1]) * 1024 + MOST_MEBIBYTES * MEBIBYTE
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))

        evidence = child.surveyed(large).evidence
    finally:
        child.end()

    assert "a record has no attributes" in evidence
    assert "there are 1900 more of these" in evidence


@pytest.mark.parametrize(
    "output_format", [pytest.param("text", marks=pytest.mark.slow), pytest.param("jsonl", marks=pytest.mark.volume)]
)
def test_a_batch_of_many_records_is_explained_in_little_memory(output_format: str, tmp_path: Path) -> None:
    """The fields of a batch are printed as they are found: 100,000 records are half a million lines."""
    path = tmp_path / LOG_NAME
    path.write_bytes(batch(0, (b"value",) * 100_000))

    done = run_within(
        MOST_MEBIBYTES, COMMAND_IMPORTS, COMMAND_WORK, "explain", path, "--offset", "7", "--format", output_format
    )

    assert (done.outcome.exit_code, done.outcome.messages) == (0, "")
    assert done.used_mebibytes < 64


def damaged_logs() -> list[bytes]:
    """Make logs in which each reader finds something to say: codecs, records, counts and tails that are bad."""
    sound = batch(0, (b"v",) * 3)
    flipped = bytearray(sound)
    flipped[-1] ^= 1
    bad = [broken(codec, 1000, is_control=is_control) for codec in CODECS for is_control in (False, True)]
    bad += [batch_bytes(b"?", attributes=codec, count=1) for codec in range(1, 8)]
    bad += [batch_bytes(b"", count=count) for count in (-1, 1)]
    bad += [batch_bytes(b"\x0c\0\0\0\x01\x01\0", count=2), bytes(flipped)]
    return [b"".join((sound, *bad, sound[:tail])) for tail in (0, 40, 61)]


def kept_frames() -> list[BaseException]:
    """Return the errors that are referenced together with frames."""
    gc.collect()
    held = [each for each in gc.get_objects() if isinstance(each, BaseException)]
    return [each for each in held if each.__traceback__ is not None and isinstance(each, RaftLogError)]


@pytest.mark.parametrize("number", range(3))
def test_errors_keep_no_frames(number: int, tmp_path: Path) -> None:
    """Whatever a reader gives or keeps of a damaged log, no error in it has a traceback, nor a context."""
    data = damaged_logs()[number]
    path = tmp_path / "t-0" / LOG_NAME
    path.parent.mkdir()
    path.write_bytes(data)
    runs = [piece for piece in split_runs(BufferSource(data)) if isinstance(piece, BatchRun)]
    before = kept_frames()
    kept = (
        list(read_columns(data)),
        [summarize_records(each) for each in runs],
        [list(unpack_record_areas(each)) for each in runs],
        [survey(task) for task in find_tasks([str(path)]) if isinstance(task, SurveyTask)],
        [run(*command, path) for command in COMMANDS if command[0] != "audit"],
        [rows(path, view=view, mode="PERMISSIVE") for view in ("records", "control", "batches")],
    )
    assert kept_frames() == before
    errors = [error for chunk in kept[0] if isinstance(chunk, Chunk) for _, error in chunk.errors]
    assert len(errors) >= len(CODECS)
    assert all(error.__context__ is None for error in errors)


@pytest.mark.parametrize("number", range(3))
def test_memory_of_read_batches_is_released_at_once(number: int) -> None:
    """No reader builds a cycle of an error and its frames: nothing is left for the collector of garbage."""
    data = damaged_logs()[number]
    gc.collect()
    gc.disable()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        for chunk in read_columns(data):
            del chunk
        with pytest.raises(DecodeError):
            list(read_records(data))
        gc.collect()
        cycles = [each for each in gc.garbage if isinstance(each, RaftLogError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert cycles == []
