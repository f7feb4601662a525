# SPDX-License-Identifier: Apache-2.0
"""Runs each release of Kafka's dump tool that is a dialect, and keeps what they print, for tests that have no Java.

    python -m tests.kafka.record_goldens

writes tests/golden/damaged (its files first) and tests/golden/dialects. An output that several releases share is kept
once. Only the manifests say which release printed what.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.golden_files import GOLDEN
from tests.kafka import corpus, dump_tool, make_edge_files
from tests.kafka.dump_tool import CORPUS_DIALECT, DIALECTS, Dump
from tests.kafka.edge_case import SHAPES

DIALECT_GOLDENS = GOLDEN / "dialects"
# Real files on which the releases differ, and a few on which they must not.
CHOSEN = (
    ("static-upgrade", "before-upgrade/n1/__cluster_metadata-0", ("deep", "metadata", "metadata-skip")),
    ("dynamic-quorum", "data/n3/__cluster_metadata-0", ("metadata-skip",)),
    ("data-topics", "data/n1/__consumer_offsets-0", ("offsets", "offsets-skip")),
    ("data-topics", "data/n1/__transaction_state-0", ("transaction",)),
    ("data-topics", "data/n1/c-lz4-0", ("print", "skip")),
    ("data-topics", "data/n1/append-time-0", ("deep",)),
    ("data-topics", "data/n1/txn-0", ("print", "skip")),
    ("data-topics", "data/n1/txn-1", ()),
    ("groups", "data/n1/__consumer_offsets-0", ("offsets",)),
    ("groups", "data/n1/__share_group_state-0", ("share",)),
    ("mirror", "data/n1/tx.orders-0", ("print", "deep-skip")),
)
Entry = dict[str, Any]


def first_line(dump: Dump, folder: Path) -> str | None:
    """The exception of a call that died, or the first line of a refusal, without the folder it ran in."""
    if dump.exit == 0:
        return None
    line = dump.exception or dump.err.decode().split("\n")[0]
    return line.replace(f"{folder}/", "")[:200]


def write_lines(path: Path, entries: Iterable[Entry]) -> None:
    """Writes a manifest, one entry a line."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def record_damaged() -> None:
    """Keeps the outputs for every edge case."""
    expected = make_edge_files.DAMAGED / "expected"
    shutil.rmtree(make_edge_files.DAMAGED, ignore_errors=True)
    make_edge_files.write_files(make_edge_files.DAMAGED)
    expected.mkdir()
    calls = [(case, call) for case in make_edge_files.all_cases() for call in case.calls]
    found: list[list[tuple[Dump, str | None]]] = []
    for dialect in DIALECTS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch).resolve()
            make_edge_files.write_files(folder)
            dumps = dump_tool.dump_many(dialect, [case.argv(call) for case, call in calls], folder)
            found.append([(dump, first_line(dump, folder)) for dump in dumps])
    entries: list[Entry] = []
    for (case, call), *answers in zip(calls, *found, strict=True):
        groups: dict[tuple[bytes, int, str | None], list[str]] = {}
        for dialect, (dump, line) in zip(DIALECTS, answers, strict=True):
            groups.setdefault((dump.out, dump.exit, line), []).append(dialect)
        names: dict[bytes, str] = {}
        for (out, code, line), dialects in groups.items():
            newest = "" if CORPUS_DIALECT in dialects else f".{dialects[-1]}"
            name = names.setdefault(out, f"{case.name}.{call.name}{newest}.txt")
            (expected / name).write_bytes(out)
            entry: Entry = {"dialects": dialects, "argv": case.argv(call), "cwd": "damaged", "out": name, "exit": code}
            entries.append(entry if line is None else entry | {"stderr_first_line": line})
    write_lines(make_edge_files.DAMAGED / "manifest.json", entries)


def chosen_calls() -> list[tuple[str, str, list[str]]]:
    """Folder, name of the output and arguments of each call of the selection."""
    out = []
    for folder, place, shapes in CHOSEN:
        for path in sorted((GOLDEN / folder / place).iterdir()):
            own = corpus.SUFFIX_SHAPES.get(path.suffix, shapes if path.suffix in {".log", ".checkpoint"} else ())
            for shape in ("shallow",) if path.name == "quorum-state" else own:
                name = f"{folder}.{place.split('/', 1)[1].replace('/', '.')}.{path.name}.{shape}.txt"
                out.append((folder, name, [*SHAPES[shape], "--files", f"{place}/{path.name}"]))
    return out


def record_dialects() -> None:
    """Keeps the other releases' outputs for a selection of real files."""
    shutil.rmtree(DIALECT_GOLDENS, ignore_errors=True)
    kept: dict[tuple[str, bytes], str] = {}
    for dialect in (each for each in DIALECTS if each != CORPUS_DIALECT):
        expected = DIALECT_GOLDENS / dialect
        expected.mkdir(parents=True)
        entries: list[Entry] = []
        with tempfile.TemporaryDirectory() as scratch:
            corpus.stage(Path(scratch))
            for folder in dict.fromkeys(folder for folder, _, _ in CHOSEN):
                calls = [(name, argv) for at, name, argv in chosen_calls() if at == folder]
                place = (Path(scratch) / folder).resolve()
                dumps = dump_tool.dump_many(dialect, [argv for _, argv in calls], place)
                for (name, argv), dump in zip(calls, dumps, strict=True):
                    home = kept.setdefault((name, dump.out), dialect)
                    if home == dialect:
                        (expected / name).write_bytes(dump.out)
                    out = name if home == dialect else f"../{home}/{name}"
                    entry = {"dialect": dialect, "argv": argv, "cwd": folder, "out": out, "exit": dump.exit}
                    line = first_line(dump, place)
                    entries.append(entry if line is None else entry | {"stderr_first_line": line})
        write_lines(expected / "manifest.json", entries)


if __name__ == "__main__":
    record_damaged()
    record_dialects()
