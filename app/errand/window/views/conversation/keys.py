"""Keys that no control of a conversation took: text goes to the composer, Esc closes what is open on top.

Only if nothing is open, Esc stops the task, pressed twice.
"""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget

from errand.client.conversation.task_states import is_working
from errand.text.translation import tr
from errand.window.stores.conversation.store import ConversationStore
from errand.window.transcript.view import TranscriptView
from errand.window.views.composer.composer import ComposerView
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.conversation.find_bar_slot import FindBarSlot
from errand.window.views.conversation.side_panels import SidePanelsView

_PRESS_AGAIN = tr("Press Esc again to stop")
_PRESS_AGAIN_WITHIN_MS = 1000


class EscapeKey(QObject):
    """The one order of what is on top. Menus, popovers and dialogs are above it: they get the key themselves."""

    def __init__(
        self,
        store: ConversationStore,
        transcript: TranscriptView,
        find: FindBarSlot,
        input_panel: InputPanelView,
        panels: SidePanelsView,
    ) -> None:
        super().__init__(panels)
        self._store = store
        self._transcript = transcript
        self._input_panel = input_panel
        self._panels = panels
        self._notices = input_panel.notices
        self._stop_timer = QTimer(self, singleShot=True, interval=_PRESS_AGAIN_WITHIN_MS)
        self._stop_timer.timeout.connect(self._disarm)
        # Each closes its part and returns True, or does nothing.
        self._layers = (
            input_panel.completions.close,
            find.close,
            transcript.close_part,
            input_panel.queue.cancel_edit,
            self._end_edit,
            self._close_review,
            self._leave_tree,
            self._clear_selection,
            transcript.close_last_opened,
        )

    def press(self, *, is_held: bool) -> None:
        """A key that is held counts once for stopping."""
        if any(close() for close in self._layers):
            self._disarm()
            self._keep_focus()
        elif not is_held:
            self._stop()

    def _end_edit(self) -> bool:
        if not self._store.branch.is_edited:
            return False
        self._store.branches.end_edit()
        return True

    def _close_review(self) -> bool:
        if not self._panels.review.has_focus:
            return False
        self._panels.review.close()
        return True

    def _leave_tree(self) -> bool:
        if not self._panels.tree.has_focus:
            return False
        self._input_panel.composer.setFocus()
        return True

    def _clear_selection(self) -> bool:
        if self._transcript.selection.span() is None:
            return False
        self._transcript.selection.clear()
        return True

    def _keep_focus(self) -> None:
        """The keyboard never stays in what was closed."""
        focused = QApplication.focusWidget()
        if focused is None or not focused.isVisible():
            self._input_panel.composer.setFocus()

    def _stop(self) -> None:
        task = self._store.task
        if task is None or not is_working(task) or task.activity.stopping:
            self._input_panel.composer.setFocus()
        elif self._stop_timer.isActive():
            self._disarm()
            self._store.commands.stop()
        else:
            self._stop_timer.start()
            self._notices.remind(_PRESS_AGAIN)

    def _disarm(self) -> None:
        self._stop_timer.stop()
        self._notices.remind("")


class UnhandledKeys(QObject):
    """Keys that no child of the conversation handled: text is typed into the composer, Esc is for `EscapeKey`.

    An event filter, not a shortcut: a shortcut would be handled before the dialogs above the conversation.
    """

    def __init__(self, view: QWidget, composer: ComposerView, escape: EscapeKey) -> None:
        super().__init__(view)
        self._composer = composer
        self._escape = escape
        view.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        if event.key() == Qt.Key.Key_Escape and not event.modifiers():
            self._escape.press(is_held=event.isAutoRepeat())
            return True
        return _type(event, self._composer)


def go_to_composer(event: QKeyEvent, composer: ComposerView) -> bool:
    """Handle a key pressed outside of the conversation: Esc goes to the composer, text is typed there. Else False."""
    if event.key() == Qt.Key.Key_Escape:
        composer.setFocus()
        return True
    return _type(event, composer)


def _type(event: QKeyEvent, composer: ComposerView) -> bool:
    text = _typed_text(event)
    if text:
        composer.setFocus()
        composer.field.insertPlainText(text)
    return bool(text)


def _typed_text(event: QKeyEvent) -> str:
    """Return the text that a key types; empty for commands. AltGr is Ctrl and Alt on some systems."""
    modifiers, modifier = event.modifiers(), Qt.KeyboardModifier
    has_control, has_alt = bool(modifiers & modifier.ControlModifier), bool(modifiers & modifier.AltModifier)
    is_command = has_control != has_alt or bool(modifiers & modifier.MetaModifier)
    return "" if is_command or not event.text().isprintable() else event.text()
