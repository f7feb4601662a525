# SPDX-License-Identifier: Apache-2.0
"""Names that would act on a terminal: every verb escapes them, wherever they come from."""

import base64
import io
import json
import os
import shutil
import unicodedata
from pathlib import Path

import pytest

from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.verb_help.verbs import VERBS
from tests.tools.console import run
from tests.tools.log_console import CLUSTER, DIRECTORY_ID, OTHER_ID, TOPIC, log
from tests.tools.made_logs import batch, flip, write_log

ODD = "a\x1b[31m\n\x9b\u202eb\u2066\u200f\u061c\ufeff"
"""Colours the terminal, begins a line, and turns around what follows."""
SHOWN = r"a\x1b[31m\x0a\x9b\u202eb\u2066\u200f\u061c\ufeff"
HOST = "h\x1b\u202e"

REWRITE = ("--initial-controllers", f"9@host:9093:{OTHER_ID}", "--lost", "1")

MIRROR = ("--source", "{broker}", "--target", "{mirror}", "--target-alias", "B", "--source-alias")
COMMANDS: dict[str, tuple[str, ...]] = {
    "dump-log": ("dump-log", "--format", "table", "--all", "{logs}"),
    "dump-log missing": ("dump-log", "{logs}/missing.log"),
    "dump-log value": ("dump-log", "--limit", ODD, "{logs}"),
    "dump-log option": ("dump-log", f"--{ODD}", "{logs}"),
    "dump-log type": ("dump-log", "--type", ODD, "{logs}"),
    "dump-log decoder": ("dump-log", "--value-decoder-class", f"{ODD}:{ODD}", "{logs}"),
    "dump-log mirror": ("dump-log", "--format", "table", "--mirror-decoder", "{logs}"),
    "follow": ("follow", "--format", "table", "--until-idle", "0", "{segment}"),
    "follow kafka": ("follow", "--until-idle", "0", "{logs}/missing"),
    "follow table": ("follow", "--format", "table", "--until-idle", "0", "{logs}/missing"),
    "follow wait": ("follow", "--until-idle", ODD, "{logs}"),
    "follow start": ("follow", "--from", ODD, "{logs}"),
    "follow damage": ("dump-log", "--format", "table", "--follow", "--until-idle", "0", "{damaged}"),
    "diff": ("diff", "{damaged}", "{logs}"),
    "diff missing": ("diff", "{logs}/missing", "{logs}"),
    "explain": ("explain", "{segment}", "--offset", "1"),
    "explain a rule": ("explain", ODD),
    "explain no offset": ("explain", "{segment}", "--offset", "99"),
    "verify": ("verify", "--all", "{damaged}"),
    "verify both": ("verify", "--all", "{damaged}", "{logs}", "{node}"),
    "verify missing": ("verify", "{logs}/missing"),
    "verify report": ("verify", "--report", "{logs}/report.html", "{logs}"),
    "audit": ("audit", "-j1", "--out", "{out}", "{damaged}"),
    "audit again": ("audit", "-j1", "--out", "{logs}/out", "{logs}"),
    "voters": ("voters", "{node}"),
    "voters both": ("voters", "{node}", "{damaged}"),
    "epochs": ("epochs", "{node}", "{damaged}"),
    "quorum": ("quorum", "{node}"),
    "quorum missing": ("quorum", "{logs}/missing"),
    "state": ("state", "{node}"),
    "state tree": ("state", "{node}", "--format", "tree"),
    "state path": ("state", "{node}", "--path", ODD),
    "state at": ("state", "{node}", "--at", ODD),
    "state check": ("state", "{node}", "--check"),
    "snapshot": ("snapshot", "{node}", "--force", "--out", ODD),
    "state history": ("state", "{node}", "--history", "/"),
    "state against": ("state", "{node}", "--against", "{logs}", "{node}"),
    "state topic": ("state", "{logs}", "--topic", "__consumer_offsets"),
    "state topic missing": ("state", "{logs}/missing", "--topic", "__consumer_offsets"),
    "state against missing": ("state", "{node}", "--against", "{logs}/missing"),
    "salvage": ("salvage", "{spare}", "--plan", "{out}"),
    "salvage node": ("salvage", "{node}", "--node-id", ODD, "--plan", "{out}"),
    "salvage refused": ("salvage", "{spare}", "{node}", "--plan", "{out}"),
    "salvage missing": ("salvage", "{logs}/missing", "--plan", "{out}"),
    "salvage partition": ("salvage", "{broker}", "--partition", "orders-0", "--plan", "{out}"),
    "salvage partition name": ("salvage", "{logs}", "--partition", ODD, "--plan", "{out}"),
    "salvage partition missing": ("salvage", "{logs}/missing", "--partition", "orders-0", "--plan", "{out}"),
    "salvage metadata": ("salvage", "{broker}", "--partition", "orders-0", "--metadata", "{node}", "--plan", "{out}"),
    "salvage assumed": (
        *("salvage", "{broker}", "--partition", "orders-0", "--metadata", "{node}", "--assume-topic-id"),
        *("--plan", "{out}"),
    ),
    "salvage no metadata": ("salvage", "{broker}", "--partition", "orders-0", "--metadata", ODD, "--plan", "{out}"),
    "salvage no plan": ("salvage", "--apply", "{segment}", "--out", "{out}"),
    "query": ("query", "FROM records", "{segment}"),
    "query lines": ("query", "FROM records", "{segment}", "--format", "jsonl"),
    "query findings": ("query", "FROM findings", "{damaged}", "{node}"),
    "query damage": ("query", "FROM batches", "{damaged}"),
    "query voters": ("query", "FROM voters", "{node}"),
    "query sql": ("query", ODD, "{logs}"),
    "query column": ("query", f'SELECT 1 AS "{ODD}"', "{logs}"),
    "query text": ("query", f"SELECT error('{ODD}')", "{logs}"),
    "query missing": ("query", "FROM records", "{logs}/missing"),
    "query out": ("query", "FROM records", "{node}", "--format", "parquet", "--out", "{segment}"),
    "query directory": ("query", "FROM records", "{logs}", "--temp-directory", "{logs}"),
    "rewrite-voters": ("rewrite-voters", "{spare}", *REWRITE, "--plan", "{out}"),
    "rewrite-voters refused": ("rewrite-voters", "{node}", *REWRITE, "--plan", "{out}"),
    "rewrite-voters missing": ("rewrite-voters", "{logs}/missing", *REWRITE, "--plan", "{out}"),
    "rewrite-voters host": ("rewrite-voters", "{spare}", "--initial-controllers", f"1@{HOST}:x", "--plan", "{out}"),
    "rewrite-voters listener": ("rewrite-voters", "{spare}", *REWRITE, "--listener", ODD, "--plan", "{out}"),
    "rewrite-voters lost": ("rewrite-voters", "{spare}", *REWRITE, "--lost", ODD, "--plan", "{out}"),
    "rewrite-voters no plan": ("rewrite-voters", "--apply", "{segment}", "--out", "{out}"),
    "free": ("free", "{node}"),
    "free damaged": ("free", "{damaged}"),
    "free lines": ("free", "{spare}", "--format", "jsonl"),
    "free need": ("free", "{node}", "--need", ODD),
    "free missing": ("free", "{logs}/missing"),
    "topics": ("topics", "{node}"),
    "topics damaged": ("topics", "{damaged}"),
    "topics left out": ("topics", "{logs}"),
    "topics lines": ("topics", "{spare}", "--format", "jsonl"),
    "topics aliases": ("topics", "{broker}", "--aliases", ODD),
    "topics separator": ("topics", "{broker}", "--separator", ODD, "--internal-separator", "off"),
    "topics source": ("topics", "{broker}", "--policy", "identity", "--source", ODD),
    "topics level": ("topics", "{node}", "--kafka-level", ODD),
    "topics missing": ("topics", "{logs}/missing"),
    "verify-mirror": ("verify-mirror", "--source", "{node}", "--target", "{broker}"),
    "verify-mirror report": ("verify-mirror", *MIRROR, "A", "--report", "{segment}"),
    "verify-mirror out": ("verify-mirror", *MIRROR, "A", "--out", "{logs}/out"),
    "verify-mirror same offsets": (
        *("verify-mirror", "--source", "{node}", "--target", "{broker}"),
        *("--policy", "same-offsets", "--report", "{out}"),
    ),
    "verify-mirror alias": ("verify-mirror", *MIRROR, ODD),
    "verify-mirror no alias": ("verify-mirror", "--source", "{node}", "--target", "{broker}"),
    "verify-mirror lines": ("verify-mirror", *MIRROR, "A", "--format", "jsonl"),
    "verify-mirror missing": ("verify-mirror", "--source", "{logs}/missing", "--target", "{node}"),
    "stats": ("stats", "{segment}"),
    "stats no log": ("stats", "{logs}"),
    "stats damaged": ("stats", "{damaged}"),
    "stats lines": ("stats", "{segment}", "--format", "json"),
    "stats report": ("stats", "{segment}", "--report", "{logs}/report.html"),
    "stats by": ("stats", "{node}", "--by", ODD),
    "stats prefix": ("stats", "{segment}", "--key-prefix", ODD),
    "stats missing": ("stats", "{logs}/missing"),
    "log": ("log", ODD),
    "log init": ("log", "init", "{out}", "--cluster-id", ODD, "--node-id", "1", "--standalone"),
    "log init again": ("log", "init", "{node}", "--cluster-id", ODD, "--node-id", "1", "-g"),
    "log init listener": ("log", "init", "{out}", "--cluster-id", "c", "--node-id", "1", "--listener", ODD),
    "log append": ("log", "append", "{node}"),
    "log append voters": ("log", "append", "{node}", "--voters", f"1@{HOST}:9093:{DIRECTORY_ID}"),
    "log append missing": ("log", "append", "{logs}"),
    "log info": ("log", "info", "{node}"),
    "log info missing": ("log", "info", "{logs}/missing"),
    "log snapshot": ("log", "snapshot", "{node}"),
    "log truncate": ("log", "truncate", "{node}", "--to", "999"),
    "help": ("help", ODD),
    "help of log": ("help", "log", ODD),
    "completion": ("completion", ODD),
    "spark-env": ("spark-env", ODD),
    "simulate": ("simulate", "--replay", ODD),
    "simulate no replay file": ("simulate", "--replay", "{segment}"),
    "simulate into a file": ("simulate", "--replay", "s1-0-none", "--save", "{segment}"),
    "no verb": (ODD,),
}


