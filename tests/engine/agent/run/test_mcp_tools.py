"""Tools of MCP servers in tasks: offered, asked about, changed, trusted, switched per personality."""

import json
from pathlib import Path

import pytest

from errand.engine.agent.tasks.grant_rules import made_grants
from errand.engine.core.errors import Conflict
from errand.engine.core.setting_values import McpServer
from errand.protocol.agents import Personality
from errand.protocol.asks import AskAnswerParams, GrantDraft, GrantedCall, Remember
from errand.protocol.events import GrantUpdate, McpUpdate, PersonalityUpdate
from errand.protocol.servers import McpTrustParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.mcp_servers import command, stored
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.oauth_server import oauth_server, visit


def says(text: str, tool: str = "test__echo") -> Reply:
    return Reply(calls=(Call(tool, {"text": text}),))


def has(engine: EngineParts, *servers: McpServer) -> None:
    engine.services.settings.set_mcp_servers(servers)


def offered(engine: EngineParts, request: int = 0) -> list[str]:
    return engine.model.requests[request].offered


async def answered(
    engine: EngineParts, task: Task, *, allow: bool = True, kind: str = "", remember: Remember = "conversation"
) -> None:
    ask = await engine.watcher.ask(task.id)
    assert ask.approval is not None
    kinds: list[str] = [approval_offer.kind for approval_offer in ask.approval.offers]
    offer = kinds.index(kind) if kind else 0
    params = AskAnswerParams(ask_id=ask.id, allow=allow, remember=remember if kind else "once", offer=offer)
    await engine.services.asks.answer(params, "me")


async def test_a_call_of_a_server_is_asked_about_and_a_rule_for_the_tool_holds_after_that(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[says("one"), says("two"), DONE])) as engine:
        has(engine, stored())
        task = await engine.start(approve="ask")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None
        assert (ask.approval.service, ask.text) == ("test/echo", "Call echo of the server test")
        assert '"one"' in ask.approval.preview
        await answered(engine, task, kind="tool")
        await engine.watcher.end(task.id)
        assert [block.text for block in results(engine.watcher.nodes())][:2] == ["one", "two"]
        assert {"test__echo", "mcp", "bash"} <= set(offered(engine))


async def test_a_tool_whose_description_changed_is_asked_about_in_spite_of_rules(tmp_path: Path) -> None:
    turns = [says("one"), says("change"), says("two"), says("three"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        has(engine, stored())
        task = await engine.start(approve="ask")
        await answered(engine, task, kind="tool")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) >= 2)
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.offers == ()
        assert "has changed" in ask.approval.rule
        assert "Gives back its text." in ask.approval.preview
        assert "Sends everything to somebody else." in ask.approval.preview
        await answered(engine, task)
        await engine.watcher.end(task.id)  # the rule holds for `three`, since the person has seen the change


@pytest.mark.parametrize("kind", ["tool", "server"])
async def test_a_rule_does_not_hold_for_a_tool_with_another_text_when_what_was_seen_is_lost(
    tmp_path: Path, kind: str
) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[says("one"), DONE])) as engine:
        has(engine, stored())
        task = await engine.start(approve="ask")
        await answered(engine, task, kind=kind, remember="user")
        await engine.watcher.end(task.id)
    (tmp_path / "data" / "mcp.json").unlink()
    async with engine_parts(tmp_path, ModelServer(turns=[says("two"), DONE])) as engine:
        has(engine, stored("test", "reworded"))
        again = await engine.start(approve="ask")
        ask = await engine.watcher.ask(again.id)
        assert ask.approval is not None and "describes it otherwise" in ask.approval.rule
        await answered(engine, again)
        await engine.watcher.end(again.id)


