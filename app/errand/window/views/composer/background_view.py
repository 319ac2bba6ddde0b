"""The background commands of the conversation: a line that unfolds to a list with stop and output."""

from datetime import UTC, datetime

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from errand.client.number_format import duration
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.background import BackgroundCommand
from errand.text.translation import tr, trn
from errand.window.rows.disclosure import DisclosureButton, LinePart
from errand.window.stores.conversation.background import BackgroundStore
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.composer.background_output import BackgroundOutputDialog, state_text
from errand.window.widgets.boxes import fill, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.containers import vertical_scroll_area
from errand.window.widgets.labels import ElidedLabel, TextLabel

_MAX_ROWS = 5
_TICK_MS = 1_000
# Room for this, so that the columns of all rows are aligned.
_LONG_TIME = "59 min 59 s"
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class BackgroundRowView(QFrame):
    """One command. Enter or a double click opens its output, Del stops it, Up and Down go to its neighbours."""

    def __init__(self, one: BackgroundCommand, store: BackgroundStore, view: "BackgroundView", theme: Theme) -> None:
        super().__init__()
        self.setObjectName("row")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._store = store
        self._view = view
        self._theme = theme
        self._one = one
        self._icon = QLabel()
        self._command = ElidedLabel(theme, mono=True)
        self._last = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._time = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._time.setMinimumWidth(self._time.fontMetrics().horizontalAdvance(_LONG_TIME))
        self._time.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._open = IconButton(theme, "maximize", tr("Show output"), shortcut="Enter")
        self._stop = IconButton(theme, "circle-stop", tr("Stop"), shortcut="Del")
        tokens = theme.tokens
        set_hbox(
            self,
            self._icon,
            fill(self._command, 3),
            fill(self._last, 2),
            self._time,
            self._open,
            self._stop,
            spacing=tokens.space_close,
            margins=(tokens.space_normal, 0, tokens.space_close, 0),
        )
        self.setMinimumHeight(tokens.icon_small + tokens.space_normal)
        self._open.clicked.connect(self.open_output)
        self._stop.clicked.connect(self.stop)
        theme.changed.connect(self._show_icon)
        self._show_icon()
        self.show_command(one)

    def show_command(self, one: BackgroundCommand) -> None:
        self._one = one
        command = " ".join(escape_hidden_line(one.command).split())
        last = escape_hidden_line(one.last_lines.splitlines()[-1]) if one.last_lines else ""
        if one.stopped_by:
            last = tr("stopping")
        elif one.waits_for_input:
            last = tr("waiting for input: {line}").format(line=last) if last else tr("waiting for input")
        self._command.set_text(command)
        self._last.set_text(last)
        self._last.set_tone("waiting" if one.waits_for_input and not one.stopped_by else "muted")
        self._time.setText(duration((datetime.now(UTC) - one.started_at).total_seconds()))
        self._stop.setEnabled(not one.stopped_by)
        self.setAccessibleName(
            tr("Background command {id}: {command}, {state}. {last}").format(
                id=one.id, command=command, state=state_text(one), last=last
            )
        )
        set_tool_tip(self, escape_hidden(f"{one.command}\n{one.last_lines}").strip())

    def open_output(self) -> None:
        """Show the dialog; the one that is open already comes to the front."""
        window = self.window()
        opened = (dialog for dialog in window.findChildren(BackgroundOutputDialog) if dialog.shows(self._one))
        dialog = next(opened, None) or BackgroundOutputDialog(self._store, self._one, self._theme, window)
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def stop(self) -> None:
        self._store.stop(self._one)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.open_output()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open_output()
        elif key == Qt.Key.Key_Delete:
            self.stop()
        elif key in _STEPS:
            self._view.step(self, _STEPS[key])
        else:
            super().keyPressEvent(event)

    def _show_icon(self) -> None:
        side = self._theme.tokens.icon_small
        icon = self._theme.icon("terminal", "muted")
        self._icon.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))


class BackgroundView(QWidget):
    """Hidden while no command runs in the background."""

    def __init__(self, store: BackgroundStore, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName(tr("Background commands"))
        self._store = store
        self._theme = theme
        self._rows: dict[str, BackgroundRowView] = {}
        self.header = DisclosureButton(theme)
        self._inner = QWidget()
        self._list = QVBoxLayout(self._inner)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self._area = vertical_scroll_area(self._inner)
        set_vbox(self, self.header, self._area, spacing=0)
        # Only while the list is open: nothing runs when idle.
        self._clock = QTimer(self)
        self._clock.setInterval(_TICK_MS)
        self._clock.timeout.connect(self.show_commands)
        self.header.toggled.connect(self._on_toggled)
        store.changed.connect(self.show_commands)
        self._area.hide()
        self.hide()

    @property
    def rows(self) -> tuple[BackgroundRowView, ...]:
        """Return the rows from the top."""
        return tuple(self._rows.values())

    def show_commands(self) -> None:
        running = self._store.running
        if running:
            waits = sum(command.waits_for_input for command in running)
            parts = [LinePart(trn("{n} background command", "{n} background commands", len(running)))]
            parts += (
                [LinePart("·"), LinePart(trn("{n} waiting for input", "{n} waiting for input", waits), "waiting")]
                if waits
                else []
            )
            self.header.show_line("terminal", "muted", parts, can_open=True)
        for number in self._rows.keys() - {command.id for command in running}:
            row = self._rows.pop(number)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        for command in running:
            if (row := self._rows.get(command.id)) is None:
                row = self._rows[command.id] = BackgroundRowView(command, self._store, self, self._theme)
                self._list.addWidget(row)
            else:
                row.show_command(command)
        self.setVisible(bool(running))
        self._on_toggled()

    def step(self, row: BackgroundRowView, by: int) -> None:
        """Focus the neighbour; above the first one the header."""
        index = self.rows.index(row) + by
        if index < 0:
            self.header.setFocus()
        elif index < len(self.rows):
            self.rows[index].setFocus()
            self._area.ensureWidgetVisible(self.rows[index], 0, 0)

    def _on_toggled(self) -> None:
        is_open = self.header.isChecked() and bool(self._rows)
        heights = [max(row.sizeHint().height(), row.minimumHeight()) for row in self.rows]
        self._area.setFixedHeight(sum(heights[:_MAX_ROWS]))
        self._area.setVisible(is_open)
        if is_open and not self._clock.isActive():
            self._clock.start()
        elif not is_open:
            self._clock.stop()
