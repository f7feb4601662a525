# SPDX-License-Identifier: Apache-2.0
"""A second look that fails takes nothing back: damage stays told, and so is what failed."""

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.records.rules import Severity
from raftlog.storage.reading import file_source
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement import judgement
from raftlog.tools.auditing.run import second_look
from raftlog.tools.auditing.run.run import audit
from tests.tools.auditing.run.live_directory import METADATA, LiveNode
from tests.tools.made_logs import TIMESTAMP, batch, flip

OTHER = batch(29, (b"y" * 50,), timestamp=TIMESTAMP + 29)
"""The last batch of a log, with another value."""


def damaged(path: Path) -> LiveNode:
    """A node with a damaged batch in the last segment of a topic."""
    node = LiveNode(path)
    flip(node.orders / f"{20:020}.log", 70)
    return node


def told_while(
    node: LiveNode, paths: Iterable[Path], change: Callable[[], object], topic: str = "orders"
) -> set[tuple[str, str]]:
    """What an audit tells above harmless, as rules and paths, if something happens once a topic's files were read."""
    told = set[tuple[str, str]]()
    with pytest.MonkeyPatch.context() as monkeypatch:
        _once_before(monkeypatch, second_look, "look_again", topic, change)
        for judged in audit(list(map(str, paths)), 1):
            told |= {
                (each.rule, os.path.relpath(each.path, node.path))
                for each in judged.findings
                if each.severity is not Severity.HARMLESS
            }
    return told


def _once_before(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, topic: str, change: Callable[[], object]
) -> None:
    real, changes = getattr(owner, name), [change]

    def changed_before(place: PartitionEvidence, *more: Any) -> Any:
        if place.place.topic == topic and changes:
            changes.pop()()
        return real(place, *more)

    monkeypatch.setattr(owner, name, changed_before)


def failing(monkeypatch: pytest.MonkeyPatch, path: Path, error: int) -> None:
    """From now on, a directory cannot be listed."""
    listed = os.scandir

    def scandir(of: str) -> Any:
        if of == str(path):
            raise OSError(error, os.strerror(error))
        return listed(of)

    monkeypatch.setattr(os, "scandir", scandir)


CRC, UNREADABLE = ("batch-crc", f"orders-0/{20:020}.log"), ("file-unreadable", "orders-0")


