"""A notice of one line, in a place of fixed height. Text and actions that do not fit are shown by a click."""

from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import (
    QClipboard,
    QGuiApplication,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from errand.text.translation import tr
from errand.window.theme.style import paint_rounded, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.accessibility import announce
from errand.window.widgets.banner import TONE_STYLES, BannerTone
from errand.window.widgets.boxes import STRETCH, fill, hbox, vbox
from errand.window.widgets.buttons import CopyButton, IconButton
from errand.window.widgets.dialogs import FramelessDialog
from errand.window.widgets.labels import ElidedLabel, TextLabel

_DETAILS_WIDTH = 480
# Actions give way before the text gets narrower than this.
_MIN_TEXT_WIDTH_PX = 220


@dataclass(frozen=True, slots=True)
class Notice:
    """`actions` are the labels of buttons, the most useful first. With `is_progress` the text alone changes often."""

    text: str
    tone: BannerTone = "info"
    actions: tuple[str, ...] = ()
    is_dismissible: bool = False
    is_progress: bool = False

    def goes_on(self, previous: "Notice") -> bool:
        """Return True if this is more progress of the same, which leaves the buttons and the focus as they are."""
        return self.is_progress and replace(previous, text=self.text) == self


class NoticeLineView(QWidget):
    """Emits `action_clicked` with the number of the button, and `dismissed`.

    Where there is little room, the less useful actions move into "Details"; the first one always stays.
    """

    action_clicked = Signal(int)
    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._notice = Notice("")
        tokens = theme.tokens
        self._icon = QLabel()
        self._text = _LineLabel(theme)
        self._details = push_button(tr("Details"), "quiet")
        self._actions: list[QPushButton] = []
        self._dismiss = IconButton(theme, "x", tr("Dismiss"))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(tokens.space_normal, 0, tokens.space_tight, 0)
        self._row.setSpacing(tokens.space_close)
        self._row.addWidget(self._icon)
        self._row.addWidget(self._text, 1)
        self._row.addWidget(self._details)
        self._row.addWidget(self._dismiss)
        self._text.cut_changed.connect(self._show_details)
        self._details.hide()
        self._details.clicked.connect(self._on_details_clicked)
        self._dismiss.clicked.connect(self.dismissed)
        theme.changed.connect(self._on_theme_changed)

    @property
    def text(self) -> str:
        return self._notice.text

    def show_notice(self, notice: Notice) -> None:
        """Screen readers are told of a notice that is new."""
        if notice == self._notice:
            return
        previous, self._notice = self._notice, notice
        if notice.goes_on(previous):
            self._text.set_text(notice.text)
            self.setAccessibleName(notice.text)
            return
        for details in self.findChildren(NoticeDetailsDialog):
            details.close()  # its actions are those of the notice before
        self._text.set_text(notice.text)
        self.setAccessibleName(notice.text)
        self._set_actions(notice.actions)
        self._dismiss.setVisible(notice.is_dismissible)
        self._fit()
        self._on_theme_changed()
        announce(self, notice.text, is_urgent=notice.tone == "failed")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        fill = self._theme.colour(TONE_STYLES[self._notice.tone][2])
        painter = QPainter(self)
        paint_rounded(painter, self.rect(), tokens.radius_control, fill=fill)
        painter.end()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._details.isHidden() and event.button() == Qt.MouseButton.LeftButton:
            self._on_details_clicked()

    def _set_actions(self, labels: tuple[str, ...]) -> None:
        for button in self._actions:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._actions = [push_button(label, "quiet") for label in labels]
        for number, button in enumerate(self._actions):
            button.clicked.connect(partial(self._on_action_clicked, number))
            self._row.insertWidget(self._row.count() - 1, button)

    def _fit(self) -> None:
        text_width = self._text.fontMetrics().horizontalAdvance(self._text.full_text)
        least_width = min(text_width, self._theme.pixels(_MIN_TEXT_WIDTH_PX))
        margins, spacing = self._row.contentsMargins(), self._row.spacing()
        neighbours = [self._icon] if self._dismiss.isHidden() else [self._icon, self._dismiss]
        room = self.width() - margins.left() - margins.right() - least_width
        room -= sum(widget.sizeHint().width() + spacing for widget in neighbours)
        widths = [button.sizeHint().width() + spacing for button in self._actions]
        if sum(widths) > room:
            room -= self._details.sizeHint().width() + spacing
        for number, button in enumerate(self._actions):
            button.setVisible(number == 0 or sum(widths[: number + 1]) <= room)
        self._show_details()

    def _show_details(self) -> None:
        self._details.setVisible(self._text.is_cut or any(button.isHidden() for button in self._actions))

    def _on_action_clicked(self, number: int) -> None:
        self.action_clicked.emit(number)

    def _on_details_clicked(self) -> None:
        dialog = NoticeDetailsDialog(self._theme, self._notice.text, QGuiApplication.clipboard(), self)
        for number, button in enumerate(self._actions):
            if button.isHidden():
                dialog.add_action(button.text()).connect(partial(self._on_action_clicked, number))
        dialog.open_above(self)

    def _on_theme_changed(self) -> None:
        icon, colour, _ = TONE_STYLES[self._notice.tone]
        side = self._theme.tokens.icon_small
        self._icon.setPixmap(self._theme.icon(icon, colour).pixmap(QSize(side, side), self.devicePixelRatio()))
        set_style(self._text, "tone", "text" if self._notice.tone == "info" else colour)
        self.update()


class _LineLabel(ElidedLabel):
    """Emits `cut_changed` when the text begins or ceases to be cut."""

    cut_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        self.is_cut = False
        super().__init__(theme, size=theme.tokens.size_small)

    def _elide(self) -> None:
        super()._elide()
        is_cut = self.text() != self.full_text
        if is_cut != self.is_cut:
            self.is_cut = is_cut
            self.cut_changed.emit(is_cut)


class NoticeDetailsDialog(FramelessDialog):
    """The whole text of a notice, to read and to copy, and actions for which the line has no room."""

    def __init__(self, theme: Theme, text: str, clipboard: QClipboard, parent: QWidget) -> None:
        super().__init__(theme, Qt.WindowType.Popup, parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Details"))
        self.setAccessibleName(tr("Details"))
        self._space = theme.tokens.space_tight
        self._width = theme.pixels(_DETAILS_WIDTH)
        label = TextLabel(theme, text, wrap=True)
        copy = CopyButton(theme, tr("Copy"), partial(clipboard.setText, text))
        self._actions = QHBoxLayout()
        self._actions.setSpacing(theme.tokens.space_close)
        self._actions.addStretch(1)
        self._rows = QVBoxLayout(self)
        self._rows.addLayout(hbox(fill(label), vbox(copy, STRETCH), spacing=theme.tokens.space_close))

    def add_action(self, label: str) -> SignalInstance:
        """Add a button below the text, which also closes the dialog; returns its signal."""
        button = push_button(label)
        button.clicked.connect(self.close)
        if self._actions.count() == 1:  # the stretch
            self._rows.addLayout(self._actions)
        self._actions.addWidget(button)
        return button.clicked

    def open_above(self, line: QWidget) -> None:
        """Its lower edge is above the line."""
        width = min(self._width, line.width())
        self.resize(width, self._rows.totalHeightForWidth(width))
        self.show()
        self.move(line.mapToGlobal(QPoint(0, -self.height() - self._space)))
