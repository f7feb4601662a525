# SPDX-License-Identifier: Apache-2.0
"""``raftlog free`` prints what may be removed in order, and writes nothing anywhere."""

import errno
import fcntl
import json
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from raftlog.errors import DirectoryLockedError
from raftlog.tools.free import planning
from raftlog.tools.free.disk_usage import DiskFile
from raftlog.tools.free.free_lines import FreePlan, shell_word, text_lines
from raftlog.tools.free.offers import Offer, counted
from raftlog.tools.free.rules import FREE_RULES, INDEX
from raftlog.tools.free.surveyed import survey_directories
from raftlog.tools.terminal.standard_error import printable
from tests.checkout import ROOT
from tests.tools.console import COMMAND, run
from tests.tools.free.made_directories import (
    LOG,
    QUORUM,
    copied_node,
    free,
    kept,
    log_of,
    names_of,
    offered_by,
    partition,
)
from tests.tools.made_logs import flip

SCHEMA = json.loads((ROOT / "docs/free-1.schema.json").read_text())


def test_each_line_is_of_the_schema_and_adds_up() -> None:
    """Numbers count from 1, steps never go back, and what comes free adds up to the summary."""
    lines = free(QUORUM)
    for line in lines:
        Draft202012Validator(SCHEMA).validate(line)
    offers = [each for each in lines if each["kind"] == "offer"]
    (summary,) = (each for each in lines if each["kind"] == "free_summary")
    assert [each["number"] for each in offers] == list(range(1, len(offers) + 1))
    assert [each["step"] for each in offers] == sorted(each["step"] for each in offers)
    totals = [sum(each["freed_bytes"] for each in offers[: index + 1]) for index in range(len(offers))]
    assert [each["total_bytes"] for each in offers] == totals
    assert (summary["total_bytes"], summary["need_bytes"], summary["suffices"]) == (totals[-1], None, None)


def test_rules_are_in_order_of_their_steps() -> None:
    """No rule of a less harmless step comes before one of a more harmless step, and ids are unique."""
    steps = [rule.step.number for rule in FREE_RULES]
    assert steps == sorted(steps)
    assert len({rule.id for rule in FREE_RULES}) == len(FREE_RULES)


def test_text_has_the_same_offers(tmp_path: Path) -> None:
    """Each path of the JSON lines is in the table, in the same order, with what comes free."""
    node = copied_node(tmp_path)
    text = run("free", "-j1", node).text
    offers = [each for each in free(node) if each["kind"] == "offer"]
    positions = [text.index(path) for each in offers for path in (each["path"], *each["others"])]
    assert positions == sorted(positions)
    assert "1. " not in text
    assert text.index("2. Covered") < text.index("3. Written again")
    assert "bytes come free by" in text


