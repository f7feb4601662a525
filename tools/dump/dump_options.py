# SPDX-License-Identifier: Apache-2.0
"""The options of ``raftlog dump-log``: kafka-dump-log's own, and more."""

import argparse
import functools
import re
from collections.abc import Sequence
from glob import has_magic
from os.path import lexists, split
from typing import Final, NamedTuple

from raftlog.file_paths import is_remote, local_or_remote
from raftlog.records.messages.releases import DIALECTS, LEVELS, NEWEST_DIALECT, Release
from raftlog.storage.reading.file_source import STANDARD_INPUT
from raftlog.tools.dump.output_formats import FORMATS, KAFKA, OutputFormat
from raftlog.tools.dump.selection import Selection, parse_time_ms, parse_type
from raftlog.tools.payloads.topic_decoders import MIRROR
from raftlog.tools.terminal.argument_parser import Parser, natural_number
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP
from raftlog.tools.terminal.spool_option import add_spool_option

DECODERS: Final = ("offsets", "transaction-log", "cluster-metadata", "remote-log-metadata", "share-group-state", MIRROR)
"""Decoders of known topics; of several, the first in this order is used, as in Kafka, which does not have the last."""
_DEFAULT_STRING_DECODER: Final = ""
_NO_LIMIT: Final = 2**31 - 1
_START: Final = "start"
_END: Final = "end"
_INTERVAL_S: Final = 0.5
_LONGEST_S: Final = 365 * 24 * 3600


class FollowOptions(NamedTuple):
    """How to follow a log.

    Attributes:
        from_end: whether to begin at the log end.
        interval_s: how long to wait, in seconds, between two looks at an idle log.
        until_idle_s: after how many seconds without a change to end; None for never.
    """

    from_end: bool
    interval_s: float
    until_idle_s: float | None


class DumpOptions(NamedTuple):
    """The options of one run.

    Attributes:
        paths: files, directories, patterns and ``-``, in order.
        all_files: whether to dump the indexes and small files of directories too.
        output_format: from the registry.
        dialect: the release that the format ``kafka`` follows.
        message_level: the release whose messages it knows; None for every message that raftlog knows.
        decoder: one of ``DECODERS``, or None.
        key_decoder, value_decoder: ``module:name`` of Python functions or classes of Kafka, or None.
        deep: whether to read records.
        print_payloads: whether the format ``kafka`` shows keys and payloads.
        skip_record_metadata: whether it shows nothing else of a record.
        decode_corrupt: whether to decode batches whose CRC does not hold.
        redact: whether to hide secrets; the format ``kafka`` does so only with the decoder that Kafka lacks.
        selection: which batches and records to show.
        last: how many offsets before the log end to show, or None.
        limit: the most records to show, or batches if records are not read; None for no limit.
        max_bytes: how far into a file of batches to read, or None.
        index_sanity_check: whether to check indexes only as a broker does at startup.
        verify_index_only: whether to check indexes and print no entries.
        follow: how to follow the only path as it grows; None to print what is there.
    """

    paths: tuple[str, ...]
    all_files: bool
    output_format: OutputFormat
    dialect: Release
    message_level: str | None
    decoder: str | None
    key_decoder: str | None
    value_decoder: str | None
    deep: bool
    print_payloads: bool
    skip_record_metadata: bool
    decode_corrupt: bool
    redact: bool
    selection: Selection
    last: int | None
    limit: int | None
    max_bytes: int | None
    index_sanity_check: bool
    verify_index_only: bool
    follow: FollowOptions | None


def parse_options(arguments: Sequence[str]) -> DumpOptions:
    """Parse a command line; exit with 1 and a one-line message if it is wrong."""
    parser = make_parser()
    return _options(parser, parser.parse_args(arguments))


def parse_follow_options(arguments: Sequence[str]) -> DumpOptions:
    """Parse a command line of ``raftlog follow``; exit with 1 and a one-line message if it is wrong."""
    parser = make_follow_parser()
    return _options(parser, parser.parse_args(arguments))


