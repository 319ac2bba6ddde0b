"""The dialog for a quick task without a window: what `errand quick` opens when none is there."""

import asyncio

from PySide6.QtWidgets import QApplication

from app.window.attention.quick import Quick
from app.window.signals import on_signals
from app.window.state import WindowState
from app.window.stores.session import Session
from app.window.theme.theme import Theme


async def quick_alone(application: QApplication, session: Session, state: WindowState, theme: Theme) -> str:
    """Until it is left; returns the conversation that the person wants to see, or ""."""
    quick = Quick(application, session, state, theme)
    wanted: list[str] = []
    left = asyncio.Event()
    quick.opened.connect(wanted.append)
    quick.left.connect(left.set)
    quick.open()
    with on_signals(left.set):
        await left.wait()
    return wanted[0] if wanted else ""
