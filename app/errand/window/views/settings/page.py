"""Shared by settings pages: heading, scrolling rows, the engine-call protocol, forms in place."""

from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from PySide6.QtCore import QTimer, SignalInstance
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from errand.protocol.base import Method, Wire
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import fill, set_at_top, set_vbox, vbox
from errand.window.widgets.containers import hairline, vertical_scroll_area
from errand.window.widgets.labels import TextLabel

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)


class SettingsPageView(QWidget):
    """Subclasses add rows to `rows`, and fixed content to `top`. `load` is called when the page is shown."""

    def __init__(self, theme: Theme, title: str, text: str) -> None:
        super().__init__()
        self.theme = theme
        tokens = theme.tokens
        self.banner = BannerView(theme)
        self.top = QVBoxLayout()
        self.top.setSpacing(tokens.space_close)
        self.top.setContentsMargins(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_normal)
        self.top.addWidget(TextLabel(theme, title, size=tokens.size_heading, bold=True))
        self.top.addWidget(TextLabel(theme, text, tone="muted", wrap=True))
        inside = QWidget()
        set_style(inside, "look", "page")
        self.rows = vbox(spacing=tokens.space_normal)
        set_at_top(
            inside, self.rows, margins=(tokens.space_far, tokens.space_tight, tokens.space_far, tokens.space_far)
        )
        self._scroll = vertical_scroll_area(inside)
        set_vbox(self, self.top, fill(self._scroll), self.banner, spacing=0)

    def load(self) -> None:
        """Load the state from the engine; a page that needs none does not override this."""

    def reset(self) -> None:
        """The dialog is opened again; a page without a search of its own does not override this."""

    def bring_into_view(self, row: QWidget) -> None:
        """Scroll to `row` once it is laid out: new rows have no position yet."""
        QTimer.singleShot(0, row, lambda: self._scroll.ensureWidgetVisible(row))

    def show_failure(self, text: str) -> None:
        self.banner.show_message(text, "failed")

    def add_section(self, title: str, text: str = "") -> None:
        """Begin a section: its title and what it is for, below a line if there is something above."""
        if self.rows.count():
            self.rows.addWidget(hairline())
        self.rows.addWidget(TextLabel(self.theme, title, bold=True))
        if text:
            self.rows.addWidget(TextLabel(self.theme, text, tone="muted", wrap=True))


def open_in_place(button: QPushButton, open_form: Callable[[], None], closed: SignalInstance) -> None:
    """The button gives way to its form, and comes back with the focus when the form is closed."""
    button.clicked.connect(button.hide)
    button.clicked.connect(open_form)
    closed.connect(button.show)
    closed.connect(button.setFocus)


class EngineCalls(Protocol):
    """`spawn` runs the coroutine of a slot and passes an error text to `failed`. `Session` implements it."""

    async def call(self, method: Method[P, R], params: P) -> R: ...

    def spawn(self, work: Coroutine[None, None, None], failed: Callable[[str], None] | None = None) -> None: ...
