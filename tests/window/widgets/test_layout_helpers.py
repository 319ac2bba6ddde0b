"""Rows and columns, forms, and questions inside a page."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QListWidget, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, at_left, centred, fill, hbox, set_at_top, set_vbox, vbox, widget_of
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.forms.form import form, line_edit
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn


def _shown(qtbot: QtBot, widget: QWidget) -> QWidget:
    qtbot.addWidget(widget)
    widget.resize(400, 300)
    widget.show()
    return widget


def test_parts_stand_in_their_order_and_the_filling_one_takes_the_free_space(qtbot: QtBot) -> None:
    window, title, save, text = QWidget(), QPushButton("Title"), QPushButton("Save"), QListWidget()
    set_vbox(window, hbox(title, STRETCH, save), 40, fill(text), spacing=10)
    _shown(qtbot, window)
    assert (title.x(), save.x() + save.width()) == (0, 400)
    assert text.y() - title.geometry().bottom() - 1 == 10 + 40
    assert text.y() + text.height() == 300


def test_margins_are_none_unless_they_are_given(qtbot: QtBot) -> None:
    window, button = QWidget(), QPushButton("Save")
    set_vbox(window, button, margins=(1, 2, 3, 4))
    layout = window.layout()
    assert isinstance(layout, QVBoxLayout)
    margins = layout.contentsMargins()
    assert (margins.left(), margins.top(), margins.right(), margins.bottom()) == (1, 2, 3, 4)
    assert hbox().contentsMargins().left() == 0


def test_aligned_parts_keep_their_preferred_width(qtbot: QtBot) -> None:
    window, left, middle = QWidget(), QPushButton("Left"), QPushButton("Middle")
    set_vbox(window, at_left(left), centred(middle))
    _shown(qtbot, window)
    assert (left.x(), left.width()) == (0, left.sizeHint().width())
    assert abs(middle.geometry().center().x() - 200) <= 1


class _WideView(QWidget):
    """A widget with which a column prefers a width at which no text wraps."""

    def sizeHint(self) -> QSize:
        return QSize(5_000, 10)


def test_rows_at_the_top_have_the_height_of_a_text_that_wraps(qtbot: QtBot, theme: Theme) -> None:
    window, text, wide = QWidget(), TextLabel(theme, "word " * 100, wrap=True), _WideView()
    set_at_top(window, vbox(widget_of(vbox(text, wide))))
    _shown(qtbot, window)
    assert text.y() == 0
    assert text.height() == text.heightForWidth(text.width()) > theme.tokens.size_base * 3


def test_a_form_has_a_label_beside_each_field(theme: Theme, qtbot: QtBot) -> None:
    window, name = QWidget(), line_edit("Your name", "Ada", max_length=3)
    window.setLayout(form(theme, ("Name", name)))
    _shown(qtbot, window)
    label = window.findChild(TextLabel)
    assert label is not None
    assert (label.text(), name.accessibleName(), name.placeholderText()) == ("Name", "Your name", "Ada")
    assert label.geometry().right() < name.x()
    QTest.keyClicks(name, "Grace")
    assert name.text() == "Gra"


def test_a_question_is_hidden_until_it_is_asked_and_after_each_answer(theme: Theme, qtbot: QtBot) -> None:
    window, opener, remove = QWidget(), push_button("Remove…"), push_button("Remove", "danger")
    question = ConfirmationView(theme, remove, opener=opener)
    set_vbox(window, opener, question)
    _shown(qtbot, window)
    assert not question.isVisible()
    question.ask("Remove it?")
    cancel = window.focusWidget()
    assert isinstance(cancel, QPushButton)
    assert (question.isVisible(), cancel.text()) == (True, "Cancel")
    with qtbot.waitSignal(remove.clicked):
        QTest.mouseClick(remove, Qt.MouseButton.LeftButton)
    assert not question.isVisible()


def test_escape_takes_a_question_back_and_gives_the_focus_to_its_opener(theme: Theme, qtbot: QtBot) -> None:
    window, opener, remove = QWidget(), push_button("Remove…"), push_button("Remove", "danger")
    question = ConfirmationView(theme, remove, opener=opener)
    set_vbox(window, opener, question)
    _shown(qtbot, window)
    question.ask("Remove it?")
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_Escape)
    assert (question.isVisible(), window.focusWidget()) == (False, opener)


def test_a_list_keeps_its_rows_while_its_items_stay_and_says_when_it_is_empty(qtbot: QtBot) -> None:
    window = QWidget()
    column = ListColumn(4, QPushButton, update=QPushButton.setText, make_empty=lambda: QPushButton("Nothing"))
    window.setLayout(column)
    _shown(qtbot, window)
    column.show_items({})
    assert [button.text() for button in window.findChildren(QPushButton)] == ["Nothing"]
    column.show_items({"a": "One", "b": "Two"})
    first = column.rows["a"]
    column.show_items({"a": "One, changed", "b": "Two"})
    assert (column.rows["a"] is first, first.text()) == (True, "One, changed")
    column.show_items({"b": "Two", "a": "One"})
    assert column.rows["a"] is not first
    items = [item for item in map(column.itemAt, range(column.count())) if item is not None]
    above, line, below = (item.widget() for item in items)
    assert (above, below) == (column.rows["b"], column.rows["a"])
    assert isinstance(line, QFrame)
