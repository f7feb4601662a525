# SPDX-License-Identifier: Apache-2.0
"""A running node that is blamed for what it does while its directory is read."""

from collections.abc import Iterator
from typing import Any, Final

from raftlog.errors import MissingFileError, StorageError
from raftlog.tools.audit_verbs import quorum, two_looks
from raftlog.tools.auditing.judgement import judgement
from raftlog.tools.auditing.judgement.judgement import in_order, judge_together
from raftlog.tools.auditing.run import looks, second_look
from raftlog.tools.auditing.run.directory_problems import with_problems
from raftlog.tools.auditing.run.second_look import SecondLook
from raftlog.tools.auditing.survey import found_directories
from raftlog.tools.auditing.survey.found_directories import FoundDirectory
from raftlog.tools.dump.dump_log import Dump
from raftlog.tools.dump.missed_files import MissedFiles
from raftlog.tools.spark.audit import executor_work
from tests.mutants.planting import Mutant, instead

LIVE: Final = "tests/tools/auditing/run/test_second_look.py"
DUMP: Final = "tests/tools/dump/test_dump_log_injected.py"
FAILURES: Final = "tests/tools/auditing/run/test_second_look_failures.py"
QUORUM: Final = "tests/tools/audit_verbs/test_quorum_live.py"
WORK: Final = "tests/tools/spark/audit/test_executor_work.py"


def _as_it_was(place: Any, _: Any) -> SecondLook:
    return SecondLook(place)


def _of_the_second(_: Any, second: Any) -> Any:
    return in_order(second)


def _at_first_sight(kept: Any, problems: Any, _: Any, __: Any) -> Any:
    return with_problems(judge_together(kept), problems)


def _nothing(*_: Any) -> Iterator[Any]:
    return iter(())


def _is_missing(error: StorageError) -> bool:
    return isinstance(error, MissingFileError)


