"""Draws the README's pictures of the window: the real one without a screen, on a real engine, playing the tour."""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
sys.path.insert(0, str(Path(__file__).parents[1]))

from PySide6.QtWidgets import QApplication, QWidget

from app.protocol.asks import Ask, AskKind
from app.window.blocks.line_button import LineButton
from app.window.rows import EndRow
from app.window.state import ThemeMode
from app.window.views.settings.dialog import SettingsDialog
from tests.support.errand import Errand
from tests.support.open_window import OpenWindow, open_window

_IMAGES = Path(__file__).parents[1] / "docs" / "images"
_THEMES: tuple[ThemeMode, ...] = ("light", "dark")


@dataclass(frozen=True, slots=True)
class _Album:
    """Takes each picture in both themes: of the window, or of a dialog alone."""

    person: OpenWindow
    folder: Path

    async def take(self, name: str, dialog: QWidget | None = None) -> None:
        for theme in _THEMES:
            self.person.theme.set_mode(theme)
            await self.rest()
            picture = (dialog or self.person.window).grab()
            picture.save(str(self.folder / f"window-{name}-{theme}.png"), "PNG", 0)  # 0 makes the smallest file

    async def rest(self) -> None:
        """Let what was set going be laid out."""
        for _ in range(60):
            self.person.application.processEvents()
            await asyncio.sleep(0.005)


async def draw(application: QApplication, folder: Path) -> None:
    """All pictures; the engine and its data are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="errand-") as home:
        errand = Errand(Path(home), folder)
        os.environ.update(errand.environment | {"QT_QPA_PLATFORM": "offscreen"})
        async with _engine_of(errand), open_window(application, errand.home) as person:
            await _play(_Album(person, folder))


@contextlib.asynccontextmanager
async def _engine_of(errand: Errand) -> AsyncGenerator[None]:
    """The window starts it; it would outlive the window."""
    try:
        yield
    finally:
        await errand.close()


async def _play(album: _Album) -> None:
    person = album.person
    person.theme.set_motion(False)
    await person.until(lambda: person.stores.session.state == "ready")
    await album.rest()
    await album.take("first-run")
    await person.press("Play the tour")
    await person.until(lambda: len(person.stores.asks.waiting()) == 2 and len(person.stores.tasks.running()) == 2)
    await _open(person, _waiting(person, "approval").conversation_id)
    await album.take("approval")
    await _open(person, _waiting(person, "question").conversation_id)
    await album.take("question")
    await _open(person, person.window.pages.open_ids[0])
    await person.until(lambda: any(isinstance(row, EndRow) for row in person.rows))
    await album.rest()
    edited = [
        line
        for line in person.front.findChildren(LineButton)
        if line.accessibleName().startswith(("changed", "edited", "wrote"))
    ]
    edited[0].click()
    await album.take("finished")
    person.window.on_action("settings")
    dialog = person.window.findChildren(SettingsDialog)[0]
    dialog.open_page("providers")
    await album.take("settings", dialog)
    dialog.close()


async def _open(person: OpenWindow, conversation_id: str) -> None:
    person.window.pages.open(conversation_id)
    await person.until(lambda: person.front.store.is_loaded and person.front.store.count() > 0)


def _waiting(person: OpenWindow, kind: AskKind) -> Ask:
    return next(ask for ask in person.stores.asks.waiting() if ask.kind == kind)


if __name__ == "__main__":
    asyncio.run(draw(QApplication(["errand"]), Path(sys.argv[1]) if len(sys.argv) > 1 else _IMAGES))
