# SPDX-License-Identifier: Apache-2.0
"""The least that a comparison of two logs must do: decode all fields of the records of both with the kernel."""

import os
import sys
from collections.abc import Sequence

from raftlog.storage.reading.segment_reader import open_segment
from raftlog.tools.terminal.garbage_collector import collect_garbage_seldom
from tests.benchmarks.segment_records import count_records


def main(segments: Sequence[str]) -> None:
    """Decode segments, and print how many records they have."""
    count = 0
    for segment in segments:
        with open_segment(segment) as opened:
            count += count_records(opened)
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    collect_garbage_seldom()
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # As the command ends.
