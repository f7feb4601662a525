# SPDX-License-Identifier: Apache-2.0
"""``raftlog state`` shows states and changes, says what is in doubt, and refuses what it cannot answer in one line."""

import json
import re
import shlex
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage, Voter
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.made_logs import write_log
from tests.tools.state.made_metadata import (
    ABORT,
    BEGIN,
    END,
    ORDERS,
    PARTITION,
    SHRINK,
    TOPIC,
    VERSION,
    metadata_batch,
    metadata_log,
    record,
)

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "state-1.schema.json").read_text()))
QUORUM = GOLDEN / "dynamic-quorum/data"
VOTERS = [QUORUM / f"n{number}" for number in (1, 2, 3, 4)]


def state_json(*arguments: str | Path) -> list[dict[str, Any]]:
    """The JSON lines of a run without complaint, each of which keeps to the schema."""
    outcome = run("state", "-j1", "--format", "json", *arguments)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome.objects


def refused(*arguments: str | Path) -> str:
    """The one line of a run that shows nothing."""
    outcome = run("state", "-j1", *arguments)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    return outcome.messages


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A metadata log of one partition, which changes."""
    return metadata_log(tmp_path / "node", [VERSION], [TOPIC, PARTITION], [SHRINK])


def test_the_state_of_a_quorum_is_proven_where_a_majority_has_it() -> None:
    """All voters together prove the end; one alone does not, and the text says from where on."""
    head, *things = state_json(*VOTERS)
    assert (head["kind"], head["end_offset"], head["is_proven"], head["forks_at"]) == ("state", 230, True, None)
    assert {thing["kind"] for thing in things} >= {"feature", "broker", "controller", "topic", "partition", "config"}
    alone, *same = state_json(VOTERS[0])
    assert (alone["end_offset"], alone["is_proven"], same) == (230, False, things)
    text = run("state", "-j1", VOTERS[0]).text
    assert f"Records from offset {alone['proven_offset']} on are not proven to be committed" in text
    assert "not proven" not in run("state", "-j1", *VOTERS).text


def test_a_fork_is_marked(tmp_path: Path) -> None:
    """A log that parted from the one to keep is read only for offsets that no other has, and says so."""
    longer = metadata_log(tmp_path / "a", [VERSION], [TOPIC, PARTITION], [SHRINK], [SHRINK])
    later = tmp_path / "b"
    elected = LeaderChangeMessage(2, (Voter(1), Voter(2)), (Voter(2),))
    leader = write_control_batch([elected], base_offset=1, epoch=2, timestamp=1_001_000)
    parts = metadata_batch(0, [VERSION], 1_000_000), leader, metadata_batch(2, [VERSION], 1_002_000, epoch=2)
    write_log(later / "__cluster_metadata-0", *parts)

    at_end = state_json(longer, later)
    assert (at_end[0]["end_offset"], at_end[0]["epoch"], at_end[0]["forks_at"]) == (3, 2, None)
    assert at_end[0]["directory"] == str(later)
    beyond = state_json(longer, later, "--at", "5")
    assert (beyond[0]["end_offset"], beyond[0]["forks_at"], beyond[0]["is_proven"]) == (5, 1, False)
    assert beyond[0]["directory"] == str(longer)
    remark = "This replica differs from the lineage to keep from offset 1 on: this state is not that of the cluster."
    assert remark in run("state", "-j1", longer, later, "--at", "5").text
    assert "differs" not in run("state", "-j1", longer, later).text


def test_a_path_chooses_things(log: Path) -> None:
    """A thing, or all below a name; a name that is not there is an error."""
    assert [each["path"] for each in state_json(log, "--path", "/topics/orders")[1:]] == [
        "/topics/orders",
        "/topics/orders/0",
    ]
    (_, partition) = state_json(log, "--path", "topics/orders/0", "--at", "3")
    assert (partition["isr"], partition["partition_epoch"]) == ([1, 2], -1)
    assert "there is nothing at /topics/none before offset 4" in refused(log, "--path", "/topics/none")


def test_the_table_has_a_section_for_each_kind(log: Path) -> None:
    """With its columns, and the numbers of rows."""
    lines = run("state", "-j1", log).text.splitlines()
    assert lines[0].startswith(
        "Cluster (id not known) before offset 4, epoch 1, written up to 1970-01-01T00:16:42.000Z."
    )
    at = lines.index("Partitions (1)")
    assert lines[at + 1].split()[:4] == ["TOPIC", "PARTITION", "REPLICAS", "ISR"]
    assert lines[at + 2].split()[:4] == ["orders", "0", "1,2", "1"]
    assert {"Features (1)", "Topics (1)"} < set(lines)


def test_the_tree_has_members_below_names(log: Path) -> None:
    """One line for a thing with one member, else one for each."""
    text = run("state", "-j1", "--format", "tree", log).text
    assert "\nfeatures\n  metadata.version: 25\n" in text
    assert f"\ntopics\n  orders: {'A' * 20}" in text
    assert "\n    0\n      replicas: 1,2\n      isr: 1\n" in text


@pytest.mark.parametrize(
    ("at", "remark"),
    [
        ("2", "Offset 2 is inside a batch, whose records have effect together: this is the state before it."),
        (
            "4",
            "Offset 4 is inside the metadata transaction topic that begins at offset 3: this is the state before it.",
        ),
    ],
)
def test_inside_a_batch_or_transaction_the_state_before_it_is_shown(at: str, remark: str, tmp_path: Path) -> None:
    """And the text says so; one offset later or earlier it does not."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC, PARTITION], [BEGIN], [SHRINK], [ABORT])
    assert remark in run("state", "-j1", log, "--at", at).text
    head = state_json(log, "--at", at)[0]
    assert (head["asked_offset"], head["asked"]) == (int(at), at)
    assert (head["is_inside_batch"], head["transaction_offset"]) == (at == "2", None if at == "2" else 3)
    for other in ("1", "3", "6"):
        assert "is inside" not in run("state", "-j1", log, "--at", other).text