def test_paths_are_whole_on_a_narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator copies them."""
    node = copied_node(tmp_path / ("long-" * 30))
    monkeypatch.setattr("raftlog.tools.terminal.text_width.output_width", lambda: 40)
    text = run("free", "-j1", node).text
    assert all(each["path"] in text for each in free(node) if each["kind"] == "offer")


@given(st.binary(min_size=1, max_size=12).filter(lambda name: not set(name) & set(b"\0")))
@example(b"-rf")
@example(b"~")
@example(b"it's $(x)`y` \\ *\n\xff")
@example("\u202e7".encode())
def test_a_shell_reads_each_path_as_it_is(name: bytes) -> None:
    """Any name, in one line; a first hyphen does not make it an option."""
    word = shell_word(os.fsdecode(name))
    assert printable(word) == word
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == (b"./" + name if name.startswith(b"-") else name)


def test_a_need_stops_the_list(tmp_path: Path) -> None:
    """At the last byte that is needed nothing more is offered; one byte more needs the next offer."""
    node = copied_node(tmp_path)
    offers = [each for each in free(node) if each["kind"] == "offer"]
    second = offers[1]["total_bytes"]
    assert len(names_of(free(node, "--need", str(second)))) == 2
    assert len(names_of(free(node, "--need", str(second - 1)))) == 2
    assert len(names_of(free(node, "--need", str(second + 1)))) == 3
    assert names_of(free(node, "--need", "0")) == []


def test_whether_it_is_enough_decides_the_exit_code(tmp_path: Path) -> None:
    """Exit code 0 if all that is needed comes free and stays free, and 3 if one byte is missing."""
    node = copied_node(tmp_path)
    *_, summary = free(node)
    lasting = summary["lasting_bytes"]
    assert lasting == sum(each["freed_bytes"] for each in free(node)[:-1] if each.get("step") in {1, 2})
    assert lasting < summary["total_bytes"]
    enough, short = (run("free", "-j1", node, "--need", str(need)) for need in (lasting, lasting + 1))
    assert (enough.exit_code, short.exit_code) == (0, 3)
    assert "That is enough" in enough.text
    assert "3. Written" not in enough.text
    assert "1 more" in short.text
    assert f"; {lasting} stay free" in short.text
    assert [free(node, "--need", str(need))[-1]["suffices"] for need in (lasting, lasting + 1)] == [True, False]


def test_without_a_need_nothing_has_to_go(tmp_path: Path) -> None:
    """For no byte, nothing is listed, which is not the same as that nothing can be."""
    outcome = run("free", "-j1", copied_node(tmp_path), "--need", "0")
    assert outcome.exit_code == 0
    assert "Nothing has to be removed" in outcome.text
    assert "Nothing to offer" not in outcome.text


def test_a_deleted_partition_is_offered_as_a_whole(tmp_path: Path) -> None:
    """Its directory, with the bytes of all its files; the partition itself stays, and a stray and a future one."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    gone = partition(tmp_path / f"orders-0.{'a' * 32}-delete", "00000000000000000000.log", "00000000000000000000.index")
    partition(tmp_path / "orders-0", "00000000000000000000.log")
    for name in ("orders-3-delete", "orders-3.7-delete", f"orders-03.{'a' * 32}-delete"):  # Kafka writes no such name.
        partition(tmp_path / name, "00000000000000000000.log")
    deleted = "00000000000000000000.log.deleted"
    others = [f"orders-1.{'b' * 32}-stray", f"orders-2.{'b' * 32}-future"]
    for name in others:
        partition(tmp_path / name, deleted, "00000000000000000001.log")
    (offer,) = (each for each in free(tmp_path) if each["kind"] == "offer")
    assert (offer["path"], offer["is_directory"], offer["size_bytes"]) == (str(gone), True, 2)
    assert offered_by("deleted-partition", tmp_path) == [gone.name]
    assert set(kept(tmp_path)) == set(others)
    assert f"  {gone}/\n" in run("free", "-j1", tmp_path).text


