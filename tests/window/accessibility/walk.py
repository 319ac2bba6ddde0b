"""Goes through all views and says, one line each, what keyboard or screen reader cannot use, and what does not fit."""

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QCheckBox, QLabel, QMessageBox, QRadioButton, QWidget

import errand.window
from errand.window.views.settings.shortcuts_page import KeySequenceButton
from errand.window.widgets.labels import ElidedLabel
from tests.support.window import until
from tests.window.accessibility.contrast import lines, picture_of
from tests.window.accessibility.full_window import WindowFixture
from tests.window.accessibility.tab_walk import TabWalk
from tests.window.accessibility.tree import Element, elements, is_part_of_another, words_of
from tests.window.accessibility.views import VIEWS, View

# The system's own dialog; and parts that are seen only while something is dragged, typed or loaded.
_NOT_WALKED = frozenset(
    {
        "ExportDialog",
        "DropHintView",
        "CompletionListView",
        "MentionListView",
        "ServerPromptListView",
        "PromptArgumentsDialog",
        "LoadingOlderView",
        "ProgressView",
        "JumpToEndView",
        "KeepMarkView",
        "SkillInstallView",
        "SkillPreviewView",
    }
)
MIN_TEXT_CONTRAST, MIN_ICON_CONTRAST = 4.5, 3.0

_PARTS = ("View", "Dialog", "Card", "Form", "Picker", "Menu", "Popover")


async def bring(fixture: WindowFixture, view: View) -> QWidget:
    """Show a view, alone."""
    fixture.tidy()
    window = await view.open(fixture)
    window.activateWindow()
    for _ in range(3):
        QApplication.processEvents()
    return window


async def findings(fixture: WindowFixture) -> list[str]:
    """Return what is wrong with keyboard, names and layout in all views."""
    lines_found: list[str] = []
    seen: set[type] = set()
    looked_at: set[QWidget] = set()
    for view in VIEWS:
        window = await bring(fixture, view)
        seen.update(kind for part in _visible(window) for kind in type(part).__mro__)
        wrong = (*_nameless(window), *_unreachable(window, looked_at), *_unpressable(window), *_cut(window))
        lines_found += [f"{view.name}: {line}" for line in wrong]
    return [*lines_found, *(f"in no view: {name}" for name in sorted(_window_parts(seen)))]


async def findings_in_contrast(fixture: WindowFixture) -> list[str]:
    """Return the texts and icons with too little contrast, in the theme that is applied."""
    problems: list[str] = []
    for view in VIEWS:
        window = await bring(fixture, view)
        problems += [f"{view.name}: {line}" for line in _low_contrast(window)]
    return problems


def _low_contrast(window: QWidget) -> Iterator[str]:
    picture = picture_of(window)
    for part in elements(window):
        if part.has_text and part.enabled:
            min_contrast = MIN_ICON_CONTRAST if part.is_icon else MIN_TEXT_CONTRAST
            poor = [round(contrast, 1) for contrast in lines(picture, part.area) if contrast < min_contrast]
            if poor:
                yield f"contrast {poor}: {part.words}"


async def findings_in_texts(fixture: WindowFixture) -> list[str]:
    """Return the findings that depend on the language: names, and whether texts fit."""
    problems: list[str] = []
    for view in VIEWS:
        window = await bring(fixture, view)
        with suppress(TimeoutError):
            await until(partial(_fits, window))  # its layout may not be complete yet
        problems += [f"{view.name}: {line}" for line in (*_nameless(window), *_cut(window))]
    return problems


def is_reached(element: Element, walk: TabWalk) -> bool:
    """True if it or a member of its group has the focus; disabled or fully visible ones need none."""
    if not element.enabled or element.is_only_read:
        return True
    if isinstance(element.widget, QRadioButton):
        group = element.widget.parent()
        return any(isinstance(widget, QRadioButton) and widget.parent() is group for widget in walk.reached)
    return element.widget in walk.reached or element.words in walk.words  # popups may be recreated


def _controls(window: QWidget) -> list[Element]:
    return [element for element in elements(window) if element.is_control and not is_part_of_another(element.widget)]


