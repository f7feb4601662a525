# SPDX-License-Identifier: Apache-2.0
"""Bad input to ``raftlog rewrite-voters``: one clear line, the right exit code, and nothing is written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from raftlog.records.files.property_files import read_meta_properties, write_meta_properties
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.tools.auditing.run.engine import survey_all
from tests.other_processes import held_by_another_process
from tests.tools.console import Outcome, run
from tests.tools.made_logs import flip
from tests.tools.repair.repaired import (
    DIRECTORY_IDS,
    LOG,
    NEW_DISK,
    STATIC,
    THREE,
    apply,
    copied,
    everything,
    plan,
)


def check_refused(outcome: Outcome, reason: str, exit_code: int = 1) -> None:
    """Check that nothing was done, and that one line says why."""
    assert (outcome.exit_code, outcome.output) == (exit_code, b""), outcome.messages
    (line,) = outcome.complaints
    assert line.startswith("raftlog rewrite-voters: ")
    assert reason in line


def to_cluster(directory: Path, cluster_id: str) -> None:
    """Move a directory to another cluster."""
    path = directory / "meta.properties"
    meta = attrs.evolve(read_meta_properties(path.read_bytes()), cluster_id=cluster_id)
    path.write_bytes(write_meta_properties(meta))


VOTERS = {
    "": "not a voter like",
    "3": "not a voter like",
    "3@127.0.0.1:19093": "not a voter like",
    f"3@127.0.0.1:99999:{NEW_DISK}": "not a port: 99999",
    f"3@127.0.0.1:0:{NEW_DISK}": "voter 3 has no host or no port",
    f"3@:9093:{NEW_DISK}": "voter 3 has no host or no port",
    f"3@a b:9093:{NEW_DISK}": "voter 3: Kafka's configuration takes no host 'a b'",
    f"3@[::1/]:9093:{NEW_DISK}": "voter 3: Kafka's configuration takes no host '::1/'",
    f"9999999999@h:9093:{NEW_DISK}": "not a node id: 9999999999",
    "3@h:9093:AAAAAAAAAAAAAAAAAAAAAA": "reserved directory id",
    "3@h:9093:AAAAAAAAAAAAAAAAAAAAAQ": "reserved directory id",
    "3@h:9093:x": "not a",
    f"{THREE},3@h:1:{NEW_DISK}": "voter 3 is there twice",
    f"{THREE},5@h:1:{DIRECTORY_IDS[3]}": "two voters have directory",
    f"{THREE},": "not a voter like",
}


@pytest.mark.parametrize("voters", VOTERS)
def test_voters_that_are_not_well_formed(voters: str, quorum: Path, tmp_path: Path) -> None:
    """New voters need an id, an address and a directory id of their own."""
    given = plan(quorum / "n3", voters=voters, file=tmp_path / "plan")
    if not voters:
        assert (given.exit_code, "--initial-controllers is missing" in given.messages) == (1, True)
    else:
        check_refused(given, VOTERS[voters])
    assert not (tmp_path / "plan").exists()


LOST = {
    "": "--lost: not a voter like",
    "x": "--lost: not a voter like",
    "-2": "--lost: not a voter like",
    "99999999999": "--lost: not a voter like",
    "2:x": "--lost '2:x': ",
    "9": "--lost 9: that is none of the last voters",
    "1": "--lost 1: that is none of the last voters",
    f"2:{NEW_DISK}": "that is none of the last voters",
    "3": "--lost 3: that is one of the new voters too",
}


@pytest.mark.parametrize("lost", LOST)
def test_lost_voters_that_are_not_known(lost: str, quorum: Path, tmp_path: Path) -> None:
    """A voter that is given up is one of the last set, by the directory id of that set, and does not stay one."""
    given = run(
        "rewrite-voters",
        quorum / "n3",
        "--initial-controllers",
        THREE,
        "--lost=2",
        "--lost=4",
        f"--lost={lost}",
        "--plan",
        tmp_path / "plan",
    )
    check_refused(given, LOST[lost])
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("lost", [[], ["2"], ["4"]])
def test_each_voter_that_is_given_up_must_be_named(lost: list[str], quorum: Path, tmp_path: Path) -> None:
    """What is given up is said, and how to ask for it; other directories do not matter for that."""
    for given in (("n3",), ("n3", "n1", "n101")):
        outcome = plan(*(quorum / each for each in given), lost=lost, file=tmp_path / "plan")
        missing = [f"{each}:{DIRECTORY_IDS[each]}" for each in (2, 4) if str(each) not in lost]
        check_refused(outcome, f"say {' '.join(f'--lost {each}' for each in missing)}")


def test_a_voter_on_another_disk_is_given_up_too(quorum: Path, tmp_path: Path) -> None:
    """A new directory id for a voter gives up its old disk, which must be said."""
    voter = f"3@h:9093:{NEW_DISK}"
    check_refused(plan(quorum / "n3", voters=voter, file=tmp_path / "plan"), f"--lost 3:{DIRECTORY_IDS[3]}")
    assert plan(quorum / "n3", voters=voter, lost=["2", "3", "4"], file=tmp_path / "plan").exit_code == 0


@pytest.mark.parametrize("here", [("n3", "n4"), ("n4", "n2"), ("n3", "n2", "n4"), ("n101", "n3", "n4")])
def test_a_majority_that_is_at_hand(here: tuple[str, ...], quorum: Path, tmp_path: Path) -> None:
    """Two of three voters can go on by themselves, whatever is named as lost."""
    if here[0] == "n101":
        here = ("n3", "n4", "n101")
    voters = f"9@h:9093:{NEW_DISK}"
    given = plan(*(quorum / each for each in here), voters=voters, lost=["2", "3", "4"], file=tmp_path / "plan")
    check_refused(given, "is at hand: node")
    check_refused(given, "is removed with kafka-metadata-quorum remove-controller")
    assert not (tmp_path / "plan").exists()


def test_copies_of_one_voter_are_one_voter(quorum: Path, tmp_path: Path) -> None:
    """A copy of a voter's disk does not make a majority."""
    copy = copied(tmp_path, "copy") / "n3"
    assert plan(quorum / "n3", copy, file=tmp_path / "plan").exit_code == 0


