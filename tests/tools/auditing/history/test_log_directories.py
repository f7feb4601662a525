# SPDX-License-Identifier: Apache-2.0
"""Replicas are separated by their clusters."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.auditing.history.log_directories import by_cluster


@given(st.lists(st.sampled_from([None, "a", "b"])))
def test_a_value_without_cluster_id_belongs_to_the_only_cluster(cluster_ids: list[str | None]) -> None:
    """Every value is with those of its cluster; those that name none are with the others, unless these are of two."""
    named = {each for each in cluster_ids if each is not None}
    of_none = named.pop() if len(named) == 1 else ""

    found = by_cluster(list(enumerate(cluster_ids)), lambda value: value[1])

    assert sum(map(len, found.values())) == len(cluster_ids)
    for cluster_id, values in found.items():
        assert values == [value for value in enumerate(cluster_ids) if (value[1] or of_none) == cluster_id]
