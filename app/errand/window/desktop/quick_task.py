"""Quick tasks: the input in the middle of the screen, and the task started in the background with the last options."""

from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QCursor, QKeyEvent, QScreen
from PySide6.QtWidgets import QApplication, QLabel

from errand.client.safe_text import plain
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.text.redaction import redact
from errand.text.translation import tr
from errand.window.stores.session import EngineSession
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.style import Tone, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.composer.prompt_edit import PromptEditView
from errand.window.widgets.boxes import at_top, fill, hbox, vbox
from errand.window.widgets.dialogs import FramelessDialog
from errand.window.widgets.labels import ElidedLabel, TextLabel

_MAX_TITLE_LENGTH = 60

_DRAFT = "quick"


class QuickTaskDialog(FramelessDialog):
    """`edited` is emitted with each change, so that the draft is stored; `open_requested` for the started task."""

    submitted = Signal(str)
    edited = Signal(str)
    open_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, Qt.WindowType.Dialog)
        self.setWindowTitle(tr("Quick task"))
        self.setAccessibleName(tr("Quick task"))
        self._theme = theme
        self._is_starting = False
        self._icon = QLabel()
        self._icon.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        self._field = PromptEditView(self)
        self._field.setAccessibleName(tr("What should I do?"))
        self._field.setPlaceholderText(tr("What should I do?"))
        set_style(self._field, "look", "bare")
        self._options = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._keys = TextLabel(theme, tr("Enter to start · Esc to close"), size=theme.tokens.size_small, tone="muted")
        self._status = TextLabel(theme, wrap=True)
        self._open = push_button(tr("Open"), "quiet")
        self._lay_out()
        self._field.textChanged.connect(self._on_text_changed)
        self._field.submitted.connect(self._on_submitted)
        self._open.clicked.connect(self._on_open)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    @property
    def field(self) -> PromptEditView:
        return self._field

    @property
    def status(self) -> str:
        """The result of the last task; "" before the first one."""
        return self._status.text() if not self._status.isHidden() else ""

    def show_with(self, draft: str, options: str) -> None:
        """Reset to the opening state: the stored draft, and the options that a task would start with."""
        self._options.set_text(options)
        self._hide_status()
        if not self._is_starting:
            self._field.setPlainText(draft)
            self._field.selectAll()

    def open_on(self, screen: QScreen) -> None:
        available = screen.availableGeometry()
        self.setFixedWidth(min(self._theme.tokens.column * 4 // 5, available.width()))
        self._fit()
        self.move(available.center().x() - self.width() // 2, available.top() + available.height() // 3)
        self.show()
        self.raise_()
        self.activateWindow()
        self._field.setFocus(Qt.FocusReason.PopupFocusReason)

    def show_started(self, prompt: str) -> None:
        self._is_starting = False
        self._field.setReadOnly(False)
        self._field.clear()
        line = redact(" ".join(plain(prompt).split()))
        title = line if len(line) <= _MAX_TITLE_LENGTH else f"{line[:_MAX_TITLE_LENGTH]}…"
        self._show_status(tr("Started: {title}").format(title=title), "done")
        self._open.show()
        self._fit()

    def show_failure(self, text: str) -> None:
        """The text stays."""
        self._is_starting = False
        self._field.setReadOnly(False)
        self._show_status(text, "failed")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """QDialog's Enter would press a button."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._field.setMinimumWidth(tokens.column // 2)
        self._column = vbox(
            hbox(at_top(self._icon), fill(self._field), spacing=tokens.space_normal),
            hbox(fill(self._status), self._open),
            hbox(fill(self._options), self._keys, spacing=tokens.space_wide),
            spacing=tokens.space_close,
            margins=(tokens.space_wide, tokens.space_wide, tokens.space_wide, tokens.space_normal),
        )
        self.setLayout(self._column)
        self._hide_status()

    def _show_status(self, text: str, tone: Tone) -> None:
        self._status.setText(text)
        self._status.set_tone(tone)
        self._status.setAccessibleName(text)
        self._status.show()
        self._open.hide()
        self._fit()

    def _hide_status(self) -> None:
        self._status.hide()
        self._open.hide()

    def _fit(self) -> None:
        """Adjust the height to the text at this width; Qt's own sizing lags one iteration of the event loop behind."""
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
            self._show_status(tr("Starting…"), "muted")
            self.submitted.emit(text)

    def _on_open(self) -> None:
        self.open_requested.emit()
        self.accept()

    def _on_theme_changed(self) -> None:
        tokens = self._theme.tokens
        self._field.setFont(self._theme.font(tokens.size_large))
        self._icon.setPixmap(self._theme.icon("zap", "muted").pixmap(tokens.icon_large, tokens.icon_large))


class QuickTask(QObject):
    """`opened` gives the conversation to show, `closed` is emitted when the dialog closes."""

    opened = Signal(str)
    closed = Signal()
    started = Signal(str)
    failed = Signal(str)

    def __init__(
        self, application: QApplication, session: EngineSession, state: WindowStateStore, theme: Theme
    ) -> None:
        super().__init__()
        self._application = application
        self._session = session
        self._state = state
        self._theme = theme
        self._conversation_id = ""
        self._pending: TaskStartParams | None = None
        session.state_changed.connect(self._on_state_changed)
        self.dialog: QuickTaskDialog | None = None

    def open(self) -> None:
        """Opens in the middle of the current screen; opening again reuses the same dialog."""
        dialog = self.dialog or self._make()
        dialog.show_with(self._state.settings.drafts.get(_DRAFT, ""), self._options_label())
        screen = self._application.screenAt(QCursor.pos()) or self._application.primaryScreen()
        dialog.open_on(screen)

    def _make(self) -> QuickTaskDialog:
        self.dialog = dialog = QuickTaskDialog(self._theme)
        dialog.submitted.connect(self._on_submitted)
        dialog.edited.connect(self._on_edited)
        dialog.open_requested.connect(self._on_open_requested)
        dialog.finished.connect(self.closed)
        self.started.connect(dialog.show_started)
        self.failed.connect(dialog.show_failure)
        return dialog

    def _options_label(self) -> str:
        options = self._state.settings.options
        if options.workspace:
            folder = tr("In {folder}").format(folder=Path(options.workspace).name)
        else:
            folder = tr("In a new folder")
        return f"{folder} · {options.model or tr('Default model')}"

    def _on_edited(self, text: str) -> None:
        self._state.set_draft(_DRAFT, text)

    def _on_submitted(self, prompt: str) -> None:
        """The user may submit before the engine has started."""
        self._pending = self._state.settings.options.start(prompt, None)
        self._on_state_changed()

    def _on_state_changed(self) -> None:
        if self._pending is None or self._session.state == "connecting":
            return
        pending, self._pending = self._pending, None
        if self._session.is_connected:
            self._session.spawn(self._start(pending), self.failed.emit)
        else:
            self.failed.emit(self._session.reason)

    async def _start(self, params: TaskStartParams) -> None:
        task = (await self._session.call(TASK_START, params)).task
        self._conversation_id = task.conversation_id
        self._state.set_draft(_DRAFT, "")
        self.started.emit(task.request.prompt)

    def _on_open_requested(self) -> None:
        self.opened.emit(self._conversation_id)
