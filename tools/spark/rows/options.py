# SPDX-License-Identifier: Apache-2.0
"""The options of the data source, parsed and checked before anything is read.

Options that Spark's Kafka source has too have the same names and meanings, so that a job can move from brokers to
files by changing only the format and the path.
"""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Self

import attrs

from raftlog.errors import OptionError
from raftlog.invariants import present
from raftlog.records.messages.coordinator import CONSUMER_OFFSETS, TRANSACTION_STATE
from raftlog.storage.reading.file_source import STANDARD_INPUT

MIB: Final = 1024 * 1024
DEFAULT_SPLIT_SIZE: Final = 128 * MIB
VIEWS: Final = ("records", "records_ext", "batches", "control", "metadata", "consumer_offsets", "transaction_state")
TOPIC_OF_VIEW: Final = {"consumer_offsets": CONSUMER_OFFSETS, "transaction_state": TRANSACTION_STATE}
"""The topic of each view that decodes a coordinator's records."""
PERMISSIVE: Final = "PERMISSIVE"
DROP_MALFORMED: Final = "DROPMALFORMED"
FAIL_FAST: Final = "FAILFAST"
EARLIEST: Final = -2
LATEST: Final = -1
"""The numbers that mean an end of the log among offsets."""

_ISOLATION_LEVEL: Final = "kafka.isolation.level"
OPTIONS: Final = (
    "assign",
    "columns",
    "committedOnly",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "includeDeletedRecords",
    "includeHeaders",
    _ISOLATION_LEVEL,
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "minPartitions",
    "mode",
    "path",
    "paths",
    "pushdown",
    "redact",
    "snapshots",
    "splitSize",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "subscribe",
    "subscribePattern",
    "view",
)
"""All options of this source."""

INSTEAD_OF_TABLES: Final = (
    "Spark keeps no options of a table for a Python source; use CREATE TEMPORARY VIEW … USING raftlog OPTIONS (path …)"
)
"""Advice for statements that define tables."""
_OF_TABLES: Final = frozenset({"owner", "provider"})
"""What Spark passes in addition to the options if a table is created."""
_OF_BROKERS: Final = frozenset(
    {
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "groupidprefix",
        "kafkaconsumer.polltimeoutms",
        "maxtriggerdelay",
        "minoffsetspertrigger",
    }
)
"""Options of Spark's Kafka source without a meaning for files. They are ignored, as is any that starts ``kafka.``."""
_SIZE_UNITS: Final = {"": 1, "b": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}

TopicPartition = tuple[str, int]


@attrs.frozen
class OffsetBound:
    """Where to start or to end, by partition.

    Attributes:
        option: name of the option with this value; empty if none was given.
        is_time: whether the numbers are timestamps in ms; else they are offsets, or one of ``EARLIEST`` and ``LATEST``.
        default: for partitions that are not named; None leaves them unbounded.
        each: for partitions that are named.
    """

    option: str = ""
    is_time: bool = False
    default: int | None = None
    each: Mapping[TopicPartition, int] = attrs.field(factory=dict)

    def of(self, partition: TopicPartition) -> int | None:
        """Return the offset or timestamp of a partition, or None if it is unbounded."""
        return self.each.get(partition, self.default)


