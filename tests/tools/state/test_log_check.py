# SPDX-License-Identifier: Apache-2.0
"""``raftlog state --check`` says which releases start with a log, and at which record the others stop."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.messages.control import KRaftVersionRecord, write_control_record
from raftlog.records.messages.metadata import MetadataRecord
from raftlog.tools.image.cluster_image import StoredControl
from raftlog.tools.loading.features import CHECKED_RELEASES
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.tools.console import Outcome, run
from tests.tools.loading.control_logs import CONTROL_LOGS
from tests.tools.loading.poisoned_logs import BEGIN, END, POISONED, V, feature, topic, version
from tests.tools.made_logs import control_batch, write_log
from tests.tools.state.made_metadata import metadata_batch, metadata_log

SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "state-1.schema.json").read_text()))
QUORUM = GOLDEN / "dynamic-quorum/data"


def check(*arguments: str | Path) -> Outcome:
    """A run that checks, without worker processes."""
    return run("state", "-j1", "--check", *arguments)


def check_json(*arguments: str | Path) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """The exit code, the line about the log, and the lines about the releases by name; all keep to the schema."""
    outcome = check(*arguments, "--format", "json")
    for line in outcome.objects:
        SCHEMA.validate(line)
    (head,) = outcome.of_kind("load_check")
    return outcome.exit_code, head, {each["release"]: each for each in outcome.of_kind("release")}


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A log with two topics of one name: the second is at offset 2."""
    return metadata_log(tmp_path / "node", [V], [topic("orders", 1), topic("orders", 2)], [topic("other", 3)])


def test_the_record_that_all_releases_die_of(twins: Path) -> None:
    """With its offset, its index in the batch, its type and the reason; the exit code is that of damage."""
    code, head, releases = check_json(twins)
    assert (code, head["lowest_release"], head["end_offset"]) == (2, None, 4)
    assert list(releases) == list(CHECKED_RELEASES)
    for each in releases.values():
        assert (each["starts"], each["offset"], each["record_index"], each["record"]) == (False, 2, 1, "TopicRecord")
        assert (each["rule"], each["source"]) == ("duplicate-topic", "ReplicationControlManager#replay")
    outcome = check(twins)
    assert outcome.exit_code == 2
    assert "No controller of 3.9, 4.0, 4.1, 4.2, 4.3, 4.4 starts with this log." in outcome.text
    assert outcome.text.count("there is a topic orders already") == 1
    assert "3.9 to 4.4  no           2      1  TopicRecord  duplicate-topic  there is a topic orders" in outcome.text
    assert "'raftlog snapshot' can write a snapshot without the records" in outcome.text


def test_before_the_poison_all_releases_start(twins: Path) -> None:
    """At its own offset they do, and one offset later, inside of the batch, they still do; at its end they do not."""
    for at, code, end in (("1", 0, 1), ("2", 0, 1), ("3", 2, 3)):
        found, head, releases = check_json(twins, "--at", at)
        assert (found, head["end_offset"]) == (code, end)
        assert {each["starts"] for each in releases.values()} == {code == 0}
    assert "Offset 2 is inside a batch: this is about the log before it." in check(twins, "--at", "2").text
    assert "inside a batch" not in check(twins, "--at", "1").text


@pytest.mark.parametrize("release", CHECKED_RELEASES)
def test_one_release_is_asked(release: str, tmp_path: Path) -> None:
    """The exit code is about it alone: a level of 4.2 is too high for older ones."""
    log = metadata_log(tmp_path, [version("4.2-IV1")])
    starts = release in {"4.2", "4.3", "4.4"}
    code, head, releases = check_json(log, "--kafka", release)
    assert (code, head["lowest_release"]) == (0 if starts else 2, "4.2")
    assert list(releases) == [release]
    assert releases[release]["starts"] is starts
    text = check(log, "--kafka", release).text
    assert (f"needs a newer release than {release}: the lowest that starts is 4.2." in text) is not starts
    assert "raftlog snapshot" not in text


@pytest.mark.parametrize(
    "name", ["metadata.version 99", "an unknown type", "an unknown type after a duplicate", "an unknown feature"]
)
def test_a_log_that_is_too_new_for_all_has_no_hint_to_a_snapshot(name: str, tmp_path: Path) -> None:
    """A snapshot without such a record would lose what a newer release wrote."""
    outcome = check(metadata_log(tmp_path, *POISONED[name].batches))
    assert outcome.exit_code == 2
    assert "This log has records of a newer release than 4.4, or wrong ones." in outcome.text
    assert "raftlog snapshot" not in outcome.text


