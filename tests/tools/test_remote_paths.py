# SPDX-License-Identifier: Apache-2.0
"""The reading verbs over an object store: what they say of a bucket is what they say of the same files on a disk."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from raftlog.storage.reading import remote_file_source, remote_file_system
from raftlog.tools.auditing.evidence import SurveyTask
from raftlog.tools.auditing.survey.tasks import find_tasks
from tests.golden_files import GOLDEN
from tests.object_store import ObjectStore
from tests.tools.console import Outcome, run, run_process
from tests.tools.made_logs import LOG_NAME, batch, flip, write_log

pq = pytest.importorskip("pyarrow.parquet")

QUORUM = GOLDEN / "dynamic-quorum/data"
NODES = ("n1", "n2", "n4")
METADATA = "__cluster_metadata-0"


def as_local(text: str, store: ObjectStore, bucket: str, directory: Path) -> str:
    """The output of a verb for a bucket, with the paths of a directory."""
    return text.replace(store.query, "").replace(f"s3://{bucket}", str(directory))


def lines(outcome: Outcome, store: ObjectStore, bucket: str, directory: Path) -> list[Any]:
    """The JSON lines, with the paths of a directory."""
    return [json.loads(as_local(json.dumps(each), store, bucket, directory)) for each in outcome.objects]


def rows_of(table: Path) -> list[str]:
    """The rows of a table of one run, sorted as text, as paths with a query sort otherwise than those without one."""
    rows = [
        {name: value for name, value in row.items() if name != "run_id"} for row in pq.read_table(table).to_pylist()
    ]
    return sorted(json.dumps(row, default=str).replace("'", "") for row in rows)  # A shell has to have a query quoted.


def log_of(node: str) -> Path:
    """The path of a node's first segment, from the directory of all nodes."""
    return min((QUORUM / node / METADATA).glob("*.log")).relative_to(QUORUM)


