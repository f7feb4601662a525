# SPDX-License-Identifier: Apache-2.0
"""Finding the files to survey: files, directories at any depth, replicas, and other entries of a file system."""

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.auditing.evidence import Place, SurveyTask
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.auditing.survey.tasks import find_tasks
from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN

SEGMENT = "00000000000000000000.log"
METADATA = "__cluster_metadata-0"


def tasks_of(*paths: str | Path) -> list[SurveyTask]:
    """The tasks alone."""
    return [found for found in find_tasks(map(str, paths)) if isinstance(found, SurveyTask)]


def findings_of(*paths: str | Path) -> list[Finding]:
    """The findings alone."""
    return [found for found in find_tasks(map(str, paths)) if isinstance(found, Finding)]


def rules_of(*paths: str | Path) -> list[tuple[str, str]]:
    """The rules of the findings, and the names of what they are about."""
    return [(finding.rule, Path(finding.path).name) for finding in findings_of(*paths)]


def make(root: Path, *names: str) -> Path:
    """Make files, and the directories that they are in; a name that ends in a slash is that of a directory."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(7))
    return root


@st.composite
def trees(draw: st.DrawFn) -> dict[str, list[str]]:
    """Log directories with partitions, whose files are those that Kafka names."""
    nodes = draw(st.lists(st.sampled_from(["n1", "kraft-2", "data 3", "logs-04"]), min_size=1, unique=True))
    names = ["orders-0", "orders-1", "a.b-17", METADATA]
    return {
        node: draw(st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda found: [*found]))
        for node in nodes
    }


@settings(max_examples=25, deadline=None)
@given(tree=trees(), bases=st.sets(st.integers(0, 99), min_size=1, max_size=5))
def test_every_file_is_in_one_task(tree: dict[str, list[str]], bases: set[int]) -> None:
    """However log directories are named and given, each file is in one task, at its place; indexes go with segments."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for node, partitions in tree.items():
            make(root, f"{node}/meta.properties")
            for partition in partitions:
                for base in bases:
                    make(root, *(f"{node}/{partition}/{base:020}.{kind}" for kind in ("log", "index", "timeindex")))
        whole = list(find_tasks([folder]))
        each = list(find_tasks([*(str(root / node) for node in tree), folder, str(root / "n1" / ".." / min(tree))]))

        tasks = [task for task in whole if isinstance(task, SurveyTask)]
        paths = Counter(path for task in tasks for path in (task.path, *task.indexes.values()))
        expected = sorted(str(path) for path in root.rglob("*") if path.is_file())
        assert sorted(paths) == expected
        assert set(paths.values()) == {1}
        assert Counter(map(type, each))[SurveyTask] == len(tasks)
        for task in tasks:
            assert task.size_bytes == 7
            if task.kind is FileKind.LOG:
                topic, _, number = Path(task.path).parent.name.rpartition("-")
                assert task.place == Place(str(Path(task.path).parent.parent), topic, int(number))
                assert task.indexes_size_bytes == 14
                assert task.is_raft == (topic == "__cluster_metadata")


def test_replicas_follow_each_other(tmp_path: Path) -> None:
    """Tasks come by topic and partition, log directories first: the replicas of one are together."""
    for node in ("n1", "n2", "n3"):
        make(tmp_path / node, "meta.properties", f"b-0/{SEGMENT}", f"a-2/{SEGMENT}", f"a-10/{SEGMENT}")
    places = [(task.place.topic, task.place.partition) for task in tasks_of(*sorted(tmp_path.iterdir()))]

    assert places == [("", -1)] * 3 + [("a", 2)] * 3 + [("a", 10)] * 3 + [("b", 0)] * 3


def test_a_real_directory() -> None:
    """Of a node's directory that Kafka wrote, each file has its kind, its base offset or its id."""
    tasks = tasks_of(GOLDEN / "dynamic-quorum/data/n3")
    by_name = {Path(task.path).name: task for task in tasks}

    assert findings_of(GOLDEN / "dynamic-quorum/data/n3") == []
    assert by_name["meta.properties"].place == Place(str(GOLDEN / "dynamic-quorum/data/n3"))
    snapshots = [task for task in tasks if task.kind is FileKind.SNAPSHOT]
    assert all(task.snapshot_id is not None and task.is_raft for task in snapshots)
    assert by_name[SEGMENT].base_offset == 0
    assert by_name["quorum-state"].state is FileState.CURRENT


