# SPDX-License-Identifier: Apache-2.0
"""The replicas of a running quorum are read at different moments: nothing is made of that, and it is said."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from raftlog.tools.audit_verbs import quorum, two_looks
from raftlog.tools.auditing.evidence import PartitionEvidence
from tests.checkout import ROOT
from tests.tools.auditing.run.live_directory import METADATA, Moments, Step
from tests.tools.auditing.run.live_quorum import BROKER, END, EPOCH, LEADER, NODES, QUORUM_OPERATIONS, LiveQuorum
from tests.tools.auditing.spoiled_logs import partitions
from tests.tools.console import Outcome, run
from tests.tools.made_logs import flip

Operation = Callable[[LiveQuorum], Iterator[Step]]
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "quorum-1.schema.json").read_text()))


def injected(operation: Operation, verb: tuple[str, ...], first: int, path: Path, *, at_once: bool) -> Outcome:
    """What a verb says of a quorum whose nodes do something from some moment on."""
    live = LiveQuorum(path)
    moments = Moments(list(operation(live)), first, at_once=at_once)
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        return run(*verb, "--processes", "1", *paths(verb[0], live))


def paths(verb: str, live: LiveQuorum) -> list[Path]:
    """What a verb is given: the directory of all nodes, or each of them if it compares them."""
    return [live.path / node for node in NODES] if verb == "diff" else [live.path]


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many moments there are when nobody writes, by verb."""
    found = {}
    for verb in VERBS:
        live, moments = LiveQuorum(tmp_path_factory.mktemp("still") / "quorum"), Moments()
        with pytest.MonkeyPatch.context() as monkeypatch:
            moments.watch(monkeypatch)
            assert run(verb, "--processes", "1", *paths(verb, live)).exit_code == 0
        found[verb] = moments.count
    return found


VERBS = ("quorum", "verify", "voters", "epochs", "diff")


def told(operation: Operation, verb: str, moments: Iterable[int], path: Path, *, at_once: bool) -> dict[int, str]:
    """What a verb complains of, by the moment at which the nodes start to do something."""
    found = {}
    for first in moments:
        outcome = injected(operation, (verb,), first, path / str(first), at_once=at_once)
        if outcome.exit_code or outcome.messages:
            found[first] = outcome.messages + outcome.text
    return found


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("verb", ["quorum", "verify", "diff"])
@pytest.mark.parametrize("operation", QUORUM_OPERATIONS)
def test_a_running_quorum(
    operation: Operation, verb: str, at_once: bool, counts: dict[str, int], tmp_path: Path
) -> None:
    """Wherever its nodes start to do something, no verb complains. Some of all moments."""
    moments = range(at_once, counts[verb], counts[verb] // 12)
    assert told(operation, verb, moments, tmp_path, at_once=at_once) == {}


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("verb", "step"), [("quorum", 8), ("verify", 16), ("voters", 32), ("epochs", 32), ("diff", 16)]
)
@pytest.mark.parametrize("operation", QUORUM_OPERATIONS)
def test_a_running_quorum_at_more_moments(
    operation: Operation, verb: str, step: int, at_once: bool, counts: dict[str, int], tmp_path: Path
) -> None:
    """Nor does one at other moments. All moments of one node are tried elsewhere, and all of these verbs read alike."""
    assert told(operation, verb, range(at_once, counts[verb], step), tmp_path, at_once=at_once) == {}


def changing(path: Path, change: Callable[[LiveQuorum], object], *options: str) -> Outcome:
    """What `quorum` says if something happens after its first look."""
    return run_changing(LiveQuorum(path), change, "quorum", *options)


