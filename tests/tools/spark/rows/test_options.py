# SPDX-License-Identifier: Apache-2.0
"""The options of the source, and what is said about those that cannot be."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import OptionError
from raftlog.tools.spark.rows.options import OPTIONS, VIEWS, OffsetBound, SourceOptions
from raftlog.tools.spark.rows.views import asked_schema, view_schema


@given(st.dictionaries(st.sampled_from(OPTIONS) | st.text(max_size=12), st.text(max_size=30), max_size=4))
def test_any_texts_give_options_or_one_clear_error(texts: dict[str, str]) -> None:
    """Whatever a user writes, the outcome is options or an OptionError."""
    with contextlib.suppress(OptionError):
        assert SourceOptions.parse({"path": "x"} | texts).paths


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"veiw": "records"}, "option veiw: there is no such option; did you mean view?"),
        ({"view": "batch"}, "did you mean batches?"),
        ({"view": "x"}, "is not one of records, records_ext, batches, control, metadata"),
        ({"mode": "FAIL"}, "did you mean FAILFAST?"),
        ({"splitSize": "0"}, "not a size"),
        ({"splitSize": "12 parsecs"}, "not a size"),
        ({"minPartitions": "-1"}, "not a number above zero"),
        ({"minPartitions": "000"}, "not a number above zero"),
        ({"minPartitions": "0" * 5000 + "1"}, "not a number above zero"),
        ({"kafka.isolation.levle": "read_committed"}, "did you mean kafka.isolation.level?"),
        ({"path": "-"}, "standard input cannot be read"),
        ({"startingOffsets": "latests"}, "not JSON"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "-3 is invalid"),
        ({"startingOffsets": '{"t": 5}'}, "is not of the form"),
        ({"endingTimestamp": "2026-01-01"}, "not a timestamp in ms"),
        ({"assign": '{"t": 0}'}, "needs a list of partitions"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"subscribe": "a", "assign": "{}"}, "option assign: it excludes subscribe"),
        ({"columns": "a,,b"}, "not a list of names"),
        ({"pushdown": "yes"}, "is not one of true, false"),
        ({"path": ""}, "it is missing"),
        ({"provider": "raftlog", "owner": "me"}, "a table does not keep it: Spark keeps no options of a table"),
        ({"owner": "me"}, "there is no such option"),
        ({"paths": "[1]"}, "it is missing"),
    ],
)
def test_impossible_values_are_named(texts: dict[str, str], problem: str) -> None:
    """An error names the option, and what would do."""
    with pytest.raises(OptionError) as raised:
        SourceOptions.parse({"path": "x"} | texts)
    assert problem in str(raised.value)


def test_options_for_brokers_are_ignored() -> None:
    """A job that read from brokers keeps its options."""
    options = SourceOptions.parse(
        {"PATH": "x", "kafka.bootstrap.servers": "b:9092", "kafka.security.protocol": "SSL", "groupIdPrefix": "p"}
    )
    assert options == SourceOptions.parse({"path": "x"})


def test_damage_and_loss_are_decided_about_apart() -> None:
    """FAILFAST and failing on loss are the defaults, and neither option changes what the other one says."""

    def decided(**texts: str) -> tuple[str, bool]:
        options = SourceOptions.parse({"path": "x"} | texts)
        return options.mode, options.fails_on_loss

    assert decided() == ("FAILFAST", True)
    assert decided(failOnDataLoss="false") == ("FAILFAST", False)
    assert decided(mode="permissive") == ("PERMISSIVE", True)
    assert decided(mode="dropmalformed", failOnDataLoss="false") == ("DROPMALFORMED", False)


def test_offsets_are_read_as_kafkas_source_has_them() -> None:
    """JSON by topic and partition, the words of both ends, and timestamps before offsets."""

    def starting(**texts: str) -> OffsetBound:
        return SourceOptions.parse({"path": "x"} | texts).starting

    assert starting(startingOffsets="earliest").of(("t", 0)) is None
    assert starting(startingOffsets='{"t": {"0": 5, "1": -2}}').each == {("t", 0): 5, ("t", 1): -2}
    assert starting(startingOffsets="earliest", startingTimestamp="7").default == 7
    assert SourceOptions.parse({"path": "x", "splitSize": "64 MiB"}).split_size == 64 * 1024 * 1024


def test_columns_are_those_of_the_view() -> None:
    """A column that the view lacks is an error that names the nearest; _corrupt is there in PERMISSIVE alone."""
    options = SourceOptions.parse({"path": "x", "columns": "ofset"})
    with pytest.raises(OptionError, match="did you mean offset"):
        view_schema(options)
    with pytest.raises(OptionError, match="mode PERMISSIVE"):
        asked_schema(options, [("_corrupt", True)])
    assert asked_schema(options, [("OFFSET", False)]).names == ["OFFSET"]


def test_a_column_is_named_once() -> None:
    """Columns that are named twice, and a schema of none, are errors of ours: Spark's own fill the screen."""
    with pytest.raises(OptionError, match="option columns: it names a column twice: offset, OFFSET"):
        view_schema(SourceOptions.parse({"path": "x", "columns": "offset, OFFSET"}))
    options = SourceOptions.parse({"path": "x"})
    with pytest.raises(OptionError, match="option schema: it names a column twice"):
        asked_schema(options, [("key", True), ("key", True)])
    with pytest.raises(OptionError, match="option schema: it names no column"):
        asked_schema(options, [])