def test_a_damaged_voter_is_not_at_hand(quorum: Path, tmp_path: Path) -> None:
    """A voter whose log is damaged cannot go on; its directory is evidence nevertheless."""
    log = quorum / "n4" / LOG
    flip(max(log.glob("*.log")), 100)
    (log / "00000000000000000230-0000000004.checkpoint").unlink()
    assert plan(quorum / "n3", quorum / "n4", file=tmp_path / "plan").exit_code == 0


def test_a_log_that_others_are_ahead_of(quorum: Path, tmp_path: Path) -> None:
    """The log that is kept is the best one that is here."""
    here = (quorum / "n101", quorum / "n3")
    given = plan(*here, lost=["2", "3", "4"], voters=f"9@h:1:{NEW_DISK}", file=tmp_path / "p")
    check_refused(given, "lacks committed records: proven are offsets 0 to 229")
    (quorum / "n3" / LOG / "00000000000000000230-0000000004.checkpoint").unlink()
    given = plan(*here, lost=["2", "3", "4"], voters=f"9@h:1:{NEW_DISK}", file=tmp_path / "p")
    check_refused(given, "is more up to date, up to offset 230 of epoch 4")


def test_a_vote_that_may_be_forgotten(quorum: Path, tmp_path: Path) -> None:
    """A voter keeps its directory id only if its quorum-state is here."""
    voters = f"{THREE},2@h:9093:{DIRECTORY_IDS[2]}"
    given = plan(quorum / "n3", voters=voters, lost=["4"], file=tmp_path / "plan")
    check_refused(given, f"voter 2:{DIRECTORY_IDS[2]} was one before, and its quorum-state is not here")
    (quorum / "n3" / LOG / "quorum-state").unlink()
    check_refused(plan(quorum / "n3", file=tmp_path / "plan"), f"voter 3:{DIRECTORY_IDS[3]} was one before")


@pytest.mark.parametrize(("epoch", "is_refused"), [(2**31 - 1002, False), (2**31 - 1001, True), (2**31 - 1, True)])
def test_the_last_epoch(epoch: int, quorum: Path, tmp_path: Path, *, is_refused: bool) -> None:
    """Above the greatest epoch there is no election."""
    (quorum / "n101" / LOG / "quorum-state").write_bytes(write_quorum_state(QuorumStateData(1, leader_epoch=epoch)))
    given = plan(quorum / "n3", quorum / "n101", file=tmp_path / "plan")
    if is_refused:
        check_refused(given, f"epoch {epoch} has been seen")
    else:
        assert given.objects[0]["quorum_epoch"] == epoch + 1000


def test_sources_of_two_clusters(quorum: Path, tmp_path: Path) -> None:
    """Another cluster's directory is no evidence."""
    to_cluster(quorum / "n1", "another")
    check_refused(plan(quorum / "n3", quorum / "n1", file=tmp_path / "plan"), "cluster.id is another, not MkU3")


