"""Calls in the tokens of chat templates that a server passed on as text."""

from pathlib import Path

import pytest

from errand.engine.agent.run.replies.template_calls import template_calls
from errand.engine.agent.run.replies.written_calls import WrittenCall
from errand.engine.record.diff import compare
from errand.engine.record.format import read
from errand.engine.record.replay import replay
from errand.protocol.blocks import Block, TextBlock, ToolCallBlock
from errand.protocol.tasks.methods import TaskStartParams
from tests.support.engine_parts import engine_parts
from tests.support.local_servers import llama_cpp
from tests.support.model_replies import DONE
from tests.support.model_server import ModelServer, Reply
from tests.support.recorded_tasks import record_of

ARGUMENTS = '{"path": "out.txt", "content": "a < b"}'
WRITE = WrittenCall("write", {"path": "out.txt", "content": "a < b"})
FORMS = {
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>"
    f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    "DeepSeek V3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write\n```json\n"
    f"{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "DeepSeek V3.1": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "gpt-oss": f"<|channel|>commentary to=functions.write <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    "gpt-oss, recipient first": "<|start|>assistant to=functions.write<|channel|>commentary json<|message|>"
    f"{ARGUMENTS}<|call|>",
    "gpt-oss without end": f"<|channel|>commentary to=functions.write<|message|>{ARGUMENTS}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("words", ["", "I will write it."])
def test_each_form_is_read_also_after_words(words: str, form: str) -> None:
    assert template_calls(f"{words}{form}") == (words, (WRITE,))


def test_thoughts_of_gpt_oss_stay_as_words() -> None:
    thoughts = "<|channel|>analysis<|message|>Need the file.<|end|><|start|>assistant"
    assert template_calls(thoughts + FORMS["gpt-oss"]) == ("Need the file.", (WRITE,))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_in_a_fence_or_with_words_after_it_is_no_call(form: str) -> None:
    for text in (f"Such models write:\n```\n{form}\n```", f"{form}<|end|> That is what it writes.", form[:-40]):
        assert template_calls(text)[1] == ()


QUOTATIONS = {
    "span": "It writes `{}`",
    "span without end": "It writes `{}",
    "span of two": "It writes ``{}``",
    "fence of tildes": "It writes:\n~~~\n{}\n~~~",
    "fence without end": "It writes:\n```text\n{}",
    "long fence": "It writes:\n````\n```\n{}\n```\n````",
    "fence in a list": "1. It writes:\n   - ```\n     {}\n     ```",
    "quoted fence": "It writes:\n> ```\n> {}\n> ```",
    "quoted line": "It writes:\n> {}",
    "indented": "It writes:\n\n    {}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("quotation", QUOTATIONS.values(), ids=QUOTATIONS)
def test_a_quoted_form_is_no_call(quotation: str, form: str) -> None:
    assert template_calls(quotation.format(form))[1] == ()


@pytest.mark.parametrize(
    "words",
    [
        "I use `write` now.",
        "It said:\n```\n`\n```\nSo I write it.",
        "A lone ` was wrong.\n\nI write it.",
        "A lone ` was wrong.\r\n\r\nI write it.",
        "> an old line\n\nI write it.",
        "An escaped \\` stands there.",
        "~~~\nx\n~~~",
        "I use ```write``` now.",
    ],
)
def test_quotations_before_a_call_do_not_hide_it(words: str) -> None:
    assert template_calls(f"{words}\n{FORMS['gpt-oss']}") == (words, (WRITE,))


def test_several_calls_are_read_in_order() -> None:
    two = FORMS["Kimi"].replace("<|tool_calls_section_end|>", "") + FORMS["Kimi"].replace("write:0", "read:1")
    assert [call.name for call in template_calls(two)[1]] == ["write", "read"]


@pytest.mark.parametrize(
    "token", ["<|tool_call_begin|>a<|tool_call_argument_begin|>", "to=a<|message|>", "<｜tool▁sep｜>"]
)
def test_calls_without_end_take_no_time(token: str) -> None:
    assert template_calls(token * (90_000 // len(token)))[1] == ()


@pytest.mark.parametrize("marks", ["`", "` ``", "```\n", "> - ", "\n ", "- " * 1_000 + "\n"])
def test_many_marks_before_a_call_take_no_time(marks: str) -> None:
    template_calls(marks * (90_000 // len(marks)) + FORMS["gpt-oss"])


async def test_it_runs_and_its_words_stay(tmp_path: Path) -> None:
    reply = Reply(text="I will write it." + FORMS["Kimi"])
    async with engine_parts(tmp_path, ModelServer(replies=[reply, DONE])) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        assert (engine.workspace / "out.txt").read_text() == "a < b"
        blocks = [block for node in engine.watcher.nodes() if node.role == "assistant" for block in node.blocks]
    assert isinstance(blocks[0], TextBlock) and blocks[0].text == "I will write it."
    assert isinstance(blocks[1], ToolCallBlock)


def large_model(*replies: Reply) -> ModelServer:
    pages = llama_cpp("m.gguf", window=32_768, parameters=32_000_000_000)
    return ModelServer(replies=[*replies, DONE], pages=pages)


async def blocks_of(tmp_path: Path, server: ModelServer, replies: int = 1) -> list[Block]:
    """Return the blocks of the first of so many replies of a task, whose record is replayed without a difference."""
    async with engine_parts(tmp_path, server) as engine:
        engine.services.keys.add_environment({"LLAMA_CPP_API_BASE": server.url})
        params = TaskStartParams(prompt="What is in it?", workspace=str(engine.workspace), approve="all")
        task = await engine.watcher.end((await engine.services.runner.start(params)).id)
        record = read((await record_of(engine, task.id)).lines())
        reply, *others = [node for node in engine.watcher.nodes() if node.role == "assistant"]
    assert len(others) == replies - 1
    assert compare(record, await replay(record, tmp_path / "replay")) == []
    return list(reply.blocks)


MISTRAL = f'[TOOL_CALLS][{{"name": "write", "arguments": {ARGUMENTS}}}]'


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (FORMS["Kimi"], "It has: "),
        (FORMS["Kimi"], ""),
        (FORMS["DeepSeek V3.1"], ""),
        (FORMS["gpt-oss"], "It has: "),
        (MISTRAL, ""),
        (f"<|tool_call|>{ARGUMENTS}", ""),
        (f"<|tool_call|>{ARGUMENTS}", "It has:\n"),
    ],
)
async def test_tokens_that_a_model_copies_as_text_are_no_call(form: str, words: str, tmp_path: Path) -> None:
    copied = form.replace("<|", "<¦|").replace("<｜", "<¦｜").replace("[TOOL", "[¦TOOL")
    blocks = await blocks_of(tmp_path, large_model(Reply(text=f"{words}{copied}")))
    assert blocks == [TextBlock(text=f"{words}{form}")]


async def test_a_call_in_tokens_that_the_model_wrote_itself_is_asked_about(tmp_path: Path) -> None:
    text = f"It has:\n<|tool_call|>{ARGUMENTS}"
    assert await blocks_of(tmp_path, large_model(Reply(text=text)), replies=2) == [TextBlock(text=text)]


@pytest.mark.parametrize("form", [FORMS["Kimi"], FORMS["DeepSeek V3.1"], MISTRAL])
async def test_a_call_in_tokens_may_have_tokens_in_its_arguments(form: str, tmp_path: Path) -> None:
    blocks = await blocks_of(tmp_path, large_model(Reply(text=form.replace("a < b", "<¦|im_end|>"))), replies=2)
    (call,) = blocks
    assert isinstance(call, ToolCallBlock) and call.arguments["content"] == "<|im_end|>"
