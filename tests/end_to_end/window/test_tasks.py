"""Behaviours 60 to 70 and 72 to 74: the window with a real engine, from its first run on."""

import signal
from pathlib import Path
from uuid import uuid4

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication

from errand.client.conversation.rows import AskRow, NoticeRow, ReplyRow, TaskEndRow, UserRow
from errand.protocol.tasks.task import Task
from errand.window.stores.task_options import TaskOptions
from errand.window.stores.window_state import WindowStateStore
from errand.window.views.conversation.conversation_view import ConversationView
from tests.support.command_line import Errand, rest
from tests.support.model_replies import speak_to
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.open_window import OpenWindow, open_window
from tests.support.processes import file_appears, running


def ended(person: OpenWindow) -> list[Task]:
    tasks = map(person.stores.tasks.of_conversation, person.window.tabs.open_ids)
    return [task for task in tasks if task is not None and task.outcome.ended_at is not None]


def notices_shown(person: OpenWindow) -> list[str | None]:
    """Return a list to which each change of the connection adds the notice that is shown then, however shortly."""
    notice_ids: list[str | None] = []
    person.stores.session.state_changed.connect(lambda: notice_ids.append(person.front.notices.shown))
    return notice_ids


async def test_a_first_run_offers_the_tour_and_its_three_tasks_are_finished_in_the_window(
    person: OpenWindow,
) -> None:
    await person.press("Play the tour")
    await person.until(lambda: len(person.stores.asks.waiting()) == 2)
    assert len(person.window.sidebar.inbox.lines) >= 2
    person.window.commands.trigger("next_ask")
    await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
    for _ in range(2):
        if person.front.composer.mode == "reply":
            person.type("friendly")
            person.enter()
        else:
            await person.press("Allow once")
        person.window.commands.trigger("next_ask")
        await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
    await person.until(lambda: len(ended(person)) == 3)
    assert {task.outcome.stop_reason for task in ended(person)} == {"completed"}
    assert len(person.window.tabs.bar.keys) == 3
    await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))


