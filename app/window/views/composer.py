"""Where a person writes: a field that grows, and one button that sends, steers, replies or stops."""

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.window.theme.look import ButtonLook, push_button, set_look
from app.window.theme.theme import Theme
from app.window.views.prompt_edit import PromptEdit

Mode = Literal["send", "steer", "reply", "stop", "stopping"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What the composer stands under: the conversation's task and the question that waits, if any."""

    active: bool = False
    stopping: bool = False
    question: str = ""
    connected: bool = True
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class _Face:
    text: str
    icon: str
    look: ButtonLook
    tip: str


_FACES: dict[Mode, _Face] = {
    "send": _Face("Send", "arrow-up", "primary", "Enter"),
    "steer": _Face("Steer", "arrow-up", "primary", "Enter: read before the next turn. Alt+Enter: after this work."),
    "reply": _Face("Reply", "arrow-up", "primary", "Enter"),
    "stop": _Face("Stop", "square", "plain", "Esc"),
    "stopping": _Face("Stopping", "square", "plain", "What it started is being ended"),
}


class ComposerView(QFrame):
    """`extras` stands at the lower left: the choices of a new conversation."""

    submitted = Signal(str)
    queued = Signal(str)
    stop_asked = Signal()
    recall_asked = Signal()
    edited = Signal(str)

    def __init__(self, theme: Theme, extras: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._theme = theme
        self._situation = Situation()
        self._edit = PromptEdit(self)
        self._edit.setAccessibleName("Message")
        set_look(self._edit, "look", "bare")
        self._button = push_button("Send", "primary")
        self._lay_out(extras)
        self._edit.textChanged.connect(self._on_text_changed)
        self._edit.submitted.connect(self._on_submitted)
        self._edit.queued.connect(self._on_queued)
        self._edit.recalled.connect(self.recall_asked)
        self._edit.focused.connect(self._on_focused)
        self._button.clicked.connect(self._on_button_clicked)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()
        self.setFocusProxy(self._edit)

    @property
    def text(self) -> str:
        return self._edit.toPlainText()

    @property
    def button(self) -> QPushButton:
        return self._button

    @property
    def field(self) -> PromptEdit:
        return self._edit

    @property
    def mode(self) -> Mode:
        """What the button does now."""
        state, written = self._situation, bool(self.text.strip())
        if state.question:
            return "reply"
        if state.active and not written:
            return "stopping" if state.stopping else "stop"
        return "steer" if state.active else "send"

    def show_situation(self, situation: Situation) -> None:
        self._situation = situation
        self._show_mode()

    def set_text(self, text: str) -> None:
        """Put a draft there, the cursor at its end."""
        self._edit.setPlainText(text)
        cursor = self._edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self._edit.setTextCursor(cursor)

    def _lay_out(self, extras: QWidget) -> None:
        tokens = self._theme.tokens
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_normal, tokens.space_close, tokens.space_close, tokens.space_close)
        column.setSpacing(tokens.space_tight)
        column.addWidget(self._edit)
        row = QHBoxLayout()
        row.setSpacing(tokens.space_close)
        row.addWidget(extras, 1)
        row.addWidget(self._button)
        column.addLayout(row)

    def _show_mode(self) -> None:
        mode = self.mode
        face = _FACES[mode]
        self._edit.setPlaceholderText(self._placeholder())
        self._edit.viewport().update()  # Qt leaves the old text standing there
        self._button.setText(face.text)
        self._button.setAccessibleName(face.text)
        self._button.setToolTip(face.tip)
        self._button.setIcon(self._theme.icon(face.icon, "on_accent" if face.look == "primary" else "text"))
        self._button.setEnabled(self._can_act(mode))
        set_look(self._button, "look", face.look)

    def _can_act(self, mode: Mode) -> bool:
        if not self._situation.connected or mode == "stopping":
            return False
        return mode == "stop" or bool(self.text.strip())

    def _placeholder(self) -> str:
        state = self._situation
        if state.question:
            return state.question
        if state.active:
            return "Write to steer the task; Alt+Enter queues it for later"
        return "Go on from here" if state.has_begun else "What is to be done?"

    def _on_text_changed(self) -> None:
        self._show_mode()
        self.edited.emit(self.text)

    def _on_submitted(self) -> None:
        if text := self._take():
            self.submitted.emit(text)

    def _on_queued(self) -> None:
        if text := self._take():
            self.queued.emit(text)

    def _on_button_clicked(self) -> None:
        if self.mode == "stop":
            self.stop_asked.emit()
        else:
            self._on_submitted()

    def _on_focused(self, focused: bool) -> None:
        set_look(self, "state", "focused" if focused else "")

    def _on_theme_changed(self) -> None:
        self._edit.setFont(self._theme.font(self._theme.tokens.size_base))
        self._button.setIconSize(QSize(self._theme.tokens.icon_small, self._theme.tokens.icon_small))
        self._show_mode()

    def _take(self) -> str:
        """What was written, and the field empty; nothing while the engine is away, so that no word is lost."""
        text = self.text.strip()
        if not text or not self._situation.connected:
            return ""
        self._edit.clear()
        return text