def test_a_metadata_log_is_never_a_deleted_partition(tmp_path: Path) -> None:
    """A directory that somebody has renamed like that stays, and so does one that a link leads to."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    renamed = partition(tmp_path / f"{LOG}.{'a' * 32}-delete", "00000000000000000000.log")
    elsewhere = partition(tmp_path / "elsewhere", "00000000000000000000.log")
    (tmp_path / f"orders-0.{'a' * 32}-delete").symlink_to(elsewhere)
    assert offered_by("deleted-partition", tmp_path) == []
    assert set(kept(tmp_path)) == {renamed.name}


def test_a_damaged_log_gives_exit_code_2(tmp_path: Path) -> None:
    """The damage is named on standard error, and nothing of the log is offered."""
    node = copied_node(tmp_path)
    flip(log_of(node) / "00000000000000000193.log", 70)
    outcome = run("free", "-j1", node)
    assert outcome.exit_code == 2
    assert "[batch-crc]" in outcome.messages
    assert "Nothing to offer" in outcome.text
    assert "Never remove these:" in outcome.text


def test_a_running_node_is_refused(tmp_path: Path) -> None:
    """While a process holds the lock, removing files would be wrong: one line, and exit code 1."""
    node = copied_node(tmp_path)
    with locked(node):
        done = subprocess.run([*COMMAND, "free", "-j1", str(node)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"raftlog free: {node}: its node is running: stop it first"]


def test_the_lock_of_the_directory_that_a_link_leads_to_counts(tmp_path: Path) -> None:
    """A partition's directory that is named by a symbolic link is in the log directory of another node."""
    node = copied_node(tmp_path)
    link = tmp_path / "other" / LOG
    link.parent.mkdir()
    link.symlink_to(log_of(node))
    assert str(node) in survey_directories([str(link)], 1).log_directories
    with locked(node):
        done = subprocess.run([*COMMAND, "free", "-j1", str(link)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [f"raftlog free: {node}: its node is running: stop it first"]


def test_a_node_that_is_started_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is looked at again after the audit, before anything is printed."""
    looks: list[str] = []

    def starting(directory: str) -> None:
        looks.append(directory)
        if len(looks) > 1:
            raise DirectoryLockedError(directory)

    node = copied_node(tmp_path)
    monkeypatch.setattr("raftlog.tools.free.surveyed.check_not_locked", starting)
    outcome = run("free", "-j1", node)
    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert looks == [str(node)] * 2


@contextmanager
def locked(node: Path) -> Iterator[None]:
    """Hold the lock of a log directory, as its node does."""
    with (node / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize(
    ("path", "cause"), [("missing", "no such directory"), ("file", "not a local"), ("s3://b/k", "not a local")]
)
def test_only_local_directories_are_taken(path: str, cause: str, tmp_path: Path) -> None:
    """A missing path, a file and a URI are refused in one line."""
    (tmp_path / "file").touch()
    outcome = run("free", path if "://" in path else tmp_path / path)
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert cause in outcome.messages


def test_sums_say_what_they_do_not_show(tmp_path: Path) -> None:
    """A file with another name elsewhere frees nothing; files on two file systems are added up, which is said."""
    node = copied_node(tmp_path)
    assert "several" not in run("free", "-j1", node).text
    (tmp_path / "other name").hardlink_to(log_of(node) / "00000000000000000151-0000000004.checkpoint")
    (linked,) = (each for each in free(node) if each.get("path", "").endswith("151-0000000004.checkpoint"))
    assert linked["freed_bytes"] == 0
    assert "several names" in run("free", "-j1", node).text
    files = [DiskFile(name, 1, 512, (device, 1), 1) for device, name in enumerate("ab")]
    plan = FreePlan(list(counted(Offer(INDEX, file.path, (file,)) for file in files)), [])
    assert any("several file systems" in line for line in text_lines(plan))
    plan = FreePlan(list(counted([Offer(INDEX, "a", (files[0],))])), [])
    assert "512 bytes come free by 1 removal." in list(text_lines(plan))
    assert not any("several" in line for line in text_lines(plan))


def test_a_need_is_about_one_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories on two file systems cannot be added up."""
    nodes = copied_node(tmp_path, "n3"), copied_node(tmp_path, "n4")
    monkeypatch.setattr(planning, "device_of", lambda path: "n3" in path)
    outcome = run("free", "-j1", *nodes, "--need", "1")
    assert (outcome.exit_code, len(outcome.complaints)) == (1, 1)
    assert "several file systems" in outcome.messages
    assert run("free", "-j1", *nodes).exit_code == 0


def test_it_works_without_a_free_byte(tmp_path: Path) -> None:
    """As a process that may not write one byte to any file, with two readers, it prints the same; no file changes."""
    node = copied_node(tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(tmp_path.rglob("*"))}
    command = [*COMMAND, "free", "-j2", "--format", "jsonl", str(node)]
    environment = dict(os.environ, TMPDIR=str(tmp_path / "missing"), HOME=str(tmp_path / "missing"))

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=no_room)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("free", "-j1", "--format", "jsonl", node).text
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(tmp_path.rglob("*"))} == before


def test_no_file_is_opened_for_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every open is for reads only, on a file system that refuses all others."""
    node, right = copied_node(tmp_path), os.open
    opened = []

    def reads_only(path: str, flags: int, *rest: int, **more: int | None) -> int:
        opened.append(path)
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return right(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", reads_only)
    assert run("free", "-j1", node).exit_code == 0
    assert str(log_of(node) / "00000000000000000193.log") in opened
