# SPDX-License-Identifier: Apache-2.0
"""Markup: any text is shown, and is never markup."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.report.markup import Markup, element, escaped, joined, visible
from tests.tools.report.page_outline import outline

ANY_TEXT = st.text(st.characters(codec=None), max_size=80) | st.text("<>&\"'\\ab\x00\n\u202e\ud800", max_size=80)


@given(text=ANY_TEXT)
def test_any_text_is_inert(text: str) -> None:
    """A text in an element, or in an attribute, is read back as what is visible of it, and no element comes of it."""
    root = outline(element("p", text, title=text))
    assert [node.name for node in root.every()] == ["p"]
    assert root.words == root.children[0].attributes["title"] == visible(text)


@given(text=ANY_TEXT)
def test_shown_text_is_visible_and_encodable(text: str) -> None:
    """No control or formatting character is left in what is shown, and it is Unicode."""
    shown = visible(text)
    assert {unicodedata.category(each) for each in shown}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert not any(unicodedata.bidirectional(each) in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI"} for each in shown)
    assert shown.encode().decode() == shown


@given(text=st.text("abc", min_size=1, max_size=50), limit=st.integers(1, 60))
def test_a_long_text_is_cut_and_counted(text: str, limit: int) -> None:
    """A text that is longer than the limit ends with how much is missing."""
    shown = visible(text, limit)
    assert shown.startswith(text[:limit])
    assert (shown == text) == (len(text) <= limit)


def test_markup_is_kept() -> None:
    """Markup inside markup is not escaped again, nothing is left out but None, and void elements are not closed."""
    made = element("td", Markup("<b>1</b>"), None, "<", element("br"), class_="n", data_x=None, aria_label=2)
    assert made == '<td class="n" aria-label="2"><b>1</b>&lt;<br></td>'
    assert joined(["a", None, escaped("&")]) == "a&amp;"
