"""Titles by a model: short ones after the end of a task, once, and never over a name that a person gave."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.setting_values import SettingValues
from errand.protocol.conversations import Conversation
from errand.protocol.events import ConversationUpdate
from errand.protocol.usage import UsageReportParams
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.processes import until

TITLES = "openai_compatible/titles"
LONG = "Please have a look at the failing tests of the parser and tell me what is wrong with them"
FIRST_WORDS = "Please have a look at the failing tests of the parser and…"


def server(title: Reply) -> ModelServer:
    """The model for titles answers with `title`, the other one with a text."""
    return ModelServer(answer=lambda request: title if is_for_title(request) else Reply(text="All is well."))


def is_for_title(request: ReceivedRequest) -> bool:
    return request.body["model"] == "titles"


def asked_for_titles(engine: EngineParts) -> list[str]:
    """Return the prompts of the requests for a title."""
    return [str(request.messages[-1]["content"]) for request in engine.model.requests if is_for_title(request)]


def configure(engine: EngineParts, model: str = TITLES) -> None:
    engine.services.settings.set("default_api_base", engine.model.url)
    engine.services.settings.set("title_model", model)


async def conversation(engine: EngineParts, conversation_id: str) -> Conversation:
    await engine.services.log.flush()
    stored = await engine.services.database.conversations.get(conversation_id)
    assert stored is not None
    return stored


def titles(engine: EngineParts) -> list[str]:
    events = (event for event in engine.watcher.events if isinstance(event, ConversationUpdate))
    return list(dict.fromkeys(event.conversation.title for event in events))


async def ended(engine: EngineParts, prompt: str = LONG, conversation_id: str | None = None) -> str:
    """The conversation of a task that has ended."""
    task = await engine.start(prompt, conversation_id=conversation_id)
    await engine.watcher.end(task.id)
    return task.conversation_id


async def until_no_title_is_made() -> None:
    await until(lambda: not any(task.get_name().startswith("title of") for task in asyncio.all_tasks()))


async def test_a_long_title_is_shortened_once_after_the_end_of_a_task(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server(Reply(text='"Failing parser tests."\n', usage=(90, 7)))) as engine:
        configure(engine)
        name = await ended(engine)
        await engine.watcher.until(lambda: titles(engine) == [FIRST_WORDS, "Failing parser tests"])
        (sent,) = asked_for_titles(engine)
        assert LONG in sent and "All is well." in sent
        await ended(engine, "And another long message that would make another long title of it", name)
        await until_no_title_is_made()
        assert len(asked_for_titles(engine)) == 1
        assert (await conversation(engine, name)).title == "Failing parser tests"
        report = await engine.services.database.usage.report(UsageReportParams())
        rows = {row.key: row.usage for row in report.models}
        assert (rows[TITLES].input_tokens, rows[TITLES].output_tokens) == (90, 7)


async def test_without_the_setting_nothing_is_sent_and_the_first_words_stay(tmp_path: Path) -> None:
    assert SettingValues().title_model == ""
    async with engine_parts(tmp_path, server(Reply(text="Parser tests"))) as engine:
        name = await ended(engine)
        await until_no_title_is_made()
        assert (asked_for_titles(engine), (await conversation(engine, name)).title) == ([], FIRST_WORDS)


async def test_a_short_title_is_left_as_it_is(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, server(Reply(text="Greeting"))) as engine:
        configure(engine)
        name = await ended(engine, "Say hello")
        await until_no_title_is_made()
        assert (asked_for_titles(engine), (await conversation(engine, name)).title) == ([], "Say hello")


@pytest.mark.parametrize(
    "failing",
    [
        lambda: Reply(status=400, error="no such model"),
        lambda: Reply(text=" \n“”\n"),
        lambda: Reply(text="A title that was cut", finish="length"),
    ],
)
async def test_a_model_that_fails_leaves_the_first_words(
    tmp_path: Path, failing: Callable[[], Reply], caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_parts(tmp_path, server(failing())) as engine:
        configure(engine)
        name = await ended(engine)
        await until(lambda: bool(asked_for_titles(engine)))
        await until_no_title_is_made()
        assert (await conversation(engine, name)).title == FIRST_WORDS
        assert titles(engine) == [FIRST_WORDS]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_model_that_does_not_exist_leaves_the_first_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_parts(tmp_path, server(Reply(text="never"))) as engine:
        configure(engine, "nowhere/none")
        name = await ended(engine)
        await until_no_title_is_made()
        assert (await conversation(engine, name)).title == FIRST_WORDS
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_name_that_a_person_gives_meanwhile_stays_and_the_end_does_not_wait(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, server(Reply(text="By the model", gate=gate))) as engine:
        configure(engine)
        name = await ended(engine)
        await until(lambda: bool(asked_for_titles(engine)))
        follow_up = await ended(engine, "Short", name)
        assert follow_up == name, "the agent is free while the title is made"
        before = await conversation(engine, name)
        named = msgspec.structs.replace(before, title="By a person")
        engine.services.log.publish(ConversationUpdate(conversation=named))
        gate.set()
        await until_no_title_is_made()
        assert (await conversation(engine, name)).title == "By a person"
