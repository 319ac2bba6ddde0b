"""The span in which a window has its attention: from after its first paint to its end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.window.attention.attention import Attention
from app.window.attention.door import Door
from app.window.attention.quick import Quick
from app.window.state import WindowState
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.views.main_window import MainWindow


@asynccontextmanager
async def attending(
    application: QApplication,
    window: MainWindow,
    stores: Stores,
    theme: Theme,
    state: WindowState,
    door_file: Path | None,
) -> AsyncGenerator[Attention]:
    """Without a `door_file` a second start does not find this window: another one has the door."""
    quick = Quick(application, stores.session, state, theme)
    attention = Attention(application, window, stores, theme, state, quick)
    door = Door(door_file) if door_file is not None else None
    if door is not None:
        door.rung.connect(attention.on_rung)
        await door.open()
    try:
        yield attention
    finally:
        if door is not None:
            door.close()
        attention.close()