def test_segments_know_the_snapshots_that_may_end_in_them(tmp_path: Path) -> None:
    """A segment gets the snapshots that end after its start, up to the start of the next one."""
    ends = (0, 1, 100, 101, 250)
    names = [f"{end:020}-0000000001.checkpoint" for end in ends]
    make(tmp_path / METADATA, SEGMENT, "00000000000000000100.log", "quorum-state", *names)
    make(tmp_path / METADATA, f"{300:020}-0000000001.checkpoint.deleted")
    offsets = {
        task.base_offset: list(task.snapshot_offsets) for task in tasks_of(tmp_path) if task.kind is FileKind.LOG
    }

    assert offsets == {0: [1, 100], 100: [101, 250]}
    assert OffsetAndEpoch(250, 1) in {task.snapshot_id for task in tasks_of(tmp_path)}


def test_a_named_file(tmp_path: Path) -> None:
    """A file of a segment means the segment; a named one is marked, and has its place by its path."""
    make(tmp_path / "n1" / "orders-3", SEGMENT, "00000000000000000000.index", "00000000000000000009.log")
    for name in (SEGMENT, "00000000000000000000.index"):
        (task,) = tasks_of(tmp_path / "n1/orders-3" / name)
        assert task.path.endswith(SEGMENT)
        assert set(task.indexes) == {FileKind.OFFSET_INDEX}
        assert task.was_named
        assert task.place == Place(str(tmp_path / "n1"), "orders", 3)
    assert len(tasks_of(tmp_path / "n1/orders-3", tmp_path / "n1/orders-3" / SEGMENT)) == 2
    assert not any(task.was_named for task in tasks_of(tmp_path / "n1/orders-3"))


def test_a_copy_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named file has the kind of its suffix, as in dump-log; in a directory it is an unknown file."""
    make(tmp_path / "orders-3", "copy.log", SEGMENT)
    monkeypatch.chdir(tmp_path / "orders-3")
    (named,) = tasks_of("copy.log")
    listed = {Path(task.path).name: task.kind for task in tasks_of(".")}

    assert (named.path, named.kind, named.base_offset) == ("copy.log", FileKind.LOG, None)
    assert (named.place.topic, named.place.partition) == ("orders", 3)
    assert listed == {"copy.log": None, SEGMENT: FileKind.LOG}


def test_a_pattern(tmp_path: Path) -> None:
    """A pattern means what it matches; one that matches nothing is said."""
    make(tmp_path, f"n1/orders-0/{SEGMENT}", f"n2/orders-0/{SEGMENT}")

    assert len(tasks_of(tmp_path / "n*/orders-0")) == 2
    assert rules_of(tmp_path / "x*") == [("file-unreadable", "x*")]


def test_whose_a_named_partition_is(tmp_path: Path) -> None:
    """A partition's directory that is named brings the meta.properties above it, and nothing else from there."""
    make(tmp_path, "meta.properties", "recovery-point-offset-checkpoint", f"orders-0/{SEGMENT}")

    assert [Path(task.path).name for task in tasks_of(tmp_path / "orders-0")] == ["meta.properties", SEGMENT]


def test_a_log_directory_that_is_called_like_a_partition(tmp_path: Path) -> None:
    """The contents decide: ``kraft-1`` is a node's directory if partitions are in it."""
    make(tmp_path, f"kraft-1/orders-0/{SEGMENT}", f"kraft-2/{SEGMENT}")

    make(tmp_path, "n/meta.properties", f"n/kraft-1/orders-0/{SEGMENT}", f"n/kraft-2/{SEGMENT}")

    assert {task.place.topic_partition for task in tasks_of(tmp_path / "kraft-1")} == {("orders", 0)}
    assert {task.place.topic_partition for task in tasks_of(*tmp_path.glob("kraft-*"))} == {("orders", 0), ("kraft", 2)}
    assert {task.place.topic_partition for task in tasks_of(tmp_path / "n")} == {("", -1), ("kraft", 2)}


