"""Replies that are no answer: the model is told once, then the task ends as not done, with the reason."""

from pathlib import Path

import pytest

from errand.engine.agent.run.replies.missing_answer import missing_answer
from errand.engine.core.messages import AssistantMessage, Text, Thinking, ToolCall
from errand.engine.models.base import ToolDefinition
from errand.protocol.blocks import NoticeBlock
from errand.protocol.notices import MissingAnswer, NoAnswer
from errand.protocol.tasks.groups import TaskMode
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, SHELL, shell
from tests.support.model_server import ModelServer, Reply

CODE = ToolDefinition("code", "Files.", {"type": "object", "properties": {"action": {"enum": ["read", "write"]}}})
TOOLS = (SHELL, CODE)
CALL = '{"name": "shell", "arguments": {"command": "ls"}}'
CALLS = {
    "bare": CALL,
    "of an action": '{"name": "read", "arguments": {"file": "note.txt"}}',
    "parameters": '{"name": "code", "parameters": {"action": "read"}}',
    "double braces": "{" + CALL + "}",
    "list": f"[{CALL}, {CALL}]",
    "fence": f"```json\n{CALL}\n```",
    "under function": '{"type": "function", "function": {"name": "shell", "arguments": "{}"}}',
    "tag": f"<tool_call>\n{CALL}\n</tool_call>",
    "tag after words": f"I look at it now.\n\n<tool_call>\n{CALL}\n</tool_call>",
    "tools": f"<tools>\n{CALL}\n</tools>",
    "function": "<function=code>\n<parameter=action>\nread\n</parameter>\n</function>",
    "invoke": '<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>',
    "mistral": f"[TOOL_CALLS][{CALL}]",
    "llama": f"<|python_tag|>{CALL}",
    "of another tool": '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
    "kimi": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0\n{CALL}<|tool_calls_section_end|>",
    "deepseek": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n{CALL}<｜tool▁calls▁end｜>",
    "gpt-oss": '<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command":"ls"}',
    "gpt-oss without marks": 'commentary to=functions.shell json\n{"command": "ls"}',
    "glm": "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "pythonic": '[shell(command="ls")]',
    "function call": 'functions.shell({"command": "ls"})',
    "tool code": '```tool_code\nprint(default_api.shell(command="ls"))\n```',
    "react": 'Thought: I look.\nAction: shell\nAction Input: {"command": "ls"}',
    "fence with tags": f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
}
ANSWERS = {
    "words": "Paris.",
    "about calls": f"Models write `<tool_call>` in front of a call, such as {CALL}, as the page explains.",
    "an example in a fence": f"A call looks like this:\n\n```\n<tool_call>\n{CALL}\n</tool_call>\n```",
    "an example in JSON": f"A call looks like this:\n\n```json\n{CALL}\n```",
    "an example with words after it": f"<tool_call>\n{CALL}\n</tool_call>\n\nThat is what a call looks like.",
    "data": '{"name": "Ann", "age": 7}',
    "data with an input": '{"name": "Ann", "input": {"x": 1}}',
    "the schema of a tool": '{"name": "shell", "parameters": {"type": "object", "properties": {}}}',
    "data in a fence": '```json\n{"name": "function_of_mine", "parameters": {"x": 1}}\n```',
    "a list": '[{"name": "a"}, {"name": "b"}]',
    "code": "```python\nprint('<tool_call>')\n```",
    "code of a call": "```python\nrun(shell, command='ls')\n```",
    "a sum": "f(x) = (a + b)",
    "an action": "Action: none (yet)",
    "html": "<table><tr><td>shell</td></tr></table>",
}


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_a_call_written_as_text_is_no_answer(text: str) -> None:
    assert missing_answer(AssistantMessage((Text(text),)), TOOLS) == "call_as_text"
    assert missing_answer(AssistantMessage((Text(text),)), ()) is None


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_stays_an_answer(text: str) -> None:
    assert missing_answer(AssistantMessage((Text(text),)), TOOLS) is None


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (AssistantMessage((Thinking("hm"),)), "empty"),
        (AssistantMessage((Thinking("hm"), Text(" \n"))), "empty"),
        (AssistantMessage((Text("I run it:"),), "tool_use"), "unfinished"),
        (AssistantMessage((ToolCall("a", "shell", {}),), "tool_use"), None),
        (AssistantMessage((Thinking("hm"),), "length"), None),
        (AssistantMessage((), "error", "down"), None),
    ],
)
def test_other_replies_without_an_answer(reply: AssistantMessage, why: MissingAnswer | None) -> None:
    assert missing_answer(reply, TOOLS) == why


def stream(text: str = "", thinking: str = "", finish: str = "stop") -> Reply:
    return Reply(text=text, thinking=thinking, finish=finish)


THOUGHTS, ANNOUNCED, AS_TEXT = stream(thinking="hm"), stream("I run it:", finish="tool_calls"), stream(CALLS["kimi"])
PAUSED = stream("Searching.", finish="pause_turn")


async def ended(engine: EngineParts, mode: TaskMode = "auto") -> Task:
    return await engine.watcher.end((await engine.start("do it", mode=mode)).id)


def notices(engine: EngineParts) -> list[object]:
    blocks = (block for node in engine.watcher.nodes() for block in node.blocks)
    return [block.data for block in blocks if isinstance(block, NoticeBlock)]


@pytest.mark.parametrize(
    ("reply", "why"),
    [(THOUGHTS, "empty"), (ANNOUNCED, "unfinished"), (PAUSED, "unfinished"), (AS_TEXT, "call_as_text")],
    ids=["thoughts", "announced call", "paused", "call as text"],
)
@pytest.mark.parametrize("mode", ["auto", "chat", "task"])
async def test_after_two_such_replies_the_task_ends_as_not_done(
    tmp_path: Path, reply: Reply, why: MissingAnswer, mode: TaskMode
) -> None:
    server = ModelServer(replies=[reply, reply, DONE])
    async with engine_parts(tmp_path, server) as engine:
        task = await ended(engine, mode=mode)
        assert (task.outcome.stop_reason, task.outcome.completion, task.options.decided) == (
            "completed",
            "no_answer",
            None,
        )
        assert NoAnswer(why=why) in notices(engine)
    assert len(server.requests) == 2
    assert "Your last reply was no answer" in str(server.requests[1].messages[-1]["content"])


@pytest.mark.parametrize(
    "reply", [THOUGHTS, ANNOUNCED, PAUSED, AS_TEXT], ids=["thoughts", "announced", "paused", "text"]
)
async def test_a_model_that_then_goes_on_is_successful(tmp_path: Path, reply: Reply) -> None:
    replies = [reply, shell("true"), reply, Reply(text="It is done.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await ended(engine)
        assert (task.outcome.completion, task.options.decided, task.outcome.summary) == (
            "replied",
            "task",
            "It is done.",
        )
        assert notices(engine) == []
