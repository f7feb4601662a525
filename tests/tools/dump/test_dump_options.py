# SPDX-License-Identifier: Apache-2.0
"""The options of ``raftlog dump-log``: what each does, and which of several wins."""

import json
from pathlib import Path

import pytest

from raftlog.records.messages.releases import DIALECTS, NEWEST_DIALECT
from raftlog.tools.dump.dump_options import parse_options
from raftlog.tools.dump.output_formats import FORMATS
from raftlog.tools.dump.selection import parse_time_ms
from tests.golden_files import GOLDEN
from tests.strategies import legacy_message
from tests.tools.console import dump, dump_jsonl
from tests.tools.made_logs import LOG_NAME, batch, write_log

METADATA = GOLDEN / "dynamic-quorum/data/n3/__cluster_metadata-0" / LOG_NAME
OFFSETS = GOLDEN / "data-topics/data/n1/__consumer_offsets-0" / LOG_NAME
TRANSACTIONS = GOLDEN / "data-topics/data/n1/__transaction_state-0" / LOG_NAME
PLAIN = GOLDEN / "data-topics/data/n1/c-none-0" / LOG_NAME


def test_files_in_every_spelling(tmp_path: Path) -> None:
    """Files may be given with commas, by --files again and again, and without it; they are dumped in that order."""
    paths = [write_log(tmp_path, batch(index), name=f"{index}.log") for index in range(5)]
    a, b, c, d, e = map(str, paths)

    outcome = dump("--files", f"{a},{b},", "--files", c, d, e)

    assert [line for line in outcome.text.splitlines() if line.startswith("Dumping")] == [f"Dumping {p}" for p in paths]
    assert outcome.exit_code == 0


def test_a_comma_list_is_not_trimmed(tmp_path: Path) -> None:
    """As in Kafka, a blank after a comma is part of the name."""
    path = write_log(tmp_path, batch())

    outcome = dump("--files", f"{path}, {path}")

    assert outcome.exit_code == 1
    assert outcome.messages.startswith(f"raftlog:  {path}: open failed")


@pytest.mark.parametrize(
    ("options", "winner"),
    [
        (("--cluster-metadata-decoder", "--offsets-decoder"), "offsets"),
        (("--share-group-state-decoder", "--transaction-log-decoder"), "transaction-log"),
        (("--share-group-state-decoder", "--cluster-metadata-decoder"), "cluster-metadata"),
        (("--value-decoder-class", "builtins:len", "--share-group-state-decoder"), "share-group-state"),
        (("--remote-log-metadata-decoder", "--offsets-decoder"), "offsets"),
        (("--mirror-decoder", "--share-group-state-decoder"), "share-group-state"),
        (("--value-decoder-class", "builtins:len", "--mirror-decoder"), "mirror"),
    ],
)
def test_one_decoder_wins(options: tuple[str, ...], winner: str) -> None:
    """The first of several decoders in Kafka's order is used, whatever the order on the command line."""
    assert parse_options([*options, "x"]).decoder == winner
    assert parse_options([*reversed_pairs(options), "x"]).decoder == winner


def reversed_pairs(options: tuple[str, ...]) -> tuple[str, ...]:
    """Put the last option first."""
    return (*options[-1:], *options[:-1])


@pytest.mark.parametrize("path", [METADATA, OFFSETS, TRANSACTIONS])
def test_the_topic_decides_on_the_decoder(path: Path) -> None:
    """In JSON lines a known topic is decoded without an option; in the format kafka only as Kafka would."""
    records = [line for line in dump_jsonl(path).of_kind("record") if not line["is_control"]]

    assert records
    assert all("type" in record and "data" in record for record in records)
    assert '"version"' not in dump("--print-data-log", "--until", "0", path).text


def test_a_named_decoder_wins_over_the_topic(tmp_path: Path) -> None:
    """A named decoder is used for every file, whatever its topic."""
    record = dump_jsonl("--value-decoder-class", "builtins:len", "--no-redact", METADATA).of_kind("record")[-1]
    copy = write_log(tmp_path / "t-0", METADATA.read_bytes())

    assert record["data"] == record["value_size"]
    assert "type" in dump_jsonl("--cluster-metadata-decoder", copy).of_kind("record")[-1]
    assert "type" not in dump_jsonl(copy).of_kind("record")[-1]


def test_functions_of_the_users(tmp_path: Path) -> None:
    """A function of bytes decodes keys or values: its text in Kafka's words, its JSON in JSON lines."""
    path = write_log(tmp_path, batch(0, (b'{"a":[1,2]}', None), key=b"12"))
    options = ("--key-decoder-class", "builtins:int", "--value-decoder-class", "json:loads")

    first, second = dump_jsonl(*options, path).of_kind("record")
    kafka = dump(*options, path).text

    assert (first["key_data"], first["data"]) == (12, {"a": [1, 2]})
    assert (second["key_data"], second["value"], "data" in second) == (12, None, False)
    assert " key: 12 payload: {'a': [1, 2]}\n" in kafka
    assert kafka.endswith(" key: 12\n")


def test_a_decoder_class_without_a_name(tmp_path: Path) -> None:
    """Without a name, a decoder shows text, as Kafka's StringDecoder does."""
    path = write_log(tmp_path, batch(0, (b"text \xff",)))

    assert dump("--value-decoder-class", "--files", path).output == dump("--print-data-log", path).output
    assert "payload: text \ufffd\n" in dump("--print-data-log", path).text


