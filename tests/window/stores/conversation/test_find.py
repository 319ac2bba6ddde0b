"""Find in one conversation: loaded rows, earlier messages, and other branches."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from errand.client.conversation.rows import ReplyRow
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage
from errand.window.rows.markdown import markdown_document
from errand.window.rows.registry import row_text
from errand.window.stores.conversation.find import FindStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.theme.theme import Theme
from tests.support.engine_server import EngineServer, engine_server
from tests.support.processes import until
from tests.support.records import NOW, agent, conversation, node
from tests.support.rows import reply, tool
from tests.support.store_engine import stores_on

_COUNT = 120


def _said(number: int, text: str, node_id: str = "", parent: str | None = None) -> Node:
    base = node(node_id or f"n{number}", parent or (f"n{number - 1}" if number else None), text=text)
    return msgspec.structs.replace(base, created_at=NOW + timedelta(seconds=number))


async def _tell(engine: EngineServer) -> None:
    """A branch of 120 messages, of which n5, n20, n110 and n115 match, and a matching node on another branch at n10."""
    engine.log.publish(ConversationUpdate(conversation=conversation()))
    for number in range(_COUNT):
        has_it = number in (5, 20, 110, 115)
        text = f"{number}. A **Need**le, and needle." if has_it else f"{number}. Hay."
        engine.log.publish(TaskMessage(node=_said(number, text)))
    engine.log.publish(TaskMessage(node=_said(11, "Another needle.", "x11", "n10")))
    engine.log.publish(AgentUpdate(agent=agent(version=1, head_id=f"n{_COUNT - 1}")))
    await engine.log.flush()


@asynccontextmanager
async def _searched(home: Path) -> AsyncGenerator[tuple[EngineServer, ConversationStore, FindStore]]:
    async with engine_server(home) as engine, stores_on(engine.endpoint) as stores:
        await _tell(engine)
        store = stores.open("c1")
        await until(lambda: store.is_loaded)
        yield engine, store, FindStore(store, stores.session, row_text)


def _at(store: ConversationStore, find: FindStore) -> tuple[int, int, str]:
    row = store.row(find.row) if find.row is not None else None
    return find.current_number, find.total, row.node.id if isinstance(row, ReplyRow) else ""


async def test_stepping_goes_through_the_hits_in_order_and_wraps_around(tmp_path: Path, qapp: QApplication) -> None:
    async with _searched(tmp_path) as (_, store, find):
        find.search("NEEDLE", store.count() - 6)
        assert _at(store, find) == (3, 4, "n115")
        seen: list[tuple[int, int, str]] = []
        for _ in range(3):
            find.next()
            seen.append(_at(store, find))
        assert seen == [(4, 4, "n115"), (1, 4, "n110"), (2, 4, "n110")]
        find.previous()
        assert _at(store, find) == (1, 4, "n110")


async def test_hits_that_are_not_loaded_are_counted_and_can_be_reached(tmp_path: Path, qapp: QApplication) -> None:
    async with _searched(tmp_path) as (_, store, find):
        find.search("needle", 0)
        await until(lambda: bool(find.earlier))
        assert [hit.node_id for hit in find.earlier] == ["n20", "n5"]
        assert [hit.node_id for hit in find.elsewhere] == ["x11"]
        find.previous()
        await until(lambda: find.total > 4)
        assert (_at(store, find)[2], find.earlier) == ("n20", ())
        assert [hit.node_id for hit in find.elsewhere] == ["x11"]


async def test_new_rows_are_searched_too(tmp_path: Path, qapp: QApplication) -> None:
    async with _searched(tmp_path) as (engine, _, find):
        find.search("needle", 0)
        at = find.current
        engine.log.publish(TaskMessage(node=_said(_COUNT, "One more needle.")))
        await engine.log.flush()
        await until(lambda: find.total == 5 or bool(qapp.processEvents()))
        assert (find.current, find.current_number) == (at, 1)


async def test_pattern_characters_are_literal_and_an_empty_text_finds_nothing(
    tmp_path: Path, qapp: QApplication
) -> None:
    async with _searched(tmp_path) as (_, _, find):
        find.search("need.*", 0)
        assert (find.total, find.current) == (0, None)
        find.next()
        find.search("  ", 0)
        assert (find.total, find.pattern) == (0, None)


@pytest.mark.parametrize(
    "markdown",
    [
        "It is **bold**, *slanted* and `__init__` of [the guide](https://example.org).",
        "# A heading with a_name_like_this",
        "> quoted ~~struck~~",
        "2 * 3 * 4 = 24",
    ],
)
def test_the_displayed_text_is_searched_not_its_markdown(theme: Theme, markdown: str) -> None:
    assert row_text(reply(markdown)).strip() == markdown_document(markdown, theme).toPlainText()


def test_the_arguments_and_output_of_a_call_are_searched() -> None:
    assert row_text(tool("shell", {"command": "make test"}, "12 passed\x1b[0m")) == "make test\n12 passed"
