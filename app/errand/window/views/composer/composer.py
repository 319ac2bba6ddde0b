"""The composer: a text field that grows, and one button that sends, steers, replies or stops."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QFileDialog, QFrame, QPushButton, QWidget

from errand.text.translation import tr
from errand.window.theme.style import ButtonStyle, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.composer.attachments import AttachmentsView
from errand.window.views.composer.prompt_edit import PromptEditView
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.input.reaction_time import REACTION_S, ReactionTime
from errand.window.widgets.labels import one_line

# What the engine makes ready for a message rests a minute after its last use.
_WRITING_EVERY_S = 20.0

_DIGITS = "123456789"
_MAX_CHOICE_LENGTH = 32

ComposerMode = Literal["send", "steer", "reply", "choose", "stop", "stopping"]


@dataclass(frozen=True, slots=True)
class ComposerState:
    """The state that decides what the button does: the conversation's task, and the open question, if any.

    `steers`: a message goes to the active task. `choices`: the answers of the open ask by number; `ask_id` is its id.
    """

    active: bool = False
    steers: bool = True
    stopping: bool = False
    question: str = ""
    connected: bool = True
    has_begun: bool = False
    choices: tuple[str, ...] = ()
    ask_id: str = ""


@dataclass(frozen=True, slots=True)
class _ButtonLabel:
    text: str
    icon: str
    look: ButtonStyle
    tip: str


_BUTTON_LABELS: dict[ComposerMode, _ButtonLabel] = {
    "send": _ButtonLabel(tr("Send"), "arrow-up", "primary", "Enter"),
    "steer": _ButtonLabel(
        tr("Steer"),
        "arrow-up",
        "primary",
        tr("Enter: the agent reads it in its next turn. Alt+Enter: queue it for later."),
    ),
    "reply": _ButtonLabel(tr("Reply"), "arrow-up", "primary", "Enter"),
    "choose": _ButtonLabel(tr("Reply"), "check", "primary", "Enter"),
    "stop": _ButtonLabel(tr("Stop"), "square", "plain", tr("Press Esc twice")),
    "stopping": _ButtonLabel(tr("Stopping…"), "square", "plain", tr("Ending running processes")),
}


class ComposerView(QFrame):
    """`extras` is shown at the lower left: the options of the next task.

    Emits `writing` when a person begins a message, and again from time to time until it is sent.

    Emits `submitted` and `queued` with the text and the paths of its attachments, and `content_dropped` with the
    QMimeData of pasted or dropped content to attach. Emits `choice_entered` instead of `submitted` if the text is the
    number of an answer, begun after a person had time to see the ask; the text stays.
    """

    submitted = Signal(str, object)
    queued = Signal(str, object)
    content_dropped = Signal(object)
    history_step_requested = Signal(int)
    stop_requested = Signal()
    edit_last_requested = Signal()
    edited = Signal(str)
    choice_entered = Signal(int)
    writing = Signal()

    def __init__(self, theme: Theme, extras: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._theme = theme
        self._state = ComposerState()
        self._asked_at = -REACTION_S
        self._had_text = False
        self._answers_ask = True  # the text was begun after the open ask was seen
        self._said_writing_at = -_WRITING_EVERY_S
        self._edit = PromptEditView(self)
        self._edit.setAccessibleName(tr("Message"))
        set_style(self._edit, "look", "bare")
        self.attachments = AttachmentsView(theme)
        self._clip = IconButton(theme, "paperclip", tr("Attach files"))
        self._button = push_button(tr("Send"), "primary")
        self._lay_out(extras)
        self._edit.textChanged.connect(self._on_text_changed)
        self._edit.composed.connect(self._show_mode)
        self._edit.submitted.connect(self._on_submitted)
        self._edit.queued.connect(self._on_queued)
        self._edit.edit_last_requested.connect(self.edit_last_requested)
        self._edit.content_dropped.connect(self.content_dropped)
        self._edit.history_step_requested.connect(self.history_step_requested)
        self.attachments.changed.connect(self._show_mode)
        self._clip.clicked.connect(self._on_clip_clicked)
        self._edit.focused.connect(self._on_focused)
        self._button.clicked.connect(self._on_button_clicked)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()
        self.setFocusProxy(self._edit)

    @property
    def text(self) -> str:
        return self._edit.toPlainText()

    @property
    def has_content(self) -> bool:
        """True if there is something to send: a text or a file."""
        return self._edit.has_text or bool(self.attachments.paths)

    @property
    def button(self) -> QPushButton:
        return self._button

    @property
    def field(self) -> PromptEditView:
        return self._edit

    @property
    def mode(self) -> ComposerMode:
        """The current action of the button."""
        state, has_content = self._state, self.has_content
        if self._choice:
            return "choose"
        if state.question:
            return "reply"
        if state.active and not has_content:
            return "stopping" if state.stopping else "stop"
        return "steer" if state.active and state.steers else "send"

    @property
    def _choice(self) -> int:
        """The number of the answer that the text names; 0 if it is another text."""
        count, text = len(self._state.choices), self.text.strip()[:2] if self._state.choices else ""
        is_number = self._answers_ask and len(text) == 1 and text in _DIGITS and int(text) <= count
        return int(text) if is_number and not self.attachments.paths else 0

    def show_state(self, state: ComposerState) -> None:
        if state.ask_id != self._state.ask_id:
            self._asked_at, self._answers_ask = ReactionTime.clock(), not self._had_text
        self._state = state
        self._show_mode()

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor is placed at its end."""
        self._edit.setPlainText(text)
        cursor = self._edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self._edit.setTextCursor(cursor)

    def _lay_out(self, extras: QWidget) -> None:
        tokens = self._theme.tokens
        row = hbox(self._clip, fill(extras), self._button, spacing=tokens.space_tight)
        set_vbox(
            self,
            self.attachments,
            self._edit,
            row,
            spacing=tokens.space_tight,
            margins=(tokens.space_normal, tokens.space_close, tokens.space_close, tokens.space_close),
        )

    def _show_mode(self) -> None:
        mode = self.mode
        label = _BUTTON_LABELS[mode]
        choice = self._choice
        text = one_line(self._state.choices[choice - 1], _MAX_CHOICE_LENGTH) if choice else label.text
        self._edit.setPlaceholderText(self._placeholder())
        if self._edit.isVisible():
            self._edit.viewport().update()  # Qt does not repaint the old placeholder
        self._button.setText(text)
        self._button.setAccessibleName(text)
        set_tool_tip(self._button, label.tip)
        self._button.setIcon(self._theme.icon(label.icon, "on_accent" if label.look == "primary" else "text"))
        self._button.setEnabled(self._can_act(mode))
        set_style(self._button, "look", label.look)

    def _can_act(self, mode: ComposerMode) -> bool:
        if not self._state.connected or mode == "stopping":
            return False
        return mode == "stop" or self.has_content

    def _placeholder(self) -> str:
        state = self._state
        if self._edit.is_composing:
            return ""
        if state.question:
            return state.question
        if self.attachments.paths:
            return tr("What should I do with this?")
        if state.active and state.steers:
            return tr("Message the agent… (Alt+Enter to queue)")
        return tr("Reply…") if state.has_begun else tr("What should I do?")

    def _on_text_changed(self) -> None:
        has_text = self._edit.has_text
        if has_text and not self._had_text:
            self._answers_ask = ReactionTime.clock() - self._asked_at >= REACTION_S
        self._had_text = has_text
        self._show_mode()
        self.edited.emit(self.text)
        now = time.monotonic()
        if self._edit.document().isUndoAvailable() and now - self._said_writing_at > _WRITING_EVERY_S:
            self._said_writing_at = now
            self.writing.emit()

    def _on_submitted(self) -> None:
        if self._choice and self._state.connected:
            self.choice_entered.emit(self._choice)
            return
        if (message := self._take_message()) is not None:
            self.submitted.emit(*message)

    def _on_queued(self) -> None:
        if (message := self._take_message()) is not None:
            self.queued.emit(*message)

    def _on_clip_clicked(self) -> None:
        dialog = QFileDialog(self, tr("Attach files"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(self.attachments.add)
        dialog.open()
        dialog.finished.connect(dialog.deleteLater)

    def _on_button_clicked(self) -> None:
        if self.mode == "stop":
            self.stop_requested.emit()
        else:
            self._on_submitted()

    def _on_focused(self, focused: bool) -> None:
        set_style(self, "state", "focused" if focused else "")

    def _on_theme_changed(self) -> None:
        self._edit.setFont(self._theme.font(self._theme.tokens.size_base))
        self._button.setIconSize(QSize(self._theme.tokens.icon_small, self._theme.tokens.icon_small))
        self._show_mode()

    def _take_message(self) -> tuple[str, tuple[str, ...]] | None:
        """Empty the field and return its text and attachments; None while offline, so that no text is lost."""
        if not self.has_content or not self._state.connected:
            return None
        self._edit.composition.commit()
        text, paths = self.text.strip(), self.attachments.paths
        self._edit.clear()
        self.attachments.clear()
        return text, paths