def test_a_log_that_is_too_new_for_old_releases_is_fine(tmp_path: Path) -> None:
    """From the lowest release that starts on, all do; a release above it that does not is a fault."""
    code, head, _ = check_json(metadata_log(tmp_path / "a", [version("4.2-IV1")]))
    assert (code, head["lowest_release"]) == (0, "4.2")
    assert "The lowest release whose controllers start with this log is 4.2." in check(tmp_path / "a").text
    only_old: list[MetadataRecord | bytes] = list(POISONED["no metadata.version"].batches[0])
    code, head, _ = check_json(metadata_log(tmp_path / "b", only_old))
    assert (code, head["lowest_release"]) == (2, "3.9")


def test_a_log_at_the_end_of_which_controllers_stop(tmp_path: Path) -> None:
    """No record is to blame: the offset is the end of the log."""
    _, _, releases = check_json(metadata_log(tmp_path, [topic("a", 1)]), "--kafka", "4.3")
    assert [releases["4.3"][name] for name in ("offset", "record_index", "record")] == [1, None, None]
    text = check(tmp_path, "--kafka", "4.3").text
    assert "4.3       no           1      -  -       no-metadata-version" in text
    assert "raftlog snapshot" not in text


def test_a_quorum_of_kafka_starts_from_its_snapshot() -> None:
    """4.3 wrote these directories; the others say that the fault is in the snapshot."""
    code, head, releases = check_json(QUORUM / "n1")
    assert (code, head["lowest_release"], head["end_offset"]) == (0, "4.3", 230)
    assert head["snapshot"] == "00000000000000000081-0000000003.checkpoint"
    assert {name: each["is_in_snapshot"] for name, each in releases.items()} == {
        **dict.fromkeys(("3.9", "4.0", "4.1", "4.2"), True),
        "4.3": None,
        "4.4": None,
    }
    reason = "it has version 4, and 4.2 knows 0 to 3: Failed to deserialize record with type 0"
    assert releases["4.2"]["reason"] == reason
    assert f"in the snapshot: {reason}" in check(QUORUM / "n1", "--kafka", "4.2").text
    assert f"in the snapshot: {reason.replace('4.2 knows', '3.9 to 4.2 know')}" in check(QUORUM / "n1").text


