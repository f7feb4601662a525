# SPDX-License-Identifier: Apache-2.0
"""``raftlog state --against`` compares a state with brokers' directories, says what follows, and has an exit code."""

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from raftlog.invariants import present
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.records.messages.metadata import MetadataRecord, read_metadata_record
from raftlog.storage.reading.segment_reader import open_segment
from raftlog.tools.beliefs.comparison import compare
from raftlog.tools.beliefs.given_files import GivenFiles
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import find_state
from raftlog.tools.state.topic_origins import FittingStates, TopicOrigin, fitting_states, topic_origins
from raftlog.uuid_text import uuid_to_text
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import run
from tests.tools.made_logs import flip, write_log
from tests.tools.state.made_metadata import ORDERS, TOPIC, VERSION, found_copies, metadata_batch, metadata_log, record

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "state-1.schema.json").read_text()))
TOPICS = GOLDEN / "data-topics/data/n1"
OTHER = UUID(int=78)
HOME = UUID(int=500)
ALONE = record("PartitionRecord", partitionId=0, topicId=ORDERS, replicas=[1], isr=[1], leader=1)
BROKER = record(
    "RegisterBrokerRecord", brokerId=1, brokerEpoch=1, endPoints=[], features=[], logDirs=[HOME], fenced=False
)


