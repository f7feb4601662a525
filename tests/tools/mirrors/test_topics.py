# SPDX-License-Identifier: Apache-2.0
"""``raftlog topics`` prints what topics' names say, of real mirrors and of what no mirror has."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.tools.mirrors.naming import Confidence, TopicKind
from raftlog.tools.verb_help.verbs import make_command_parser
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.mirrors.policy_names import ALIASED, ALIASES, NAMES, SETTINGS
from tests.tools.mirrors.test_found_topics import ONE, TWO, log_directory, partition

MIRROR = GOLDEN / "mirror/data"
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/topics-1.schema.json").read_text()))
OF_BOTH = {
    "__cluster_metadata": "metadata_quorum",
    "__consumer_offsets": "kafka_internal",
    "heartbeats": "mm2_heartbeats",
}
ON_A = OF_BOTH | {
    "__transaction_state": "kafka_internal",
    "internal-looking": "local",
    "mm2-configs.B.internal": "connect_internal B",
    "mm2-offset-syncs.B.internal": "mm2_offset_syncs (B)",
    "mm2-offsets.B.internal": "connect_internal B",
    "mm2-status.B.internal": "connect_internal B",
    "orders": "local",
    "tx.orders": "local",
}
ON_B = OF_BOTH | {
    "A.checkpoints.internal": "mm2_checkpoints A",
    "A.heartbeats": "mm2_heartbeats A heartbeats heartbeats 1",
    "A.internal-looking": "remote A internal-looking internal-looking 1",
    "A.orders": "remote A orders orders 1",
    "A.tx.orders": "remote A tx.orders tx.orders 1",
    "mm2-configs.A.internal": "connect_internal A",
    "mm2-offsets.A.internal": "connect_internal A",
    "mm2-status.A.internal": "connect_internal A",
}
"""The names of a mirror from A to B with the default policy: kind and source, or the alias alone; then upstream and
original topic and hops of a mirror."""


def topics(*arguments: str | Path) -> list[dict[str, Any]]:
    """The lines of topics, after a check of all lines."""
    outcome = run("topics", "--format", "jsonl", *arguments)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome.of_kind("topic")


def short(line: dict[str, Any]) -> str:
    """A topic's class as in the tables above."""
    alias = None if line["source"] else line["alias"]
    of_mirror = (line["upstream"], line["original"], line["hops"]) if line["hops"] else ()
    words = (line["topic_kind"], line["source"], f"({alias})" if alias else None, *of_mirror)
    return " ".join(str(word) for word in words if word is not None)


def refused(*arguments: str | Path) -> str:
    """The one line of a refusal."""
    outcome = run("topics", *arguments)
    assert (outcome.exit_code, outcome.output) == (1, b"")
    (line,) = outcome.complaints
    return line


@pytest.mark.parametrize(("node", "expected"), [("n1", ON_A), ("n2", ON_B)])
def test_a_real_mirror_has_the_names_that_it_should_have(node: str, expected: dict[str, str]) -> None:
    """On both clusters, each topic is what MirrorMaker made it, or what it found; with known aliases all is sure."""
    lines = topics(MIRROR / node, "--aliases", "A,B")
    assert {line["topic"]: short(line) for line in lines} == expected
    assert {line["confidence"] for line in lines} == {"sure"}


def test_without_aliases_mirrors_are_guesses() -> None:
    """Each name with a separator may be a mirror; what begins with ``mm2-`` or ``__`` is known."""
    lines = {line["topic"]: line for line in topics(MIRROR / "n2")}
    guesses = {name for name, line in lines.items() if line["confidence"] == "guess"}
    assert guesses == {name for name in ON_B if name.startswith("A.")}
    assert short(lines["A.tx.orders"]) == "remote A tx.orders orders 2"
    (tx_orders,) = (line for line in topics(MIRROR / "n1") if line["topic"] == "tx.orders")
    assert (short(tx_orders), tx_orders["confidence"]) == ("remote tx orders orders 1", "guess")


def test_the_text_has_the_same_topics() -> None:
    """Each line of JSON is a row of the table, with partitions as ranges; both clusters may be given at once."""
    outcome = run("topics", MIRROR, "--aliases", "A,B")
    head, rows = outcome.text.split("\n\n")
    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert "Policy default, separator '.', aliases A, B, internal names as of 4.0." in head
    assert re.search(rf"^2: {re.escape(str(MIRROR))}/n2 \(cluster \S+, node 2\)$", head, re.MULTILINE)
    cells = [re.split(r"  +", row) for row in rows.splitlines()[1:]]
    lines = topics(MIRROR, "--aliases", "A,B")
    assert [(row[0], row[1], row[-1]) for row in cells] == [
        (line["topic"], line["topic_kind"], line["topic_id"]) for line in lines
    ]
    by_name = {row[0]: row for row in cells}
    assert by_name["mm2-offsets.A.internal"][-3:-1] == ["0, 3, 9, 11-12, 16, 18, 23", "2"]
    assert by_name["A.orders"][2:7] == ["A", "orders", "1", "sure", "0-1"]
    assert by_name["__cluster_metadata"][-2] == "1-2"  # All clusters' metadata logs have one topic id.


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ((), "could be another topic's too; --aliases says which clusters there are."),
        (("--aliases", "B"), "an alias that is not among the known ones."),
        (("--policy", "identity", "--aliases", "B"), "with an alias that is not known."),
    ],
)
def test_guesses_are_explained_in_the_text(options: tuple[str, ...], end: str) -> None:
    """Below the table, in words that fit what is known; a table without a guess has no such line."""
    text = run("topics", MIRROR / "n2", *options).text
    assert text.splitlines()[-1].startswith("A guess is a name ")
    assert text.endswith(f"{end}\n")
    assert "guess" not in run("topics", MIRROR / "n2", "--aliases", "A").text


