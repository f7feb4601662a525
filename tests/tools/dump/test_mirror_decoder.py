# SPDX-License-Identifier: Apache-2.0
"""``dump-log --mirror-decoder``, and MirrorMaker's topics by their names: real records, damaged ones, and secrets."""

import base64
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.mirrors.connect_records import ConfigType, read_connect_config
from raftlog.tools.dump.output_formats import FORMATS
from raftlog.tools.verb_help.verbs import VERBS
from tests.records.messages.mirrors.mirror_corpus import MIRROR, A, B, records_of
from tests.records.messages.mirrors.test_connect_records import SESSION_KEY
from tests.tools.console import Outcome, dump, dump_jsonl, run
from tests.tools.line_schema import read_lines
from tests.tools.made_logs import LOG_NAME, batch, write_log

SYNCS = MIRROR / A / "mm2-offset-syncs.B.internal-0"
CHECKPOINTS = MIRROR / B / "A.checkpoints.internal-0"
CONFIGS = MIRROR / B / "mm2-configs.A.internal-0"
SYNC_KEY = b"\0\6orders\0\0\0\0"
HEARTBEAT_KEY = b"\0\1A\0\1B"
SECRET = b"c2VjcmV0"


def payloads(*arguments: str | Path) -> list[str]:
    """Return what the format kafka prints of each record after its metadata."""
    lines = dump("--skip-record-metadata", *arguments).text.splitlines()
    return [line.removeprefix("| ") for line in lines if line.startswith("| ")]


def test_the_text_of_real_checkpoints() -> None:
    """The four checkpoints, in the format kafka."""
    group = 'key: {"type":"CHECKPOINT","data":{"group":"readers","topic":"A.orders","partition":%d}}'
    offsets = 'payload: {"version":"0","data":{"upstreamOffset":%d,"offset":%d,"metadata":""}}'
    assert payloads("--mirror-decoder", CHECKPOINTS) == [
        f"{group} {offsets}" % numbers for numbers in ((1, 150, 144), (0, 61, 1), (1, 150, 150), (0, 273, 243))
    ]


def test_the_text_of_real_offset_syncs() -> None:
    """Those of a topic with transactions; the metadata of records stands before."""
    found = [line for line in payloads("--mirror-decoder", SYNCS) if '"topic":"tx.orders"' in line]
    pairs = [re.findall(r'"upstreamOffset":(\d+),"offset":(\d+)', line) for line in found]
    assert pairs == [
        [(str(u), str(d))] for u, d in ((0, 0), (11, 11), (21, 20), (32, 31), (42, 40), (53, 51), (61, 59))
    ]
    assert "keySize: 12 valueSize: 16 sequence: 0 headerKeys: [] key: {" in dump("--mirror-decoder", SYNCS).text


@pytest.mark.parametrize(
    ("node", "topic", "type_name", "count"),
    [
        (A, "mm2-offset-syncs.B.internal", "OFFSET_SYNC", 52),
        (B, "A.checkpoints.internal", "CHECKPOINT", 4),
        (A, "heartbeats", "HEARTBEAT", 40),
        (B, "A.heartbeats", "HEARTBEAT", 40),
        (B, "heartbeats", "HEARTBEAT", 41),
        (B, "mm2-offsets.A.internal", "CONNECT_OFFSET", 12),
        (B, "mm2-configs.A.internal", "CONNECT_CONFIG", 10),
    ],
)
def test_topics_decide_on_the_decoder(node: str, topic: str, type_name: str, count: int) -> None:
    """In JSON lines and in tables, each record is decoded without an option; in the format kafka none is."""
    folders = sorted(MIRROR.glob(f"{node}/{topic}-*"))
    outcome = dump_jsonl(*folders)
    records = [line for line in read_lines(outcome.output) if line["kind"] == "record"]
    assert [each["type"] for each in records] == [type_name] * count
    assert all(each["data"] is not None and each["key_data"] for each in records)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert dump("--format", "table", *folders).text.count(f" {type_name} ") == count
    assert type_name not in dump("--print-data-log", *folders).text


def test_types_select(tmp_path: Path) -> None:
    """--type selects by the types of these records too, in every format."""
    for output_format in FORMATS:
        outcome = dump("--format", output_format, "--print-data-log", "--type", "Checkpoint", CHECKPOINTS, SYNCS)
        assert outcome.text.count("A.orders") == 4
        assert "tx.orders" not in outcome.text
    copy = write_log(tmp_path / "copy", (CHECKPOINTS / LOG_NAME).read_bytes())
    assert len(dump_jsonl("--mirror-decoder", "--type", "CHECKPOINT", copy).of_kind("record")) == 4