def test_skip_record_metadata() -> None:
    """--skip-record-metadata leaves keys and payloads alone; control records become blank lines."""
    lines = dump("--cluster-metadata-decoder", "--skip-record-metadata", METADATA).text.splitlines()[2:]

    records = [line for line in lines if not line.startswith("baseOffset")]
    assert "" in records
    assert all(not line or json.loads(line.removeprefix("| payload: ")) for line in records)


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_max_bytes(step: int, output_format: str, tmp_path: Path) -> None:
    """--max-bytes N shows the batches that end within the first N bytes, and says nothing of the rest."""
    batches = [batch(offset, (b"needle",)) for offset in range(4)]
    path = write_log(tmp_path, *batches, b"\0" * 50)
    size = len(batches[0])

    outcome = dump("--format", output_format, "--print-data-log", "--max-bytes", str(2 * size + step), path)

    assert (outcome.text.count("needle"), outcome.exit_code) == ((1 if step < 0 else 2), 0)


def test_the_default_of_max_bytes_is_no_limit() -> None:
    """Kafka's default, 2 GiB less a byte, does not cut longer files."""
    assert parse_options(["--max-bytes", "2147483647", "x"]).max_bytes is None
    assert parse_options(["x"]).max_bytes is None
    assert parse_options(["--max-bytes", "2147483646", "x"]).max_bytes == 2147483646


def test_shallow_and_deep() -> None:
    """The format kafka shows records when asked to, the others unless asked not to."""
    assert "| offset" not in dump(PLAIN).text
    assert "| offset" in dump("--deep-iteration", PLAIN).text
    assert "payload" not in dump("--deep-iteration", PLAIN).text
    assert dump_jsonl(PLAIN).of_kind("record")
    assert not dump_jsonl("--shallow", PLAIN).of_kind("record")
    assert len(dump("--format", "table", "--shallow", PLAIN).text) < len(dump("--format", "table", PLAIN).text)


def test_decode_corrupt(tmp_path: Path) -> None:
    """Records of a batch with a wrong CRC are shown only with --decode-corrupt; the damage is always reported."""
    data = bytearray(batch(0, (b"value",)))
    data[-3] ^= 1
    path = write_log(tmp_path, data, batch(1))

    hidden, shown = dump_jsonl(path), dump_jsonl("--decode-corrupt", path)

    assert [line["offset"] for line in hidden.of_kind("record")] == [1]
    assert [line["offset"] for line in shown.of_kind("record")] == [0, 1]
    assert [line["is_valid"] for line in hidden.of_kind("batch")] == [False, True]
    assert hidden.messages == shown.messages
    assert hidden.exit_code == shown.exit_code == 2


def test_dialects_differ_and_the_newest_is_the_default(tmp_path: Path) -> None:
    """--dialect chooses the words: the stray brace after old messages went with 4.3, LeaderChange came with 4.1."""
    old = write_log(tmp_path, legacy_message(1, 0, b"k", b"v"))

    outputs = {each: dump("--print-data-log", "--dialect", each.name, old).text for each in DIALECTS.values()}
    leaders = {
        each: dump("--deep-iteration", "--limit", "1", "--dialect", each.name, METADATA).text
        for each in DIALECTS.values()
    }

    assert [each for each in DIALECTS.values() if "}" in outputs[each]] == [
        each for each in DIALECTS.values() if each < DIALECTS["4.3"]
    ]
    assert [each for each in DIALECTS.values() if "LeaderChange: {" not in leaders[each]] == [
        DIALECTS["3.9"],
        DIALECTS["4.0"],
    ]
    assert dump("--print-data-log", old).text == outputs[NEWEST_DIALECT]
    assert max(DIALECTS.values()) is NEWEST_DIALECT


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("-1", -1),
        ("1700000000123", 1700000000123),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01 01:00+01:00", 0),
        ("2023-11-14T22:13:20.123", 1700000000123),
        ("1969-12-31T23:59:59.999", -1),
        ("9999-12-31T23:59:59.999", 253402300799999),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    """A time is milliseconds, or ISO 8601, which is UTC unless it says otherwise."""
    assert parse_time_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "now", "\u00b2", "1e3", "12:00", "2023-13-01", "--5", "1 2"])
def test_texts_that_are_not_times(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError):
        parse_time_ms(text)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TOPIC_RECRD", "TOPIC_RECORD"),
        ("topicrecord", "TOPIC_RECORD"),
        ("KRaftVoter", "KRAFT_VOTERS"),
        ("offset_comit", "OFFSET_COMMIT"),
        ("?", None),
    ],
)
def test_an_unknown_type_is_refused(name: str, near: str | None) -> None:
    """A name that no record can have is a usage error, which names those that are like it."""
    outcome = dump("--type", name, METADATA)

    assert outcome.exit_code == 1
    assert outcome.output == b""
    assert f"no type is called {name!r}" in outcome.messages
    assert near is None or near in outcome.messages
    assert len(outcome.messages.splitlines()) == 1


@pytest.mark.parametrize("name", ["TopicRecord", "topic_record", "KRAFT_VOTERS", "unknown(99)", "TRANSACTION_LOG"])
def test_types_in_every_spelling(name: str) -> None:
    """Names of schemas and of the tools are taken, and what control records of unknown types are called."""
    assert len(parse_options(["--type", name, "x"]).selection.types) == 1
