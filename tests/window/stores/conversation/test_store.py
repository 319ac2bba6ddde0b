"""An open conversation: its rows while a real engine works, and the user's commands."""

import asyncio
import os
from pathlib import Path

from errand.client.conversation.rows import (
    AskRow,
    FileRow,
    NoticeRow,
    ReplyRow,
    StepRow,
    TaskEndRow,
    ToolCallRow,
    UserRow,
)
from errand.protocol.asks import AskAnswerParams
from errand.protocol.base import EmptyParams
from errand.protocol.conversations import Node
from errand.protocol.engine import ENGINE_STATUS
from errand.protocol.tasks.task import Task
from errand.window.stores.task_options import TaskOptions
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import Mirror, store_engine

DONE = Reply(calls=(Call("task_complete", {"summary": "all done"}),))
QUESTION = Call("ask_user", {"question": "Which?", "choices": ["a", "b"]})
LONG = "".join(f"Paragraph {number} says a few words.\n\n" for number in range(12))


def texts_of(mirror: Mirror) -> list[str]:
    return [row.markdown for row in mirror.rows if isinstance(row, ReplyRow)]


async def test_a_task_is_shown_row_by_row_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    shell = Call("shell", {"command": "echo hi | tee said"}, id="call_1")
    turns = [
        Reply(thinking="Hm.", text="First.\n\n- a\n- b\n\nThen:", calls=(QUESTION,)),
        Reply(calls=(Call("send_update", {"message": "Half **done**."}, id="call_0"), shell)),
        DONE,
    ]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.parts.start("do it", approve="ask")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("Ask")
        store.commands.send("b")
        await until(lambda: [ask.kind for ask in store.commands.waiting] == ["approval"])
        store.asks.answer(AskAnswerParams(ask_id=store.commands.waiting[0].id, allow=True))
        await mirror.until("TaskEnd")
        assert mirror.kinds == [
            "User", "Thinking", "Reply", "Reply", "Reply", "Ask", "Step", "Reply", "ToolCall", "TaskEnd",
        ]  # fmt: skip
        assert [row.number for row in mirror.rows if isinstance(row, StepRow)] == [2]
        texts = [(row.markdown, row.step, row.streaming) for row in mirror.rows if isinstance(row, ReplyRow)]
        assert texts == [
            ("First.\n\n", 1, False),
            ("- a\n- b\n\n", 0, False),
            ("Then:", 0, False),
            ("Half **done**.", 2, False),
        ]
        question, tool, end = mirror.rows[5], mirror.rows[8], mirror.rows[9]
        assert isinstance(question, AskRow)
        assert isinstance(tool, ToolCallRow) and tool.result is not None and "hi" in tool.result.text
        assert [(ask.status, ask.answer, ask.allowed, ask.answered_by) for ask in (question.ask, *tool.settled)] == [
            ("answered", "b", None, "the window"),
            ("answered", "", True, "the window"),
        ]
        assert isinstance(end, TaskEndRow) and end.task.outcome.summary == "all done"


async def test_a_limit_after_a_tool_call_has_a_card_now_and_when_the_conversation_is_opened_later(
    tmp_path: Path,
) -> None:
    call = Call("shell", {"command": "true"})
    async with store_engine(tmp_path, ModelServer(turns=[Reply(calls=(call,)), Reply(calls=(call,)), DONE])) as engine:
        task = await engine.parts.start("do it", attended=True, max_turns=1)
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("Ask")
        assert mirror.kinds == ["User", "ToolCall", "Ask"]
        _, later = await engine.open(task.conversation_id)
        assert later.kinds == mirror.kinds
        (limit,) = store.commands.waiting
        assert limit.limit is not None
        store.asks.answer(AskAnswerParams(ask_id=limit.id, allow=True, amount=limit.limit.used + 2))
        await mirror.until("TaskEnd")
        assert mirror.kinds == ["User", "ToolCall", "Ask", "Step", "ToolCall", "TaskEnd"]
        ended = await engine.parts.watcher.end(task.id)
        assert ended.budget.allowance is not None and ended.budget.allowance.turns == 3


async def test_messages_of_the_engine_to_an_agent_are_notices_not_user_rows(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(turns=[Reply(text="Thinking."), DONE])) as engine:
        task = await engine.parts.start("do it", mode="task")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("TaskEnd")
        assert mirror.kinds == ["User", "Reply", "Notice", "TaskEnd"]
        notice_row = mirror.rows[2]
        assert isinstance(notice_row, NoticeRow) and notice_row.notice.text.startswith(
            "Errand told the agent: “Nothing is done yet"
        )
        store.branches.edit_last()
        assert mirror.kinds[0] == "EditMessage"


