"""Find in the conversation: the field over the transcript, the current hit, next and previous."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from errand.text.translation import grouped, tr, trn
from errand.window.stores.conversation.find import FindStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.transcript.highlights import SearchPattern
from errand.window.transcript.view import TranscriptView
from errand.window.widgets.boxes import STRETCH, fill, set_hbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class FindBarView(QWidget):
    """Hidden until `open`."""

    def __init__(self, find: FindStore, transcript: TranscriptView, theme: Theme) -> None:
        super().__init__()
        self.search = find
        self._transcript = transcript
        self._theme = theme
        self._back: QWidget | None = None
        find.setParent(self)
        self.setObjectName("findbar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.field = _Field(theme)
        self.count = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        self._elsewhere = push_button("", "quiet")
        self._previous = IconButton(theme, "chevron-up", tr("Previous result"), shortcut="Shift+Enter")
        self._next = IconButton(theme, "chevron-down", tr("Next result"), shortcut="Enter")
        self._close = IconButton(theme, "x", tr("Close search"), shortcut="Esc")
        self._lay_out()
        self._connect()
        self.hide()

    def open(self) -> None:
        """Open and focus the field; closing returns the focus."""
        if not self.isVisible():
            self._back = self.window().focusWidget()
            self.show()
            self._on_searched(self.field.text().strip())
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def close_search(self) -> None:
        self.hide()
        self.search.clear()
        self._transcript.selection.set_search(None)
        (self._back or self._transcript).setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.field.setMaximumWidth(tokens.column // 2)
        self.count.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        inner = QWidget()
        inner.setMaximumWidth(tokens.column)
        set_hbox(
            inner,
            fill(self.field),
            self.count,
            self._elsewhere,
            STRETCH,
            self._previous,
            self._next,
            self._close,
            spacing=tokens.space_close,
        )
        set_hbox(
            self,
            STRETCH,
            fill(inner, 1000),
            STRETCH,
            margins=(tokens.space_far, tokens.space_close, tokens.space_far, tokens.space_close),
        )

    def _connect(self) -> None:
        self.search.changed.connect(self._on_changed)
        self.field.searched.connect(self._on_searched)
        self.field.next_requested.connect(self.search.next)
        self.field.previous_requested.connect(self.search.previous)
        self.field.close_requested.connect(self.close_search)
        self._next.clicked.connect(self.search.next)
        self._previous.clicked.connect(self.search.previous)
        self._close.clicked.connect(self.close_search)
        self._elsewhere.clicked.connect(self.search.go_elsewhere)

    def _on_searched(self, text: str) -> None:
        self.search.search(text, self._transcript.shown.start)

    def _on_changed(self) -> None:
        if not self.isVisible():
            return
        find = self.search
        self.count.setText(self._count_text())
        self._show_elsewhere()
        can_step = find.total > 0 or bool(find.earlier)
        self._next.setEnabled(can_step)
        self._previous.setEnabled(can_step)
        if find.pattern is None:
            self._transcript.selection.set_search(None)
            return
        hit, row = find.current, find.row
        search = SearchPattern(find.pattern, find.counts, hit.key if hit else "", hit.number if hit else 0)
        if row is None:
            self._transcript.selection.set_search(search)
        else:
            self._transcript.hits.show(row, search)

    def _count_text(self) -> str:
        find = self.search
        earlier = len(find.earlier)
        above = trn("{n} more above", "{n} more above", earlier) if earlier else ""
        if find.pattern is None:
            return ""
        if find.total:
            count_text = tr("{current} of {total}").format(
                current=grouped(find.current_number), total=grouped(find.total)
            )
            return f"{count_text} · {above}" if above else count_text
        if above:
            return trn("{n} message above: press Enter", "{n} messages above: press Enter", earlier)
        return tr("No results")

    def _show_elsewhere(self) -> None:
        count = len(self.search.elsewhere)
        elsewhere_text = trn("Show {n} in another branch", "Show {n} in other branches", count)
        self._elsewhere.setText(elsewhere_text)
        self._elsewhere.setAccessibleName(elsewhere_text)
        self._elsewhere.setVisible(count > 0)


class _Field(SearchField):
    """Enter goes to the next hit, Shift+Enter to the previous one, Esc closes."""

    next_requested = Signal()
    previous_requested = Signal()
    close_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, tr("Search this conversation"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_requested.emit()
        elif event.key() in _ENTER and not self.search_now():
            is_back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            (self.previous_requested if is_back else self.next_requested).emit()
        elif event.key() not in _ENTER:
            super().keyPressEvent(event)
