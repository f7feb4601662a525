# SPDX-License-Identifier: Apache-2.0
"""``raftlog voters``, ``epochs`` and ``quorum``: what they say of real quorums is what Kafka's own tools say."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, RecoveryPoint
from raftlog.tools.audit_verbs.epochs import bar, epoch_lines
from raftlog.tools.audit_verbs.quorum import EXIT_CODES_HELP, exit_code
from raftlog.tools.auditing.history.timelines import EpochLead
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.terminal.value_text import duration_text
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "quorum-1.schema.json").read_text()))
QUORUMS = ("dynamic-quorum", "static-upgrade", "wire")
_CONTROL = re.compile(r"offset: (\d+) CreateTime: (\d+) .*?(LeaderChange:?|KRaftVoters|KRaftVersion) (\{.*\})")


def lines(verb: str, *paths: Path) -> list[dict[str, Any]]:
    """The JSON lines of a verb, checked against the schema."""
    outcome = run(verb, "--format", "jsonl", *paths)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    for each in outcome.objects:
        SCHEMA.validate(each)
    return outcome.objects


def replicas(name: str) -> list[Path]:
    """The log directories of a quorum."""
    return sorted((GOLDEN / name / "data").iterdir())


def kafkas_records(name: str, kind: str, node: str = "*") -> dict[int, tuple[int, dict[str, Any]]]:
    """The control records in segments by Kafka's dump-log: time and value by offset."""
    found = {}
    for path in (GOLDEN / name / "expected").glob(f"{node}.__cluster_metadata-0.*.log.deep.txt"):
        for offset, timestamp, type_name, value in _CONTROL.findall(path.read_text()):
            if type_name.startswith(kind):
                found[int(offset)] = int(timestamp), json.loads(value)
    return found


def status(name: str, step: str) -> dict[str, str]:
    """The output of kafka-metadata-quorum describe --status."""
    text = (GOLDEN / name / "expected" / f"quorum-{step}.txt").read_text()
    return dict(re.split(r":\s+", line, maxsplit=1) for line in text.splitlines())


def said(outcome: Outcome) -> dict[str, str]:
    """The same of `raftlog quorum`."""
    return dict(re.split(r":\s+", line, maxsplit=1) for line in outcome.text.splitlines()[:7])


