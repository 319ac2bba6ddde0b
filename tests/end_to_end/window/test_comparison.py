"""Several models in the real window: asked, compared live, one stopped, one chosen, and compared again later."""

import asyncio

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from errand.client.conversation.branch_rows import BranchRows
from errand.client.conversation.rows import ReplyRow
from errand.window.views.branches.compared_branch import ComparedBranchView
from errand.window.views.branches.comparison import ComparisonDialog
from errand.window.views.conversation.ask_models_dialog import AskModelsDialog
from tests.support.command_line import Errand
from tests.support.model_replies import speak_to
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.open_window import OpenWindow, open_window

FOUR = ("gpt-5", "gpt-5-mini", "gpt-4.1", "o3")
_QUESTION = Call("ask_user", {"question": "How many timers?", "choices": ["A few", "Millions"]})


class Models:
    """A server of four models: each begins to reply and ends when it is let. `special` has other replies."""

    def __init__(self) -> None:
        self._begin = {model: asyncio.Event() for model in FOUR}
        self._end = {model: asyncio.Event() for model in FOUR}
        self.special: dict[str, Reply] = {}

    def answer(self, request: ReceivedRequest) -> Reply:
        model = str(request.body["model"])
        if request.turn:
            return Reply(text="That is settled.")
        text = f"I am {model}. Ask me anything."
        usual = Reply(text=text, piece_length=5, gate=self._begin[model], stall_after=2, rest=self._end[model])
        return self.special.get(model, usual)

    def begin(self, *models: str) -> None:
        for model in models:
            self._begin[model].set()

    def end(self, *models: str) -> None:
        self.begin(*models)
        for model in models:
            self._end[model].set()


def said(rows: BranchRows) -> str:
    texts = (rows.row(index) for index in range(rows.count()))
    return " ".join(row.markdown for row in texts if isinstance(row, ReplyRow))


def top(kind: type[QWidget]) -> QWidget | None:
    widgets = (widget for widget in QApplication.topLevelWidgets() if isinstance(widget, kind) and widget.isVisible())
    return next(widgets, None)


def click(dialog: AskModelsDialog, name: str) -> None:
    """Click a model's name."""
    dialog.list.scrollTo(dialog.list.index_of(name))
    rect = dialog.list.visualRect(dialog.list.index_of(name))
    QTest.mouseClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())


async def offered(person: OpenWindow, text: str = "") -> AskModelsDialog:
    """The dialog that chooses models, once they are known."""
    await person.until(
        lambda: person.stores.session.state == "ready" and person.front.input_panel.task_options.model != ""
    )
    person.type(text)
    person.window.commands.trigger("ask_models")
    dialog = top(AskModelsDialog)
    assert isinstance(dialog, AskModelsDialog)
    return dialog


async def comparison(person: OpenWindow) -> ComparisonDialog:
    """The comparison, once it is loaded."""
    await person.until(lambda: top(ComparisonDialog) is not None)
    dialog = top(ComparisonDialog)
    assert isinstance(dialog, ComparisonDialog)
    await person.until(lambda: dialog.is_loaded)
    return dialog


async def asked(person: OpenWindow, *models: str) -> ComparisonDialog:
    dialog = await offered(person, "Who are you?")
    for model_id in dialog.chosen:
        click(dialog, model_id.partition("/")[2])
    for model in models:
        click(dialog, model)
    assert dialog.chosen == tuple(f"openai/{model}" for model in models)
    await person.press("Ask", dialog)
    return await comparison(person)


def texts(dialog: ComparisonDialog) -> list[str]:
    return [said(view.side) for view in dialog.views]


def states(dialog: ComparisonDialog) -> list[str]:
    """The name and the state of each column, without figures."""
    return [" · ".join(view.texts.split(" · ")[:2]) for view in dialog.views]


