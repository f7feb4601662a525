# SPDX-License-Identifier: Apache-2.0
"""The cost of a dump: memory does not grow with the file, and the work for one batch is bounded."""

import gzip
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from raftlog.records import limits
from raftlog.records.batches.compression import CompressionType
from raftlog.tools.dump.output_formats import FORMATS
from tests.strategies import batch_bytes
from tests.tools.console import COMMAND, Outcome, dump_jsonl
from tests.tools.made_logs import LOG_NAME, batch, write_log

MEBIBYTE = 1024 * 1024

MEASURED = """
import os, re, sys
from raftlog.tools.command_line import main
sys.stdout = open(os.devnull, "w")
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    kibibytes = re.search(r"VmHWM:\\s*(\\d+)", status.read())[1]
sys.stderr.write(f"{int(kibibytes) // 1024}\\n")
sys.exit(code)
"""
"""What getrusage says would be no less than what the process of the tests has: Linux lets a child inherit it."""


def peak_mebibytes(*arguments: str | Path) -> tuple[int, Outcome]:
    """Run the command as a process and return how much memory it had at most, its output thrown away."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says how much memory a process had at most")
    done = subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, check=False)
    *messages, peak = done.stderr.splitlines()
    return int(peak), Outcome(done.returncode, b"", "\n".join(messages))


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 256 MiB, of batches of 64 records each."""
    path = tmp_path_factory.mktemp("large") / LOG_NAME
    some = b"".join(batch(64 * index, (b"x" * 1000,) * 64) for index in range(64))
    with path.open("wb") as file:
        while file.tell() < 256 * MEBIBYTE:
            file.write(some)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("output_format", FORMATS)
def test_memory_does_not_grow_with_the_file(output_format: str, large_log: Path) -> None:
    """A log of 256 MiB is dumped without records in less than 60 MiB."""
    peak, outcome = peak_mebibytes("dump-log", "--format", output_format, "--shallow", large_log)

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert peak < 60


@pytest.mark.slow
def test_memory_does_not_grow_with_the_records(large_log: Path) -> None:
    """The same log with all its records takes no more."""
    peak, outcome = peak_mebibytes("dump-log", "--format", "jsonl", large_log)

    assert outcome.exit_code == 0
    assert peak < 60


@pytest.mark.slow
@pytest.mark.parametrize("tail", [b"", b"\xff" * 100])
def test_memory_does_not_grow_with_a_hole(tail: bytes, tmp_path: Path) -> None:
    """Nor does a sparse file of 1 GiB of zeros, whether they are padding or a hole followed by data."""
    path = tmp_path / LOG_NAME
    with path.open("wb") as file:
        file.write(batch())
        file.truncate(1024 * MEBIBYTE)
        file.seek(0, 2)
        file.write(tail)

    peak, outcome = peak_mebibytes("dump-log", path)

    assert outcome.exit_code == (2 if tail else 3)
    assert peak < 60


def bomb(codec: CompressionType, size: int) -> bytes:
    """Make a batch whose records decompress to a size: a frame of 1 MiB of zeros, again and again."""
    part = bytes(MEBIBYTE)
    frame = gzip.compress(part, mtime=0) if codec is CompressionType.GZIP else zstandard.compress(part)
    return batch_bytes(frame * (size // MEBIBYTE), attributes=codec, count=1)


@pytest.mark.slow
@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.ZSTD])
def test_a_bomb_is_refused(codec: CompressionType, tmp_path: Path) -> None:
    """A batch that expands to 1 GiB is refused at the limit; memory stays near it, and the next batch is printed."""
    path = write_log(tmp_path, bomb(codec, 1024 * MEBIBYTE), batch(1))

    peak, outcome = peak_mebibytes("dump-log", "--format", "jsonl", path)

    assert outcome.exit_code == 2
    assert outcome.messages.endswith("[codec-size]")
    assert peak < limits.MAX_DECOMPRESSED_SIZE // MEBIBYTE + 100


def test_a_batch_above_the_limit_costs_no_other(tmp_path: Path) -> None:
    """Batches after one that expands above the limit are printed."""
    path = write_log(tmp_path, bomb(CompressionType.ZSTD, limits.MAX_DECOMPRESSED_SIZE + MEBIBYTE), batch(1))

    outcome = dump_jsonl(path)

    assert outcome.exit_code == 2
    assert [finding["rule"] for finding in outcome.of_kind("finding")] == ["codec-size"]
    assert [record["offset"] for record in outcome.of_kind("record")] == [1]


def test_a_length_is_not_trusted(tmp_path: Path) -> None:
    """A length of 2 GiB in a small file costs no memory: the run fits into a little address space."""
    data = bytearray(batch())
    data[8:12] = b"\x7f\xff\xff\xff"
    path = write_log(tmp_path, data, batch(1))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1024 * MEBIBYTE, 1024 * MEBIBYTE))

    done = subprocess.run(
        [*COMMAND, "dump-log", "--print-data-log", path], capture_output=True, check=False, preexec_fn=limit
    )

    assert done.returncode == 2
    assert b"payload: v" in done.stdout
