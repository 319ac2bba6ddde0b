"""The tools of a task as a model is offered them: sets by its size, names that models know, calls in both forms."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.tool_offer.choice import ToolChoice, choose_tools
from errand.engine.agent.tool_offer.offer import ToolOffer
from errand.engine.agent.tool_offer.presentations import MINIMAL, USUAL, Presentation
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import ToolCall
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN
from errand.engine.models.servers.served_models import ServedModel
from errand.engine.tools.answer_schema import with_answer_schema
from errand.engine.tools.base import AgentTool
from errand.engine.tools.control.find_tools import FindTools
from errand.engine.tools.control.task_messages import AskUser, SendUpdate, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.registry import bind
from errand.protocol.base import JsonObject
from errand.protocol.blocks import ToolCallBlock
from tests.support.engine_parts import engine_parts
from tests.support.loop_parts import make_tool_context
from tests.support.mcp_servers import stored
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply

SMALL = ServedModel("small", "llama_cpp", context_tokens=32_768, parameters=1.5)


async def no_answer(question: str, choices: tuple[str, ...], call_id: str, cancel: CancelSignal) -> str | None:
    return None


def tools_of(folder: Path, answer_schema: JsonObject | None = None) -> tuple[AgentTool, ...]:
    control = (TaskComplete(answer_schema), AskUser(no_answer), SendUpdate(), Todo(lambda items: None))
    return (*bind(make_tool_context(folder)), *control, FindTools(tuple))


def offer(folder: Path, choice: ToolChoice) -> ToolOffer:
    return ToolOffer(tools_of(folder), choice)


def tokens(tools: ToolOffer) -> int:
    text = msgspec.json.encode([(tool.name, tool.description, tool.parameters) for tool in tools.definitions])
    return len(text) // CHARACTERS_A_TOKEN


def test_the_minimal_set_has_seven_tools_of_few_tokens(tmp_path: Path) -> None:
    tools = offer(tmp_path, ToolChoice("minimal"))
    assert tools.names == ("read", "write", "edit", "bash", "todo_write", "ask_user", "task_complete")
    assert tokens(tools) <= 700


def test_a_small_model_has_no_list_to_keep(tmp_path: Path) -> None:
    tools = offer(tmp_path, choose_tools("auto", SMALL, 32_768, frozenset()))
    assert tools.names == ("read", "write", "edit", "bash", "ask_user", "task_complete")
    assert "todo_write" in offer(tmp_path, choose_tools("usual", SMALL, 32_768, frozenset())).names


def test_the_usual_set_finds_the_other_tools_instead_of_naming_their_arguments(tmp_path: Path) -> None:
    tools = offer(tmp_path, ToolChoice("usual"))
    assert {"read", "grep", "bash", "todo_write", "find_tools", "call_tool"} <= {*tools.names}
    assert {"browser", "python_inference", "propose_memory", "send_update"}.isdisjoint(tools.names)
    (find,) = (tool for tool in tools.definitions if tool.name == "find_tools")
    assert "browser" in find.description and "background" in find.description
    assert tokens(tools) <= 1_900


def test_an_agent_that_only_reads_has_search_and_pages_in_place_of_write_and_edit(tmp_path: Path) -> None:
    reading = bind(make_tool_context(tmp_path), ("code:read", "shell:read", "web_fetch"))
    control = (TaskComplete(None), AskUser(no_answer), SendUpdate(), Todo(lambda items: None))
    tools = ToolOffer((*reading, *control), ToolChoice("minimal"))
    assert tools.names == ("read", "grep", "bash", "web_fetch", "todo_write", "ask_user", "task_complete")
    assert tokens(tools) <= 700
    (code,) = (tool for tool in ToolOffer(reading, ToolChoice("all")).definitions if tool.name == "code")
    assert "'enum': ['read', 'list', 'search']" in str(code.parameters)


def test_all_tools_are_offered_as_registered(tmp_path: Path) -> None:
    tools = offer(tmp_path, ToolChoice("all"))
    assert {"code", "shell", "browser", "todo"} <= {*tools.names}
    assert "find_tools" not in tools.names


def test_what_a_person_named_is_offered_directly(tmp_path: Path) -> None:
    assert "browser" in offer(tmp_path, ToolChoice("usual", named=frozenset({"browser"}))).names


def test_an_answer_that_follows_a_schema_keeps_its_own_completion(tmp_path: Path) -> None:
    schema: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = ToolOffer(tools_of(tmp_path, schema), ToolChoice("minimal"))
    (completion,) = (tool for tool in tools.definitions if tool.name == "task_complete")
    assert completion.parameters == with_answer_schema(schema)


@pytest.mark.parametrize("presentation", USUAL, ids=[presentation.name for presentation in USUAL])
def test_a_call_is_the_same_after_the_way_to_the_registered_tool_and_back(
    presentation: Presentation, tmp_path: Path
) -> None:
    tools = offer(tmp_path, ToolChoice("usual"))
    call = ToolCall("1", presentation.name, dict.fromkeys(presentation.arguments, "x"))
    registered = tools.registered(call)
    assert registered.name == presentation.tool
    assert presentation.sets.items() <= registered.arguments.items()
    assert tools.offered(registered) == call


def test_offered_arguments_exist_in_the_registered_tool(tmp_path: Path) -> None:
    by_name = {tool.name: tool for tool in tools_of(tmp_path)}
    for presentation in (*MINIMAL, *USUAL):
        assert presentation.parameters(by_name[presentation.tool].parameters)["properties"]


def test_a_call_of_a_tool_that_is_not_offered_goes_by_its_name_both_ways(tmp_path: Path) -> None:
    tools = offer(tmp_path, ToolChoice("usual"))
    written = ToolCall("1", "call_tool", {"name": "browser", "arguments": {"action": "snapshot"}})
    registered = ToolCall("1", "browser", {"action": "snapshot"})
    assert tools.registered(written) == registered
    assert tools.offered(registered) == written


def test_arguments_that_an_offered_tool_does_not_have_go_by_the_other_presentation(tmp_path: Path) -> None:
    tools = offer(tmp_path, ToolChoice("usual"))
    registered = ToolCall("1", "shell", {"action": "output", "id": "2"})
    written = tools.offered(registered)
    assert written.arguments == {"name": "background", "arguments": {"action": "output", "id": "2"}}
    assert tools.registered(written) == registered


@pytest.mark.parametrize(
    ("served", "window", "expected"),
    [
        (SMALL, 32_768, ("minimal", "json")),
        (ServedModel("big", "llama_cpp", parameters=32.0), 32_768, ("usual", "native")),
        (ServedModel("small", "other", parameters=1.5), None, ("minimal", "native")),
        (ServedModel("unknown", "llama_cpp"), 4_096, ("minimal", "native")),
        (None, 200_000, ("usual", "native")),
        (None, None, ("usual", "native")),
    ],
)
def test_the_set_and_the_form_of_calls_follow_the_model(
    served: ServedModel | None, window: int | None, expected: tuple[str, str]
) -> None:
    choice = choose_tools("auto", served, window, frozenset())
    assert (choice.set_name, choice.call_form) == expected


def test_a_person_may_choose_another_set() -> None:
    assert choose_tools("all", SMALL, 4_096, frozenset()).set_name == "all"


async def test_a_hidden_tool_is_found_and_called_and_the_record_has_its_own_name(tmp_path: Path) -> None:
    call: JsonObject = {"name": "test__echo", "arguments": {"text": "one"}}
    turns = [Reply(calls=(Call("find_tools", {"query": "echo"}),)), Reply(calls=(Call("call_tool", call),)), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        engine.services.settings.set("tool_set", "minimal")
        engine.services.settings.set_mcp_servers((stored(),))
        await engine.watcher.end((await engine.start(approve="all")).id)
        nodes = engine.watcher.nodes()
    definitions, echoed, _ = (block.text for block in results(nodes))
    assert definitions.startswith("test__echo: ") and '"text"' in definitions
    assert echoed == "one"
    called = [block.tool for node in nodes for block in node.blocks if isinstance(block, ToolCallBlock)]
    assert called == ["find_tools", "test__echo", "task_complete"]
    sent = str(engine.model.requests[2].messages)
    assert "'call_tool'" in sent and "'test__echo'" not in sent
    assert len({tuple(request.offered) for request in engine.model.requests}) == 1


@pytest.mark.parametrize("tool_set", ["minimal", "usual"])
async def test_a_turn_says_what_tools_of_servers_take_and_what_was_left_to_be_found(
    tool_set: str, tmp_path: Path
) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[DONE])) as engine:
        engine.services.settings.set("tool_set", tool_set)
        engine.services.settings.set_mcp_servers((stored(),))
        task = await engine.watcher.end((await engine.start(approve="all")).id)
        sent = await engine.services.database.turns.sent(task.id)
    assert sent is not None
    parts = {part.part: part for part in sent.parts}
    tools = parts["tools"]
    assert tools.findable_items > 0 and tools.findable_characters > 50 * tools.findable_items
    if tool_set == "minimal":
        assert "services" not in parts
    else:
        assert parts["services"].items == 2 and parts["services"].characters > 20
    (request,) = engine.model.requests
    assert len(request.offered) == sum(part.items for name, part in parts.items() if name in ("tools", "services"))


async def test_earlier_calls_are_sent_under_the_names_that_the_model_was_offered(tmp_path: Path) -> None:
    turns = [Reply(calls=(Call("write", {"path": "a.txt", "content": "x"}),)), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        (call, _) = (
            block for node in engine.watcher.nodes() for block in node.blocks if isinstance(block, ToolCallBlock)
        )
        assert (engine.workspace / "a.txt").read_text() == "x"
    assert (call.tool, call.arguments) == ("code", {"path": "a.txt", "content": "x", "action": "write"})
    (sent,) = (message for message in engine.model.requests[1].messages if message["role"] == "assistant")
    assert "'name': 'write'" in str(sent) and "action" not in str(sent)