async def test_a_task_is_stopped_while_the_model_answers(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a book")
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            assert person.front.composer.mode == "stop"
            assert person.front.input_panel.status.text.startswith("Answering")
            await person.press("Stop", person.front.composer)
            await person.until(lambda: [task.outcome.stop_reason for task in ended(person)] == ["manual_stop"])
            await person.until(lambda: any(isinstance(row, TaskEndRow | NoticeRow) for row in person.rows))
            assert (person.front.composer.mode, person.front.input_panel.status.text[:7]) == ("send", "Stopped")


async def test_a_task_is_stopped_while_a_tool_runs_and_no_process_is_left(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = uuid4().hex
    call = Call("shell", {"command": f"touch ready; sleep 60 # {marker}"})
    async with ModelServer(replies=[Reply(calls=(call,))]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            await person.begin("wait for me")
            await person.press("Allow once")
            await person.until((workspace / "ready").exists)
            person.window.commands.trigger("stop")
            await person.until(lambda: bool(ended(person)))
    assert running(marker) == []


async def test_a_message_sent_during_a_task_steers_it(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch later"}),)), Reply(text="I took the short way.")]
    async with ModelServer(replies=replies) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            await person.begin("find a way")
            await person.until(lambda: bool(person.stores.asks.waiting()))
            person.type("take the short one")
            assert person.front.composer.mode == "steer"
            person.enter()
            await person.press("Allow once")
            await person.until(lambda: bool(ended(person)))
            texts = [row.text for row in person.rows if isinstance(row, UserRow)]
            result = str(server.requests[1].messages[-1]["content"])
    assert texts == ["find a way", "take the short one"]
    assert "take the short one" in result


async def test_a_window_closed_during_a_task_shows_it_again_when_reopened(
    qapp: QApplication, own_errand: Errand
) -> None:
    async with open_window(qapp, own_errand.home) as first:
        await first.press("Play the tour")
        await first.until(lambda: len(first.stores.asks.waiting()) == 2)
        open_before = first.window.tabs.open_ids
        first.type("half a thought")
        draft_in = first.window.tabs.active_id
    async with open_window(qapp, own_errand.home) as second:
        await second.until(lambda: len(second.stores.asks.waiting()) == 2)
        assert second.window.tabs.open_ids == open_before
        assert second.window.tabs.active_id == draft_in
        assert second.front.composer.text == "half a thought"
        await second.until(lambda: any(isinstance(row, UserRow) for row in second.rows))


async def test_a_killed_engine_is_restarted_and_its_task_can_be_resumed(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2), Reply(text="The end.")]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.begin("write a book")
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            killed, notice_ids = own_errand.engine_pid(), notices_shown(person)
            own_errand.kill_engine()
            await person.until(lambda: "connection" in notice_ids)
            await person.until(lambda: person.stores.session.state == "ready")
            assert own_errand.engine_pid() != killed
            assert person.front.notices.shown != "connection"
            await person.press("Resume")
            await person.until(lambda: [task.outcome.stop_reason for task in ended(person)] == ["completed"])
            assert person.front.notices.shown is None


async def test_closing_with_running_tasks_explains_once_that_they_continue(person: OpenWindow) -> None:
    await person.press("Play the tour")
    await person.until(lambda: len(person.stores.asks.waiting()) == 2)
    assert not person.window.close()
    await person.press("Close window")
    await person.until(lambda: not person.window.isVisible())


async def test_the_command_opens_a_window_and_a_signal_closes_it_cleanly(own_errand: Errand) -> None:
    screen = {"DISPLAY": ":none", "QT_QPA_PLATFORM": "offscreen"}
    process = await own_errand.start("window", variables=screen)
    await file_appears(own_errand.home / "window.json")
    await file_appears(own_errand.home / "run" / "engine.json")
    process.send_signal(signal.SIGTERM)
    done = await rest(process)
    assert (done.code, done.out, "Traceback" in done.err) == (0, "", False)


async def test_without_a_display_the_command_says_so_and_names_the_terminal(own_errand: Errand) -> None:
    done = await own_errand.run("window")
    assert done.code == 1
    assert "No display was found" in done.err
    assert "errand chat" in done.err


async def test_fifty_tabs_are_restored_and_only_the_current_view_is_created(
    qapp: QApplication, own_errand: Errand
) -> None:
    async with open_window(qapp, own_errand.home) as first:
        await first.press("Play the tour")
        await first.until(lambda: len(first.stores.asks.waiting()) == 2)
        ids = first.window.tabs.open_ids
    state = WindowStateStore(own_errand.home / "window.json")
    state.settings.tabs = [*ids, *(f"conv_gone_{number}" for number in range(47))]
    state.settings.current = ids[0]
    state.flush()
    async with open_window(qapp, own_errand.home) as second:
        await second.until(lambda: second.front.store.is_loaded)
        assert len(second.window.tabs.bar.keys) == 50
        assert len(second.window.findChildren(ConversationView)) == 1


async def test_a_search_finds_a_message_and_opens_it(person: OpenWindow) -> None:
    await person.press("Play the tour")
    await person.until(lambda: len(person.stores.asks.waiting()) == 2)
    await person.until(lambda: bool(ended(person)))  # its text contains the search words
    person.window.commands.trigger("new_task")
    sidebar = person.window.sidebar
    QTest.keyClicks(sidebar.search, "discount")
    await person.until(lambda: bool(sidebar.results.lines) and sidebar.results.isVisible())
    QTest.keyClick(sidebar.search, Qt.Key.Key_Return)
    await person.until(lambda: person.front.store.title.startswith("The tests in shop/"))


async def test_a_hit_is_scrolled_to_and_scroll_positions_survive_a_restart(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(text=f"Reply {number}\n\n" + "A paragraph.\n\n" * 12) for number in range(6)]
    async with ModelServer(replies=replies) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as first:
            await first.until(lambda: first.stores.session.state == "ready")
            for number in range(6):
                first.type(f"unicorn{number}")
                first.enter()
                await first.until(lambda: sum(isinstance(row, TaskEndRow) for row in first.rows) == number + 1)  # noqa: B023 -- awaited at once
            conversation = first.window.tabs.active_id
            first.window.commands.trigger("new_task")
            QTest.keyClicks(first.window.sidebar.search, "unicorn2")
            results = first.window.sidebar.results
            await first.until(lambda: bool(results.lines) and results.isVisible())
            QTest.keyClick(first.window.sidebar.search, Qt.Key.Key_Return)
            await first.until(lambda: said_at_top(first) == "unicorn2")
            transcript = first.front.transcript
            transcript.scroll_by(20)
            position = transcript.scroll_position
            first.window.commands.trigger("new_task")
            first.window.tabs.open(conversation)
            assert (first.front.transcript, transcript.scroll_position) == (transcript, position)
        async with open_window(qapp, own_errand.home) as second:
            await second.until(lambda: second.front.store.is_loaded)
            assert second.window.tabs.active_id == conversation
            assert said_at_top(second) == "unicorn2"
            assert second.front.transcript.scroll_position == position


async def test_an_approval_after_a_restart_of_the_engine_resumes_the_task(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch made"}),)), Reply(text="Done.")]
    async with ModelServer(replies=replies) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            await person.begin("make it")
            await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
            notice_ids = notices_shown(person)
            own_errand.kill_engine()
            await person.until(lambda: "connection" in notice_ids)
            await person.until(lambda: person.front.notices.shown == "interrupted")
            await person.press("Allow once")
            await person.until(lambda: [task.outcome.stop_reason for task in ended(person)] == ["completed"])
            assert person.front.notices.shown is None
    assert (workspace / "made").exists()


async def test_an_open_approval_gets_the_focus_and_can_be_allowed_from_anywhere(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call("shell", {"command": "touch made"})
    question = Call("ask_user", {"question": "Which way?", "choices": ["the long one", "the short one"]})
    first = Reply(text="A paragraph.\n\n" * 60, calls=(call,))
    async with ModelServer(replies=[first, Reply(calls=(question,)), Reply(text="Done.")]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            await person.begin("make it")
            await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
            person.front.transcript.to_start()
            person.enter(Qt.KeyboardModifier.ControlModifier)  # not visible: it is shown first
            assert len(person.rows) - 1 in person.front.transcript.shown
            assert focused(person) == "Allow once"
            person.front.grab()
            person.front.composer.field.setFocus()
            person.enter(Qt.KeyboardModifier.ControlModifier)
            person.type("half a thought")
            await person.until(lambda: [ask.kind for ask in person.stores.asks.waiting()] == ["question"])
            assert (workspace / "made").exists()
            await person.until(
                lambda: person.front.store.commands.waiting != () and isinstance(person.rows[-1], AskRow)
            )
            person.window.commands.trigger("next_ask")
            assert focused(person) == "Question: Which way?"
            person.window.commands.trigger("new_task")
            person.window.commands.trigger("next_ask")
            assert focused(person) == "Question: Which way?"
            person.front.grab()
            QTest.keyClick(person.window.focusWidget(), Qt.Key.Key_Tab)
            QTest.keyClick(person.window.focusWidget(), Qt.Key.Key_Tab)
            assert focused(person) == "the short one"
            QTest.keyClick(person.window.focusWidget(), Qt.Key.Key_Return)
            await person.until(lambda: bool(ended(person)))
            assert person.front.composer.text == "half a thought"


async def test_a_task_that_fails_says_why_once_and_the_inbox_leaves_no_gap(
    qapp: QApplication, own_errand: Errand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer(replies=[Reply(text="A long answer", stall_after=2), Reply(status=401)]) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            await person.until(lambda: person.stores.session.state == "ready")
            inbox = person.window.sidebar.inbox
            person.stores.tasks.taskUpdate.connect(lambda: heights.append(inbox.height() - inbox.sizeHint().height()))
            heights: list[int] = []
            person.type("wait")
            person.enter()
            await person.until(lambda: any(isinstance(row, ReplyRow) for row in person.rows))
            person.window.commands.trigger("stop")
            await person.until(lambda: len(ended(person)) == 1)
            person.window.commands.trigger("new_task")
            person.type("fail")
            person.enter()
            await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))
            assert [type(row) for row in person.rows] == [UserRow, TaskEndRow]
            assert set(heights) == {0}
            await person.press("Models and keys…")
            assert person.window.dialogs.settings.isVisible()


def focused(person: OpenWindow) -> str:
    widget = person.window.focusWidget()
    return widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton) else "")


def said_at_top(person: OpenWindow) -> str:
    """The user's text in the row at the top of the transcript."""
    position = person.front.transcript.scroll_position
    row = person.rows[position[0]] if position is not None else None
    return row.text if isinstance(row, UserRow) else ""


async def test_after_the_approval_of_a_sub_agent_the_person_is_back_in_their_branch(
    qapp: QApplication, own_errand: Errand, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if "delegate it" not in str(request.messages):
            return Reply(text="Made.") if request.turn else Reply(calls=(Call("shell", {"command": "touch made"}),))
        if request.turn:
            return Reply(text="All settled.")
        return Reply(calls=(Call("task", {"description": "Maker", "prompt": "Make it."}),))

    async with ModelServer(answer=answer) as server:
        speak_to(monkeypatch, server)
        async with open_window(qapp, own_errand.home) as person:
            person.front.input_panel.set_options(TaskOptions(workspace=str(workspace)))
            await person.begin("delegate it")
            await person.until(lambda: bool(person.stores.asks.waiting()))
            before = person.front.store.agents.shown
            person.window.commands.trigger("next_ask")
            await person.until(lambda: any(isinstance(row, AskRow) for row in person.rows))
            agent = person.front.store.agents.shown
            assert before is not None and agent is not None and agent.called_by is not None
            await person.press("Allow once")
            await person.until(lambda: person.front.store.agents.shown == person.front.store.agents.get(before.id))
            await person.until(lambda: "All settled." in str(person.rows))
