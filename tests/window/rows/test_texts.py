"""Rows of messages and replies."""

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QColor, QContextMenuEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLabel, QMenu, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row, Speaker
from errand.client.texts.messages import message_markdown
from errand.window.rows.base import RowView
from errand.window.rows.code_view import CodeView
from errand.window.rows.markdown_view import Fence, parse_fence
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.widgets.highlighting import HighlightedRun, highlight
from tests.support.row_actions import KeptActions
from tests.support.rows import image, node, notice, reply, thinking, user
from tests.window.rows.conftest import WIDTH, MakeRowView, part


def test_a_persons_message_is_shown_literally(show: MakeRowView) -> None:
    row_view = show(user("# not a heading\n<b>no tag</b> & *no stars*"))
    text = part(row_view, TextView, "Your message")
    assert text.toPlainText() == "# not a heading\n<b>no tag</b> & *no stars*"


def test_mentions_are_highlighted_and_mail_addresses_are_not(show: MakeRowView, theme: Theme) -> None:
    named = (Speaker("Ada", "teal"), Speaker("Ada 2", "violet"))
    row_view = show(replace(user("@ada and @Ada 2, not bob@ada.example or @Adam"), mentions=named))
    document = part(row_view, TextView, "Your message").document()
    teal, violet = (QColor(theme.person(speaker.color)).name() for speaker in named)
    assert [mention for mention, colour in coloured(document) if colour == teal] == ["@ada"]
    assert [mention for mention, colour in coloured(document) if colour == violet] == ["@Ada 2"]


def coloured(document: QTextDocument) -> list[tuple[str, str]]:
    """The text of a line in pieces of one colour."""
    pieces = document.begin().begin()
    coloured_texts: list[tuple[str, str]] = []
    while not pieces.atEnd():
        piece = pieces.fragment()
        coloured_texts.append((piece.text(), piece.charFormat().foreground().color().name()))
        pieces += 1
    return coloured_texts


def test_a_short_message_has_a_small_bubble_on_the_right(show: MakeRowView) -> None:
    text = part(show(user("Hello")), TextView, "Your message")
    assert text.width() < 100
    assert text.x() + text.width() > WIDTH - 40


def test_a_long_word_is_broken_and_not_cut(show: MakeRowView) -> None:
    row_view = show(user("x" * 2_000))
    assert part(row_view, TextView, "Your message").width() <= WIDTH
    assert row_view.height() > 200


def test_a_reply_is_shown_as_markdown_and_copied_as_written(show: MakeRowView) -> None:
    row_view = show(reply("Some **bold** text"))
    assert part(row_view, TextView, "Reply").toPlainText() == "Some bold text"
    assert row_view.markdown() == "Some **bold** text"


def test_copy_takes_the_whole_message_not_one_piece(show: MakeRowView) -> None:
    assert message_markdown(node("n", "One.\n\nTwo.\n")) == "One.\n\nTwo."


def test_html_in_a_reply_stays_text(show: MakeRowView) -> None:
    text = part(show(reply("a <script>alert(1)</script> b")), TextView, "Reply")
    assert "<script>" in text.toPlainText()


@pytest.mark.parametrize("address", ["file:///etc/passwd", "http://127.0.0.1:1/x.png"])
def test_an_image_url_in_a_reply_is_never_fetched(show: MakeRowView, address: str) -> None:
    text = part(show(reply(f"![x]({address})")), TextView, "Reply")
    kind = QTextDocument.ResourceType.ImageResource.value
    assert text.loadResource(kind, QUrl(address)) is None


def test_a_link_is_passed_to_the_row_actions(show: MakeRowView, actions: KeptActions) -> None:
    text = part(show(reply("[here](https://example.org/a?b=1)")), TextView, "Reply")
    text.anchorClicked.emit(QUrl("https://example.org/a?b=1"))
    assert actions.links == ["https://example.org/a?b=1"]