def _options(parser: argparse.ArgumentParser, given: argparse.Namespace) -> DumpOptions:
    decoder = next((name for name in DECODERS if getattr(given, f"{name.replace('-', '_')}_decoder")), None)
    dialect = NEWEST_DIALECT if given.dialect is None else DIALECTS[given.dialect]
    if decoder == "remote-log-metadata":
        parser.error("--remote-log-metadata-decoder: raftlog does not decode remote log metadata")
    if decoder == "share-group-state" and dialect is DIALECTS["3.9"]:
        parser.error("--share-group-state-decoder: Kafka 3.9 has no such option")
    paths = tuple(path for files in given.files for path in files.split(",") if path) + tuple(given.paths)
    if not paths:
        parser.error("name a file or a directory")
    if given.last is not None and STANDARD_INPUT in paths:
        parser.error("--last needs to read the end of a log first, and standard input cannot seek")
    names_decoder = decoder is not None or given.key_decoder is not None or given.value_decoder is not None
    print_payloads = given.print_data_log or names_decoder
    follow = _follow_options(parser, given, paths)
    selection = _selection(parser, given)
    output_format = FORMATS[given.format]
    return DumpOptions(
        paths=paths,
        all_files=given.all,
        output_format=output_format,
        dialect=dialect,
        message_level=given.dialect if output_format.follows_dialect else None,
        decoder=decoder,
        key_decoder=given.key_decoder or None,
        value_decoder=given.value_decoder or None,
        deep=(output_format.decodes_unasked and not given.shallow) or given.deep_iteration or print_payloads,
        print_payloads=print_payloads,
        skip_record_metadata=given.skip_record_metadata,
        decode_corrupt=given.decode_corrupt,
        redact=not given.no_redact and (output_format.hides_secrets or decoder == MIRROR),
        selection=selection,
        last=given.last,
        limit=given.limit,
        max_bytes=None if given.max_bytes == _NO_LIMIT else given.max_bytes,
        index_sanity_check=given.index_sanity_check,
        verify_index_only=given.verify_index_only,
        follow=follow,
    )


def _follow_options(
    parser: argparse.ArgumentParser, given: argparse.Namespace, paths: Sequence[str]
) -> FollowOptions | None:
    from_end = given.from_offset == _END
    if not given.follow:
        if from_end or given.until_idle is not None or given.interval is not None:
            parser.error("--from end, --until-idle and --interval need --follow")
        return None
    if len(paths) > 1:
        parser.error("one log is followed at a time")
    if is_remote(local_or_remote(paths[0])) or paths[0] == STANDARD_INPUT:
        parser.error("only a local directory or segment can be followed")
    if _is_pattern(paths[0]):
        parser.error("a pattern cannot be followed: name one log")
    if given.all or given.verify_index_only or given.index_sanity_check or given.max_bytes != _NO_LIMIT:
        parser.error("--all, --max-bytes, --verify-index-only and --index-sanity-check exclude --follow")
    return FollowOptions(from_end, _INTERVAL_S if given.interval is None else given.interval, given.until_idle)


def _is_pattern(path: str) -> bool:
    """Whether a path has wildcards below the directories of it that exist: a name may look like a pattern."""
    while path and not lexists(path):
        path, name = split(path)
        if has_magic(name):
            return True
    return False


def _selection(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Selection:
    if given.last is not None and given.from_offset is not None:
        parser.error("--last and --from exclude each other")
    return Selection(
        from_offset=given.from_offset if isinstance(given.from_offset, int) else None,
        to_offset=given.to_offset,
        since_ms=given.since,
        until_ms=given.until,
        only_control=given.control,
        types=frozenset(given.type),
        epoch=given.epoch,
        key=None if given.key is None else given.key.encode("utf-8", "surrogateescape"),
    )


@functools.cache
def make_parser() -> Parser:
    """Return the parser of the verb's arguments."""
    parser = Parser(
        prog="raftlog dump-log",
        description="Print the contents of a log's files: batches, records, control records, indexes, snapshots.",
        epilog=f"Findings go to standard error. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file, the directory of a partition, a directory of those, a pattern, or - for standard input",
    )
    _add_kafka_options(parser.add_argument_group("kafka-dump-log's own options"))
    output = parser.add_argument_group("output")
    output.add_argument("--all", action="store_true", help="for directories, dump indexes and small files too")
    _add_output_options(output)
    add_spool_option(parser)
    _add_selection_options(parser.add_argument_group("selection (conditions add up)"))
    following = parser.add_argument_group("following a log as it grows (raftlog follow)")
    following.add_argument("--follow", action="store_true", help="go on with what a node appends to the log PATH")
    _add_follow_options(following)
    return parser


@functools.cache
def make_follow_parser() -> Parser:
    """Return the parser of the arguments of ``raftlog follow``."""
    parser = Parser(
        prog="raftlog follow",
        description="Print a log as it grows: batches as dump-log does, and what is truncated or skipped. Whether a"
        " record is committed cannot be known from one directory.",
        epilog=f"Ends with --until-idle, --to or --limit, or when interrupted. {EXIT_CODES_HELP}",
    )
    parser.add_argument(
        "paths",
        nargs=1,
        metavar="PATH",
        help="the directory of a partition, a directory with one such directory, or a segment; it need not exist yet",
    )
    parser.set_defaults(
        follow=True,
        files=[],
        all=False,
        max_bytes=_NO_LIMIT,
        max_message_size=None,
        verify_index_only=False,
        index_sanity_check=False,
    )
    _add_record_options(parser.add_argument_group("kafka-dump-log's own options"))
    _add_output_options(parser.add_argument_group("output"))
    _add_selection_options(parser.add_argument_group("selection (conditions add up)"))
    _add_follow_options(parser.add_argument_group("following"))
    return parser


def _add_follow_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--until-idle", type=_seconds, metavar="SECONDS", help="end after SECONDS without a change; 0 for one interval"
    )
    group.add_argument(
        "--interval",
        type=_seconds,
        metavar="SECONDS",
        help=f"wait SECONDS between two looks at a log that does not grow (default: {_INTERVAL_S})",
    )


