# SPDX-License-Identifier: Apache-2.0
"""A check that lets Kafka die of what it did not name, or blames what loads; a snapshot that says something else."""

from typing import Any, Final

import attrs

from raftlog.errors import SnapshotError
from raftlog.tools.image import image_records
from raftlog.tools.image_snapshot import snapshot_writing
from raftlog.tools.loading import acl_contents, control_records, controller, features, load_check
from raftlog.tools.loading.controller import ControllerState
from raftlog.tools.loading.load_check import LoadCheck
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

CHECK: Final = "tests/tools/loading/test_load_check.py"
CONTROLS: Final = (
    "tests/tools/loading/test_control_records.py::test_raft_stops_all_releases_at_the_record_that_it_refuses"
)
LEVELS: Final = "tests/tools/loading/test_features.py"
RECORDS: Final = "tests/tools/image/test_image_records.py"
SNAPSHOT: Final = "tests/tools/state/test_snapshot.py"
ENUMS: Final = f"{CHECK}::test_a_number_that_an_enum_does_not_know_stops_who_refuses_it"
TABLE: Final = f"{CHECK}::test_each_poisoned_log_stops_the_releases_that_it_should"


def _exclusive(right: Wrong) -> Wrong:
    def unsupported(release: str, name: str, level: int) -> str | None:
        _, highest = features.supported_levels(release).get(name, (0, 0))
        found: str | None = right(release, name, level)
        return found or (right(release, name, highest + 1) if level == highest > 0 else None)

    return unsupported


def _without_checks(right: Wrong) -> Wrong:
    def loaded_by(values: Any, release: str, end_offset: int) -> Any:
        try:
            return right(values, release, end_offset)
        except SnapshotError:
            return ()

    return loaded_by


def _without_an_end(right: Wrong) -> Wrong:
    def begin_log(check: LoadCheck, start_offset: int) -> None:
        right(check, 0)
        check.end_offset = start_offset

    return begin_log


def _without_faults(right: Wrong) -> Wrong:
    return lambda *given: attrs.evolve(right(*given), faults={})


MUTANTS: Final = (
    Mutant(
        "R-load-abort",
        "records of a transaction that is aborted are undone",
        "KIP-866, OffsetControlManager#replay",
        instead(ControllerState, "copy", lambda self: self),
        (TABLE,),
    ),
    Mutant(
        "R-load-owners",
        "a log directory has one broker",
        "ClusterControlManager#updateDirectories",
        missing(controller, "_move"),
        (TABLE,),
    ),
    Mutant(
        "R-load-controls",
        "raft reads the levels and the voters of control records",
        "KRaftControlRecordStateMachine",
        missing(control_records, "_content_fault"),
        (CONTROLS,),
    ),
    Mutant(
        "R-load-control-twice",
        "all control records of a snapshot are of one offset, which has one level and one set of voters",
        "TreeMapLogHistory#addAt",
        missing(control_records.ControlReplay, "_twice_fault"),
        (CONTROLS,),
    ),
    Mutant(
        "R-load-begin",
        "a transaction does not begin where the snapshot ends",
        "OffsetControlManager#endLoadSnapshot",
        swapped(LoadCheck, "begin_log", _without_an_end),
        (
            "tests/tools/loading/test_snapshot_and_log.py"
            "::test_a_transaction_that_begins_where_the_snapshot_ends_stops_all_releases",
        ),
    ),
    Mutant(
        "R-snapshot-controls",
        "no snapshot is made without a control record that raft refuses",
        "DECISIONS.md, 87",
        missing(snapshot_writing, "_refuse_controls"),
        ("tests/tools/state/test_log_check.py::test_a_level_of_kraft_version_that_is_not_known[2-False]",),
    ),
    Mutant(
        "R-load-acls",
        "numbers of ACLs that a release does not know are all the same to it",
        "AclOperation#fromCode",
        instead(acl_contents, "known_acl", lambda acl, _: acl),
        (ENUMS,),
    ),
    Mutant(
        "R-load-operations",
        "releases before 4.1 do not know the operation TWO_PHASE_COMMIT",
        "AclOperation",
        instead(acl_contents, "operation_count", lambda _: 16),
        (ENUMS,),
    ),
    Mutant(
        "R-load-levels",
        "the highest level of a feature is one that the release supports",
        "VersionRange#contains",
        swapped(features, "unsupported_level", _exclusive),
        (f"{LEVELS}::test_levels_are_inclusive", TABLE),
    ),
    Mutant(
        "R-load-versions",
        "a release reads the versions of records that it knows",
        "MetadataRecordSerde#read",
        instead(load_check, "_lacking", lambda _: ()),
        (TABLE,),
    ),
    Mutant(
        "R-load-end",
        "a log sets metadata.version",
        "FeaturesImage#metadataVersionOrThrow",
        missing(LoadCheck, "_version_fault"),
        (TABLE,),
    ),
    Mutant(
        "R-snapshot-newest",
        "a snapshot has the versions of records that its metadata.version allows",
        "MetadataVersion#registerBrokerRecordVersion",
        instead(image_records, "_version", lambda versions, _: max(versions)[0]),
        (f"{RECORDS}::test_records_have_the_version_of_the_metadata_version",),
    ),
    Mutant(
        "R-snapshot-unloaded",
        "a snapshot that its release does not load is not written",
        "DECISIONS.md, 87",
        swapped(snapshot_writing, "loaded_by", _without_checks),
        (f"{SNAPSHOT}::test_a_snapshot_that_its_release_does_not_load_is_refused",),
    ),
    Mutant(
        "R-snapshot-newer",
        "a record of a newer release is not left out of a snapshot unasked",
        "DECISIONS.md, 87",
        missing(snapshot_writing, "_refuse_newer"),
        (f"{SNAPSHOT}::test_what_is_in_doubt_is_not_written",),
    ),
    Mutant(
        "R-snapshot-rest",
        "the log after a snapshot is replayed on it",
        "DECISIONS.md, 87",
        swapped(snapshot_writing, "effect_of", _without_faults),
        (f"{SNAPSHOT}::test_a_later_record_that_kafka_dies_of_is_named",),
    ),
)