@attrs.frozen
class SourceOptions:
    """The parsed options of the source.

    Attributes:
        paths: files, directories and patterns, as ``raftlog.tools.auditing.survey.tasks.find_tasks`` takes them.
        view: one of ``VIEWS``.
        columns: those to read, in order, or None for all.
        mode: what to do about damage; one of ``PERMISSIVE``, ``DROP_MALFORMED`` and ``FAIL_FAST``.
        fails_on_loss: whether records and files that are gone are an error; damage follows ``mode`` alone.
        committed_only: whether raft logs are read up to what is proven to be committed, one replica of each.
        include_deleted: whether records below the log start, which a broker no longer returns, are read.
        include_headers: whether records come with their headers.
        snapshots: which snapshots in directories are read: ``none``, the ``newest`` of each log, or ``all``.
        redact: whether secrets in metadata records are hidden.
        split_size: approximate number of bytes that a task reads.
        min_partitions: the wanted least number of tasks, or None.
        max_records: the most offsets that a task should span, or None.
        pushdown: whether filters are used as hints.
        topics: those to read, or None.
        topic_pattern: a regular expression that matches the whole names of topics to read, or None.
        partitions: those to read, or None.
        starting, ending: the first offset (inclusive) and the end (exclusive).
        fails_without_match: whether a starting timestamp after all records is an error.
        read_committed: whether records of aborted and of open transactions are left out.
        max_offsets_per_trigger: the most offsets in a micro-batch of a stream, or None.
    """

    paths: tuple[str, ...]
    view: str = "records"
    columns: tuple[str, ...] | None = None
    mode: str = FAIL_FAST
    fails_on_loss: bool = True
    committed_only: bool = False
    include_deleted: bool = False
    include_headers: bool = False
    snapshots: str = "none"
    redact: bool = True
    split_size: int = DEFAULT_SPLIT_SIZE
    min_partitions: int | None = None
    max_records: int | None = None
    pushdown: bool = False
    topics: frozenset[str] | None = None
    topic_pattern: str | None = None
    partitions: frozenset[TopicPartition] | None = None
    starting: OffsetBound = OffsetBound()
    ending: OffsetBound = OffsetBound()
    fails_without_match: bool = True
    read_committed: bool = False
    max_offsets_per_trigger: int | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options that a user gave.

        Raises:
            OptionError: a name is unknown, a value is invalid, two options exclude each other, or no path was given.
        """
        texts = _Texts(given)
        return cls(
            paths=texts.paths(),
            view=texts.choice("view", VIEWS, "records"),
            columns=texts.names("columns"),
            mode=texts.choice("mode", (PERMISSIVE, DROP_MALFORMED, FAIL_FAST), FAIL_FAST),
            fails_on_loss=texts.flag("failOnDataLoss", default=True),
            committed_only=texts.flag("committedOnly", default=False),
            include_deleted=texts.flag("includeDeletedRecords", default=False),
            include_headers=texts.flag("includeHeaders", default=False),
            snapshots=texts.choice("snapshots", ("none", "newest", "all"), "none"),
            redact=texts.flag("redact", default=True),
            split_size=texts.size("splitSize", DEFAULT_SPLIT_SIZE),
            min_partitions=texts.count("minPartitions"),
            max_records=texts.count("maxRecordsPerPartition"),
            pushdown=texts.flag("pushdown", default=False),
            **texts.selection(),
            starting=texts.bound("starting", EARLIEST, LATEST),
            ending=texts.bound("ending", LATEST, EARLIEST),
            fails_without_match=texts.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
            == "error",
            read_committed=texts.choice(_ISOLATION_LEVEL, ("read_uncommitted", "read_committed"), "read_uncommitted")
            == "read_committed",
            max_offsets_per_trigger=texts.count("maxOffsetsPerTrigger"),
        )

    def wants(self, topic: str | None, partition: int | None) -> bool:
        """Whether to read a partition. One without a known name is read only if no names are asked for."""
        if self.partitions is not None:
            return (topic, partition) in self.partitions
        if self.topics is not None:
            return topic in self.topics
        return self.topic_pattern is None or re.fullmatch(self.topic_pattern, topic or "") is not None


class _Texts:
    """The texts of options by lower-case name, and a parser for each kind of value."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._texts = {name.lower(): text for name, text in given.items()}
        if self._texts.keys() >= _OF_TABLES:
            raise OptionError("path", f"a table does not keep it: {INSTEAD_OF_TABLES}")
        known = {name.lower(): name for name in OPTIONS}
        for name in self._texts:
            if name not in known and not _is_of_brokers(name):
                raise _unknown_option(next(each for each in given if each.lower() == name), known)

    def _text(self, name: str) -> str | None:
        return self._texts.get(name.lower())

    def paths(self) -> tuple[str, ...]:
        several = self._json("paths", list)
        paths = [] if several is None else several
        if (path := self._text("path")) is not None:
            paths.append(path)
        if not paths or not all(isinstance(each, str) and each for each in paths):
            problem = "it is missing; name a file, a partition's directory or a log directory"
            raise OptionError("path", f"{problem} (a table of SQL has lost it: {INSTEAD_OF_TABLES})")
        if STANDARD_INPUT in paths:
            raise OptionError("path", "standard input cannot be read by Spark tasks; name a file")
        return tuple(paths)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        text = self._text(name)
        if text is None:
            return default
        for choice in choices:
            if choice.lower() == text.strip().lower():
                return choice
        raise OptionError(name, f"{text!r} is not one of {', '.join(choices)}{_nearest(text, choices)}")

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, ("true", "false"), str(default)) in {"true", "True"}

    def count(self, name: str) -> int | None:
        text = self._text(name)
        if text is None:
            return None
        if re.fullmatch(r"[0-9]{1,18}", text.strip(), re.ASCII) is None or int(text) == 0:
            raise OptionError(name, f"{text!r} is not a number above zero")
        return int(text)

    def size(self, name: str, default: int) -> int:
        text = self._text(name)
        if text is None:
            return default
        found = re.fullmatch(r"([0-9]{1,15})\s*([kmgt]?)(i?b)?", text.strip().lower(), re.ASCII)
        if found is None or int(found[1]) == 0:
            raise OptionError(name, f"{text!r} is not a size, such as 134217728 or 128m")
        return int(found[1]) * _SIZE_UNITS[found[2]]

    def names(self, name: str) -> tuple[str, ...] | None:
        text = self._text(name)
        if text is None:
            return None
        names = tuple(each.strip() for each in text.split(","))
        if not all(names):
            raise OptionError(name, f"{text!r} is not a list of names separated by commas")
        return names

    def selection(self) -> dict[str, Any]:
        given = [name for name in ("subscribe", "subscribePattern", "assign") if self._text(name) is not None]
        if len(given) > 1:
            raise OptionError(given[1], f"it excludes {given[0]}: give one of them")
        topics, pattern, assigned = self.names("subscribe"), self._text("subscribePattern"), self._json("assign", dict)
        if pattern is not None:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise OptionError("subscribePattern", f"{pattern!r} is not a regular expression: {error}") from None
        return {
            "topics": None if topics is None else frozenset(topics),
            "topic_pattern": pattern,
            "partitions": None if assigned is None else frozenset(_assigned(assigned)),
        }

    def bound(self, side: str, open_end: int, other_end: int) -> OffsetBound:
        """Return where to start or to end. Timestamps take precedence over offsets, as in Spark's Kafka source."""
        name = f"{side}Timestamp"
        if (text := self._text(name)) is not None:
            return OffsetBound(name, is_time=True, default=_timestamp(name, text))
        name = f"{side}OffsetsByTimestamp"
        if (by_time := self._json(name, dict)) is not None:
            return OffsetBound(name, is_time=True, each=_by_partition(name, by_time, 0))
        name = f"{side}Offsets"
        text = self._text(name)
        words = {"earliest": EARLIEST, "latest": LATEST}
        if text is None:
            return OffsetBound()
        if words.get(text.strip().lower()) == open_end:
            return OffsetBound(name)
        if words.get(text.strip().lower()) == other_end:
            return OffsetBound(name, default=other_end)
        offsets = present(self._json(name, dict), name)
        return OffsetBound(name, each=_by_partition(name, offsets, EARLIEST))

    def _json(self, name: str, kind: type) -> Any:
        text = self._text(name)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise OptionError(name, f"{text!r} is not JSON: {error}") from None
        if not isinstance(value, kind):
            raise OptionError(name, f"{text!r} is not a JSON {'object' if kind is dict else 'array'}")
        return value


