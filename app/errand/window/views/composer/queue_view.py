"""The queued messages, above the composer: edit, reorder, send now, remove."""

from functools import partial

from PySide6.QtCore import QEvent, QMimeData, QObject, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from errand.protocol.tasks.groups import Queued
from errand.text.translation import tr, trn
from errand.window.stores.conversation.queue import QueueStore
from errand.window.theme.style import set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.composer.drop_payload import drop_payload
from errand.window.views.composer.prompt_edit import PromptEditView
from errand.window.widgets.boxes import fill, hbox, set_hbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import ElidedLabel, TextLabel

_KIND_LABELS = {"steer": tr("next turn"), "follow_up": tr("later")}
_ICONS = {"steer": "corner-down-right", "follow_up": "list-end"}
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}

_MAX_LINES = 4


class QueuedMessageView(QFrame):
    """Shows its buttons on hover or focus. Enter edits, Del removes, Alt+Up and Alt+Down move it.

    Emits `moved`, and `stepped` when the focus should move to a neighbour, with -1 for up and 1 for down.
    """

    edited = Signal(str)
    send_requested = Signal()
    moved = Signal(int)
    stepped = Signal(int)
    remove_requested = Signal()
    resized = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("row")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme = theme
        self._entry: Queued | None = None
        self._icon = QLabel()
        self._text = ElidedLabel(theme)
        self._when = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._field = PromptEditView(self)
        self._field.setFont(theme.font(theme.tokens.size_base))
        self._field.setAccessibleName(tr("Queued message: Enter to save, Esc to cancel"))
        set_style(self._field, "look", "bare")
        self._edit = IconButton(theme, "pencil", tr("Edit"), shortcut="Enter")
        self._send = IconButton(theme, "send-horizontal", tr("Send now"))
        self._up = IconButton(theme, "arrow-up", tr("Move up"), shortcut="Alt+Up")
        self._down = IconButton(theme, "arrow-down", tr("Move down"), shortcut="Alt+Down")
        self._remove = IconButton(theme, "x", tr("Remove"), shortcut="Del")
        self._save = IconButton(theme, "check", tr("Save"), shortcut="Enter")
        self._cancel = IconButton(theme, "x", tr("Cancel"), shortcut="Esc")
        self._lay_out()
        self._connect()
        self._show_parts()

    @property
    def text(self) -> str:
        """The accessible text."""
        return self.accessibleName()

    @property
    def changed_text(self) -> str | None:
        """The text in the open editor, if it differs from the queued one."""
        text = self._field.toPlainText().strip()
        is_changed = self.is_editing and self._entry is not None and text not in ("", self._entry.text)
        return text if is_changed else None

    @property
    def is_editing(self) -> bool:
        return not self._field.isHidden()

    @property
    def field(self) -> PromptEditView:
        return self._field

    def show_entry(self, entry: Queued, position: int, count: int) -> None:
        """`position` counts from 0 among the `count` entries of its kind."""
        self._entry = entry
        files = trn("(+ {n} file)", "(+ {n} files)", len(entry.attachments)) if entry.attachments else ""
        text = f"{entry.text} {files}".rstrip()
        self._text.set_text(text)
        self._when.setText(_KIND_LABELS[entry.kind])
        self.setAccessibleName(tr("Queued for {when}: {text}").format(when=_KIND_LABELS[entry.kind], text=text))
        set_tool_tip(self, entry.text)
        self._send.setEnabled(entry.kind == "follow_up")
        self._up.setEnabled(position > 0)
        self._down.setEnabled(position < count - 1)
        self._on_theme_changed()

    def edit(self) -> None:
        """Edit the text inline."""
        if self._entry is None:
            return
        self._field.setPlainText(self._entry.text)
        self._field.show()
        self._field.setFocus()
        self._field.selectAll()
        self._show_parts()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2) and not event.modifiers():
            self.edit()
        elif event.key() == Qt.Key.Key_Delete:
            self.remove_requested.emit()
        elif step is not None and event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.moved.emit(step)
        elif step is not None:
            self.stepped.emit(step)
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Esc cancels editing; the buttons stay visible while one of them has the focus."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._show_parts()
        if watched is self._field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape:
                self.cancel_edit()
                return True
            return False
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._show_parts(is_under_mouse=True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._show_parts()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show_parts()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_parts()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        set_hbox(
            self,
            self._icon,
            fill(self._text),
            fill(self._field),
            self._when,
            hbox(*self._tools, self._save, self._cancel, spacing=0),
            spacing=tokens.space_close,
            margins=(tokens.space_normal, 0, tokens.space_close, 0),
        )
        self._field.hide()
        self.setMinimumHeight(tokens.icon_small + tokens.space_normal)

    def _connect(self) -> None:
        for part in (*self._tools, self._save, self._cancel, self._field):
            part.installEventFilter(self)
        self._edit.clicked.connect(self.edit)
        self._send.clicked.connect(self.send_requested)
        self._up.clicked.connect(self._on_up_clicked)
        self._down.clicked.connect(self._on_down_clicked)
        self._remove.clicked.connect(self.remove_requested)
        self._save.clicked.connect(self._on_saved)
        self._cancel.clicked.connect(self.cancel_edit)
        self._field.submitted.connect(self._on_saved)
        self._field.textChanged.connect(self.resized)
        self._field.content_dropped.connect(self._on_content_dropped)
        self._theme.changed.connect(self._on_theme_changed)

    @property
    def _tools(self) -> tuple[IconButton, ...]:
        return (self._edit, self._send, self._up, self._down, self._remove)

    def _show_parts(self, *, is_under_mouse: bool = False) -> None:
        focus = self.window().focusWidget()
        is_here = is_under_mouse or self.underMouse() or focus is self or self.isAncestorOf(focus)
        editing = self.is_editing
        set_style(self, "state", "editing" if editing else "")
        for part in (self._text, self._when):
            part.setVisible(not editing)
        for button in self._tools:
            button.setVisible(not editing and is_here)
        for button in (self._save, self._cancel):
            button.setVisible(editing)
        self.resized.emit()

    def _on_up_clicked(self) -> None:
        self.moved.emit(-1)

    def _on_down_clicked(self) -> None:
        self.moved.emit(1)

    def _on_saved(self) -> None:
        text = self.changed_text
        self.cancel_edit()
        if text is not None:
            self.edited.emit(text)

    def _on_content_dropped(self, mime: QMimeData) -> None:
        """The attachments of a queued message cannot change: insert the paths into its text."""
        self._field.insertPlainText("\n".join(drop_payload(mime).paths))

    def cancel_edit(self) -> None:
        had_focus = self._field.hasFocus()
        self._field.hide()
        if had_focus:
            self.setFocus()
        self._show_parts()

    def _on_theme_changed(self) -> None:
        if self._entry is not None:
            side = self._theme.tokens.icon_small
            icon = self._theme.icon(_ICONS[self._entry.kind], "muted")
            self._icon.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))


