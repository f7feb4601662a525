# SPDX-License-Identifier: Apache-2.0
"""A script is split where DuckDB itself ends statements."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.querying.statements import split_statements

PIECES = st.sampled_from(
    [
        *("SELECT ';' AS a", "SELECT 1", 'SELECT "a;" FROM (SELECT 1 AS "a;")', "SELECT $$;'$$", "SELECT $x$;$$;$x$"),
        *(
            "SELECT 'ä😀;'",
            "SELECT E'\\';'",
            "SELECT 'it''s;'",
            "SELECT 1 -- ;",
            "SELECT 1 /* ; /* ; */ */",
            "SELECT\n2",
        ),
    ]
)
BLANKS = st.sampled_from(["", " ", "\n", "-- ;\n", "/* ; */", "\n-- ä;\n"])


@given(st.lists(st.tuples(BLANKS, PIECES, st.sampled_from(["\n", " \n"])), max_size=5), BLANKS, PIECES | st.just(""))
def test_a_script_is_split_as_duckdb_does(parts: list[tuple[str, str, str]], blank: str, rest: str) -> None:
    """Statements and their number are those of its parser; what has no end yet is the rest."""
    script = "".join(f"{before}{sql}{after};" for before, sql, after in parts)
    expected = [each.query for each in duckdb.connect().extract_statements(script)]
    found, left = split_statements(f"{script}{blank}{rest}\n")
    assert [each.strip() for each in found] == [each.strip().rstrip(";").strip() for each in expected]
    assert left.strip() == (f"{blank}{rest}".strip() if rest else "")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT 'a;\n", "SELECT 'a;\n"),
        ('SELECT 1; SELECT "a;', ' SELECT "a;'),
        ("SELECT 1; /* ;", " /* ;"),
        ("SELECT $$;", "SELECT $$;"),
        ("SELECT 1; -- ;", ""),
        ("SELECT 1; /* ; */ ", ""),
        ("", ""),
        (";;", ""),
    ],
)
def test_what_is_not_finished_waits(text: str, rest: str) -> None:
    """Text, names and comments that are open; a comment that is whole does not wait for anything."""
    assert split_statements(text)[1] == rest


def test_characters_that_are_none_stay_as_they_are() -> None:
    """Bytes that are no UTF-8 come from standard input as halves of characters; the query refuses them."""
    assert split_statements("SELECT 'ä\udcff;'; x") == (["SELECT 'ä\udcff;'"], " x")