def test_partitions_beside_other_things(tmp_path: Path) -> None:
    """Where nothing says that a directory is a node's, each directory in it is looked at for what it is."""
    make(tmp_path, f"orders-0/{SEGMENT}", f"copy of orders/{SEGMENT}", f"n1/a-0/{SEGMENT}", "n1/meta.properties")
    topics = {task.place.topic for task in tasks_of(tmp_path)}

    assert topics == {"orders", "copy of orders", "", "a"}


def test_a_raft_log_under_an_odd_name(tmp_path: Path) -> None:
    """A directory with a quorum-state is the metadata log's, whatever its name; two of them are two replicas."""
    make(tmp_path, f"copy of n1/{SEGMENT}", "copy of n1/quorum-state", f"from-n2/{SEGMENT}", f"other/{SEGMENT}")
    make(tmp_path, "from-n2/quorum-state")
    places = {Path(task.path).parent.name: task.place for task in tasks_of(tmp_path)}

    assert places["copy of n1"] == Place(str(tmp_path / "copy of n1"), "__cluster_metadata", 0)
    assert places["from-n2"].topic_partition == ("__cluster_metadata", 0)
    assert places["other"] == Place(str(tmp_path), "other", -1)


def test_an_orphan(tmp_path: Path) -> None:
    """Indexes without their segment are one task, and the directory that they are in is not called empty."""
    make(tmp_path / "orders-0", "00000000000000000007.index", "00000000000000000007.timeindex")
    (task,) = tasks_of(tmp_path)

    assert task.kind is FileKind.OFFSET_INDEX
    assert set(task.indexes) == {FileKind.TIME_INDEX}
    assert findings_of(tmp_path) == []


def test_an_empty_directory(tmp_path: Path) -> None:
    """A directory without anything of Kafka's is empty, and so is a partition's without a segment."""
    make(tmp_path, "nothing/below/", "n1/meta.properties", "n1/orders-0/partition.metadata", "n1/orders-1/")

    assert rules_of(tmp_path / "nothing") == [("directory-empty", "nothing")]
    assert rules_of(tmp_path / "n1") == [("directory-empty", "orders-0"), ("directory-empty", "orders-1")]


def test_a_directory_that_was_only_formatted(tmp_path: Path) -> None:
    """A metadata log with only its bootstrap snapshot was never started: that is not a fault."""
    make(tmp_path, "meta.properties", f"{METADATA}/00000000000000000000-0000000000.checkpoint")

    assert findings_of(tmp_path) == []


def test_directories_on_their_way_out(tmp_path: Path) -> None:
    """A deleted partition is reported and not read, unless it is named; an unfinished copy is read."""
    unique = "0123456789abcdef" * 2
    make(tmp_path, "meta.properties", f"a-0.{unique}-delete/{SEGMENT}", f"b-0.{unique}-future/{SEGMENT}")
    deleted = tmp_path / f"a-0.{unique}-delete"

    assert rules_of(tmp_path) == [("file-left-over", deleted.name)]
    assert [task.place.topic for task in tasks_of(tmp_path)] == ["", f"b-0.{unique}-future"]
    assert [task.place.topic for task in tasks_of(deleted)] == ["", deleted.name]


def test_a_path_that_is_not_a_file(tmp_path: Path) -> None:
    """A pipe, a directory where none should be and a link to nowhere are findings; nothing waits for a writer."""
    make(tmp_path / "orders-0", SEGMENT, "lost+found/")
    os.mkfifo(tmp_path / "orders-0" / "00000000000000000009.log")
    (tmp_path / "orders-0" / "00000000000000000042.log").symlink_to(tmp_path / "gone")

    assert sorted(rules_of(tmp_path)) == [("file-unknown", "00000000000000000009.log"), ("file-unknown", "lost+found")]
    _, broken = tasks_of(tmp_path)
    assert [finding.rule for finding in survey(broken).findings] == ["file-unreadable"]


def test_a_second_name_of_a_segment(tmp_path: Path) -> None:
    """Kafka takes any number of digits for a base offset, so that a segment may be there twice."""
    make(tmp_path / "orders-0", SEGMENT, "0.log", "7.log")

    assert rules_of(tmp_path) == [("segment-twice", "0.log")]