def _add_kafka_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--files", action="append", default=[], metavar="FILE[,FILE...]", help="files to dump")
    group.add_argument(
        "--max-bytes",
        type=natural_number,
        default=_NO_LIMIT,
        metavar="N",
        help="read no more than N bytes of a log or snapshot",
    )
    group.add_argument(
        "--max-message-size",
        type=natural_number,
        default=5 * 1024 * 1024,
        metavar="N",
        help="accepted for compatibility with Kafka, and ignored: index checks read only batch headers",
    )
    group.add_argument("--verify-index-only", action="store_true", help="check indexes, and print no entries")
    group.add_argument(
        "--index-sanity-check", action="store_true", help="check indexes only as a broker does at startup"
    )
    _add_record_options(group)


def _add_record_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--print-data-log", action="store_true", help="print keys and payloads of records")
    group.add_argument("--deep-iteration", action="store_true", help="print a line for each record")
    group.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="print only keys and payloads; control records become blank lines",
    )
    topics = {
        "offsets": "__consumer_offsets",
        "transaction-log": "__transaction_state",
        "cluster-metadata": "__cluster_metadata",
        "remote-log-metadata": "__remote_log_metadata (refused: raftlog does not decode it)",
        "share-group-state": "__share_group_state",
        MIRROR: "MirrorMaker 2: offset syncs, checkpoints, heartbeats, Connect's offsets and configurations",
    }
    for name, topic in topics.items():
        group.add_argument(f"--{name}-decoder", action="store_true", help=f"decode records of {topic}")
    for part in ("key", "value"):
        group.add_argument(
            f"--{part}-decoder-class",
            dest=f"{part}_decoder",
            nargs="?",
            const=_DEFAULT_STRING_DECODER,
            metavar="CLASS",
            help=f"decode {part}s by a class of Kafka, such as Integer or org.apache.kafka.tools.api.LongDecoder,"
            " or by a Python function of bytes (MODULE:NAME); without a name, as text",
        )


def _add_output_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default=KAFKA.name,
        help="kafka is byte for byte Kafka's own output for sound files",
    )
    group.add_argument(
        "--dialect",
        choices=tuple(DIALECTS),
        help="the Kafka release that the format kafka follows to the byte "
        f"(default {NEWEST_DIALECT.name}, with the messages of {LEVELS[-1]} decoded too)",
    )
    group.add_argument("--shallow", action="store_true", help="in the formats jsonl and table, leave out records")
    group.add_argument("--no-redact", action="store_true", help="show secrets (the format kafka always does)")
    group.add_argument(
        "--decode-corrupt", action="store_true", help="decode batches whose CRC does not match; records may be wrong"
    )


def _add_selection_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--from",
        type=_start_offset,
        dest="from_offset",
        metavar="OFFSET",
        help="first offset, inclusive; start for the log start (the default), end for what is appended from now on",
    )
    group.add_argument("--to", type=natural_number, dest="to_offset", metavar="OFFSET", help="last offset, exclusive")
    group.add_argument("--last", type=natural_number, metavar="N", help="the last N offsets of each log")
    group.add_argument(
        "--since", type=_time, metavar="TIME", help="first time, inclusive: ISO 8601 (UTC unless it says), or ms"
    )
    group.add_argument("--until", type=_time, metavar="TIME", help="last time, exclusive")
    group.add_argument("--control", action="store_true", help="only control records")
    group.add_argument(
        "--type",
        action="append",
        type=_type,
        default=[],
        metavar="TYPE",
        help="records of a type, such as KRAFT_VOTERS or TOPIC_RECORD; may be given again",
    )
    group.add_argument("--epoch", type=natural_number, metavar="N", help="batches of one leader epoch")
    group.add_argument("--key", metavar="TEXT", help="records of one key")
    group.add_argument(
        "--limit", type=natural_number, metavar="N", help="stop after N records, or N batches without records"
    )


def _start_offset(text: str) -> int | str:
    return text if text in {_START, _END} else natural_number(text)


def _seconds(text: str) -> float:
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) is None or float(text) > _LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, such as 2 or 0.5")
    return float(text)


def _time(text: str) -> int:
    try:
        return parse_time_ms(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither ISO 8601 nor milliseconds") from None


def _type(text: str) -> str:
    import difflib

    from raftlog.tools.payloads.message_payloads import type_names  # Slow to import, because of schemas.

    name = parse_type(text)
    names = type_names()
    if name in names or re.fullmatch(r"UNKNOWN\(-?[0-9]+\)", name):  # The name of control records of unknown types.
        return name
    near = difflib.get_close_matches(name, names, n=3)
    raise argparse.ArgumentTypeError(f"no type is called {text!r}" + (f"; there is {', '.join(near)}" if near else ""))
