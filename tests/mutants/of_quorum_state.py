# SPDX-License-Identifier: Apache-2.0
"""Wrong memories of elections: what a replica forgets of its vote, or believes of one that is not its own."""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from raftlog import file_system
from raftlog.errors import CorruptFileError, OutOfSpaceError
from raftlog.quorum import election_states, high_watermark
from raftlog.records.files import quorum_state
from raftlog.storage.state import leading, quorum_state_store
from raftlog.storage.state.quorum_state_store import (
    RESERVE_NAME,
    QuorumStateOrigin,
    QuorumStateStore,
    StoredQuorumState,
    load_quorum_state,
)
from raftlog.uuid_text import ZERO_UUID, uuid_to_text
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

LOST: Final = "tests/storage/state/test_lost_votes.py"
STATE: Final = "tests/storage/state/test_quorum_state_store.py"
DAMAGE: Final = "tests/faults/test_byte_damage.py"


def _by_force(right: Wrong) -> Wrong:
    return lambda *arguments, is_forced=False: right(*arguments, is_forced=True)


def _fresh_where_lost(right: Wrong) -> Wrong:
    def load_quorum_state(*arguments: Any, **keywords: Any) -> StoredQuorumState:
        found: StoredQuorumState = right(*arguments, **keywords)
        if found.origin is QuorumStateOrigin.LOST:
            return StoredQuorumState(QuorumStateOrigin.FRESH, None, False, found.problems)
        return found

    return load_quorum_state


