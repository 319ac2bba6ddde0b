"""Pictures that a reply names by their address: loaded by a click, shown in their place."""

import base64

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QPoint, Qt
from PySide6.QtGui import QImage, QPixmapCache, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import Row
from errand.protocol.blocks import ImageBlock
from errand.window.rows.base import RowView
from errand.window.rows.markdown import fragment_markdown, markdown_document
from errand.window.rows.markup.text_objects import OBJECT
from errand.window.rows.markup.web_pictures import WebPicture, parse_picture_link, picture_link
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.widgets.picture_viewer import PictureViewer
from tests.support.row_actions import KeptActions
from tests.support.rows import reply
from tests.window.rows.conftest import WIDTH, MakeRowView, part

_URL = "https://example.org/plot.png?a=1"
_TEXT = f"Here it is: ![The plot]({_URL}) as asked."


@pytest.fixture(autouse=True)
def _nothing_is_decoded_yet(theme: Theme) -> None:  # pyright: ignore[reportUnusedFunction]
    QPixmapCache.clear()


def picture(width: int, height: int) -> WebPicture:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    drawn = QImage(width, height, QImage.Format.Format_RGB32)
    drawn.fill(Qt.GlobalColor.red)
    drawn.save(buffer, "PNG")  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes
    data = base64.b64encode(buffer.data().data()).decode()
    return WebPicture("loaded", ImageBlock(media_type="image/png", data=data))


def click(view: TextView, link_text: str) -> None:
    """Click the link with this text."""
    cursor = view.document().find(link_text)
    assert not cursor.isNull(), view.toPlainText()
    cursor.setPosition(cursor.selectionStart() + 1)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.cursorRect(cursor).center() + QPoint(1, 0))


def text(row_view: RowView[Row]) -> TextView:
    return part(row_view, TextView, "Reply")


def test_a_click_loads_the_picture_into_its_place(show: MakeRowView, actions: KeptActions, qtbot: QtBot) -> None:
    row_view = show(reply(_TEXT))
    assert text(row_view).toPlainText() == "Here it is: The plot · Load picture from example.org as asked."
    assert actions.pictures.loads == []
    click(text(row_view), "Load picture")
    assert actions.pictures.loads == [(_URL, False)]
    assert text(row_view).toPlainText() == "Here it is: The plot · Loading picture from example.org… as asked."
    with qtbot.waitSignal(row_view.resized):
        actions.pictures.put(_URL, picture(120, 80))
    qtbot.waitUntil(lambda: OBJECT in text(row_view).toPlainText())
    row_view.resize(WIDTH, row_view.height_for(WIDTH))
    assert text(row_view).toPlainText() == f"Here it is: {OBJECT} as asked."
    assert 80 <= text(row_view).document().size().height() <= 120
    assert actions.links == []


def test_a_loaded_picture_fits_the_text_and_a_click_enlarges_it(
    show: MakeRowView, actions: KeptActions, qtbot: QtBot
) -> None:
    actions.pictures.put(_URL, picture(3_000, 300))
    row_view = show(reply(f"![]({_URL})"))
    qtbot.waitUntil(lambda: text(row_view).toPlainText() == OBJECT)
    row_view.resize(300, row_view.height_for(300))
    assert text(row_view).document().size().width() <= 300
    QTest.mouseClick(text(row_view).viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    viewer = next(
        widget for widget in QApplication.topLevelWidgets() if isinstance(widget, PictureViewer) and widget.isVisible()
    )
    viewer.close()


def test_a_picture_in_the_local_network_is_asked_about(show: MakeRowView, actions: KeptActions) -> None:
    row_view = show(reply("![](http://localhost:8000/a.png)"))
    actions.pictures.put("http://localhost:8000/a.png", WebPicture("private", reason="localhost:8000"))
    assert text(row_view).toPlainText() == "localhost:8000 is in your network or on this computer. Load picture anyway"
    click(text(row_view), "Load picture anyway")
    assert actions.pictures.loads == [("http://localhost:8000/a.png", True)]


def test_a_failure_says_why_and_can_be_tried_again(show: MakeRowView, actions: KeptActions, qtbot: QtBot) -> None:
    row_view = show(reply(f"![]({_URL})"))
    actions.pictures.put(_URL, WebPicture("failed", reason="The server answered HTTP 404 Not Found."))
    assert text(row_view).toPlainText() == "The server answered HTTP 404 Not Found. Try again"
    click(text(row_view), "Try again")
    assert actions.pictures.loads == [(_URL, False)]
    broken = base64.b64encode(b"\x89PNG\r\n\x1a\nnothing").decode()
    actions.pictures.put(_URL, WebPicture("loaded", ImageBlock(media_type="image/png", data=broken)))
    qtbot.waitUntil(lambda: "cannot be shown" in text(row_view).toPlainText())


def test_copied_text_has_the_markdown_of_the_picture(actions: KeptActions, theme: Theme) -> None:
    for state in (WebPicture(), WebPicture("loading"), WebPicture("private", reason="a")):
        document = markdown_document(_TEXT, theme, find=lambda _, state=state: (state, None))
        cursor = QTextCursor(document)
        cursor.select(QTextCursor.SelectionType.Document)
        assert fragment_markdown(cursor) == _TEXT


def test_no_text_can_have_a_link_that_loads(show: MakeRowView, actions: KeptActions) -> None:
    link = picture_link("load_private", "http://127.0.0.1/")
    assert parse_picture_link(link) == ("load_private", "http://127.0.0.1/")
    guess = f"errand-0000000000000000:{link.partition(':')[2]}"
    row_view = show(reply(f"[click]({guess})"))
    click(text(row_view), "click")
    assert actions.pictures.loads == []
    assert actions.links == [guess]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "plot.png", "ftp://example.org/a.png"])
def test_other_addresses_stay_links(show: MakeRowView, actions: KeptActions, url: str) -> None:
    row_view = show(reply(f"![the plot]({url})"))
    assert text(row_view).toPlainText() == f"Load the plot ({url})"
    click(text(row_view), "Load the plot")
    assert actions.links == [url]
    assert actions.pictures.loads == []


def test_a_picture_that_no_cache_holds_is_decoded_once(show: MakeRowView, actions: KeptActions, qtbot: QtBot) -> None:
    limit = QPixmapCache.cacheLimit()
    QPixmapCache.setCacheLimit(1)
    try:
        actions.pictures.put(_URL, picture(700, 400))
        row_view = show(reply(f"![]({_URL})"))
        qtbot.waitUntil(lambda: text(row_view).toPlainText() == OBJECT)
        with qtbot.assertNotEmitted(row_view.resized, wait=50):
            row_view.set_row(reply(f"![]({_URL}) again"))
        assert text(row_view).toPlainText() == f"{OBJECT} again"
    finally:
        QPixmapCache.setCacheLimit(limit)
