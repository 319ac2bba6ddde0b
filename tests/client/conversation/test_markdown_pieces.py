"""Markdown split into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errand.client.conversation.markdown_pieces import MarkdownPieces, is_cut, split_markdown

LINES = st.sampled_from(
    ["word", "", "", "- item", "* **b** item", "1. one", "2. two", "  more", "    deep", "```", "```py", "~~~", "  ```",
     "| a | b |", "|---|---|", "---", "- - -", "# Head", "> quote", "`code`", "*", "-", "1", "   ", "\t tab", "- ```",
     "<details>", "</details>", "$$", "$$x$$", "\\[", "\\]", "long " * 900, "w" * 9_000]
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
        ("$$\na\n- b\n$$\nEnd", ("$$\na\n- b\n$$\nEnd",)),
        ("$$\na\n\n- b", ("$$\na\n\n", "- b")),
        ("A\n<details>\n\nb\n\n- c\n</details>\nEnd", ("A\n", "<details>\n\nb\n\n- c\n</details>\n", "End")),
        ("<details>\n```\n</details>\n```\nb", ("<details>\n```\n</details>\n```\nb",)),
        ("<details><details></details>\n\na</details>b\nc", ("<details><details></details>\n\na</details>b\n", "c")),
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


def test_a_very_long_paragraph_is_cut_at_lines_and_words() -> None:
    lines, long_line = "a line of text\n" * 1_000, "some words " * 2_000
    assert [len(piece) for piece in split_markdown(lines)] == [4005, 4005, 4005, 2985]
    assert [is_cut(piece) for piece in split_markdown(lines)] == [True, True, True, False]
    assert all(piece.endswith(" ") and len(piece) <= 8_000 for piece in split_markdown(long_line))
    assert "".join(split_markdown(long_line)) == long_line


def test_a_very_long_list_is_cut_at_an_item() -> None:
    pieces = split_markdown("".join(f"{number}. item\n   more\n" for number in range(1, 3_000)))
    assert len(pieces) == 4
    assert all(piece.split()[1:3] == ["item", "more"] for piece in pieces)
    assert is_cut(pieces[0])


def test_long_code_is_not_cut() -> None:
    code = "```\n" + "code\n" * 5_000
    assert split_markdown(code) == (code,)
    assert not is_cut(code)
