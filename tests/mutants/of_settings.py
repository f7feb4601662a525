# SPDX-License-Identifier: Apache-2.0
"""Wrong settings, and wrong uses of the two clocks: what is tried for ever, held for ever, or never written."""

from typing import Any, Final

import attrs

from raftlog.quorum.quorum_config import QuorumConfig
from tests.mutants.planting import Mutant, Wrong, instead_of_property, swapped

SETTINGS: Final = "tests/quorum/test_quorum_config.py"


def _unchecked(right: Wrong) -> Wrong:
    def init(*arguments: Any, **options: Any) -> None:
        with attrs.validators.disabled():
            right(*arguments, **options)

    return init


def _without_a_least(config: Any) -> int:
    return int(config.fetch_timeout_ms // 2)


MUTANTS: Final = (
    Mutant(
        "R-no-pause",
        "no setting lets a replica try something for ever at one time",
        "QuorumConfig, which takes 0",
        swapped(QuorumConfig, "__init__", _unchecked),
        (SETTINGS,),
    ),
    Mutant(
        "R-no-pause-announcing",
        "a leader announces itself once at a time, however short the fetch timeout is",
        "QuorumConfig, which takes 0",
        instead_of_property(QuorumConfig, "begin_quorum_epoch_interval_ms", _without_a_least),
        (SETTINGS,),
    ),
)
