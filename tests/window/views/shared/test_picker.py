"""The picker: choosing from a list by typing."""

from collections.abc import Generator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from errand.window.theme.theme import Theme
from errand.window.views.shared.picker import PickerDialog, PickerItem

CHOICES = (PickerItem("a", "New task", "Ctrl+T"), PickerItem("b", "Close tab"), PickerItem("c", "Reopen closed tab"))


@pytest.fixture
def picker(qtbot: QtBot, theme: Theme) -> Generator[PickerDialog]:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(800, 600)
    window.show()
    dialog = PickerDialog(theme, "Find an action", CHOICES, window)
    dialog.open_over(window)
    yield dialog


def field_of(picker: PickerDialog) -> QLineEdit:
    field = picker.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    return field


def test_all_typed_words_must_match_and_enter_chooses_the_selected_item(picker: PickerDialog) -> None:
    chosen: list[str] = []
    picker.chosen.connect(chosen.append)
    field = field_of(picker)
    QTest.keyClicks(field, "TAB close")
    assert picker.shown == ("Close tab", "Reopen closed tab")
    QTest.keyClick(field, Qt.Key.Key_Down)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert (chosen, picker.isVisible()) == (["c"], False)


def test_without_a_match_the_picker_says_so_and_enter_does_nothing(picker: PickerDialog) -> None:
    chosen: list[str] = []
    picker.chosen.connect(chosen.append)
    QTest.keyClicks(field_of(picker), "zebra")
    QTest.keyClick(field_of(picker), Qt.Key.Key_Return)
    assert (picker.shown, chosen, picker.isVisible()) == ((), [], True)


def test_escape_closes_the_picker_without_a_choice(picker: PickerDialog) -> None:
    chosen: list[str] = []
    picker.chosen.connect(chosen.append)
    QTest.keyClick(field_of(picker), Qt.Key.Key_Escape)
    assert (chosen, picker.isVisible()) == ([], False)


def test_items_found_later_are_added_once_and_the_selection_stays(picker: PickerDialog) -> None:
    chosen: list[str] = []
    picker.chosen.connect(chosen.append)
    QTest.keyClicks(field_of(picker), "tab")
    QTest.keyClick(field_of(picker), Qt.Key.Key_Down)
    picker.add((PickerItem("d", "A tab of last year"), PickerItem("b", "Close tab")))
    assert picker.shown == ("Close tab", "Reopen closed tab", "A tab of last year")
    QTest.keyClick(field_of(picker), Qt.Key.Key_Return)
    assert chosen == ["c"]