@pytest.mark.parametrize("folder", ["A_checkpoints_internal-0", "x", "mm2_offsets"])
def test_other_names_need_the_option(folder: str, tmp_path: Path) -> None:
    """A copy, or a topic with another separator, is decoded if the decoder is named; by its bytes."""
    for source, type_name in ((SYNCS, "OFFSET_SYNC"), (CHECKPOINTS, "CHECKPOINT"), (CONFIGS, "CONNECT_CONFIG")):
        copy = write_log(tmp_path / folder, (source / LOG_NAME).read_bytes())
        assert {each["type"] for each in dump_jsonl("--mirror-decoder", copy).of_kind("record")} == {type_name}
        assert not any("type" in each for each in dump_jsonl(copy).of_kind("record"))


@pytest.mark.parametrize(
    ("topic", "key", "value", "rule", "reason"),
    [
        ("mm2-offset-syncs.B.internal", SYNC_KEY, bytes(17), "message-field", "bytes are left over after the "),
        ("mm2-offset-syncs.B.internal", SYNC_KEY + b"!", bytes(16), "message-field", "bytes are left over after the "),
        ("mm2-offset-syncs.B.internal", None, bytes(16), "message-frame", "has no key"),
        ("A.checkpoints.internal", b"\0\1g" + SYNC_KEY, b"\0\1" + bytes(18), "message-version", "has version 1"),
        ("A.checkpoints.internal", b"\0\1g" + SYNC_KEY, bytes(19), "message-field", "inside a field"),
        ("heartbeats", HEARTBEAT_KEY, b"\0\7" + bytes(8), "message-version", "has version 7"),
        ("A.heartbeats", HEARTBEAT_KEY, bytes(9), "message-field", "inside a field"),
        ("mm2-offsets.A.internal", b"[", b"{}", "message-field", "is not JSON"),
        ("mm2-configs.A.internal", b"task-a-0", b"{}", "message-field", "not an object of texts"),
    ],
)
@pytest.mark.parametrize("output_format", FORMATS)
def test_what_does_not_decode(
    output_format: str, topic: str, key: bytes | None, value: bytes, rule: str, reason: str, tmp_path: Path
) -> None:
    """It is one finding with file, position and offset, in every format; the records around it are shown."""
    sound = batch(0, (None,), key=key if key and topic.endswith("configs.A.internal") else SYNC_KEY)
    path = write_log(tmp_path / f"{topic}-0", sound, batch(1, (value,), key=key))
    outcome = dump("--format", output_format, "--from", "1", "--mirror-decoder", path)
    (complaint,) = outcome.complaints
    assert complaint.startswith(f"raftlog: {path}, position {len(sound)}, offset 1: suspicious: ")
    assert reason in complaint
    assert complaint.endswith(f"[{rule}]")
    assert outcome.exit_code == 3
    guessed = dump("--format", output_format, "--from", "1", path)
    assert guessed.complaints == ([] if output_format == "kafka" else [complaint])


NAMED = (SYNCS.name, CHECKPOINTS.name, "heartbeats-0", "mm2-offsets.A.internal-0", CONFIGS.name, "elsewhere")
KEYS = st.none() | st.binary(max_size=20) | st.sampled_from([SYNC_KEY, HEARTBEAT_KEY, b"session-key", b"task-a-0"])
VALUES = st.none() | st.binary(max_size=20) | st.sampled_from([bytes(16), bytes(10), SESSION_KEY, SESSION_KEY + b"!"])


