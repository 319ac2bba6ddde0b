"""Rows of messages and replies."""

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QContextMenuEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QMenu, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.window.rows.base import RowView, message_markdown
from app.window.rows.code_view import CodeView, HighlightedRun, highlight
from app.window.rows.reply import Fence, parse_fence
from app.window.rows.row import Row, Speaker
from app.window.rows.text_view import TextView
from app.window.theme.theme import Theme
from tests.support.rows import KeptActions, image, node, notice, reply, thinking, user
from tests.window.rows.conftest import WIDTH, MakeBlock, part


def test_a_persons_message_is_shown_literally(show: MakeBlock) -> None:
    block = show(user("# not a heading\n<b>no tag</b> & *no stars*"))
    text = part(block, TextView, "Your message")
    assert text.toPlainText() == "# not a heading\n<b>no tag</b> & *no stars*"


def test_mentions_are_highlighted_and_mail_addresses_are_not(show: MakeBlock, theme: Theme) -> None:
    named = (Speaker("Ada", "teal"), Speaker("Ada 2", "violet"))
    block = show(replace(user("@ada and @Ada 2, not bob@ada.example or @Adam"), mentions=named))
    document = part(block, TextView, "Your message").document()
    teal, violet = (QColor(theme.person(one.color)).name() for one in named)
    assert [words for words, colour in coloured(document) if colour == teal] == ["@ada"]
    assert [words for words, colour in coloured(document) if colour == violet] == ["@Ada 2"]


def coloured(document: QTextDocument) -> list[tuple[str, str]]:
    """The text of a line in pieces of one colour."""
    pieces = document.begin().begin()
    found: list[tuple[str, str]] = []
    while not pieces.atEnd():
        piece = pieces.fragment()
        found.append((piece.text(), piece.charFormat().foreground().color().name()))
        pieces += 1
    return found


def test_a_short_message_has_a_small_bubble_on_the_right(show: MakeBlock) -> None:
    text = part(show(user("Hello")), TextView, "Your message")
    assert text.width() < 100
    assert text.x() + text.width() > WIDTH - 40


def test_a_long_word_is_broken_and_not_cut(show: MakeBlock) -> None:
    block = show(user("x" * 2_000))
    assert part(block, TextView, "Your message").width() <= WIDTH
    assert block.height() > 200


def test_a_reply_is_shown_as_markdown_and_copied_as_written(show: MakeBlock) -> None:
    block = show(reply("Some **bold** text"))
    assert part(block, TextView, "Reply").toPlainText() == "Some bold text"
    assert block.markdown() == "Some **bold** text"


def test_copy_takes_the_whole_message_not_one_piece(show: MakeBlock) -> None:
    assert message_markdown(node("n", "One.\n\nTwo.\n")) == "One.\n\nTwo."


def test_html_in_a_reply_stays_text(show: MakeBlock) -> None:
    text = part(show(reply("a <script>alert(1)</script> b")), TextView, "Reply")
    assert "<script>" in text.toPlainText()


@pytest.mark.parametrize("address", ["file:///etc/passwd", "http://127.0.0.1:1/x.png"])
def test_an_image_url_in_a_reply_is_never_fetched(show: MakeBlock, address: str) -> None:
    text = part(show(reply(f"![x]({address})")), TextView, "Reply")
    kind = QTextDocument.ResourceType.ImageResource.value
    assert text.loadResource(kind, QUrl(address)) is None


def test_a_link_is_passed_to_the_row_actions(show: MakeBlock, actions: KeptActions) -> None:
    text = part(show(reply("[here](https://example.org/a?b=1)")), TextView, "Reply")
    text.anchorClicked.emit(QUrl("https://example.org/a?b=1"))
    assert actions.links == ["https://example.org/a?b=1"]


def test_a_fence_is_a_card_with_its_language_and_a_copy_button(show: MakeBlock, actions: KeptActions) -> None:
    block = show(reply("```python\nprint(1)\n```"))
    assert part(block, CodeView, "Code, python").toPlainText() == "print(1)"
    part(block, QToolButton, "Copy code").click()
    assert actions.copied == ["print(1)"]
    part(block, QToolButton, "Copied")


def test_a_reused_row_view_shows_nothing_of_the_previous_row(show: MakeBlock) -> None:
    block = show(reply("```python\nprint(1)\n```", step=3))
    block.set_row(reply("Prose."))
    texts = [view for view in block.findChildren(TextView) if view.isVisible()]
    assert [view.toPlainText() for view in texts] == ["Prose."]
    before = block.height_for(WIDTH)
    block.set_row(reply("```python\nprint(1)\n```"))
    block.set_row(reply("Prose."))
    assert block.height_for(WIDTH) == before


def test_streamed_code_ends_like_code_shown_at_once(show: MakeBlock) -> None:
    code = "def f():\n    return 1\n\n\nprint(f())"
    block = show(reply("```python\n", streaming=True))
    for end in range(1, len(code) + 1):
        block.set_row(reply(f"```python\n{code[:end]}", streaming=True))
    assert part(block, CodeView, "Code, python").toPlainText() == code
    block.set_row(reply(f"```python\n{code}\n```"))
    assert part(block, CodeView, "Code, python").toPlainText() == code
    assert block.height_for(WIDTH) == show(reply(f"```python\n{code}\n```")).height()


