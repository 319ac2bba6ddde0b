"""The agent core as a library: the example of its page, the events of a run, and a run that is left early."""

import asyncio
import dataclasses
import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.library import AgentRun, FunctionTool, open_model
from errand.engine.agent.loop.agent import Agent, AgentOptions
from errand.engine.agent.loop.events import AgentEnd, AgentStart, ToolExecutionEnd, ToolExecutionStart
from errand.engine.core.errors import EngineError
from errand.engine.core.messages import Text
from errand.engine.tools.results import ToolError
from tests.support.command_line import CHECKOUT
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import OpenStream, WrittenStream, calling, reply
from tests.support.model_server import Call, ModelServer, Reply


class Wanted(msgspec.Struct):
    value: str


async def _shout(arguments: Wanted) -> str:
    if not arguments.value:
        raise ToolError("There is nothing to shout.")
    return arguments.value.upper()


_SHOUT = FunctionTool("shout", "Says it louder.", Wanted, _shout)


def _agent(*replies: tuple[object, ...]) -> Agent:
    return Agent(AgentOptions(stream=WrittenStream(*replies), model="test/model", tools=(_SHOUT,)))  # pyright: ignore[reportArgumentType]


async def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (CHECKOUT / "docs" / "core.md").read_text(encoding="utf-8"), re.S)
    assert len([line for line in block.splitlines() if line.strip()]) <= 40
    (tmp_path / "example.py").write_text(block, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "found.txt").touch()
    call = Reply(calls=(Call("list_folder", {"path": str(tmp_path / "folder")}),))
    async with ModelServer([call, Reply(text="One file.")]) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "example.py", "openai_compatible/test-model", server.url, "What is there?"),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "app")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        request_body = server.requests[1].body
    assert process.returncode == 0, out.decode()
    first, last = out.decode().splitlines()[0], out.decode().splitlines()[-2:]
    assert first.startswith("[list_folder {'path': ") and last == ["One file.", "stop, $0.0000 "]
    assert "found.txt" in str(request_body)


def test_the_page_names_every_option_and_every_method_of_an_agent() -> None:
    page = (CHECKOUT / "docs" / "core.md").read_text(encoding="utf-8")
    options = {field.name for field in dataclasses.fields(AgentOptions)}
    methods = {name for name in vars(Agent) if not name.startswith("_")}
    assert [name for name in sorted(options | methods) if not re.search(rf"`(?:\w+\.)?{name}`", page)] == []


async def test_an_agent_goes_on_with_another_model_tools_and_transcript() -> None:
    stream = WrittenStream(reply("One."), reply("Two."), reply("Three."))
    agent = Agent(AgentOptions(stream=stream, model="test/model", system_prompt="Be brief."))
    async with AgentRun(agent, "one") as run:
        await run.result()
    agent.set_model("test/other")
    agent.set_system_prompt("Be long.")
    agent.set_tools((_SHOUT,))
    async with AgentRun(agent, "two") as run:
        await run.result()
    first_messages = agent.state.messages[:2]
    agent.reset()
    agent.set_messages(first_messages)
    async with AgentRun(agent, "three") as run:
        await run.result()
    asked = [
        (request.model, request.system_prompt, len(request.tools), len(request.messages)) for request in stream.requests
    ]
    assert asked == [
        ("test/model", "Be brief.", 0, 1),
        ("test/other", "Be long.", 1, 3),
        ("test/other", "Be long.", 1, 3),
    ]


async def test_the_events_of_a_run_come_in_order_and_then_its_result() -> None:
    agent = _agent(calling("shout", {"value": "hello"}), reply("Done."))
    async with AgentRun(agent, "go") as run:
        events = [event async for event in run]
        assert [event async for event in run] == []
        last = await run.result()
    assert isinstance(events[0], AgentStart) and isinstance(events[-1], AgentEnd)
    (ended,) = [event for event in events if isinstance(event, ToolExecutionEnd)]
    assert ended.result.content == (Text("HELLO"),)
    assert last.text == "Done."


async def test_a_result_can_be_had_without_taking_the_events() -> None:
    async with AgentRun(_agent(reply("Done.")), "go") as run:
        assert (await run.result()).text == "Done."


async def test_a_block_that_is_left_early_stops_the_run() -> None:
    stream = OpenStream()
    agent = Agent(AgentOptions(stream=stream, model="test/model"))
    async with asyncio.timeout(WAIT_LIMIT_S), AgentRun(agent, "go") as run:
        async for _ in run:
            if stream.started.is_set():
                break
    assert stream.closed.is_set() and not agent.state.is_streaming
    assert [event async for event in run] == []


async def test_a_failure_of_a_function_is_told_to_the_model_and_the_run_goes_on() -> None:
    agent = _agent(calling("shout", {"value": ""}), reply("I see."))
    async with AgentRun(agent, "go") as run:
        results = [
            event.result for event in [run_event async for run_event in run] if isinstance(event, ToolExecutionEnd)
        ]
    assert results[0].is_error and results[0].content == (Text("There is nothing to shout."),)


async def test_a_function_is_cancelled_when_the_agent_is_stopped() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(arguments: Wanted) -> str:
        begun.set()
        try:
            return str(await asyncio.Event().wait())
        finally:
            ended.set()

    tool = FunctionTool("wait", "Waits.", Wanted, wait)
    stream = WrittenStream(calling("wait", {"value": "x"}), reply("never"))
    agent = Agent(AgentOptions(stream=stream, model="test/model", tools=(tool,)))
    async with asyncio.timeout(WAIT_LIMIT_S), AgentRun(agent, "go") as run:
        async for event in run:
            if isinstance(event, ToolExecutionStart):
                break
        await begun.wait()
    assert ended.is_set()


async def test_a_failed_model_is_a_result_with_its_error() -> None:
    async with open_model("openai_compatible/none", api_base="http://127.0.0.1:9/v1") as model:
        agent = Agent(AgentOptions(stream=model.stream, model="openai_compatible/none"))
        async with AgentRun(agent, "go") as run:
            failed = await run.result()
    assert failed.stop_reason == "error" and "127.0.0.1:9" in (failed.error or "")


async def test_a_run_that_was_not_begun_says_so() -> None:
    with pytest.raises(EngineError, match="async with"):
        await AgentRun(_agent(reply("x")), "go").result()
