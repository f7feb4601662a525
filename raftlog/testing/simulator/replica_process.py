# SPDX-License-Identifier: Apache-2.0
"""One run of a replica's process: its core, which is driven over a simulated disk, from a start to a crash."""

from collections.abc import Callable
from typing import Any, Protocol

from raftlog.quorum.driving.replica_driver import ReplicaDriver
from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.roles.roles import Leader
from raftlog.quorum.seam.effects import (
    AppendOutcome,
    Effect,
    EndAppend,
    EndRead,
    EndShutdown,
    Notice,
    NotifyLeaderChange,
    NotifyShutdown,
    SendRequest,
    SendResponse,
    StoreElectionState,
    TruncateToEndOffset,
)
from raftlog.quorum.seam.snapshot_effects import CleanLog
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.simulator.application import SimulatedApplication
from raftlog.testing.simulator.checks.ledger import NamedVoters
from raftlog.testing.simulator.checks.voter_history import check_voter_history
from raftlog.testing.simulator.choices import Choices, ChosenDraws
from raftlog.testing.simulator.conduct.cleaning import CleaningCheck
from raftlog.testing.simulator.conduct.confirmations import Confirmations
from raftlog.testing.simulator.conduct.dialogue import ANSWER_MS, SLOW_ANSWER_MS, Dialogue
from raftlog.testing.simulator.conduct.leadership_watch import PAUSED_WRITING_MS, WRITING_MS, LeadershipWatch
from raftlog.testing.simulator.conduct.named_snapshots import NamedSnapshotCheck
from raftlog.testing.simulator.conduct.refusals import RefusalCheck
from raftlog.testing.simulator.conduct.searching import SearchCheck
from raftlog.testing.simulator.disks.directory import Directory, DiskJob
from raftlog.testing.simulator.fault_plan import FaultPlan
from raftlog.testing.simulator.violation import check


class Host(Protocol):
    """What a process gets from the machine and network around it."""

    def send_request(self, process: "ReplicaProcess", effect: SendRequest) -> None:
        """Send a request."""
        ...

    def send_response(self, process: "ReplicaProcess", effect: SendResponse) -> None:
        """Send a response."""
        ...

    def append_ended(self, process: "ReplicaProcess", effect: EndAppend) -> None:
        """Tell a client what became of its append."""
        ...

    def read_ended(self, process: "ReplicaProcess", effect: EndRead) -> None:
        """Tell a client what became of its read."""
        ...

    def later(self, process: "ReplicaProcess", delay_ms: int, event: Callable[..., None], *arguments: Any) -> None:
        """Call a function after a while, unless the process has crashed by then."""
        ...

    def work_begun(self, process: "ReplicaProcess", job: DiskJob) -> None:
        """Have the disk do some work, after as long as that takes."""
        ...


