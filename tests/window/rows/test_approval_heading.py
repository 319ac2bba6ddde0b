"""The heading of an approval in a narrow column."""

import msgspec
import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import AskRow
from errand.window.rows.asks.ask import AskView
from errand.window.theme.theme import Theme
from tests.support.row_actions import KeptActions
from tests.support.rows import APPROVAL


@pytest.mark.parametrize("width", [320, 420, 600])
def test_the_risk_stands_whole_beside_a_long_name_of_a_sub_agent(theme: Theme, qtbot: QtBot, width: int) -> None:
    assert APPROVAL.approval is not None
    name, risky = "Write the tests of the storage package", msgspec.structs.replace(APPROVAL.approval, risk="high")
    ask = msgspec.structs.replace(APPROVAL, approval=risky, sub_agent=name)
    view = AskView(theme, KeptActions())
    qtbot.addWidget(view)
    view.set_row(AskRow(key=ask.id, ask=ask))
    view.resize(width, view.height_for(width))
    view.show()
    view.grab()
    labels = [label for label in view.findChildren(QLabel) if label.isVisible()]
    risk = next(label for label in labels if label.text() == "High risk: check carefully")
    title = next(label for label in labels if label.text().startswith("Appr"))
    assert risk.width() >= risk.sizeHint().width()
    assert title.text().endswith(("…", f"“{name}”")), "cut with an ellipsis"
    assert title.geometry().right() < risk.geometry().left()
