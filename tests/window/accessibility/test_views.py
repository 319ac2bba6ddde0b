"""Every view is usable without a mouse, with a screen reader and in both themes; a finding is one line."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QRadioButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.window.theme.style import push_button
from errand.window.theme.theme import Mode, Theme
from errand.window.widgets.labels import TextLabel
from tests.window.accessibility.contrast import lines, picture_of
from tests.window.accessibility.full_window import Office, office
from tests.window.accessibility.tab_walk import TabWalk
from tests.window.accessibility.tree import Element, elements, is_part_of_another, words_of
from tests.window.accessibility.views import VIEWS, View

_TEXT, _ICON = 4.5, 3.0


@pytest.fixture
async def opened(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[Office]:
    async with office(qapp, theme, tmp_path) as opened:
        yield opened


async def _bring(opened: Office, view: View) -> QWidget:
    opened.tidy()
    window = await view.open(opened)
    window.activateWindow()
    for _ in range(3):
        QApplication.processEvents()
    return window


async def test_every_control_has_a_role_and_a_name_and_is_a_tab_stop(opened: Office) -> None:
    findings: list[str] = []
    for view in VIEWS:
        window = await _bring(opened, view)
        walk = TabWalk(window)
        controls = [one for one in elements(window) if one.is_control and not is_part_of_another(one.widget)]
        findings += [f"{view.name}: no role: {one.words}" for one in controls if not one.has_role]
        findings += [f"{view.name}: no name: {one.words}" for one in controls if not one.name.strip()]
        findings += [f"{view.name}: Tab never comes to {one.words}" for one in controls if not _is_reached(one, walk)]
        findings += [f"{view.name}: not seen to have the keyboard: {words_of(widget)}" for widget in walk.unseen]
        if walk.trapped is not None:
            findings.append(f"{view.name}: Tab never leaves {words_of(walk.trapped)}")
    assert findings == [], "\n".join(findings)


@pytest.mark.parametrize("mode", ["light", "dark"])
async def test_every_text_and_icon_has_enough_contrast(opened: Office, theme: Theme, mode: Mode) -> None:
    theme.set_mode(mode)
    findings: list[str] = []
    for view in VIEWS:
        window = await _bring(opened, view)
        picture = picture_of(window)
        for one in elements(window):
            if one.has_text and one.enabled:
                least = _ICON if one.is_icon else _TEXT
                poor = [round(contrast, 1) for contrast in lines(picture, one.place) if contrast < least]
                findings += [f"{view.name}: contrast {poor}: {one.words}"] if poor else []
    assert findings == [], "\n".join(findings)


def test_the_checks_find_low_contrast_a_missing_name_and_a_missing_tab_stop(qtbot: QtBot, theme: Theme) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    pale, clear, skipped = TextLabel(theme, "pale"), TextLabel(theme, "clear"), QPushButton()
    pale.setStyleSheet("color: #999999")
    skipped.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    for part in (pale, clear, skipped, push_button("reached")):
        column.addWidget(part)
    window.show()
    picture = picture_of(window)
    found = {one.widget: one for one in elements(window)}
    assert min(lines(picture, found[pale].place)) < _TEXT < min(lines(picture, found[clear].place))
    assert found[skipped].is_control and not found[skipped].name and not _is_reached(found[skipped], TabWalk(window))


def _is_reached(one: Element, walk: TabWalk) -> bool:
    """True if it or a member of its group has the focus; disabled or fully visible ones need none."""
    if not one.enabled or one.is_only_read:
        return True
    if isinstance(one.widget, QRadioButton):
        group = one.widget.parent()
        return any(isinstance(widget, QRadioButton) and widget.parent() is group for widget in walk.reached)
    return one.widget in walk.reached or one.words in walk.words  # popups may be recreated
