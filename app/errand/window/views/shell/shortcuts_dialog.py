"""The sheet that lists the keyboard shortcuts."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractSlider, QDialog, QGridLayout, QWidget

from errand.text.translation import tr
from errand.window.theme.theme import Theme
from errand.window.views.shared.actions import ShortcutStore
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.buttons import native_keys
from errand.window.widgets.containers import vertical_scroll_area
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import TextLabel

_Step = QAbstractSlider.SliderAction
_SCROLL_KEYS = {
    Qt.Key.Key_Up: _Step.SliderSingleStepSub,
    Qt.Key.Key_Down: _Step.SliderSingleStepAdd,
    Qt.Key.Key_PageUp: _Step.SliderPageStepSub,
    Qt.Key.Key_PageDown: _Step.SliderPageStepAdd,
    Qt.Key.Key_Home: _Step.SliderToMinimum,
    Qt.Key.Key_End: _Step.SliderToMaximum,
}


class ShortcutsDialog(QDialog):
    """Closed by Esc, scrolled by keys."""

    def __init__(self, theme: Theme, shortcuts: ShortcutStore, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tokens = theme.tokens
        lines = QWidget()
        grid = QGridLayout(lines)
        grid.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far)
        grid.setHorizontalSpacing(2 * tokens.space_far)
        grid.setVerticalSpacing(tokens.space_close)
        actions = [(action, shortcuts.keys(action.name)) for action in shortcuts.actions]
        listed = [(action.text, ", ".join(map(native_keys, keys))) for action, keys in actions if keys]
        for number, (text, keys) in enumerate((*listed, *_composer_keys())):
            grid.addWidget(TextLabel(theme, text), number, 0)
            grid.addWidget(TextLabel(theme, keys, tone="muted"), number, 1, Qt.AlignmentFlag.AlignRight)
        area = vertical_scroll_area(lines)
        self._scroll_bar = area.verticalScrollBar()
        set_vbox(self, area)
        size = lines.sizeHint()
        resize_on_screen(self, size.width() + self._scroll_bar.sizeHint().width(), size.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll with the keys: nothing in the sheet has the keyboard."""
        step = _SCROLL_KEYS.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self._scroll_bar.triggerAction(step)


def _composer_keys() -> tuple[tuple[str, str], ...]:
    """Keys that are no shortcuts of the window, as they are shown."""
    return (
        (tr("Send a message, steer a running task, reply to a question"), native_keys("Enter")),
        (tr("New line"), native_keys("Shift+Enter")),
        (tr("Queue the message for later"), native_keys("Alt+Enter")),
        (tr("Switch approval mode"), native_keys("Shift+Tab")),
        (tr("Close what is open on top"), native_keys("Esc")),
        (tr("Stop the task, if nothing is open"), tr("Esc twice")),
        (tr("Edit the last message"), native_keys("Up")),
        (tr("Go to tab 1 to 9"), f"{native_keys('Ctrl+1')} … 9"),
    )