async def test_a_reloaded_conversation_has_the_same_rows(tmp_path: Path) -> None:
    turns = [Reply(text="I ask.", calls=(QUESTION,)), Reply(text="Bye.")]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.parts.start("do it", approve="ask")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("Ask")
        store.commands.send("b")
        await mirror.until("TaskEnd")
        _, again = await engine.open(task.conversation_id)
        assert again.rows == mirror.rows
        assert again.kinds == ["User", "Reply", "Ask", "Step", "Reply", "TaskEnd"]
        end = again.rows[-1]
        assert isinstance(end, TaskEndRow) and end.task.outcome.summary == "", "the last words stand right above it"


async def test_while_a_reply_streams_only_its_last_row_changes(tmp_path: Path) -> None:
    begin, end = asyncio.Event(), asyncio.Event()
    pieces = LONG.index("Paragraph 11") // 12 + 5
    reply = Reply(text=LONG, piece_length=12, piece_delay_s=0.012, gate=begin, stall_after=pieces, rest=end)
    async with store_engine(tmp_path, ModelServer(turns=[reply])) as engine:
        task = await engine.parts.start("tell")
        _, mirror = await engine.open(task.conversation_id)
        seen = 1
        mirror.changes.clear()
        begin.set()
        await until(lambda: any(isinstance(row, ReplyRow) and "Paragraph 11" in row.markdown for row in mirror.rows))
        streamed = [change for change in mirror.changes if change[0] != "reset"]
        assert len(streamed) > 3
        for how, first, count in streamed:
            assert how in ("changed", "inserted")
            assert first + count >= seen - 1, "an earlier row changed"
            seen = max(seen, first + count)
        end.set()
        await mirror.until("TaskEnd")
        assert "".join(texts_of(mirror)) == LONG


async def test_subscribing_during_a_reply_gives_the_text_so_far_and_a_stop_keeps_it(tmp_path: Path) -> None:
    reply = Reply(text=LONG, piece_length=12, stall_after=30)
    async with store_engine(tmp_path, ModelServer(turns=[reply])) as engine:
        task = await engine.parts.start("tell")
        _, first = await engine.open(task.conversation_id)
        await until(lambda: first.kinds.count("Reply") == 12)
        store, second = await engine.open(task.conversation_id)
        await until(lambda: texts_of(second) == texts_of(first))
        store.commands.stop()
        await second.until("TaskEnd")
        assert "Notice" not in second.kinds
        end = second.rows[-1]
        assert isinstance(end, TaskEndRow) and end.task.outcome.stop_reason == "manual_stop"
        assert end.stopped_by == "the window"
        assert end.remarks == ("The last reply was cut off. What came before is kept.",)
        reply_text = "".join(texts_of(second))
        assert LONG.startswith(reply_text) and len(reply_text) > 300


async def test_send_starts_a_conversation_then_steers_then_starts_the_next_task(tmp_path: Path) -> None:
    gate = asyncio.Event()
    turns = [
        Reply(text="One.", calls=(Call("shell", {"command": "true"}),), gate=gate),
        Reply(text="Two."),
        Reply(text="3."),
    ]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as engine:
        engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
        store = engine.stores.open(None)
        mirror = Mirror(store)
        assert (store.title, store.is_loaded, store.count()) == ("New conversation", True, 0)
        store.commands.options = TaskOptions("openai_compatible/test-model", str(engine.parts.workspace), approve="all")
        store.commands.send("Count the files")
        await until(lambda: store.task is not None and mirror.kinds == ["User"])
        assert store.title == "Count the files"
        store.commands.send("and the folders")
        store.commands.follow_up("then rest")
        await engine.stores.session.call(ENGINE_STATUS, EmptyParams())  # so they have arrived
        gate.set()
        await mirror.until("TaskEnd")
        user_texts = [row.text for row in mirror.rows if isinstance(row, UserRow)]
        assert user_texts == ["Count the files", "and the folders", "then rest"]
        store.commands.send("again")
        await until(lambda: mirror.kinds.count("TaskEnd") == 2)


async def test_a_second_message_starts_no_second_conversation(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(turns=[Reply(text="One.")])) as engine:
        engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
        store = engine.stores.open(None)
        back: list[str] = []

        def take_back(text: str) -> None:
            back.append(text)

        store.commands.unsent.connect(take_back)
        store.commands.options = TaskOptions("openai_compatible/test-model", str(engine.parts.workspace))
        store.commands.send("first")
        store.commands.send("second")
        await until(lambda: store.task is not None and store.task.outcome.ended_at is not None)
        assert back == ["second"]
        assert [
            listed.title for listed in (await engine.parts.services.database.conversations.page(limit=10)).conversations
        ] == ["first"]