async def test_four_models_stream_side_by_side_and_the_conversation_continues_with_one(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    models.special["gpt-5-mini"] = Reply(text="First.", calls=(_QUESTION,))
    models.special["o3"] = Reply(status=400, error="this model is gone")
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            dialog = await asked(person, *FOUR)
            await person.until(lambda: dialog.windowTitle() == "Compare models — Who are you?")
            await person.until(lambda: states(dialog)[1] == "gpt-5-mini · Waiting for you")
            await person.until(lambda: states(dialog)[3].startswith("o3 · Failed: "))
            assert "this model is gone" in dialog.views[3].texts
            assert states(dialog)[0] == "gpt-5 · Waiting for the model"
            assert [view.note for view in dialog.views[:3]] == ["", "", ""], "nothing is said to be missing"
            models.begin("gpt-5", "gpt-4.1")
            await person.until(lambda: texts(dialog)[0] == texts(dialog)[2] == "I am ")
            assert [states(dialog)[number] for number in (0, 2)] == ["gpt-5 · Answering", "gpt-4.1 · Answering"]
            await person.press("A few", dialog.views[1])
            await person.until(lambda: texts(dialog)[1] == "First. That is settled.")
            await person.press("Stop gpt-4.1", dialog)
            await person.until(lambda: states(dialog)[2] == "gpt-4.1 · Stopped")
            assert dialog.views[0].side.is_working, "only that one is stopped"
            QTest.keyClick(dialog, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
            assert dialog.columns.current == 1
            QTest.keyClick(dialog.views[1].transcript, Qt.Key.Key_Return)
            await person.until(lambda: top(ComparisonDialog) is None)
            await person.until(lambda: said(person.front.store) == "First. That is settled.")
            await person.until(lambda: not person.stores.tasks.at_work(person.front.store.conversation_id or ""))
            person.type("And then?")
            person.enter()
            await person.until(lambda: said(person.front.store) == "First. That is settled. That is settled.")


async def test_the_models_are_compared_again_after_a_restart_and_another_one_is_chosen(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            dialog = await asked(person, "gpt-5", "o3")
            models.begin("gpt-5")
            await person.until(lambda: texts(dialog) == ["I am ", ""])
        async with open_window(qapp, own_errand.home) as person:
            await person.until(lambda: person.front.store.is_loaded and said(person.front.store) == "I am ")
            person.window.commands.trigger("compare")
            dialog = await comparison(person)
            assert texts(dialog) == ["I am ", ""], "the reply goes on where it was, the other one is still waited for"
            models.end("gpt-5", "o3")
            await person.until(lambda: texts(dialog) == ["I am gpt-5. Ask me anything.", "I am o3. Ask me anything."])
            await person.press("Continue with o3", dialog)
            await person.until(lambda: said(person.front.store) == "I am o3. Ask me anything.")
        await own_errand.close()
        async with open_window(qapp, own_errand.home) as person:
            await person.until(lambda: person.front.store.is_loaded and said(person.front.store).startswith("I am o3"))
            await person.press("Compare versions")
            dialog = await comparison(person)
            assert texts(dialog) == ["I am gpt-5. Ask me anything.", "I am o3. Ask me anything."]
            QTest.keyClick(dialog.views[0].transcript, Qt.Key.Key_Right)
            assert dialog.columns.current == 1
            QTest.keyClick(dialog.views[1].transcript, Qt.Key.Key_Left)
            await person.press("Continue with gpt-5", dialog)
            await person.until(lambda: said(person.front.store) == "I am gpt-5. Ask me anything.")
            again = await offered(person)
            assert again.chosen == ("openai/gpt-5", "openai/o3"), "those that were asked last are ticked"
            again.close()


async def test_the_columns_scroll_together_until_they_are_untied(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    models.special["gpt-5"] = Reply(text="\n\n".join(f"Short {number}." for number in range(80)))
    models.special["o3"] = Reply(text="\n\n".join(f"Long {number}. " * 10 for number in range(60)))
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.theme.set_motion(False)
            dialog = await asked(person, "gpt-5", "o3")
            await person.until(lambda: not any(view.side.is_working for view in dialog.views))
            short, long = (view.transcript for view in dialog.views)
            await person.until(lambda: "Short 79." in texts(dialog)[0] and "Long 59." in texts(dialog)[1])
            QTest.keyClick(short, Qt.Key.Key_Home)
            assert (short.scroll_share, long.scroll_share) == (0, 0)
            QTest.keyClick(short, Qt.Key.Key_PageDown)
            assert 0.1 < short.scroll_share < 0.9
            assert long.scroll_share == pytest.approx(short.scroll_share, abs=0.02)
            long.verticalScrollBar().setValue(long.verticalScrollBar().maximum() // 2)
            assert short.scroll_share == pytest.approx(long.scroll_share, abs=0.02)
            QTest.keyClick(long, Qt.Key.Key_End)
            assert short.is_at_end and long.is_at_end
            long.setFocus()
            QTest.keyClick(long, Qt.Key.Key_S)
            assert not dialog.columns.together.isChecked()
            QTest.keyClick(long, Qt.Key.Key_Home)
            assert (short.is_at_end, long.scroll_share) == (True, 0)
            QTest.mouseClick(dialog.columns.together, Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
            assert (short.scroll_share, long.scroll_share) == (0, 0), "they meet where it was scrolled last"
            QTest.keyClick(long, Qt.Key.Key_S)
            dialog.close()
            person.window.commands.trigger("compare")
            dialog = await comparison(person)
            assert not dialog.columns.together.isChecked(), "as it was left"


async def test_a_column_that_is_being_written_stays_at_its_end(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    long_text = "\n\n".join(f"Line {number}." for number in range(80))
    models.special["gpt-5"] = Reply(text=long_text)
    models.special["o3"] = Reply(text=long_text, piece_length=200, stall_after=3, rest=asyncio.Event())
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.theme.set_motion(False)
            dialog = await asked(person, "gpt-5", "o3")
            ended, written = dialog.views
            await person.until(lambda: not ended.side.is_working and "Line 20" in said(written.side))
            QTest.keyClick(ended.transcript, Qt.Key.Key_Home)
            assert (ended.transcript.scroll_share, written.transcript.is_at_end) == (0, True)


async def test_a_narrow_comparison_shows_one_model_at_a_time(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            dialog = await asked(person, "gpt-5", "gpt-5-mini", "o3")
            models.end("gpt-5", "gpt-5-mini", "o3")
            await person.until(lambda: not any(view.side.is_working for view in dialog.views))
            dialog.resize(1280, 720)
            visibility = [view.isVisible() for view in dialog.views]
            assert (visibility, dialog.columns.is_narrow) == ([True] * 3, False)
            dialog.resize(640, 600)
            await person.until(lambda: dialog.columns.is_narrow)
            assert visible(dialog) == ["gpt-5"]
            QTest.keyClick(dialog, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
            assert visible(dialog) == ["o3"]
            QTest.keyClick(dialog.views[2].transcript, Qt.Key.Key_Left)
            assert visible(dialog) == ["gpt-5-mini"]
            assert dialog.focusWidget() is dialog.views[1].transcript
            dialog.resize(1280, 720)
            await person.until(lambda: not dialog.columns.is_narrow)
            assert visible(dialog) == ["gpt-5", "gpt-5-mini", "o3"]
            QTest.keyClick(dialog, Qt.Key.Key_Escape)
            assert top(ComparisonDialog) is None


def visible(dialog: ComparisonDialog) -> list[str]:
    views: tuple[ComparedBranchView, ...] = dialog.views
    return [view.title for view in views if view.isVisible()]


async def test_the_next_message_goes_to_the_model_that_the_conversation_continues_with(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models()
    async with ModelServer(answer=models.answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            dialog = await asked(person, "gpt-5", "o3")
            models.end("gpt-5", "o3", "gpt-4.1")
            await person.until(lambda: not any(view.side.is_working for view in dialog.views))
            await person.press("Continue with o3", dialog)
            await person.until(lambda: said(person.front.store) == "I am o3. Ask me anything.")
            await person.until(lambda: person.front.input_panel.task_options.model == "openai/o3")
            count = len(server.requests)
            await person.begin("And now?")
            await person.until(lambda: len(server.requests) > count)
            assert server.requests[-1].body["model"] == "o3"
            await person.until(lambda: "That is settled." in said(person.front.store))
            await person.press("Compare versions")
            dialog = await comparison(person)
            await person.press("Continue with gpt-5", dialog)
            await person.until(lambda: said(person.front.store) == "I am gpt-5. Ask me anything.")
            await person.until(lambda: person.front.input_panel.task_options.model == "openai/gpt-5")
            await person.press("Compare versions")
            await person.press("Continue with o3", await comparison(person))
            await person.until(lambda: person.front.input_panel.task_options.model == "openai/o3")
        async with open_window(qapp, own_errand.home) as person:
            await person.until(lambda: person.front.store.is_loaded)
            await person.until(lambda: person.front.input_panel.task_options.model == "openai/o3")
            count = len(server.requests)
            await person.begin("And after a restart?")
            await person.until(lambda: len(server.requests) > count)
            assert server.requests[-1].body["model"] == "o3"