NAMES_IN_LINES: dict[str, tuple[tuple[str, ...], str]] = {
    "dump-log": (("dump-log", "{segment}"), "file"),
    "follow": (("follow", "--until-idle", "0", "{segment}"), "file"),
    "follow notice": (("follow", "--until-idle", "0", "{logs}/missing"), "file"),
    "diff": (("diff", "{node}", "{node}"), "left"),
    "explain": (("explain", "{segment}", "--offset", "1"), "file"),
    "verify": (("verify", "--all", "{damaged}"), "file"),
    "voters": (("voters", "{node}"), "seen_in"),
    "epochs": (("epochs", "{node}", "{damaged}"), "seen_in"),
    "quorum": (("quorum", "{node}"), "directory"),
    "state": (("state", "{node}"), "directory"),
    "state against": (("state", "{node}", "--against", "{logs}"), "directory"),
    "state check": (("state", "{node}", "--check"), "directory"),
    "snapshot": (("snapshot", "{node}", "--force", "--out", "{logs}"), "directory"),
    "query": (("query", "SELECT topic, file FROM batches", "{segment}"), ""),  # Names are text in SQL, with escapes.
    "rewrite-voters": (("rewrite-voters", "{spare}", *REWRITE, "--plan", "{out}"), "plan"),
    "free": (("free", "{node}"), "path"),
    "topics": (("topics", "{node}"), "directory"),
    "verify-mirror": (("verify-mirror", *MIRROR, "A"), ""),
    "stats": (("stats", "{node}"), "directory"),
    "salvage": (("salvage", "{spare}", "--plan", "{out}"), "plan"),
    "salvage partition": (("salvage", "{broker}", "--partition", "orders-0", "--plan", "{out}"), "plan"),
    "simulate": (("simulate", "--schedules", "1", "--faults", "none", "--processes", "1"), ""),
    "log init": (("log", "init", "{node}", "--cluster-id", CLUSTER, "--node-id", "1", "-g"), "directory"),
    "log append": (("log", "append", "{node}"), ""),
    "log info": (("log", "info", "{node}"), "directory"),
    "log snapshot": (("log", "snapshot", "{node}"), ""),
    "log truncate": (("log", "truncate", "{node}", "--to", "0", "--yes"), ""),
}
"""Commands that print JSON lines, each with a member that names a file or directory; some name none."""
NO_LINES = {"audit", "help", "completion", "spark-env"}
"""Verbs without JSON lines on standard output."""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Places whose names act on a terminal."""
    return made_places(tmp_path, ODD)


def made_places(tmp_path: Path, odd: str) -> dict[str, str]:
    """Make a log with an odd record, a damaged log and the directory of a controller, in directories with odd names."""
    logs, damaged, node = (tmp_path / f"{name}{odd}" for name in ("logs", "damaged", "node"))
    segment = write_log(logs / f"{odd}-0", batch(), batch(1, (ODD.encode(),), key=ODD.encode()))
    (segment.parent / f"{odd}.log").write_bytes(b"no log")
    (logs / "meta.properties").write_text(f"version=1\ncluster.id=c{HOST}\nnode.id=1\n")
    flip(write_log(damaged / f"{odd}-0", batch(), batch(1)), 70)
    given = ("--cluster-id", CLUSTER, "--node-id", "1", "--directory-id", DIRECTORY_ID, "--standalone")
    assert log("init", node, *given, "--listener", f"CONTROLLER://{HOST}:9093").exit_code == 0
    assert log("append", node, lines=(TOPIC,)).exit_code == 0
    spare = shutil.copytree(node, tmp_path / f"spare{odd}")  # Of a node that has the log and no vote.
    (spare / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=5\ndirectory.id={OTHER_ID}\n")
    broker = tmp_path / f"broker{odd}"
    write_log(broker / "orders-0", batch(), batch(1), batch(3))
    write_log(broker / "mm2-offset-syncs.B.internal-0", batch())
    mirror = shutil.copytree(broker, tmp_path / f"mirror{odd}")
    return {
        "logs": str(logs),
        "broker": str(broker),
        "mirror": str(mirror),
        "segment": str(segment),
        "damaged": str(damaged),
        "node": str(node),
        "spare": str(spare),
        "out": str(tmp_path / f"out{odd}"),
    }


def acts_on_a_terminal(character: str) -> bool:
    """Whether a character is one of control or direction."""
    directions = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    is_mark = character in "\u200e\u200f\u061c\u2028\u2029\ufeff"
    return is_mark or unicodedata.category(character) == "Cc" or unicodedata.bidirectional(character) in directions


@pytest.mark.parametrize("name", COMMANDS)
def test_no_name_acts_on_the_terminal(name: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither output nor messages have control or direction characters, except line ends."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    outcome = run(*(word.format(**places) if "{" in word else word for word in COMMANDS[name]))

    told = outcome.text + outcome.messages
    assert told
    for line in told.split("\n"):
        assert not any(map(acts_on_a_terminal, line)), repr(line)
    assert "this is a fault of raftlog" not in told


def test_every_verb_and_action_is_among_them() -> None:
    """The table has each verb, and each action of log."""
    assert {arguments[0] for arguments in COMMANDS.values()} >= set(VERBS)
    assert {arguments[1] for arguments in COMMANDS.values() if arguments[0] == "log"} >= set(ACTIONS)


@pytest.mark.parametrize("name", NAMES_IN_LINES)
@pytest.mark.parametrize("odd", [ODD, os.fsdecode(b"\xff\x80")], ids=["control", "no UTF-8"])
def test_an_odd_name_is_base64_in_every_json_line(
    name: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is not text is under its member's name with ``_base64``, byte for byte, whatever the verb."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{json.dumps(TOPIC)}\n".encode())))
    arguments, member = NAMES_IN_LINES[name]
    places = made_places(tmp_path, odd)
    lines_format = "json" if name.startswith("stat") else "jsonl"
    outcome = run(*(word.format(**places) for word in arguments), "--format", lines_format)

    lines = [json.loads(line) for line in outcome.output.splitlines()]
    assert lines
    found = {value for line in lines for value in flat(line.get(f"{member}_base64"))}
    assert {os.fsencode(tmp_path) in base64.b64decode(value) for value in found} == ({True} if member else set())
    assert all(os.fsencode(odd) in base64.b64decode(value) for value in found)
    assert not any(value for line in lines for value in flat(line.get(member)))


def flat(value: str | list[str] | None) -> list[str]:
    """Return a member's names: one, several or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def test_every_verb_with_json_lines_is_among_them() -> None:
    """The table has each verb, and each action of log, that prints JSON lines."""
    assert {arguments[0] for arguments, _ in NAMES_IN_LINES.values()} | NO_LINES == set(VERBS)
    assert {arguments[1] for arguments, _ in NAMES_IN_LINES.values() if arguments[0] == "log"} == set(ACTIONS)


def test_an_odd_name_is_shown_in_full(places: dict[str, str]) -> None:
    """The escapes say which characters there are."""
    assert SHOWN in run("verify", "--all", places["damaged"]).text
    assert SHOWN in run("log", "info", places["node"]).text
    assert SHOWN in run("quorum", places["node"]).text
    assert r"CONTROLLER://h\x1b\u202e:9093" in run("voters", places["node"]).text
    assert SHOWN in run("dump-log", f"{places['logs']}/missing.log").messages


def test_the_format_of_kafka_shows_names_as_kafka_does(places: dict[str, str]) -> None:
    """The first line that kafka-dump-log prints of a file has its name as it is."""
    outcome = run("dump-log", places["segment"])
    assert outcome.text.startswith(f"Dumping {places['segment']}\nLog starting offset: 0\n")
    assert "\x1b" in run("dump-log", "--print-data-log", places["segment"]).text.partition("offset: 1 ")[2]
