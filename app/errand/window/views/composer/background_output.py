"""The output of one background command, with its state, a stop, and a line for its terminal."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QDialog, QLineEdit, QPlainTextEdit, QWidget

from errand.client.number_format import clock_time, duration
from errand.client.safe_text import escape_hidden_line
from errand.protocol.background import BackgroundCommand
from errand.text.notice_text import short_exit_text
from errand.text.translation import tr
from errand.window.stores.conversation.background import BackgroundStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_hbox, set_vbox
from errand.window.widgets.buttons import CopyButton
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import ElidedLabel, TextLabel

_SIZE = QSize(820, 520)
_MAX_TITLE_LENGTH = 80
_SECRET_WORDS = ("password", "passphrase", "passwort", "mot de passe", "pin:")


def state_text(command: BackgroundCommand) -> str:
    """`running since 14:05`, `exit code 1 after 2 min`."""
    if command.ended_at is None:
        if command.stopped_by:
            return tr("stopping")
        if command.waits_for_input:
            return tr("waiting for input")
        return tr("running since {time}").format(time=clock_time(command.started_at))
    time = duration((command.ended_at - command.started_at).total_seconds())
    if command.stopped_by:
        return tr("stopped after {time}").format(time=time)
    if command.exit_code is None:
        return tr("ended after {time}").format(time=time)
    return tr("{exit} after {time}").format(exit=short_exit_text(command.exit_code), time=time)


def asks_for_secret(command: BackgroundCommand) -> bool:
    """Return True if its last line looks like the prompt for a password, which nobody should read over a shoulder."""
    last = command.last_lines.rsplit("\n", 1)[-1].casefold()
    return command.waits_for_input and any(word in last for word in _SECRET_WORDS)


class BackgroundOutputDialog(QDialog):
    """Follows the command while it is open. Not modal: the conversation goes on beside it."""

    def __init__(self, store: BackgroundStore, command: BackgroundCommand, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        line = " ".join(escape_hidden_line(command.command).split())
        self.setWindowTitle(tr("Output of {command}").format(command=line[:_MAX_TITLE_LENGTH]))
        self._store = store
        self._theme = theme
        self._command = command
        self._read_size = -1
        self._is_closed = False
        self._line = ElidedLabel(theme, line, mono=True)
        self._state = TextLabel(theme, tone="muted")
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        self.stop_button = push_button(tr("Stop"))
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        set_style(self.text, "look", "code")
        self.text.setTabChangesFocus(True)
        self.text.setFont(theme.font(theme.tokens.size_base, mono=True))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.document().setDocumentMargin(theme.tokens.space_close)
        self.text.setAccessibleName(tr("Output"))
        self.text.setPlaceholderText(tr("No output yet"))
        self.field = QLineEdit()
        self.field.setAccessibleName(tr("Input for the command"))
        self.field.setPlaceholderText(tr("Type input, press Enter to send"))
        self.send_button, self.interrupt_button = (
            push_button(tr("Send")),
            push_button("Ctrl+C", name=tr("Send Ctrl+C to interrupt the program")),
        )
        self._typing = QWidget()
        self._lay_out()
        resize_on_screen(self, _SIZE.width(), _SIZE.height())
        self.stop_button.clicked.connect(lambda: store.stop(self._command))
        self.field.returnPressed.connect(self._on_entered)
        self.send_button.clicked.connect(self._on_entered)
        self.interrupt_button.clicked.connect(lambda: self._type("", "ctrl-c"))
        store.changed.connect(self._on_changed)
        theme.changed.connect(self._on_theme_changed)
        self._on_changed()
        (self.field if command.terminal else self.text).setFocus()

    def shows(self, command: BackgroundCommand) -> bool:
        return (command.conversation_id, command.id) == (self._command.conversation_id, self._command.id)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        head = hbox(
            fill(self._line),
            self._state,
            CopyButton(self._theme, tr("Copy output"), self._copy),
            self.stop_button,
            spacing=tokens.space_normal,
        )
        set_hbox(self._typing, fill(self.field), self.send_button, self.interrupt_button, spacing=tokens.space_close)
        set_vbox(
            self,
            head,
            fill(self.text),
            self._problem,
            self._typing,
            spacing=tokens.space_close,
            margins=(tokens.space_wide, tokens.space_normal, tokens.space_wide, tokens.space_wide),
        )

    def _on_changed(self) -> None:
        self._command = command = self._store.get(self._command.id) or self._command
        self._state.setText(state_text(command))
        self._state.set_tone("waiting" if command.waits_for_input and command.ended_at is None else "muted")
        self.stop_button.setVisible(command.ended_at is None)
        self.stop_button.setEnabled(not command.stopped_by)
        self._typing.setVisible(command.terminal and command.ended_at is None)
        mode = QLineEdit.EchoMode
        self.field.setEchoMode(mode.Password if asks_for_secret(command) else mode.Normal)
        if command.size != self._read_size:
            self._read_size = command.size
            self._store.read(command, self._show)

    def done(self, result: int) -> None:
        self._is_closed = True
        super().done(result)

    def _show(self, text: str) -> None:
        if self._is_closed:
            return  # what was read comes too late
        before = self.text.toPlainText()
        if text == before:
            return
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 1
        if before and text.startswith(before):
            end = QTextCursor(self.text.document())
            end.movePosition(QTextCursor.MoveOperation.End)
            end.insertText(text[len(before) :])
        else:
            self.text.setPlainText(text)
        if follows:
            bar.setValue(bar.maximum())

    def _on_entered(self) -> None:
        self._type(self.field.text(), "enter")
        self.field.clear()
        self.field.setFocus()

    def _type(self, text: str, key: str) -> None:
        self._problem.hide()
        self._store.type_into(self._command, text, key, self._on_failed)

    def _on_failed(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.show()

    def _copy(self) -> None:
        self.text.selectAll()
        self.text.copy()
        self.text.moveCursor(QTextCursor.MoveOperation.End)

    def _on_theme_changed(self) -> None:
        self.text.setFont(self._theme.font(self._theme.tokens.size_base, mono=True))