def as_kafka(voters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Voters as Kafka's VotersRecord has them in JSON."""
    return [
        {
            "voterId": voter["id"],
            "voterDirectoryId": voter["directory_id"],
            "endpoints": voter["endpoints"],
            "kRaftVersionFeature": {
                "minSupportedVersion": voter["min_supported_version"],
                "maxSupportedVersion": voter["max_supported_version"],
            },
        }
        for voter in voters
    ]


@pytest.mark.parametrize("name", QUORUMS)
def test_voters_are_those_of_kafkas_dump(name: str) -> None:
    """Each VotersRecord that Kafka prints is a line, with its offset, time and whole set; the last one is in force."""
    found = lines("voters", *replicas(name))
    expected = kafkas_records(name, "KRaftVoters")
    recorded = {each["offset"]: each for each in found if each["offset"] in expected}

    assert recorded.keys() == expected.keys()
    for offset, (timestamp, value) in expected.items():
        by_id = sorted(value["voters"], key=lambda voter: voter["voterId"])
        assert as_kafka(recorded[offset]["voters"]) == by_id
        assert (recorded[offset]["timestamp"], recorded[offset]["kraft_version"]) == (timestamp, 1)
    assert found[-1]["offset"] == max(expected)


def test_what_each_change_was() -> None:
    """A voter was added, and another one removed; each set is seen in logs and snapshots of several replicas."""
    found = lines("voters", *replicas("dynamic-quorum"))

    assert [(each["offset"], each["added"], each["removed"], each["updated"]) for each in found] == [
        (-1, [1, 2, 3], [], []),
        (2, [], [], []),
        (114, [4], [], []),
        (172, [], [1], []),
    ]
    assert {Path(path).parts[-3] for path in found[-1]["seen_in"]} == {"n1", "n2", "n3", "n4", "n101"}


@pytest.mark.parametrize("name", QUORUMS)
def test_replicas_agree(name: str) -> None:
    """Each replica alone shows the same history, as far back as its files go."""
    whole = {each["offset"]: each["voters"] for each in lines("voters", *replicas(name))}
    leaders = {each["epoch"]: each["leader_id"] for each in lines("epochs", *replicas(name))}
    for replica in replicas(name):
        alone = {each["offset"]: each["voters"] for each in lines("voters", replica)}
        in_log = {offset: voters for offset, voters in alone.items() if offset in whole}
        assert in_log == {offset: whole[offset] for offset in in_log}
        assert max(alone) == max(whole)
        for each in lines("epochs", replica):
            assert each["leader_id"] in {None, leaders[each["epoch"]]}


@pytest.mark.parametrize("name", QUORUMS)
def test_epochs_are_those_of_kafkas_dump(name: str) -> None:
    """Each LeaderChange that Kafka prints begins a line, with who led and who voted for it."""
    found = {each["start_offset"]: each for each in lines("epochs", *replicas(name))}
    expected = kafkas_records(name, "LeaderChange")

    assert found.keys() == expected.keys()
    for offset, (timestamp, value) in expected.items():
        line = found[offset]
        assert (line["leader_id"], line["start_timestamp"]) == (value["leaderId"], timestamp)
        assert line["granting_voters"] == [voter["voterId"] for voter in value["grantingVoters"]]
        assert line["voters"] == [voter["voterId"] for voter in value["voters"]]


@pytest.mark.parametrize(
    ("name", "step"), [("dynamic-quorum", "3-removed"), ("static-upgrade", "2-upgraded"), ("wire", "removed")]
)
def test_the_status_is_kafkas(name: str, step: str) -> None:
    """Facts that do not change when a quorum stops are those that Kafka reported while it ran, in the same form."""
    kafkas, ours = status(name, step), said(run("quorum", *replicas(name)))

    assert ours.keys() == kafkas.keys() - {"MaxFollowerLagTimeMs"}
    for field in ("ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters"):
        assert ours[field] == kafkas[field]
    assert int(ours["HighWatermark"].split()[0]) >= int(kafkas["HighWatermark"])
    in_order = [sorted(json.loads(each["CurrentObservers"]), key=lambda node: node["id"]) for each in (ours, kafkas)]
    assert in_order[0] == in_order[1]


def test_the_replication_is_kafkas() -> None:
    """Node and directory ids and status are those of Kafka's table."""
    rows = (GOLDEN / "dynamic-quorum/expected/quorum-4-removed-replication.txt").read_text().splitlines()[1:]
    expected = {tuple(row.split()[index] for index in (0, 1, -1)) for row in rows}
    found = [each for each in lines("quorum", *replicas("dynamic-quorum")) if each["kind"] == "replica"]

    assert {(str(each["node_id"]), each["directory_id"], each["status"]) for each in found} == expected
    text = run("quorum", *replicas("dynamic-quorum")).text
    assert "A majority is here: 3 of 3 voters; 2 suffice." in text
    assert "Kafka could elect, if all voters here were started: 3, 4." in text


def test_a_static_quorum() -> None:
    """Voters at kraft.version 0 are those that leaders name."""
    directory = GOLDEN / "static-upgrade/before-upgrade"
    (change,) = lines("voters", directory)

    assert (change["kraft_version"], [voter["id"] for voter in change["voters"]]) == (0, [1, 2, 3])
    assert json.loads(said(run("quorum", directory))["CurrentVoters"]) == [{"id": 1}, {"id": 2}, {"id": 3}]
    text = run("quorum", directory).text
    assert "May be dropped: offset 126 of 3" in text
    assert "Not proven: offsets 125 to 126; they may be committed." in text


def test_one_file() -> None:
    """A single snapshot shows its voters, and a single segment its epochs."""
    directory = GOLDEN / "wire/data/n1/__cluster_metadata-0"
    (change,) = lines("voters", directory / "00000000000000000237-0000000004.checkpoint")

    assert (change["offset"], change["added"], len(change["voters"])) == (236, [], 3)
    assert [each["epoch"] for each in lines("epochs", directory / "00000000000000000102.log")] == [1, 3, 4]


def test_text() -> None:
    """Text has a row a change, and who votes now."""
    text = run("voters", *replicas("dynamic-quorum")).text

    assert re.search(r"^ +172 +4 +2026-11-21T10:48:36.998Z +1 +2, 3, 4 +removed 1 ", text, re.MULTILINE)
    assert "  4  vBFnE5Lodh8XV8ACQoFPYw  CONTROLLER://127.0.0.1:19094  kraft.version 0 to 1" in text
    text = run("epochs", *replicas("dynamic-quorum")).text
    assert re.search(r"^ +3 +1 +67 +148 +81 +2026-11-21T10:47:57.980Z +27.921 s +3, 1 +1, 2, 3 ", text, re.MULTILINE)


def test_several_logs() -> None:
    """Quorums of several clusters are shown one after the other, each by its name."""
    text = run("epochs", GOLDEN / "data-topics/data/n1/txn-0", GOLDEN / "data-topics/data/n1/txn-1").text

    assert [line for line in text.splitlines() if "txn" in line and "EPOCH" not in line] == [
        "txn-0 of cluster MkU3OEVBNTcwNTJENDM2Qg",
        "txn-1 of cluster MkU3OEVBNTcwNTJENDM2Qg",
    ]


@pytest.mark.parametrize("verb", ["voters", "epochs", "quorum"])
def test_bad_input(verb: str, tmp_path: Path) -> None:
    """A missing path, or one that is not a log, is one line on standard error, and exit code 1."""
    for path in (tmp_path / "absent", tmp_path):
        outcome = run(verb, path)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert run(verb).exit_code == 1
    assert run(verb, "--help").exit_code == 0


def test_a_tail_below_the_durable_point_is_not_electable(tmp_path: Path) -> None:
    """A log that raftlog's own files know to have been longer cannot be elected, and has lost records: exit code 2.

    The exit code of ``quorum`` is that of its verdict: a majority without that voter has all that was committed.
    """
    for node in replicas("dynamic-quorum"):
        shutil.copytree(node, tmp_path / node.name)
    path = tmp_path / "n3" / "__cluster_metadata-0"
    epochs = read_leader_epoch_checkpoint((path / "leader-epoch-checkpoint").read_bytes())
    (path / RECOVERY_POINT_NAME).write_bytes(RecoveryPoint(10**6, generation=1, epochs=epochs).encode())
    outcome = run("quorum", "--format", "jsonl", tmp_path)

    (torn,) = (each for each in outcome.of_kind("replica") if each["node_id"] == 3)
    assert (torn["electable"], torn["quarantined_from"]) == (False, torn["log_end_offset"])
    assert "In quarantine: 3, " in run("quorum", tmp_path).text
    for verb in ("voters", "epochs", "quorum"):
        lost = run(verb, tmp_path)
        expected = f"lost durable records from offset {torn['log_end_offset']} on"
        assert (lost.exit_code, len(lost.complaints), expected in lost.messages) == (
            0 if verb == "quorum" else 2,
            1,
            True,
        )


@pytest.mark.parametrize("verb", ["voters", "epochs", "quorum"])
def test_damage_is_reported_and_the_rest_is_shown(verb: str, tmp_path: Path) -> None:
    """A damaged segment is a line on standard error and exit code 2; what else is there is shown all the same.

    The exit code of ``quorum`` is that of its verdict: one of four voters cannot tell.
    """
    shutil.copytree(GOLDEN / "dynamic-quorum/data/n1", tmp_path / "n\udc80")
    path = tmp_path / "n\udc80/__cluster_metadata-0/00000000000000000193.log"
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    outcome = run(verb, "--format", "jsonl", tmp_path)

    exit_code = 3 if verb == "quorum" else 2
    assert outcome.exit_code == exit_code
    assert len(outcome.complaints) == 1
    assert "damaged" in outcome.messages
    assert outcome.objects
    assert run(verb, tmp_path).exit_code == exit_code


def test_a_log_that_is_not_rafts(tmp_path: Path) -> None:
    """The quorum of a topic's log is an error; its epochs are shown."""
    outcome = run("quorum", GOLDEN / "data-topics/data/n1/txn-0")

    assert (outcome.exit_code, outcome.complaints) == (1, ["raftlog quorum: the paths have no raft log"])
    assert lines("epochs", GOLDEN / "data-topics/data/n1/txn-0")[0]["leader_id"] is None
    assert "names voters here" in run("voters", GOLDEN / "data-topics/data/n1/txn-0").text


@pytest.mark.parametrize(
    ("verdicts", "errors", "code"),
    [
        ([], 0, 0),
        ([], 1, 1),
        ([QuorumVerdict.NOTHING_MISSING], 0, 0),
        ([QuorumVerdict.NOTHING_MISSING], 1, 1),
        ([QuorumVerdict.UNKNOWN, QuorumVerdict.NOTHING_MISSING], 0, 3),
        ([QuorumVerdict.UNKNOWN], 1, 1),
        ([QuorumVerdict.UNKNOWN, QuorumVerdict.MISSING], 1, 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst_verdict(verdicts: list[QuorumVerdict], errors: int, code: int) -> None:
    """A loss outranks what could not be read, which outranks what is not known."""
    assert exit_code(verdicts, Tally(errors=errors)) == code
    assert f" {code} " in EXIT_CODES_HELP


DURATIONS = {0: "0.000 s", 59_999: "59.999 s", 61_000: "1 min 1 s", 7_260_000: "2 h 1 min", 180_000_000: "2 d 2 h"}


@pytest.mark.parametrize("duration_ms", DURATIONS)
def test_durations(duration_ms: int) -> None:
    """A duration is written in its two largest units."""
    assert duration_text(duration_ms) == DURATIONS[duration_ms]


def test_bars() -> None:
    """On a terminal each epoch has a bar, whose length is its share of the longest."""
    assert (bar(0, 0), bar(0, 5), bar(5, 5), bar(1, 160)) == ("", "", "█" * 20, "▏")
    leads = [EpochLead(epoch, 1, 0, 1, 0, epoch * 1000, 1, (1,), (1,), ("a/b/c.log",)) for epoch in (1, 2)]
    plain, drawn = (list(epoch_lines(leads, with_bars=with_bars)) for with_bars in (False, True))

    assert [line.endswith("█" * 10 * number) for number, line in enumerate(drawn) if number] == [True, True]
    assert not any("█" in line for line in plain)


def test_a_renamed_snapshot(tmp_path: Path) -> None:
    """What its name would prove is missing: the files cannot tell, and the file is named, in JSON as in text."""
    log = tmp_path / "n1" / "__cluster_metadata-0"
    for node in ("n1", "n3", "n4"):
        shutil.copytree(GOLDEN / "wire" / "data" / node, tmp_path / node)
    name = log / "00000000000000000237-0000000004.checkpoint"
    renamed = name.rename(log / "00000000000000000900-0000000004.checkpoint")

    outcome = run("quorum", "--format", "jsonl", tmp_path)
    [quorum] = [each for each in outcome.objects if each["kind"] == "quorum"]
    SCHEMA.validate(quorum)
    assert (outcome.exit_code, quorum["verdict"], quorum["reason"]) == (3, "unknown", "name-doubted")
    assert [each["file"] for each in quorum["misnamed_snapshots"]] == [str(renamed)]
    assert [each["is_certain"] for each in quorum["misnamed_snapshots"]] == [False]
    assert (quorum["way"], quorum["start"]) == ("settle-names", [])
    assert [each["is_misled"] for each in outcome.objects if each["kind"] == "replica"] == [False, False, False]
    text = run("quorum", tmp_path).text
    assert f"snapshot {renamed} is doubted (its last contained timestamp is " in text
    assert f"Doubted name: snapshot {renamed}; it is used, but its end proves nothing: keep it: its last" in text
    assert "COMMITTED" not in text
    found = [each for each in run("verify", "--format", "jsonl", tmp_path).objects if each.get("rule")]
    assert [(each["rule"], each["file"]) for each in found] == [("snapshot-ahead", str(renamed))]


def test_a_snapshot_under_the_name_of_another(tmp_path: Path) -> None:
    """The log has the record before the end in its name, with another time: it is wrong for certain, and not used."""
    for node in ("n1", "n3", "n4"):
        shutil.copytree(GOLDEN / "wire" / "data" / node, tmp_path / node)
    log = tmp_path / "n1" / "__cluster_metadata-0"
    wrong = log / "00000000000000000237-0000000004.checkpoint"
    (log / "00000000000000000198-0000000004.checkpoint").rename(wrong)

    outcome = run("quorum", "--format", "jsonl", tmp_path)
    [quorum] = [each for each in outcome.objects if each["kind"] == "quorum"]
    SCHEMA.validate(quorum)
    assert [(each["file"], each["is_certain"]) for each in quorum["misnamed_snapshots"]] == [(str(wrong), True)]
    assert [each["node_id"] for each in quorum["start"]] == [3, 4]
    replicas = [each for each in outcome.objects if each["kind"] == "replica"]
    assert {each["node_id"]: (each["has_state"], each["is_misled"]) for each in replicas} == {
        1: (True, True),
        3: (True, False),
        4: (True, False),
    }
    assert f"starts, move {wrong} out of its directory" in run("quorum", tmp_path).text
    options = ("--initial-controllers", "1@host:1:3PbC-lOLRFo6CVJVw2Qd_A", "--lost", "3", "--plan", tmp_path / "plan")
    refused = run("rewrite-voters", tmp_path / "n1", *options)
    assert refused.exit_code == 2
    assert str(wrong) in refused.messages
    assert "a node would begin with what is wrong" in refused.messages
    assert str(wrong) in refused.messages


def test_a_state_names_the_snapshots_of_doubted_names(tmp_path: Path) -> None:
    """The state comes from what is here, and standard error says which file may have more."""
    shutil.copytree(GOLDEN / "wire" / "data" / "n1", tmp_path / "n1")
    log = tmp_path / "n1" / "__cluster_metadata-0"
    name = log / "00000000000000000237-0000000004.checkpoint"
    renamed = name.rename(log / "00000000000000000900-0000000004.checkpoint")

    outcome = run("state", tmp_path)
    assert f"Doubted name: snapshot {renamed}; it is used" in outcome.messages
    assert "a clock was set back" in outcome.messages
