"""Forgetting texts in a whole engine: after it, no file of the data folder has them, and what stays is well formed."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.history.conversion import messages_of
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import AgentBusy, InvalidParams, NotFound, StorageError
from errand.engine.core.messages import ToolResultMessage, text_of
from errand.engine.storage.records import commands
from errand.engine.storage.sql.statements import to_json
from errand.engine.tools.shell.background import BackgroundCommands
from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.blocks import (
    NoticeBlock,
    RecallBlock,
    RecalledEntry,
    SummaryBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.conversations import Node
from errand.protocol.events import AskUpdate, FactRemoved, TaskMessage, TaskUpdate
from errand.protocol.memory import MemoryForgetResult, MemoryListParams, MemorySearchParams
from errand.protocol.notices import SummaryForgotten
from errand.protocol.tasks.methods import TASK_START, TaskStartResult
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.notice_text import FORGOTTEN
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts, remembered
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.records import NOW
from tests.support.stored_records import dump_records, on_both

pytestmark = pytest.mark.usefixtures("bare_commands")

# No text of the model's requests or of the engine has these words.
ASKED = "ask the walrus Ethelbert about the zeppelin"
DONE = "printf 'quokka-%s\\n' marmalade"
RESULT = "quokka-marmalade"
LONG = "for i in $(seq 20000); do echo ocelot-periwinkle; done"


def says(*replies: Reply) -> ModelServer:
    return ModelServer(list(replies))


def shell(command: str, text: str = "", thinking: str = "") -> Reply:
    return Reply(text=text, thinking=thinking, calls=(Call("shell", {"command": command}),))


def places(home: Path, *texts: str) -> dict[str, list[str]]:
    """The files below a folder that have one of the texts, in their raw bytes; `errand.db` also for a server's rows."""
    texts_by_file: dict[str, list[str]] = {}
    if has := [text for text in texts if text in dump_records(Paths(home))]:
        texts_by_file["errand.db"] = has
    for file in home.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            if has := [text for text in texts if text.encode() in data]:
                texts_by_file[str(file.relative_to(home))] = has
    return texts_by_file


async def worked(engine: EngineParts, prompt: str, conversation_id: str | None = None) -> Task:
    """A task that has ended, which memory has."""
    task = await engine.start(prompt, conversation_id=conversation_id)
    ended = await engine.watcher.end(task.id)
    await remembered(engine)
    return ended


async def forget(engine: EngineParts, *nodes: Node) -> MemoryForgetResult:
    return await engine.services.forgetter.forget([node.id for node in nodes], "a person")


@pytest.fixture
async def none(tmp_path: Path) -> AsyncGenerator[EngineParts]:
    async with engine_parts(tmp_path, says()) as parts:
        yield parts


async def test_no_file_of_the_data_folder_has_a_text_that_was_forgotten(tmp_path: Path) -> None:
    replies = (
        shell(DONE, text="I look at the quokka now.", thinking="The armadillo wants printf."),
        Reply(text="It is done, says the pangolin of Timbuktu."),
    )
    async with engine_parts(tmp_path, says(*replies)) as engine:
        task = await worked(engine, ASKED)
        answered = TaskStartResult(task=task)
        engine.services.database.journal.put(commands.save("client", "7", TASK_START.name, to_json(answered), NOW))
        await engine.services.database.journal.flush()
        before = await branch(engine, task.conversation_id)
        home = engine.services.paths.home
        texts = (ASKED, "zeppelin", RESULT, "marmalade", "armadillo", "pangolin", "Timbuktu")
        assert places(home, *texts)
        done = await forget(engine, *before)
        after = await branch(engine, task.conversation_id)
        assert places(home, *texts) == {}
        stored = await engine.services.database.commands.answered("client", "7")
    assert places(home, *texts) == {}
    assert (done.nodes, done.executions, done.titles, done.tasks) == (4, 1, 1, 1)
    assert stored is not None and FORGOTTEN in stored.result
    assert [node.role for node in after] == ["user", "assistant", "tool_result", "assistant"]
    call, result = after[1].blocks[1], after[2].blocks[0]
    assert isinstance(call, ToolCallBlock) and isinstance(result, ToolResultBlock)
    assert (call.tool, call.arguments, call.call_id) == ("shell", {}, result.call_id)
    assert [block for node in (after[0], after[1], after[3]) for block in node.blocks[:1]] == [
        TextBlock(text=FORGOTTEN, forgotten=True)
    ] * 3
    messages = messages_of(after)
    assert [message.role for message in messages] == ["user", "assistant", "tool_result", "assistant"]
    assert all("removed what stood here for good" in text_of(message) for message in messages)
    assert isinstance(messages[2], ToolResultMessage) and messages[2].tool_call_id == call.call_id


