# SPDX-License-Identifier: Apache-2.0
"""A wrong consensus core: what it tells of the quorum, when it joins the voters, and how kraft.version is upgraded."""

from typing import Any, Final

import attrs
import pytest

from raftlog.quorum.describing import quorum_described, raft_status
from raftlog.quorum.following import joining
from raftlog.quorum.leadership import Leadership, VersionUpgrade
from raftlog.quorum.leading import updating_voters, upgrading
from raftlog.quorum.replica import LocalReplica
from raftlog.voters.voter_set import VoterSet
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

DESCRIBED: Final = "tests/quorum/describing/test_quorum_described.py"
STATUS: Final = "tests/quorum/describing/test_raft_status.py"
JOINING: Final = "tests/quorum/following/test_joining.py"
UPGRADING: Final = "tests/quorum/leading/test_upgrading.py"


def _though_it_was_removed(right: Wrong) -> Wrong:
    def may_join(core: Any) -> Any:
        core.has_been_voter = False
        return right(core)

    return may_join


def _counting_what_is_not_committed(right: Wrong) -> Wrong:
    def note_membership(core: Any) -> None:
        committed, core.committed_offset = core.committed_offset, 2**63 - 1
        right(core)
        core.committed_offset = committed

    return note_membership


def _without_removing_first(_: Wrong) -> Wrong:
    return lambda core, _: joining.add_voter_request(core)


def _taking_any_answer(right: Wrong) -> Wrong:
    return lambda core, *, is_expected: right(core, is_expected=True)


def _whoever_has_not_told(_: Wrong) -> Wrong:
    def upgradable_voters(core: Any, *_: Any) -> Any:
        return core.voters.update_voter_ignoring_directory_id(core.voter_node)

    return upgradable_voters


def _though_they_cannot_be_written(right: Wrong) -> Wrong:
    def upgradable_voters(core: Any, leadership: Any, version: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upgrading, "voters_problem", lambda _: None)
            return right(core, leadership, version)

    return upgradable_voters


def _leaving_the_voters_out(right: Wrong) -> Wrong:
    def upgradable_voters(core: Any, leadership: Any, version: Any) -> Any:
        right(core, leadership, version)
        return core.voters

    return upgradable_voters


def _by_directory_id(right: Wrong) -> Wrong:
    def update_voter_in_memory(leadership: Any, node: Any) -> Any:
        voters = leadership.upgrade.voters
        known = None if voters is None else voters.voters.get(node.voter_key.id)
        return right(leadership, node if known is None else attrs.evolve(node, voter_key=known.voter_key))

    return update_voter_in_memory


def _while_it_is_written(right: Wrong) -> Wrong:
    def keep_entry(leadership: Any, node: Any) -> Any:
        leadership.upgrade = VersionUpgrade(leadership.upgrade.voters or VoterSet.of((node,)))
        return right(leadership, node)

    return keep_entry


def _as_if_all_were_committed(right: Wrong) -> Wrong:
    def committed_voters(core: Any) -> Any:
        sets = core.log.control_records.voter_sets
        return raft_status.VotersStatus(sets[-1].value, sets[-1].offset) if sets else right(core)

    return committed_voters


def _for_everyone(right: Wrong) -> Wrong:
    def replica_state(key: Any, known: Any, _: int) -> Any:
        return right(key, known, 2)

    return replica_state


