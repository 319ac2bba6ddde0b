"""Agents that only read: what a researcher is offered, and what is refused whatever the model calls."""

from pathlib import Path

import pytest

from errand.protocol.agents import Personality
from errand.protocol.events import PersonalityUpdate
from errand.protocol.tasks.groups import ApproveMode
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, results
from tests.support.model_server import Call, ModelServer, Reply

NOTES = "three\nlines\nhere\n"
CHANGES = {
    "write": Call("write", {"path": "notes.txt", "content": "gone"}),
    "edit": Call("edit", {"path": "notes.txt", "old_string": "three", "new_string": "no"}),
    "the registered tool": Call("code", {"action": "write", "path": "notes.txt", "content": "gone"}),
    "call_tool": Call(
        "call_tool", {"name": "code", "arguments": {"action": "write", "path": "notes.txt", "content": "gone"}}
    ),
    "write by call_tool": Call("call_tool", {"name": "write", "arguments": {"path": "notes.txt", "content": "gone"}}),
    "a command": Call("bash", {"command": "echo gone > notes.txt"}),
    "a command that runs a script": Call("shell", {"command": "sh -c 'rm notes.txt'"}),
    "a command in the background": Call("bash", {"command": "rm notes.txt", "background": True}),
    "typing": Call("shell", {"action": "input", "id": "1", "text": "rm notes.txt", "keys": ["enter"]}),
    "a click": Call("call_tool", {"name": "browser", "arguments": {"action": "click", "selector": "Send"}}),
    "a form": Call("browser", {"action": "fill", "selector": "Name", "text": "x"}),
    "a script": Call("browser", {"action": "evaluate", "script": "document.forms[0].submit()"}),
    "python": Call("python", {"code": "open('notes.txt', 'w').close()"}),
}


def tools_of(engine: EngineParts) -> dict[str, str]:
    """The names of the tools in the model's last request, each with its whole definition."""
    tools = engine.model.requests[-1].body["tools"]
    assert isinstance(tools, list)
    return {str(tool["function"]["name"]): str(tool) for tool in tools if isinstance(tool, dict)}  # type: ignore[index, call-overload]


@pytest.mark.parametrize("call", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("mode", ["ask", "all"])
async def test_a_researcher_changes_nothing_whatever_it_calls(call: Call, mode: ApproveMode, tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(calls=(call,)), DONE])
    async with engine_parts(tmp_path, server) as engine:
        (engine.workspace / "notes.txt").write_text(NOTES)
        task = await engine.start("look", personality_id="researcher", approve=mode)
        await engine.watcher.end(task.id)
        (result,) = results(engine.watcher.nodes())[:1]
        assert result.is_error
        assert "only reads" in result.text or "The tools are:" in result.text
        assert (engine.workspace / "notes.txt").read_text() == NOTES


async def test_a_researcher_is_offered_what_reads(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[DONE])) as engine:
        await engine.watcher.end((await engine.start("look", personality_id="researcher")).id)
        tools = tools_of(engine)
    assert {"read", "grep", "glob", "bash", "web_fetch", "search_memory", "task"} <= tools.keys()
    assert {"write", "edit", "python"}.isdisjoint(tools)
    assert "Only commands that read are run" in tools["bash"]
    assert "python" not in tools["find_tools"]


async def test_a_researcher_reads_files_and_runs_commands_that_look(tmp_path: Path) -> None:
    calls = Reply(calls=(Call("read", {"path": "notes.txt"}), Call("bash", {"command": "wc -l notes.txt"})))
    async with engine_parts(tmp_path, ModelServer(replies=[calls, DONE])) as engine:
        (engine.workspace / "notes.txt").write_text(NOTES)
        await engine.watcher.end((await engine.start("look", personality_id="researcher")).id)
        read, counted = results(engine.watcher.nodes())[:2]
    assert (read.is_error, counted.is_error) == (False, False)
    assert "three" in read.text and "3 notes.txt" in counted.text


async def test_a_sub_agent_of_a_researcher_only_reads_too(tmp_path: Path) -> None:
    order = Call("task", {"description": "Write it", "prompt": "Write.", "personality": "coder"})
    write = Call("write", {"path": "notes.txt", "content": "gone"})
    replies = [Reply(calls=(order,)), Reply(calls=(write,)), DONE, DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        (engine.workspace / "notes.txt").write_text(NOTES)
        await engine.watcher.end((await engine.start("look", personality_id="researcher")).id)
        assert any(result.is_error and "only reads" in result.text for result in results(engine.watcher.nodes()))
        assert (engine.workspace / "notes.txt").read_text() == NOTES


async def test_a_personality_may_write_files_and_only_look_with_commands(tmp_path: Path) -> None:
    editor = Personality(id="editor", name="Editor", system_prompt="Edit.", tools=("code", "shell:read"))
    calls = Reply(calls=(Call("write", {"path": "a.txt", "content": "new"}), Call("bash", {"command": "rm notes.txt"})))
    async with engine_parts(tmp_path, ModelServer(replies=[calls, DONE])) as engine:
        engine.services.log.publish(PersonalityUpdate(personality=editor))
        await engine.services.log.flush()
        (engine.workspace / "notes.txt").write_text(NOTES)
        await engine.watcher.end((await engine.start("edit", personality_id="editor")).id)
        wrote, removed = results(engine.watcher.nodes())[:2]
        assert (wrote.is_error, removed.is_error) == (False, True)
        assert (engine.workspace / "a.txt").read_text() == "new"
        assert (engine.workspace / "notes.txt").exists()
