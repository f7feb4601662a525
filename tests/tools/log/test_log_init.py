# SPDX-License-Identifier: Apache-2.0
"""``raftlog log init``: a directory as kafka-storage formats it, or nothing at all."""

from pathlib import Path

import pytest

from tests.tools.console import dump_jsonl
from tests.tools.log_console import CLUSTER, DIRECTORY_ID, ONE, OTHER_ID, TWO, everything, info, init, log, the


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A formatted directory of a quorum of one."""
    path = tmp_path / "controller"
    assert init(path).exit_code == 0
    return path


def test_init_makes_what_kafka_makes(directory: Path) -> None:
    """A formatted directory has meta.properties, a bootstrap checkpoint of features, and one of the voters."""
    features = dump_jsonl("--no-redact", directory / "bootstrap.checkpoint").of_kind("record")
    assert [each["type"] for each in features] == ["SNAPSHOT_HEADER", *["FEATURE_LEVEL_RECORD"] * 6, "SNAPSHOT_FOOTER"]
    assert features[0]["data"]["lastContainedLogTimestamp"] == 0
    (checkpoint,) = (directory / "__cluster_metadata-0").iterdir()
    assert checkpoint.name == "00000000000000000000-0000000000.checkpoint"
    records = dump_jsonl(checkpoint).of_kind("record")
    assert [each["type"] for each in records] == ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    assert records[2]["data"]["voters"] == [
        {
            "voterId": 1,
            "voterDirectoryId": DIRECTORY_ID,
            "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 9093}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
    ]
    meta = (directory / "meta.properties").read_text().splitlines()
    assert set(meta) >= {"version=1", f"cluster.id={CLUSTER}", "node.id=1", f"directory.id={DIRECTORY_ID}"}


def test_init_makes_static_and_joining_nodes(tmp_path: Path) -> None:
    """Without voters a directory is for a static quorum, or for one to join; with them, it has its own directory id."""
    static = log("init", tmp_path / "s", "-t", CLUSTER, "--node-id", "1", "--format", "jsonl").objects
    joining = init(tmp_path / "j", "--no-initial-controllers", "--format", "jsonl").objects
    initial = ("-I", f"{ONE},{TWO}", "--format", "jsonl")
    member = log("init", tmp_path / "m", "-t", CLUSTER, "--node-id", "2", *initial).objects
    assert [the(each, "formatted")["kraft_version"] for each in (static, joining, member)] == [0, 1, 1]
    assert the(member, "formatted")["directory_id"] == OTHER_ID
    assert len(the(info(tmp_path / "m"), "voters")["voters"]) == 2
    assert not [each for each in info(tmp_path / "j") if each["kind"] == "voters"]


def test_a_random_directory_id_is_no_option(tmp_path: Path) -> None:
    """Where no directory id is given, each directory gets one of its own."""
    ids = set()
    for number in range(3):
        options = ("-t", CLUSTER, "--node-id", "1", "-s", "--format", "jsonl")
        made = log("init", tmp_path / str(number), *options).objects
        ids.add(the(made, "formatted")["directory_id"])
    assert len(ids) == 3
    assert not any(each.startswith("-") for each in ids)


def test_a_formatted_directory_is_left_as_it_is(directory: Path) -> None:
    """Formatting twice is refused, or passed over where that was asked for and it is the same node's."""
    before = everything(directory)
    refused = init(directory)
    assert refused.exit_code == 1
    assert "is already formatted" in refused.messages
    ignored = init(directory, "--ignore-formatted", "--format", "jsonl")
    assert (ignored.exit_code, the(ignored.objects, "already_formatted")["directory_id"]) == (0, DIRECTORY_ID)
    foreign = log("init", directory, "-t", "other", "--node-id", "1", "-s", "-g")
    assert (foreign.exit_code, len(foreign.complaints)) == (1, 1)
    assert everything(directory) == before


def test_a_log_without_meta_properties_is_not_overwritten(directory: Path) -> None:
    """A directory with a log is not formatted, whatever is missing in it."""
    log("append", directory)
    (directory / "meta.properties").unlink()
    before = everything(directory)
    assert init(directory).exit_code == 1
    assert everything(directory) == before


@pytest.mark.parametrize(
    "options",
    [
        ("--release-version", "1.0"),
        ("--feature", "kraft.version=0"),
        ("--feature", "x"),
        ("--listener", "localhost:9093"),
        ("--listener", "CONTROLLER://localhost:99999"),
        ("--directory-id", "AAAAAAAAAAAAAAAAAAAAAQ"),
        ("--directory-id", "short"),
        ("--node-id", "-1"),
        ("--cluster-id", " "),
        ("--initial-controllers", TWO),
        ("--initial-controllers", f"{ONE},{ONE}"),
        ("--initial-controllers", "1@localhost:9093"),
    ],
    ids=" ".join,
)
def test_wrong_options_of_init_make_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    """A directory that cannot be formatted is refused in one line, and nothing is made."""
    outcome = init(tmp_path / "new", *options)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert not (tmp_path / "new").exists()
