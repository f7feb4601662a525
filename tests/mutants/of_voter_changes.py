# SPDX-License-Identifier: Apache-2.0
"""A leader that changes its voters too early, or to a set that must not follow."""

from typing import Final

from raftlog.quorum.leading import voter_change
from tests.mutants.planting import Mutant, instead, missing

RECONFIG: Final = "tests/behaviour/test_raft_client_reconfig.py"
UPDATING: Final = "tests/quorum/leading/test_updating_voters.py"

MUTANTS: Final = (
    Mutant(
        "K17-leader",
        "a voter set that waits in the accumulator delays the next change",
        "KAFKA-20661",
        missing(voter_change, "note_written_voters"),
        (UPDATING,),
    ),
    Mutant(
        "R1-core",
        "a leader commits a record of its own epoch before it changes voters",
        "Ongaro, raft-dev, 2015",
        instead(voter_change, "leader_refusal", lambda *_: None),
        (RECONFIG,),
    ),
)
