"""A picture that a reply names: through the window, the engine and a site on this machine."""

import base64
from pathlib import Path

from aiohttp import web
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from errand.window.rows.markup.text_objects import OBJECT
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from tests.support.model_server import Reply
from tests.support.rows import PIXEL
from tests.support.web_site import web_site
from tests.support.window import ViewFixture, until, view_fixture


async def _send(request: web.Request) -> web.StreamResponse:
    return web.Response(body=base64.b64decode(PIXEL), content_type="image/png")


def _find(fixture: ViewFixture, phrase: str) -> TextView | None:
    texts = fixture.view.transcript.findChildren(TextView)
    return next((text for text in texts if text.isVisible() and phrase in text.toPlainText()), None)


async def _click(fixture: ViewFixture, phrase: str) -> None:
    await until(lambda: _find(fixture, phrase) is not None)
    view = _find(fixture, phrase)
    assert view is not None
    cursor = view.document().find(phrase)
    cursor.setPosition(cursor.selectionStart() + 1)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.cursorRect(cursor).center() + QPoint(1, 0))


async def test_a_picture_comes_by_a_click_and_from_this_machine_by_a_second(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with web_site({"/a.png": _send}) as site:
        replies = [Reply(text=f"Here: ![the plot]({site.url('/a.png')})")]
        async with view_fixture(qapp, theme, tmp_path, replies) as fixture:
            await fixture.follow_up("Preview")
            await fixture.finish()
            await _click(fixture, "Load picture from 127.0.0.1")
            warning = f"127.0.0.1:{site.port} is in your network or on this computer."
            await until(lambda: _find(fixture, warning) is not None)
            assert site.requests == []
            await _click(fixture, "Load picture anyway")
            await until(lambda: _find(fixture, OBJECT) is not None)
            assert site.requests == ["/a.png"]


async def test_load_anyway_opens_the_host_that_was_shown_and_no_other(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with web_site({"/a.png": _send}) as other:

        async def lead_on(request: web.Request) -> web.StreamResponse:
            raise web.HTTPFound(other.url("/a.png"))

        async with web_site({"/": lead_on}) as site:
            replies = [Reply(text=f"Here: ![the plot]({site.url()})")]
            async with view_fixture(qapp, theme, tmp_path, replies) as fixture:
                await fixture.follow_up("Preview")
                await fixture.finish()
                await _click(fixture, "Load picture from 127.0.0.1")
                await _click(fixture, "Load picture anyway")
                await until(lambda: _find(fixture, f"you allowed 127.0.0.1:{site.port} alone") is not None)
                await _click(fixture, "Try again")
                await until(lambda: _find(fixture, f"127.0.0.1:{site.port} is in your network") is not None)
        assert other.requests == []


async def test_a_picture_that_is_not_there_says_so(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with (
        web_site({}) as site,
        view_fixture(qapp, theme, tmp_path, [Reply(text=f"![]({site.url('/b.png')})")]) as fixture,
    ):
        await fixture.follow_up("Preview")
        await fixture.finish()
        await _click(fixture, "Load picture from")
        await _click(fixture, "Load picture anyway")
        await until(lambda: _find(fixture, "The server answered HTTP 404 Not Found. Try again") is not None)
