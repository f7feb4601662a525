# SPDX-License-Identifier: Apache-2.0
"""Plants every kind of fault in copies of a real mirror, and prints the table of docs/mirrors.md.

    python -m tests.tools.mirrors.faulty.planted_table          at every place
    python -m tests.tools.mirrors.faulty.planted_table 10       in files at every tenth one

Faults of records and syncs are planted in memory, where rows of digests are compared, and in files with right CRCs,
where the whole verb reads both clusters; the others in files. Each must be found by the right rule, at the right places
of both clusters, and nothing else may be found but what follows from it by definition.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.tools.mirrors.comparing.planted_mirrors import KINDS, planted
from tests.tools.mirrors.faulty.faulty_files import FaultyFiles
from tests.tools.mirrors.faulty.flow_faults import FLOW_KINDS, verdicts
from tests.tools.mirrors.faulty.record_faults import verdict

_PROCESSES = 2
_MOST_SHOWN = 5


def main(arguments: Sequence[str]) -> None:
    """Plant all, and print the table, and what was not found, to standard error."""
    step = int(arguments[0]) if arguments else 1
    print("| fault | in memory | found | others | in files | found | others |\n|---|---:|---:|---:|---:|---:|---:|")
    with ProcessPoolExecutor(_PROCESSES) as processes:
        kinds = [*KINDS, *FLOW_KINDS]
        for row in processes.map(_row, kinds, [step] * len(kinds)):
            print(row, flush=True)


def _row(kind: str, step: int) -> str:
    in_memory = [each.verdict() for each in planted(kind)] if kind in KINDS else None
    cells = [*_cells(in_memory, kind), *_cells(list(_in_files(kind, step)), kind)]
    return f"| {' | '.join([kind, *cells])} |"


def _in_files(kind: str, step: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        files = FaultyFiles.made(Path(directory))
        if kind in KINDS:
            yield from (verdict(files, each) for each in planted(kind, step=step))
        else:
            yield from verdicts(files, kind, step=step)


def _cells(found: Sequence[str] | None, kind: str) -> Iterator[str]:
    if found is None:
        yield from ("", "", "")
        return
    wrong = [each for each in found if each != "found"]
    for each in wrong[:_MOST_SHOWN]:
        print(f"{kind}: {each}", file=sys.stderr)
    yield from (f"{count:,}" for count in (len(found), len(found) - len(wrong), len(wrong)))


if __name__ == "__main__":
    main(sys.argv[1:])