def test_a_clock_that_went_back_is_mentioned(tmp_path: Path) -> None:
    """If it matters for what was asked."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC], [PARTITION], times=[1_000, 3_000, 2_000])
    text = run("state", "-j1", log, "--at", "1970-01-01T00:00:02").text
    assert "A clock went back: 1 later batches" in text
    assert "before offset 1," in text
    assert state_json(log, "--at", "1970-01-01T00:00:02Z")[0]["later_times"] == 1
    assert "A clock went back" not in run("state", "-j1", log, "--at", "1970-01-01T00:00:03").text


def test_changes_between_two_offsets(log: Path) -> None:
    """Each with the record that made it; where nothing changes, that is said."""
    first, *changes, last = state_json(log, "--between", "3", "4")
    assert (first["end_offset"], last["end_offset"]) == (3, 4)
    ((offset, name, before, after),) = (
        (each["offset"], each["record"], each["before"]["isr"], each["after"]["isr"]) for each in changes
    )
    assert (offset, name, before, after) == (3, "PartitionChangeRecord", [1, 2], [1])
    text = run("state", "-j1", log, "--between", "0", "-0").text
    assert "from offset 0 to offset 4" in text
    assert "isr: 1,2 -> 1; partition_epoch: -1 -> 0" in text
    assert "Nothing changed." in run("state", "-j1", log, "--between", "1", "1").text
    assert "Offset 2 is inside a batch" in run("state", "-j1", log, "--between", "2", "4").text
    assert len(state_json(log, "--between", "0", "4", "--path", "/topics/orders/0")) == 4


def test_the_history_of_a_thing(log: Path) -> None:
    """From its beginning to the end, or to where it is asked for."""
    assert [each.get("offset") for each in state_json(log, "--history", "/topics/orders/0")] == [None, 2, 3, None]
    assert [each.get("offset") for each in state_json(log, "--history", "/topics/orders/0", "--at", "3")] == [
        None,
        2,
        None,
    ]


def test_a_history_that_begins_with_a_snapshot_shows_what_was_there() -> None:
    """Before the changes; nothing is said of what had happened before."""
    node = GOLDEN / "wire/data/n4"
    head, *there = state_json(node, "--history", "/brokers")
    (first, *_), kinds = [each for each in there if each["kind"] == "broker"], [each["kind"] for each in there]
    assert head["snapshot"] is not None
    assert first == state_json(node, "--at", str(head["end_offset"]), "--path", first["path"])[1]
    assert kinds == sorted(kinds, key=["broker", "change", "state"].index)
    text = run("state", "-j1", node, "--history", "/brokers").text
    assert f"\nAt offset {head['end_offset']} there were:\n" in text
    assert text.index("\nBrokers (") < text.index("OFFSET")


def test_history_shows_removals(tmp_path: Path) -> None:
    """A topic's end takes its partitions along, by the same record."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC, PARTITION], [record("RemoveTopicRecord", topicId=ORDERS)])
    gone = [each for each in state_json(log, "--history", "/topics") if each.get("after", 0) is None]
    assert [(each["offset"], each["path"]) for each in gone] == [(3, "/topics/orders/0"), (3, "/topics/orders")]


def test_a_change_of_a_secret_says_that_it_changed(tmp_path: Path) -> None:
    """And neither what it was nor what it is, in either format."""
    secrets = [
        record("ConfigRecord", resourceType=4, resourceName="1", name="ssl.key.password", value=value)
        for value in ("hidden-1", "hidden-2")
    ]
    log = metadata_log(tmp_path, [VERSION], secrets)
    text = run("state", "-j1", log, "--history", "/configs").text
    assert "+ value=[redacted]" in text
    assert "another value: [redacted]" in text
    assert "hidden" not in text + json.dumps(state_json(log, "--history", "/configs"))


