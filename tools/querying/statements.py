# SPDX-License-Identifier: Apache-2.0
"""Splits a script into statements where DuckDB's own tokens say that one ends, and not inside of text or a comment."""

from typing import Final

import duckdb

_END: Final = b";"


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements of a script that end with ``;``, without it, and what follows the last one.

    Statements of nothing but comments are left out; so is a rest without anything in it but whole comments.
    """
    replaced = text.encode("utf-8", "replace")  # Each character stays one: a lone surrogate becomes a question mark.
    found: list[str] = []
    start = 0
    has_words = False
    for position, kind in duckdb.tokenize(replaced.decode()):
        if replaced[position : position + 1] != _END or kind != duckdb.token_type.operator:
            has_words |= kind != duckdb.token_type.comment
            continue
        end = len(replaced[:position].decode())
        if has_words:
            found.append(text[start:end])
        start, has_words = end + 1, False
    rest = text[start:]
    return found, rest if has_words or not _is_whole(rest) else ""


def _is_whole(comments: str) -> bool:
    """Whether comments end by themselves, so that a statement could follow."""
    tokens = duckdb.tokenize(f"{comments}\n;".encode("utf-8", "replace").decode())
    return bool(tokens) and tokens[-1][1] == duckdb.token_type.operator
