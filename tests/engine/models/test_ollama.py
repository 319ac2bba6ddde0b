"""Ollama's own interface: the window that requests ask for, messages, calls, thoughts, refusals."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.messages import (
    AssistantMessage,
    Image,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user_text,
)
from errand.engine.core.secrets import KeyStore
from errand.engine.models.base import ModelOptions, ModelRequest
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.router import ModelRouter
from errand.protocol.agents import ThinkingLevel
from errand.protocol.base import JsonObject
from tests.support.local_servers import counted, ollama
from tests.support.model_replies import SHELL, final, request_for
from tests.support.model_server import Call, ModelServer, Page, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS

MODEL = "ollama/m:latest"
ABILITIES = ("completion", "tools", "vision", "thinking")


@asynccontextmanager
async def opened(
    folder: Path,
    *replies: Reply,
    window: int | None = 4_096,
    abilities: tuple[str, ...] = ABILITIES,
    parameters: str = "",
    owner: str = "library",
    pages: Mapping[str, Page | Callable[[], Page]] | None = None,
) -> AsyncGenerator[tuple[ModelRouter, ModelServer]]:
    """Yield a router that has asked an Ollama what it serves, and the Ollama."""
    if pages is None:
        pages = ollama("m:latest", abilities=abilities, window=window, parameters=parameters, owner=owner)
    async with ModelServer(replies, pages=pages) as server:
        names = {**NO_LOCAL_SERVERS, "OLLAMA_HOST": server.url.removesuffix("/v1")}
        models = ModelRouter(KeyStore(folder / "keys", names, lambda: None), folder, RetryPolicy(attempts=1))
        try:
            await models.servers.status(MODEL)
            yield models, server
        finally:
            await models.close()


async def body_of(folder: Path, request: ModelRequest) -> JsonObject:
    async with opened(folder, Reply(text="Hello.")) as (models, server):
        await final(models.open(MODEL), request)
    assert server.requests[0].path == "/api/chat"
    return server.requests[0].body


@pytest.mark.parametrize(
    ("loaded", "parameters", "asked"),
    [
        (None, "", 16_384),
        (4_096, "", 16_384),
        (32_768, "", 32_768),
        (None, "num_ctx   8192", 8_192),
    ],
    ids=["not loaded", "small default", "a larger one was set", "in the file of the model"],
)
async def test_requests_ask_for_a_window(loaded: int | None, parameters: str, asked: int, tmp_path: Path) -> None:
    async with opened(tmp_path, Reply(text="Hello."), window=loaded, parameters=parameters) as (models, server):
        message = await final(models.open(MODEL), request_for(MODEL))
        assert models.context_tokens(MODEL) == asked
    (request,) = server.requests
    assert request.path == "/api/chat"
    assert request.body["options"] == {"num_ctx": asked}
    assert (request.body["truncate"], request.body["shift"]) == (False, False)
    assert message.text == "Hello."
    assert (message.usage.input_tokens, message.usage.output_tokens) == (100, 20)


@pytest.mark.parametrize("owner", ["library", "somebody"])
async def test_an_ollama_that_is_known_by_its_address_alone_is_asked_by_its_own_interface(
    owner: str, tmp_path: Path
) -> None:
    async with opened(tmp_path, Reply(text="Hello."), Reply(text="Hello."), owner=owner) as (models, server):
        for address, path in ((server.url, "/api/chat"), (f"{server.url}/chat/completions", "/v1/chat/completions")):
            status = await models.servers.status("openai_compatible/m:latest", address)
            model = models.open("openai_compatible/m:latest", address)
            await final(model, request_for("openai_compatible/m:latest"))
            assert status is not None and (status.kind == "ollama" or path != "/api/chat")
            assert server.requests[-1].path == path
    assert server.requests[0].body["options"] == {"num_ctx": 16_384}


async def test_other_servers_are_asked_once_whether_they_are_an_ollama(tmp_path: Path) -> None:
    asks: list[str] = []
    listed: JsonObject = {"data": [{"id": "m:latest", "object": "model", "owned_by": "me"}]}
    pages = counted({"/v1/models": (200, listed), "/api/version": (200, {"version": "1"}), "/api/ps": (404, {})}, asks)
    async with opened(tmp_path, Reply(text="Hello."), pages=pages) as (models, server):
        for _ in range(2):
            status = await models.servers.status("openai_compatible/m:latest", server.url)
            assert status is not None and status.kind == "other"
        await final(models.open("openai_compatible/m:latest", server.url), request_for("openai_compatible/m:latest"))
    assert (asks.count("/api/version"), asks.count("/v1/models")) == (1, 3)
    assert server.requests[0].path == "/v1/chat/completions"


async def test_a_model_is_loaded_with_the_window_where_the_usual_one_is_known_to_be_small(tmp_path: Path) -> None:
    async with opened(tmp_path, window=None) as (models, server):
        for window in (4_096, 16_384, 16_384):  # the usual one, then the one that was asked for
            await models.servers.load(MODEL, None)
            server.pages.update(ollama("m:latest", window=window))
            await models.servers.status(MODEL)
        loads = [body for path, body in server.posts if path == "/api/generate"]
    plain: JsonObject = {"model": "m:latest", "stream": False}
    assert loads == [plain, {**plain, "options": {"num_ctx": 16_384}}, {**plain, "options": {"num_ctx": 16_384}}]


async def test_a_model_is_known_by_its_name_without_the_default_tag(tmp_path: Path) -> None:
    async with opened(tmp_path, Reply(text="Hello.")) as (models, server):
        await final(models.open("ollama/m"), request_for("ollama/m"))
        status = models.servers.known_status("ollama/m")
        assert models.context_tokens("ollama/m") == 16_384
    assert status is not None and status.find("m") == status.find("m:latest") is not None
    (request,) = server.requests
    assert (request.path, request.body["model"], request.body["options"]) == ("/api/chat", "m", {"num_ctx": 16_384})


async def test_calls_of_one_reply_are_told_apart_and_have_their_arguments(tmp_path: Path) -> None:
    calls = (Call("shell", {"command": "ls"}), Call("shell", {"command": "pwd", "list": [1, {"a": None}]}))
    async with opened(tmp_path, Reply(thinking="Look.", text="Now.", calls=calls)) as (models, _):
        message = await final(models.open(MODEL), request_for(MODEL))
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        ("shell", {"command": "ls"}),
        ("shell", {"command": "pwd", "list": [1, {"a": None}]}),
    ]
    assert len({call.id for call in message.tool_calls}) == 2
    assert (message.text, message.stop_reason) == ("Now.", "tool_use")


async def test_messages_are_sent_in_its_form(tmp_path: Path) -> None:
    call = ToolCall("c1", "shell", {"command": "ls"})
    messages = (
        UserMessage((Text("Look at this."), Image("image/png", "aGVsbG8="))),
        AssistantMessage((Text("Yes."), call), "tool_use", model=MODEL),
        ToolResultMessage("c1", "shell", (Text("notes.txt"),)),
    )
    request = ModelRequest(MODEL, "Be brief.", messages, (SHELL,), ModelOptions(temperature=0.2, max_tokens=300))
    body = await body_of(tmp_path, request)
    assert body["options"] == {"num_ctx": 16_384, "temperature": 0.2, "num_predict": 300}
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look at this.", "images": ["aGVsbG8="]},
        {
            "role": "assistant",
            "content": "Yes.",
            "tool_calls": [{"id": "c1", "function": {"name": "shell", "arguments": {"command": "ls"}}}],
        },
        {"role": "tool", "content": "notes.txt", "tool_call_id": "c1", "tool_name": "shell"},
    ]
    assert str(body["tools"]).startswith("[{'type': 'function', 'function': {'name': 'shell'")


async def test_a_schema_is_sent_as_its_format(tmp_path: Path) -> None:
    schema: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    body = await body_of(tmp_path, replace(request_for(MODEL), reply_schema=schema))
    assert body["format"] == schema


@pytest.mark.parametrize(("level", "think"), [("off", False), ("high", True)])
async def test_a_model_that_thinks_is_told_whether_to(level: ThinkingLevel, think: bool, tmp_path: Path) -> None:
    request = replace(request_for(MODEL), options=ModelOptions(thinking_level=level))
    assert (await body_of(tmp_path, request))["think"] is think


async def test_a_model_that_does_not_think_is_told_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, Reply(text="Hello."), abilities=("completion", "tools")) as (models, server):
        await final(models.open(MODEL), request_for(MODEL))
    assert "think" not in server.requests[0].body


async def test_a_request_that_is_too_long_is_refused_as_such(tmp_path: Path) -> None:
    refusal = Reply(status=400, body='{"error": "the input length exceeds the context length"}')
    async with opened(tmp_path, refusal) as (models, _):
        message = await final(models.open(MODEL), request_for(MODEL))
    assert "longer than this model can read" in (message.error or "")


async def test_an_error_in_the_stream_fails_the_reply_and_keeps_what_came(tmp_path: Path) -> None:
    begun = Reply(text="I begin", finish="").line_pieces()
    broken = Reply(raw=(*begun, b'{"error":"llama runner process no longer running"}\n'))
    async with opened(tmp_path, broken) as (models, _):
        message = await final(models.open(MODEL), request_for(MODEL))
    assert message.stop_reason == "error" and "no longer running" in (message.error or "")
    assert message.text == "I begin"


async def test_a_reply_without_its_last_line_was_cut(tmp_path: Path) -> None:
    async with opened(tmp_path, Reply(text="I begin", finish="")) as (models, _):
        message = await final(models.open(MODEL), request_for(MODEL))
    assert message.stop_reason == "error"


async def test_lines_that_arrive_in_parts_and_odd_fields_are_read(tmp_path: Path) -> None:
    text = b"".join(
        (
            b'{"model":7,"message":{"role":"assistant","content":"Hel","images":null},"done":false}\n',
            b'\n{"message":{"content":"lo","tool_calls":null,"thinking":null},"done":false}\r\n',
            b'{"message":{"content":""},"done":true,"done_reason":"length","eval_count":"many"}',
        )
    )
    raw = tuple(text[at : at + 7] for at in range(0, len(text), 7))
    async with opened(tmp_path, Reply(raw=raw)) as (models, _):
        message = await final(models.open(MODEL), request_for(MODEL))
    assert (message.text, message.stop_reason) == ("Hello", "length")


async def test_a_server_that_says_nothing_of_its_models_is_asked_for_chat_completions(tmp_path: Path) -> None:
    async with ModelServer([Reply(text="Hello.")], models=("m:latest",)) as server:
        names = {**NO_LOCAL_SERVERS, "OLLAMA_HOST": server.url.removesuffix("/v1")}
        models = ModelRouter(KeyStore(tmp_path / "keys", names, lambda: None), tmp_path)
        try:
            await models.servers.status(MODEL)
            await final(models.open(MODEL), ModelRequest(MODEL, "", (user_text("hello"),)))
        finally:
            await models.close()
    assert server.requests[0].path == "/v1/chat/completions"