@given(
    folder=st.sampled_from(NAMED),
    records=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4),
    is_named=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_any_records_in_every_format(
    folder: str,
    records: list[tuple[bytes | None, bytes | None]],
    is_named: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever the records are, each has a line, JSON lines keep to their schema, and no session key shows."""
    batches = [batch(offset, (value,), key=key) for offset, (key, value) in enumerate(records)]
    path = write_log(tmp_path_factory.mktemp("log") / folder, *batches)
    options = ["--mirror-decoder"] if is_named else []
    outcomes = {each: dump("--format", each, *options, path) for each in ("jsonl", "table")}
    lines = read_lines(outcomes["jsonl"].output)
    assert len([line for line in lines if line["kind"] == "record"]) == len(records)
    assert {outcome.exit_code for outcome in outcomes.values()} <= {0, 3}
    assert len({(outcome.exit_code, outcome.messages) for outcome in outcomes.values()}) == 1
    assert not any(SECRET in outcome.output for outcome in outcomes.values())
    if is_named:
        kafka = dump(*options, path)
        assert (kafka.exit_code, kafka.messages) == (outcomes["table"].exit_code, outcomes["table"].messages)
        assert SECRET not in kafka.output


def test_heartbeats_of_an_application(tmp_path: Path) -> None:
    """A topic that is called so is shown as any other, without a finding; the user may insist."""
    path = write_log(tmp_path / "heartbeats-0", batch(0, (b'{"alive":true}',), key=b"host-1"))
    outcome = dump_jsonl(path)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    (record,) = outcome.of_kind("record")
    assert (record["key"], record["value"], "type" in record) == ("host-1", '{"alive":true}', False)
    assert dump_jsonl("--mirror-decoder", path).exit_code == 3


# Secrets


def session_keys() -> dict[str, bytes]:
    """Return the secret of each node's session key, as it is written."""
    found = {}
    for node, topic in ((A, "mm2-configs.B.internal"), (B, "mm2-configs.A.internal")):
        configs = [read_connect_config(each.key, each.value) for each in records_of(node, topic)]
        (key,) = [each.value for each in configs if each.type is ConfigType.SESSION_KEY]
        found[node] = str((key or {})["key"]).encode()
    return found


def forms(secret: bytes) -> list[bytes]:
    """Return the secret as text, in base64 wherever it begins, and in hexadecimal digits."""
    inner = [base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)]
    return [secret, *inner, secret.hex().encode(), base64.b64decode(secret + b"=" * (-len(secret) % 4))]


def shows(outcome: Outcome, *secrets: bytes, more: bytes = b"") -> bool:
    """Whether a run shows one of some secrets in any form."""
    shown = outcome.output + outcome.messages.encode() + more
    shown += b"\n" + re.sub(rb"[\s\xe2\x94\x82]", b"", shown)  # Bytes in lines of hexadecimal digits.
    return any(form in shown for secret in secrets for form in forms(secret))


QUICK: dict[str, tuple[str, ...]] = {
    "dump-log jsonl": ("dump-log", "--format", "jsonl", "{configs}"),
    "dump-log table": ("dump-log", "--format", "table", "--all", "{configs}"),
    "dump-log as text": ("dump-log", "--format", "jsonl", "--value-decoder-class", "String", "{configs}"),
    "dump-log by Python": ("dump-log", "--format", "table", "--value-decoder-class", "builtins:repr", "{configs}"),
    "dump-log mirror": ("dump-log", "--mirror-decoder", "{configs}"),
    "dump-log offsets": ("dump-log", "--format", "jsonl", "--offsets-decoder", "{configs}"),
    "dump-log transactions": ("dump-log", "--format", "jsonl", "--transaction-log-decoder", "{configs}"),
    "dump-log metadata": ("dump-log", "--format", "jsonl", "--cluster-metadata-decoder", "{configs}"),
    "dump-log shares": ("dump-log", "--format", "table", "--share-group-state-decoder", "{configs}"),
    "dump-log stray": ("dump-log", "--format", "jsonl", "{stray}"),
    "dump-log stray mirror": ("dump-log", "--mirror-decoder", "{stray}"),
    "follow": ("follow", "--format", "jsonl", "--until-idle", "0", "--interval", "0", "{configs}"),
    "explain": ("explain", "{configs}/00000000000000000000.log", "--offset", "0", "--all"),
    "explain lines": ("explain", "{configs}/00000000000000000000.log", "--offset", "0", "--format", "jsonl"),
    "explain stray": ("explain", "{stray}", "--offset", "0", "--all"),
    "query": ("query", "SELECT value, hex(value), base64(value) FROM records", "{configs}"),
    "query stray": ("query", "FROM records", "{stray}", "--format", "jsonl"),
    "stats": ("stats", "{configs}", "--report", "{out}", "--key-prefix", "999"),
    "verify": ("verify", "-j1", "--all", "{configs}", "--report", "{out}"),
    "verify-mirror": ("verify-mirror", "--source", str(MIRROR / A), "--target", str(MIRROR / B)),
}
"""How records of a topic can be shown."""
SLOW: dict[str, tuple[str, ...]] = {
    "dump-log node": ("dump-log", "--format", "jsonl", "--all", "{node}"),
    "query node": ("query", "FROM records", "{node}"),
    "stats node": ("stats", "{node}", "--format", "json"),
    "verify node": ("verify", "--all", "{node}", "--report", "{out}"),
    "diff": ("diff", "-j1", "--all", "--format", "jsonl", "{configs}", "{other}"),
    "audit": ("audit", "-j1", "--out", "{out}", "{node}"),
    "state": ("state", "{node}"),
    "state against": ("state", "{node}", "--against", "{node}"),
    "state groups": ("state", "{node}", "--topic", "__consumer_offsets"),
    "quorum": ("quorum", "{node}"),
    "voters": ("voters", "{node}"),
    "epochs": ("epochs", "{node}"),
    "free": ("free", "{node}"),
    "salvage": ("salvage", "{node}", "--partition", "{topic}", "--metadata", "{node}", "--plan", "{out}"),
}
"""What other verbs say of a node or of two replicas."""
WITHOUT_RECORDS = {"snapshot", "rewrite-voters", "simulate", "log", "topics", "spark-env", "help", "completion"}
"""Verbs that read no topic's records but the metadata's, or none."""


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_no_verb_shows_a_session_key(name: str, tmp_path: Path) -> None:
    """Neither standard output nor standard error, nor a report or plan, has the session key of a real mirror."""
    topic = CONFIGS.name
    shutil.copytree(MIRROR / A / "mm2-configs.B.internal-0", tmp_path / topic)
    stray = write_log(tmp_path / "elsewhere", (CONFIGS / LOG_NAME).read_bytes())
    out = tmp_path / ("out" if name == "audit" else "out.html")
    places = {"node": CONFIGS.parent, "configs": CONFIGS, "stray": stray, "other": tmp_path / topic, "out": out}

    outcome = run(*(each.format(**places, topic=topic) for each in (QUICK | SLOW)[name]))

    written = [path.read_bytes() for path in sorted([*out.rglob("*"), out]) if path.is_file()]
    assert outcome.exit_code != 1
    assert outcome.output or written
    assert not shows(outcome, *session_keys().values(), more=b"\n".join(written))