@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_a_second_listing_that_fails(error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that cannot be listed any more has not lost its damage, which is told."""
    node = damaged(tmp_path / "node")
    told = told_while(node, [node.path], lambda: failing(monkeypatch, node.orders, error))

    assert told == {CRC, UNREADABLE}


def test_a_file_that_cannot_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has a file that has changed and cannot be opened then."""
    node = damaged(tmp_path / "node")
    opened = file_source._open

    def fail(path: str) -> int:
        if path.endswith(CRC[1]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path)

    def change() -> None:
        os.utime(node.path / CRC[1])
        monkeypatch.setattr(file_source, "_open", fail)

    assert told_while(node, [node.path], change) == {CRC, ("file-unreadable", CRC[1])}


def test_some_files_that_the_user_named_go(tmp_path: Path) -> None:
    """Of several files that were named, some may be deleted; what the others have is told."""
    node = damaged(tmp_path / "node")
    told = told_while(node, sorted(node.orders.glob("*.log")), (node.orders / f"{0:020}.log").unlink)

    assert told == {CRC}


def test_a_directory_that_the_user_named_goes(tmp_path: Path) -> None:
    """A directory that the user named is not deleted by a node that has other things beside it."""
    node = damaged(tmp_path / "node")
    told = told_while(node, [node.orders], lambda: node.orders.rename(tmp_path / "elsewhere"))

    assert told == {CRC, UNREADABLE}


def test_a_file_that_the_user_named_goes(tmp_path: Path) -> None:
    """Nor is a file that the user named, if nothing else was."""
    node = damaged(tmp_path / "node")
    log = node.path / CRC[1]
    told = told_while(node, [log], lambda: log.rename(tmp_path / "elsewhere"))

    assert told >= {CRC, UNREADABLE}


@pytest.mark.parametrize("is_left_empty", [True, False])
def test_a_log_directory_that_goes(is_left_empty: bool, tmp_path: Path) -> None:
    """A log directory that is gone, or empty as the mount point of a disk, was not deleted by its node."""
    node = damaged(tmp_path / "nodes" / "n1")

    def unmount() -> None:
        node.path.rename(tmp_path / "elsewhere")
        if is_left_empty:
            node.path.mkdir()

    assert told_while(node, [tmp_path / "nodes"], unmount) >= {CRC, UNREADABLE}


def test_a_directory_that_is_emptied(tmp_path: Path) -> None:
    """A directory that is there without its files was not deleted."""
    node = damaged(tmp_path / "node")

    def empty() -> None:
        node.orders.rename(tmp_path / "elsewhere")
        node.orders.mkdir()

    assert told_while(node, [node.path], empty) >= {CRC, UNREADABLE}


def test_another_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path that means nothing from where it is opened again was not deleted."""
    node = damaged(tmp_path / "node")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    found = told_while(LiveNode(tmp_path / "sound"), [Path("node")], lambda: os.chdir(tmp_path / "other"))

    assert {rule for rule, _ in found} == {"batch-crc", "file-unreadable"}
    assert node.orders.exists()


def test_a_metadata_log_that_goes(tmp_path: Path) -> None:
    """No node deletes its metadata log, also where other things of it still are."""
    node = LiveNode(tmp_path / "node")
    flip(node.path / METADATA / f"{0:020}.log", 70)
    told = told_while(node, [node.path], lambda: (node.path / METADATA).rename(tmp_path / "elsewhere"), METADATA_TOPIC)

    assert told >= {("batch-crc", f"{METADATA}/{0:020}.log"), ("file-unreadable", METADATA)}


def test_a_directory_that_its_node_deletes(tmp_path: Path) -> None:
    """Of a partition whose directory its node has renamed, nothing above harmless is told: it is no longer a log."""
    node = damaged(tmp_path / "node")
    gone = node.path / f"orders-0.{'0123456789abcdef' * 2}-delete"

    def delete() -> None:
        node.write_checkpoints({"bills": 10})
        node.orders.rename(gone)

    assert told_while(node, [node.path], delete) == set()


def test_a_directory_that_goes_while_it_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that was listed again, and cannot be listed when it was judged again, has not lost its damage."""
    node = damaged(tmp_path / "node")
    real, calls = judgement.judge_group, list[int]()

    def judge(places: Any, *more: Any) -> Any:
        judged = real(places, *more)
        if places[0].place.topic == "orders":
            calls.append(1)
            if len(calls) == 2:
                node.path.rename(tmp_path / "elsewhere")
        return judged

    monkeypatch.setattr(second_look, "judge_group", judge)
    told = told_while(node, [node.path], lambda: os.utime(node.path / CRC[1]))

    assert len(calls) == 2
    assert told >= {CRC, UNREADABLE}


def lacking(path: Path) -> LiveNode:
    """A node whose checkpoints name a topic that it does not have."""
    node = LiveNode(path)
    node.write_checkpoints({"orders": 30, "bills": 10, "lost": 7})
    return node


def test_log_directories_that_cannot_be_listed_again(tmp_path: Path) -> None:
    """What log directories lack is told, if they cannot be listed again before it is."""
    node = lacking(tmp_path / "node")
    real = judgement.judge_together
    with pytest.MonkeyPatch.context() as monkeypatch:

        def judge(kept: Any) -> Any:
            judged = real(kept)
            if node.path.exists():
                node.path.rename(tmp_path / "elsewhere")
            return judged

        monkeypatch.setattr(second_look, "judge_together", judge)
        told = {each.rule for judged in audit([str(node.path)], 1) for each in judged.findings}

    assert told >= {"partition-missing", "file-unreadable"}


@pytest.mark.parametrize("failed", ["bills-0", "orders-0", METADATA, ""])
def test_one_directory_that_cannot_be_listed_again(failed: str, tmp_path: Path) -> None:
    """Nor is it taken back if one of the directories fails."""
    node = lacking(tmp_path / "node")
    real = judgement.judge_together
    with pytest.MonkeyPatch.context() as monkeypatch:

        def judge(kept: Any) -> Any:
            failing(monkeypatch, node.path / failed, errno.EIO)
            return real(kept)

        monkeypatch.setattr(second_look, "judge_together", judge)
        told = [each for judged in audit([str(node.path)], 1) for each in judged.findings]

    paths = {os.path.relpath(each.path, node.path) for each in told if each.rule == "file-unreadable"}
    assert "partition-missing" in {each.rule for each in told}
    assert paths == {failed or "."}


def test_one_log_directory_of_several_is_unmounted(tmp_path: Path) -> None:
    """Nor if one of several log directories is empty then, of which listing the others says nothing."""
    nodes = [LiveNode(tmp_path / "nodes" / name) for name in ("n1", "n2")]
    nodes[1].write_checkpoints({"orders": 30, "bills": 10, "lost": 7})
    real = judgement.judge_together
    with pytest.MonkeyPatch.context() as monkeypatch:

        def judge(kept: Any) -> Any:
            if not (tmp_path / "elsewhere").exists():
                nodes[1].path.rename(tmp_path / "elsewhere")
                nodes[1].path.mkdir()
            return real(kept)

        monkeypatch.setattr(second_look, "judge_together", judge)
        told = [each for judged in audit([str(tmp_path / "nodes")], 1) for each in judged.findings]

    missing = {each.path for each in told if each.rule == "partition-missing"}
    unread = {os.path.relpath(each.path, nodes[1].path) for each in told if each.rule == "file-unreadable"}
    assert str(nodes[1].path / "lost-0") in missing
    assert unread == {".", METADATA, "bills-0", "orders-0"}


def test_replicas_that_cannot_be_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two replicas contradict each other in is told, if the batches cannot be read for it a second time."""
    nodes = [LiveNode(tmp_path / "nodes" / name) for name in ("n1", "n2")]
    log = nodes[1].orders / f"{20:020}.log"
    log.write_bytes(log.read_bytes()[: -len(OTHER)] + OTHER)
    opened = file_source._open

    def fail(path: str) -> int:
        if path == str(log):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path)

    def change() -> None:
        os.utime(nodes[0].orders / f"{20:020}.log")
        monkeypatch.setattr(file_source, "_open", fail)

    told = told_while(nodes[0], [tmp_path / "nodes"], change)

    assert told >= {("replica-batch", f"../n2/{CRC[1]}"), ("file-unreadable", f"../n2/{CRC[1]}")}
