# SPDX-License-Identifier: Apache-2.0
"""A report that is gathered in parts is the one that is gathered at once."""

import functools
import itertools
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.rule_status import Checks
from raftlog.tools.auditing.run.run import Account, audit
from raftlog.tools.report.gathering import Gathering
from raftlog.tools.report.page import Report
from tests.golden_files import GOLDEN

SOURCES = [str(GOLDEN / name / "data") for name in ("dynamic-quorum", "data-topics")]


@functools.cache
def judged() -> tuple[Judged, ...]:
    """The judgement of many partitions of real logs, with findings about missing files beside them."""
    assert all(map(Path.exists, map(Path, SOURCES)))
    return tuple(audit(SOURCES, 1))


def plain(gathering: Gathering) -> list[object]:
    """All that a page is made of."""
    worst = (gathering.findings, gathering.files, gathering.logs, gathering.places, gathering.volumes)
    return [
        gathering.account,
        list(gathering.checks.results(gathering.account)),
        list(gathering.first_of_rule.items()),
        *([each.values(), each.offered] for each in worst),
        gathering.sound_file_count,
        gathering.clean_places,
        gathering.clean_place_count,
        list(gathering.file_sizes.items()),
        list(gathering.batch_sizes.items()),
    ]


@settings(deadline=None, max_examples=6)
@given(cuts=st.sets(st.integers(0, 60), max_size=8))
def test_merging_in_any_division_is_adding_all(cuts: set[int]) -> None:
    """However what was judged is divided, merging account, checks and gathering gives what adding all of it gives."""
    everything = judged()
    whole, merged = Gathering(), Gathering()
    account, checks = Account(), Checks()
    for each in everything:
        whole.add(each)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(everything)), len(everything)]
    for start, end in itertools.pairwise(bounds):
        gathering, part_account, part_checks = Gathering(), Account(), Checks()
        for each in everything[start:end]:
            gathering.add(each)
            part_account.add(each)
            part_checks.add(each)
        merged.merge(gathering)
        account.merge(part_account)
        checks.merge(part_checks)

    assert plain(merged) == plain(whole)
    assert (account, checks) == (whole.account, whole.checks)
    assert list(account.by_rule) == list(whole.account.by_rule)


def test_a_page_that_is_merged() -> None:
    """A page merged from parts has the same text as one that got everything itself."""
    whole, merged = Report(SOURCES), Report(SOURCES)
    for each in judged():
        whole.add(each)
        part = merged.blank()
        part.add(each)
        merged.merge(part)

    assert merged.html("run") == whole.html("run")