MUTANTS: Final = (
    Mutant(
        "K-room",
        "so many appends as the limit wait to be committed, an upgrade among them",
        "DECISIONS.md 58",
        missing(Leadership, "check_room"),
        (
            f"{UPGRADING}::test_an_upgrade_waits_to_be_committed_as_an_append_does",
            "tests/quorum/leading/test_appending.py::test_so_many_appends_may_wait_to_be_committed",
        ),
    ),
    Mutant(
        "K-idle-observers",
        "an observer that has not fetched for five minutes is not described",
        "LeaderState#clearInactiveObservers",
        missing(quorum_described, "forget_idle_observers"),
        (f"{DESCRIBED}::test_an_observer_is_forgotten_after_five_minutes",),
    ),
    Mutant(
        "K-described-directories",
        "a version that has no directory ids gets none",
        "RaftUtil#toReplicaState",
        swapped(quorum_described, "_replica_state", _for_everyone),
        (f"{DESCRIBED}::test_a_version_has_what_it_has_room_for",),
    ),
    Mutant(
        "K-silent-voters",
        "a voter that has never fetched is described",
        "RaftUtil#singletonDescribeQuorumResponse",
        instead(
            quorum_described,
            "_voter_state",
            lambda core, *_: quorum_described._leader_state(core, core.identity.key, 2),
        ),
        (f"{DESCRIBED}::test_each_replica_is_described_by_its_last_fetch",),
    ),
    Mutant(
        "K-committed-voters",
        "a voter set is called committed when it is",
        "KIP-853",
        swapped(raft_status, "_committed_voters", _as_if_all_were_committed),
        (f"{STATUS}::test_the_status_agrees_with_the_replica",),
    ),
    Mutant(
        "K15",
        "a voter that was removed does not join again by itself",
        "KAFKA-19850",
        swapped(joining, "may_join", _though_it_was_removed),
        (f"{JOINING}::test_the_conditions_for_asking",),
    ),
    Mutant(
        "K15-truncated",
        "a replica whose addition was truncated was not removed",
        "KAFKA-19850",
        swapped(LocalReplica, "_note_membership", _counting_what_is_not_committed),
        (f"{JOINING}::test_an_addition_that_was_truncated_is_none",),
    ),
    Mutant(
        "K-old-entry",
        "a replica with a new disk has its old entry removed before it is added",
        "KAFKA-19078",
        swapped(joining, "remove_voter_request", _without_removing_first),
        (f"{JOINING}::test_an_observer_asks_after_a_period",),
    ),
    Mutant(
        "K-join-answers",
        "an unexpected answer to a request to join is followed by a pause",
        "KAFKA-19078",
        swapped(joining, "_wait", _taking_any_answer),
        (f"{JOINING}::test_each_answer_has_its_pause",),
    ),
    Mutant(
        "K-upgrade-support",
        "an upgrade needs all voters to have told that they support the level",
        "KAFKA-16538",
        swapped(upgrading, "_upgradable_voters", _whoever_has_not_told),
        (f"{UPGRADING}::test_an_upgrade_is_one_batch_with_the_version_and_the_voters",),
    ),
    Mutant(
        "K-upgrade-voters",
        "an upgrade names the voters with their directory ids",
        "KAFKA-16538",
        swapped(upgrading, "_upgradable_voters", _leaving_the_voters_out),
        (f"{UPGRADING}::test_an_upgrade_is_one_batch_with_the_version_and_the_voters",),
    ),
    Mutant(
        "R-upgrade-unwritable",
        "voters that the log would refuse are not upgraded",
        "found by a review",
        swapped(upgrading, "_upgradable_voters", _though_they_cannot_be_written),
        (f"{UPGRADING}::test_voters_that_cannot_be_written_are_not_upgraded",),
    ),
    Mutant(
        "K-told-directory",
        "a static voter tells the leader its directory id, whatever it was before",
        "KAFKA-16538",
        swapped(upgrading, "update_voter_in_memory", _by_directory_id),
        (f"{UPGRADING}::test_an_upgrade_is_one_batch_with_the_version_and_the_voters",),
    ),
    Mutant(
        "K-told-late",
        "what a voter tells while an upgrade is written is refused, and it asks again",
        "KAFKA-16538",
        swapped(updating_voters, "_keep_entry", _while_it_is_written),
        (f"{UPGRADING}::test_a_voter_that_comes_while_an_upgrade_is_written_may_come_again",),
    ),
)