def test_a_feature_in_a_batch_stops_no_release_that_knows_it(tmp_path: Path) -> None:
    """share.version 1 is of 4.1, 2 of 4.4."""
    for level, lowest in ((1, "4.1"), (2, "4.4")):
        log = metadata_log(tmp_path / str(level), [version("3.9-IV0"), feature("share.version", level)])
        assert check_json(log)[1]["lowest_release"] == lowest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--check", "--kafka", "3.8"), "invalid choice: '3.8'"),
        (("--kafka", "4.1"), "--kafka goes with --check"),
        (("--check", "--between", "0", "1"), "--check is about a whole state"),
        (("--check", "--history", "/topics"), "--check is about a whole state"),
        (("--check", "--path", "/topics"), "--check is about a whole state"),
        (("--check", "--format", "tree"), "--check has no tree"),
        (("--check", "--at", "5"), "offset 5 is after the end"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(arguments: tuple[str, ...], expected: str, twins: Path) -> None:
    """With exit code 1."""
    outcome = run("state", "-j1", twins, *arguments)
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert expected in outcome.messages


def test_each_replica_is_judged_from_its_own_snapshot(tmp_path: Path) -> None:
    """One has a snapshot after the twins, and starts; the other has only the log, and does not: the code is 2."""
    batches = [V], [topic("a", 1), topic("a", 2)], [topic("b", 3)]
    one, two = (metadata_log(tmp_path / name, *batches) for name in ("one", "two"))
    (path,) = run("snapshot", "-j1", "--force", "--format", "jsonl", one, "--out", tmp_path).of_kind("snapshot")
    Path(path["file"]).rename(one / "__cluster_metadata-0" / Path(path["file"]).name)
    outcome = check(one, two, "--format", "json")
    for line in outcome.objects:
        SCHEMA.validate(line)
    assert outcome.exit_code == 2
    lowest = {each["directory"]: each["lowest_release"] for each in outcome.of_kind("load_check")}
    assert lowest == {str(one): "3.9", str(two): None}
    starts = {(each["directory"], each["starts"]) for each in outcome.of_kind("release")}
    assert starts == {(str(one), True), (str(two), False)}
    text = check(one, two).text
    assert f"Read from {one}: 00000000000000000004-0000000001.checkpoint" in text
    assert f"Read from {two}: the start of the log" in text
    assert check(one).exit_code == 0


def test_a_quorum_has_an_answer_for_each_node() -> None:
    """All directories together prove what each one alone does not."""
    outcome = check(*(QUORUM / f"n{number}" for number in (1, 2, 3, 4)), "--format", "json")
    heads = outcome.of_kind("load_check")
    assert (outcome.exit_code, len(heads), len(outcome.of_kind("release"))) == (0, 4, 24)
    assert {head["lowest_release"] for head in heads} == {"4.3"}
    assert any(head["is_proven"] for head in heads)


def test_a_replica_without_the_position_is_an_error_beside_the_others(twins: Path, tmp_path: Path) -> None:
    """The others are judged; that it does not start outranks the error."""
    short = metadata_log(tmp_path / "short", [V])
    outcome = check(twins, short, "--at", "4")
    assert (outcome.exit_code, len(outcome.complaints)) == (2, 1)
    assert f"{short}: offset 4 is after the end" in outcome.messages
    assert check(twins, short, "--at", "1").exit_code == 0
    fine = metadata_log(tmp_path / "fine", [V], [topic("a", 1)])
    assert check(fine, short, "--at", "2").exit_code == 1


def test_what_is_not_proven_is_said(twins: Path) -> None:
    """As it is of a state; in JSON too."""
    assert "Records from offset 0 on are not proven to be committed by the given files." in check(twins).text
    _, head, _ = check_json(twins)
    assert (head["is_proven"], head["proven_offset"]) == (False, 0)
    assert "A clock went back: 1 later batches" in check(_with_a_clock(twins), "--at", "1970-01-01T00:16:41").text


def _with_a_clock(log: Path) -> Path:
    batches = [V], [topic("a", 1)], [topic("b", 2)]
    return metadata_log(log.parent / "clock", *batches, times=(1_000_000, 1_002_000, 1_001_000))


def test_a_damaged_log_has_no_yes(tmp_path: Path) -> None:
    """It is judged up to the damage: null, not true; below the damage it is as it was."""
    log = metadata_log(tmp_path / "node", [V], [topic("a", 1)], [topic("b", 2)])
    (segment,) = log.rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(data)
    code, head, releases = check_json(log)
    assert (code, head["lowest_release"], head["damage"] is None) == (2, None, False)
    assert {(each["starts"], each["offset"]) for each in releases.values()} == {(None, 2)}
    assert "starts, up to the damage at offset 2" in check(log).text
    _, head, releases = check_json(log, "--at", "1")
    assert (head["damage"], {each["starts"] for each in releases.values()}) == (None, {True})


def test_a_damaged_snapshot_has_no_yes(tmp_path: Path) -> None:
    """Controllers begin with the newest one, whatever else there is."""
    log = metadata_log(tmp_path / "node", [V], [topic("a", 1)])
    (line,) = run("snapshot", "-j1", "--force", "--format", "jsonl", log, "--out", tmp_path).of_kind("snapshot")
    data = bytearray(Path(line["file"]).read_bytes())
    data[-3] ^= 1
    (log / "__cluster_metadata-0" / Path(line["file"]).name).write_bytes(data)
    code, head, releases = check_json(log)
    assert (code, {each["starts"] for each in releases.values()}) == (2, {None})
    assert "the newest snapshot, 00000000000000000002-0000000001.checkpoint" in head["damage"]


def test_a_log_that_is_refused_is_damage_beside_a_suspicion(twins: Path) -> None:
    """A file that cannot be judged, or an I/O error, does not hide that no release starts."""
    assert check(twins, twins.parent / "missing").exit_code == 2


@pytest.mark.parametrize(("level", "is_known"), [(0, True), (1, True), (2, False)])
def test_a_level_of_kraft_version_that_is_not_known(level: int, is_known: bool, tmp_path: Path) -> None:
    """Raft of no release reads it, and no snapshot is made without it; before it, all start."""
    key, value = write_control_record(KRaftVersionRecord(level))
    first = metadata_batch(0, [V], 1)
    data = [first, control_batch(1, key, value), metadata_batch(2, [topic("a", 1)], 2)]
    path = write_log(tmp_path / "node" / "__cluster_metadata-0", *data)
    _, head, releases = check_json(tmp_path / "node")
    assert ({each["starts"] for each in releases.values()}, head["damage"]) == ({is_known}, None)
    if not is_known:
        for each in releases.values():
            assert (each["rule"], each["offset"], each["record"]) == ("kraft-version", 1, "KRaftVersionRecord")
            assert (each["file"], each["position"]) == (str(path), len(first))
        text = check(tmp_path / "node").text
        assert f"Offset 1 is in the batch at position {len(first)} of {path}.\n" in text
        assert "This log has records of a newer release than 4.4, or wrong ones." in text
    assert {each["starts"] for each in check_json(tmp_path / "node", "--at", "1")[2].values()} == {True}
    for options in ((), ("--skip-unknown",)):
        outcome = run("snapshot", "-j1", "--force", *options, tmp_path / "node", "--out", tmp_path)
        problem = "the control record at offset 1 (index 0) cannot be left out: kraft-version: kraft.version has"
        assert (problem in outcome.messages) is not is_known
        assert bool(list(tmp_path.glob("*.checkpoint"))) is is_known
        for snapshot in tmp_path.glob("*.checkpoint"):
            snapshot.unlink()


def test_a_control_record_that_raft_refuses_is_no_record_for_a_snapshot(tmp_path: Path) -> None:
    """The answer does not say that a snapshot helps: it could have other voters."""
    log = CONTROL_LOGS["a listener without a name"]
    write_log(tmp_path / "__cluster_metadata-0", log.log_bytes[0][1], metadata_batch(2, [V], 1))
    outcome = check(tmp_path)
    assert outcome.exit_code == 2
    row = "3.9 to 4.4  no           1      1  VotersRecord  voters  voter 1 of a VotersRecord: a listener name is blank"
    assert row in outcome.text
    assert "raftlog snapshot" not in outcome.text


@pytest.mark.parametrize("level", [1, 2])
def test_the_control_records_of_the_bootstrap_snapshot_count(level: int, tmp_path: Path) -> None:
    """Raft reads them before a log that begins at 0; its data does not count."""
    log = CONTROL_LOGS["a bootstrap snapshot at kraft.version 2"]
    snapshot = log._replace(snapshot=[log.snapshot[0], StoredControl(*write_control_record(KRaftVersionRecord(level)))])
    folder = tmp_path / "__cluster_metadata-0"
    write_log(folder, metadata_batch(0, [V], 1))
    (folder / "00000000000000000000-0000000000.checkpoint").write_bytes(snapshot.snapshot_bytes)
    _, _, releases = check_json(tmp_path)
    assert {each["starts"] for each in releases.values()} == {level == 1}
    assert {each["is_in_snapshot"] for each in releases.values()} == {None if level == 1 else True}


def move_snapshots(source: Path, target: Path) -> None:
    """Move snapshots beside a log, which no verb writes into."""
    for path in source.glob("*.checkpoint"):
        path.rename(target / path.name)


def test_a_newer_snapshot_helps_if_a_transaction_begins_where_the_snapshot_ends(tmp_path: Path) -> None:
    """The answer says so; with that snapshot beside the log, all releases start."""
    bounded = [BEGIN, topic("a", 1), END]
    log = metadata_log(tmp_path / "node", [V], bounded)
    folder = log / "__cluster_metadata-0"
    assert run("snapshot", "-j1", "--force", "--at", "1", log, "--out", tmp_path).exit_code == 3
    move_snapshots(tmp_path, folder)
    outcome = check(log)
    assert outcome.exit_code == 2
    assert "3.9 to 4.4  no           1      0  BeginTransactionRecord  snapshot-end  a transaction" in outcome.text
    assert "A newer snapshot, which 'raftlog snapshot' can write, has the transaction" in outcome.text
    assert run("snapshot", "-j1", "--force", log, "--out", tmp_path).exit_code == 0
    move_snapshots(tmp_path, folder)
    assert check(log).exit_code == 0


def test_adjacent_releases_of_which_the_same_is_said_have_one_row(tmp_path: Path) -> None:
    """Those of another one between them do not."""
    text = check(metadata_log(tmp_path / "a", [V], [feature("share.version", 2)])).text
    assert "\n3.9 to 4.0  no " in text
    assert "share.version has level 2, and 3.9 to 4.0 support 0 to 0\n" in text
    assert "share.version has level 2, and 4.1 to 4.3 support 0 to 1\n" in text
    assert "\n4.4         yes" in text
    named = feature("x, and 3.9 supports 7, and 3.9 knows", 1)
    text = check(metadata_log(tmp_path / "n", [V], [named])).text
    assert "x, and 3.9 supports 7, and 3.9 knows has level 1, and 3.9 to 4.4 support 0 to 0\n" in text
    text = check(metadata_log(tmp_path / "b", [V], [topic("a", 1)])).text
    assert "\n3.9 to 4.4  yes          -      -  -       -     -\n" in text
    text = check(metadata_log(tmp_path / "c", [topic("a", 1)])).text
    assert "\n3.9         yes " in text
    assert "\n4.0 to 4.4  no " in text
