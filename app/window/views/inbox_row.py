"""One entry of the inbox: state, title and what it is about; opens its conversation, and shows its ask in place."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from app.protocol.asks import Ask
from app.window.theme.theme import Theme
from app.window.views.ask_detail import AskDetail
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.icon_button import IconButton
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import WORDS, State, StateDot

_ENTERS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_OPENERS = (*_ENTERS, Qt.Key.Key_Space)


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """`asks` are equal ones, which are settled together; `button` is the icon and the name of what ends it."""

    key: str
    conversation_id: str
    state: State
    title: str
    detail: str
    task_id: str = ""
    asks: tuple[Ask, ...] = ()
    button: tuple[str, str] | None = None
    enabled: bool = True


class InboxRow(QFrame):
    """`opened` at a click or Enter, `ended` at its button or Delete. With an ask it opens in place when it is reached.

    `decided` and `answered` settle the ask; `moved` asks for the next entry (1) or the one before (-1).
    """

    opened = Signal()
    ended = Signal()
    decided = Signal(bool)
    answered = Signal(str)
    unfolded = Signal()
    moved = Signal(int)

    def __init__(self, entry: InboxEntry, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self.entry = entry
        self._theme = theme
        self._detail_view: AskDetail | None = None
        tokens = theme.tokens
        self.setObjectName("row")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._dot = StateDot(theme, pulse)
        self._title = ElidedLabel(theme)
        self._detail = ElidedLabel(theme, size=tokens.size_small, tone="muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(tokens.space_close, tokens.space_tight, tokens.space_tight, tokens.space_tight)
        self._column.setSpacing(0)
        self._column.addLayout(self._head(pulse))
        self.show_entry(entry)

    @property
    def text(self) -> str:
        return f"{self._title.whole_text}: {self._detail.whole_text}"

    @property
    def detail(self) -> AskDetail | None:
        """What it shows of its ask, while it is open."""
        return self._detail_view

    def show_entry(self, entry: InboxEntry) -> None:
        asks_changed = [ask.id for ask in entry.asks] != [ask.id for ask in self.entry.asks]
        self.entry = entry
        self._dot.set_state(entry.state)
        self._title.set_text(entry.title)
        self._detail.set_text(entry.detail)
        self.setAccessibleName(f"{entry.title}, {WORDS[entry.state].lower()}, {entry.detail}")
        if self._button is not None and entry.button is not None:
            self._button.setEnabled(entry.enabled)
            self._button.setAccessibleName(f"{entry.button[1]} {entry.title}")
        if asks_changed and self._detail_view is not None:
            self.fold()
            self.unfold()

    def unfold(self) -> None:
        """Show the whole ask, with the ways to settle it."""
        if not self.entry.asks or self._detail_view is not None:
            return
        detail = self._detail_view = AskDetail(self.entry.asks[0], len(self.entry.asks), self._theme)
        detail.decided.connect(self.decided)
        detail.answered.connect(self.answered)
        detail.open_asked.connect(self.opened)
        self._column.addWidget(detail)
        detail.show()  # the layout would only at the next turn of the loop
        self._detail.hide()
        self._turn_chevron("chevron-down", "Close")
        self.unfolded.emit()

    def fold(self) -> None:
        if self._detail_view is not None:
            self._detail_view.hide()
            self._detail_view.deleteLater()
            self._detail_view = None
            self._detail.show()
            self._turn_chevron("chevron-right", "Show what is asked")

    def event(self, event: QEvent) -> bool:
        """Ctrl+Enter is the window's too: here it is for this ask."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._decision(event) is True
        ):
            event.accept()
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.unfold()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        decision = self._decision(event)
        if decision is not None:
            self._decide(decision)
        elif event.key() in _OPENERS:
            self.opened.emit()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.moved.emit(1 if event.key() == Qt.Key.Key_Down else -1)
        elif event.key() == Qt.Key.Key_Delete and self.entry.button is not None and self.entry.enabled:
            self.ended.emit()
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.opened.emit()

    def _head(self, pulse: Pulse) -> QHBoxLayout:
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self._title)
        words.addWidget(self._detail)
        head = QHBoxLayout()
        head.setSpacing(self._theme.tokens.space_close)
        head.addWidget(self._dot, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addLayout(words, 1)
        self._button: IconButton | None = None
        self._chevron: IconButton | None = None
        if self.entry.button is not None:
            self._button = IconButton(self._theme, *self.entry.button)
            self._button.clicked.connect(self.ended)
            head.addWidget(self._button)
        if self.entry.asks:
            self._chevron = IconButton(self._theme, "chevron-right", "Show what is asked")
            self._chevron.clicked.connect(self._on_chevron_clicked)
            head.addWidget(self._chevron)
        return head

    def _decision(self, event: QKeyEvent) -> bool | None:
        """What a key says about an approval or a limit; None where it says nothing."""
        if not self.entry.asks or self.entry.asks[0].kind in ("question", "unknown"):
            return None
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if modifiers == Qt.KeyboardModifier.ControlModifier and event.key() in _ENTERS:
            return True
        plain = modifiers == Qt.KeyboardModifier.NoModifier
        return {Qt.Key.Key_A: True, Qt.Key.Key_D: False}.get(Qt.Key(event.key())) if plain else None

    def _decide(self, allow: bool) -> None:
        """What is not whole in view is only shown, and what is too long for here is opened."""
        if self._detail_view is not None and self._detail_view.can_decide:
            self.decided.emit(allow)
        elif self._detail_view is None:
            self.unfold()
        else:
            self.opened.emit()

    def _turn_chevron(self, icon: str, name: str) -> None:
        if self._chevron is not None:
            self._chevron.set_face(icon, name)

    def _on_chevron_clicked(self) -> None:
        if self._detail_view is None:
            self.unfold()
        else:
            self.fold()
            self.unfolded.emit()
