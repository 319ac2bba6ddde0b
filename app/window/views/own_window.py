"""A conversation in a window of its own."""

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from app.window.focus_order import step
from app.window.stores.session import Session
from app.window.theme.theme import Theme
from app.window.views.connection_banner import ConnectionBanner
from app.window.views.health_banner import HealthBanner
from app.window.views.page import Page
from app.window.widgets.banner import Banner


class OwnWindow(QMainWindow):
    """`activated` when a person turned to it; `close_asked` when they closed it, which its owner does."""

    activated = Signal()
    close_asked = Signal()

    def __init__(self, page: Page, session: Session, theme: Theme) -> None:
        super().__init__()
        self.page = page
        self.trouble = Banner(theme)
        place = QWidget()
        self._column = QVBoxLayout(place)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(ConnectionBanner(session, theme))
        self._column.addWidget(HealthBanner(session, theme))
        self._column.addWidget(self.trouble)
        self._column.addWidget(page.view, 1)
        self.setCentralWidget(place)
        self.resize(theme.tokens.column + 4 * theme.tokens.space_far, theme.tokens.column)
        page.view.show()
        page.changed.connect(self.show_look)
        self.show_look()

    def show_look(self) -> None:
        """The title says what the conversation is about, how its task is, and what is new."""
        self.setWindowTitle(f"{self.page.look.words} — Errand")

    def give_page(self) -> Page:
        """Leave the page to another window; this one is empty then and goes."""
        self.page.changed.disconnect(self.show_look)
        self._column.removeWidget(self.page.view)
        self.page.view.setParent(None)
        self.hide()
        self.deleteLater()
        return self.page

    def focusNextPrevChild(self, next: bool) -> bool:
        return step(self, self.focusWidget(), forward=next)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.activated.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()
        self.close_asked.emit()
