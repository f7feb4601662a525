# SPDX-License-Identifier: Apache-2.0
"""``raftlog dump-log``: print the contents of a log's files, in Kafka's own format, as JSON lines or as a table.

Damage never ends a run: it is reported, and reading continues after it.
"""

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

import attrs

from raftlog.errors import DecodeError, MissingExtraError, MissingFileError, StorageError
from raftlog.records.files.file_names import FileKind, FileState
from raftlog.tools.catalogue.findings import Finding, Tally
from raftlog.tools.dump.dump_options import DumpOptions, FollowOptions, parse_options
from raftlog.tools.dump.dump_options import make_parser as make_parser
from raftlog.tools.dump.dump_records import Line, RecordsDump
from raftlog.tools.dump.missed_files import GONE, REPLACED, MissedFiles
from raftlog.tools.dump.seek import wanted_files
from raftlog.tools.dump.selection import Selection
from raftlog.tools.follow.whole_output import Output
from raftlog.tools.input.inputs import InputFile, find_files
from raftlog.tools.payloads.mirror_topics import mirror_topic
from raftlog.tools.payloads.payloads import PayloadDecoder, PlainDecoder, UserDecoder, load_decoder
from raftlog.tools.payloads.topic_decoders import MIRROR, mirror_decoder, topic_decoder
from raftlog.tools.terminal.exit_codes import EXIT_ERROR
from raftlog.tools.terminal.standard_error import say

if TYPE_CHECKING:
    from raftlog.tools.follow.follower import Growth, LogFollower
    from raftlog.tools.follow.notices import Notice

_KAFKA_KINDS: Final = frozenset(
    {
        FileKind.LOG,
        FileKind.SNAPSHOT,
        FileKind.BOOTSTRAP_SNAPSHOT,
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TRANSACTION_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
    }
)
"""The kinds of files that kafka-dump-log prints; it ignores all others."""


def run(arguments: Sequence[str]) -> int:
    """Run ``raftlog dump-log`` with what follows it on the command line, and return the exit code."""
    return run_with(parse_options(arguments), "raftlog dump-log")


def run_with(options: DumpOptions, speaker: str) -> int:
    """Dump or follow what the options say, and return the exit code.

    Args:
        options: of the command line.
        speaker: the command, for its messages.
    """
    try:
        dump = Dump(options, sys.stdout.buffer)
    except ValueError as error:
        say(str(error), speaker)
        return EXIT_ERROR
    try:
        return dump.run() if options.follow is None else dump.follow(options.follow)
    except MissingExtraError as error:  # For a remote path; ``_take`` reports missing codecs.
        say(str(error), speaker)
        return EXIT_ERROR


