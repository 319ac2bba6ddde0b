"""A task that continues with another model after its provider has failed."""

from pathlib import Path

import pytest

from errand.engine.models.recovery.retry import RetryPolicy
from errand.protocol.blocks import NoticeBlock
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.usage import UsageReportParams
from errand.text.notice_text import notice_text
from tests.support.engine_parts import engine_parts
from tests.support.model_server import Call, ModelServer, Reply

DOWN = Reply(status=503, error="we are down")


async def test_unenforceable_budget_of_a_fallback_model_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "echo hi"}),)), Reply(text="It said hi.")]
    async with ModelServer(replies) as other:
        monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "key-of-the-test-0123")
        async with engine_parts(tmp_path, ModelServer([DOWN, DOWN]), RetryPolicy(attempts=1)) as engine:
            engine.services.settings.set("own_models", "openai_compatible/test-model - 1 1")
            engine.services.settings.set("default_api_base", other.url)
            engine.services.settings.set("fallback_models", "openai_compatible/free")
            params = TaskStartParams(
                prompt="go",
                model="openai_compatible/test-model",
                api_base=engine.model.url,
                workspace=str(engine.workspace),
                approve="all",
                budget_usd=1.0,
            )
            task = await engine.watcher.end((await engine.services.runner.start(params)).id)
            nodes = engine.watcher.nodes()
    notice_texts = [notice_text(block) for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]
    assert task.activity.status == "completed"
    assert [text for text in notice_texts if "price" in text] == [
        "The price of openai_compatible/free is unknown, so the budget has no effect. "
        "Only turns and minutes limit this task."
    ]


async def test_reply_names_the_fallback_model_and_a_notice_gives_the_reason(tmp_path: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "echo hi"}),)), Reply(text="It said hi.")]
    async with ModelServer(replies) as other:
        first = ModelServer([DOWN, DOWN])
        async with engine_parts(tmp_path, first, RetryPolicy(attempts=1)) as engine:
            engine.services.keys.add_environment({"OLLAMA_HOST": other.url.removesuffix("/v1")})
            engine.services.settings.set("fallback_models", "ollama/second")
            task = await engine.watcher.end((await engine.start()).id)
            nodes = engine.watcher.nodes()
            report = await engine.services.database.usage.report(UsageReportParams())
    assert (task.activity.status, task.outcome.summary, task.request.model) == (
        "completed",
        "It said hi.",
        "openai_compatible/test-model",
    )
    assert [node.model for node in nodes if node.role == "assistant"] == ["ollama/second", "ollama/second"]
    notices = [block for node in nodes for block in node.blocks if isinstance(block, NoticeBlock)]
    assert [notice.kind for notice in notices] == ["model"]
    reason = "so ollama/second was used. OpenAI-compatible server failed (503)"
    assert reason in notice_text(notices[0])
    assert [(row.key, row.turns) for row in report.models] == [("ollama/second", 2)]
