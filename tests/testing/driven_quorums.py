# SPDX-License-Identifier: Apache-2.0
"""Runs rules on a quorum, with a planted bug or a state machine: ``python -m tests.testing.driven_quorums NAME COUNT``.

Hypothesis raises what it has found, shrunk if a third argument is given; the exit code is 0 if it has found nothing.
"""

import sys
from typing import Final

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from raftlog.testing.quorum_machine import QuorumMachine
from tests.testing.bank import Bank
from tests.testing.simulator.planted_bugs import BUGS
from tests.testing.wrong_banks import Forgetful, Overdrawn

STEPS: Final = 30


class BankQuorum(QuorumMachine):
    """A quorum that replicates a bank."""

    machine = Bank


class BankQuorumOnFiles(BankQuorum):
    """The same, with the real log."""

    is_on_files = True


class ForgetfulQuorum(QuorumMachine):
    """One whose snapshots forget an account."""

    machine = Forgetful


class OverdrawnQuorum(QuorumMachine):
    """One whose transfers are not atomic."""

    machine = Overdrawn


KINDS: Final = {each.__name__: each for each in (BankQuorum, BankQuorumOnFiles, ForgetfulQuorum, OverdrawnQuorum)}


def drive(kind: type[QuorumMachine], max_examples: int, *, is_shrunk: bool = False) -> None:
    """Run so many examples, the same ones each time."""
    some = settings(
        max_examples=max_examples,
        stateful_step_count=STEPS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if is_shrunk else (Phase.generate,),
    )
    run_state_machine_as_test(kind, settings=some)


if __name__ == "__main__":
    if sys.argv[1] in BUGS:
        BUGS[sys.argv[1]].plant()
    drive(KINDS.get(sys.argv[1], QuorumMachine), int(sys.argv[2]), is_shrunk=len(sys.argv) > 3)
