"""Markdown split into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.window.stores.conversation.streaming import MarkdownPieces, split_markdown

LINES = st.sampled_from(
    ["word", "", "", "- item", "* **b** item", "1. one", "2. two", "  more", "    deep", "```", "```py", "~~~", "  ```",
     "| a | b |", "|---|---|", "---", "- - -", "# Head", "> quote", "`code`", "*", "-", "1", "   ", "\t tab", "- ```"]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=14).map("\n".join)


@given(TEXTS)
def test_the_joined_pieces_equal_the_text(text: str) -> None:
    assert "".join(split_markdown(text)) == text


@given(TEXTS, st.data())
def test_appending_changes_the_last_piece_only(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    before, after = split_markdown(text[:at]), split_markdown(text)
    settled = before[:-1]
    assert after[: len(settled)] == settled


@given(TEXTS, st.integers(1, 7))
def test_the_pieces_do_not_depend_on_how_the_text_was_chunked(text: str, step: int) -> None:
    pieces = MarkdownPieces()
    got: tuple[str, ...] = ()
    for at in range(0, len(text), step):
        got = pieces.append(text[at : at + step])
    assert got == split_markdown(text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ()),
        ("One.\n\nTwo.", ("One.\n\n", "Two.")),
        ("\n\nOne.", ("\n\nOne.",)),
        ("Steps:\n- a\n- b\n\n- c\n\n  more\n\nEnd", ("Steps:\n", "- a\n- b\n\n- c\n\n  more\n\n", "End")),
        ("Points:\n* **a** is\n* b", ("Points:\n", "* **a** is\n* b")),
        ("Text\n```py\na\n\nb\n```\nMore", ("Text\n", "```py\na\n\nb\n```\n", "More")),
        ("````\n```\n\nx\n````\n", ("````\n```\n\nx\n````\n",)),
        ("- a\n  ```\n\n  x\n  ```\n\nEnd", ("- a\n  ```\n\n  x\n  ```\n\n", "End")),
        ("- ```\n\n  x\n  ```\n\nEnd", ("- ```\n\n  x\n  ```\n\n", "End")),
        ("One.\n| a | b |\n\n|---|---|\n", ("One.\n| a | b |\n\n", "|---|---|\n")),
        ("See:\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd", ("See:\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "End")),
        ("Use `a`:\n```x``` is inline", ("Use `a`:\n```x``` is inline",)),
        ("Title\n---\ntext\n\n---\n\n# Head\ntext", ("Title\n---\ntext\n\n", "---\n\n", "# Head\ntext")),
        ("    code\n\n    more\n\ntext", ("    code\n\n    more\n\n", "text")),
        ("In 2026.\n2. is no list", ("In 2026.\n2. is no list",)),
    ],
)
def test_each_piece_is_a_whole_markdown_block(text: str, pieces: tuple[str, ...]) -> None:
    assert split_markdown(text) == pieces


def test_a_new_piece_starts_before_its_first_line_is_complete() -> None:
    pieces = MarkdownPieces()
    assert pieces.append("One.\n\nT") == ("One.\n\n", "T")
    assert pieces.append("wo.\n\n- a\n\n-") == ("One.\n\n", "Two.\n\n", "- a\n\n-")
    assert pieces.append("- rule") == ("One.\n\n", "Two.\n\n", "- a\n\n", "-- rule")
