"""Labels and tool tips never interpret foreign text as HTML: no picture is fetched, nothing becomes a link."""

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import AskRow, ImageRow, Row
from errand.window.rows.registry import kind_of
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import ElidedLabel
from tests.support.row_actions import KeptActions
from tests.support.rows import APPROVAL, LIMIT, QUESTION, UNKNOWN, end, image, notice, reply, tool, user

HTML = "<b>bold</b><img/src='file:///etc/passwd'/><a/href='http://127.0.0.1:1'>link</a>" + " long" * 30


def read_as_html(widget: QWidget) -> list[str]:
    """The texts of labels and tool tips in a widget that Qt would render as HTML."""
    widgets = (widget, *widget.findChildren(QWidget))
    labels = [label for label in widgets if isinstance(label, QLabel)]
    wrong = [
        candidate.text()
        for candidate in labels
        if candidate.textFormat() != Qt.TextFormat.PlainText and is_html(candidate.text())
    ]
    return wrong + [candidate.toolTip() for candidate in widgets if is_html(candidate.toolTip())]


def is_html(text: str) -> bool:
    """True if a tag is interpreted: the displayed text lacks it."""
    if not GuiQt.mightBeRichText(text):
        return False
    document = QTextDocument()
    document.setHtml(text)
    return "<b>bold" not in document.toPlainText()


def picture() -> Row:
    row = image("no picture at all")
    assert isinstance(row, ImageRow)
    return ImageRow(row.key, row.node, msgspec.structs.replace(row.image, name=HTML, path=HTML))


ROWS: dict[str, Callable[[], Row]] = {
    "person": lambda: user(HTML),
    "reply": lambda: reply(HTML),
    "language": lambda: reply(f"```{HTML.split()[0]}\ncode\n```\n"),
    "picture": picture,
    "command": lambda: tool("shell", {"command": HTML}),
    "tool": lambda: tool(HTML, {"a": HTML}, HTML, is_error=True, summary=HTML),
    "notice": lambda: notice("error", HTML),
    "end": lambda: end("error", summary=HTML, error=HTML),
    **{
        ask.kind: lambda ask=ask: AskRow("ask", msgspec.structs.replace(ask, text=HTML, choices=(HTML,)))
        for ask in (APPROVAL, LIMIT, QUESTION, UNKNOWN)
    },
}


@pytest.mark.parametrize("name", ROWS)
def test_no_row_view_interprets_foreign_text_as_html(qtbot: QtBot, theme: Theme, name: str) -> None:
    row = ROWS[name]()
    row_view = kind_of(row).view(theme, KeptActions())
    qtbot.addWidget(row_view)
    row_view.set_row(row)
    row_view.resize(500, row_view.height_for(500))
    row_view.show()
    assert read_as_html(row_view) == []


def test_elided_titles_and_button_names_are_not_interpreted_as_html(qtbot: QtBot, theme: Theme) -> None:
    label, button = ElidedLabel(theme, HTML), IconButton(theme, "stop", HTML)
    for widget in (label, button):
        qtbot.addWidget(widget)
        widget.resize(60, 20)
        widget.show()
    assert label.toolTip() and button.toolTip()
    assert read_as_html(label) + read_as_html(button) == []
