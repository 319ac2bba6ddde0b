"""Markdown beyond what Qt reads: a few tags, footnotes, quotations, tasks, diffs, and code that is highlighted."""

from dataclasses import replace

import pytest
from PySide6.QtGui import QColor, QFont, QImage, QTextBlock, QTextCharFormat, QTextCursor, QTextDocument, QTextTable
from PySide6.QtWidgets import QWidget

from errand.client.conversation.rows import ReplyRow
from errand.window.rows.code_view import CodeView
from errand.window.rows.disclosure import DisclosureButton
from errand.window.rows.markdown import fragment_markdown, markdown_document
from errand.window.rows.markup.decoration import MarkdownDocument, QuoteBar
from errand.window.rows.markup.source import mark_up
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from tests.support.rows import reply
from tests.window.rows.conftest import WIDTH, MakeRowView, part

Align = QTextCharFormat.VerticalAlignment


def formats(document: QTextDocument) -> dict[str, QTextCharFormat]:
    """The formats of a document's fragments by their text."""
    by_text: dict[str, QTextCharFormat] = {}
    block = document.begin()
    while block.isValid():
        pieces = block.begin()
        while not pieces.atEnd():
            by_text[pieces.fragment().text()] = pieces.fragment().charFormat()
            pieces += 1
        block = block.next()
    return by_text


def copied(document: QTextDocument) -> str:
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    return fragment_markdown(cursor)


def has_colour(widget: QWidget, colour: str) -> bool:
    image: QImage = widget.grab().toImage()
    rgb = QColor(colour).rgb()
    return any(image.pixel(x, y) == rgb for y in range(image.height()) for x in range(0, min(image.width(), 40)))


def test_tags_of_the_allow_list_are_formats(theme: Theme) -> None:
    text = "H<sub>2</sub>O, mc<sup>2</sup>, <b>bold</b>, <i>italic</i>, <kbd>Ctrl</kbd>"
    by_text = formats(markdown_document(text, theme))
    assert markdown_document(text, theme).toPlainText() == "H2O, mc2, bold, italic, Ctrl"
    assert by_text["2"].verticalAlignment() == Align.AlignSuperScript
    assert by_text["bold"].fontWeight() == QFont.Weight.Bold
    assert by_text["italic"].fontItalic()
    assert by_text["Ctrl"].background().color() == QColor(theme.tokens.hairline)


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        "<img src='file:///etc/passwd'>",
        "<a href='http://127.0.0.1:1'>link</a>",
        "<b onclick='x()'>b</b>",
        "<b>never closed",
        "closed</b> only",
        "`<b>code</b>`",
    ],
)
def test_all_other_html_stays_text(theme: Theme, html: str) -> None:
    assert markdown_document(html, theme).toPlainText() == html.strip("`")


def test_a_break_is_a_new_line_also_in_a_table(theme: Theme) -> None:
    assert markdown_document("one<br>two", theme).toPlainText() == "one\ntwo"
    assert "one\ntwo" in markdown_document("| a |\n|---|\n| one<br/>two |\n", theme).toPlainText()


def test_a_text_with_the_markers_own_characters_is_shown_as_it_is(theme: Theme) -> None:
    text = "\uee02 and <b>bold</b>"
    assert markdown_document(text, theme).toPlainText() == text


def test_footnotes_are_raised_labels_and_small_paragraphs(theme: Theme) -> None:
    document = markdown_document("A claim.[^1]\n\n[^1]: The *source*.\n[^long-name]: Another.", theme)
    assert document.toPlainText() == "A claim.1\n1 The source.\nlong-name Another."
    assert formats(document)["1"].verticalAlignment() == Align.AlignSuperScript
    assert formats(document)[" Another."].foreground().color() == QColor(theme.tokens.muted)


def test_the_head_of_a_table_is_aligned_like_its_column(theme: Theme) -> None:
    document = markdown_document("| a | b |\n|:-:|--:|\n| c | d |\n", theme)
    table = next(frame for frame in document.rootFrame().childFrames() if isinstance(frame, QTextTable))
    for column in (0, 1):
        head, cell = (table.cellAt(row, column).firstCursorPosition().blockFormat().alignment() for row in (0, 1))
        assert head == cell
    assert table.cellAt(0, 0).firstCursorPosition().blockFormat().alignment() != head


def test_a_quotation_has_a_bar_at_each_level(show: MakeRowView, theme: Theme) -> None:
    view = part(show(reply("> one\n>\n> > two\n>\n> three")), TextView, "Reply")
    document = view.document()
    assert isinstance(document, MarkdownDocument)
    assert document.bars == (QuoteBar(0, 2, 1), QuoteBar(1, 1, 2))
    assert has_colour(view, theme.tokens.outline)
    assert not has_colour(part(show(reply("one")), TextView, "Reply"), theme.tokens.outline)


def test_a_task_has_a_box_and_a_rule_the_colour_of_hairlines(show: MakeRowView, theme: Theme) -> None:
    assert has_colour(part(show(reply("- [x] done\n- [ ] open\n")), TextView, "Reply"), theme.tokens.accent)
    assert has_colour(part(show(reply("---\n")), TextView, "Reply"), theme.tokens.hairline)


