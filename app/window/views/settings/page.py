"""A page of the settings: a heading, a line of what it is for, and rows that scroll."""

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.window.theme.look import set_look
from app.window.theme.theme import Theme
from app.window.widgets.banner import Banner
from app.window.widgets.text_label import TextLabel


class SettingsPage(QWidget):
    """A subclass puts its rows into `rows`, and fixed things into `top`. `load` is called when the page is shown."""

    def __init__(self, theme: Theme, title: str, text: str) -> None:
        super().__init__()
        self.theme = theme
        tokens = theme.tokens
        self.banner = Banner(theme)
        self.top = QVBoxLayout()
        self.top.setSpacing(tokens.space_close)
        self.top.setContentsMargins(tokens.space_far, tokens.space_far, tokens.space_far, tokens.space_normal)
        self.top.addWidget(TextLabel(theme, title, size=tokens.size_heading, bold=True))
        self.top.addWidget(TextLabel(theme, text, tone="muted", wrap=True))
        inside = QWidget()
        set_look(inside, "look", "page")
        self.rows = QVBoxLayout(inside)
        self.rows.setSpacing(tokens.space_normal)
        self.rows.setContentsMargins(tokens.space_far, tokens.space_tight, tokens.space_far, tokens.space_far)
        self.rows.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._scroll = scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(inside)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.banner)
        column.addLayout(self.top)
        column.addWidget(scroll, 1)

    def load(self) -> None:
        """Ask the engine for what is shown; a page that needs nothing of it leaves this."""

    def bring_into_view(self, row: QWidget) -> None:
        """Once its place is known: rows that just came have none yet."""
        QTimer.singleShot(0, row, lambda: self._scroll.ensureWidgetVisible(row))

    def tell_failure(self, text: str) -> None:
        self.banner.tell(text, "failed")

    def clear_rows(self) -> None:
        while (item := self.rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()


def hairline() -> QFrame:
    """A line between rows."""
    line = QFrame()
    line.setFixedHeight(1)
    set_look(line, "look", "hairline")
    return line
