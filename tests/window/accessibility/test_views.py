"""Every view is usable without a mouse, with a screen reader and in both themes; a finding is one line."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from catalogues import compile_all
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.window.theme.style import push_button
from errand.window.theme.theme import Mode, Theme
from errand.window.widgets.labels import TextLabel
from tests.support.command_line import CHECKOUT
from tests.window.accessibility.contrast import lines, picture_of
from tests.window.accessibility.full_window import Office, office
from tests.window.accessibility.tab_walk import TabWalk
from tests.window.accessibility.tree import elements
from tests.window.accessibility.views import VIEWS
from tests.window.accessibility.walk import bring, findings, is_reached

_TEXT, _ICON = 4.5, 3.0


@pytest.fixture
async def opened(
    qapp: QApplication, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Office]:
    monkeypatch.setenv("HOME", str(tmp_path))  # where skills are installed
    async with office(qapp, theme, tmp_path) as opened:
        yield opened


async def test_every_part_can_be_used_without_a_mouse_and_fits(opened: Office) -> None:
    found = await findings(opened)
    assert found == [], "\n".join(found)


def test_every_control_has_a_name_and_every_text_fits_in_german(tmp_path: Path) -> None:
    compile_all()
    walk = subprocess.run(
        [sys.executable, "-m", "tests.window.accessibility.german", tmp_path],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert walk.stdout == "done\n", walk.stdout + walk.stderr


@pytest.mark.parametrize("mode", ["light", "dark"])
async def test_every_text_and_icon_has_enough_contrast(opened: Office, theme: Theme, mode: Mode) -> None:
    theme.set_mode(mode)
    findings: list[str] = []
    for view in VIEWS:
        window = await bring(opened, view)
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
    assert found[skipped].is_control and not found[skipped].name and not is_reached(found[skipped], TabWalk(window))