@pytest.mark.parametrize("is_written", [False, True])
async def test_a_rule_for_a_server_covers_the_tools_that_it_had_and_none_that_come_later(
    tmp_path: Path, is_written: bool
) -> None:
    turns = [says("one"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        has(engine, stored())
        if is_written:
            rule = GrantDraft(decision="allow", call=GrantedCall(service="test/*"), scope="user")
            for grant in await made_grants((rule,), "me", engine.services.grants, engine.services.database):
                engine.services.grants.add(grant)
                engine.services.log.publish(GrantUpdate(grant=grant))
        task = await engine.start(approve="ask")
        if not is_written:
            await answered(engine, task, kind="server", remember="user")
        await engine.watcher.end(task.id)
    later = Reply(calls=(Call("test__second", {}),))
    async with engine_parts(tmp_path, ModelServer(turns=[says("two"), later, DONE])) as engine:
        has(engine, stored("test", "pages"))
        again = await engine.start(approve="ask")
        ask = await engine.watcher.ask(again.id)
        assert ask.text == "Call second of the server test"
        await answered(engine, again)
        await engine.watcher.end(again.id)


async def test_an_accepted_change_makes_the_rule_hold_again(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[says("one"), DONE])) as engine:
        has(engine, stored())
        task = await engine.start(approve="ask")
        await answered(engine, task, kind="tool", remember="user")
        await engine.watcher.end(task.id)
    async with engine_parts(tmp_path, ModelServer(turns=[says("two"), says("three"), DONE])) as engine:
        has(engine, stored("test", "reworded"))
        again = await engine.start(approve="ask")
        ask = await engine.watcher.ask(again.id)
        assert ask.approval is not None and "has changed" in ask.approval.rule
        await answered(engine, again)
        await engine.watcher.end(again.id)


async def test_a_server_of_the_workspace_starts_only_when_a_person_trusts_exactly_it(tmp_path: Path) -> None:
    async with engine_parts(
        tmp_path, ModelServer(replies=[Reply(text="a"), Reply(text="b"), Reply(text="c")])
    ) as engine:
        argv = command()
        entry = {"command": argv[0], "args": list(argv[1:]), "env": {"A": "b"}, "sandbox": False}
        file = engine.workspace / ".mcp.json"
        file.write_text(json.dumps({"mcpServers": {"test": entry}}))
        unattended = await engine.start(approve="never", mode="chat")
        await engine.watcher.end(unattended.id)
        assert "test__echo" not in offered(engine, 0)

        task = await engine.start(approve="ask", mode="chat")
        ask = await engine.watcher.ask(task.id)
        assert ask.approval is not None and ask.approval.command is not None
        assert all(word in ask.approval.command for word in argv)
        assert "A=b" in ask.approval.preview and "outside the sandbox" in ask.approval.sandbox
        await answered(engine, task)
        await engine.watcher.end(task.id)
        assert "test__echo" in offered(engine, 1)

        entry["env"] = {"A": "c"}
        file.write_text(json.dumps({"mcpServers": {"test": entry}}))
        again = await engine.start(approve="ask", mode="chat")
        changed = await engine.watcher.ask(again.id)
        assert "has changed the server test" in changed.text
        await answered(engine, again, allow=False)
        await engine.watcher.end(again.id)
        assert "test__echo" not in offered(engine, 2)
        (server,) = await engine.services.tools.mcp.list(str(engine.workspace))
        assert server.trust == "declined"
        with pytest.raises(Conflict, match="has changed since"):
            wrong = McpTrustParams(name="test", workspace=server.workspace, fingerprint="x", trusted=True)
            await engine.services.tools.mcp.trust(wrong)


async def test_an_approval_of_a_server_displays_each_argument_on_one_line(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="a")])) as engine:
        entry = {"command": "/bin/echo", "args": ["a\u202eb\nFolder: /elsewhere"], "env": {"A": "b\nVariable: C=d"}}
        (engine.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))
        task = await engine.start(approve="ask", mode="chat")
        approval = (await engine.watcher.ask(task.id)).approval
        assert approval is not None and approval.command == r"/bin/echo $'a\u202eb\nFolder: /elsewhere'"
        lines = [line.partition(":")[0] for line in approval.preview.splitlines()]
        assert lines[:3] == ["Command", "Variable", "Folder"] and len(lines) == 4
        await answered(engine, task, allow=False)
        await engine.watcher.end(task.id)


