"""What a server keeps of an earlier request: between two conversations of a folder, and within one."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import Path

import msgspec
import pytest

from errand.protocol.blocks import EnvironmentBlock
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer, Page, ReceivedRequest, Reply

NAME = "qwen2.5-coder-1.5b"
# Each form in which tools are offered: the model, what its server says of it, and what the body of a request has.
FORMS: dict[str, tuple[str, Mapping[str, Page], str]] = {
    "chat completions": ("openai_compatible/test-model", {}, "'type': 'function', 'function': {"),
    "messages": ("anthropic/claude-sonnet-4-5", {}, "'input_schema'"),
    "responses": ("openai/gpt-5", {}, "'instructions'"),
    "text protocol": ("react/openai_compatible/test-model", {}, "<tool_definitions>"),
    "JSON calls": (f"openai_compatible/{NAME}", llama_cpp(NAME, window=32_768), "'response_format'"),
}


def contents(requests: Sequence[ReceivedRequest]) -> list[list[str]]:
    """The messages of each request as JSON, the system prompt and the tools first, where servers place them."""
    fixed = ("instructions", "system", "tools")
    return [
        [
            *(msgspec.json.encode(request.body[name]).decode() for name in fixed if name in request.body),
            *(msgspec.json.encode(message).decode() for message in request.sent_messages),
        ]
        for request in requests
    ]


def assert_prefixes_hold(requests: Sequence[ReceivedRequest]) -> None:
    """Each request begins with the whole one before it."""
    for earlier, later in pairwise(contents(requests)):
        assert later[: len(earlier)] == earlier


def shared_characters(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def environments(requests: Sequence[ReceivedRequest]) -> list[str]:
    return [text for text in contents(requests)[-1] if "<environment>" in text]


async def end(engine: EngineParts, prompt: str, conversation_id: str | None = None) -> Task:
    return await engine.watcher.end((await engine.start(prompt, conversation_id=conversation_id)).id)


async def told(engine: EngineParts, conversation_id: str) -> list[str]:
    """Return what the agent of a conversation was told of its workspace, in order."""
    nodes = await branch(engine, conversation_id)
    return [block.text for node in nodes for block in node.blocks if isinstance(block, EnvironmentBlock)]


@pytest.mark.parametrize("form", FORMS)
async def test_two_conversations_of_a_folder_share_instructions_and_tools(tmp_path: Path, form: str) -> None:
    model, pages, sign = FORMS[form]
    server = ModelServer(answer=lambda request: Reply(text="Hello."), pages=pages)
    async with engine_parts(tmp_path, server) as engine:
        (engine.workspace / "notes.txt").write_text("x")
        for prompt in ("hi", "please look into the folder"):
            params = TaskStartParams(
                prompt=prompt,
                model=model,
                api_base=server.url,
                api_key="sk-test-key-of-the-tests",
                workspace=str(engine.workspace),
                approve="all",
                attended=False,
                max_turns=1,
            )
            await engine.watcher.end((await engine.services.runner.start(params)).id)
            (engine.workspace / "a-new-file.txt").write_text("x")
            (engine.workspace / ".git").mkdir(exist_ok=True)
            (engine.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert all(sign in str(request.body) for request in server.requests)
    first, second = ("\n".join(messages) for messages in contents((server.requests[0], server.requests[-1])))
    # A small model reads no more of the environment than the day, with the instructions.
    instructions_and_tools = first.index('"content":"hi"' if form == "JSON calls" else "<environment>")
    assert len(first) > instructions_and_tools > 1_000
    assert shared_characters(first, second) >= instructions_and_tools
    assert str(tmp_path) not in first[:instructions_and_tools]


async def test_each_request_of_a_conversation_begins_with_the_one_before_although_the_folder_changes(
    tmp_path: Path,
) -> None:
    server = ModelServer(replies=[shell("touch made.txt"), DONE, Reply(text="Fine."), Reply(text="Still fine.")])
    async with engine_parts(tmp_path, server) as engine:
        first = await end(engine, "make a file")
        await end(engine, "and now?", first.conversation_id)
        await end(engine, "thank you", first.conversation_id)
        full_text, changed = await told(engine, first.conversation_id)
    assert "- It is empty." in full_text
    assert changed == "<environment>\nWhat has changed:\n- New at the top of the workspace: `made.txt`.\n</environment>"
    assert_prefixes_hold(server.requests)
    assert server.requests[-1].sent_messages[-1]["content"] == "thank you"


async def test_a_message_that_steers_has_no_environment(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(text="Begun.", calls=shell("true").calls, gate=gate), DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start("go")
        await server.request(0)
        (engine.workspace / "new.txt").write_text("x")
        await engine.say(started.id, "faster", "steer")
        gate.set()
        await engine.watcher.end(started.id)
        assert len(await told(engine, started.conversation_id)) == 1
    assert_prefixes_hold(server.requests)


async def test_a_conversation_that_goes_on_after_a_restart_keeps_its_beginning(tmp_path: Path) -> None:
    after = tmp_path / "after"
    server = ModelServer(replies=[Reply(text="Hello.")])
    async with engine_parts(tmp_path, server) as engine:
        first = await end(engine, "hi")
        port = crash(engine, after)
    again = ModelServer(replies=[Reply(text="Yes.")], port=port)
    async with engine_parts(after, again) as engine:
        (tmp_path / "workspace" / "new.txt").write_text("x")
        await end(engine, "are you there?", first.conversation_id)
    assert_prefixes_hold([*server.requests, *again.requests])
    assert "New at the top of the workspace: `new.txt`" in environments(again.requests)[-1]


async def test_a_retried_reply_and_an_edited_message_are_told_of_the_workspace_once(tmp_path: Path) -> None:
    server = ModelServer(answer=lambda request: Reply(text="Hello."))
    async with engine_parts(tmp_path, server) as engine:
        first = await end(engine, "hi")
        os.mkdir(engine.workspace / "new")
        nodes = await branch(engine, first.conversation_id)
        start = TaskStartParams(
            prompt="hello",
            conversation_id=first.conversation_id,
            sibling_of=nodes[0].id,
            model="openai_compatible/test-model",
            api_base=server.url,
            api_key="sk-test-key-of-the-tests",
            approve="all",
            attended=False,
        )
        await engine.watcher.end((await engine.services.runner.start(start)).id)
        (full_text,) = await told(engine, first.conversation_id)
    assert f"- At its top: `new{os.sep}`." in full_text
