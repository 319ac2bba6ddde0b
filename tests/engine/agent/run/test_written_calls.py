"""Calls that a model wrote as text: run if the reply is nothing but calls of tools that it has."""

from pathlib import Path

import pytest

from errand.engine.agent.run.replies.written_calls import WrittenCall, written_calls
from errand.protocol.blocks import TextBlock, ToolCallBlock
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import ModelServer, Reply

CALL = '{"name": "write", "arguments": {"path": "out.txt", "content": "hello"}}'
WRITE = WrittenCall("write", {"path": "out.txt", "content": "hello"})
FORMS = {
    "bare": CALL,
    "double braces": "{" + CALL + "}",
    "list": f"[{CALL}]",
    "fence": f"```json\n{CALL}\n```",
    "parameters": CALL.replace("arguments", "parameters"),
    "arguments as text": '{"name": "write", "arguments": "{\\"path\\": \\"out.txt\\", \\"content\\": \\"hello\\"}"}',
    "under function": '{"type": "function", "function": ' + CALL + "}",
    "tag": f"<tool_call>\n{CALL}\n</tool_call>",
    "tag without end": f"<tool_call>\n{CALL}",
    "tools": f"<tools>\n{CALL}\n</tools>",
    "function": "<function=write>\n<parameter=path>\nout.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n"
    "</function>",
    "element": '<tools>\n  <function name="write" arguments=\'{"path": "out.txt", "content": "hello"}\'/>\n</tools>',
    "invoke": '<invoke name="write"><parameter name="path">out.txt</parameter>'
    '<parameter name="content">hello</parameter></invoke>',
    "glm": "<tool_call>write\n<arg_key>path</arg_key>\n<arg_value>out.txt</arg_value>\n<arg_key>content</arg_key>\n"
    "<arg_value>hello</arg_value>\n</tool_call>",
    "mistral": f"[TOOL_CALLS][{CALL}]",
    "llama": f"<|python_tag|>{CALL}",
    "pythonic": '[write(path="out.txt", content="hello")]',
    "tool code": '```tool_code\nprint(default_api.write(path="out.txt", content="hello"))\n```',
    "functions": 'functions.write({"path": "out.txt", "content": "hello"})',
    "action": 'Thought: I write it.\nAction: write\nAction Input: {"path": "out.txt", "content": "hello"}',
    "fence with tags": f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
}
OTHERS = {
    "words": "It is done.",
    "an example in an answer": f"A call looks like this:\n\n{CALL}\n\nThe arguments are an object.",
    "an example in a fence": f"A call looks like this:\n\n```json\n{CALL}\n```",
    "words after it": f"<tool_call>\n{CALL}\n</tool_call>\n\nThat is a call.",
    "a program": '```python\nwrite(path="out.txt", content="hello")\n```',
    "a result that was made up": f"{CALL}\n<tool_response>Created out.txt</tool_response>",
    "a definition": '{"name": "write", "parameters": {"type": "object", "properties": {}}}',
    "no arguments": '{"name": "write", "age": 7}',
    "nothing": "",
    "half": '{"name": "write", "arguments": {"path": "o',
    "braces without end": "{" * 50_000,
    "python without end": "write(" + "(" * 5_000 + ")" * 5_000 + ")",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_each_form_is_read_as_the_same_call(text: str) -> None:
    assert written_calls(text) == (WRITE,)


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_what_is_more_or_less_than_a_call_is_none(text: str) -> None:
    assert written_calls(text) == ()


def test_several_calls_are_read_in_order() -> None:
    assert [call.name for call in written_calls(f"{CALL}\n{CALL.replace('write', 'read')}")] == ["write", "read"]


def test_an_argument_without_a_name_is_kept_apart() -> None:
    assert written_calls('ask_user("Which?")') == (WrittenCall("ask_user", {}, ("Which?",)),)


async def test_it_runs_and_the_conversation_shows_a_call_and_no_text(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text=FORMS["fence"]), DONE])) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        assert (engine.workspace / "out.txt").read_text() == "hello"
        blocks = [block for node in engine.watcher.nodes() if node.role == "assistant" for block in node.blocks]
    assert [type(block) for block in blocks] == [ToolCallBlock, ToolCallBlock]


@pytest.mark.parametrize("text", [OTHERS["an example in a fence"], '{"name": "no_such_tool", "arguments": {"a": 1}}'])
async def test_other_texts_run_nothing(text: str, tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text=text), Reply(text="Sorry.")])) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        assert not (engine.workspace / "out.txt").exists()
        blocks = [block for node in engine.watcher.nodes() if node.role == "assistant" for block in node.blocks]
    assert all(isinstance(block, TextBlock) for block in blocks)
