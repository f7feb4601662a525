# SPDX-License-Identifier: Apache-2.0
"""``raftlog stats`` prints its counts as tables and as JSON lines of a published schema."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import batch, flip, write_log

SCHEMA = json.loads((ROOT / "docs/stats-1.schema.json").read_text())
NODE = GOLDEN / "mirror/data/n1"


def test_each_line_is_of_the_schema() -> None:
    """And the groups of batches of each grouping add up to the totals."""
    lines = run("stats", "--format", "json", NODE).objects
    for line in lines:
        Draft202012Validator(SCHEMA).validate(line)
    totals = lines[0]
    for grouping in ("partition", "producer", "codec", "hour"):
        groups = [line for line in lines if line["kind"] == "group" and line["by"] == grouping]
        for name in ("batches", "records", "stored_bytes", "uncompressed_bytes"):
            assert sum(line[name] for line in groups) == totals[name]
    types = [line for line in lines if line["kind"] == "group" and line["by"] == "type"]
    assert sum(line["records"] for line in types) == totals["records"]


def test_tables_have_the_largest_first_and_the_rest_in_one_row() -> None:
    """With two rows per table, the other partitions are summed up."""
    text = run("stats", "--top", "2", "--by", "partition", "--no-compaction", NODE).text
    lines = text[text.index("Partitions: ") :].splitlines()
    stored = [int(line.split()[2]) for line in lines[2:5]]
    assert stored[0] >= stored[1]
    assert lines[4].endswith("more)")
    total = run("stats", "--format", "json", NODE).objects[0]["stored_bytes"]
    assert sum(stored) == total


@pytest.mark.parametrize("name", ["partition", "type", "key", "producer", "codec", "hour"])
def test_only_the_wanted_groupings_are_printed(name: str) -> None:
    """Each alone, and two together."""
    lines = run("stats", "--format", "json", "--by", name, NODE).objects
    assert {line["by"] for line in lines if line["kind"] == "group"} == {name}
    both = run("stats", "--format", "json", "--by", f"{name},codec", NODE).objects
    assert {line["by"] for line in both if line["kind"] == "group"} == {name, "codec"}


def test_prefixes_end_where_the_option_says(tmp_path: Path) -> None:
    """After so many bytes, or before a text; by default after 8 bytes."""
    write_log(tmp_path / "orders-0", batch(key=b"user:000000001"), batch(1, key=b"user:000000002"))
    for options, expected in (((), {"user:000"}), (("--key-prefix", "2"), {"us"}), (("--key-prefix", ":"), {"user"})):
        lines = run("stats", "--format", "json", "--by", "key", *options, tmp_path / "orders-0").of_kind("group")
        assert {line["prefix"] for line in lines} == expected


@pytest.mark.parametrize(
    "options",
    [
        ("--by", "color"),
        ("--by", ""),
        ("--by", "codec,"),
        ("--key-prefix", ""),
        ("--key-prefix", "0"),
        ("--key-prefix", "1025"),
        ("--top", "0"),
        ("--top", "1000000"),
        ("--format", "jsonl"),
    ],
)
def test_a_wrong_option_is_refused(options: tuple[str, ...]) -> None:
    """In one line that names the option, with exit code 1."""
    outcome = run("stats", *options, NODE)
    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert options[0] in outcome.messages


@pytest.mark.parametrize("value", ["1", "1024", "12a", "::"])
def test_prefixes_at_their_limits_are_taken(value: str) -> None:
    """The least and the greatest size, and texts."""
    assert run("stats", "--key-prefix", value, "--by", "key", NODE).exit_code == 0


def test_damage_is_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    """With file, position and offset on standard error, and exit code 2; a torn tail alone gives 3."""
    path = write_log(tmp_path / "orders-0", batch(), batch(1))
    flip(path, 65)
    outcome = run("stats", path.parent)
    assert outcome.exit_code == 2
    (complaint,) = outcome.complaints
    assert f"{path}, position 0" in complaint
    assert "1 segment: 1 batches of 1 record," in outcome.text
    assert "not counted: " in outcome.text
    write_log(tmp_path / "torn-0", batch(), b"torn")
    assert run("stats", tmp_path / "torn-0").exit_code == 3


def test_a_path_without_a_segment_is_an_error(tmp_path: Path) -> None:
    """A missing path, and a directory without a log: one line, exit code 1."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    for path in (tmp_path / "missing", tmp_path):
        outcome = run("stats", path)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)


def test_what_a_snapshot_and_compaction_save_is_said() -> None:
    """For the metadata log what its newest snapshot covers; for topics what later records overwrite."""
    text = run("stats", GOLDEN / "groups/data").text
    assert "Compaction would remove" in text
    assert "no snapshot that covers anything" in text
    node = run("stats", GOLDEN / "dynamic-quorum/data/n3").text
    assert "the newest readable snapshot ends at 230, epoch 4" in node
    assert "Compaction" not in run("stats", "--no-compaction", GOLDEN / "groups/data").text


def test_a_metadata_log_without_a_snapshot_is_named(tmp_path: Path) -> None:
    """Nothing is claimed about what one would save."""
    write_log(tmp_path / "__cluster_metadata-0", batch(values=(b"\1\2\0",), key=None))
    assert "no snapshot" in run("stats", tmp_path / "__cluster_metadata-0").text
