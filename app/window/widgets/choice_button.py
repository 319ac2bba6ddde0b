"""A button whose text may take several lines: the choices of a question are as long as the model made them."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy

from app.window.theme.look import set_look
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel


class ChoiceButton(QPushButton):
    """`text` is on the label inside, so that it wraps; Enter presses it as Space does."""

    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__()
        self.setAccessibleName(text)
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_look(self, "look", "choice")
        self._label = TextLabel(theme, text)
        self._label.setWordWrap(True)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row = QHBoxLayout(self)
        tokens = theme.tokens
        row.setContentsMargins(tokens.space_normal, 6, tokens.space_normal, 6)
        row.addWidget(self._label)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        margins = layout.contentsMargins()
        words = self._label.fontMetrics().size(0, self._label.text())
        return QSize(words.width() + margins.left() + margins.right() + 4, words.height() + 12)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._label.fontMetrics().height() + 12)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None
        return layout.totalHeightForWidth(width)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
            self.click()
            return
        super().keyPressEvent(event)
