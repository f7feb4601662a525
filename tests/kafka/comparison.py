# SPDX-License-Identifier: Apache-2.0
"""Compares raftlog's output with that of Kafka's dump tool, and lists the calls on which they differ on purpose."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tools.console import dump

Call = tuple[str, ...]
Answer = tuple[Call, bytes | None]
"""A call, and what a release printed; None if it died of the call."""

OPTIONS = {
    "--version": "the release's own number",
    "--help": "the option library's table",
}
EDGE_CASES = {
    "legacy-0-bad-sizes": "raftlog refuses a message of magic 0 or 1 whose sizes do not add up",
    "legacy-1-bad-sizes": "as above",
    "metadata-json-1e23": "Java before 19 does not always print a double's shortest digits; raftlog does",
    "record-key-minus-two": "raftlog refuses lengths below -1 (DECISIONS.md, 4)",
    "record-key-minus-two-gzip": "as above",
    "record-value-minus-nine": "as above",
    "record-value-minus-nine-gzip": "as above",
    "size-48": "raftlog goes on at the next batch whose CRC holds (DECISIONS.md, 6)",
    "size-2147483636": "as above",
    "size-2147483647": "as above",
}
"""By the names of their folders."""
FILE_NAMES = {
    "data/options": "raftlog dumps what is in a folder; to Kafka it is a file of an unknown kind",
    "data/options/00000000000000000000.log,,data/options/00000000000000000000.log": "raftlog passes over an empty name",
}
SUFFIXES = {".deleted": "raftlog reads a segment that was renamed before its deletion; Kafka ignores it"}


def left_to_kafka(call: Call) -> bool:
    """Whether raftlog does not set out to print what the release prints."""
    names = call[-1] if call else ""
    return (
        not OPTIONS.keys().isdisjoint(call)
        or Path(names).parent.name in EDGE_CASES
        or names in FILE_NAMES
        or Path(names).suffix in SUFFIXES
    )


def is_compared(answer: Answer) -> bool:
    """Whether raftlog has to print the same: it need not where the release died, nor where it is left to Kafka."""
    call, output = answer
    return output is not None and not left_to_kafka(call)


def differences(dialect: str, folder: Path, answers: Iterable[Answer]) -> Iterator[str]:
    """Yield what raftlog prints otherwise than the release did; what is not compared is called all the same."""
    with contextlib.chdir(folder):
        for call, theirs in answers:
            ours = dump("--dialect", dialect, "--decode-corrupt", *call).output
            if theirs is not None and ours != theirs and not left_to_kafka(call):
                yield f"{' '.join(call)}\n    {_first_difference(theirs, ours)}"


def _first_difference(theirs: bytes, ours: bytes) -> str:
    """Show the first line at which two outputs part, from a little before the byte that differs."""
    for number, (expected, found) in enumerate(zip(theirs.split(b"\n"), ours.split(b"\n"), strict=False), 1):
        if expected != found:
            at = next(
                (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), len(expected)
            )
            start = max(0, min(at, len(found)) - 60)
            return f"line {number}: Kafka …{expected[start : at + 80]!r}, raftlog …{found[start : at + 80]!r}"
    return f"Kafka {len(theirs)} bytes, raftlog {len(ours)} bytes: {theirs[-80:]!r}, {ours[-80:]!r}"