def classes(directory: Path, *options: str) -> dict[str, str]:
    """The classes of all topics, with a question mark after a guess."""
    lines = topics(directory, *options)
    return {line["topic"]: short(line) + "?" * (line["confidence"] == "guess") for line in lines}


def test_separators_are_those_of_the_options(tmp_path: Path) -> None:
    """Of names, and of internal names unless that is off; Connect's topics have dots under any."""
    directory = log_directory(tmp_path / "n2")
    names = (
        "A_orders",
        "A_heartbeats",
        "A_checkpoints_internal",
        "A.checkpoints.internal",
        "mm2-offset-syncs.A.internal",
    )
    for name in (*names, "mm2-offset-syncs_B_internal", "mm2-configs.A.internal", "A.orders"):
        partition(directory, f"{name}-0")
    on = classes(directory, "--separator", "_", "--internal-separator", "on", "--aliases", "A,B")
    assert on == {
        "A_orders": "remote A orders orders 1",
        "A_heartbeats": "mm2_heartbeats A heartbeats heartbeats 1",
        "A_checkpoints_internal": "mm2_checkpoints A",
        "A.checkpoints.internal": "local",
        "mm2-offset-syncs.A.internal": "local",
        "mm2-offset-syncs_B_internal": "mm2_offset_syncs (B)",
        "mm2-configs.A.internal": "connect_internal A",
        "A.orders": "local",
    }
    assert classes(directory, "--separator=_", "--aliases", "A,B") == on
    off = classes(directory, "--separator", "_", "--internal-separator", "off", "--aliases", "A,B")
    assert off == on | {
        "A_checkpoints_internal": "remote A checkpoints_internal checkpoints_internal 1",
        "A.checkpoints.internal": "mm2_checkpoints A",
        "mm2-offset-syncs.A.internal": "mm2_offset_syncs (A)",
        "mm2-offset-syncs_B_internal": "local",
    }


def test_the_identity_policy_guesses(tmp_path: Path) -> None:
    """All but heartbeats may be mirrors, from the source if one is given."""
    directory = log_directory(tmp_path / "n2")
    for name in ("orders", "A.heartbeats", "heartbeats", "A.checkpoints.internal"):
        partition(directory, f"{name}-0")
    heartbeats = {
        "A.checkpoints.internal": "mm2_checkpoints A",
        "A.heartbeats": "mm2_heartbeats A heartbeats heartbeats 1",
        "heartbeats": "mm2_heartbeats",
    }
    given = ("--policy", "identity", "--aliases", "A")
    assert classes(directory, *given) == heartbeats | {"orders": "local?"}
    assert classes(directory, *given, "--source", "A") == heartbeats | {"orders": "remote A orders orders 1?"}
    assert classes(directory, "--policy", "default", "--aliases", "A") == heartbeats | {"orders": "local"}


def test_the_level_decides_on_internal_names(tmp_path: Path) -> None:
    """Before 4.0 ``orders-internal`` is one; the default is since 4.0."""
    directory = log_directory(tmp_path / "n1")
    partition(directory, "orders-internal-0")
    assert classes(directory) == classes(directory, "--kafka-level", "4.0") == {"orders-internal": "local"}
    assert classes(directory, "--kafka-level", "3.x") == {"orders-internal": "kafka_internal"}


def test_the_policy_in_force_is_printed() -> None:
    """As the first line of JSON, and in the text."""
    options = ("--policy", "identity", "--separator", "__", "--internal-separator", "off", "--source", "A")
    given = (MIRROR / "n1", *options, "--kafka-level", "3.x")
    assert run("topics", *given, "--format", "jsonl").objects[0] == {
        "kind": "policy",
        "policy": "identity",
        "separator": "__",
        "internal_separator": ".",
        "aliases": [],
        "source": "A",
        "kafka_level": "3.x",
    }
    assert run("topics", *given).text.startswith(
        "Policy identity, separator '__', in internal names '.', source A, no known aliases,"
        " internal names as before Kafka 4.0.\n"
    )


