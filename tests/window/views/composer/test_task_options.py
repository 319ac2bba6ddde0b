"""The options of the next task: chosen in the bar and the dialog, kept for new conversations, sent with the task."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton
from pytestqt.qtbot import QtBot

from errand.protocol.agents import Personality
from errand.protocol.settings import Model
from errand.protocol.tasks.task import replace_fields
from errand.window.stores.task_options import TaskOptionDefaults, TaskOptions
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ApprovalModeView
from errand.window.views.composer.memory_switch import MemorySwitchView
from errand.window.views.composer.task_options_bar import TaskOptionsView
from errand.window.views.composer.task_options_dialog import TaskOptionsDialog
from errand.window.views.shared.model_picker import ModelPicker
from tests.support.model_server import Reply
from tests.support.records import agent, task
from tests.support.window import ViewFixture, until, view_fixture

PEOPLE = (
    Personality(id="assistant", name="Assistant", system_prompt="You help."),
    Personality(id="coder", name="Coder", system_prompt="You write code.", model="m/code", thinking_level="high"),
)
MODELS = (Model(id="m/plain", provider="m"), Model(id="m/code", provider="m"))
OFFER = TaskOptionDefaults(MODELS, "m/plain", PEOPLE)


@pytest.fixture
def choices(qtbot: QtBot, theme: Theme) -> TaskOptionsView:
    view = TaskOptionsView(theme, ApprovalModeView(theme), MemorySwitchView(theme))
    view.set_defaults(OFFER)
    qtbot.addWidget(view)
    view.resize(700, 40)
    view.show()
    return view


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    async with view_fixture(qapp, theme, tmp_path, [Reply(text=f"Reply {number}.") for number in range(8)]) as fixture:
        yield fixture


def panel(choices: TaskOptionsView) -> TaskOptionsDialog:
    QTest.mouseClick(choices.more_button, Qt.MouseButton.LeftButton)
    dialog = choices.findChild(TaskOptionsDialog)
    assert dialog is not None
    return dialog


def take(box: QComboBox, text: str) -> None:
    """Choose an item in a combo box, as a user does."""
    box.setCurrentIndex(box.findText(text))
    box.activated.emit(box.currentIndex())


def test_the_next_task_goes_to_the_same_server_until_another_model_is_chosen(choices: TaskOptionsView) -> None:
    begun = replace_fields(task(), model="openai_compatible/mine", api_base="http://127.0.0.1:9/v1")
    choices.show_task(begun)
    assert choices.options.start("More", "c1").api_base == "http://127.0.0.1:9/v1"
    choices.pick_model()
    picker = choices.findChild(ModelPicker)
    assert picker is not None
    picker.chosen.emit("m/code")
    params = choices.options.start("More", "c1")
    assert (params.model, params.api_base) == ("m/code", None)


def test_a_default_model_is_not_sent_even_if_the_agent_is_known_late(choices: TaskOptionsView) -> None:
    coder = msgspec.structs.replace(agent("a1"), personality_id="coder")
    choices.show_task(replace_fields(task(), model="m/code"))
    assert choices.options.model == "m/code", "it is not the default"
    choices.set_defaults(replace(OFFER, agent=coder))
    assert (choices.options.model, choices.model) == (None, "m/code"), "it is the personality's"
    choices.set_defaults(replace(OFFER, agent=msgspec.structs.replace(coder, model="m/own")))
    assert choices.options.model == "m/code", "it was chosen over the agent's own"
    choices.set_defaults(replace(OFFER, agent=msgspec.structs.replace(coder, model="m/code")))
    assert choices.options.model is None


def test_the_options_of_another_agents_task_are_not_used(choices: TaskOptionsView) -> None:
    choices.set_defaults(replace(OFFER, agent=agent("a2")))
    choices.show_task(replace_fields(task("t1"), model="m/code", mode="chat"))
    assert (choices.options.model, choices.options.mode, choices.model) == (None, "chat", "m/code")
    params = choices.options.start("More", "c1")
    assert (params.model, params.model_if_none) == (None, "m/code"), "for one that has none of its own"
    choices.set_options(replace(choices.options, model="m/mine"))
    choices.show_task(replace_fields(task("t2"), model="m/code"))
    assert choices.options.model == "m/mine"


def test_the_thinking_level_of_another_agent_or_of_the_personality_is_not_sent(choices: TaskOptionsView) -> None:
    coder = msgspec.structs.replace(agent("a1"), personality_id="coder")
    choices.set_defaults(replace(OFFER, agent=coder))
    choices.show_task(replace_fields(task("t1"), agent_id="another", thinking_level="low"))
    assert choices.options.thinking_level is None, "it was another one's"
    choices.show_task(replace_fields(task("t2"), agent_id="a1", thinking_level="high"))
    assert choices.options.thinking_level is None, "it is the personality's"
    choices.show_task(replace_fields(task("t3"), agent_id="a1", thinking_level="off"))
    assert choices.options.thinking_level == "off"


def test_the_dialog_has_all_options_and_the_bar_shows_those_that_were_changed(choices: TaskOptionsView) -> None:
    dialog = panel(choices)
    take(dialog.personality, "Coder")
    take(dialog.mode, "Task")
    take(dialog.thinking, "Low")
    take(dialog.network, "Network: off")
    QTest.keyClicks(dialog.budget, "1.5")
    assert choices.options == TaskOptions(
        mode="task", thinking_level="low", budget_usd=1.5, personality_id="coder", approve="ask", network="off"
    )
    assert choices.options.start("Go", None).network == "off"
    assert choices.more_button.accessibleName() == "More options: Coder, Task, Thinking: low, Network: off, Up to $1.50"
    assert choices.model_button.accessibleName() == "Model: m/code"
    dialog.close()


def test_a_personality_brings_its_own_model_and_thinking(choices: TaskOptionsView) -> None:
    choices.set_options(TaskOptions(model="m/plain", thinking_level="low"))
    dialog = panel(choices)
    take(dialog.personality, "Coder")
    assert choices.options == TaskOptions(personality_id="coder")
    dialog.close()


def test_an_invalid_budget_is_marked_and_not_used(choices: TaskOptionsView) -> None:
    dialog = panel(choices)
    QTest.keyClicks(dialog.budget, "2x")
    assert (dialog.budget.property("state"), choices.options.budget_usd) == ("wrong", 2.0)
    dialog.budget.setText("2,50")
    assert (dialog.budget.property("state"), choices.options.budget_usd) == ("wrong", 2.0)
    dialog.budget.setText("1,000")
    assert (dialog.budget.property("state"), choices.options.budget_usd) == ("", 1000.0)
    dialog.budget.clear()
    assert (dialog.budget.property("state"), choices.options.budget_usd) == ("", None)
    dialog.close()


def test_a_narrow_bar_collapses_to_icons_with_accessible_names(choices: TaskOptionsView) -> None:
    buttons = [button for button in choices.findChildren(QPushButton) if button.isVisible()]
    assert all(button.text() for button in buttons)
    choices.resize(sum(button.sizeHint().width() for button in buttons) - 1, 40)
    assert [bool(button.text()) for button in buttons] == [True, True, True, False]
    choices.resize(choices.minimumSizeHint())
    assert not any(button.text() for button in buttons)
    assert all(button.accessibleName() for button in buttons)


def test_options_are_remembered_except_that_everything_is_allowed(tmp_path: Path) -> None:
    state = WindowStateStore(tmp_path / "window.json")
    chosen = TaskOptions(mode="chat", approve="all", budget_usd=0.5, personality_id="coder", workspace="/work")
    state.set_options(chosen)
    state.flush()
    assert WindowStateStore(tmp_path / "window.json").settings.options == replace(chosen, approve="ask")


async def test_the_next_task_uses_the_chosen_options_and_they_stay(fixture: ViewFixture) -> None:
    await fixture.finish()
    input_panel = fixture.view.input_panel
    await until(lambda: len(fixture.engine.stores.personalities.all) >= 2)
    chosen = TaskOptions(model="scripted/note", mode="task", budget_usd=3.0, personality_id="coder")
    input_panel.set_options(chosen)
    fixture.view.store.commands.set_approve("never")
    await until(lambda: input_panel.approval_mode.mode_button.accessibleName() == "Approval mode: Deny everything")
    before = fixture.task.id
    QTest.keyClicks(input_panel.composer.field, "Continue")
    QTest.keyClick(input_panel.composer.field, Qt.Key.Key_Return)
    await until(lambda: fixture.task.id != before)
    assert (fixture.task.options.mode, fixture.task.budget.budget_usd, fixture.task.options.approve) == (
        "task",
        3.0,
        "never",
    )
    await until(lambda: input_panel.task_options.more_button.accessibleName().startswith("More options: Coder, Task"))


def test_a_folder_of_the_conversation_alone_is_not_named_by_an_id(choices: TaskOptionsView) -> None:
    choices.show_task(replace_fields(task("t1"), workspace="/data/workspaces/c1"))
    assert choices.folder_button.accessibleName() == "Working folder: Own folder"
    assert choices.folder_button.toolTip() == "/data/workspaces/c1"
    choices.show_task(replace_fields(task("t2"), workspace="/home/me/c2"))
    assert choices.folder_button.accessibleName() == "Working folder: c2"


async def test_memory_is_paused_for_a_conversation_by_mouse_and_by_keyboard(fixture: ViewFixture) -> None:
    await fixture.finish()
    switch = fixture.view.input_panel.memory_switch.button
    await until(lambda: not switch.isHidden())
    assert switch.accessibleName() == "Memory: this conversation is remembered"
    QTest.mouseClick(switch, Qt.MouseButton.LeftButton)
    await until(lambda: switch.accessibleName() == "Memory: this conversation is not remembered")
    assert switch.property("tone") == "waiting"
    conversation = fixture.view.store.conversation
    assert conversation is not None and not conversation.remembers
    switch.setFocus()
    QTest.keyClick(switch, Qt.Key.Key_Space)
    await until(lambda: switch.accessibleName() == "Memory: this conversation is remembered")


def test_before_there_is_a_conversation_the_switch_of_memory_is_hidden(qtbot: QtBot, theme: Theme) -> None:
    switch = MemorySwitchView(theme)
    bar = TaskOptionsView(theme, ApprovalModeView(theme), switch)
    qtbot.addWidget(bar)
    bar.resize(700, 40)
    assert switch.button.isHidden()
    switch.show_remembers(False)
    assert (switch.button.isHidden(), switch.button.text()) == (False, "Not remembered")
