"""The window that compares two to four branches of a conversation side by side, live."""

from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QClipboard, QHideEvent, QKeyEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QTabBar, QWidget

from errand.text.translation import tr, trn
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.comparison import ComparisonStore
from errand.window.theme.style import check_box, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.branches.compared_branch import (
    MIN_WIDTH_PX,
    ComparedBranchView,
    ComparisonActions,
    NoChangeActions,
)
from errand.window.views.shared.row_actions import ConversationRowActions
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.buttons import native_keys
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.pulse import PulseTimer

_READING = tr("Loading the branches…")
_APART = tr("These branches have nothing in common.")
# A narrower window shows one branch at a time.
_NARROW = 700
_TICK_MS = 1000


class ComparisonColumns(QWidget):
    """The branches side by side, with a scroll bar if they do not fit; one at a time, with tabs, in a narrow window.

    With `together` ticked they scroll together: each is at the same share of its length, so that all begin and end
    together. A reply that is being written, and followed, stays at its end.
    """

    def __init__(self, views: tuple[ComparedBranchView, ...], theme: Theme) -> None:
        super().__init__()
        self._views = views
        self._current = self._scrolled = 0
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(tr("Models"))
        self.tabs.setDrawBase(False)
        self.tabs.setElideMode(Qt.TextElideMode.ElideRight)
        self.tabs.setExpanding(True)
        self.together = check_box(tr("Scroll together"), name=tr("Scroll together"))
        set_tool_tip(self.together, native_keys("S"))
        self.together.toggled.connect(self._scroll_others)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        row = QHBoxLayout(inside)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        self._lines: list[QWidget] = []
        for number, view in enumerate(views):
            if number:
                line = QFrame()
                line.setFixedWidth(1)
                set_style(line, "look", "hairline")
                self._lines.append(line)
                row.addWidget(line)
            row.addWidget(view, 1)
            self.tabs.addTab("")
            view.setMinimumWidth(MIN_WIDTH_PX)
            view.transcript.installEventFilter(self)
            view.transcript.scrolled.connect(partial(self._on_scrolled, number))
        self._area.setWidget(inside)
        set_vbox(self, self.tabs, fill(self._area), spacing=0)
        self.tabs.currentChanged.connect(self._on_tab_changed)
        self._lay_out(is_narrow=False)

    @property
    def current(self) -> int:
        """The column that has, or last had, the focus."""
        return self._current

    @property
    def is_narrow(self) -> bool:
        return not self.tabs.isHidden()

    def go_to(self, number: int) -> None:
        """Show and focus a column."""
        if not 0 <= number < len(self._views):
            return
        self._current = number
        self.tabs.setCurrentIndex(number)
        self._area.ensureWidgetVisible(self._views[number])
        self._views[number].transcript.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_titles(self) -> None:
        for number, view in enumerate(self._views):
            if self.tabs.tabText(number) != view.title:
                self.tabs.setTabText(number, view.title.replace("&", "&&"))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Make the column current whose transcript gets the focus, and handle its keys.

        Its keys: Left and Right go from column to column, S ticks `together`, Enter continues with it. A key that comes
        by way of a control in a row is not for the column, and the scroll area would scroll at it.
        """
        number = next((number for number, view in enumerate(self._views) if watched is view.transcript), None)
        if number is None:
            return super().eventFilter(watched, event)
        if event.type() == QEvent.Type.FocusIn:
            self._current = number
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_ours = self._views[number].transcript is self.window().focusWidget()
            return is_ours and self._on_key_pressed(event, number)
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_narrow = self.width() < _NARROW
        if is_narrow != self.is_narrow:
            self._lay_out(is_narrow=is_narrow)

    def _on_key_pressed(self, event: QKeyEvent, number: int) -> bool:
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            return False
        match Qt.Key(event.key()):
            case Qt.Key.Key_Left:
                self.go_to(number - 1)
            case Qt.Key.Key_Right:
                self.go_to(number + 1)
            case Qt.Key.Key_S:
                self.together.toggle()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                if not event.isAutoRepeat():
                    self._views[number].continue_here()
            case _:
                return False
        return True

    def _on_scrolled(self, number: int) -> None:
        self._scrolled = number
        self._scroll_others()

    def _scroll_others(self) -> None:
        """Scroll all columns to the position of the one that was scrolled last."""
        if not self.together.isChecked() or self.is_narrow:
            return
        share = self._views[self._scrolled].transcript.scroll_share
        for number, view in enumerate(self._views):
            is_followed = view.side.is_working and view.transcript.is_at_end
            if number != self._scrolled and not is_followed:
                view.transcript.to_share(share)

    def _lay_out(self, *, is_narrow: bool) -> None:
        self.tabs.setVisible(is_narrow)
        self.together.setVisible(not is_narrow)
        for line in self._lines:
            line.setVisible(not is_narrow)
        for number, view in enumerate(self._views):
            view.setVisible(not is_narrow or number == self._current)
        self.tabs.setCurrentIndex(self._current)

    def _on_tab_changed(self, number: int) -> None:
        if self.is_narrow and number >= 0:
            self._current = number
            self._lay_out(is_narrow=True)


class ComparisonDialog(QDialog):
    """A separate window, so that the conversation stays usable. Esc closes it, the models go on."""

    def __init__(
        self, comparison: ComparisonStore, models: ModelStore, theme: Theme, clipboard: QClipboard, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._comparison = comparison
        comparison.setParent(self)
        self._theme = theme
        self._common_history = ElidedLabel(theme, _READING, tone="muted")
        self._stop_all = push_button(tr("Stop all"))
        self._error_banner = BannerView(theme)
        pulse = PulseTimer(theme, self)
        conversation = ConversationRowActions(comparison.store, models, clipboard, self, NoChangeActions(self))
        self._actions = ComparisonActions(comparison, conversation)
        self.views = tuple(
            ComparedBranchView(comparison, side, theme, pulse, self._actions) for side in comparison.sides
        )
        self.columns = ComparisonColumns(self.views, theme)
        self.columns.together.setChecked(models.scrolls_together)
        self.columns.together.toggled.connect(models.set_scrolls_together)
        self._clock = QTimer(self, interval=_TICK_MS)
        self._clock.timeout.connect(self._on_tick)
        self._lay_out()
        self._connect()
        self._show_title()
        self._show_state()
        comparison.load()

    @property
    def is_loaded(self) -> bool:
        """True once the branches are shown."""
        return self._comparison.is_loaded

    def done(self, result: int) -> None:
        self._comparison.close()
        super().done(result)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._run_clock()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._clock.stop()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        resize_on_screen(self, max(2 * tokens.column, len(self.views) * tokens.column * 2 // 3), tokens.column)
        head = hbox(
            fill(self._common_history),
            self.columns.together,
            self._stop_all,
            margins=(tokens.space_normal, tokens.space_close, tokens.space_normal, tokens.space_close),
        )
        set_vbox(self, head, fill(self.columns), self._error_banner, spacing=0)
        self.views[0].transcript.setFocus()

    def _connect(self) -> None:
        comparison = self._comparison
        comparison.loaded.connect(self._on_loaded)
        comparison.failed.connect(self._on_failed)
        comparison.chosen.connect(self.accept)
        comparison.store.failed.connect(self._on_failed)
        comparison.store.title_changed.connect(self._show_title)
        comparison.store.agents.changed.connect(self._show_state)
        self._actions.branches.refused.connect(self._on_failed)
        self._stop_all.clicked.connect(comparison.stop_all)
        for number, view in enumerate(self.views):
            view.branch_chosen.connect(partial(comparison.show_branch, number))
            view.side.state_changed.connect(self._on_side_changed)
            shortcut = QShortcut(QKeySequence(f"Ctrl+{number + 1}"), self)
            shortcut.activated.connect(partial(self.columns.go_to, number))

    def _show_title(self) -> None:
        self.setWindowTitle(tr("Compare models — {title}").format(title=self._comparison.store.title))

    def _show_state(self) -> None:
        for view in self.views:
            view.show_side()
        self._on_side_changed()

    def _on_side_changed(self) -> None:
        self.columns.show_titles()
        self._stop_all.setVisible(sum(side.is_working for side in self._comparison.sides) > 1)
        self._run_clock()

    def _run_clock(self) -> None:
        if self._comparison.is_working and self.isVisible():
            self._clock.start() if not self._clock.isActive() else None
        else:
            self._clock.stop()

    def _on_tick(self) -> None:
        for view in self.views:
            view.show_figures()

    def _on_loaded(self) -> None:
        beginning = self._comparison.common_text
        left_out = max(side.left_out for side in self._comparison.sides)
        heading = tr("After “{message}”").format(message=beginning) if beginning else _APART
        older = trn("{n} older message is not shown", "{n} older messages are not shown", left_out)
        self._common_history.set_text(f"{heading} · {older}" if left_out else heading)
        for view in self.views:
            view.show_loaded()
        self._on_side_changed()

    def _on_failed(self, why: str) -> None:
        self._show_state()
        self._error_banner.show_message(why, "failed")
