# SPDX-License-Identifier: Apache-2.0
"""A quorum driven by rules that Hypothesis combines, and shrinks to the least that violates an invariant.

::

    class BankQuorum(QuorumMachine):
        machine = Bank

    TestBankQuorum = BankQuorum.TestCase

Raises:
    MissingExtraError: on import, if Hypothesis is not installed.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, TypeVar

from raftlog.errors import MissingExtraError, OptionError
from raftlog.testing.simulator.applications.checked_machine import MachineKind
from raftlog.testing.simulator.applications.registers import BUILT_IN
from raftlog.testing.simulator.choices import ReplayedChoices
from raftlog.testing.simulator.fault_plan import MOST_REPLICAS
from raftlog.testing.simulator.machine import Machine
from raftlog.testing.simulator.stepping import SteppedSimulation, calm_plan
from raftlog.testing.state_machine import StateMachine

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
except ImportError as error:
    raise MissingExtraError("testing", "raftlog.testing.quorum_machine") from error

T = TypeVar("T")
FIRST_LEADER_MS: Final = 1_000
"""So much time passes before the first rule, in which a leader is elected."""
_TIMES_MS: Final = (1, 3, 10, 50, 300, 1_000, 3_000)


def _check_replicas(voters: int, observers: int) -> None:
    if voters < 1:
        raise OptionError("voters", f"{voters} is less than 1")
    if observers < 0:
        raise OptionError("observers", f"{observers} is less than 0")
    if voters + observers > MOST_REPLICAS:
        reason = f"{voters} voters and {observers} observers are more than {MOST_REPLICAS} replicas"
        raise OptionError("voters", reason)


class HypothesisChoices(ReplayedChoices):
    """Calm choices, but for those that a rule makes while it has data to draw from.

    Attributes:
        data: to draw from; None for calm choices.
    """

    def __init__(self) -> None:
        super().__init__({})
        self.data: st.DataObject | None = None

    def happens(self, probability: float, kind: str, *of: int) -> bool:
        """Whether something happens."""
        return bool(self.data.draw(st.booleans(), kind)) if self.data is not None and probability > 0 else False

    def number(self, start: int, stop: int, kind: str, *of: int, calm: int | None = None) -> int:
        """Return an integer in [start, stop)."""
        if self.data is None:
            return super().number(start, stop, kind, *of, calm=calm)
        return self.data.draw(st.integers(start, stop - 1), kind)

    def pick(self, options: Sequence[T], kind: str, *of: int) -> T:
        """Return one of some options."""
        return options[0] if self.data is None else self.data.draw(st.sampled_from(options), kind)


class QuorumMachine(RuleBasedStateMachine):
    """A quorum in virtual time, whose invariants are those of the simulator: they are checked after every event.

    Subclass it, and set ``machine``; pytest collects its ``TestCase``. Rules of your own may use ``simulation``. After
    the last rule all faults end, and the quorum must recover. Rules may find no leader: they then do nothing.

    Attributes:
        machine: the class of the state machine; None for the built-in one.
        voters: how many there are at first, from 1.
        observers: how many other replicas, which can be added to the voters. Both together are at most 8.
        is_on_files: whether logs are the real ones, in files of a file system in memory.
        simulation: the quorum.

    Raises:
        OptionError: when an instance is made: there are no voters, or too many replicas.
    """

    machine: ClassVar[type[StateMachine] | None] = None
    voters: ClassVar[int] = 3
    observers: ClassVar[int] = 1
    is_on_files: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        _check_replicas(self.voters, self.observers)
        self._is_over = False
        self._choices = HypothesisChoices()
        kind = BUILT_IN if self.machine is None else MachineKind(self.machine)
        plan = calm_plan(self.voters, self.observers, is_on_files=self.is_on_files)
        self.simulation = SteppedSimulation(self._choices, plan, kind)
        self.simulation.pass_time(FIRST_LEADER_MS)

    @contextlib.contextmanager
    def _drawing(self, data: st.DataObject | None = None) -> Iterator[None]:
        """Let choices be drawn; after an exception, the quorum need not recover."""
        self._choices.data = data
        try:
            yield
        except BaseException:
            self._is_over = True
            raise
        finally:
            self._choices.data = None

    def _machines(self, *, is_up: bool) -> list[Machine]:
        return [each for each in self.simulation.machines.values() if (each.process is not None) is is_up]

    @property
    def _paused(self) -> list[Machine]:
        return [each for each in self._machines(is_up=True) if each.is_paused]

    @rule(time_ms=st.sampled_from(_TIMES_MS))
    def pass_time(self, time_ms: int) -> None:
        """Let virtual time pass."""
        with self._drawing():
            self.simulation.pass_time(time_ms)

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Append one to three commands at a replica that believes to lead."""
        with self._drawing(data):
            self.simulation.append()

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        """Begin a read at a replica that believes to lead."""
        with self._drawing(data):
            self.simulation.read()

    @precondition(lambda self: self._machines(is_up=True))
    @rule(data=st.data(), is_armed=st.booleans())
    def crash(self, data: st.DataObject, is_armed: bool) -> None:
        """Crash a machine: at once, or as soon as it has records that are not synced."""
        with self._drawing(data):
            machine = self._choices.pick(self._machines(is_up=True), "machine")
            if is_armed:
                machine.is_crash_armed = True
            else:
                machine.crash()

    @precondition(lambda self: self._machines(is_up=False))
    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        """Start a machine that has crashed."""
        machine = data.draw(st.sampled_from(self._machines(is_up=False)), "machine")
        with self._drawing():
            machine.start()

    @precondition(lambda self: len(self._paused) < len(self._machines(is_up=True)))
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        """Pause a process: it gets neither time nor messages."""
        others = [each for each in self._machines(is_up=True) if not each.is_paused]
        with self._drawing():
            data.draw(st.sampled_from(others), "machine").pause()

    @precondition(lambda self: self._paused)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        """Let a process go on with what has come meanwhile."""
        machine = data.draw(st.sampled_from(self._paused), "machine")
        with self._drawing():
            machine.resume()

    @precondition(lambda self: len(self.simulation.machines) > 1)
    @rule(data=st.data(), is_one_way=st.booleans())
    def cut(self, data: st.DataObject, is_one_way: bool) -> None:
        """Cut the network between some machines and the others."""
        ids = set(self.simulation.machines)
        one_side = data.draw(st.sets(st.sampled_from(sorted(ids)), min_size=1, max_size=len(ids) - 1), "one side")
        self.simulation.network.cut(one_side, ids - one_side, is_one_way=is_one_way)

    @precondition(lambda self: self.simulation.network.cuts)
    @rule()
    def heal(self) -> None:
        """End all cuts of the network."""
        self.simulation.network.heal()

    @rule(data=st.data())
    def change_voters(self, data: st.DataObject) -> None:
        """Ask a replica that believes to lead to add a voter, or to remove one."""
        with self._drawing(data):
            self.simulation.change_voters()

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        """Have the state machine of a replica write a snapshot; its log is cleaned later."""
        replica_id = data.draw(st.sampled_from(sorted(self.simulation.machines)), "replica")
        with self._drawing():
            self.simulation.snapshot(replica_id)

    def teardown(self) -> None:
        """End all faults, and check that the quorum recovers."""
        if not self._is_over:
            self.simulation.recover()
