# SPDX-License-Identifier: Apache-2.0
"""``raftlog audit --out`` to an object store: the results of a directory, and what interrupts and other users leave."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from raftlog.errors import StorageError
from raftlog.tools.auditing.object_paths import ObjectPath
from raftlog.tools.auditing.run.local_engine import LocalEngine
from raftlog.tools.catalogue.audit_columns import TABLES
from tests.golden_files import GOLDEN
from tests.object_store import ObjectStore, copied
from tests.tools.console import run
from tests.tools.made_logs import batch, flip, write_log

pq = pytest.importorskip("pyarrow.parquet")

NODES = [GOLDEN / "dynamic-quorum/data" / name for name in ("n1", "n2")]
OF_THE_RUN = {"run_id", "started", "finished"}


def results(out: Path) -> dict[str, Any]:
    """Return rows and summary of the only run, without its id and times."""

    def without(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name not in OF_THE_RUN}

    found: dict[str, Any] = {}
    for table in TABLES:
        [path] = (out / table).glob("*.parquet")
        found[table] = list(map(without, pq.read_table(path).to_pylist()))
    return found | {"summary": without(json.loads((out / "summary.json").read_text()))}


def test_results_are_those_of_a_directory(object_store: ObjectStore, tmp_path: Path) -> None:
    """Tables and summary are equal, the page is there, and there is nothing else but marker and evidence."""
    object_store.make_bucket("equal")
    uri = object_store.uri("equal", "audits/of a quorum")
    local = run("audit", "--out", tmp_path / "local", *NODES)
    remote = run("audit", "--out", uri, *NODES)
    assert remote.exit_code == local.exit_code
    assert remote.text.rstrip().endswith(f"are in {uri}")
    copy = copied(uri, tmp_path / "copy")
    assert results(copy) == results(tmp_path / "local")
    assert "<html" in (copy / "report.html").read_text()
    names = {path.relative_to(copy).parts[0] for path in copy.rglob("*")}
    assert names == {*TABLES, "summary.json", "report.html", "raftlog-audit.json", "evidence.sqlite"}


def test_a_second_run_reads_nothing_again(object_store: ObjectStore, tmp_path: Path) -> None:
    """Evidence is kept in the store; another run adds files to each table, and --fresh reads all."""
    object_store.make_bucket("again")
    uri = object_store.uri("again", "out")
    write_log(tmp_path / "logs" / "orders-0", batch())
    assert " 0 unchanged" in run("audit", "--out", uri, tmp_path / "logs").text
    assert " 1 unchanged" in run("audit", "--out", f"{uri.replace('/out', '/out/')}", tmp_path / "logs").text
    assert " 0 unchanged" in run("audit", "--out", uri, "--fresh", tmp_path / "logs").text
    copy = copied(uri, tmp_path / "copy")
    assert {table: len(list((copy / table).iterdir())) for table in TABLES} == dict.fromkeys(TABLES, 3)


def test_a_run_is_complete_with_its_row(object_store: ObjectStore, tmp_path: Path) -> None:
    """The row in runs comes after all other tables, and before page and summary."""
    object_store.make_bucket("order")
    write_log(tmp_path / "logs" / "orders-0", batch())
    object_store.requests.clear()
    run("audit", "--out", object_store.uri("order", "out"), tmp_path / "logs")
    written = [each.split("/out/")[1] for each in object_store.requests if "PUT /order/out/" in each]
    names = [re.split("[ ?/]", each)[0] for each in written]
    assert names[0] == "raftlog-audit.json"
    assert names.index("runs") == max(names.index(table) for table in TABLES)
    assert names.index("runs") < names.index("report.html") < names.index("summary.json")


@pytest.mark.parametrize("end", [KeyboardInterrupt, StorageError("disk", "read", "it failed")])
def test_an_interrupted_run_keeps_its_evidence(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException | type[BaseException]
) -> None:
    """It has no results; what it has read is not read again."""
    bucket = f"interrupted-{type(end).__name__.lower()}"
    object_store.make_bucket(bucket)
    uri = object_store.uri(bucket, "out")
    write_log(tmp_path / "logs" / "orders-0", batch())
    with monkeypatch.context() as patch:
        call = LocalEngine.__call__

        def ended(self: LocalEngine, audit_run: Any) -> int:
            call(self, audit_run)
            raise end

        patch.setattr(LocalEngine, "__call__", ended)
        outcome = run("audit", "--out", uri, tmp_path / "logs")
        assert outcome.exit_code in {1, 130}
    copy = copied(uri, tmp_path / "copy")
    assert {path.name for path in copy.iterdir()} == {"raftlog-audit.json", "evidence.sqlite"}
    assert " 1 unchanged" in run("audit", "--out", uri, tmp_path / "logs").text


@pytest.mark.parametrize("failing", range(9))
def test_a_store_that_fails_at_each_write(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The run fails with one line; a summary is there only with a row in runs, that only with all tables."""
    object_store.make_bucket(f"fails-at-{failing}")
    uri = object_store.uri(f"fails-at-{failing}", "out")
    write_log(tmp_path / "logs" / "orders-0", batch())
    write, written = ObjectPath.write_bytes, list[ObjectPath]()

    def fail(path: ObjectPath, data: bytes) -> None:
        written.append(path)
        if len(written) == failing + 1:
            raise StorageError(path.uri, "write", "the store is full")
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectPath, "write_bytes", fail)
        outcome = run("audit", "--out", uri, tmp_path / "logs")
    assert (outcome.exit_code, len(outcome.messages.splitlines())) == (1, 1)
    assert "the store is full" in outcome.messages
    copy = copied(uri, tmp_path / "copy")
    tables = {table for table in TABLES if (copy / table).exists()}
    assert "runs" not in tables or tables == set(TABLES)
    assert not (copy / "summary.json").exists() or "runs" in tables
    assert run("audit", "--out", uri, tmp_path / "logs").exit_code == 3