async def test_files_that_go_with_an_answer_are_read_with_it(tmp_path: Path) -> None:
    question = Reply(calls=(Call("ask_user", {"question": "Which colour?"}),))
    async with store_engine(tmp_path, ModelServer(turns=[question, DONE])) as engine:
        task = await engine.parts.start("Paint it", attended=True)
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("Ask")
        sample = tmp_path / "sample.txt"
        sample.write_text("blue")
        store.commands.send("like this", (str(sample),))
        await mirror.until("TaskEnd")
        (answer,) = (row.ask.answer for row in mirror.rows if isinstance(row, AskRow))
        assert answer == "like this"
        assert [row.file.path for row in mirror.rows if isinstance(row, FileRow)] == [str(sample)]
        assert str(sample) in str(engine.parts.model.requests[1].messages[-1]["content"])


async def test_a_message_that_is_not_accepted_returns_with_the_reason(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(turns=[DONE])) as engine:
        store = engine.stores.open(None)
        back: list[str] = []
        why: list[str] = []

        def take_back(text: str) -> None:
            back.append(text)

        store.commands.unsent.connect(take_back)
        store.failed.connect(why.append)
        store.commands.options = TaskOptions(model="nowhere/model")
        store.commands.send("Do it")
        await until(lambda: bool(why))
        assert back == ["Do it"]
        assert "nowhere" in why[0]
        store.commands.options = TaskOptions(model="scripted/none", workspace="/not/there")
        store.commands.send("Do it")
        await until(lambda: len(why) == 2)
        assert "not a folder" in why[1]
        assert store.count() == 0


async def test_an_approval_lists_equal_approvals_of_other_conversations(tmp_path: Path) -> None:
    shell = Reply(calls=(Call("shell", {"command": "touch a"}),))
    async with store_engine(tmp_path, ModelServer(turns=[shell, DONE])) as engine:
        task = await engine.parts.start("one", approve="ask")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("Ask")
        other = await engine.parts.start("two", approve="ask")
        there = await engine.parts.watcher.ask(other.id)

        def others() -> list[str]:
            row = mirror.rows[-1]
            return [ask.id for ask in row.others] if isinstance(row, AskRow) else []

        await until(lambda: others() == [there.id])
        engine.stores.asks.answer(AskAnswerParams(ask_id=there.id, allow=False))
        await until(lambda: others() == [])
        assert [ask.status for ask in store.commands.waiting] == ["waiting"]


async def test_live_output_is_appended_to_one_row(tmp_path: Path) -> None:
    gate = tmp_path / "workspace" / "gate"
    gate.parent.mkdir()
    os.mkfifo(gate)
    # The shell holds the gate open: opened for each step, it could meet the writer of the previous step and its end.
    step = "read -r _ <&3"
    prints = ("echo 1", "printf '10%%\\r20%%'", "printf '\\rgr\\303'", "printf '\\274n\\n'")
    command = "; ".join((f"exec 3<> '{gate}'", *(f"{step}; {line}" for line in prints), step))
    turns = [Reply(calls=(Call("shell", {"command": command}),)), DONE]
    async with store_engine(tmp_path, ModelServer(turns=turns)) as engine:
        task = await engine.parts.start("do it", approve="all")
        _, mirror = await engine.open(task.conversation_id)
        await mirror.until("ToolCall")
        await asyncio.to_thread(gate.write_text, "\n")  # output before the subscription is not sent again
        for text in ("1", "1\n20%", "1\ngr", "1\ngrün"):
            await until(lambda text=text: [row.output for row in mirror.rows if isinstance(row, ToolCallRow)] == [text])
            await asyncio.to_thread(gate.write_text, "\n")
        await mirror.until("TaskEnd")


async def test_each_changed_task_and_node_is_a_signal(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(turns=[Reply(text="Hello."), Reply(text="Again.")])) as engine:
        engine.parts.services.settings.set("default_api_base", engine.parts.model.url)
        task = await engine.parts.start("greet")
        store, mirror = await engine.open(task.conversation_id)
        await mirror.until("TaskEnd")
        nodes, tasks = list[Node](), list[Task]()
        store.taskMessage.connect(nodes.append)
        store.taskUpdate.connect(tasks.append)
        store.commands.options = TaskOptions("openai_compatible/test-model")
        store.commands.send("greet again")
        await until(lambda: bool(tasks) and tasks[-1].outcome.ended_at is not None)
        assert [node.role for node in nodes if node.status == "complete"][:2] == ["user", "assistant"]
        assert {node.conversation_id for node in nodes} == {task.conversation_id}
        assert tasks[-1].activity.status == "completed"
