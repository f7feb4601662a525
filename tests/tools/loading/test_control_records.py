# SPDX-License-Identifier: Apache-2.0
"""A check finds the control record that raft refuses, in a snapshot or in the log, and refuses nothing else."""

import pytest

from raftlog.tools.image.cluster_image import MetadataBatch
from raftlog.tools.loading.control_records import CONTROL_RULES
from raftlog.tools.loading.features import CHECKED_RELEASES
from raftlog.tools.loading.load_check import LoadCheck, LoadFault
from tests.tools.loading.control_logs import CONTROL_LOGS, LEADER, ControlLog, level
from tests.tools.loading.poisoned_logs import Poisoned, V, topic

DATA = Poisoned([[V]]).story[1].values


def faults(log: ControlLog, *, has_data: bool = True) -> dict[str, LoadFault]:
    """What a check says of the records, after a batch of data if there is one."""
    check = LoadCheck(in_snapshot=True)
    if log.snapshot:
        check.apply(MetadataBatch(0, len(log.snapshot), 1, 1, (), log.snapshot))
    check.begin_log(log.start_offset)
    for batch in log.story:
        check.apply(batch)
    if has_data:
        check.apply(MetadataBatch(check.end_offset, check.end_offset + 1, 1, 1, DATA))
    return check.finish()


@pytest.mark.parametrize("name", CONTROL_LOGS)
def test_raft_stops_all_releases_at_the_record_that_it_refuses(name: str) -> None:
    """With its offset there, its index and a method of Kafka; or at none."""
    log = CONTROL_LOGS[name]
    found = faults(log)
    if not log.rule:
        assert found == {}
        return
    assert {release: (fault.rule, fault.offset) for release, fault in found.items()} == dict.fromkeys(
        CHECKED_RELEASES, (log.rule, log.offset)
    )
    is_in_snapshot = log.offset < len(log.snapshot)
    for fault in found.values():
        assert (fault.is_in_snapshot, fault.reason != "", "#" in fault.source) == (is_in_snapshot, True, True)


def test_the_index_is_that_in_the_batch() -> None:
    """The offset is that of the record, not that of its batch."""
    (fault,) = {
        (each.offset, each.record_index, each.record)
        for each in faults(ControlLog([[LEADER], [LEADER, level(1), level(9)]])).values()
    }
    assert fault == (3, 2, "KRaftVersionRecord")


def test_the_first_fault_in_the_order_of_the_log_counts() -> None:
    """Whether a controller or raft has it, though Kafka's raft reads the whole log before a controller does."""
    twins = Poisoned([[topic("a", 1), topic("a", 2)]]).story[1].values
    bad = MetadataBatch(0, 1, 1, 1, (), (level(9),))
    for first, second, rule in ((bad, twins, "kraft-version"), (None, twins, "duplicate-topic")):
        check = LoadCheck()
        if first is not None:
            check.apply(first)
        check.apply(MetadataBatch(1, 3, 1, 1, second))
        check.apply(bad._replace(base_offset=3, next_offset=4))
        assert {fault.rule for fault in check.finish().values()} == {rule}


def test_each_rule_has_a_log() -> None:
    """The table of rules, and the logs."""
    assert {log.rule for log in CONTROL_LOGS.values()} - {""} == CONTROL_RULES