def _no_meta(log: Path) -> None:
    (log.parent / "meta.properties").unlink()


def _bad_meta(log: Path) -> None:
    (log.parent / "meta.properties").write_bytes(b"version=1\nnode.id=x\ncluster.id=c\n")


def _no_segment(log: Path) -> None:
    for path in log.glob("*.log"):
        path.unlink()


def _no_log(log: Path) -> None:
    for path in log.iterdir():
        path.unlink()
    log.rmdir()


def _damaged(log: Path) -> None:
    flip(log / "00000000000000000000.log", 100)
    for path in log.glob("*.checkpoint"):
        path.unlink()


def _all_damaged(log: Path) -> None:
    for path in [*log.glob("*.log"), *log.glob("*.checkpoint")]:
        path.write_bytes(b"\xff" * path.stat().st_size)


def _gap(log: Path) -> None:
    (log / "00000000000000000000.log").unlink()
    for path in log.glob("*.checkpoint"):
        path.unlink()


SPOILED: dict[str, tuple[Callable[[Path], None], str, int]] = {
    "no meta.properties": (_no_meta, "it is not a log directory", 1),
    "a bad meta.properties": (_bad_meta, "meta.properties", 2),
    "a snapshot without a log": (_no_segment, "a snapshot alone is not enough", 2),
    "no metadata log": (_no_log, "there is no log", 2),
    "a flipped bit": (_damaged, "damaged", 2),
    "no sound batch": (_all_damaged, "", 2),
    "a log without its start": (_gap, "the log is damaged from offset 0 on", 2),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_log_that_cannot_be_kept(name: str, quorum: Path, tmp_path: Path) -> None:
    """Only a whole and sound log is kept: nothing is cut here."""
    spoil, reason, exit_code = SPOILED[name]
    spoil(quorum / "n3" / LOG)
    before = everything(quorum)
    check_refused(plan(quorum / "n3", file=tmp_path / "plan"), reason, exit_code)
    assert everything(quorum) == before
    assert not (tmp_path / "plan").exists()


def test_a_source_that_is_not_there(quorum: Path, tmp_path: Path) -> None:
    """A path that does not exist, or that is a file, is no log directory."""
    for path in (quorum / "n9", quorum / "n3" / "meta.properties", quorum):
        check_refused(plan(path, file=tmp_path / "plan"), "it is not a log directory")


def test_a_node_that_is_running(quorum: Path, tmp_path: Path) -> None:
    """A directory whose lock another process holds is not planned with, nor carried out on."""
    assert plan(quorum / "n3", quorum / "n1", file=tmp_path / "plan").exit_code == 0
    with held_by_another_process(quorum / "n1/.lock"):
        check_refused(plan(quorum / "n3", quorum / "n1", file=tmp_path / "another"), "its node is running")
        check_refused(apply(tmp_path / "plan", tmp_path / "new"), "its node is running")
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0


# kraft.version 0


STATIC_VOTERS = {
    f"1@h:9093:{NEW_DISK}": "kraft.version 0, whose voters have no directory ids",
    f"1@[::1]:9093:{NEW_DISK}": "kraft.version 0, whose voters have no directory ids",
    "1@0.0.0.0:9093": "voter 1 has no address",
    "1@h:0": "voter 1 has no host or no port",
    "1": "",
    " ": "--initial-controllers names no voter",
    "1@h:1,1@h:2": "",
}


@pytest.mark.parametrize("voters", STATIC_VOTERS)
def test_static_voters_that_are_not_well_formed(voters: str, tmp_path: Path) -> None:
    """At kraft.version 0 voters have no directory ids, and still an address."""
    static = copied(tmp_path, "static", STATIC)
    check_refused(plan(static / "n1", voters=voters, lost=["2", "3"], file=tmp_path / "plan"), STATIC_VOTERS[voters])


def test_a_static_majority_and_lost_voters(tmp_path: Path) -> None:
    """Static voters are known by their ids: by these they are at hand, and must be given up."""
    static = copied(tmp_path, "static", STATIC)
    given = plan(static / "n1", static / "n2", voters="1@h:1", lost=["2", "3"], file=tmp_path / "plan")
    check_refused(given, "a majority of the voters {1, 2, 3} is at hand")
    check_refused(given, "No voter can be removed at kraft.version 0")
    assert "remove-controller" not in given.messages
    check_refused(plan(static / "n1", voters="1@h:1", lost=["2"], file=tmp_path / "plan"), "say --lost 3")


# Options


OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing": ((), "DIR is missing"),
    "no voters": (("{n3}", "--plan", "{plan}"), "--initial-controllers is missing"),
    "no plan": (("{n3}", "--initial-controllers", THREE), "--plan is missing"),
    "out": (("{n3}", "--initial-controllers", THREE, "--plan", "{plan}", "--out", "{new}"), "--out belongs to"),
    "node": (("{n3}", "--initial-controllers", THREE, "--plan", "{plan}", "--node-id", "3"), "--node-id belongs to"),
    "node 0": (("{n3}", "--initial-controllers", THREE, "--plan", "{plan}", "--node-id", "0"), "--node-id belongs to"),
    "no out": (("--apply", "{plan}"), "--out is missing"),
    "apply and DIR": (("{n3}", "--apply", "{plan}", "--out", "{new}"), "DIR belongs to"),
    "apply and lost": (("--lost", "2", "--apply", "{plan}", "--out", "{new}"), "--lost belongs to"),
    "apply and plan": (("--plan", "{plan}", "--apply", "{plan}", "--out", "{new}"), "--plan belongs to"),
    "apply and listener": (("--listener", "X", "--apply", "{plan}", "--out", "{new}"), "--listener belongs to"),
    "apply and voters": (
        ("--initial-controllers", THREE, "--apply", "{plan}", "--out", "{new}"),
        "--initial-controllers belongs to",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_do_not_go_together(name: str, quorum: Path, tmp_path: Path) -> None:
    """The two steps have options of their own."""
    arguments, reason = OPTIONS[name]
    places = {"n3": str(quorum / "n3"), "plan": str(tmp_path / "plan"), "new": str(tmp_path / "new")}
    outcome = run("rewrite-voters", *(word.format(**places) for word in arguments))
    assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
    assert reason in outcome.messages
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quorum"]


@pytest.mark.parametrize("listener", ["OTHER", "other"])
def test_another_listener(listener: str, quorum: Path, tmp_path: Path) -> None:
    """The listener of the new voters has the given name, in upper case in the record; a blank one is refused."""
    given = ("--initial-controllers", THREE, "--lost", "2,4", "--plan", tmp_path / "plan", "--listener")
    assert run("rewrite-voters", quorum / "n3", *given, listener).exit_code == 0
    assert apply(tmp_path / "plan", tmp_path / "new").exit_code == 0
    assert "OTHER://127.0.0.1:19093" in run("quorum", tmp_path / "new").text
    check_refused(run("rewrite-voters", quorum / "n3", *given, " "), "blank")


@pytest.mark.parametrize("listener", ["A,B", " A", "A ", "A\n", "A\tB", "\x7f", "A\u2028"], ids=ascii)
def test_a_listener_that_no_configuration_can_name(listener: str, quorum: Path, tmp_path: Path) -> None:
    """A comma or a blank at an end is lost in Kafka's lists, and no line ends inside of a name."""
    given = ("--initial-controllers", THREE, "--lost", "2,4", "--plan", tmp_path / "plan", "--listener", listener)
    check_refused(run("rewrite-voters", quorum / "n3", *given), "can name a listener")
    assert not (tmp_path / "plan").exists()


# Carrying it out


@pytest.fixture
def planned(quorum: Path, tmp_path: Path) -> Path:
    """A plan of the directories of nodes 3 and 1."""
    assert plan(quorum / "n3", quorum / "n1", file=tmp_path / "plan").exit_code == 0
    return tmp_path / "plan"


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def _touch(path: Path) -> None:
    os.utime(path, ns=(0, 1))


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    copy.replace(path)


def _edit(path: Path) -> None:
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [_append, _touch, _replace, _edit, Path.unlink])
@pytest.mark.parametrize("name", ["n3/meta.properties", f"n3/{LOG}/quorum-state", f"n1/{LOG}/00000000000000000000.log"])
def test_sources_that_changed(
    change: Callable[[Path], None], name: str, planned: Path, quorum: Path, tmp_path: Path
) -> None:
    """Any change of any file that was planned with refuses the plan: bytes, time, inode, or that it is gone."""
    change(quorum / name)
    outcome = apply(planned, tmp_path / "new")
    check_refused(outcome, "make a new plan")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("verb", ["rewrite-voters", "salvage"])
@pytest.mark.parametrize("change", [_append, _touch, Path.unlink])
def test_a_source_that_changes_while_the_plan_is_made(
    change: Callable[[Path], None], verb: str, quorum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no plan yet that it could have changed since, and none is written."""

    def survey_and_change(*arguments: Any) -> Any:
        found = list(survey_all(*arguments))
        change(quorum / "n3" / LOG / "quorum-state")
        return found

    monkeypatch.setattr("raftlog.tools.repair.evidence_of_sources.survey_all", survey_and_change)
    if verb == "salvage":
        given = run("salvage", "-j1", quorum / "n3", "--plan", tmp_path / "plan")
    else:
        given = plan(quorum / "n3", file=tmp_path / "plan")
    (line,) = given.complaints
    assert (given.exit_code, given.output) == (1, b"")
    assert line.startswith(f"raftlog {verb}: {quorum / 'n3'}")
    assert line.endswith(" changed while the plan was made: stop what writes there, and plan again")
    assert not (tmp_path / "plan").exists()


def test_a_new_file_in_a_source(planned: Path, quorum: Path, tmp_path: Path) -> None:
    """A segment or snapshot that was not there refuses the plan, too."""
    (quorum / "n3" / LOG / "00000000000000000300.log").touch()
    check_refused(apply(planned, tmp_path / "new"), "it has other files than when the plan was made")


def test_an_output_that_exists_or_is_in_a_source(planned: Path, quorum: Path, tmp_path: Path) -> None:
    """The result is a new directory, outside of all sources."""
    before = everything(quorum)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "inside").symlink_to(quorum / "n1")
    for out in (quorum, quorum / "n3", tmp_path / "empty", planned, tmp_path / "link"):
        check_refused(apply(planned, out), "exists: a repair makes a new directory")
    for out in (quorum / "n3/new", quorum / "n1/new", quorum / "n1" / LOG / "new", tmp_path / "inside/new"):
        check_refused(apply(planned, out), "which is only read")
    check_refused(apply(planned, tmp_path / "no/new"), "no such directory")
    assert everything(quorum) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "inside", "link", "plan", "quorum"]


def test_a_plan_in_a_source_or_over_another_file(quorum: Path, tmp_path: Path) -> None:
    """The plan is written to no source, and over no file that is not a plan."""
    check_refused(plan(quorum / "n3", file=quorum / "n3/plan"), "which is only read")
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    check_refused(plan(quorum / "n3", file=other), "is not a plan of raftlog: it is not overwritten")
    assert plan(quorum / "n3", file=tmp_path / "first").exit_code == 0
    first = (tmp_path / "first").read_bytes()
    check_refused(plan(quorum / "n3", lost=["2:tDM8jPouu6fvIOxsMmWQKw", "4"], file=tmp_path / "first"), "another plan")
    assert (tmp_path / "first").read_bytes() == first
    (tmp_path / "first").unlink()
    check_refused(plan(quorum / "n3", file=tmp_path / "no/plan"), "write failed")
    assert other.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "quorum"]


def test_a_plan_that_cannot_be_used(planned: Path, tmp_path: Path) -> None:
    """A plan that is not one, was edited, or is of another version, is refused."""
    members = json.loads(planned.read_text())
    spoiled = {
        "no json": (b"{", "not a plan of raftlog"),
        "no plan": (b"[]", "not a plan of raftlog"),
        "not ascii": (b"\xff\xfe", "not a plan of raftlog"),
        "another version": (json.dumps(members | {"version": 2}).encode(), "a plan of version 2, and 1 is known"),
        "edited": (json.dumps(members | {"verb": "salvage"}).encode(), "changed after it was made"),
        "edited voters": (planned.read_bytes().replace(b"19093", b"19094"), "changed after it was made"),
    }
    for name, (data, reason) in spoiled.items():
        (tmp_path / name).write_bytes(data)
        check_refused(apply(tmp_path / name, tmp_path / "new"), reason)
    check_refused(apply(tmp_path / "nowhere", tmp_path / "new"), "nowhere")
    assert not (tmp_path / "new").exists()


def test_a_node_that_is_no_new_voter(planned: Path, quorum: Path, tmp_path: Path) -> None:
    """A directory is made for a new voter; which one must be said if there are several."""
    check_refused(apply(planned, tmp_path / "new", "--node-id", "4"), "for one of the new voters, 3")
    voters = f"{THREE},9@h:1:{NEW_DISK}"
    assert plan(quorum / "n3", voters=voters, file=tmp_path / "two").exit_code == 0
    check_refused(apply(tmp_path / "two", tmp_path / "new"), "for one of the new voters, 3, 9")
    assert not (tmp_path / "new").exists()