def test_nothing_stays_on_this_machine(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary directory is removed, whatever the end."""
    object_store.make_bucket("temporary")
    write_log(tmp_path / "logs" / "orders-0", batch())
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert run("audit", "--out", object_store.uri("temporary", "out"), tmp_path / "logs").exit_code != 1
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("key", "content", "said"),
    [
        ("photos/1.jpg", b"x", "is not the output of raftlog audit"),
        ("raftlog-audit.json", b'{"format": 99}', "output of another version"),
        ("raftlog-audit.json", b"[]", "output of another version"),
        ("raftlog-audit.json", b"\xff", "output of another version"),
    ],
)
def test_what_is_not_ours_is_not_written_to(
    object_store: ObjectStore, tmp_path: Path, key: str, content: bytes, said: str
) -> None:
    """A prefix with other objects, or with another version's marker, is refused, and nothing is added."""
    bucket = f"foreign-{len(said)}-{len(content)}"
    object_store.make_bucket(bucket)
    object_store.put(bucket, f"out/{key}", content)
    write_log(tmp_path / "logs" / "orders-0", batch())
    outcome = run("audit", "--out", object_store.uri(bucket, "out"), tmp_path / "logs")
    assert outcome.exit_code == 1
    assert said in outcome.messages
    copy = copied(object_store.uri(bucket, "out"), tmp_path / "copy")
    assert [path.read_bytes() for path in copy.rglob("*") if path.is_file()] == [content]


@pytest.mark.parametrize(
    ("out", "source", "is_inside"),
    [("logs", "logs", True), ("logs/out", "logs", True), ("logs-out", "logs", False), ("out", "", True)],
)
def test_an_audited_prefix_is_not_written_to(
    object_store: ObjectStore, out: str, source: str, *, is_inside: bool
) -> None:
    """The output is not at or below what is audited, however the URI reaches it; a name that begins alike is not."""
    bucket = f"inside-{len(out)}-{len(source)}"
    object_store.make_bucket(bucket)
    object_store.put(bucket, "logs/orders-0/00000000000000000000.log", batch())
    outcome = run(
        "audit", "--out", f"{object_store.uri(bucket, out)}&region=us-east-1", object_store.uri(bucket, source)
    )
    assert (outcome.exit_code == 1) == is_inside
    assert ("an audited directory is not written to" in outcome.messages) == is_inside


def test_bad_outputs_are_one_line(object_store: ObjectStore, tmp_path: Path) -> None:
    """Credentials, a bucket that is not there, an unknown scheme, and a store that refuses are each one line."""
    write_log(tmp_path / "logs" / "orders-0", batch())
    object_store.make_bucket("refuses")
    for uri, said in (
        ("s3://me:hush@bucket/out", "credentials in a path"),
        (object_store.uri("no-such-bucket", "out"), "no-such-bucket"),
        ("foo://bucket/out", "foo://bucket/out"),
        (f"file://{tmp_path}/out", "plain path, not a URI"),
    ):
        outcome = run("audit", "--out", uri, tmp_path / "logs")
        assert (outcome.exit_code, len(outcome.messages.splitlines())) == (1, 1), outcome.messages
        assert said in outcome.messages
        assert "hush" not in outcome.messages
    with object_store.asking_for_credentials():
        outcome = run("audit", "--out", object_store.uri("refuses", "out"), tmp_path / "logs")
    assert (outcome.exit_code, len(outcome.messages.splitlines())) == (1, 1), outcome.messages


def test_damage_is_told_as_for_a_directory(object_store: ObjectStore, tmp_path: Path) -> None:
    """The exit code is that of the findings."""
    object_store.make_bucket("damage")
    flip(write_log(tmp_path / "logs" / "orders-0", batch(), batch(1)), 70)
    assert run("audit", "--out", object_store.uri("damage", "out"), tmp_path / "logs").exit_code == 2
