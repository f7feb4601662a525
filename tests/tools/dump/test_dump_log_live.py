# SPDX-License-Identifier: Apache-2.0
"""Directories of a running node, pipes, links, odd names, and readers that leave early."""

import os
import signal
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.storage.reading.file_source import FileSource
from raftlog.tools.dump.output_formats import FORMATS
from tests.tools.console import dump, dump_jsonl, run_process, start
from tests.tools.line_schema import read_lines
from tests.tools.made_logs import LOG_NAME, batch, write_log

BATCHES = [batch(offset, (b"x" * 200,)) for offset in range(40)]
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])


def change_after(monkeypatch: pytest.MonkeyPatch, reads: int, change: Callable[[], object]) -> None:
    """Do something after so many reads of a file that holds records."""
    read_at = FileSource.read_at
    left = [reads]

    def changing(source: FileSource, position: int, size: int) -> memoryview:
        data = read_at(source, position, size)
        left[0] -= 1
        if left[0] == 0:
            change()
        return data

    monkeypatch.setattr(FileSource, "read_at", changing)


@given(before=st.integers(0, len(LOG)), more=st.integers(0, len(LOG)), reads=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_a_file_that_grows(before: int, more: int, reads: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """While a writer appends, what is dumped is a front of the log, with a torn batch at its end at most."""
    path = write_log(tmp_path_factory.mktemp("log"), LOG[:before])

    def grow() -> None:
        with path.open("ab") as file:
            file.write(LOG[before : before + more])

    with pytest.MonkeyPatch.context() as monkeypatch:
        change_after(monkeypatch, reads, grow)
        outcome = dump_jsonl(path)

    lines = read_lines(outcome.output)
    offsets = [line["offset"] for line in lines if line["kind"] == "record"]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= before // SIZE
    assert outcome.exit_code in {0, 3}
    assert {line["rule"] for line in lines if line["kind"] == "finding"} <= {"tail-torn", "tail-zero"}


@given(after=st.integers(0, len(LOG)), reads=st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_a_file_that_shrinks(after: int, reads: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """While a node truncates its log, what is dumped is a front of the log as it was."""
    path = write_log(tmp_path_factory.mktemp("log"), LOG)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("raftlog.records.batches.iterator.CHUNK_SIZE", 1000)
        change_after(monkeypatch, reads, lambda: os.truncate(path, after))
        outcome = dump_jsonl(path)

    lines = read_lines(outcome.output)
    offsets = [line["offset"] for line in lines if line["kind"] == "record"]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= after // SIZE
    assert outcome.exit_code in {0, 3}


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.rename(path.with_suffix(".log.deleted"))])
def test_a_file_that_goes_while_it_is_read(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is deleted or renamed after it was opened is read to its end."""
    path = write_log(tmp_path, LOG)
    change_after(monkeypatch, 1, lambda: change(path))

    outcome = dump_jsonl(path)

    assert not path.exists()
    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert len(outcome.of_kind("record")) == len(BATCHES)


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.rename(path.with_suffix(".log.deleted"))])
@pytest.mark.parametrize("options", [(), ("--last", "1")])
def test_a_file_that_goes_before_it_is_read(
    options: tuple[str, ...], change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that a node deletes after its directory was listed is named in the output, which is incomplete."""
    write_log(tmp_path / "t-0", LOG)
    gone = write_log(tmp_path / "t-0", BATCHES[0], name="00000000000000000040.log")
    change_after(monkeypatch, 1, lambda: gone.exists() and change(gone))

    outcome = dump_jsonl(*options, tmp_path / "t-0")

    (said,) = outcome.of_kind("finding")
    assert outcome.exit_code == 1
    assert (said["rule"], said["file"], said["severity"]) == ("file-gone", str(gone), "harmless")
    assert outcome.messages == f"raftlog: {gone}: deleted since its directory was listed: the output lacks it\n"


def test_a_log_through_a_pipe() -> None:
    """Standard input is dumped as the file would be, damage in it too."""
    data = LOG[:1000] + b"\xff" * 100 + LOG[-SIZE:]

    outcome = run_process("dump-log", "--format", "jsonl", "-", data=data)

    lines = read_lines(outcome.output)
    assert outcome.exit_code == 2
    assert {line["file"] for line in lines} == {"-"}
    assert [line["offset"] for line in lines if line["kind"] == "record"] == [*range(1000 // SIZE), 39]
    assert sum(value for name, value in lines[-1].items() if name.endswith("_bytes")) == len(data)


def test_standard_input_that_is_a_file(tmp_path: Path) -> None:
    """A file that is redirected to standard input is read from its start, wherever its position is."""
    with write_log(tmp_path, LOG).open("rb") as file:
        file.seek(500)
        outcome = run_process("dump-log", "-", stdin=file)

    assert outcome.text.count("baseOffset") == len(BATCHES)
    assert outcome.text.startswith("Dumping -\nbaseOffset: 0 ")


def test_a_fifo(tmp_path: Path) -> None:
    """A named pipe is read to its end, as a log of its name."""
    path = tmp_path / LOG_NAME
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LOG,))
    writer.start()

    outcome = dump_jsonl(path)

    writer.join()
    assert outcome.exit_code == 0
    assert len(outcome.of_kind("record")) == len(BATCHES)


def snapshot_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """The modes, times of change and contents of a directory's files."""
    return {
        path.name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.iterdir())
    }


@pytest.mark.parametrize("output_format", FORMATS)
def test_nothing_is_written(output_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without write permission is dumped, and unchanged after; files are opened only for reading."""
    folder = tmp_path / "t-0"
    write_log(folder, LOG)
    (folder / "00000000000000000000.timeindex").write_bytes(bytes(24))
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = snapshot_of(folder)
    flags_seen = []
    os_open = os.open

    def recording(path: str, flags: int, *arguments: int) -> int:
        flags_seen.append(flags)
        return os_open(path, flags, *arguments)

    monkeypatch.setattr(os, "open", recording)
    outcome = dump("--all", "--format", output_format, folder)
    folder.chmod(stat.S_IRWXU)

    assert outcome.exit_code == 0
    assert snapshot_of(folder) == before
    assert {flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC) for flags in flags_seen} == {os.O_RDONLY}


def test_links_are_followed(tmp_path: Path) -> None:
    """Links to files and directories are read as what they lead to, under their own names; a dead one is an error."""
    log = write_log(tmp_path / "real-0", LOG)
    (tmp_path / "link-0").symlink_to(log.parent)
    (tmp_path / "00000000000000000007.log").symlink_to(log)
    (tmp_path / "dead.log").symlink_to(tmp_path / "nowhere")

    assert len(dump_jsonl(tmp_path / "link-0").of_kind("record")) == len(BATCHES)
    assert dump(tmp_path / "00000000000000000007.log").text.splitlines()[1] == "Log starting offset: 7"
    outcome = dump(tmp_path / "dead.log")
    assert outcome.exit_code == 1
    assert "dead.log: open failed: No such file" in outcome.messages


def test_a_link_to_its_own_directory(tmp_path: Path) -> None:
    """A partition that links to its parent is not followed around: partitions hold no partitions."""
    write_log(tmp_path / "t-0", LOG)
    (tmp_path / "t-0" / "u-0").symlink_to(tmp_path / "t-0")

    assert len(dump_jsonl(tmp_path).of_kind("file")) == 1


@pytest.mark.parametrize(
    "name",
    ["a b.log", "a,b.log", "[1].log", "*.log", "-a.log", "'\".log", "\u00fc\u4e2d.log", os.fsdecode(b"\xc3\x28.log")],
)
def test_odd_names(name: str, tmp_path: Path) -> None:
    """A file is dumped whatever its name, also if it looks like a pattern or has a comma."""
    path = write_log(tmp_path, LOG, name=name)

    assert len(dump_jsonl(path).of_kind("record")) == len(BATCHES)


def test_names_on_a_real_command_line(tmp_path: Path) -> None:
    """Names that are not UTF-8 are accepted on the command line, and a message about them is one line."""
    missing = os.fsencode(tmp_path) + b"/\xff\n.log"

    outcome = run_process("dump-log", missing)

    assert outcome.exit_code == 1
    assert len(outcome.complaints) == 1
    assert "Traceback" not in outcome.messages


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    """A name with a zero byte, or too long a name, is an error on one line."""
    for name in ("a\0b.log", "a" * 300 + ".log", ""):
        outcome = dump(f"{tmp_path}/x/{name}" if name else "")
        assert outcome.exit_code == 1
        assert len(outcome.complaints) == 1


def test_a_file_that_is_named_twice(tmp_path: Path) -> None:
    """A file is dumped as often as it is named."""
    path = write_log(tmp_path, LOG)

    assert len(dump_jsonl(path, path, "--files", f"{path},{path}").of_kind("file")) == 4


def test_patterns(tmp_path: Path) -> None:
    """A pattern gives its matches by name; one that matches directories gives their files."""
    for name in ("b-0", "a-0", "c-1"):
        write_log(tmp_path / name, LOG)
    write_log(tmp_path / "a-0", name="00000000000000000040.log")

    files = [line["file"] for line in dump_jsonl(f"{tmp_path}/*-0").of_kind("file")]

    assert [os.path.relpath(file, tmp_path) for file in files] == [
        f"a-0/{LOG_NAME}",
        "a-0/00000000000000000040.log",
        f"b-0/{LOG_NAME}",
    ]
    assert len(dump_jsonl(f"{tmp_path}/?-[01]/*.log").of_kind("file")) == 4


def test_a_log_directory(tmp_path: Path) -> None:
    """A log directory gives the logs of its partitions, by name, and nothing of other directories; --all adds files."""
    write_log(tmp_path / "b-0", LOG)
    write_log(tmp_path / "a-0", LOG)
    write_log(tmp_path / "no partition", LOG)
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (tmp_path / "a-0" / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")

    def names(*options: str) -> list[str]:
        return [os.path.relpath(line["file"], tmp_path) for line in dump_jsonl(*options, tmp_path).of_kind("file")]

    assert names() == [f"a-0/{LOG_NAME}", f"b-0/{LOG_NAME}"]
    assert names("--all") == ["meta.properties", f"a-0/{LOG_NAME}", "a-0/leader-epoch-checkpoint", f"b-0/{LOG_NAME}"]


def long_log(folder: Path) -> Path:
    """Write a log whose dump does not fit in a pipe."""
    return write_log(folder, LOG * 100)


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_reader_that_leaves(output_format: str, tmp_path: Path) -> None:
    """When the reader of the output leaves, the run ends quietly, with exit code 0."""
    with start("dump-log", "--format", output_format, long_log(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        messages = process.stderr.read()
        exit_code = process.wait()

    assert (exit_code, messages) == (0, b"")


def test_a_reader_of_messages_that_leaves(tmp_path: Path) -> None:
    """When the reader of standard error leaves, the run ends without a traceback too."""
    path = write_log(tmp_path, (LOG[:SIZE] + b"\xff" * 100) * 2000)
    with start("dump-log", path, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdout.close()
        exit_code = process.wait()

    assert first.startswith(b"Dumping")
    assert exit_code == 0


def test_an_interrupt(tmp_path: Path) -> None:
    """SIGINT ends the run with exit code 130 and without a word."""
    os.mkfifo(tmp_path / "never.log")
    # Opening the other end waits until the command has opened its own: it is inside its run by then.
    with start("dump-log", tmp_path / "never.log") as process, (tmp_path / "never.log").open("wb"):
        process.send_signal(signal.SIGINT)
        output, messages = process.communicate()

    assert (process.returncode, output, messages) == (130, b"", b"")


def test_a_full_disk(tmp_path: Path) -> None:
    """When the output cannot be written, that is one line and exit code 1."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with full.open("wb") as file:
        outcome = run_process("dump-log", write_log(tmp_path, LOG), stdout=file)

    assert outcome.exit_code == 1
    assert outcome.messages == "raftlog: [Errno 28] No space left on device\n"
