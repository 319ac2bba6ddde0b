"""One field in the middle of the screen: Enter starts a task in the background, Esc leaves."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QScreen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from app.client.characters import plain
from app.window.theme.look import Tone, push_button, set_look
from app.window.theme.theme import Theme
from app.window.views.prompt_edit import PromptEdit
from app.window.views.round_dialog import RoundDialog
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.text_label import TextLabel

_LONGEST_TITLE = 60


class QuickDialog(RoundDialog):
    """`edited` with each change of the text, so that no word is lost; `open_asked` for the task that was started."""

    submitted = Signal(str)
    edited = Signal(str)
    open_asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, Qt.WindowType.Dialog)
        self.setWindowTitle("Quick task")
        self.setAccessibleName("Quick task")
        self._theme = theme
        self._is_starting = False
        self._icon = QLabel()
        self._icon.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        self._field = PromptEdit(self)
        self._field.setAccessibleName("What is to be done?")
        self._field.setPlaceholderText("What is to be done?")
        set_look(self._field, "look", "bare")
        self._where = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._keys = TextLabel(theme, "Enter starts it · Esc leaves", size=theme.tokens.size_small, tone="muted")
        self._news = TextLabel(theme, wrap=True)
        self._open = push_button("Open", "quiet")
        self._lay_out()
        self._field.textChanged.connect(self._on_text_changed)
        self._field.submitted.connect(self._on_submitted)
        self._open.clicked.connect(self._on_open)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    @property
    def field(self) -> PromptEdit:
        return self._field

    @property
    def news(self) -> str:
        """What became of the last task; "" before."""
        return self._news.text() if not self._news.isHidden() else ""

    def show_with(self, draft: str, where: str) -> None:
        """As it opens: what was written the last time, and what a task would be started with."""
        self._where.set_text(f"Works {where}")
        self._hide_news()
        if not self._is_starting:
            self._field.setPlainText(draft)
            self._field.selectAll()

    def open_on(self, screen: QScreen) -> None:
        place = screen.availableGeometry()
        self.setFixedWidth(min(self._theme.tokens.column * 4 // 5, place.width()))
        self._fit()
        self.move(place.center().x() - self.width() // 2, place.top() + place.height() // 3)
        self.show()
        self.raise_()
        self.activateWindow()
        self._field.setFocus(Qt.FocusReason.PopupFocusReason)

    def tell_started(self, prompt: str) -> None:
        self._is_starting = False
        self._field.setReadOnly(False)
        self._field.clear()
        line = " ".join(plain(prompt).split())
        title = line if len(line) <= _LONGEST_TITLE else f"{line[:_LONGEST_TITLE]}…"
        self._tell(f"Started: {title}", "done")
        self._open.show()
        self._fit()

    def tell_failed(self, words: str) -> None:
        """What was written stays."""
        self._is_starting = False
        self._field.setReadOnly(False)
        self._tell(words, "failed")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The dialog's own Enter would press a button."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._field.setMinimumWidth(tokens.column // 2)
        top = QHBoxLayout()
        top.setSpacing(tokens.space_normal)
        top.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        top.addWidget(self._field, 1)
        news = QHBoxLayout()
        news.addWidget(self._news, 1)
        news.addWidget(self._open)
        foot = QHBoxLayout()
        foot.setSpacing(tokens.space_wide)
        foot.addWidget(self._where, 1)
        foot.addWidget(self._keys)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_wide, tokens.space_wide, tokens.space_wide, tokens.space_normal)
        column.setSpacing(tokens.space_close)
        for row in (top, news, foot):
            column.addLayout(row)
        self._hide_news()

    def _tell(self, text: str, tone: Tone) -> None:
        self._news.setText(text)
        self._news.set_tone(tone)
        self._news.setAccessibleName(text)
        self._news.show()
        self._open.hide()
        self._fit()

    def _hide_news(self) -> None:
        self._news.hide()
        self._open.hide()

    def _fit(self) -> None:
        """As high as its texts at this width; Qt's own sizing would lag one turn of the loop behind."""
        column = self._column
        column.activate()
        wraps = column.hasHeightForWidth()
        self.setFixedHeight(column.totalHeightForWidth(self.width()) if wraps else column.totalSizeHint().height())

    def _on_text_changed(self) -> None:
        self.edited.emit(self._field.toPlainText())
        self._fit()

    def _on_submitted(self) -> None:
        text = self._field.toPlainText().strip()
        if text and not self._is_starting:
            self._is_starting = True
            self._field.setReadOnly(True)
            self._tell("Starting …", "muted")
            self.submitted.emit(text)

    def _on_open(self) -> None:
        self.open_asked.emit()
        self.accept()

    def _on_theme_changed(self) -> None:
        tokens = self._theme.tokens
        self._field.setFont(self._theme.font(tokens.size_large))
        self._icon.setPixmap(self._theme.icon("zap", "muted").pixmap(tokens.icon_large, tokens.icon_large))