def test_every_verb_that_reads_records_is_tried() -> None:
    """A new verb stands in the table, or among those that show no records of topics."""
    assert {words[0] for words in (QUICK | SLOW).values()} | WITHOUT_RECORDS == set(VERBS)


@pytest.mark.parametrize("output_format", FORMATS)
def test_secrets_are_shown_when_asked_for(output_format: str) -> None:
    """--no-redact shows the session key; so does the format kafka without this decoder, and says so once."""
    secret = session_keys()[B]
    outcome = dump("--format", output_format, "--mirror-decoder", "--no-redact", CONFIGS)
    assert secret in outcome.output
    assert outcome.messages == ""
    plain = dump("--print-data-log", CONFIGS)
    assert secret in plain.output
    assert plain.messages.count("secrets are shown") == 1
    for shown in (
        run("query", "FROM records", CONFIGS, "--no-redact"),
        run("explain", CONFIGS / LOG_NAME, "--offset", "0", "--all", "--no-redact"),
    ):
        assert shows(shown, secret)


def test_a_hidden_record_says_so() -> None:
    """In JSON lines the decoded value is there without the secret, and the line says that something is hidden."""
    first, second, *_ = dump_jsonl(CONFIGS).of_kind("record")
    assert first["redacted"] is True
    assert first["data"]["key"] == "[redacted]"
    assert first["data"]["algorithm"] == "HmacSHA256"
    assert "redacted" not in second


@pytest.mark.parametrize("output_format", sorted(set(FORMATS) - {"kafka"}))
@pytest.mark.parametrize("folder", ["mm2-configs.A.internal-0", "connect-configs-0", "orders-0"])
@pytest.mark.parametrize("options", [(), ("--mirror-decoder",), ("--value-decoder-class", "builtins:repr")])
def test_damaged_configurations_show_nothing(
    options: tuple[str, ...], folder: str, output_format: str, tmp_path: Path
) -> None:
    """A session key that is cut or too long is hidden in every topic; in a topic of configurations any such value."""
    values = [SESSION_KEY, SESSION_KEY[:-1], SESSION_KEY + b"!"]
    if folder.startswith("mm2-configs"):
        values += [SECRET, b"{" + SECRET, b'["' + SECRET + b'"]', b'{"properties":"password=' + SECRET + b'"}']
    path = write_log(tmp_path / folder, batch(0, values, key=b"session-key"))
    outcome = dump("--format", output_format, *options, path)
    assert not shows(outcome, SECRET)
    assert shows(dump("--format", output_format, *options, "--no-redact", path), SECRET)