@pytest.mark.parametrize(
    ("markdown", "fence"),
    [
        ("```python\nx = 1\n```", Fence("python", "x = 1")),
        ("```\nx\n```\n", Fence("", "x")),
        ("~~~~ {.rust}\na\n~~~\n~~~~", Fence("rust", "a\n~~~")),
        ("```js title=x\n  a\n", Fence("js", "  a")),
        ("```", Fence("", "")),
        ("```sh\n```", Fence("sh", "")),
        ("text\n```\nx\n```", None),
        ("`code`", None),
        ("", None),
    ],
)
def test_a_fence_is_recognised_by_its_first_line(markdown: str, fence: Fence | None) -> None:
    assert parse_fence(markdown) == fence


def test_highlighting_keeps_every_character() -> None:
    code = 'def f(x):\n    """Doc."""\n\n    return "é" + str(1)  # why'
    assert "".join(run.text for run in highlight(code, "python")) == code
    assert {run.kind for run in highlight(code, "python")} >= {"keyword", "string", "number", "name", "comment"}
    assert highlight(code, "no such language") == (HighlightedRun(code, "text"),)


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("\n " * 10_000, "c"),
        ("=>" * 10_000, "ini"),
        ("{ " * 10_000, "console"),
        ("(" * 4_000, "ng2"),
        ("\r\n " * 6_000, "c"),
    ],
)
def test_code_that_is_too_slow_to_highlight_is_shown_plain_at_once(code: str, language: str) -> None:
    started = time.monotonic()
    assert "".join(run.text for run in highlight(code, language)) in (code, code.replace("\r\n", "\n"))
    assert time.monotonic() - started < 5


def test_thinking_is_collapsed_until_it_is_expanded(show: MakeBlock) -> None:
    block = show(thinking("I wonder **why**."))
    closed = block.height_for(WIDTH)
    assert not [view for view in block.findChildren(TextView) if view.isVisible()]
    block.set_open(True)
    block.set_row(thinking("I wonder **why**."))
    assert part(block, TextView, "Thinking").toPlainText() == "I wonder why."
    assert block.height_for(WIDTH) > closed


def test_collapsed_thinking_previews_its_beginning_without_markup_on_one_line(show: MakeBlock) -> None:
    block = show(thinking("**First**, the `shop`.\n\n- Then *all* else"))
    line = part(block, QAbstractButton, "Thought First, the shop. Then all else")
    assert block.height_for(WIDTH) == line.sizeHint().height()


def test_a_notice_is_text_that_can_be_selected(show: MakeBlock) -> None:
    text = part(show(notice("error", "The model refused the key.\x1b[31m")), TextView, "Notice")
    assert text.toPlainText() == "The model refused the key."
    assert text.cursor_between(4, 9).selectedText() == "model"


def test_an_unreadable_image_shows_an_error(show: MakeBlock) -> None:
    for data in ("not base64!", "AAAA", ""):
        block = show(image(data))
        assert part_texts(block) == ["This picture (image/png) cannot be shown."]
    assert part_texts(show(image())) == []


def test_an_image_is_enlarged_by_a_click_and_closed_by_escape(show: MakeBlock) -> None:
    block = show(image())
    QTest.keyClick(part(block, QAbstractButton, "Picture, enlarge"), Qt.Key.Key_Space)
    (dialog,) = block.findChildren(QDialog)
    assert dialog.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def part_texts(block: RowView[Row]) -> list[str]:
    return [label.text() for label in block.findChildren(QLabel) if label.isVisible()]


def test_the_menu_copies_the_message(show: MakeBlock, actions: KeptActions) -> None:
    block = show(reply("Some **bold** text"))
    middle = block.rect().center()
    QApplication.sendEvent(block, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, block.mapToGlobal(middle)))
    (menu,) = (menu for menu in block.findChildren(QMenu) if menu.title() == "")
    entries = [entry for entry in menu.actions() if not entry.isSeparator()]
    names = ["Copy message as Markdown", "Retry", "Retry with", "Fork here", "Keep in context"]
    assert [entry.text() for entry in entries] == names
    entries[0].trigger()
    assert actions.copied == ["Some **bold** text"]


def test_streamed_thinking_grows_in_place_and_ends_as_markdown(show: MakeBlock) -> None:
    block = show(thinking("", streaming=True))
    block.set_open(True)
    thought = "I wonder **why**.\n\nAnd how."
    for end in range(1, len(thought) + 1):
        block.set_row(thinking(thought[:end], streaming=True))
    text = part(block, TextView, "Thinking")
    assert text.toPlainText() == thought
    block.set_row(thinking("Another", streaming=True))
    assert text.toPlainText() == "Another"
    block.set_row(thinking(thought))
    assert text.toPlainText() == "I wonder why.\nAnd how."


def test_a_long_message_is_shortened_and_can_be_expanded(show: MakeBlock, qtbot: QtBot) -> None:
    text = "\n".join(f"line {number}" for number in range(500))
    block = show(user(text))
    view = part(block, TextView, "Your message")
    assert view.toPlainText().endswith("line 39…")
    closed = block.height()
    with qtbot.waitSignals([block.resized, block.opened]):
        part(block, QPushButton, f"Show all {len(text):,} characters").click()
    assert view.toPlainText() == text
    assert block.height_for(WIDTH) > 5 * closed
    part(block, QPushButton, "Show less").click()
    assert block.height_for(WIDTH) == closed