def broker_directory(home: Path, *topics: tuple[str, UUID], node_id: int = 1, broker_epoch: int | None = None) -> Path:
    """Write the log directory of a broker with partition 0 of some topics."""
    home.mkdir(parents=True)
    (home / "meta.properties").write_text(
        f"version=1\ncluster.id=c\nnode.id={node_id}\ndirectory.id={uuid_to_text(HOME)}\n"
    )
    for name, topic_id in topics:
        write_log(home / f"{name}-0")
        (home / f"{name}-0/partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, topic_id)))
    if broker_epoch is not None:
        (home / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": broker_epoch}))
    return home


def against(*arguments: str | Path, exit_code: int = 0) -> list[dict[str, Any]]:
    """The JSON lines after the first, of a run without complaint, each of which keeps to the schema."""
    outcome = run("state", "-j1", "--format", "json", *arguments)
    assert (outcome.exit_code, outcome.messages) == (exit_code, "")
    for line in outcome.objects:
        SCHEMA.validate(line)
    return outcome.objects[1:]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A metadata log in which broker 1 has one partition."""
    return metadata_log(tmp_path / "node", [VERSION], [BROKER], [TOPIC, ALONE])


@pytest.mark.parametrize("name", ["groups", "data-topics"])
def test_a_real_broker_and_its_metadata_agree(name: str) -> None:
    """Nothing is found, and as many replicas are assigned as there are directories."""
    node = GOLDEN / name / "data/n1"
    comparison, broker = against(node, "--against", node)
    assert (comparison["difference_count"], comparison["is_harmful"]) == (0, False)
    assert broker["partitions"] == broker["replicas"] > 3
    assert "No difference in what was compared: " in run("state", "-j1", node, "--against", node).text


@pytest.mark.parametrize(("name", "node"), [("mirror", "n1"), ("mirror", "n2"), ("killed", "n1")])
def test_real_directories_that_were_left_out_are_missing(name: str, node: str) -> None:
    """The golden files do not have all partitions: those that they do not have are told, and nothing else."""
    home = GOLDEN / name / "data" / node
    told = {f"{each['topic']}-{each['partition']}" for each in against(home, "--against", home, exit_code=3)[2:]}
    partitions = run("state", "-j1", "--format", "json", home).of_kind("partition")
    names = {"-".join(each["path"].split("/")[2:]) for each in partitions}
    assert told == names - {path.name for path in home.iterdir()} != set()


def test_topics_that_are_made_after_a_state_are_told_and_no_others() -> None:
    """At every offset of a real log; each is known from the offset after its record on."""
    made = {}
    (path,) = (TOPICS / "__cluster_metadata-0").glob("*.log")
    with open_segment(str(path)) as segment:
        for each in segment.records():
            message = read_metadata_record(each.value or b"")
            if message.type.name == "TopicRecord":
                made[message.message["name"]] = each.offset
    sources, end = found_copies(TOPICS)
    directories = GivenFiles(lambda _: None).read([str(TOPICS)])
    seen = set()
    for offset in range(end + 1):
        tables = find_state(sources, Position(offset=offset)).image.tables
        comparison = compare(tables, None, directories)
        unknown = {each.topic for each in comparison.differences if each.kind.name == "unknown-topic"}
        known = {topic.name for topic in tables.topics.values()}
        assert unknown == set(made) - known
        assert all(made[name] < offset for name in known)
        seen.add(len(unknown))
    assert {0, len(made)} <= seen
    origins = present(topic_origins(sources), "the life of each topic")
    assert {origin.created_offset for origin in origins.values()} == set(made.values())
    assert fitting_states(origins, set(origins)) == FittingStates(max(made.values()) + 1, None, len(made), 0)


def test_a_topic_that_is_made_later_or_was_removed_is_told_with_its_records(tmp_path: Path) -> None:
    """With the offsets of the records that the log has about it, and the states that have it."""
    removal = record("RemoveTopicRecord", topicId=ORDERS)
    log = metadata_log(tmp_path / "node", [VERSION], [BROKER], [TOPIC, ALONE], [removal])
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    for at, is_there in (("2", False), ("4", True), ("5", False)):
        _, _, *differences = against(log, "--at", at, "--against", broker, exit_code=0 if is_there else 3)
        assert [each["difference"] for each in differences] == [] if is_there else ["unknown-topic"]
    text = run("state", "-j1", log, "--at", "2", "--against", broker).text
    assert "topic created at offset 2, topic removed at offset 4" in text
    assert "States from offset 3 to offset 4 have all topics of these directories that the log knows." in text


def test_states_that_fit() -> None:
    """From the last creation to the first removal; if that is before, none; topics that no state has are counted."""
    one, two, three = (UUID(int=number) for number in range(3))
    origins = {one: TopicOrigin(4, 9), two: TopicOrigin(-1)}
    assert fitting_states(origins, [one, two]) == FittingStates(5, 9, 2, 0)
    assert fitting_states(origins, [two]) == FittingStates(0, None, 1, 0)
    assert fitting_states(origins, [one, three]) == FittingStates(5, 9, 1, 1)
    assert fitting_states(origins, [three]) == FittingStates(None, None, 0, 1)
    assert fitting_states(origins | {three: TopicOrigin(8)}, [one, three]) == FittingStates(9, 9, 2, 0)
    assert fitting_states(origins | {three: TopicOrigin(9)}, [one, three]) == FittingStates(None, None, 2, 0)


def test_a_log_that_was_cut_does_not_know_what_was_made_later(tmp_path: Path) -> None:
    """As after a restore from an old backup: the topics are in no state, and the broker registered later."""
    log = metadata_log(tmp_path / "node", [VERSION], [BROKER])
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS), broker_epoch=9)
    comparison, _, *differences = against(log, "--against", broker, exit_code=3)
    assert [each["difference"] for each in differences] == ["registered-later", "unknown-topic"]
    assert (comparison["topics_known_from"], comparison["topics_never_known"]) == (None, 1)
    assert (differences[1]["created_offset"], differences[1]["topic_id"]) == (None, uuid_to_text(ORDERS))
    text = run("state", "-j1", log, "--against", broker).text
    assert "1 topic of these directories is in no state of the log." in text
    assert "unknown-topic: No topic of the metadata has this id. Kafka renames the directory to -stray" in text


def test_a_log_that_is_damaged_before_a_snapshot_says_nothing_of_earlier_topics(tmp_path: Path) -> None:
    """The state after the snapshot is compared; which states have the topics is not known, and not said."""
    node = shutil.copytree(GOLDEN / "killed/data/n1", tmp_path / "n1")
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    (broker / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    known = run("state", "-j1", node, "--against", broker)
    assert "1 topic of these directories is in no state of the log." in known.text
    flip(min((node / "__cluster_metadata-0").glob("*.log")), 100)
    outcome = run("state", "-j1", node, "--against", broker)
    assert "unknown-topic" in outcome.text
    assert "no state of the log" not in outcome.text
    assert outcome.exit_code == 2


def test_what_is_harmless_has_exit_code_0(log: Path, tmp_path: Path) -> None:
    """A broker that was not given is named, and nothing would be lost."""
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    other = record("RegisterBrokerRecord", brokerId=2, brokerEpoch=1, endPoints=[], features=[], logDirs=[])
    two = metadata_log(tmp_path / "two", [VERSION], [BROKER, other], [TOPIC, ALONE])
    assert [each["kind"] for each in against(log, "--against", broker)] == ["comparison", "compared_broker"]
    assert [each.get("difference") for each in against(two, "--against", broker)[3:]] == ["broker-not-given"]
    outcome = run("state", "-j1", two, "--against", broker)
    assert (outcome.exit_code, "Nothing would be set aside or be lost." in outcome.text) == (0, True)


def test_the_table_has_each_difference_and_what_follows(log: Path, tmp_path: Path) -> None:
    """A row for each, and one sentence for each kind."""
    broker = broker_directory(tmp_path / "b1", ("orders", OTHER), ("payments", OTHER))
    outcome = run("state", "-j1", log, "--against", broker)
    lines = outcome.text.splitlines()
    assert outcome.exit_code == 3
    at = lines.index("Differences (3)")
    assert lines[at + 1].split() == ["BROKER", "DIFFERENCE", "PARTITION", "SEEN", "DIRECTORY"]
    assert [line.split()[:3] for line in lines[at + 2 : at + 5]] == [
        ["1", "unknown-topic", "payments-0"],
        ["1", "recreated-topic", "orders-0"],
        ["1", "replica-aside", "orders-0"],
    ]
    assert [line.split(":")[0] for line in lines if line.startswith(("unknown", "recreated", "replica"))] == [
        *("unknown-topic", "recreated-topic", "replica-aside")
    ]


def test_damage_of_a_broker_s_file_is_exit_code_2(log: Path, tmp_path: Path) -> None:
    """One line with file and position; the rest is compared."""
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS), ("payments", OTHER))
    (broker / "orders-0/partition.metadata").write_bytes(b"version: x\ntopic_id: y")
    outcome = run("state", "-j1", log, "--against", broker)
    assert (outcome.exit_code, len(outcome.complaints)) == (2, 1)
    assert f"{broker}/orders-0/partition.metadata, position 0: " in outcome.messages
    assert "unknown-topic" in outcome.text
    assert "replica-lost" not in outcome.text
    assert "partition.metadata cannot be read" in outcome.text
    (broker / "payments-0/partition.metadata").unlink()
    shutil.rmtree(broker / "payments-0")
    outcome = run("state", "-j1", "--format", "json", log, "--against", broker)
    assert [(each["difference"], each["is_harmful"]) for each in outcome.objects[3:]] == [("unread", False)]
    assert "No difference" not in run("state", "-j1", log, "--against", broker).text


def test_a_record_without_effect_keeps_its_exit_code(tmp_path: Path) -> None:
    """3 if it is suspicious, 2 if it cannot be read, although the brokers agree with the state."""
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    unknown = record("FenceBrokerRecord", id=5, epoch=1)
    unreadable = b"\x01\x02\x00\x02"
    cases: list[tuple[MetadataRecord | bytes, int]] = [(unknown, 3), (unreadable, 2)]
    for number, (bad, exit_code) in enumerate(cases):
        log = metadata_log(tmp_path / f"n{number}", [VERSION], [BROKER], [TOPIC, ALONE, bad])
        outcome = run("state", "-j1", log, "--against", broker)
        assert (outcome.exit_code, len(outcome.complaints)) == (exit_code, 1)
        assert "No difference in what was compared" in outcome.text


def test_what_cannot_be_compared_is_refused_in_one_line(log: Path, tmp_path: Path) -> None:
    """With exit code 1, and nothing on standard output."""
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    for arguments, expected in (
        (("--against", tmp_path / "none"), "none: read failed: it cannot be opened"),
        (("--against", broker / "orders-0"), "it is no log directory of a broker, and has none below it"),
        (("--against", broker, tmp_path / "none"), "none"),
        (("--against",), "expected at least one argument"),
        (("--against", broker, "--at", "9"), "offset 9 is after the end"),
        (("--against", broker, "--between", "0", "1"), "--against compares all of one state"),
        (("--against", broker, "--history", "/"), "--against compares all of one state"),
        (("--against", broker, "--path", "/topics"), "--against compares all of one state"),
        (("--against", broker, "--format", "tree"), "--against compares all of one state"),
    ):
        outcome = run("state", "-j1", log, *arguments)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1), arguments
        assert expected in outcome.messages


def test_a_state_that_lacks_topics_is_not_recommended(tmp_path: Path) -> None:
    """A topic that no state has leaves no range; one that is made later does, and only that."""
    log = metadata_log(tmp_path / "node", [VERSION], [BROKER], [TOPIC, ALONE])
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS), ("payments", OTHER))
    comparison, *_ = against(log, "--against", broker, exit_code=3)
    assert (comparison["topics_known_from"], comparison["topics_never_known"]) == (None, 1)
    assert "States from" not in run("state", "-j1", log, "--against", broker).text
    text = run("state", "-j1", log, "--at", "2", "--against", broker).text
    assert "States from offset 3 to the end of the log have all topics of these directories that the log knows" in text


def test_of_a_damaged_log_the_end_of_what_can_be_read_is_named(tmp_path: Path) -> None:
    """It may go on, and what it says there is not known."""
    log = metadata_log(tmp_path / "node", [VERSION], [BROKER], [TOPIC, ALONE], [BROKER], [BROKER])
    broker = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    arguments = ("state", "-j1", log, "--at", "2", "--against", broker)
    assert "States from offset 3 to the end of the log have" in run(*arguments).text
    (segment,) = (log / "__cluster_metadata-0").glob("*.log")
    last = len(metadata_batch(5, [BROKER], 0))
    flip(segment, segment.stat().st_size - last - 1)
    outcome = run(*arguments)
    assert "States from offset 3 up to where the log can be read have" in outcome.text
    assert outcome.exit_code == 2


def test_topics_of_another_cluster_do_not_count(tmp_path: Path) -> None:
    """Their directory is not compared: no state is looked for that has them."""
    log = metadata_log(tmp_path / "node", [VERSION], [BROKER])
    own = broker_directory(tmp_path / "b1", ("orders", ORDERS))
    foreign = broker_directory(tmp_path / "b2", ("payments", OTHER))
    (log / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=9\n")
    (foreign / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=2\n")
    comparison, *_ = against(log, "--against", own, foreign, exit_code=3)
    assert comparison["topics_never_known"] == 1


def test_a_broker_s_own_metadata_that_is_ahead_is_told(tmp_path: Path) -> None:
    """Of a real node, beside an older copy of its log; an earlier state of its own log says nothing of that."""
    node = GOLDEN / "groups/data/n1"
    end = run("state", "-j1", "--format", "json", node).objects[0]["asked_offset"]
    assert len(against(node, "--against", node)) == 2
    assert "metadata-ahead" not in {
        each.get("difference") for each in against(node, "--at", str(end - 1), "--against", node)
    }
    older = Path(shutil.copytree(node, tmp_path / "older"))
    segment = max((older / "__cluster_metadata-0").glob("*.log"))
    *_, last = (piece for piece in split(BufferSource(segment.read_bytes())) if isinstance(piece, RecordBatch))
    segment.chmod(0o600)
    with segment.open("r+b") as file:
        file.truncate(last.position)
    found = against(older, "--against", node, exit_code=3)[2:]
    assert [(each["difference"], each["seen"]) for each in found if each["difference"] == "metadata-ahead"] == [
        ("metadata-ahead", f"its __cluster_metadata ends at offset {end}, and the given log at {last.base_offset}")
    ]


def test_a_copy_of_a_directory_is_found(tmp_path: Path) -> None:
    """A broker with the copy beside it does not start, and has each partition twice."""
    copied = shutil.copytree(TOPICS, tmp_path / "copy", ignore=shutil.ignore_patterns("__cluster*"))
    kinds = {each["difference"] for each in against(TOPICS, "--against", TOPICS, copied, exit_code=3)[2:]}
    assert kinds == {"directory-twice", "two-copies"}
