"""Summaries and kept messages in a conversation store, on a real engine."""

from pathlib import Path

from errand.client.conversation.rows import SummaryRow
from tests.engine.agent.compaction.test_context_window import SUMMARY
from tests.engine.agent.compaction.test_summaries import answering, said, talk
from tests.support.model_server import ModelServer
from tests.support.processes import until
from tests.support.store_engine import store_engine


async def test_a_manual_summary_becomes_a_row_and_its_edit_replaces_it(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        talked = await talk(engine.parts, 4)
        store, mirror = await engine.open(talked.conversation_id)
        assert store.context.locked == ""
        store.context.summarise()
        await until(lambda: "Summary" in mirror.kinds and store.context.locked == "")
        row = next(row for row in mirror.rows if isinstance(row, SummaryRow))
        assert row.summary.text == SUMMARY
        store.context.change_summary(row.node.id, "It was about the tide.")
        await until(lambda: mirror.kinds.count("Summary") == 2)
        texts = [row.summary.text for row in mirror.rows if isinstance(row, SummaryRow)]
        assert texts == [SUMMARY, "It was about the tide."]


async def test_a_message_is_kept_and_released_and_a_refusal_is_reported(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        talked = await talk(engine.parts, 1)
        store, _ = await engine.open(talked.conversation_id)
        message = await said(engine.parts, talked.conversation_id, "Message 0")
        store.context.keep(message.id)
        await until(lambda: store.context.is_kept(message.id))
        store.context.release(message.id)
        await until(lambda: not store.context.is_kept(message.id))
        failures: list[str] = []
        store.failed.connect(failures.append)
        store.context.keep("nowhere")
        await until(lambda: bool(failures))
        assert "no node" in failures[0]


async def test_an_empty_conversation_cannot_be_summarised(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        store = engine.stores.open(None)
        failures: list[str] = []
        store.failed.connect(failures.append)
        store.context.summarise()
        assert failures == [store.context.locked] == ["No messages yet."]
