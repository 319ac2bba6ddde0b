"""The model picker by keyboard and mouse: search, favourites, folded and typed models, thousands of them."""

from collections.abc import Callable, Generator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView, QWidget
from pytestqt.qtbot import QtBot

from errand.protocol.settings import Model
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.theme import Theme
from errand.window.views.shared.model_picker import ModelPicker

OPUS = Model(
    id="anthropic/opus-5",
    provider="anthropic",
    context_tokens=200_000,
    input_price=5.0,
    output_price=25.0,
    tools=True,
    images=True,
    thinking=True,
)
MODELS = (
    Model(id="lab/qwen3", provider="lab"),
    Model(id="lab/text-embedding-9", provider="lab", for_chat=False),
    OPUS,
    Model(id="anthropic/opus-5-20260101", provider="anthropic"),
)
PROVIDERS = (("lab", "Lab"), ("anthropic", "Anthropic"))


class Person:
    """Someone who chooses a model."""

    def __init__(self, picker: ModelPicker) -> None:
        self.picker = picker
        self.chosen: list[str] = []
        self.favourites: list[tuple[str, bool]] = []
        picker.chosen.connect(self.chosen.append)
        picker.favourite_changed.connect(self._on_favourite_changed)

    def _on_favourite_changed(self, model: str, is_new: bool) -> None:
        self.favourites.append((model, is_new))

    @property
    def field(self) -> QLineEdit:
        (field,) = self.picker.findChildren(QLineEdit)
        return field

    @property
    def list(self) -> QListView:
        (view,) = self.picker.findChildren(QListView)
        return view

    def type(self, text: str) -> None:
        QTest.keyClicks(self.field, text)

    def key(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.field, key, modifier)

    def click(self, name: str, from_right: int = 0) -> None:
        """Click a line, in its middle or so far from its right edge."""
        rect = self.list.visualRect(self.list.model().index(self.picker.shown.index(name), 0))
        point = QPoint(rect.right() - from_right, rect.center().y()) if from_right else rect.center()
        QTest.mouseClick(self.list.viewport(), Qt.MouseButton.LeftButton, pos=point)


Open = Callable[[TaskOptionDefaults, str], Person]


@pytest.fixture
def open_picker(qtbot: QtBot, theme: Theme) -> Generator[Open]:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(900, 700)
    window.show()

    def opened(defaults: TaskOptionDefaults, current: str) -> Person:
        picker = ModelPicker(theme, defaults, current, window)
        picker.open_beside(window)
        return Person(picker)

    yield opened


def test_typing_filters_arrows_move_and_enter_chooses(open_picker: Open) -> None:
    person = open_picker(TaskOptionDefaults(MODELS, providers=PROVIDERS), "lab/qwen3")
    assert person.picker.selected == "lab/qwen3", "the current one"
    person.key(Qt.Key.Key_Down)
    person.key(Qt.Key.Key_Down)
    assert person.picker.selected == "anthropic/opus-5", "past a heading and the same model in its group"
    person.type("opus")
    assert person.picker.shown == ("opus-5", "opus-5-20260101")
    person.key(Qt.Key.Key_Down)
    person.key(Qt.Key.Key_Down)
    person.key(Qt.Key.Key_Up)
    person.key(Qt.Key.Key_Return)
    assert (person.chosen, person.picker.isVisible()) == (["anthropic/opus-5"], False)


def test_dated_and_embedding_models_are_folded_until_asked_for(open_picker: Open) -> None:
    person = open_picker(TaskOptionDefaults(MODELS, providers=PROVIDERS), "")
    assert person.picker.shown == ("Lab", "qwen3", "Anthropic", "opus-5", "Show 2 more (dated versions, embeddings)")
    person.click("Show 2 more (dated versions, embeddings)")
    assert person.picker.isVisible()
    assert person.picker.shown == ("Lab", "qwen3", "text-embedding-9", "Anthropic", "opus-5", "opus-5-20260101")


def test_a_star_or_ctrl_d_marks_a_favourite_and_chooses_nothing(open_picker: Open) -> None:
    person = open_picker(TaskOptionDefaults(MODELS, providers=PROVIDERS), "lab/qwen3")
    person.click("opus-5", from_right=14)
    person.key(Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert person.favourites == [("anthropic/opus-5", True), ("lab/qwen3", True)]
    assert person.chosen == []
    person.click("opus-5")
    assert person.chosen == ["anthropic/opus-5"], "a click beside the star"


def test_what_a_screen_reader_says_has_the_facts(open_picker: Open) -> None:
    defaults = TaskOptionDefaults(MODELS, providers=PROVIDERS, favourites=("anthropic/opus-5",))
    person = open_picker(defaults, "anthropic/opus-5")
    spoken = person.list.model().index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "opus-5, current, Anthropic, 200K, $5 / $25, tools, pictures, thinking, favourite"


def test_an_id_that_is_in_no_list_is_typed(open_picker: Open) -> None:
    person = open_picker(TaskOptionDefaults(MODELS, providers=PROVIDERS), "")
    person.type("openai/gpt-9")
    person.key(Qt.Key.Key_Return)
    assert person.chosen == ["openai/gpt-9"]


def test_without_a_match_it_says_how_to_use_another_model(open_picker: Open) -> None:
    person = open_picker(TaskOptionDefaults(MODELS, providers=PROVIDERS), "")
    person.type("two words")
    person.key(Qt.Key.Key_Return)
    assert (person.picker.shown, person.chosen, person.list.isVisible()) == ((), [], False)


def test_thousands_of_models_are_searched_and_walked(open_picker: Open) -> None:
    many = tuple(Model(id=f"lab/model-{number}", provider="lab") for number in range(2000))
    person = open_picker(TaskOptionDefaults(many, providers=PROVIDERS), "lab/model-1999")
    assert person.picker.selected == "lab/model-1999"
    person.type("model-1234")
    assert person.picker.shown == ("model-1234",)
    person.field.clear()
    person.key(Qt.Key.Key_PageDown)
    assert person.picker.selected == "lab/model-7"