@pytest.mark.parametrize(
    "text",
    [
        "H<sub>2</sub>O and <kbd>Ctrl</kbd>",
        "a claim[^1] and **bold** ~~struck~~",
        "- [x] done\n- [ ] open",
        "3. three\n4. four",
        r"a formula $\frac{a}{b}$ and \(x_1\)",
    ],
)
def test_copied_text_is_the_markdown_it_came_from(theme: Theme, text: str) -> None:
    assert copied(markdown_document(text, theme)) == text


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("$5 and $10", []),
        ("US$5 and CA$6", []),
        ("costs $5, or ($6)", []),
        ("$5 for me, 6$ for you", []),
        ("$HOME and $PATH, $HOME/$USER", []),
        (r"\$x$ and `$y$`", []),
        ("```\n$x$\n```", []),
        ("see [it](https://example.org/$a$)", []),
        ("the answer is $5$.", ["5"]),
        ("$x$, $$y$$", ["x", "y"]),
        ("\\(a\\) and \\[\nb \\\\[2pt] c\n\\]", ["a", "b \\\\[2pt] c"]),
        ("| $a_1$ | $b_1$ |", ["a_1", "b_1"]),
    ],
)
def test_formulas_are_told_from_amounts_of_money(text: str, formulas: list[str]) -> None:
    assert [formula.tex for formula in mark_up(text).formulas] == formulas


def test_a_diff_is_coloured_by_line(show: MakeRowView, theme: Theme) -> None:
    view = part(show(reply("```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n```\n")), CodeView, "Code, diff")
    backgrounds = {block.text(): block.blockFormat().background().color() for block in blocks(view.document())}
    assert backgrounds["-old"] == QColor(theme.tokens.failed_soft)
    assert backgrounds["+new"] == QColor(theme.tokens.done_soft)
    assert backgrounds["+++ b"] == backgrounds[" same"] == backgrounds["--- a"]


def blocks(document: QTextDocument) -> list[QTextBlock]:
    return [document.findBlockByNumber(number) for number in range(document.blockCount())]


def test_code_is_highlighted_while_it_streams(show: MakeRowView, theme: Theme) -> None:
    code = (
        'def total(a):  # 🦉 é\n    """Doc\n    string."""\n    return "a" + a  # done\n\n\nclass Next:\n    pass\nx\n'
    )
    row = reply("```python\n", streaming=True)
    assert isinstance(row, ReplyRow)
    row_view = show(row)
    for end in range(1, len(code) + 1):
        row_view.set_row(replace(row, markdown=f"```python\n{code[:end]}"))
    view = part(row_view, CodeView, "Code, python")
    streamed = looks(view.document())
    row_view.set_row(replace(row, markdown=f"```python\n{code}```\n", streaming=False))
    assert streamed == looks(view.document())


def looks(document: QTextDocument) -> list[str]:
    """The colour of each character but blanks."""
    cursor, colours = QTextCursor(document), list[str]()
    for position in range(document.characterCount() - 1):
        cursor.setPosition(position + 1)
        if document.characterAt(position).strip():
            colours.append(cursor.charFormat().foreground().color().name())
    return colours


DETAILS = (
    "<details>\n<summary>More **here**</summary>\n\nText\n\n```python\nx = 1\n```\n\n"
    "<details>\ninner\n</details>\n</details>\n"
)


def test_details_are_a_line_that_opens(show: MakeRowView) -> None:
    row_view = show(reply(DETAILS))
    line = part(row_view, DisclosureButton, "More here")
    folded = row_view.height_for(WIDTH)
    assert not any(view.isVisible() for view in row_view.findChildren(TextView))
    opened: list[bool] = []
    row_view.opened.connect(opened.append)
    line.click()
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    assert row_view.height() > 3 * folded
    assert part(row_view, TextView, "Reply").toPlainText() == "Text"
    assert part(row_view, CodeView, "Code, python").toPlainText() == "x = 1"
    part(row_view, DisclosureButton, "Details")
    line.click()
    assert opened == [True, False]
    assert row_view.height_for(WIDTH) == folded


def test_details_that_stand_open_are_folded_by_a_click(show: MakeRowView) -> None:
    row_view = show(reply("<details open>\n<summary>S</summary>\nText\n</details>"))
    assert part(row_view, TextView, "Reply").toPlainText() == "Text"
    part(row_view, DisclosureButton, "S").click()
    assert not any(view.isVisible() for view in row_view.findChildren(TextView))


def test_a_row_view_shows_no_details_of_the_previous_row(show: MakeRowView) -> None:
    row_view = show(reply(DETAILS))
    row_view.set_row(reply("Text"))
    assert [line for line in row_view.findChildren(DisclosureButton) if line.isVisible()] == []
    row_view.set_row(reply("<details>\n" * 30 + "deep\n"))
    row_view.height_for(WIDTH)


def test_a_text_too_long_to_be_styled_grows_at_its_end(show: MakeRowView) -> None:
    row = reply("| a | b |\n|---|---|\n" + "| c | d |\n" * 3_000, streaming=True)
    assert isinstance(row, ReplyRow)
    row_view = show(row)
    view = part(row_view, TextView, "Reply")
    document = view.document()
    row_view.set_row(replace(row, markdown=f"{row.markdown}| e | f |"))
    assert view.document() is document
    assert view.toPlainText() == f"{row.markdown}| e | f |"
    row_view.set_row(reply("Short"))
    assert view.toPlainText() == "Short"