def _nameless(window: QWidget) -> Iterator[str]:
    for element in _controls(window):
        if not element.has_role:
            yield f"no role: {element.words}"
        if not element.name.strip():
            yield f"no name: {element.words}"


def _unreachable(window: QWidget, looked_at: set[QWidget]) -> Iterator[str]:
    walk = TabWalk(window, looked_at)
    for element in _controls(window):
        if not is_reached(element, walk):
            yield f"Tab never comes to {element.words}"
    for widget in walk.unseen:
        yield f"not seen to have the keyboard: {words_of(widget)}"
    if walk.trapped is not None:
        yield f"Tab never leaves {words_of(walk.trapped)}"
    for before, after in walk.backward:
        yield f"Tab goes back from {words_of(before)} to {words_of(after)}"


def _unpressable(window: QWidget) -> Iterator[str]:
    """Buttons that Enter or Space does not press, or that take the focus, and so show its ring, after a click."""
    for button in _visible(window):
        if not isinstance(button, QAbstractButton) or not button.isEnabled() or is_part_of_another(button):
            continue
        if not button.focusPolicy() & Qt.FocusPolicy.TabFocus:
            continue
        if button.focusPolicy() & Qt.FocusPolicy.ClickFocus and not _may_take_focus(button):
            yield f"a click moves the focus, and its ring, to {words_of(button)}"
        is_box = isinstance(button, QCheckBox | QRadioButton)
        keys = (Qt.Key.Key_Space,) if is_box else (Qt.Key.Key_Space, Qt.Key.Key_Return)
        for key in keys:
            if not _takes(button, key):
                yield f"{Qt.Key(key).name} does not press {words_of(button)}"


def _may_take_focus(button: QAbstractButton) -> bool:
    """A click starts to record keys, or closes the dialog."""
    return isinstance(button, KeySequenceButton) or isinstance(button.window(), QMessageBox)


def _takes(button: QAbstractButton, key: Qt.Key) -> bool:
    """True if the button accepts the key; what it would do is held back."""
    was_checked = button.isChecked()
    button.blockSignals(True)
    press = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
    button.event(press)
    button.setDown(False)
    button.setChecked(was_checked)
    button.blockSignals(False)
    return press.isAccepted()


def _cut(window: QWidget) -> Iterator[str]:
    """Labels and buttons that are smaller than their text. Elided ones say so themselves."""
    for part in _visible(window):
        if is_part_of_another(part) or part.visibleRegion().isEmpty():
            continue
        if isinstance(part, QAbstractButton) and part.text():
            if part.width() < part.minimumSizeHint().width() - 1:
                yield f"cut: {words_of(part)}, {part.width()} of {part.minimumSizeHint().width()} pixels"
        elif isinstance(part, QLabel) and part.text() and not isinstance(part, ElidedLabel):
            if part.wordWrap() and part.height() < part.heightForWidth(part.width()) - 1:
                yield f"cut: {words_of(part)}, {part.height()} of {part.heightForWidth(part.width())} pixels high"
            elif not part.wordWrap() and part.width() < part.sizeHint().width() - 1:
                yield f"cut: {words_of(part)}, {part.width()} of {part.sizeHint().width()} pixels"


def _fits(window: QWidget) -> bool:
    return not any(_cut(window))


def _visible(window: QWidget) -> list[QWidget]:
    return [part for part in (window, *window.findChildren(QWidget)) if part.isVisible() and part.window() is window]


def _window_parts(seen: set[type]) -> Iterator[str]:
    """The classes of views, dialogs and cards that no view has shown."""
    for module in pkgutil.walk_packages(errand.window.__path__, "errand.window."):
        importlib.import_module(module.name)
    for kind in _below(QWidget):
        is_ours = kind.__module__.startswith("errand.window.") and kind.__name__.endswith(_PARTS)
        if is_ours and kind not in seen and kind.__name__ not in _NOT_WALKED and not kind.__name__.startswith("_"):
            yield kind.__name__


def _below(kind: type[QWidget]) -> Iterator[type[QWidget]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _below(subclass)