async def test_a_result_is_forgotten_with_its_call_alone(tmp_path: Path) -> None:
    replies = (
        Reply(text="First I look.", calls=(Call("shell", {"command": DONE}), Call("shell", {"command": "echo stays"}))),
        Reply(text="Done."),
    )
    async with engine_parts(tmp_path, says(*replies)) as engine:
        task = await worked(engine, ASKED)
        before = await branch(engine, task.conversation_id)
        (result,) = [node for node in before if RESULT in to_json(node) and node.role == "tool_result"]
        done = await forget(engine, result)
        after = {node.id: node for node in await branch(engine, task.conversation_id)}
        home = engine.services.paths.home
        assert places(home, RESULT, "marmalade") == {}
        assert places(home, ASKED, "echo stays", "First I look.")
        (plan, *_) = await engine.services.database.turns.plans(task.id)
        executions = await engine.services.database.executions.of_task(task.id)
    assert (done.nodes, done.executions, done.tasks, done.titles) == (1, 1, 0, 0)
    reply = after[before[1].id]
    assert [block.arguments for block in reply.blocks if isinstance(block, ToolCallBlock)] == [
        {},
        {"command": "echo stays"},
    ]
    assert reply.blocks[0] == TextBlock(text="First I look.")
    assert [call.parameters for call in plan.tool_calls] == [{}, {"command": "echo stays"}]
    assert [execution.started.arguments for execution in executions] == [{}, {"command": "echo stays"}]