@pytest.fixture(scope="module")
def quorum(object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of some directories of a quorum, one log with a flipped bit; the bucket ``quorum`` has the same."""
    data = tmp_path_factory.mktemp("quorum") / "data"
    for node in NODES:
        shutil.copytree(QUORUM / node, data / node)
    flip(data / log_of("n2"), 3010)
    object_store.upload(data, "quorum")
    return data


def test_verify_output_is_the_same(object_store: ObjectStore, quorum: Path) -> None:
    """Findings, with their positions, counts and exit code are those of the same files on a disk."""
    local = run("verify", "-j", "1", "--all", "--format", "jsonl", quorum)
    remote = run("verify", "-j", "1", "--all", "--format", "jsonl", object_store.uri("quorum"))

    assert remote.exit_code == local.exit_code != 0
    assert lines(remote, object_store, "quorum", quorum) == local.objects
    assert any(each["rule"] == "batch-crc" and each["position"] == 2988 for each in remote.of_kind("finding"))


@pytest.mark.slow
def test_several_processes_agree(object_store: ObjectStore, quorum: Path) -> None:
    """Processes that read remote files find what one does: each has connections of its own."""
    uri = object_store.uri("quorum")

    alone, together = (run_process("verify", "-j", count, "--format", "jsonl", uri) for count in "12")

    assert together == alone
    assert alone.of_kind("finding")


def test_audit_output_is_the_same(object_store: ObjectStore, quorum: Path, tmp_path: Path) -> None:
    """The tables of an audit equal those of the same files on a disk, except for paths; a second run reads nothing."""
    run("audit", "-j", "1", "--out", tmp_path / "local", quorum)
    run("audit", "-j", "1", "--out", tmp_path / "remote", object_store.uri("quorum"))

    for table in ("findings", "checks", "epochs", "voter_timeline"):
        local, remote = (rows_of(tmp_path / name / table) for name in ("local", "remote"))
        assert sorted(as_local(row, object_store, "quorum", quorum) for row in remote) == local
        assert local
    again = run("audit", "-j", "1", "--out", tmp_path / "remote", object_store.uri("quorum"))
    assert again.exit_code == 2
    assert f" {sum(path.is_file() for path in quorum.rglob('*'))} unchanged and not read again" in again.text


@pytest.mark.parametrize("verb", ["voters", "epochs", "quorum", "topics"])
def test_timelines_are_the_same(object_store: ObjectStore, quorum: Path, verb: str) -> None:
    """Voters, leaders, the state of the quorum and topics are shown for a bucket as for a disk."""
    local = run(verb, "--format", "jsonl", quorum)
    remote = run(verb, "--format", "jsonl", object_store.uri("quorum"))

    assert remote.exit_code == local.exit_code
    assert lines(remote, object_store, "quorum", quorum) == local.objects


def test_diff_output_is_the_same(object_store: ObjectStore, quorum: Path) -> None:
    """The divergence of two replicas is shown down to the byte, also between a disk and a bucket."""
    nodes = [str(log_of(node).parent.parent) for node in ("n1", "n2")]
    local = run("diff", "-j", "1", "--format", "jsonl", *(quorum / node for node in nodes))
    remote = run("diff", "-j", "1", "--format", "jsonl", quorum / nodes[0], object_store.uri("quorum", nodes[1]))

    assert lines(remote, object_store, "quorum", quorum) == local.objects
    assert remote.exit_code == local.exit_code != 0


def test_dump_log_output_is_the_same(object_store: ObjectStore, quorum: Path) -> None:
    """A directory, a file and a single index are dumped alike, also from an offset on."""
    log = log_of("n1")
    for name in (str(log.parent), str(log), str(log.with_suffix(".index"))):
        for options in ([], ["--format", "jsonl", "--offsets", "20.."]):
            local = run("dump-log", *options, "--files", quorum / name)
            remote = run("dump-log", *options, "--files", object_store.uri("quorum", name))
            assert as_local(remote.text, object_store, "quorum", quorum) == local.text
            assert remote.exit_code == local.exit_code


def test_explain_shows_a_batch(object_store: ObjectStore, quorum: Path) -> None:
    """The bytes of one batch are explained wherever the file is."""
    local = run("explain", quorum / log_of("n1"), "--position", "0")
    remote = run("explain", object_store.uri("quorum", str(log_of("n1"))), "--position", "0")

    assert as_local(remote.text, object_store, "quorum", quorum) == local.text
    assert local.exit_code == remote.exit_code == 0


def test_a_local_uri_is_its_path(quorum: Path) -> None:
    """``file:`` names a local file, with all that holds for one."""
    local = run("verify", "-j", "1", "--format", "jsonl", quorum)

    assert run("verify", "-j", "1", "--format", "jsonl", f"file://{quorum}") == local
    assert run("verify", "-j", "1", "--format", "jsonl", f"file:{quorum}") == local


def test_named_files_mean_their_segments(object_store: ObjectStore, quorum: Path) -> None:
    """A single named file is surveyed with the files beside it, as on a disk."""
    local = list(find_tasks([str(quorum / log_of("n1").with_suffix(".index"))]))
    remote = list(find_tasks([object_store.uri("quorum", str(log_of("n1").with_suffix(".index")))]))

    for here, there in zip(local, remote, strict=True):
        assert isinstance(here, SurveyTask)
        assert isinstance(there, SurveyTask)
        assert as_local(there.path, object_store, "quorum", quorum) == here.path
        assert there.indexes.keys() == here.indexes.keys()
        assert there.size_bytes == here.size_bytes
        assert as_local(there.place.log_directory, object_store, "quorum", quorum) == here.place.log_directory


@pytest.mark.slow
def test_many_keys_take_few_requests(object_store: ObjectStore) -> None:
    """A listing of more keys than come in one answer has all of them, and takes no request for each prefix."""
    object_store.make_bucket("many")
    names = [f"logs/orders-{number // 4}/{number % 4:020}.log" for number in range(1203)]
    for name in names:
        object_store.put("many", name, b"")
    object_store.requests.clear()

    tasks = list(find_tasks([object_store.uri("many", "logs")]))

    assert sorted(task.path for task in tasks) == sorted(object_store.uri("many", name) for name in names)
    assert len(object_store.requests) < 8


def test_missing_paths(object_store: ObjectStore, quorum: Path) -> None:
    """A key, prefix or bucket that is not there is one line that says so; patterns are for local paths."""
    for uri in (
        object_store.uri("quorum", "nowhere"),
        object_store.uri("no-such-bucket", "n1"),
        object_store.uri("quorum", "n*"),
    ):
        for verb in (["verify"], ["dump-log", "--files"], ["voters"]):
            outcome = run(*verb, uri)
            assert outcome.exit_code == 1
            assert "No such file or directory" in outcome.text + outcome.messages
            assert len((outcome.text + outcome.messages).splitlines()) <= 4


def test_a_missing_key(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key deleted after the listing, or while it is read, is a finding about that file; the others are judged."""
    partition = tmp_path / "orders-0"
    write_log(partition, batch())
    write_log(partition, batch(1), name=f"{1:020}.log")
    object_store.upload(tmp_path, "gone", "a/")
    object_store.upload(tmp_path, "gone", "b/")
    opened = remote_file_system.open_remote

    def delete_before(path: str) -> Any:
        if f"a/orders-0/{LOG_NAME}" in path:
            object_store.delete("gone", f"a/orders-0/{LOG_NAME}")
        return opened(path)

    def delete_after(path: str) -> Any:
        file = opened(path)
        if f"b/orders-0/{LOG_NAME}" in path:
            object_store.delete("gone", f"b/orders-0/{LOG_NAME}")
        return file

    for prefix, delete in (("a", delete_before), ("b", delete_after)):
        monkeypatch.setattr(remote_file_source, "open_remote", delete)
        outcome = run("verify", "-j", "1", "--all", "--format", "jsonl", object_store.uri("gone", prefix))
        found = {(each["file"], each["rule"]) for each in outcome.of_kind("finding")}
        gone = object_store.uri("gone", f"{prefix}/orders-0/{LOG_NAME}")
        assert {each for each in found if each[0] == gone} == {(gone, "file-gone")}
        assert {each["file"] for each in outcome.of_kind("file") if each["was_read"]} == {
            object_store.uri("gone", f"{prefix}/orders-0/{1:020}.log")
        }


def test_credentials_that_are_refused(object_store: ObjectStore, quorum: Path) -> None:
    """A store that refuses is one line for each path, soon."""
    with object_store.asking_for_credentials():
        outcome = run("verify", object_store.uri("quorum", "n1"))

    assert outcome.exit_code == 1
    assert "ACCESS_DENIED" in outcome.text + outcome.messages
    assert "tester" not in outcome.text + outcome.messages


@pytest.mark.slow
def test_a_store_that_is_not_there() -> None:
    """Nobody at an endpoint is one line, after some tries that take seconds."""
    outcome = run("verify", "s3://bucket/logs?endpoint_override=127.0.0.1:1&scheme=http")

    assert outcome.exit_code == 1
    assert "onnect" in outcome.text + outcome.messages


@pytest.mark.parametrize(
    "uri",
    [
        "s3://me:hush@bucket/logs",
        "s3://me:hu/sh@bucket/logs",
        "abfs://container@account/logs?client_secret=hush",
    ],
)
def test_credentials_are_not_shown(uri: str, tmp_path: Path) -> None:
    """A path with credentials is refused before it is written anywhere, and the refusal does not show them."""
    for arguments in (
        ["verify", uri],
        ["audit", "--out", tmp_path / "out", uri],
        ["dump-log", "--files", uri],
        ["voters", uri],
        ["diff", uri, uri],
        ["audit", "--out", uri, tmp_path],
    ):
        outcome = run(*arguments)
        assert outcome.exit_code == 1
        assert "hu" not in (outcome.text + outcome.messages).replace("environment", "")
        assert "credentials in a path" in outcome.messages
    assert not (tmp_path / "out").exists()


def test_results_stay_local(tmp_path: Path) -> None:
    """A report is not written to a URI, and results not to a source that is named by ``file:``."""
    write_log(tmp_path / "orders-0", batch())

    remote = run("verify", "--report", "s3://bucket/report.html", tmp_path)
    inside = run("audit", "--out", tmp_path / "out", f"file://{tmp_path}")

    assert remote.exit_code == inside.exit_code == 1
    assert "local directory" in remote.messages
    assert "an audited directory is not written to" in inside.messages


def test_unknown_schemes() -> None:
    """A URI that pyarrow cannot open is one line that names it."""
    for uri in ("http://host/logs", "s3:///logs", "foo://a/b", "s3://bucket/logs?no_such_option=1"):
        outcome = run("verify", uri)
        assert outcome.exit_code == 1
        assert uri in outcome.text + outcome.messages