def _in_memory_alone(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        store.state = state

    return write


def _forgetting_the_loss(right: Wrong) -> Wrong:
    def _writing(store: Any, state: Any) -> Any:
        store.may_vote = True
        return right(store, state)

    return _writing


def _of_any_epoch(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        store.state = None
        right(store, state)

    return write


def _copy_without_crc(right: Wrong) -> Wrong:
    def read_copy(data: bytes) -> Any:
        match = quorum_state_store._COPY.fullmatch(data)
        if match is None:
            return right(data)
        return quorum_state_store.QuorumStateCopy(quorum_state_store._read_state(match[3]), int(match[2]))

    return read_copy


def _kafkas_file_alone(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        right(store, state)
        for name in quorum_state_store.COPY_NAMES:
            file_system.replace_file(store._file_system, file_system.join(store._directory, name), b"")

    return write


def _without_directory_id(right: Wrong) -> Wrong:
    def write_quorum_state(state: Any) -> bytes:
        text: bytes = right(state)
        if state.voted_directory_id is None:
            return text
        return text.replace(uuid_to_text(state.voted_directory_id).encode(), uuid_to_text(ZERO_UUID).encode())

    return write_quorum_state


def _by_the_vote_alone(state: Any, before: Any) -> bool:
    return before.voted_key in (None, state.voted_key)


def _voting_all_the_same(right: Wrong) -> Wrong:
    def write(store: Any, state: Any) -> None:
        if store.may_vote:
            right(store, state)
        else:
            store._writing(state).complete()

    return write


def _as_if_damaged(right: Wrong) -> Wrong:
    def read(loading: Any, *arguments: Any) -> Any:
        found = right(loading, *arguments)
        loading.problems = [CorruptFileError(str(each), path=loading._directory) for each in loading.problems]
        return found

    return read


def _whatever_the_log_says(right: Wrong) -> Wrong:
    return lambda *arguments, last_epoch=0, **keywords: right(*arguments, **keywords)


def _without_settling(store: Any, files: Any, directory: str, **keywords: Any) -> Any:
    return store(files, directory, load_quorum_state(files, directory, **keywords))


def _without_sequence(right: Wrong) -> Wrong:
    return lambda data: attrs.evolve(right(data), sequence=0)


def _without_a_reserve(store: Any, state: Any, first_copy: bytes, _: bytes) -> int:
    store._store_in_files(state, first_copy)
    return 0


def _without_a_new_reserve(store: Any, state: Any, first_copy: bytes, second_copy: bytes) -> int:
    try:
        store._store_in_files(state, first_copy)
        return 0
    except OutOfSpaceError:
        path = file_system.join(store._directory, RESERVE_NAME)
        if not file_system.remove_if_there(store._file_system, path):
            raise
        store._store_in_files(state, second_copy)
        return 1


def _at_any_price(store: Any) -> None:
    path = file_system.join(store._directory, RESERVE_NAME)
    file_system.replace_file(store._file_system, path, quorum_state_store._RESERVE)


def _of_any_leader(right: Wrong) -> Wrong:
    return lambda before, ends, majority_size, epoch_start_offset: right(before, ends, majority_size, 0)


def _one_voter_less(ends: Iterable[int], majority_size: int) -> int | None:
    found = sorted(ends, reverse=True)
    return found[max(0, majority_size - 2)] if found else None


MUTANTS: Final = (
    Mutant(
        "R9-unread",
        "a state that the disk does not give back just now is not a damaged one",
        "found by comparison with R17-unread-epochs",
        swapped(quorum_state_store._Loading, "read", _as_if_damaged),
        (
            f"{LOST}::test_a_lost_vote_is_not_forgotten_where_reads_fail",
            f"{LOST}::test_a_state_that_cannot_be_read_is_not_lost",
        ),
    ),
    Mutant(
        "W1-zero",
        "a flipped bit that makes -0 of -1 invents no vote",
        "raftlog's own simulator",
        instead(quorum_state, "_whole_number", int),
        ("tests/records/files/test_quorum_state.py::test_no_flipped_bit_invents_a_leader_or_a_vote",),
    ),
    Mutant(
        "R-own-epoch",
        "records of an earlier epoch are not committed by their number of copies",
        "Raft, 5.4.2",
        swapped(high_watermark, "advanced_high_watermark", _of_any_leader),
        ("tests/quorum/test_high_watermark.py::test_the_leaders_own_epoch_commits",),
    ),
    Mutant(
        "R-majority",
        "one voter less than a majority commits nothing",
        "LeaderState#maybeUpdateHighWatermark",
        instead(high_watermark, "majority_offset", _one_voter_less),
        ("tests/quorum/test_high_watermark.py::test_a_majority_of_three",),
    ),
    Mutant(
        "K14",
        "the directory id of the candidate that got the vote is kept",
        "KAFKA-16526",
        swapped(quorum_state_store, "write_quorum_state", _without_directory_id),
        (f"{STATE}::test_what_is_written_is_read",),
    ),
    Mutant(
        "R12",
        "a vote is on the disk before it is told",
        "PySyncObj 84",
        swapped(QuorumStateStore, "write", _in_memory_alone),
        (f"{STATE}::test_what_is_written_is_read",),
    ),
    Mutant(
        "R13",
        "the epoch does not fall",
        "PySyncObj 202",
        swapped(QuorumStateStore, "write", _of_any_epoch),
        (f"{STATE}::test_epochs_do_not_fall",),
    ),
    Mutant(
        "R13-vote",
        "there is one vote in an epoch",
        "PySyncObj 84",
        instead(election_states, "keeps_promises", lambda state, before: True),
        (f"{STATE}::test_decisions_of_an_epoch_are_kept",),
    ),
    Mutant(
        "K2-leader",
        "a replica that has led an epoch gives no vote in it, and no leader of an epoch is followed by another",
        "KAFKA-10661",
        instead(election_states, "keeps_promises", _by_the_vote_alone),
        (f"{STATE}::test_decisions_of_an_epoch_are_kept",),
    ),
    Mutant(
        "W3-remembered",
        "a replica that has lost a vote does not forget that",
        "FileQuorumStateStore",
        swapped(QuorumStateStore, "_writing", _forgetting_the_loss),
        (f"{LOST}::test_a_lost_vote_stays_lost",),
    ),
    Mutant(
        "W3-lost",
        "a replica with a log and no election state does not vote",
        "FileQuorumStateStore",
        swapped(quorum_state_store, "load_quorum_state", _fresh_where_lost),
        (f"{STATE}::test_a_log_without_a_state_does_not_vote",),
    ),
    Mutant(
        "W3-crc",
        "a flipped bit is no other vote",
        "FileQuorumStateStore",
        swapped(quorum_state_store, "read_quorum_state_copy", _copy_without_crc),
        (f"{STATE}::test_a_flipped_bit_in_a_copy_is_found", f"{DAMAGE}::test_a_sample"),
    ),
    Mutant(
        "W3-one-copy",
        "one damaged file of three loses no vote",
        "FileQuorumStateStore",
        swapped(QuorumStateStore, "write", _kafkas_file_alone),
        (f"{STATE}::test_one_sound_file_is_enough",),
    ),
    Mutant(
        "W3-refused",
        "a replica that has lost a vote does not vote",
        "FileQuorumStateStore",
        swapped(QuorumStateStore, "write", _voting_all_the_same),
        (f"{LOST}::test_a_replica_that_may_not_vote_does_not",),
    ),
    Mutant(
        "W3-leads",
        "a replica that may have forgotten a vote does not lead",
        "DECISIONS.md 48",
        swapped(leading, "prepare_to_lead", _by_force),
        ("tests/storage/state/test_leading.py::test_a_replica_that_may_have_forgotten_a_vote_does_not_lead",),
    ),
    Mutant(
        "W3-behind",
        "a state of an epoch below the log's is an old one, and votes are lost",
        "PySyncObj 202",
        swapped(quorum_state_store, "load_quorum_state", _whatever_the_log_says),
        (f"{LOST}::test_a_state_older_than_the_log_is_stale",),
    ),
    Mutant(
        "W3-settled",
        "a start settles on one state before anybody acts upon it",
        "FileQuorumStateStore",
        instead(QuorumStateStore, "open", _without_settling),
        (f"{STATE}::test_every_crash_keeps_the_vote",),
    ),
    Mutant(
        "W3-failed",
        "after a write that failed no later one is trusted",
        "Rebello et al., ATC 2020",
        missing(QuorumStateStore, "_note_failure"),
        (f"{STATE}::test_a_failed_store_is_not_trusted",),
    ),
    Mutant(
        "W3-stale",
        "of two sound copies the later one counts",
        "Pillai et al., OSDI 2014",
        swapped(quorum_state_store, "read_quorum_state_copy", _without_sequence),
        (f"{STATE}::test_a_write_that_the_disk_lost_is_found",),
    ),
    Mutant(
        "W3-kafkas",
        "a later state that Kafka wrote counts",
        "FileQuorumStateStore",
        instead(quorum_state_store, "_is_later", lambda *_: False),
        (f"{STATE}::test_kafka_in_our_directory",),
    ),
    Mutant(
        "W3-leader",
        "a leader is believed if the log has a record of its epoch, or a copy of the state names it",
        "a schedule: a flipped bit of the epoch",
        instead(quorum_state_store, "_without_leader", lambda state: state),
        (f"{STATE}::test_no_flipped_bit_in_kafkas_file_breaks_a_promise",),
    ),
    Mutant(
        "S-reserve",
        "a full disk leaves room for a vote",
        "ENOSPC",
        instead(QuorumStateStore, "_store", _without_a_reserve),
        (f"{STATE}::test_a_full_disk_has_room_for_a_vote",),
    ),
    Mutant(
        "S-reserve-again",
        "room that was used for a vote is kept again",
        "ENOSPC",
        instead(QuorumStateStore, "_store", _without_a_new_reserve),
        (f"{STATE}::test_a_full_disk_has_room_for_a_vote",),
    ),
    Mutant(
        "S-reserve-full",
        "a replica starts without room for the reserve",
        "ENOSPC",
        instead(QuorumStateStore, "_keep_reserve", _at_any_price),
        (f"{STATE}::test_without_room_for_a_reserve_there_is_none",),
    ),
)
