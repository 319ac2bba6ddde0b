"""Fallback models after a provider has failed."""

from dataclasses import replace
from pathlib import Path

import pytest

from errand.engine.core.messages import Image, Text, UserMessage
from errand.engine.core.secrets import KeyStore
from errand.engine.core.setting_values import SettingValues
from errand.engine.models.base import ModelEvent, ModelNotice, ReplyEnd
from errand.engine.models.endpoint import ModelEndpoint
from errand.engine.models.http_model import HttpModel
from errand.engine.models.http_pool import HttpPool
from errand.engine.models.openai.model import ChatCompletions
from errand.engine.models.recovery.driver import RecoveringModel
from errand.engine.models.recovery.fallback import FallbackModels, ModelCooldown
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.models.recovery.source import ModelSource
from errand.engine.models.router import ModelRouter
from errand.text.notice_text import data_text
from tests.engine.models.providers import FAST, stored_key
from tests.support.model_replies import collect, request_for
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.provider_servers import NO_LOCAL_SERVERS

DOWN = Reply(status=503, error="we are down")
FIRST = "openai_compatible/first"
TWICE = RetryPolicy(attempts=2, first_delay_s=0.001)


def router(folder: Path, local: str, others: str, own: str = "") -> ModelRouter:
    """Ollama at `local`; `others` are the fallbacks; `own` describes models."""
    keys = KeyStore(folder, {**NO_LOCAL_SERVERS, "OLLAMA_HOST": local.removesuffix("/v1")}, lambda: None)
    return ModelRouter(keys, folder, TWICE, lambda: SettingValues(fallback_models=others, own_models=own))


def two_models(
    pool: HttpPool, first: ModelServer, second: ModelServer, cooldown: ModelCooldown | None = None
) -> RecoveringModel:
    """A model at the first server, with the second as its fallback."""
    primary, fallback = (
        ModelSource(HttpModel(ModelEndpoint(FAST, at.url, stored_key), ChatCompletions, pool)) for at in (first, second)
    )
    return RecoveringModel(FallbackModels(primary, lambda: ("ollama/second",), lambda _: fallback, cooldown), TWICE)


async def asked(models: ModelRouter, base: str) -> tuple[ReplyEnd, list[str]]:
    """The end of the reply, and the notices before it."""
    model = models.open(FIRST, base, "key-of-this-run-0123")
    events = await collect(model, request_for(FIRST))
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    return end, remarks(events)


def remarks(events: list[ModelEvent]) -> list[str]:
    return [data_text(event.data) for event in events if isinstance(event, ModelNotice)]


