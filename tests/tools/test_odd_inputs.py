# SPDX-License-Identifier: Apache-2.0
"""Inputs that are not files: every verb refuses devices by name, and copies a pipe up to a limit."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from raftlog.errors import OptionError, StorageError
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.reading.file_source import (
    DEFAULT_SPOOL_LIMIT,
    SPOOL_LIMIT_VARIABLE,
    FileSource,
    parse_size,
    read_file,
)
from raftlog.storage.reading.segment_reader import open_segment
from tests.other_processes import started
from tests.tools.console import COMMAND, run, run_process
from tests.tools.made_logs import LOG_NAME, batch
from tests.tools.spark.source_reads import rows

VERBS = {
    "dump-log": ["{}"],
    "dump-log jsonl": ["--format", "jsonl", "--all", "{}"],
    "dump-log limit": ["--limit", "1", "{}"],
    "verify": ["{}"],
    "verify messages": ["--messages", "{}"],
    "audit": ["--out", "OUT", "{}"],
    "explain": ["{}", "--offset", "0"],
    "explain position": ["{}", "--position", "0"],
    "diff": ["{}", "{}"],
    "quorum": ["{}"],
    "voters": ["{}"],
    "epochs": ["{}"],
    "state": ["{}"],
}
LOG = batch(0, (b"value",) * 3)


def arguments_of(verb: str, path: str | Path, folder: Path) -> list[str]:
    """Return a command line over one path."""
    return [verb.split()[0], *(word.format(path).replace("OUT", str(folder / "out")) for word in VERBS[verb])]


def device(name: str) -> str:
    """Return the path of a character device, if this system has it."""
    path = f"/dev/{name}"
    if not (os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode)):
        pytest.skip(f"there is no {path}")
    return path


@pytest.mark.parametrize("name", ["zero", "urandom", "null"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_device_is_refused_by_name(verb: str, name: str, tmp_path: Path) -> None:
    """Each verb ends at once, with exit code 1 and one line that names the device."""
    path = device(name)

    outcome = run(*arguments_of(verb, path, tmp_path))

    assert outcome.exit_code == 1
    told = outcome.messages + outcome.text
    if verb != "audit":  # Whose findings are in its tables.
        assert f"{path}: " in told
        assert "it is a character device" in told


@pytest.mark.parametrize("verb", VERBS)
def test_a_socket_is_refused_by_name(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise a socket that has a name, also one that is called as a segment is."""
    monkeypatch.chdir(tmp_path)  # The path of a socket may not be long.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(LOG_NAME)

        outcome = run(*arguments_of(verb, LOG_NAME, tmp_path))

    assert outcome.exit_code == 1
    assert verb == "audit" or "it is a socket" in outcome.messages + outcome.text


def test_a_block_device_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a block device, before it is opened."""
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    from raftlog.storage.reading import file_source

    monkeypatch.setattr(file_source, "_KINDS", [(lambda mode: True, file_source._KINDS[2][1])])
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(StorageError, match="it is a block device"):
        FileSource(str(tmp_path))


def test_the_library_refuses_a_path_that_is_not_a_file(tmp_path: Path) -> None:
    """Sources, readers of segments, the Spark source and a log's directory say what is there instead of a file."""
    zero = device("zero")
    for path, kind in ((zero, "a character device"), (str(tmp_path), "a directory")):
        with pytest.raises(StorageError, match=f"it is {kind}"):
            FileSource(path)
        with pytest.raises(StorageError, match=f"it is {kind}"):
            read_file(path, 100)
        with pytest.raises(StorageError, match=f"it is {kind}"):
            open_segment(path)
    with pytest.raises(OptionError, match="not a file"):
        rows(zero)
    (tmp_path / LOG_NAME).symlink_to(zero)
    with pytest.raises(StorageError, match="not a regular file"):
        FileLog.open(LocalFileSystem(), str(tmp_path))


@pytest.mark.parametrize("verb", VERBS)
def test_standard_input_that_is_a_device_is_refused(verb: str, tmp_path: Path) -> None:
    """A terminal, or /dev/zero, is not a piped log."""
    with open(device("zero"), "rb") as zero:
        outcome = run_process(*arguments_of(verb, "-", tmp_path), stdin=zero)

    assert outcome.exit_code == 1
    assert verb == "audit" or "it is a character device" in outcome.messages + outcome.text


