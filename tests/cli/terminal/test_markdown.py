"""Markdown in the terminal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errand.cli.terminal.markdown import MarkdownStream
from errand.cli.terminal.style import PLAIN, Style
from errand.cli.terminal.text import columns, plain

COLOUR = Style(colour=True, unicode=True)
_PIECES = [
    "word ",
    "a",
    "**",
    "*",
    "`",
    "_",
    "# ",
    "- ",
    "12. ",
    "> ",
    "|",
    "---",
    "[a](b)",
    "[x] ",
    "[ ]",
    " ",
    "\n",
    "\n\n",
    "```\n",
]


def shown(text: str, width: int = 40, style: Style = COLOUR) -> str:
    prose = MarkdownStream(style, width)
    return prose.feed(text) + prose.end()


def read(text: str, width: int = 40) -> str:
    """The text without colours."""
    return plain(shown(text, width))


def test_marks_inside_a_line_become_colours() -> None:
    assert shown("**bold** `code` *it* plain") == "\x1b[1mbold\x1b[0m \x1b[36mcode\x1b[0m \x1b[3mit\x1b[0m plain"


def test_what_only_looks_like_a_mark_stays() -> None:
    for text in ("2 * 3 * 4", "snake_case_name", "a ** b", "an open `mark", "f(*args, **kwargs)", "array[0] (x)"):
        assert read(text) == text


def test_headings_lists_quotes_and_rules_are_shown_by_their_form() -> None:
    text = "## A title\n\n- one\n  * two\n3. three\n> said\n\n---\nend"
    assert read(text) == "A title\n\n• one\n  • two\n3. three\n│ said\n\n--------------------\nend"


def test_a_long_line_is_broken_between_words_and_goes_on_below_its_beginning() -> None:
    assert read("- one two **three four** five", 14) == "• one two\n  three four\n  five"


def test_code_blocks_are_verbatim_and_stand_in() -> None:
    assert (
        read("```python\ndef f(**a):\n\n    return 1 # *\n```\nend", 10) == "  def f(**a):\n\n      return 1 # *\nend"
    )


def test_links_name_their_address() -> None:
    assert read("see [the docs](https://e.org)") == "see the docs (https://e.org)"
    assert read("[https://e.org](https://e.org)") == "https://e.org"


def test_tables_are_aligned_where_they_fit_and_left_as_they_are_where_not() -> None:
    table = "| file | lines |\n|---|---|\n| a.py | 2 |\n| `long.py` | **15** |\n"
    assert read(table) == "file     lines\n-------  -----\na.py     2\nlong.py  15\n"
    assert read(table, 12) == table


def test_columns_are_aligned_as_the_colons_say() -> None:
    table = "| name | lines | ok |\n|:---|---:|:-:|\n| a.py | 2 | yes |\n| b.py | 150 | no |\n"
    assert read(table) == "name  lines  ok\n----  -----  ---\na.py      2  yes\nb.py    150  no\n"


def test_items_of_a_task_list_have_a_box_or_a_tick() -> None:
    assert read("- [ ] open\n* [x] done\n- [x](a) link\n- [] none\n") == "☐ open\n✓ done\n• x (a) link\n• [] none\n"


def test_without_colours_the_text_stays_as_it_was_written() -> None:
    text = "## A title\n- **one** `two`\n"
    assert shown(text, style=PLAIN) == text


def test_words_are_shown_as_they_arrive_and_marked_text_when_it_is_closed() -> None:
    prose = MarkdownStream(COLOUR, 40)
    pieces = ["Hel", "lo wor", "ld **bo", "ld te", "xt** and", " more"]
    assert [plain(prose.feed(piece)) for piece in pieces] == ["", "Hello", " world", "", " bold text", " and"]
    assert prose.end() == " more"


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_output_is_independent_of_chunk_boundaries(text: str) -> None:
    prose = MarkdownStream(COLOUR, 20)
    letter_by_letter = "".join(prose.feed(letter) for letter in text) + prose.end()
    assert letter_by_letter == shown(text, 20)


@given(st.text(alphabet="ab *_`[]()#->|\n0.", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    letters = [letter for letter in text if letter in "ab"]
    fenced = "```" in text
    assert fenced or [letter for letter in read(text) if letter in "ab"] == letters


def test_ten_thousand_lines_are_quick_and_narrow() -> None:
    lines = read("a line of **some** words that is too long for its width\n" * 10_000, 30).splitlines()
    assert len(lines) == 20_000
    assert max(map(columns, lines)) <= 30


@pytest.mark.parametrize("piece", ["[", "*a ", "**", "`a", "_a ", "[a](", "- ", "| "])
def test_a_long_line_of_open_marks_is_quick(piece: str) -> None:
    text = piece * 5_000
    prose = MarkdownStream(COLOUR, 80)
    letters = "".join(prose.feed(text[at : at + 100]) for at in range(0, len(text), 100)) + prose.end()
    assert letters.count("a") == text.count("a")