def test_a_record_without_effect_is_named_and_suspicious(tmp_path: Path) -> None:
    """With its offset and its index in the batch; the state is shown."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC, record("FenceBrokerRecord", id=5, epoch=1), b"\x01\x63\x00"])
    outcome = run("state", "-j1", log, "--format", "json")
    assert outcome.exit_code == 3
    assert (
        "the record at offset 2 (index 1) has no effect: FenceBrokerRecord: broker 5 is not registered"
        in outcome.messages
    )
    assert "the record at offset 3 (index 2) has no effect" in outcome.messages
    assert [each["offset"] for each in outcome.of_kind("refused_record")] == [2, 3]
    assert [each["is_unknown"] for each in outcome.of_kind("refused_record")] == [False, True]
    assert len(outcome.of_kind("topic")) == 1
    for line in outcome.objects:
        SCHEMA.validate(line)
    assert "2 records have no effect in this state" in run("state", "-j1", log).text


def test_a_record_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """The rest of the state is shown."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC, b"\x01\x02\x00\x02"])
    outcome = run("state", "-j1", log)
    assert outcome.exit_code == 2
    assert "the record at offset 2 (index 1) has no effect" in outcome.messages
    assert "Topics (1)" in outcome.text


def test_many_records_without_effect_are_counted(tmp_path: Path) -> None:
    """Twenty are named, the rest is one line."""
    log = metadata_log(tmp_path, [VERSION], [record("FenceBrokerRecord", id=5, epoch=1)] * 22)
    outcome = run("state", "-j1", log)
    assert (outcome.exit_code, len(outcome.complaints)) == (3, 21)
    assert "and 2 more records" in outcome.complaints[-1]


def no_state(log: Path) -> Iterator[tuple[tuple[str | Path, ...], str]]:
    """What has no answer, and a part of the line about it."""
    yield (log, "--at", "5"), "offset 5 is after the end: log and snapshots have states from offset 0 to 4"
    yield (log, "--at", "-5"), "the log has 4 offsets, not 5"
    yield (log, "--at", "1970-01-01"), "1970-01-01 is before the first record of the log"
    yield (log, "--at", "soon"), "'soon' is no offset, no time in ISO 8601 and no -N"
    yield (log, "--between", "2", "1"), "1 is before 2"
    yield (log, "--between", "2"), "expected 2 arguments"
    yield (log, "--between", "1", "2", "--at", "1"), "not allowed with argument"
    yield (log, "--between", "1", "2", "--history", "/topics"), "--history"
    yield (log, "--between", "1", "2", "--format", "tree"), "changes have no tree"
    yield (log, "--history", "/topics", "--format", "tree"), "changes have no tree"
    yield (log, "--format", "xml"), "invalid choice"
    yield (log.parent / "none",), "none"
    yield (GOLDEN / "wire/data/n4", "--at", "1"), "no state at offset 1"
    yield (GOLDEN / "mirror/data",), "2 clusters"
    yield (GOLDEN / "groups/data/n1/g1-0",), "no log of __cluster_metadata"


def test_what_has_no_answer_is_refused_in_one_line(log: Path) -> None:
    """With exit code 1, and nothing on standard output."""
    for arguments, expected in no_state(log):
        assert expected in refused(*arguments)


def test_nothing_is_written_to_the_sources(log: Path) -> None:
    """The files and their times are as before."""
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")}
    run("state", "-j1", log)
    run("state", "-j1", log, "--history", "/topics")
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")} == before


def test_a_transaction_that_ended_is_in_the_state(tmp_path: Path) -> None:
    """All of it at once."""
    log = metadata_log(tmp_path, [VERSION], [BEGIN], [TOPIC], [PARTITION, END])
    outcomes: list[Outcome] = [run("state", "-j1", log, "--at", str(at), "--format", "json") for at in range(6)]
    assert [len(each.of_kind("topic")) for each in outcomes] == [0, 0, 0, 0, 0, 1]


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/state.md: each command has an answer from a real quorum, and the Python prints what it should."""
    page = (ROOT / "docs/state.md").read_text()
    commands = re.findall(r"^\$ raftlog ([^#\n]*)", page, re.MULTILINE)
    assert len(commands) == 11
    for command in commands:
        placed = re.sub("/(restored|data)/[a-z0-9]+", str(GOLDEN / "data-topics/data/n1"), command)
        broker = GOLDEN / ("groups/data" if "groups" in command else "data-topics/data")
        words = (word.replace("/backup", str(QUORUM)).replace("/broker", str(broker)) for word in shlex.split(placed))
        paths = (path for word in words for path in (sorted(glob(word)) if "*" in word else [word]))
        outcome = run(*(path.replace("topics/orders", "topics/orders-1") for path in paths))
        assert (outcome.exit_code, outcome.messages) == (0, "")
        assert outcome.text.count("\n") > 3
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(example, "state.md", "exec"), {})
    assert capsys.readouterr().out == "1 0\n"