def test_a_fence_is_a_card_with_its_language_and_a_copy_button(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(reply("```python\nprint(1)\n```"))
    assert part(row_view, CodeView, "Code, python").toPlainText() == "print(1)"
    part(row_view, QToolButton, "Copy code").click()
    assert actions.copied == ["print(1)"]
    part(row_view, QToolButton, "Copied")


def test_a_reused_row_view_shows_nothing_of_the_previous_row(show: MakeRowView) -> None:
    row_view = show(reply("```python\nprint(1)\n```", step=3))
    row_view.set_row(reply("Prose."))
    texts = [view for view in row_view.findChildren(TextView) if view.isVisible()]
    assert [view.toPlainText() for view in texts] == ["Prose."]
    before = row_view.height_for(WIDTH)
    row_view.set_row(reply("```python\nprint(1)\n```"))
    row_view.set_row(reply("Prose."))
    assert row_view.height_for(WIDTH) == before


def test_streamed_code_ends_like_code_shown_at_once(show: MakeRowView) -> None:
    code = "def f():\n    return 1\n\n\nprint(f())"
    row_view = show(reply("```python\n", streaming=True))
    for end in range(1, len(code) + 1):
        row_view.set_row(reply(f"```python\n{code[:end]}", streaming=True))
    assert part(row_view, CodeView, "Code, python").toPlainText() == code
    row_view.set_row(reply(f"```python\n{code}\n```"))
    assert part(row_view, CodeView, "Code, python").toPlainText() == code
    assert row_view.height_for(WIDTH) == show(reply(f"```python\n{code}\n```")).height()


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
    started = time.process_time()
    assert "".join(run.text for run in highlight(code, language)) in (code, code.replace("\r\n", "\n"))
    assert time.process_time() - started < 5


def test_thinking_is_collapsed_until_it_is_expanded(show: MakeRowView) -> None:
    row_view = show(thinking("I wonder **why**."))
    closed = row_view.height_for(WIDTH)
    assert not [view for view in row_view.findChildren(TextView) if view.isVisible()]
    row_view.set_open(True)
    row_view.set_row(thinking("I wonder **why**."))
    assert part(row_view, TextView, "Thinking").toPlainText() == "I wonder why."
    assert row_view.height_for(WIDTH) > closed


def test_collapsed_thinking_previews_its_beginning_without_markup_on_one_line(show: MakeRowView) -> None:
    row_view = show(thinking("**First**, the `shop`.\n\n- Then *all* else"))
    line = part(row_view, QAbstractButton, "Thought First, the shop. Then all else")
    assert row_view.height_for(WIDTH) == line.sizeHint().height()


def test_a_notice_is_text_that_can_be_selected(show: MakeRowView) -> None:
    text = part(show(notice("error", "The model refused the key.\x1b[31m")), TextView, "Notice")
    assert text.toPlainText() == "The model refused the key."
    assert text.cursor_between(4, 9).selectedText() == "model"


def test_an_unreadable_image_shows_an_error(show: MakeRowView) -> None:
    for data in ("not base64!", "AAAA", ""):
        row_view = show(image(data))
        assert part_texts(row_view) == ["Can't show this picture (image/png)."]
    assert part_texts(show(image())) == []


def test_an_image_is_enlarged_by_a_click_and_closed_by_escape(show: MakeRowView) -> None:
    row_view = show(image())
    QTest.keyClick(part(row_view, QAbstractButton, "Enlarge picture"), Qt.Key.Key_Space)
    (dialog,) = row_view.findChildren(QDialog)
    assert dialog.isVisible()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def part_texts(row_view: RowView[Row]) -> list[str]:
    return [label.text() for label in row_view.findChildren(QLabel) if label.isVisible()]


def test_the_menu_copies_the_message(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(reply("Some **bold** text"))
    middle = row_view.rect().center()
    QApplication.sendEvent(
        row_view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, row_view.mapToGlobal(middle))
    )
    (menu,) = (menu for menu in row_view.findChildren(QMenu) if menu.title() == "")
    entries = [entry for entry in menu.actions() if not entry.isSeparator()]
    names = ["Copy message as Markdown", "Retry", "Retry with", "New branch from here", "Keep in context", "Forget…"]
    assert [entry.text() for entry in entries] == names
    entries[0].trigger()
    assert actions.copied == ["Some **bold** text"]


def test_streamed_thinking_grows_in_place_and_ends_as_markdown(show: MakeRowView) -> None:
    row_view = show(thinking("", streaming=True))
    row_view.set_open(True)
    thought = "I wonder **why**.\n\nAnd how."
    for end in range(1, len(thought) + 1):
        row_view.set_row(thinking(thought[:end], streaming=True))
    text = part(row_view, TextView, "Thinking")
    assert text.toPlainText() == thought
    row_view.set_row(thinking("Another", streaming=True))
    assert text.toPlainText() == "Another"
    row_view.set_row(thinking(thought))
    assert text.toPlainText() == "I wonder why.\nAnd how."


def test_a_long_message_is_shortened_and_can_be_expanded(show: MakeRowView, qtbot: QtBot) -> None:
    text = "\n".join(f"line {number}" for number in range(500))
    row_view = show(user(text))
    view = part(row_view, TextView, "Your message")
    assert view.toPlainText().endswith("line 19…")
    closed = row_view.height()
    with qtbot.waitSignals([row_view.resized, row_view.opened]):
        part(row_view, QPushButton, "Show more").click()
    assert view.toPlainText() == text
    assert row_view.height_for(WIDTH) > 5 * closed
    part(row_view, QPushButton, "Show less").click()
    assert row_view.height_for(WIDTH) == closed
    row_view.set_row(user("\n".join(["line"] * 25)))
    assert view.toPlainText().count("line") == 25