VALUES: dict[str, dict[str, tuple[str, object]]] = {
    "view": {each: ("view", each) for each in VIEWS},
    "mode": {each: ("mode", each) for each in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")},
    "snapshots": {each: ("snapshots", each) for each in ("none", "newest", "all")},
    "failOnDataLoss": {"true": ("fails_on_loss", True), "false": ("fails_on_loss", False)},
    "committedOnly": {"true": ("committed_only", True), "false": ("committed_only", False)},
    "includeDeletedRecords": {"true": ("include_deleted", True), "false": ("include_deleted", False)},
    "includeHeaders": {"true": ("include_headers", True), "false": ("include_headers", False)},
    "pushdown": {"true": ("pushdown", True), "false": ("pushdown", False)},
    "redact": {"true": ("redact", True), "false": ("redact", False)},
    "kafka.isolation.level": {
        "read_committed": ("read_committed", True),
        "read_uncommitted": ("read_committed", False),
    },
    "startingOffsetsByTimestampStrategy": {
        "error": ("fails_without_match", True),
        "latest": ("fails_without_match", False),
    },
    "startingOffsets": {
        "earliest": ("starting", OffsetBound("startingOffsets")),
        "latest": ("starting", OffsetBound("startingOffsets", default=-1)),
    },
    "endingOffsets": {
        "latest": ("ending", OffsetBound("endingOffsets")),
        "earliest": ("ending", OffsetBound("endingOffsets", default=-2)),
    },
}
"""The words of each option that takes words, with the field and value that each one gives."""


@pytest.mark.parametrize(("option", "text"), [(option, text) for option, texts in VALUES.items() for text in texts])
def test_every_word_of_every_option(option: str, text: str) -> None:
    """Each word is taken in any case, and means one value of one field."""
    field, value = VALUES[option][text]
    for written in (text, text.upper(), text.lower(), f" {text} "):
        assert getattr(SourceOptions.parse({"path": "x", option: written}), field) == value


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_every_option_is_one_of_words_or_refuses_them(option: str) -> None:
    """The table of words is complete: an option that is not in it takes no choice of words."""
    if option in VALUES:
        with pytest.raises(OptionError, match=option):
            SourceOptions.parse({"path": "x", option: "no such word"})
    elif option not in {"path", "columns", "subscribe", "subscribePattern"}:
        with pytest.raises(OptionError, match=r"paths|JSON|number|size|timestamp"):
            SourceOptions.parse({"path": "x", option: "earliest"})