class QueueView(QScrollArea):
    """Hidden while the queue is empty. Emits `focus_released` when the focused entry was the last one."""

    focus_released = Signal()

    def __init__(self, store: QueueStore, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Queued messages"))
        self._store = store
        self._theme = theme
        self._rows: dict[str, QueuedMessageView] = {}
        self._inner = QWidget()
        self._column = QVBoxLayout(self._inner)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setWidget(self._inner)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.hide()

    @property
    def rows(self) -> tuple[QueuedMessageView, ...]:
        """Return the rows from the top."""
        return tuple(self._rows.values())

    def cancel_edit(self) -> bool:
        """Close an open editor; False if there is none."""
        editing = next((row for row in self.rows if row.is_editing), None)
        if editing is not None:
            editing.cancel_edit()
        return editing is not None

    def show_entries(self) -> None:
        """Show the current queue; a focused entry keeps the focus."""
        entries = self._store.entries
        focused = self._focused_index()
        self._drop({entry.id for entry in entries})
        self._rows = {entry.id: self._rows.get(entry.id) or self._make(entry) for entry in entries}
        for index, entry in enumerate(entries):
            row = self._rows[entry.id]
            if self._column.indexOf(row) != index:
                self._column.insertWidget(index, row)
            row.show_entry(entry, *self._store.position(entry.id))
        for before, after in zip(self.rows, self.rows[1:], strict=False):
            QWidget.setTabOrder(before, after)
        self.setVisible(bool(entries))
        self._fit()
        if focused is not None and self._focused_index() is None:
            self._focus(focused)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def _make(self, entry: Queued) -> QueuedMessageView:
        row = QueuedMessageView(self._theme, self._inner)
        row.edited.connect(partial(self._store.edit, entry.id))
        row.send_requested.connect(partial(self._store.send_now, entry.id))
        row.moved.connect(partial(self._store.move, entry.id))
        row.remove_requested.connect(partial(self._store.remove, entry.id))
        row.stepped.connect(partial(self._on_stepped, entry.id))
        row.resized.connect(self._fit)
        return row

    def _drop(self, kept: set[str]) -> None:
        """Remove rows. A text that was being edited when the agent read it is not lost: the store restores it."""
        for queued_id in self._rows.keys() - kept:
            row = self._rows.pop(queued_id)
            self._column.removeWidget(row)
            changed = row.changed_text
            row.hide()
            row.deleteLater()
            if changed is not None:
                self._store.edit(queued_id, changed)

    def _fit(self) -> None:
        """Resize to the height of the content, up to four lines plus open editors."""
        heights = [_height(row) for row in self.rows]
        editors = sum(_height(row) for row in self.rows if row.is_editing)
        line = min(heights, default=0)
        self.setFixedHeight(min(sum(heights), _MAX_LINES * line + editors))

    def _focused_index(self) -> int | None:
        focus = self.window().focusWidget()
        focused_indexes = (index for index, row in enumerate(self.rows) if focus is row or row.isAncestorOf(focus))
        return next(focused_indexes, None)

    def _focus(self, index: int) -> None:
        if not self.rows:
            self.focus_released.emit()
            return
        row = self.rows[min(index, len(self.rows) - 1)]
        row.setFocus()
        self.ensureWidgetVisible(row, 0, 0)

    def _on_stepped(self, queued_id: str, by: int) -> None:
        index = list(self._rows).index(queued_id) + by
        if index >= len(self._rows):
            self.focus_released.emit()
        elif index >= 0:
            self._focus(index)


def _height(row: QueuedMessageView) -> int:
    return max(row.sizeHint().height(), row.minimumHeight())
