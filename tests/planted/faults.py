# SPDX-License-Identifier: Apache-2.0
"""The catalogue of all kinds of faults."""

from typing import Final

from tests.planted import (
    of_batches,
    of_bytes,
    of_files,
    of_headers,
    of_indexes,
    of_messages,
    of_producers,
    of_records,
    of_replicas,
    of_small_files,
    of_snapshots,
    of_voters,
)

SUBJECTS: Final = tuple(
    module.FAULTS
    for module in (
        of_headers,
        of_records,
        of_messages,
        of_bytes,
        of_batches,
        of_indexes,
        of_files,
        of_small_files,
        of_snapshots,
        of_voters,
        of_producers,
        of_replicas,
    )
)
"""The kinds of faults, by subject."""

FAULTS: Final = {fault.name: fault for subject in SUBJECTS for fault in subject}
"""The kinds of faults by name."""

assert len(FAULTS) == sum(len(list(subject)) for subject in SUBJECTS)