MUTANTS: Final = (
    Mutant(
        "R-live-second-look",
        "a directory that changed while it was read is read again",
        "raftlog, decision 74",
        instead(second_look, "look_again", _as_it_was),
        (LIVE,),
    ),
    Mutant(
        "R-live-twice",
        "what is above harmless is told only if both judgements have it",
        "raftlog, decision 74",
        instead(looks, "told_twice", _of_the_second),
        (LIVE,),
    ),
    Mutant(
        "R-live-together",
        "log directories are listed again before they are said to contradict each other",
        "raftlog, decision 74",
        instead(second_look, "settle_together", _at_first_sight),
        (f"{LIVE}::test_a_running_node[topic_deletion-True]",),
    ),
    Mutant(
        "R-live-failed-listing",
        "a directory that cannot be listed again was not deleted: the first judgement stands",
        "raftlog, decision 74",
        instead(looks, "listing_failures", _nothing),
        (f"{FAILURES}::test_a_second_listing_that_fails",),
    ),
    Mutant(
        "R-live-failed-reading",
        "a file that cannot be read again has not lost its damage",
        "raftlog, decision 74",
        instead(looks, "newly_unread", lambda *_: []),
        (f"{FAILURES}::test_a_file_that_cannot_be_read_again",),
    ),
    Mutant(
        "R-live-failed-comparison",
        "batches of replicas that cannot be read a second time are told",
        "raftlog, decision 74",
        instead(judgement, "_with_failures", lambda findings, _: findings),
        (f"{FAILURES}::test_replicas_that_cannot_be_compared_again",),
    ),
    Mutant(
        "R-live-gone-later",
        "a directory that goes away while it is judged again was not deleted",
        "raftlog, decision 74",
        instead(second_look, "_failures_now", _nothing),
        (f"{FAILURES}::test_a_directory_that_goes_while_it_is_judged",),
    ),
    Mutant(
        "R-live-unlisted",
        "a log directory that is empty at the second listing takes nothing back",
        "raftlog, decision 74",
        instead(looks, "unlisted", _nothing),
        (f"{FAILURES}::test_one_log_directory_of_several_is_unmounted",),
    ),
    Mutant(
        "R-live-named",
        "a directory that the user named is not taken for deleted",
        "raftlog, decision 74",
        instead(FoundDirectory, "was_deleted", lambda each, error: _is_missing(error) and each.is_partition),
        (f"{FAILURES}::test_a_directory_that_the_user_named_goes",),
    ),
    Mutant(
        "R-live-parent",
        "a directory whose parent is gone or empty is not taken for deleted",
        "raftlog, decision 74",
        instead(found_directories, "has_entries", lambda _: True),
        (f"{FAILURES}::test_a_log_directory_that_goes",),
    ),
    Mutant(
        "R-live-driver-directory",
        "a relative path means nothing on a worker without the driver's directory",
        "raftlog, decision 74",
        instead(executor_work, "_out_of_reach", lambda *_: None),
        (f"{WORK}::test_a_second_look_from_another_directory",),
    ),
    Mutant(
        "R-live-dump-gone",
        "dump-log says in its output which segments a node has deleted under it",
        "raftlog, decision 74",
        instead(Dump, "_say_gone", lambda dump, path, reason: dump._say(f"{path}: {reason}")),
        (f"{DUMP}::test_what_the_output_lacks[retention-True]",),
    ),
    Mutant(
        "R-live-dump-missed",
        "dump-log lists a directory again: a segment may have taken the place of others that it did not see",
        "raftlog, decision 74",
        instead(MissedFiles, "found", _nothing),
        (f"{DUMP}::test_a_node_that_is_at_it_already", f"{DUMP}::test_what_a_selection_lacks"),
    ),
    Mutant(
        "R-live-quorum-looks",
        "the files of a quorum that changed while they were read are read again",
        "raftlog, decision 74",
        instead(looks, "changed_places", lambda *_: frozenset()),
        (f"{QUORUM}::test_a_running_quorum[replication-quorum-True]",),
    ),
    Mutant(
        "R-live-quorum-verdict",
        "a snapshot that is newer than the logs of voters proves no loss",
        "raftlog, decision 74",
        instead(quorum, "settled", lambda _, last: last),
        (f"{QUORUM}::test_a_snapshot_that_is_read_after_the_logs",),
    ),
    Mutant(
        "R-live-quorum-twice",
        "damage that a second look alone sees is not told",
        "raftlog, decision 74",
        instead(two_looks, "_settled", lambda last, _: last),
        (f"{QUORUM}::test_damage_that_comes_between_is_not_told",),
    ),
    Mutant(
        "R-live-diff-looks",
        "replicas that changed while they were compared are compared again",
        "raftlog, decision 74",
        instead(looks, "changed_places", lambda *_: frozenset()),
        (f"{QUORUM}::test_a_running_quorum[cleaning-diff-True]",),
    ),
    Mutant(
        "R-live-diff-twice",
        "a fork that a second comparison alone sees is not told",
        "raftlog, decision 74",
        instead(looks, "standing", lambda _, second, *__: list(second)),
        (f"{QUORUM}::test_a_fork_of_running_replicas[new_at_the_second_look]",),
    ),
    Mutant(
        "R-live-metadata-gone",
        "a metadata log that is gone at the second look was not deleted by its node",
        "raftlog, decision 74",
        instead(looks, "_was_deleted", lambda said, path, _: any(each.rule == "file-gone" for each in said)),
        (f"{FAILURES}::test_a_metadata_log_that_goes",),
    ),
    Mutant(
        "R-live-quorum-gone",
        "a replica that is gone at the second look is shown as it was at the first",
        "raftlog, decision 74",
        instead(looks, "unlisted", _nothing),
        (f"{QUORUM}::test_a_second_look_that_fails[gone]",),
    ),
    Mutant(
        "R-live-quorum-unread",
        "a file that cannot be read at the second look is shown as it was at the first",
        "raftlog, decision 74",
        instead(looks, "newly_unread", lambda *_: []),
        (f"{QUORUM}::test_a_second_look_that_fails[unreadable]",),
    ),
)