@pytest.mark.parametrize("verb", VERBS)
def test_a_pipe_without_end_is_refused(verb: str, tmp_path: Path) -> None:
    """Each verb ends once a pipe exceeds the limit, says how to raise it, and leaves no files."""
    spool = tmp_path / "spool"
    spool.mkdir()
    verb_name, *words = arguments_of(verb, "-", tmp_path)
    command = [*COMMAND, verb_name, "--spool-limit", "1M", *words]
    with (
        started(["cat", device("zero")], stdout=subprocess.PIPE) as endless,
        started(
            command,
            stdin=endless.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(spool)},
        ) as process,
    ):
        assert endless.stdout is not None
        endless.stdout.close()
        output, messages = process.communicate()

    assert process.returncode == 1
    assert verb == "audit" or b"more than 1048576 bytes" in output + messages
    assert verb == "audit" or b"--spool-limit" in output + messages
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize("verb", ["dump-log", "verify", "explain"])
@pytest.mark.parametrize("room", [-1, 0, 1])
def test_a_pipe_is_read_up_to_the_limit(verb: str, room: int) -> None:
    """A pipe of as many bytes as the limit is read whole; one byte more is refused."""
    words = arguments_of(verb, "-", Path())
    outcome = run_process(words[0], "--spool-limit", str(len(LOG) + room), *words[1:], data=LOG)

    assert outcome.exit_code == (1 if room < 0 else 0)
    assert ("more than" in outcome.messages + outcome.text) == (room < 0)


def test_the_limit_is_for_pipes_alone(tmp_path: Path) -> None:
    """A file is read whatever its size, also one that is redirected to standard input."""
    path = tmp_path / LOG_NAME
    path.write_bytes(LOG)
    assert run("dump-log", "--spool-limit", "1", path).exit_code == 0
    with path.open("rb") as file:
        assert run_process("dump-log", "--spool-limit", "1", "-", stdin=file).exit_code == 0


def test_an_option_is_for_one_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment says what no option does, and is afterwards as it was."""
    monkeypatch.delenv(SPOOL_LIMIT_VARIABLE, raising=False)
    run("dump-log", "--spool-limit", "5", tmp_path)
    assert SPOOL_LIMIT_VARIABLE not in os.environ
    monkeypatch.setenv(SPOOL_LIMIT_VARIABLE, "7")
    run("verify", "--spool-limit", "5", tmp_path)
    assert os.environ[SPOOL_LIMIT_VARIABLE] == "7"


@pytest.mark.parametrize(("value", "said"), [("10", "more than 10 bytes"), ("ten", "RAFTLOG_SPOOL_LIMIT: 'ten' is")])
def test_the_environment_limits_too(value: str, said: str) -> None:
    """An invalid limit is an error when a pipe is read."""
    outcome = run_process("dump-log", "-", data=LOG, env=os.environ | {SPOOL_LIMIT_VARIABLE: value})

    assert outcome.exit_code == 1
    assert said in outcome.messages


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("17", 17), ("1K", 1024), ("3M", 3 << 20), ("2G", DEFAULT_SPOOL_LIMIT), ("1T", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    """A size is a number of bytes, or of units of 1024 and its powers."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5G", "1k", "1 G", "\u0661", "9" * 19])
def test_texts_that_are_not_sizes(text: str) -> None:
    """Anything else is refused, by the option as well."""
    with pytest.raises(ValueError, match="not a number of bytes"):
        parse_size(text)
    assert run("dump-log", f"--spool-limit={text}", "-").exit_code == 1


def test_a_full_temporary_directory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no disk space for the copy, the error says so, not that the pipe is bad."""
    outcome = run_process(
        "dump-log", "-", data=LOG * 50, env=os.environ | {"PYTHONPATH": ""}, preexec_fn=_limit_of_file_size
    )

    assert outcome.exit_code == 1
    assert "-: copy to a temporary file failed: File too large" in outcome.messages


def _limit_of_file_size() -> None:
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