async def test_a_later_call_of_a_reply_and_a_refused_one_are_forgotten_in_the_audit_too(tmp_path: Path) -> None:
    calls = (
        Call("shell", {"command": "echo stays"}),
        Call("shell", {"command": DONE}),
        Call("no_tool", {"a": "okapi"}),
    )
    async with engine_parts(tmp_path, says(Reply(text="I look.", calls=calls), Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        path = await branch(engine, task.conversation_id)
        results = [node for node in path if node.role == "tool_result"]
        done = await forget(engine, *results[1:])
        home = engine.services.paths.home
        assert places(home, RESULT, "marmalade", "okapi") == {} and places(home, "echo stays")
    assert done.executions == 2


async def test_long_output_goes_with_its_call(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(shell(LONG), Reply(text="Done."))) as engine:
        task = await worked(engine, "go")
        home = engine.services.paths.home
        assert [name for name in places(home, "ocelot-periwinkle") if name.startswith("outputs/")]
        result = next(node for node in await branch(engine, task.conversation_id) if node.role == "tool_result")
        done = await forget(engine, result)
        assert places(home, "ocelot-periwinkle") == {}
    assert done.files == 1


async def test_a_summary_made_from_a_forgotten_text_is_removed_and_the_branch_is_read_in_full(tmp_path: Path) -> None:
    summary = "They spoke of the walrus and its zeppelin at Timbuktu."
    long = "One thing after the other. " * 30
    replies = (Reply(text=long), Reply(text="Two."), Reply(text=summary), Reply(text="Three."))
    async with engine_parts(tmp_path, says(*replies)) as engine:
        first = await worked(engine, ASKED)
        await worked(engine, "and then", first.conversation_id)
        (agent,) = await engine.services.database.agents.list(first.conversation_id)
        summary_task = await engine.services.runner.summarise(
            ConversationSummariseParams(conversation_id=first.conversation_id, agent_id=agent.id)
        )
        await engine.watcher.end(summary_task.id)
        path = await branch(engine, first.conversation_id)
        summaries = [node for node in path if isinstance(node.blocks[0], SummaryBlock)]
        assert len(summaries) == 1 and places(engine.services.paths.home, "Timbuktu")
        done = await forget(engine, path[0])
        assert done.summaries == 1
        assert places(engine.services.paths.home, "Timbuktu", "walrus") == {}
        stored = await engine.services.database.nodes.get(summaries[0].id)
        assert stored is not None
        assert stored.blocks == (NoticeBlock(kind="model", data=SummaryForgotten()),)
        await worked(engine, "go on", first.conversation_id)
        asked = to_json(engine.model.requests[-1].body)
        assert "and then" in asked and long.strip() in asked and "removed what stood here" in asked


async def test_what_an_agent_was_given_or_found_in_memory_is_forgotten_in_any_conversation(tmp_path: Path) -> None:
    replies = (
        Reply(text="One."),
        Reply(calls=(Call("search_memory", {"query": "walrus zeppelin"}),)),
        Reply(text="Found."),
    )
    async with engine_parts(tmp_path, says(*replies)) as engine:
        first = await worked(engine, ASKED)
        (source, *_) = await branch(engine, first.conversation_id)
        other = await worked(engine, "look")
        path = await branch(engine, other.conversation_id)
        entry = RecalledEntry(
            conversation_id=first.conversation_id, conversation_title=ASKED, node_id=source.id, role="user",
            speaker="you", at=NOW, text=ASKED,
        )  # fmt: skip
        recall = Node(
            id="node_recall", conversation_id=other.conversation_id, parent_id=path[0].id, role="system",
            author="engine", blocks=(RecallBlock(entries=(entry,)),), status="complete", created_at=NOW,
        )  # fmt: skip
        engine.services.log.publish(TaskMessage(node=recall))
        await engine.services.log.flush()
        done = await forget(engine, source)
        assert done.recalls == 2
        calls = [block for block in path[1].blocks if isinstance(block, ToolCallBlock)]
        assert calls[0].arguments == {"query": "walrus zeppelin"}  # words of the agent
        assert places(engine.services.paths.home, "Ethelbert") == {}
        stored = await engine.services.database.nodes.get("node_recall")
        assert stored is not None and isinstance(stored.blocks[0], RecallBlock)
        assert [(recalled.text, recalled.conversation_title) for recalled in stored.blocks[0].entries] == [
            (FORGOTTEN, "New conversation")
        ]


async def test_a_fact_that_was_proposed_there_is_forgotten_and_a_pinned_one_stays(tmp_path: Path) -> None:
    secret, pinned_text = "The walrus  Ethelbert has a zeppelin.", "Answer in German."
    calls = tuple(Call("propose_memory", {"text": text, "scope": "always"}) for text in (secret, pinned_text))
    async with engine_parts(tmp_path, says(Reply(calls=calls), Reply(text="Done."))) as engine:
        task = await worked(engine, "go")
        path = await branch(engine, task.conversation_id)
        first, second = await engine.services.database.facts.all()
        result = next(node for node in path if node.role == "tool_result")
        assert (await engine.services.forgetter.preview([result.id])).removes.facts == 1
        assert (await forget(engine, result)).facts == 1
        assert await engine.services.database.facts.all() == (second,)
        await engine.services.facts.change(second.id, "me", text=None, scope=None, folder=None)
        assert (await forget(engine, *path)).facts == 0
        assert [fact.text for fact in await engine.services.database.facts.all()] == [pinned_text]
        assert FactRemoved(fact_id=first.id) in engine.watcher.events
        assert places(engine.services.paths.home, "Ethelbert", "zeppelin") == {}


async def test_clients_get_the_nodes_again_and_a_search_finds_nothing(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        (user_node, _) = await branch(engine, task.conversation_id)
        engine.watcher.events.clear()
        await forget(engine, user_node)
        nodes = [event.node for event in engine.watcher.events if isinstance(event, TaskMessage)]
        tasks = [event.task for event in engine.watcher.events if isinstance(event, TaskUpdate)]
        assert [(node.id, node.blocks) for node in nodes] == [
            (user_node.id, (TextBlock(text=FORGOTTEN, forgotten=True),))
        ]
        assert [updated_task.request.prompt for updated_task in tasks] == [FORGOTTEN]
        for query in ("zeppelin", "walr"):
            assert await engine.services.database.search.find(query, 10) == ()


async def test_the_preview_names_everything_that_goes_and_changes_nothing(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(shell(DONE), Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        path = await branch(engine, task.conversation_id)
        preview = await engine.services.forgetter.preview([path[1].id])
        assert [(node.role, node.text) for node in preview.nodes] == [("agent", "shell"), ("tool", RESULT)]
        assert (preview.removes.nodes, preview.removes.executions) == (2, 1)
        assert await branch(engine, task.conversation_id) == path
        done = await forget(engine, path[1])
        assert done == msgspec.structs.replace(preview.removes, entries=2)


async def test_forgetting_twice_removes_nothing_and_is_one_line_of_the_audit(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        path = await branch(engine, task.conversation_id)
        assert (await forget(engine, *path)).nodes == 2
        again = await forget(engine, *path)
        assert again == MemoryForgetResult(nodes=0, entries=0, executions=0, summaries=0)
        (line,) = (await engine.services.database.memory_log.page(10)).entries
        about = f"2 texts, 2 entries of memory in {task.conversation_id}"
        assert (line.action, line.by, line.about) == ("forgotten", "a person", about)
        assert await engine.services.database.forgets.pending() == ()


async def test_a_node_of_a_task_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    replies = (Reply(text="One."), Reply(calls=(Call("ask_user", {"question": "Which?"}),)))
    async with engine_parts(tmp_path, says(*replies)) as engine:
        ended = await worked(engine, ASKED)
        (user_node, _) = await branch(engine, ended.conversation_id)
        waiting = await engine.start("and now", conversation_id=ended.conversation_id, attended=True, mode="task")
        await engine.watcher.ask(waiting.id)
        with pytest.raises(AgentBusy, match="an agent works in “ask the walrus"):
            await forget(engine, user_node)
        path = await branch(engine, ended.conversation_id)
        with pytest.raises(AgentBusy, match="which has not ended"):
            await forget(engine, path[2])
        assert await engine.services.database.forgets.pending() == ()
        await engine.services.runner.stop(waiting.id, "a person")
        await engine.watcher.end(waiting.id)
        assert (await forget(engine, user_node)).nodes == 1


async def test_only_nodes_that_exist_are_forgotten(none: EngineParts) -> None:
    with pytest.raises(NotFound, match="no node 'node_none'"):
        await none.services.forgetter.forget(["node_none"], "a person")
    for wrong in ([], ["node"] * 1001):
        with pytest.raises(InvalidParams, match="nodeIds"):
            await none.services.forgetter.preview(wrong)


async def test_copies_made_before_are_named_and_left(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        paths = engine.services.paths
        copy = paths.copies / "errand-daily-20260101T000000.db"
        copy.write_bytes(ASKED.encode())
        done = await forget(engine, *await branch(engine, task.conversation_id))
        assert done.copies == (str(copy),)
        assert places(paths.home, "Ethelbert") == {"copies/errand-daily-20260101T000000.db": ["Ethelbert"]}


async def test_what_an_interrupted_forgetting_has_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """The engine is killed after each commit of it in turn, as far as there are any."""
    async with engine_parts(tmp_path, says(shell(DONE), Reply(text="Done, Ethelbert."))) as engine:
        task = await worked(engine, ASKED)
        path = await branch(engine, task.conversation_id)
        homes: list[Path] = []
        flush = engine.services.database.journal.flush

        async def flush_and_copy(*, durable: bool = True) -> None:
            await flush(durable=durable)
            home = tmp_path / f"killed_{len(homes)}"
            home.mkdir()
            crash(engine, home)
            homes.append(home)

        engine.services.database.journal.flush = flush_and_copy
        await forget(engine, *path)
        engine.services.database.journal.flush = flush
    assert len(homes) >= 5
    for home in homes:
        async with engine_parts(home, says()) as next_engine:
            await next_engine.services.forgetter.sweep()
            assert await next_engine.services.database.forgets.pending() == ()
            assert places(Paths(home / "data").home, "Ethelbert", RESULT) == {}, home
            (line,) = (await next_engine.services.database.memory_log.page(10)).entries
            assert line.action == "forgotten"


async def test_a_database_in_which_deleted_rows_were_not_overwritten_is_rewritten_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        await worked(engine, ASKED)
    file = Paths(tmp_path / "data").database
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("DELETE FROM meta WHERE name = 'secure_delete'")
        connection.execute("CREATE TABLE old (text)")
        connection.execute("INSERT INTO old VALUES (?)", ("dromedary " * 10_000,))
        connection.execute("DROP TABLE old")
    assert places(file.parent, "dromedary")
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        task = await worked(engine, "go")
        await forget(engine, *await branch(engine, task.conversation_id))
        assert places(file.parent, "dromedary") == {}


@on_both
async def test_of_all_that_a_task_does_only_rules_and_replaced_files_keep_what_was_forgotten(tmp_path: Path) -> None:
    """Each text has a word of its own."""
    word = [f"mzarkq{number:02}zz" for number in range(13)]
    calls = (
        Call("todo", {"items": [{"text": f"step {word[0]} to do"}]}),
        Call("shell", {"command": f"curl -s http://127.0.0.1:9/{word[1]}; true"}),
        Call("ask_user", {"question": f"what about {word[2]} then?"}),
        Call("shell", {"command": f"sleep 0.1; echo {word[4]}", "background": True}),
        Call("code", {"action": "write", "path": "f.txt", "content": f"{word[5]}\n"}),
        Call("code", {"action": "write", "path": "f.txt", "content": f"{word[6]}\n"}),
        Call("send_update", {"message": f"update {word[7]} now"}),
        Call("python", {"code": f"print('{word[8]}')"}),
        Call("task", {"title": f"The {word[9]}", "prompt": f"order {word[9]} look"}),
        Call("task_complete", {"summary": f"sub {word[10]} done"}),
        Call("task_complete", {"summary": f"all {word[11]} done"}),
    )
    replies = [Reply(thinking=f"about {word[12]}" if number == 0 else "", calls=(c,)) for number, c in enumerate(calls)]
    async with engine_parts(tmp_path, says(*replies)) as engine:
        task = await engine.start("go", approve="ask", mode="task")
        answered: set[str] = set()
        while True:
            await engine.watcher.until(lambda: _open_ask(engine, answered) is not None or _is_over(engine, task))
            if (ask := _open_ask(engine, answered)) is None:
                break
            answered.add(ask.id)
            approval = ask.approval
            remembers = (
                approval is not None and approval.tool == "shell" and "conversation" in approval.offers[0].scopes
            )
            answer = AskAnswerParams(
                ask_id=ask.id,
                text=f"answer {word[3]}" if ask.kind == "question" else "",
                allow=None if ask.kind == "question" else True,
                remember="conversation" if remembers else "once",
            )
            await engine.services.asks.answer(answer, "a person")
        home, database = engine.services.paths.home, engine.services.database
        assert {text for has in places(home, *word).values() for text in has} == set(word)
        ids = [node_id for node_id, _ in await database.nodes.links(task.conversation_id)]
        done = await engine.services.forgetter.forget(ids, "a person")
        assert (done.rules > 0, done.files, done.tasks, done.asks > 2) == (True, 1, 2, True)
        left = places(home, *word)
        assert left.pop("errand.db") == [word[1]]  # the rule
        assert [*left] == ["replaced/contents.db-wal"]
        agents = await database.agents.list(task.conversation_id)
        assert [agent.name for agent in agents if agent.called_by] == ["Sub-agent"]


def _open_ask(engine: EngineParts, answered: set[str]) -> Ask | None:
    asks = {event.ask.id: event.ask for event in engine.watcher.events if isinstance(event, AskUpdate)}
    return next((ask for ask in asks.values() if ask.status == "waiting" and ask.id not in answered), None)


def _is_over(engine: EngineParts, task: Task) -> bool:
    return engine.watcher.tasks(task.id)[-1].outcome.ended_at is not None


async def test_a_command_that_runs_in_the_background_is_stopped_before_its_text_is_forgotten(tmp_path: Path) -> None:
    run = Call("shell", {"command": "echo okapi-calliope; sleep 60", "background": True})
    async with engine_parts(tmp_path, says(Reply(calls=(run,)), Reply(text="Done."))) as engine:
        task = await worked(engine, "go")
        path = await branch(engine, task.conversation_id)
        with pytest.raises(AgentBusy, match="background command 1 of the conversation still runs"):
            await forget(engine, path[1])
        commands = engine.services.tools.sessions.find(task.conversation_id, BackgroundCommands)
        assert commands is not None
        await commands.stop(commands.get("1"), "a person")
        await forget(engine, path[1])
        assert commands.commands() == () and places(engine.services.paths.home, "calliope") == {}


async def test_memory_loses_what_is_forgotten_and_keeps_the_rest_of_a_reply(tmp_path: Path) -> None:
    replies = (shell(DONE, text="First I look for an ocelot."), Reply(text="Done."))
    async with engine_parts(tmp_path, says(*replies)) as engine:
        task = await worked(engine, ASKED)
        memory = engine.services.memory
        listed = {item.text for item in (await memory.reader.page(MemoryListParams())).items}
        assert {ASKED, f"First I look for an ocelot.\n[shell: {DONE}]", "Done."} < listed
        user_node, _, result, _ = await branch(engine, task.conversation_id)
        assert (await forget(engine, user_node, result)).entries == 3
        await remembered(engine)
        listed = {item.text for item in (await memory.reader.page(MemoryListParams())).items}
        assert listed == {"First I look for an ocelot.", "Done."}
        assert (await memory.reader.search(MemorySearchParams(text="zeppelin marmalade"), CancelSignal())).hits == ()
        memory.rules_changed()  # all is read again
        await remembered(engine)
        assert {item.text for item in (await memory.reader.page(MemoryListParams())).items} == listed
        assert places(engine.services.paths.memory, "walrus", "marmalade") == {}


async def test_an_index_of_memory_that_cannot_be_changed_is_reported_and_completed_later(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, says(Reply(text="Done."))) as engine:
        task = await worked(engine, ASKED)
        path = await branch(engine, task.conversation_id)
        with closing(sqlite3.connect(engine.services.paths.memory / "memory.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="Forgotten, but not in memory"):
                await forget(engine, *path)
        assert len(await engine.services.database.forgets.pending()) == 1
        assert (await forget(engine, path[0])).entries == 2
        assert await engine.services.database.forgets.pending() == ()
        assert places(engine.services.paths.home, "Ethelbert") == {}


async def test_the_conversation_goes_on_with_calls_and_results_in_pairs(tmp_path: Path) -> None:
    replies = (shell(DONE, thinking="Hm."), Reply(text="Done."), Reply(text="Nothing is there any more."))
    async with engine_parts(tmp_path, says(*replies)) as engine:
        task = await worked(engine, ASKED)
        await forget(engine, *(await branch(engine, task.conversation_id))[:3])
        await worked(engine, "what did I ask?", task.conversation_id)
        sent = engine.model.requests[-1].messages
        assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
        (call,) = msgspec.convert(sent[2]["tool_calls"], list[dict[str, object]])
        assert (call["function"], call["id"]) == ({"name": "bash", "arguments": "{}"}, sent[3]["tool_call_id"])
        assert "removed what stood here for good" in str(sent[1]) and "removed what stood here" in str(sent[3])
        assert not any(word in to_json(sent) for word in ("zeppelin", "marmalade"))