async def test_fallback_model_answers_and_is_named(tmp_path: Path) -> None:
    async with ModelServer([DOWN, DOWN]) as first, ModelServer([Reply(text="Here.")]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, notices = await asked(models, first.url)
        await models.close()
        assert len(first.requests) == 2
        assert second.requests[0].body["model"] == "second"
        assert "Authorization" not in second.requests[0].headers
    assert (end.message.text, end.message.error, end.message.model) == ("Here.", None, "ollama/second")
    (why,) = notices
    assert why.startswith("openai_compatible/first did not answer, so ollama/second was used.")
    assert "we are down" in why


async def test_usage_of_a_failed_reply_is_counted(tmp_path: Path) -> None:
    empty = Reply(text="")
    async with ModelServer([empty, empty]) as first, ModelServer([Reply(text="Here.")]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, _ = await asked(models, first.url)
        await models.close()
    assert end.message.text == "Here."
    assert (end.message.usage.input_tokens, end.message.usage.output_tokens) == (300, 60)  # the first was called twice


async def test_no_other_model_is_asked_after_something_was_shown(tmp_path: Path) -> None:
    cut = Reply(text="One two three four", cut_after=3)
    async with ModelServer([cut, cut]) as first, ModelServer([Reply(text="never")]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, notices = await asked(models, first.url)
        await models.close()
        assert second.requests == []
    assert (end.message.stop_reason, notices) == ("error", [])


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=400, error="the tool schema is wrong"),
        Reply(status=400, error="maximum context length is 8192 tokens"),
        Reply(text="", finish="content_filter"),
    ],
    ids=["request at fault", "too long", "content filter"],
)
async def test_invalid_request_is_sent_to_no_other_model(tmp_path: Path, refusal: Reply) -> None:
    async with ModelServer([refusal] * 2) as first, ModelServer([Reply(text="never")]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, notices = await asked(models, first.url)
        await models.close()
        assert second.requests == []
    assert (end.message.stop_reason, notices) == ("error", [])


async def test_if_all_models_fail_the_end_lists_each_failure(tmp_path: Path) -> None:
    async with ModelServer([DOWN] * 2) as first, ModelServer([Reply(status=401)]) as second:
        models = router(tmp_path, second.url, "ollama/second, nowhere/x, openai_compatible/first")
        end, notices = await asked(models, first.url)
        await models.close()
    assert end.message.model == FIRST
    error = end.message.error or ""
    assert "we are down" in error
    assert "ollama/second was asked instead: Ollama refused the key (401)" in error
    assert "nowhere/x was asked instead: There is no provider named 'nowhere'" in error
    assert len(notices) == 2


async def test_if_all_models_are_rate_limited_the_first_one_is_waited_for(tmp_path: Path) -> None:
    limit = Reply(status=429, error="slow down", headers={"Retry-After": "300"})
    async with ModelServer([limit]) as first, ModelServer([limit]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, _ = await asked(models, first.url)
        await models.close()
    assert end.retry_later is not None


async def test_model_known_not_to_accept_images_is_skipped_for_pictures(tmp_path: Path) -> None:
    picture = UserMessage((Text("what is it?"), Image("image/png", "AAAA")))
    async with ModelServer([DOWN] * 2) as first, ModelServer([Reply(text="A cat.")]) as second:
        models = router(tmp_path, second.url, "ollama/blind, ollama/sees", "ollama/blind 8000 0 0 tools")
        request = replace(request_for(FIRST), messages=(picture,))
        events = await collect(models.open(FIRST, first.url), request)
        await models.close()
        assert [asked.body["model"] for asked in second.requests] == ["sees"]
    assert len(remarks(events)) == 1


async def test_tool_calls_of_the_fallback_model_are_complete(tmp_path: Path) -> None:
    reply = Reply(calls=(Call("shell", {"command": "ls"}),))
    async with ModelServer([DOWN] * 2) as first, ModelServer([reply]) as second:
        models = router(tmp_path, second.url, "ollama/second")
        end, _ = await asked(models, first.url)
        await models.close()
    assert [call.arguments for call in end.message.tool_calls] == [{"command": "ls"}]


async def test_model_that_failed_slowly_is_asked_last_for_a_while() -> None:
    async with (
        ModelServer([DOWN, DOWN, Reply(text="Back.")]) as first,
        ModelServer([Reply(text="Here.")] * 3) as second,
    ):
        pool = HttpPool()
        with_other = two_models(pool, first, second, ModelCooldown(slow_s=0.0, rest_s=60.0))
        turns = [await collect(with_other, request_for(FIRST)) for _ in range(2)]
        now = [await collect(two_models(pool, first, second), request_for(FIRST))]
        await pool.close()
        assert len(first.requests) == 3
    assert [remarks(events)[0].partition(", so")[0] for events in turns] == [
        f"{FIRST} did not answer",
        f"{FIRST} did not answer in the last minute",
    ]
    assert [remarks(events) for events in now] == [[]]


async def test_model_in_cooldown_is_asked_if_no_other_answers() -> None:
    async with ModelServer([DOWN, DOWN, Reply(text="Back.")]) as first, ModelServer([Reply(status=401)] * 2) as second:
        pool = HttpPool()
        model = two_models(pool, first, second, ModelCooldown(slow_s=0.0))
        failed, recovered = [await collect(model, request_for(FIRST)) for _ in range(2)]
        await pool.close()
    last, back = failed[-1], recovered[-1]
    assert isinstance(last, ReplyEnd)
    assert isinstance(back, ReplyEnd)
    assert (last.message.model, back.message.model, back.message.text) == (FIRST, FIRST, "Back.")


async def test_models_with_text_tools_can_be_fallbacks_and_have_fallbacks(tmp_path: Path) -> None:
    call = "<tool_code><name>shell</name><parameters>{}</parameters></tool_code>"
    async with ModelServer([DOWN] * 4) as first, ModelServer([Reply(text=call), Reply(text="Here.")]) as second:
        models = router(tmp_path, second.url, "react/ollama/second")
        as_text, _ = await asked(models, first.url)
        await models.close()
        models = router(tmp_path, second.url, "ollama/second")
        events = await collect(models.open(f"react/{FIRST}", first.url), request_for(f"react/{FIRST}"))
        await models.close()
        assert ["tools" in request.body for request in second.requests] == [False, True]
    end = events[-1]
    assert isinstance(end, ReplyEnd)
    assert [call.name for call in as_text.message.tool_calls] == ["shell"]
    assert (as_text.message.model, end.message.model) == ("react/ollama/second", "ollama/second")
