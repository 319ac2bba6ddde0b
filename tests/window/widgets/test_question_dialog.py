"""Questions with a safe default answer."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from errand.window.stores.conversation.commands import WorkspaceQuestion
from errand.window.theme.theme import Theme
from errand.window.views.conversation.dialogs import WorkspaceDialog
from errand.window.views.sidebar.archive import DeleteDialog
from errand.window.widgets.dialogs import QuestionDialog

CHOSEN: list[str | None] = []


def delete(parent: QWidget) -> QuestionDialog:
    return DeleteDialog("Notes", 3, 1, parent)


def workspace(parent: QWidget) -> QuestionDialog:
    return WorkspaceDialog(WorkspaceQuestion("/elsewhere", "/own", CHOSEN.append), parent)


@pytest.mark.parametrize("question", [delete, workspace])
def test_enter_still_presses_the_safe_button_after_a_theme_change(
    question: Callable[[QWidget], QuestionDialog], qapp: QApplication, theme: Theme, qtbot: QtBot
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    box = question(parent)
    accepted: list[bool] = []
    box.accepted.connect(lambda: accepted.append(True))
    box.open()
    CHOSEN.clear()
    qtbot.waitUntil(box.isActiveWindow)
    theme.set_mode("dark")
    qapp.processEvents()
    focused = box.focusWidget()
    assert isinstance(focused, QPushButton)
    QTest.keyClick(focused, Qt.Key.Key_Return)
    assert (accepted, CHOSEN) in (([], []), ([], [None]))