def test_links_in_a_circle(tmp_path: Path) -> None:
    """Links that lead back up end; a directory that two links lead to is looked at once."""
    make(tmp_path, f"data/n1/orders-0/{SEGMENT}", "data/n1/meta.properties")
    (tmp_path / "data/again").symlink_to(tmp_path)
    (tmp_path / "data/n1-too").symlink_to(tmp_path / "data/n1")
    (tmp_path / "data/itself").symlink_to(tmp_path / "data/itself")

    assert len(tasks_of(tmp_path)) == 2


def test_a_directory_under_two_names(tmp_path: Path) -> None:
    """A directory that is given by its own name and by a link is looked at once, and by no name called empty."""
    make(tmp_path, f"q/n1/orders-0/{SEGMENT}", "q/n1/meta.properties", "nothing/")
    for link, target in (("link", "q"), ("n1-link", "q/n1"), ("nothing-link", "nothing")):
        (tmp_path / link).symlink_to(tmp_path / target)

    for pair in (("q", "link"), ("link", "q"), ("n1-link", "q"), ("q/n1", "q"), ("q", "q")):
        assert rules_of(*(tmp_path / name for name in pair)) == []
    assert rules_of(tmp_path / "nothing", tmp_path / "nothing-link") == [("directory-empty", "nothing")]


@pytest.mark.parametrize("target", ["gone", "latest"])
def test_a_link_that_leads_nowhere(target: str, tmp_path: Path) -> None:
    """A dangling link, or one to itself, is harmless if its name is not Kafka's; it may be that of a partition."""
    make(tmp_path, "n1/meta.properties", f"n1/orders-0/{SEGMENT}")
    for folder in (tmp_path / "n1", tmp_path / "n1/orders-0"):
        (folder / "latest").symlink_to(folder / target)
    found = [finding.rule for task in tasks_of(tmp_path) if task.kind is None for finding in survey(task).findings]

    assert found == ["file-unknown", "file-unknown"]
    assert rules_of(tmp_path) == []
    (tmp_path / "n1/orders-1").symlink_to(tmp_path / "gone")
    assert rules_of(tmp_path) == [("file-unreadable", "orders-1")]


def test_a_link_to_a_log_directory(tmp_path: Path) -> None:
    """A link to a directory is followed: disks are often mounted elsewhere."""
    make(tmp_path, f"disk/orders-0/{SEGMENT}", "disk/meta.properties", "data/")
    (tmp_path / "data/n1").symlink_to(tmp_path / "disk")

    assert [Path(task.path).name for task in tasks_of(tmp_path / "data")] == ["meta.properties", SEGMENT]


def test_odd_characters(tmp_path: Path) -> None:
    """Directories whose names are not Unicode, or have line ends and spaces, are read like others."""
    root = os.fsencode(tmp_path) + b"/a\xff\nb c"
    os.makedirs(root + b"/orders-0")
    with open(root + b"/orders-0/" + SEGMENT.encode(), "wb"):
        pass
    (task,) = tasks_of(os.fsdecode(root))

    assert task.path == f"{tmp_path}/a\udcff\nb c/orders-0/{SEGMENT}"
    assert task.place.topic_partition == ("orders", 0)


@pytest.mark.parametrize("path", ["nowhere", "", "a\0b", "nowhere/at/all", "x" * 5000])
def test_a_path_that_is_none(path: str, tmp_path: Path) -> None:
    """A path that does not exist, or can be none, is one finding; the others are still looked at."""
    make(tmp_path / "orders-0", SEGMENT)
    found = list(find_tasks([path, str(tmp_path)]))

    assert [each.rule for each in found if isinstance(each, Finding)] == ["file-unreadable"]
    assert sum(isinstance(each, SurveyTask) for each in found) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_is_closed(tmp_path: Path) -> None:
    """A directory that cannot be listed is a finding, and the others are still looked at."""
    make(tmp_path, "meta.properties", f"a-0/{SEGMENT}", f"b-0/{SEGMENT}")
    (tmp_path / "a-0").chmod(0)
    try:
        assert ("file-unreadable", "a-0") in rules_of(tmp_path)
        assert len(tasks_of(tmp_path)) == 2
    finally:
        (tmp_path / "a-0").chmod(0o755)


