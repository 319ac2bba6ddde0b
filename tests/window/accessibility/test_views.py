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
from tests.window.accessibility.full_window import WindowFixture, window_fixture
from tests.window.accessibility.tab_walk import TabWalk
from tests.window.accessibility.tree import elements
from tests.window.accessibility.walk import MIN_TEXT_CONTRAST, findings, findings_in_contrast, is_reached


@pytest.fixture
async def opened(
    qapp: QApplication, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[WindowFixture]:
    monkeypatch.setenv("HOME", str(tmp_path))  # where skills are installed
    async with window_fixture(qapp, theme, tmp_path) as opened:
        yield opened


async def test_every_part_can_be_used_without_a_mouse_and_fits(opened: WindowFixture) -> None:
    wrong = await findings(opened)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("mode", ["light", "dark"])
async def test_every_text_and_icon_has_enough_contrast(opened: WindowFixture, theme: Theme, mode: Mode) -> None:
    theme.set_mode(mode)
    wrong = await findings_in_contrast(opened)
    assert wrong == [], "\n".join(wrong)


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
    by_widget = {element.widget: element for element in elements(window)}
    assert min(lines(picture, by_widget[pale].area)) < MIN_TEXT_CONTRAST < min(lines(picture, by_widget[clear].area))
    assert (
        by_widget[skipped].is_control
        and not by_widget[skipped].name
        and not is_reached(by_widget[skipped], TabWalk(window))
    )
