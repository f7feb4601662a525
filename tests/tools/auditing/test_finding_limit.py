# SPDX-License-Identifier: Apache-2.0
"""Findings of one file stay bounded."""

import functools

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.auditing.finding_limit import FindingLimit
from raftlog.tools.catalogue.findings import Finding


def _found(rule: str, position: int) -> Finding:
    return Finding("a.log", rule, "wrong", position)


@given(st.lists(st.tuples(st.sampled_from(["batch-crc", "tail-torn"]), st.integers(0, 9)), max_size=20), st.booleans())
def test_so_many_of_a_rule_are_kept(plan: list[tuple[str, int]], by_rows: bool) -> None:
    """The first few findings of each rule are kept, by position; the number of the others is reported. So are rows."""
    limit = FindingLimit("a.log", most=3)
    for rule, position in plan:
        if by_rows:
            limit.add_rows(rule, [position], functools.partial(_found, rule))
        else:
            limit.add(_found(rule, position))
    expected = []
    for rule in ("batch-crc", "tail-torn"):
        expected += [position for each, position in plan if each == rule][:3]
    findings = limit.findings()
    assert sorted(found.position for found in findings if found.position is not None) == sorted(expected)
    kept = [found.position for found in findings if found.position is not None]
    assert kept == sorted(kept)
    more = {found.rule: found.reason for found in findings if found.position is None}
    counts = {rule: sum(each == rule for each, _ in plan) for rule in ("batch-crc", "tail-torn")}
    assert more == {rule: f"there are {count - 3} more of these" for rule, count in counts.items() if count > 3}


def test_rows_beyond_the_limit_are_not_explained() -> None:
    """Of a million rows no more are looked at than are kept."""
    limit = FindingLimit("a.log", most=2)
    asked = []

    def explain(row: int) -> Finding:
        asked.append(row)
        return Finding("a.log", "batch-crc", "wrong", row)

    limit.add_rows("batch-crc", range(1_000_000), explain)
    limit.add_rows("batch-crc", range(5), explain)
    assert asked == [0, 1]
    assert limit.findings()[-1].reason == "there are 1000003 more of these"


def test_files_beside_it_have_limits_of_their_own() -> None:
    """Findings of an index come after those of its segment, and do not use up their limit."""
    limit = FindingLimit("a.log", most=1)
    limit.extend([Finding("a.index", "tail-zero", "x", 1), Finding("a.log", "tail-zero", "y", 9)])
    assert [found.path for found in limit.findings()] == ["a.log", "a.index"]
