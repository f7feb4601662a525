# SPDX-License-Identifier: Apache-2.0
"""Finds the word that a user meant but mistyped."""

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to another one; None if none is similar.

    Args:
        word: what the user typed.
        known: the valid words.
    """
    import difflib  # Takes 5 ms to import, and is needed only for a mistake.

    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def unknown_word(kind: str, word: str, known: Iterable[str]) -> str:
    """Return the message for a word that does not exist, with the most similar word, or else with all words.

    Args:
        kind: what the word should have named, such as ``verb``.
        word: what the user typed.
        known: the valid words.
    """
    words = list(known)
    near = suggestion(word, words)
    hint = f"did you mean {near}?" if near is not None else f"there are {', '.join(words)}"
    return f"no {kind} is called {word!r}; {hint}"
