# SPDX-License-Identifier: Apache-2.0
"""The word that a user meant who mistyped one."""

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like another one; None if none is like it.

    Args:
        word: what the user typed.
        known: the words that there are.
    """
    import difflib  # Takes 5 ms to import, and is needed only for a mistake.

    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def unknown_word(kind: str, word: str, known: Iterable[str]) -> str:
    """Return the message for a word that does not exist: with the one that was meant, or else with all of them.

    Args:
        kind: what the word should have named, such as ``verb``.
        word: what the user typed.
        known: the words that there are.
    """
    words = list(known)
    near = suggestion(word, words)
    hint = f"did you mean {near}?" if near is not None else f"there are {', '.join(words)}"
    return f"no {kind} is called {word!r}; {hint}"