def nearest(name: str, names: tuple[str, ...]) -> str:
    """Return a clause that suggests the nearest of some names, or lists all of them if none is near."""
    near = _nearest(name, names)
    return near or f"; choose one of {', '.join(names)}"


def _nearest(text: str, names: tuple[str, ...]) -> str:
    lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(text.lower(), lower, 1)
    return f"; did you mean {lower[found[0]]}?" if found else ""


def _is_of_brokers(name: str) -> bool:
    """Whether an option is for Kafka clients only, and not a misspelt ``kafka.isolation.level``."""
    is_clients = name.startswith("kafka.") and not difflib.get_close_matches(name, [_ISOLATION_LEVEL], 1, 0.85)
    return is_clients or name in _OF_BROKERS


def _unknown_option(name: str, known: Mapping[str, str]) -> OptionError:
    return OptionError(name, f"there is no such option{nearest(name, tuple(known.values()))}")


def _timestamp(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", text.strip(), re.ASCII) is None:
        raise OptionError(name, f"{text!r} is not a timestamp in ms since 1970")
    return int(text)


def _assigned(topics: Mapping[str, Any]) -> list[TopicPartition]:
    partitions = []
    for topic, numbers in topics.items():
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise OptionError("assign", f'{topic} needs a list of partitions, as in {{"{topic}": [0, 1]}}')
        partitions += [(topic, number) for number in numbers]
    return partitions


def _by_partition(name: str, topics: Mapping[str, Any], least: int) -> dict[TopicPartition, int]:
    numbers = {}
    for topic, each in topics.items():
        if not isinstance(each, dict):
            raise OptionError(name, f'its value for {topic} is not of the form {{"{topic}": {{"0": 23}}}}')
        for partition, number in each.items():
            is_number = type(number) is int and least <= number < 1 << 63
            if re.fullmatch(r"[0-9]{1,10}", partition, re.ASCII) is None or not is_number:
                raise OptionError(name, f"{topic}, {partition}: {number} is invalid")
            numbers[topic, int(partition)] = number
    return numbers