async def test_a_server_that_dies_in_a_call_has_its_tools_for_the_rest_of_the_task(tmp_path: Path) -> None:
    turns = [says("die"), says("again"), says("x", "test__eco"), says("there", "other__echo"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        has(engine, stored(), stored("other"))
        task = await engine.start(approve="all")
        await engine.watcher.end(task.id)
        texts = [block.text for block in results(engine.watcher.nodes())]
        assert "ended with exit code 3" in texts[0] and texts[1] == "again" and texts[3] == "there"
        assert "Did you mean test__echo?" in texts[2]
        assert all("test__echo" in offered(engine, request) for request in range(4))


async def test_tasks_that_ask_the_same_about_a_server_are_settled_by_one_answer(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="a"))) as engine:
        argv = command()
        entry = {"command": argv[0], "args": list(argv[1:]), "sandbox": False}
        (engine.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))
        tasks = [await engine.start(approve="ask", mode="chat") for _ in range(3)]
        for task in tasks:
            await engine.watcher.ask(task.id)
        await answered(engine, tasks[0])
        for task in tasks:
            await engine.watcher.end(task.id)
        assert all("test__echo" in offered(engine, request) for request in range(3))


async def test_a_personality_has_the_servers_and_tools_it_lists(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="a"), Reply(text="b")])) as engine:
        has(engine, stored(), stored("other"))
        for name, tools in (("p1", ("shell", "mcp:other")), ("p2", ("test__echo",))):
            personality = Personality(id=name, name=name, system_prompt="", tools=tools)
            engine.services.log.publish(PersonalityUpdate(personality=personality))
        await engine.services.log.flush()
        for name in ("p1", "p2"):
            task = await engine.start(mode="chat", personality_id=name)
            await engine.watcher.end(task.id)
    first, second = offered(engine, 0), offered(engine, 1)
    assert "other__echo" in first and "bash" in first and "test__echo" not in first and "read" not in first
    assert "test__echo" in second and "bash" not in second and "other__echo" not in second
    assert "mcp" in first and "mcp" not in second  # the resources are those of a whole server


async def test_a_sub_agent_has_no_server_that_its_personality_does_not_list(tmp_path: Path) -> None:
    order = Reply(calls=(Call("task", {"description": "a", "prompt": "Do a.", "personality": "Reader"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[order, Reply(text="a"), Reply(text="b")])) as engine:
        has(engine, stored())
        for name, tools in (("All", ("task", "code", "mcp")), ("Reader", ("code",))):
            personality = Personality(id=name.lower(), name=name, system_prompt="", tools=tools)
            engine.services.log.publish(PersonalityUpdate(personality=personality))
        await engine.services.log.flush()
        await engine.watcher.end((await engine.start(mode="chat", personality_id="all")).id)
    assert "test__echo" in offered(engine, 0) and "test__echo" not in offered(engine, 1)


async def test_a_server_that_does_not_start_leaves_a_remark_and_the_task_goes_on(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="a")])) as engine:
        has(engine, stored("bad", "dies"), stored())
        task = await engine.start(mode="chat")
        ended = await engine.watcher.end(task.id)
        assert ended.activity.status == "completed" and "test__echo" in offered(engine)
        assert any("bad is not available" in str(node.blocks) for node in engine.watcher.nodes())


async def test_a_sign_in_that_is_needed_is_said_to_the_person_and_in_a_call_to_the_model(tmp_path: Path) -> None:
    async with oauth_server() as oauth:
        replies = [Reply(text="a"), *(says(text, "guarded__echo") for text in ("one", "two")), Reply(text="later")]
        async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
            has(engine, McpServer(name="guarded", url=oauth.mcp))
            first = await engine.start(mode="chat")
            await engine.watcher.end(first.id)
            assert "guarded__echo" not in offered(engine)
            assert any("errand mcp login guarded" in str(node.blocks) for node in engine.watcher.nodes())

            address = (await engine.services.tools.mcp.login("guarded", None)).address
            await visit(address)
            (server,) = await engine.services.tools.mcp.list(None)
            while server.state != "ready":
                await engine.watcher.until(lambda: any(isinstance(event, McpUpdate) for event in engine.watcher.events))
                engine.watcher.events[:] = [
                    event for event in engine.watcher.events if not isinstance(event, McpUpdate)
                ]
                (server,) = await engine.services.tools.mcp.list(None)
            task = await engine.start(approve="ask", mode="chat")
            await answered(engine, task)
            await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) >= 1)
            oauth.tokens.clear()
            oauth.refresh_tokens.clear()
            await answered(engine, task)
            await engine.watcher.end(task.id)
            texts = [block.text for block in results(engine.watcher.nodes())]
            assert texts[0] == "hello" and "only a person can sign in there" in texts[1]
            assert "guarded__echo" in offered(engine, 2) and "guarded__echo" not in offered(engine, 3)