def run_changing(live: LiveQuorum, change: Callable[[LiveQuorum], object], verb: str, *options: str) -> Outcome:
    """What a verb says if something happens after its first look."""
    real, calls = two_looks._listed, list[int]()
    with pytest.MonkeyPatch.context() as monkeypatch:

        def listed(*given: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                change(live)
            return real(*given)

        monkeypatch.setattr(two_looks, "_listed", listed)
        return run(verb, "--processes", "1", *options, *paths(verb, live))


def all_steps(operation: Operation) -> Callable[[LiveQuorum], None]:
    """Do all of an operation at once."""

    def work(live: LiveQuorum) -> None:
        for step in list(operation(live)):
            step()

    return work


def test_it_is_said_how_far_apart_replicas_were_read(tmp_path: Path) -> None:
    """When a directory changed meanwhile, the time within which all were read is told, and which changed."""
    outcome = changing(tmp_path / "quorum", all_steps(LiveQuorum.cleaning), "--format", "jsonl")
    for each in outcome.objects:
        SCHEMA.validate(each)
    (state,) = outcome.of_kind("quorum")
    changed = {Path(each["directory"]).name for each in outcome.of_kind("replica") if each["changed_while_read"]}

    assert isinstance(state["read_within_ms"], int)
    assert changed == {LEADER}


def test_it_is_said_in_words(tmp_path: Path) -> None:
    """So it is in text; of directories that did not change, nothing is said of time."""
    outcome = changing(tmp_path / "quorum", all_steps(LiveQuorum.replication))
    last = outcome.text.splitlines()[-1]
    still = changing(tmp_path / "still", lambda _: None)

    assert re.fullmatch(
        r"4 of these directories changed while they were read, within \d+\.\d{3} s: the nodes are running\."
        r" Ends and lags are of different moments\.",
        last,
    )
    assert "changed while" not in still.text
    assert (
        changing(tmp_path / "lines", lambda _: None, "--format", "jsonl").of_kind("quorum")[0]["read_within_ms"] is None
    )


def spoiled(live: LiveQuorum) -> Path:
    """Damage a batch of a follower."""
    log = live.path / "n2" / METADATA / f"{0:020}.log"
    flip(log, 200)
    return log


def test_damage_that_comes_between_is_not_told(tmp_path: Path) -> None:
    """What the second look alone sees is not told: it may be in the middle of a write."""
    outcome = changing(tmp_path / "quorum", spoiled)

    assert (outcome.exit_code, outcome.messages) == (0, "")


def gone(live: LiveQuorum) -> None:
    """A follower's disk is unmounted."""
    (live.path / "n2").rename(live.path.parent / "elsewhere")
    (live.path / "n2").mkdir()


def unreadable(live: LiveQuorum) -> None:
    """A follower's log has changed, and cannot be read any more."""
    log = live.path / "n2" / METADATA / f"{0:020}.log"
    log.unlink()
    log.symlink_to(log)


def forked(live: LiveQuorum) -> None:
    """A follower gets a record that its leader does not have, in the place of another."""
    live.fork(END - 1)()


def grown(live: LiveQuorum) -> None:
    """It gets another one."""
    live.fork(END)()


def truncated(live: LiveQuorum) -> None:
    """A follower truncates what its leader does not have."""
    live.truncation()()


@pytest.mark.parametrize(
    ("is_forked", "between", "told"),
    [
        (True, truncated, []),
        (True, grown, ["conflicting epoch"]),
        (True, all_steps(LiveQuorum.cleaning), ["conflicting epoch"]),
        (False, forked, []),
        (False, lambda _: None, []),
    ],
    ids=["gone_at_the_second_look", "longer", "still_there", "new_at_the_second_look", "never"],
)
def test_a_fork_of_running_replicas(
    is_forked: bool, between: Callable[[LiveQuorum], object], told: list[str], tmp_path: Path
) -> None:
    """``diff`` tells of a fork that stands over both looks, and of no other."""
    live = LiveQuorum(tmp_path / "quorum")
    if is_forked:
        forked(live)
    outcome = run_changing(live, between, "diff", "--format", "jsonl")
    differences = [each["divergence"] for each in outcome.of_kind("divergence") if each["severity"] != "harmless"]

    assert differences == told
    assert outcome.exit_code == (2 if told else 0)


@pytest.mark.parametrize("is_forked", [True, False])
@pytest.mark.parametrize("change", [gone, unreadable])
def test_a_second_comparison_that_fails(
    change: Callable[[LiveQuorum], object], is_forked: bool, tmp_path: Path
) -> None:
    """The first comparison counts, and what failed is told."""
    live = LiveQuorum(tmp_path / "quorum")
    if is_forked:
        forked(live)
    outcome = run_changing(live, change, "diff")

    assert ("conflicting epoch at offset" in outcome.text) is is_forked
    assert outcome.exit_code == (2 if is_forked else 1)
    assert [each for each in outcome.complaints if "/n2" in each and "[file-unreadable]" in each]


@pytest.mark.parametrize("operation", QUORUM_OPERATIONS)
def test_damage_on_a_running_quorum(operation: Operation, tmp_path: Path) -> None:
    """Damage that is there at both looks is told, and the verdict is as before."""
    live = LiveQuorum(tmp_path / "quorum")
    log = spoiled(live)
    moments = Moments(list(operation(live)), 100)
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments.watch(monkeypatch)
        outcome = run("quorum", "--processes", "1", live.path)

    assert [each for each in outcome.complaints if str(log) in each and "[batch-crc]" in each]
    assert "Verdict: nothing committed is missing" in outcome.text


@pytest.mark.parametrize("change", [gone, unreadable])
def test_a_second_look_that_fails(change: Callable[[LiveQuorum], object], tmp_path: Path) -> None:
    """The first look counts, and what failed is told."""
    whole = changing(tmp_path / "whole", lambda _: None)
    outcome = changing(tmp_path / "quorum", change)

    assert outcome.text.replace("/quorum/", "/whole/") == whole.text
    assert outcome.exit_code == 1
    assert [each for each in outcome.complaints if "/n2" in each and "[file-unreadable]" in each]


def test_a_snapshot_that_is_read_after_the_logs(tmp_path: Path) -> None:
    """The better of two verdicts is told: voters that were listed before a snapshot was made had no time to hold it."""
    live = LiveQuorum(tmp_path / "quorum")
    before = [*in_partitions_of(live)]
    snapshot = live.path / BROKER / METADATA / f"{END + 3:020}-{EPOCH:010}.checkpoint"
    shutil.copy(max((live.path / LEADER / METADATA).glob("*.checkpoint")), snapshot)
    after = [*in_partitions_of(live)]

    assert quorum.settled(before, after) is before
    assert quorum.settled(after, before) is before
    assert quorum.settled(before, before) is before


def in_partitions_of(live: LiveQuorum) -> list[PartitionEvidence]:
    """The evidence of all directories."""
    return partitions(live.path)
