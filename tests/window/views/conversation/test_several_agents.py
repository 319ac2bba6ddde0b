"""Several agents in the window: the agents bar, mentions in the input, dialogs, and asks of other agents."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from errand.protocol.conversations import TurnTaking
from errand.protocol.settings import Model
from errand.window.stores.conversation.agents import NewAgent
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.theme.theme import Theme
from errand.window.views.agents.dialogs import AddAgentDialog, RemoveAgentDialog, TurnOrderDialog
from errand.window.views.composer.task_options_dialog import TaskOptionsDialog
from errand.window.views.conversation.ask_models_dialog import AskModelsDialog
from tests.support.model_server import Call, Reply
from tests.support.window import ViewFixture, press, until, view_fixture

_QUESTION = Reply(calls=(Call("ask_user", {"question": "Which colour?", "choices": ["Blue", "Green"]}),))


async def joined(fixture: ViewFixture, name: str = "Coder") -> str:
    """Add an agent, which becomes the selected one; returns its id."""
    store = fixture.view.store
    count_before = len(store.agents.all)
    store.agents.add(store.conversation_id or "", NewAgent("assistant", name, color="teal"))
    await until(lambda: len(store.agents.all) > count_before and store.agents.chosen_id is not None)
    return store.agents.chosen_id or ""


def names(fixture: ViewFixture) -> list[str]:
    """The accessible names of the chips."""
    return [chip.accessibleName() for chip in fixture.view.input_panel.agents.chips]


async def test_the_bar_appears_with_the_second_agent_and_shows_status_and_selection(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        input_panel = fixture.view.input_panel
        assert not input_panel.agents.isVisible()
        await joined(fixture)
        assert input_panel.agents.isVisible()
        assert names(fixture) == ["Assistant, working", "Coder, branch shown"]
        assert input_panel.status.text.startswith("Assistant: Working"), "it writes the branch that is seen"
        assert input_panel.composer.mode == "stop"
        input_panel.composer.set_text("and you?")
        assert input_panel.composer.mode == "send", "a word for the one that is looked at, which rests"
        input_panel.composer.set_text("")
        fixture.view.activateWindow()
        input_panel.composer.field.setFocus()
        QTest.mouseClick(input_panel.agents.chips[0], Qt.MouseButton.LeftButton)
        assert input_panel.composer.field.hasFocus(), "the next word is for that one"
        await until(lambda: names(fixture) == ["Assistant, working, branch shown", "Coder"])
        input_panel.composer.set_text("mind the tests")
        assert input_panel.composer.mode == "steer"


async def test_names_are_completed_after_an_at_sign_by_keyboard(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        field = fixture.view.composer.field
        fixture.view.activateWindow()
        field.setFocus()
        QTest.keyClicks(field, "@")
        assert fixture.view.input_panel.completions.mentions is None, "of one agent there is nothing to choose"
        field.clear()
        await joined(fixture, "Code Reader")
        await joined(fixture, "Critic")
        mentions = fixture.view.input_panel.completions.mentions
        assert mentions is not None
        field.setFocus()
        QTest.keyClicks(field, "mail me@co")
        assert not mentions.isVisible(), "that is an address"
        QTest.keyClicks(field, " @c")
        assert [mentions.list.item(row).text() for row in range(mentions.list.count())] == ["Code Reader", "Critic"]
        assert mentions.height() <= mentions.list.height() + theme.tokens.space_tight, "no larger than its rows"
        assert mentions.list.viewport().rect().contains(mentions.list.visualItemRect(mentions.list.item(1)))
        QTest.keyClick(field, Qt.Key.Key_Down)
        QTest.keyClick(field, Qt.Key.Key_Tab)
        assert field.toPlainText() == "mail me@co @Critic "
        assert field.hasFocus() and not mentions.isVisible()
        QTest.keyClicks(field, "@code r")
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert field.toPlainText() == "mail me@co @Critic @Code Reader ", "Enter took the name and sent nothing"
        QTest.keyClicks(field, "@")
        QTest.keyClick(field, Qt.Key.Key_Escape)
        assert not mentions.isVisible()
        assert not fixture.task.activity.stopping and fixture.task.outcome.ended_at is None, (
            "Esc closed the list and stopped nothing"
        )
        QTest.keyClicks(field, "c")
        assert not mentions.isVisible(), "it was not wanted"


async def test_an_agent_is_added_with_the_values_of_the_dialog(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await until(lambda: bool(fixture.engine.stores.personalities.all))
        fixture.view.input_panel.agents.add_agent()
        dialog = top(AddAgentDialog)
        assert isinstance(dialog, AddAgentDialog)
        dialog.personality.setCurrentIndex(dialog.personality.findText("Researcher"))
        assert dialog.name.placeholderText() == "Researcher"
        dialog.name.setText("  Ada ")
        dialog.color.setCurrentIndex(dialog.color.findText("Violet"))
        press(dialog, "Add")
        await until(lambda: fixture.view.store.agents.is_several)
        ada = fixture.view.store.agents.all[-1]
        assert (ada.name, ada.personality_id, ada.color) == ("Ada", "researcher", "violet")


async def test_the_second_agent_is_added_from_the_input_panel(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await until(lambda: fixture.view.store.agents.shown is not None)
        fixture.view.input_panel.task_options.more_button.click()
        panel = top(TaskOptionsDialog)
        press(panel, "Add agent…")
        assert not panel.isVisible()
        press(top(AddAgentDialog), "Add")
        await until(lambda: fixture.view.input_panel.agents.isVisible())


async def test_the_turn_order_is_set_and_shown_in_the_bar(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        coder = await joined(fixture)
        fixture.view.input_panel.agents.set_turns()
        dialog = top(TurnOrderDialog)
        assert isinstance(dialog, TurnOrderDialog)
        assert not dialog.moderator.isEnabled()
        dialog.rule.setCurrentIndex(dialog.rule.findText("Moderator"))
        dialog.moderator.setCurrentIndex(dialog.moderator.findData(coder))
        dialog.limit.setFocus()
        dialog.limit.selectAll()
        QTest.keyClicks(dialog.limit, "4")
        assert dialog.limit.lineEdit().width() > dialog.limit.width() // 2, "what is typed is seen"
        press(dialog, "Save")
        rule = TurnTaking(rule="moderator", limit=4, moderator_id=coder)
        await until(lambda: fixture.view.store.agents.turns == rule)
        assert fixture.view.input_panel.agents.turns.text() == "moderator · 0 of 4"


async def test_an_agent_is_removed_only_after_a_confirmation(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        await joined(fixture)
        store, input_panel = fixture.view.store, fixture.view.input_panel
        input_panel.agents.remove_agent(store.agents.all[-1])
        answer("Cancel")
        assert store.agents.is_several
        input_panel.agents.remove_agent(store.agents.all[-1])
        answer("Remove")
        await until(lambda: not store.agents.is_several)
        assert not input_panel.agents.isVisible()


async def test_going_to_another_agents_ask_switches_to_its_branch(
    qapp: QApplication, theme: Theme, tmp_path: Path
) -> None:
    async with view_fixture(qapp, theme, tmp_path, [_QUESTION]) as fixture:
        store = fixture.view.store
        await joined(fixture)
        store.commands.send("ask me something")
        await until(lambda: bool(store.commands.waiting))
        first = store.agents.all[0]
        store.agents.show_agent(first.id)
        await until(lambda: store.agents.shown == store.agents.get(first.id))
        assert fixture.view.composer.mode == "stop", "the question is not this agent's"
        fixture.view.asks.go_to_next()
        await until(lambda: fixture.view.composer.mode == "reply")
        assert store.agents.shown is not None and store.agents.shown.name == "Coder"


def test_two_to_four_models_are_ticked_by_a_click_on_their_names(qapp: QApplication, theme: Theme) -> None:
    parent = QWidget()
    dialog = ask_dialog(theme, 10, ("one/model-3",), "", parent)
    assert (dialog.chosen, dialog.note) == (("one/model-3",), "model-3")
    click_name(dialog, "model-0")
    assert dialog.chosen == ("one/model-3", "one/model-0")
    assert not dialog.ask.isEnabled(), "nothing is asked yet"
    dialog.field.setPlainText("Which is better?")
    assert dialog.ask.isEnabled()
    click_name(dialog, "model-0")
    assert (dialog.chosen, dialog.ask.isEnabled()) == (("one/model-3",), False)
    for name in ("model-0", "model-1", "model-2"):
        click_name(dialog, name)
    assert dialog.note == "model-3, model-0, model-1, model-2"
    click_name(dialog, "model-7")
    assert (len(dialog.chosen), dialog.note) == (4, "4 models at most. Untick one to choose another.")
    assert dialog.ask.isEnabled()
    parent.deleteLater()


def test_models_are_ticked_with_the_keyboard_from_the_search(qapp: QApplication, theme: Theme) -> None:
    parent = QWidget()
    dialog = ask_dialog(theme, 10, ("one/gone", "one/model-3"), "Which is better?", parent)
    assert dialog.chosen == ("one/model-3",), "a model that is no longer offered is not ticked"
    QTest.keyClick(dialog.search, Qt.Key.Key_Return)
    assert dialog.chosen == ("one/model-3",), "nothing is searched"
    QTest.keyClicks(dialog.search, "model-7")
    assert dialog.list.shown == ("model-7",)
    QTest.keyClick(dialog.search, Qt.Key.Key_Return)
    assert dialog.chosen == ("one/model-3", "one/model-7")
    QTest.keyClick(dialog.search, Qt.Key.Key_Down)
    assert dialog.focusWidget() is dialog.list
    QTest.keyClick(dialog.list, Qt.Key.Key_Space)
    assert dialog.chosen == ("one/model-3",)
    QTest.keyClicks(dialog.search, "x")
    assert dialog.list.shown == ()
    dialog.search.clear()
    QTest.keyClicks(dialog.search, "one/own-model")
    QTest.keyClick(dialog.search, Qt.Key.Key_Return)
    assert dialog.chosen == ("one/model-3", "one/own-model"), "a typed id is accepted"
    QTest.keyClick(dialog.search, Qt.Key.Key_Escape)
    assert (dialog.search.text(), dialog.isVisible()) == ("", True)
    row = dialog.list.index_of("model-3")
    assert row.data(Qt.ItemDataRole.AccessibleTextRole) == "model-3, ticked, One"
    asked: list[tuple[str, tuple[str, ...]]] = []

    def keep(text: str, models: tuple[str, ...]) -> None:
        asked.append((text, models))

    dialog.asked.connect(keep)
    QTest.keyClick(dialog.search, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert asked == [("Which is better?", ("one/model-3", "one/own-model"))]
    parent.deleteLater()


def test_a_single_model_cannot_be_compared(qapp: QApplication, theme: Theme) -> None:
    parent = QWidget()
    dialog = ask_dialog(theme, 1, (), "Which is better?", parent)
    assert (dialog.note, dialog.ask.isEnabled()) == (
        "Only one model is set up. Add another provider in the settings to compare.",
        False,
    )
    parent.deleteLater()


def ask_dialog(theme: Theme, count: int, ticked: tuple[str, ...], text: str, parent: QWidget) -> AskModelsDialog:
    models = tuple(Model(id=f"one/model-{number}", provider="one") for number in range(count))
    defaults = TaskOptionDefaults(models=models, providers=(("one", "One"),))
    dialog = AskModelsDialog(theme, defaults, ticked, text, parent)
    dialog.show()
    dialog.activateWindow()  # shortcuts work in the active window alone
    QApplication.processEvents()
    return dialog


def click_name(dialog: AskModelsDialog, name: str) -> None:
    dialog.list.scrollTo(dialog.list.index_of(name))
    rect = dialog.list.visualRect(dialog.list.index_of(name))
    QTest.mouseClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())


def answer(text: str) -> None:
    """Answer the question before an agent is removed."""
    dialog = top(RemoveAgentDialog)
    assert isinstance(dialog, RemoveAgentDialog)
    next(button for button in dialog.buttons() if button.text() == text).click()


def top(kind: type[QWidget]) -> QWidget:
    return next(widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget.isVisible())