class Dump:
    """One run: files in, text out, findings counted.

    Raises:
        ValueError: a decoder that the user named does not exist.
    """

    def __init__(self, options: DumpOptions, output: BinaryIO) -> None:
        self._options = options
        self._format = options.output_format
        self._renderer = self._format.make_renderer(
            options.dialect, print_payloads=options.print_payloads, skip_record_metadata=options.skip_record_metadata
        )
        self._named_decoder = _named_decoder(options)
        self._output = Output(output)
        self._tally = Tally()
        self._missed = MissedFiles(None if options.last is not None else options.selection)
        self._already_said: set[str] = set()
        self._announced: str | None = None
        self._records = RecordsDump(
            self._renderer,
            self._format.make_line_writer and self._format.make_line_writer(self._renderer),
            deep=options.deep,
            decodes_payloads=options.print_payloads or self._format.decodes_unasked or options.selection.by_record,
            decode_corrupt=options.decode_corrupt,
            max_bytes=options.max_bytes,
            left=options.limit,
        )

    def run(self) -> int:
        """Dump every file that the user named, and return the exit code."""
        try:
            for file, selection in wanted_files(self._files(), self._options.selection, self._options.last):
                if self._records.left == 0:
                    break
                self._missed.note_selection(file, selection)
                self._dump(file, selection)
            else:
                self._say_missed()
        finally:
            self._output.flush()
        return self._tally.exit_code

    def follow(self, options: FollowOptions) -> int:
        """Print the only path as it grows, until it is idle or an interrupt, and return the exit code."""
        from raftlog.tools.follow.follower import FollowStart, LogFollower
        from raftlog.tools.follow.following import OutputPauses, follow
        from raftlog.tools.follow.log_files import PathFiles

        before_end = 0 if options.from_end else self._options.last
        start = FollowStart(self._options.selection.from_offset, before_end)
        follower = LogFollower(PathFiles(self._options.paths[0]), start)
        pauses = OutputPauses(self._output.descriptor)
        try:
            with self._output.whole_at_interrupts():
                show = functools.partial(self._show, follower)
                follow(follower, show, pauses, options.interval_s, options.until_idle_s, self._stumble)
            if follower.is_waiting:
                raise MissingFileError(self._options.paths[0], "follow", "no log is there")
        except KeyboardInterrupt:
            pass  # The usual end: the exit code says what was found.
        except StorageError as error:
            self._tally.errors += 1
            self._stumble(error)
        self._output.flush()
        return self._tally.exit_code

    def _stumble(self, error: StorageError) -> None:
        """Say once why a followed log cannot be read."""
        self._say_once(str(error))

    def _show(self, follower: "LogFollower", items: "Sequence[Growth | Notice]") -> bool:
        """Print what one look has found; return False once all that was asked for has been printed."""
        selection = self._options.selection
        if self._options.last is not None:
            selection = selection._replace(from_offset=follower.start_offset)
        with self._output.whole_lines():
            for item in items:
                self._show_one(item, selection)
            if items:
                self._output.flush()
        has_all = selection.to_offset is not None and follower.next_offset >= selection.to_offset
        return not has_all and self._records.left != 0

    def _show_one(self, item: "Growth | Notice", selection: Selection) -> None:
        from raftlog.tools.follow.notices import Notice

        if isinstance(item, Notice):
            self._tally.errors += item.leaves_a_gap
            self._output.write(self._renderer.notice(item))
            return
        if item.file.path != self._announced:
            self._announced = item.file.path
            self._output.write(self._renderer.begin(item.file))
        for line in self._records.lines_of_growth(item, self._decoder_of(item.file), selection):
            self._take(line)
        self._warn_of_secrets()

    def _warn_of_secrets(self) -> None:
        if not self._format.hides_secrets and self._options.decoder != MIRROR and self._records.has_shown_secret:
            self._say_once(f"secrets are shown: the format {self._format.name} hides nothing")

    def _files(self) -> Iterator[InputFile]:
        for found in find_files(self._options.paths, all_kinds=self._options.all_files):
            if isinstance(found, MissingFileError) and found.path not in self._options.paths:
                self._say_gone(found.path, GONE)
            elif isinstance(found, StorageError):
                self._complain(found)
            else:
                self._missed.note(found)
                yield found

    def _dump(self, file: InputFile, selection: Selection) -> None:
        try:
            for line in self._lines(file, selection):
                self._take(line)
        except DecodeError as error:
            self._take(Finding.of_error(error, file.path))
        except StorageError as error:
            if file.was_listed and isinstance(error.__cause__, FileNotFoundError):
                self._say_gone(file.path, GONE)
            else:
                self._complain(error)
        self._warn_of_secrets()

    def _lines(self, file: InputFile, selection: Selection) -> Iterator[Line]:
        is_foreign = file.kind is None or (
            self._format.prints_kafkas_files_only
            and (file.kind not in _KAFKA_KINDS or file.state is not FileState.CURRENT)
        )
        if file.is_standard_input or (file.holds_records and not is_foreign):
            yield from self._records.lines(file, self._decoder_of(file), selection)
            return
        file.check_readable()
        yield self._renderer.begin(file)
        if is_foreign:
            self._say(f"{file.path}: ignored, not a file that dump-log prints")
        else:
            yield from self._other_lines(file)

    def _other_lines(self, file: InputFile) -> Iterator[Line]:
        from raftlog.tools.dump.dump_indexes import (  # Slow to import, and needed only for these files.
            IndexOptions,
            dump_other_file,
        )

        options = self._options
        index_options = IndexOptions(options.index_sanity_check, options.verify_index_only, options.dialect)
        return dump_other_file(file, self._renderer, index_options)

    def _decoder_of(self, file: InputFile) -> PayloadDecoder:
        """Return the decoder that the user named, or else, except in Kafka's format, the decoder for the topic."""
        options = self._options
        if options.decoder == MIRROR:
            return mirror_decoder(file.topic, redact=options.redact, is_named=True)
        decoder = self._named_decoder
        if decoder is None and (self._format.decodes_unasked or options.selection.types):
            return topic_decoder(file.topic, options.dialect, options.message_level, redact=options.redact)
        if decoder is None:
            decoder = PlainDecoder()
        if isinstance(decoder, PlainDecoder | UserDecoder) and mirror_topic(file.topic) == "connect-configs":
            return attrs.evolve(decoder, is_config=True)
        return decoder

    def _take(self, line: Line) -> None:
        match line:
            case str():
                self._output.write(line)
            case bytes():
                self._output.write_bytes(line)
            case Finding():
                self._tally.add(line)
                self._output.write(self._renderer.finding(line))
                self._say(str(line))
            case MissingExtraError():
                if self._say_once(str(line)):
                    self._tally.errors += 1

    def _say_gone(self, path: str, reason: str) -> None:
        """Report what the output lacks, because a running node changed its directory."""
        self._tally.errors += 1
        self._output.write(self._renderer.gone(path, reason))
        self._say(f"{path}: {reason}")

    def _say_missed(self) -> None:
        """Report segments that were not in place when their directory was listed."""
        for missed in self._missed.found():
            if isinstance(missed, StorageError):
                self._complain(missed)
            else:
                self._say_gone(missed.path, REPLACED)

    def _complain(self, error: StorageError) -> None:
        self._tally.errors += 1
        self._say(str(error))

    def _say(self, text: str) -> None:
        self._output.flush()  # On a terminal, messages must follow the output that they are about.
        say(text)

    def _say_once(self, text: str) -> bool:
        if text in self._already_said:
            return False
        self._already_said.add(text)
        self._say(text)
        return True


def _named_decoder(options: DumpOptions) -> PayloadDecoder | None:
    """Return the decoder of any file that the user named, if any.

    Raises:
        ValueError: it does not exist.
    """
    if options.decoder == MIRROR:
        return None  # It depends on the topic.
    if options.decoder is not None:
        from raftlog.tools.payloads.message_payloads import message_decoder  # Slow to import, because of schemas.

        return message_decoder(options.decoder, options.dialect, options.message_level, redact=options.redact)
    names = (options.key_decoder, options.value_decoder)
    if names == (None, None):
        return None
    key_decoder, value_decoder = (None if name is None else load_decoder(name) for name in names)
    if key_decoder is None and value_decoder is None:
        return PlainDecoder(options.redact)
    return UserDecoder(key_decoder, value_decoder, options.redact)