def test_a_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one whose listing fails, or that was deleted by then."""
    make(tmp_path, "meta.properties", f"a-0/{SEGMENT}", f"b-0/{SEGMENT}", f"c-0/{SEGMENT}")
    listed = os.scandir

    def scandir(path: str) -> "os._ScandirContextManager":  # type: ignore[name-defined]
        if path.endswith("a-0"):
            raise PermissionError(13, "Permission denied")
        if path.endswith("b-0"):
            raise FileNotFoundError(2, "No such file or directory")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert rules_of(tmp_path) == [("file-unreadable", "a-0"), ("file-gone", "b-0")]
    assert len(tasks_of(tmp_path)) == 2


def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is deleted between its listing and its survey is harmless."""
    make(tmp_path / "orders-0", SEGMENT)
    looked_at = os.stat

    def stat(path: "str | int", **options: bool) -> os.stat_result:
        if str(path).endswith(SEGMENT):
            raise FileNotFoundError(2, "No such file or directory")
        return looked_at(path, **options)

    search = find_tasks([str(tmp_path / "orders-0" / SEGMENT), str(tmp_path / "orders-0")])
    monkeypatch.setattr(os, "stat", stat)
    found = list(search)

    assert [each.rule for each in found if isinstance(each, Finding)] == ["file-unreadable"]


def test_the_fingerprint_follows_the_file(tmp_path: Path) -> None:
    """A file, or an index of it, that is written to has another fingerprint, even with its old size and time."""
    make(tmp_path / "orders-0", SEGMENT, "00000000000000000000.index")
    prints = {tasks_of(tmp_path)[0].fingerprint for _ in range(2)}
    for name in (SEGMENT, "00000000000000000000.index"):
        path = tmp_path / "orders-0" / name
        status = path.stat()
        path.write_bytes(b"changed")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        prints.add(tasks_of(tmp_path)[0].fingerprint)

    assert len(prints) == 3


def test_standard_input() -> None:
    """A dash is a log that is piped in."""
    (task,) = tasks_of("-")

    assert (task.path, task.kind, task.was_named) == ("-", FileKind.LOG, True)


def test_files_beside_the_metadata_log_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is a bootstrap.checkpoint, to files of the metadata log, wherever they are found from."""
    kafkas = make(tmp_path / "kafkas", "bootstrap.checkpoint", f"{METADATA}/{SEGMENT}", f"orders-0/{SEGMENT}")
    own = make(tmp_path / "own", f"{METADATA}/{SEGMENT}")

    def known(*paths: str | Path) -> list[tuple[str, bool]]:
        return [(each.place.topic, each.has_bootstrap) for each in tasks_of(*paths) if each.kind is FileKind.LOG]

    both = [("__cluster_metadata", True), ("orders", False)]
    assert known(kafkas) == both
    assert known(kafkas / METADATA) == both[:1]
    assert known(own) == [("__cluster_metadata", False)]
    assert known(kafkas / METADATA / SEGMENT) == [("__cluster_metadata", False)]
    assert sorted(known(tmp_path)) == sorted([*both, ("__cluster_metadata", False)])
    monkeypatch.chdir(kafkas)
    assert known(".") == both
    assert known(METADATA) == both[:1]


def test_checkpoints_know_the_partitions_that_were_set_aside(tmp_path: Path) -> None:
    """A checkpoint of offsets knows the directories of deleted and stray partitions beside it; other files do not."""
    aside = [f"{name}-0.{'0123456789abcdef' * 2}{state}" for name, state in (("a", "-delete"), ("b", "-stray"))]
    future = f"c-0.{'0123456789abcdef' * 2}-future"
    files = ("meta.properties", "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint", f"orders-0/{SEGMENT}")
    directory = make(tmp_path, *files, *(f"{name}/{SEGMENT}" for name in (*aside, future)))
    known = {Path(task.path).name: task.set_aside for task in tasks_of(directory) if not task.place.topic}
    assert known == {name: tuple(aside) if "checkpoint" in name else () for name in files[:3]}
