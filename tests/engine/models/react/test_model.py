"""Tools as text: the request, one call per turn, a final answer, and when this form is used."""

from pathlib import Path

import pytest

from errand.engine.core.errors import ConfigurationError
from errand.engine.core.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResultMessage
from errand.engine.core.secrets import KeyStore
from errand.engine.models.base import ModelNotice, ModelRequest, ReplyEnd, ReplyStart, ToolDefinition
from errand.engine.models.catalog.providers import Provider, find
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.failures import FailureKind, failure_from_response
from errand.engine.models.litellm.model import LiteLLMModel
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.router import ModelRouter
from errand.text.notice_text import data_text
from tests.engine.models.providers import react, stored_key
from tests.support.model_replies import SHELL, collect, final, request_for
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.warm_library import warm_process

LIST = '<tool_code>\n<name>shell</name>\n<parameters>\n{"command": "ls"}\n</parameters>\n</tool_code>'
DONE = ToolDefinition("task_complete", "End the task.", {"type": "object", "required": ["summary"]})
NAME = "openai_compatible/plain"
REFUSED = Reply(status=400, error="registry.ollama.ai/library/gemma:2b does not support tools")


def router(folder: Path) -> ModelRouter:
    return ModelRouter(KeyStore(folder / "keys", NO_LOCAL_SERVERS, lambda: None), folder, RetryPolicy(attempts=1))


def calls_of(message: AssistantMessage) -> list[tuple[str, object]]:
    return [(call.name, call.invalid or call.arguments) for call in message.tool_calls]


