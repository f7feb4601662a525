# SPDX-License-Identifier: Apache-2.0
"""Wrong queries in SQL: rows that are left out or let in, damage that is not told, a database that is not locked."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, Final

import attrs
import pyarrow.dataset as ds

from raftlog.tools.querying import database, hidden_values, statements
from raftlog.tools.querying.bounds import Filter
from raftlog.tools.querying.scans import Damage, Logs
from raftlog.tools.querying.views import schema_of
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

BOUNDS: Final = "tests/tools/querying/test_bounds.py"
SCANS: Final = "tests/tools/querying/test_scans.py"
QUERY: Final = "tests/tools/querying/test_query.py"
HIDDEN: Final = "tests/tools/querying/test_hidden_values.py"
DATABASE: Final = "tests/tools/querying/test_database.py"


def _moved(first: int, last: int) -> Any:
    def make(right: Wrong) -> Wrong:
        def hints(self: Filter) -> Any:
            found = right(self)
            return attrs.evolve(
                found,
                first_offset=None if found.first_offset is None else found.first_offset + first,
                last_offset=None if found.last_offset is None else found.last_offset + last,
            )

        return hints

    return make


def _one_by_one(self: Filter, **values: Any) -> bool:
    known = (
        ds.field(name).is_null() if value is None else ds.field(name) == value
        for name, value in values.items()
        if name in self._schema.names
    )
    return all(self.allows(each) for each in known)


def _without_the_rest(right: Wrong) -> Wrong:
    """Trust the bounds, and let the rows between them through."""

    def batches(self: Logs, view: str, columns: list[str], expression: Any) -> Iterator[Any]:
        wanted = Filter(expression, schema_of(view))
        for batch in right(self, view, [*columns, *sorted(wanted.columns().difference(columns))], None):
            yield batch.select(columns)

    return batches


def _unlocked() -> None:
    vars(database)["_LOCKS"] = ()


class _InThisThread(Executor):
    """Does its work at once, where it is asked for."""

    def __init__(self, _: int) -> None:
        super().__init__()

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Return the result of a call."""
        done = Future[Any]()
        done.set_result(work(*arguments, **options))
        return done


def _prepared_in_the_main_thread() -> None:
    vars(database)["ThreadPoolExecutor"] = _InThisThread


def _unreadable_is_secret(right: Wrong) -> Wrong:
    return lambda value, **_: right(value)


def _at_each_semicolon(text: str) -> tuple[list[str], str]:
    *found, rest = text.split(";")
    return found, rest


MUTANTS: Final = (
    Mutant(
        "R-query-secret",
        "a query shows no secret unless it is asked for",
        "the view records, which showed salts and keys while metadata did not",
        instead(hidden_values, "with_hidden_secrets", lambda batch, _: batch),
        (f"{HIDDEN}::test_what_only_starts_like_a_secret", f"{HIDDEN}::test_no_secret_is_written"),
    ),
    Mutant(
        "R-query-hides-data",
        "a user's value that only starts like a secret is shown",
        "DECISIONS.md, 84",
        swapped(hidden_values, "may_be_secret", _unreadable_is_secret),
        (f"{HIDDEN}::test_what_only_starts_like_a_secret",),
    ),
    Mutant(
        "R-query-semicolon",
        "text and comments may have a semicolon",
        "the shell, which split there",
        instead(statements, "split_statements", _at_each_semicolon),
        ("tests/tools/querying/test_statements.py::test_a_script_is_split_as_duckdb_does",),
    ),
    Mutant(
        "R-query-first-offset",
        "the first offset that a filter admits is read",
        "Spark's filter pushdown, of which this is a sibling",
        swapped(Filter, "hints", _moved(1, 0)),
        (f"{BOUNDS}::test_hints", f"{BOUNDS}::test_no_offset_within_a_range_is_excluded"),
    ),
    Mutant(
        "R-query-last-offset",
        "the last offset that a filter admits is read",
        "Spark's filter pushdown, of which this is a sibling",
        swapped(Filter, "hints", _moved(0, -1)),
        (f"{BOUNDS}::test_hints", f"{BOUNDS}::test_no_offset_within_a_range_is_excluded"),
    ),
    Mutant(
        "R-query-wide",
        "a filter's bounds leave out what is outside of them",
        "Spark's filter pushdown, of which this is a sibling",
        swapped(Filter, "hints", _moved(-10_000, 10_000)),
        (f"{SCANS}::test_a_range_of_offsets_reads_one_index_interval_more",),
    ),
    Mutant(
        "R-query-alternatives",
        "the values of a log are known together, and an alternative must admit all of them",
        "Arrow's SimplifyWithGuarantee",
        instead(Filter, "allows_values", _one_by_one),
        (f"{BOUNDS}::test_values_of_several_columns_are_known_together",),
    ),
    Mutant(
        "R-query-filter",
        "a data set applies the filter that DuckDB hands over, since DuckDB does not",
        "DuckDB's scan of Arrow data sets",
        swapped(Logs, "_batches", _without_the_rest),
        (f"{SCANS}::test_joins_and_repeated_scans", f"{SCANS}::test_conditions_leave_out_no_row"),
    ),
    Mutant(
        "R-query-silent",
        "damage that has no rows is told",
        "DECISIONS.md, 10",
        missing(Damage, "damage"),
        (f"{QUERY}::test_damage_is_told_and_counts",),
    ),
    Mutant(
        "R-query-unlocked",
        "a query reaches nothing but the views",
        "Securing DuckDB, of its documentation",
        _unlocked,
        (f"{QUERY}::test_a_query_reaches_nothing_else",),
    ),
    Mutant(
        "R-query-main-thread",
        "an interrupt is not an error of DuckDB",
        "DuckDB's messages for an exception in the callback of a data set",
        _prepared_in_the_main_thread,
        (f"{DATABASE}::test_an_interrupt_of_the_preparation_is_no_error",),
    ),
)