def test_bad_options_are_refused_in_a_line() -> None:
    """An empty alias or separator, a source of the default policy, and values that are none of the choices."""
    assert "an alias is empty" in refused(MIRROR, "--aliases", "A,,B")
    assert "an alias is empty" in refused(MIRROR, "--aliases", "")
    assert "an alias is empty" in refused(MIRROR, "--policy", "identity", "--source", "")
    assert "the separator is empty" in refused(MIRROR, "--separator", "")
    assert "--source is for --policy identity" in refused(MIRROR, "--source", "A")
    assert "invalid choice: 'mine'" in refused(MIRROR, "--policy", "mine")
    assert "invalid choice: 'yes'" in refused(MIRROR, "--internal-separator", "yes")
    assert "invalid choice: '3.9'" in refused(MIRROR, "--kafka-level", "3.9")
    assert "arguments are required: DIR" in refused("--aliases", "A")


def test_an_alias_that_holds_the_separator_is_stripped_whole(tmp_path: Path) -> None:
    """And pattern characters in separators mean themselves."""
    directory = log_directory(tmp_path / "n2")
    partition(directory, "eu.west.orders-0")
    assert classes(directory, "--aliases", "eu,eu.west") == {"eu.west.orders": "remote eu.west orders orders 1"}
    assert classes(directory, "--aliases", "eu", "--separator", "..") == {"eu.west.orders": "local"}
    assert classes(directory, "--separator", ".*") == {"eu.west.orders": "local"}
    assert classes(directory, "--separator", "west") == {"eu.west.orders": "remote eu. .orders .orders 1?"}


def test_what_is_no_directory_is_refused_in_a_line(tmp_path: Path) -> None:
    """A missing path, and a segment."""
    segment = next((MIRROR / "n1/orders-0").glob("*.log"))
    assert "missing" in refused(tmp_path / "missing")
    assert f"{segment}: " in refused(segment)
    assert "not a directory" in refused(segment)


def test_damage_decides_the_exit_code(tmp_path: Path) -> None:
    """2 for a file that breaks its format, with its place; 3 for an empty directory; the topics are printed."""
    directory = log_directory(tmp_path / "n1")
    partition(directory, "orders-0", TWO)
    (partition(directory, "tx-0", ONE) / "partition.metadata").write_bytes(b"version: 0\ntopic_id: ?\n")
    outcome = run("topics", directory)
    assert outcome.exit_code == 2
    (line,) = outcome.complaints
    assert f"{directory}/tx-0/partition.metadata, position " in line
    assert "[file-format]" in line
    assert "orders" in outcome.text
    (tmp_path / "empty").mkdir()
    assert exit_code_and_rule(run("topics", tmp_path / "empty")) == (3, "[directory-empty]")
    shutil.rmtree(directory / "tx-0")
    assert run("topics", directory).exit_code == 0


def exit_code_and_rule(outcome: Outcome) -> tuple[int, str]:
    """The exit code and the rule that the one complaint names."""
    (line,) = outcome.complaints
    return outcome.exit_code, line.rpartition(" ")[2]


def test_a_directory_without_topics_says_so(tmp_path: Path) -> None:
    """An empty log directory is no fault; a directory with an unusual name is told."""
    directory = log_directory(tmp_path / "n1")
    assert run("topics", directory).text.endswith("\n\nThere are no topics.\n")
    partition(tmp_path, "kept by me")
    outcome = run("topics", tmp_path / "kept by me")
    assert (outcome.exit_code, len(outcome.complaints)) == (0, 1)
    assert "left out, since Kafka gives no partition's directory such a name" in outcome.messages


def test_the_page_and_the_schema_have_every_kind() -> None:
    """And every confidence, and the numbers of what was compared with Kafka."""
    page = (ROOT / "docs/mirrors.md").read_text()
    of_topic = SCHEMA.schema["$defs"]["topic"]["properties"]
    assert of_topic["topic_kind"]["enum"] == [kind.value for kind in TopicKind]
    assert of_topic["confidence"]["enum"] == [each.value for each in Confidence]
    for kind in TopicKind:
        assert f"| `{kind.value}` |" in page
    compared = (
        f"{len(NAMES)} names and {len(ALIASES) * len(ALIASED)} pairs of alias and topic under {len(SETTINGS)} settings"
    )
    assert compared in page
    example = re.findall(r"^```\n(Policy.*?)^```", page, re.MULTILINE | re.DOTALL)[0].splitlines()
    printed = run("topics", MIRROR / "n2", "--aliases", "A,B").text.splitlines()
    assert set(example) - set(printed) == {line for line in example if line.startswith("1: /brokers/b1 (cluster ")}


def test_the_help_names_the_verb() -> None:
    """In the list of all verbs, and its own options."""
    assert "topics" in make_command_parser().format_help()
    outcome = run("topics", "--help")
    for option in ("--policy", "--separator", "--internal-separator", "--aliases", "--source", "--kafka-level"):
        assert option in outcome.text