async def test_tools_are_described_in_the_prompt_and_none_are_sent(tmp_path: Path) -> None:
    async with react([Reply(text=f"I look.\n{LIST}"), Reply(text="There is a.")], tmp_path) as provider:
        assert provider.server is not None
        request = request_for(provider.model_id)
        first = await final(provider.model, request)
        result = ToolResultMessage(first.tool_calls[0].id, "shell", (Text("a"),))
        await final(provider.model, ModelRequest(provider.model_id, "", (*request.messages, first, result), (SHELL,)))
    body = provider.server.requests[0].body
    assert "tools" not in body
    assert body["model"] == "test-model"
    prompt = str(provider.server.requests[0].messages[0]["content"])
    assert prompt.startswith("You are helpful.\n\n")
    assert "<name>shell</name>\n<description>Run a command.</description>" in prompt
    assert [entry["role"] for entry in provider.server.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert provider.server.requests[1].messages[-1]["content"] == "<observation>\na\n</observation>"


@pytest.mark.parametrize("played_on", [LIST, "<observation>\na\n</observation>\n<final_answer>a</final_answer>"])
async def test_only_the_first_call_counts_and_invented_results_become_thinking(played_on: str, tmp_path: Path) -> None:
    async with react([Reply(text=f"{LIST}\nI wait. <b\n{played_on}", piece_length=3)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    call, text_block, thought = message.content
    assert isinstance(call, ToolCall)
    assert (text_block, thought) == (Text("I wait. <b\n"), Thinking(played_on))
    assert message.stop_reason == "tool_use"


async def test_call_without_valid_json_can_be_repaired(tmp_path: Path) -> None:
    text = "<tool_code><name>shell</name><parameters>{command: ls}</parameters></tool_code>"
    async with react([Reply(text=text)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert calls_of(message) == [("shell", "{command: ls}")]


async def test_cut_reply_keeps_its_text_and_its_partial_call(tmp_path: Path) -> None:
    async with react([Reply(text=f"I look.\n{LIST}", cut_after=8)], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert message.stop_reason == "error"
    assert "broke off" in (message.error or "")
    assert message.text == "I look."


async def test_token_limit_within_a_call_is_reported_as_such(tmp_path: Path) -> None:
    async with react([Reply(text=LIST.partition('"ls')[0], finish="length")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.stop_reason, len(message.tool_calls)) == ("length", 1)


async def test_a_final_answer_completes_a_task_that_can_be_completed(tmp_path: Path) -> None:
    answer = Reply(text="<final_answer>All 3 pass.</final_answer>")
    async with react([answer, answer, Reply(text=f"{LIST}<final_answer>x</final_answer>")], tmp_path) as provider:
        plain = request_for(provider.model_id)
        with_end = ModelRequest(provider.model_id, "", plain.messages, (SHELL, DONE))
        talk = await final(provider.model, plain)
        task = await final(provider.model, with_end)
        early = await final(provider.model, with_end)
    assert (talk.text, talk.tool_calls, talk.stop_reason) == ("All 3 pass.", (), "stop")
    assert (task.text, calls_of(task)) == ("All 3 pass.", [("task_complete", {"summary": "All 3 pass."})])
    assert calls_of(early) == [("shell", {"command": "ls"})]


async def test_empty_final_answer_is_an_empty_reply(tmp_path: Path) -> None:
    async with react([Reply(text="<final_answer> </final_answer>")], tmp_path) as provider:
        message = await final(provider.model, request_for(provider.model_id))
    assert (message.stop_reason, message.content) == ("error", ())
    assert "sent an empty reply" in (message.error or "")


async def test_without_tools_the_text_is_left_as_it_is(tmp_path: Path) -> None:
    async with react([Reply(text=f"So: {LIST}")], tmp_path) as provider:
        message = await final(provider.model, ModelRequest(provider.model_id, "", request_for("m").messages))
    assert message.content == (Text(f"So: {LIST}"),)


async def test_call_parsed_by_the_server_is_accepted(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="Hm.", calls=(Call("shell", {"command": "ls"}),))]) as server:
        models = router(tmp_path)
        model = models.open(f"react/{NAME}", server.url)
        message = await final(model, request_for(f"react/{NAME}"))
        await models.close()
    assert message.content == (Text("Hm."), ToolCall("call_0", "shell", {"command": "ls"}))


async def test_model_that_refuses_tools_gets_them_as_text_with_one_notice(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        return REFUSED if "tools" in request.body else Reply(text=LIST)

    async with ModelServer(answer=answer) as server:
        models = router(tmp_path)
        model = models.open(NAME, server.url)
        first = await collect(model, request_for(NAME))
        second = await collect(models.open(NAME, server.url, "own-key"), request_for(NAME))
        await models.close()
    assert [type(event) for event in first[:2]] == [ModelNotice, ReplyStart]
    remark = first[0]
    assert isinstance(remark, ModelNotice)
    assert data_text(remark.data).startswith("openai_compatible/plain does not support tool calls.")
    assert [isinstance(event, ModelNotice) for event in second].count(True) == 0
    assert ["tools" in request.body for request in server.requests] == [True, False, False]


async def test_tools_that_the_library_would_drop_count_as_refused() -> None:
    row = Provider("perplexity", "Perplexity", "litellm", ("TEST_KEY",), price_prefix="perplexity")
    process = warm_process()
    provider = LiteLLMModel(ModelEndpoint(row, "http://127.0.0.1:9", stored_key), process)
    model = RecoveringModel(ModelSource(provider), RetryPolicy(attempts=1))
    last = (await collect(model, request_for("perplexity/sonar")))[-1]
    await process.close()
    assert isinstance(last, ReplyEnd)
    assert last.failure is FailureKind.NO_TOOLS


async def test_refusal_without_tools_is_a_failure(tmp_path: Path) -> None:
    async with ModelServer([REFUSED, REFUSED]) as server:
        models = router(tmp_path)
        message = await final(models.open(NAME, server.url), request_for(NAME))
        await models.close()
    assert "does not call tools" in (message.error or "")
    assert len(server.requests) == 2


async def test_text_tools_can_be_chosen_by_the_catalogue_or_the_model_id(tmp_path: Path) -> None:
    async with ModelServer([Reply(text=LIST)] * 2) as server:
        models = router(tmp_path)
        for model_id in ("deepseek/deepseek-reasoner", f"react/{NAME}"):
            message = await final(models.open(model_id, server.url, "a-key"), request_for(model_id))
            assert (calls_of(message), message.model) == ([("shell", {"command": "ls"})], model_id)
        await models.close()
    assert ["tools" in request.body for request in server.requests] == [False, False]
    assert models.has_price("react/deepseek/deepseek-chat")
    assert models.context_tokens("react/deepseek/deepseek-chat") == models.context_tokens("deepseek/deepseek-chat")


def test_incomplete_model_id_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="provider/model"):
        router(tmp_path).open("react/gemma")


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: https://x"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (400, "`tool calling` is not supported with this model"),
        (400, "deepseek-reasoner does not support Function Calling"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (400, "tools is not supported in this model. For a list of supported models, see the documentation"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
    ],
)
def test_refusals_of_tools_are_recognised(status: int, refusal: str) -> None:
    assert failure_from_response("Test", status, {}, refusal.encode()).kind is FailureKind.NO_TOOLS


@pytest.mark.parametrize(
    "refusal",
    [
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions.",
        "tool_choice is not supported",
        "Invalid schema for function 'shell'",
        "This model does not support image input",
    ],
)
def test_other_refusals_are_not_taken_for_refusals_of_tools(refusal: str) -> None:
    assert failure_from_response("Test", 400, {}, refusal.encode()).kind is not FailureKind.NO_TOOLS


@pytest.mark.parametrize("name", ["ollama", "mistral"])
async def test_text_tools_work_with_every_provider(name: str, tmp_path: Path) -> None:
    async with ModelServer([Reply(text=LIST)]) as server:
        models = router(tmp_path)
        message = await final(models.open(f"react/{name}/x", server.url, "a-key"), request_for(f"react/{name}/x"))
        await models.close()
        assert "tools" not in server.requests[0].body
    assert calls_of(message) == [("shell", {"command": "ls"})]
    assert find("react") is None
