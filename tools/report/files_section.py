# SPDX-License-Identifier: Apache-2.0
"""The files of a report: for each file of batches, a map of its bytes and findings."""

from collections.abc import Iterator
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.report.drawing import Bar, Lane, Mark, Scale, lanes_figure, legend
from raftlog.tools.report.gathering import MOST_FILES, Gathering, MappedFile, is_damage, is_serious, worst_of
from raftlog.tools.report.markup import Markup, element, escaped, joined
from raftlog.tools.report.tables import Cell, table

_FEW: Final = 12
"""Up to this number of files, sound ones are drawn too."""
_MOST_CUTS: Final = 40
_COLUMNS: Final = ("File", "Bytes", "Explained", "Damaged", "Padding", "Offsets", "Epochs", "Batches", "Findings")


def byte_maps(gathering: Gathering) -> Markup:
    """Return the maps of all files, or of the worst if there are many."""
    kept = gathering.files.values()
    count = gathering.files.offered
    drawn = kept if count <= _FEW else [file for file in kept if is_serious(worst_of(file.counts))]
    drawn = sorted(drawn, key=lambda file: file.path) if count <= _FEW else drawn
    if not count:
        return element("p", "No file of batches was read.")
    rest = count - len(drawn)
    hint = (
        f"{rest:,} more segments and snapshots are not drawn: of many files, only those with findings above harmless"
        f" are, the worst {MOST_FILES} at most. {gathering.sound_file_count:,} of all {count:,} have none."
    )
    severities = tuple(reversed(Severity))
    return joined(
        [
            legend([("whole", "in sound batches"), ("damage", "damaged"), ("padding", "zeros at the end")], severities),
            element("p", hint, class_="note") if rest else None,
            *map(_map, drawn),
            table("Where the bytes of these files went", _COLUMNS, map(_row, drawn), (1, 2, 3, 4, 7, 8))
            if drawn
            else None,
        ]
    )


def _map(file: MappedFile) -> Markup:
    size = file.size_bytes
    title = (
        f"{file.path}: {size} bytes, {file.coverage.explained_bytes} explained, {file.coverage.damaged_bytes} damaged,"
        f" {file.coverage.padding_bytes} padding"
    )
    count = sum(file.counts.values())
    words = f"; {count:,} finding{'s' if count > 1 else ''}" if count else ""
    lane = Lane(f"bytes 0 to {size}: {_offsets(file)}{words}", list(_bars(file)), [*_cuts(file), *_marks(file)])
    figure = lanes_figure(title, [lane], Scale(0, size))
    return element("figure", element("figcaption", element("code", escaped(file.path))), figure)


def _bars(file: MappedFile) -> Iterator[Bar]:
    size, padding = file.size_bytes, file.coverage.padding_bytes
    if file.coverage.explained_bytes:
        yield Bar(0, size - padding, "whole", f"positions 0 to {size - padding - 1}: {_offsets(file)}")
    for finding in file.marks:
        start = finding.position or 0
        is_torn = finding.rule == "tail-torn"
        if finding.size_bytes and (is_damage(finding.severity) or is_torn):
            end = start + finding.size_bytes
            yield Bar(start, end, "damage", f"positions {start} to {end - 1}: {finding.size_bytes} bytes are damaged")
    if padding:
        yield Bar(size - padding, size, "padding", f"positions {size - padding} to {size - 1}: zeros")


def _cuts(file: MappedFile) -> Iterator[Mark]:
    """Yield a mark at the start of each epoch except the first; none if a file has too many."""
    if len(file.epochs) <= _MOST_CUTS:
        for position, epoch, offset in file.epochs[1:]:
            yield Mark(position, f"position {position}: epoch {epoch} begins at offset {offset}")


def _marks(file: MappedFile) -> Iterator[Mark]:
    for finding in reversed(file.marks):  # The worst is drawn last, on top.
        offset = "" if finding.offset is None else f", offset {finding.offset}"
        title = f"position {finding.position}{offset}: {finding.rule}, {finding.severity.value}: {finding.reason}"
        yield Mark(finding.position or 0, title, finding.severity)


def _offsets(file: MappedFile) -> str:
    if file.extent is None:
        return "no sound batch"
    return f"offsets {file.extent.start_offset} to {file.extent.end_offset - 1}"


def _row(file: MappedFile) -> tuple[Cell, ...]:
    extent = file.extent
    return (
        file.path,
        file.size_bytes,
        file.coverage.explained_bytes,
        file.coverage.damaged_bytes,
        file.coverage.padding_bytes,
        None if extent is None else f"{extent.start_offset} to {extent.end_offset - 1}",
        None if extent is None else f"{extent.first_epoch} to {extent.last_epoch}",
        0 if extent is None else extent.batch_count,
        sum(file.counts.values()),
    )