class SimulatedClock:
    """A clock that runs too fast or too slowly, and shows another time of day than others.

    Args:
        started_ms: true time at which its monotonic time was 0.
        rate_ppm: of its speed: 1,000,000 is right.
        wall_ms: time of day at the start, in ms since the Unix epoch.
    """

    def __init__(self, started_ms: int, rate_ppm: int, wall_ms: int) -> None:
        self._started_ms = started_ms
        self._rate_ppm = rate_ppm
        self._wall_ms = wall_ms

    def monotonic_ms(self, now_ms: int) -> int:
        """Return what the clock shows at a true time."""
        return (now_ms - self._started_ms) * self._rate_ppm // 1_000_000

    def wall_ms(self, now_ms: int) -> int:
        """Return the time of day that the clock shows at a true time."""
        return self._wall_ms + self.monotonic_ms(now_ms)

    def true_ms(self, monotonic_ms: int) -> int:
        """Return the first true time at which the clock shows a time."""
        return self._started_ms + -(-monotonic_ms * 1_000_000 // self._rate_ppm)


class ReplicaProcess:
    """A core that a ``ReplicaDriver`` drives over a simulated disk, network and application: the host's.

    The process is the driver's executor. A piece of work for the disk is done when its host says so, in virtual time.

    Attributes:
        raft: the core.
        directory: of its log.
        clock: of its machine.
        application: listens to the core.
        told_ms: the time that the core was told last, in ms by the clock.
        dialogue: checks what it answers and asks.
        leadership: checks how it leads.
        confirmations: checks that a majority has confirmed each read.
        search: checks how it looks for a leader.
        named_snapshots: checks that it follows the snapshots that it is named.
        last_state: the election state that the core has given to the disk last, in this run; None before the first.
    """

    def __init__(
        self,
        directory: Directory,
        host: Host,
        config: QuorumConfig,
        choices: Choices,
        plan: FaultPlan,
        clock: SimulatedClock,
        now_ms: int,
    ) -> None:
        self.directory = directory
        self.clock = clock
        self.told_ms = clock.monotonic_ms(now_ms)
        self._host = host
        self.last_state: QuorumStateData | None = None
        self.application = SimulatedApplication(
            directory, choices, plan, self._later, lambda: self.told_ms, config.retry_backoff_ms
        )
        is_slow = plan.slow_sync > 0
        self._is_prompt = not is_slow
        self._cleaning = CleaningCheck(
            directory.ledger,
            is_kept=plan.retention_bytes > 0,
            is_slow=is_slow,
            pause_ms=config.cleaning_interval_ms,
        )
        self.dialogue = Dialogue(directory.ledger, SLOW_ANSWER_MS if is_slow else ANSWER_MS)
        writing_ms = PAUSED_WRITING_MS if plan.pause_interval_ms else WRITING_MS
        self.leadership = LeadershipWatch(directory.ledger, config, None if is_slow else writing_ms)
        self.confirmations = Confirmations(directory.ledger)
        self.search = SearchCheck(directory.ledger, config, len(directory.identity.bootstrap_servers) > 1)
        self.named_snapshots = NamedSnapshotCheck(directory.ledger)
        self._refusals = RefusalCheck(directory.ledger, config)
        self._under_way: list[DiskJob] = []
        self._seen_voters: tuple[object, ...] = ()
        self._driver = ReplicaDriver(
            directory.log,
            directory.election_state,
            identity=directory.identity,
            config=config,
            draws=ChosenDraws(choices, directory.identity.key.id),
            network=self,
            application=self,
            monotonic_ms=clock.monotonic_ms(now_ms),
            wall_ms=clock.wall_ms(now_ms),
            static_voters=directory.static_voters,
            executor=self,
            watch=self._watch,
        )
        self.raft = self._driver.raft
        self.application.begin(self.raft)

    def settle(self) -> None:
        """Carry out the effects of the core, as far as the disk is fast enough."""
        self._driver.settle()

    def check_settled(self, now_ms: int) -> None:
        """Check, after effects were carried out, what the process does by itself.

        Args:
            now_ms: virtual time.
        """
        self.check_voter_history()
        if self._refusals.noted(self.told_ms, self.raft.snapshot_refusal):
            refusal = self.raft.status.log_refusal
            check(refusal is None, "refusals-end", "{} has taken records, and says: {}", self.directory.ledger, refusal)
        paused_until_ms = self._refusals.longest_pause_until_ms
        self.search.settled(self.raft.role, self.told_ms, paused_until_ms, is_idle=self._driver.is_settled)
        if self._is_prompt and isinstance(self.raft.role, Leader):
            self.dialogue.check_news(now_ms)

    def check_voter_history(self) -> None:
        """Check the voters that the replica has found in its log, and its start, if the log or they have changed."""
        machine, ledger = self._driver.machine, self.directory.ledger
        last, start = ledger.voter_sets[-1].offset, machine.start_offset
        seen = last, len(ledger.voter_sets), machine.changes, start, ledger.levels[-1]
        if seen != self._seen_voters and machine.next_offset == ledger.end_offset:
            self._seen_voters = seen
            found = [NamedVoters(each.offset, each.value.voter_keys) for each in machine.voter_sets()]
            check_voter_history(ledger, start, found, int(machine.last_kraft_version))
            log_start = self.directory.log.start_offset
            is_kept = log_start == ledger.start_offset
            check(is_kept, "log-start-is-kept", "{}: {}, not {}", ledger.key, log_start, ledger.start_offset)

    def check_cleaning(self, core_ms: int) -> None:
        """Check that the log is cleaned in time."""
        disk = self.directory.disk
        self._cleaning.check(core_ms, is_full=disk is not None and disk.is_full)

    # What the driver asks for

    def _watch(self, effect: Effect) -> None:
        """Tell the witness of an election state to be stored, of a truncation, and of a cleaning.

        Older epochs are promised nothing from now on, but what was asked for in them may be done later.
        """
        if isinstance(effect, StoreElectionState):
            self.last_state = effect.state
            self.directory.witness.asked_to_store(self.directory.ledger, effect.state)
        elif isinstance(effect, TruncateToEndOffset):
            self.directory.witness.asked_to_truncate(self.directory.ledger)
        elif isinstance(effect, CleanLog):
            self._cleaning.began(self.told_ms)
            self.dialogue.cleaning_began()

    def submit(self, job: DiskJob, /) -> None:
        """Begin some work for the disk; a process that has halted begins none."""
        reason, key = self.raft.halt_reason, self.directory.identity.key
        check(reason is None, "halted-replicas-rest", "{} begins work, and has halted: {}", key, reason)
        self._under_way.append(job)
        self._host.work_begun(self, job)

    def send(self, effect: SendRequest | SendResponse) -> None:
        """Send a message."""
        if isinstance(effect, SendRequest):
            self._refusals.sent(effect.message, self.told_ms, self.raft.snapshot_refusal)
            self.search.sent(effect.destination[1:], effect.message)
            self.named_snapshots.sent(effect.message)
            self._host.send_request(self, effect)
        else:
            self._host.send_response(self, effect)

    def tell(self, effect: Notice | NotifyLeaderChange) -> None:
        """Tell a client what became of its append or read, or a state machine of what is committed, and who leads."""
        if isinstance(effect, EndAppend):
            self._check_append(effect)
            self._host.append_ended(self, effect)
        elif isinstance(effect, EndRead):
            self._host.read_ended(self, effect)
        elif not isinstance(effect, NotifyShutdown | EndShutdown):
            self.application.told(effect)

    def _check_append(self, effect: EndAppend) -> None:
        """Check that an append for which there was no room has failed for certain, unless a later epoch came before."""
        ledger = self.directory.ledger
        is_refused = ledger.refused_in_epoch > 0 and effect.last_offset >= ledger.end_offset
        is_refused = is_refused and self.raft.role.epoch == ledger.epoch_start[0]
        is_right = effect.outcome is not AppendOutcome.UNKNOWN or not is_refused
        check(is_right, "refused-appends-fail", "{} was refused: {}", effect, ledger)

    def write_snapshot(self, number: int, writer: RecordsSnapshotWriter) -> None:
        """Let the application write a snapshot."""
        self.application.write_snapshot(number, writer)

    def snapshot_refused(self, number: int, reason: str) -> None:
        """Tell the application that there is no such snapshot."""
        self.application.snapshot_refused(number)

    def _later(self, delay_ms: int, event: Callable[..., None], *arguments: Any) -> None:
        self._host.later(self, delay_ms, event, *arguments)

    # What the disk and the machine do

    def do_work(self, job: DiskJob) -> None:
        """Let the disk do some work that was begun. It is durable now; the process knows when it settles next."""
        self._under_way.remove(job)
        job()

    def crash(self, choices: Choices, may_damage: Callable[[], bool]) -> int:
        """End with the machine, and lose what was not durable; return how many batches were lost.

        The work that is under way may have been done by the disk, without the process being told.
        """
        return self.directory.crash(choices, self._take_jobs(), may_damage)

    def exit(self, choices: Choices) -> None:
        """End, while the machine goes on."""
        self.directory.exit(choices, self._take_jobs())

    def _take_jobs(self) -> list[DiskJob]:
        jobs, self._under_way = self._under_way, []
        return jobs
