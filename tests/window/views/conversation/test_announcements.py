"""What a screen reader is told while a task works in the window."""

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QWidget

from errand.protocol.asks import AskAnswerParams
from errand.window.theme.theme import Theme
from errand.window.views.conversation import announcements
from errand.window.widgets.accessibility import announce
from tests.support.model_replies import DONE, shell
from tests.support.records import NOW
from tests.support.window import ViewFixture, until, view_fixture


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each announced text, and whether it is urgent. Qt hands them to the system, which has no reader here."""
    heard: list[tuple[str, bool]] = []

    def listen(widget: QWidget, text: str, *, is_urgent: bool = False) -> None:
        announce(widget, text, is_urgent=is_urgent)
        heard.append((text, is_urgent))

    monkeypatch.setattr(announcements, "announce", listen)
    return heard


@pytest.fixture
async def fixture(
    heard: list[tuple[str, bool]], qapp: QApplication, theme: Theme, tmp_path: Path
) -> AsyncGenerator[ViewFixture]:
    QAccessible.setActive(True)
    async with view_fixture(qapp, theme, tmp_path, [shell("touch made"), DONE], mode="task") as fixture:
        fixture.gate.set()
        yield fixture
    QAccessible.setActive(False)


async def allow(fixture: ViewFixture, heard: list[tuple[str, bool]]) -> None:
    """Allow what is asked, once that was announced."""
    await until(lambda: any(is_urgent for _, is_urgent in heard))
    asks = fixture.engine.stores.asks
    asks.answer(AskAnswerParams(ask_id=asks.waiting()[0].id, allow=True))


async def test_asks_replies_and_ends_are_announced_once(fixture: ViewFixture, heard: list[tuple[str, bool]]) -> None:
    await allow(fixture, heard)
    await until(lambda: fixture.task.outcome.ended_at is not None)
    (ask,) = (text for text, is_urgent in heard if is_urgent)
    assert "touch made" in ask
    assert [text for text, is_urgent in heard if not is_urgent] == ["At work.", "Running.", "Done"]


async def test_what_the_transcript_does_not_show_is_not_announced(
    fixture: ViewFixture, heard: list[tuple[str, bool]]
) -> None:
    await until(lambda: ("At work.", False) in heard)
    store, count = fixture.view.store, len(heard)
    reply = next(node for node in map(store.branch.node, store.branch.ids) if node.role == "assistant")
    store.put_node(msgspec.structs.replace(reply, id="of_another_branch", parent_id="elsewhere"))
    store.put_task(msgspec.structs.replace(fixture.task, id="of_a_sub_agent"))
    ended = msgspec.structs.replace(fixture.task.outcome, ended_at=NOW)
    store.put_task(msgspec.structs.replace(fixture.task, id="of_a_sub_agent", outcome=ended))
    assert [text for text, is_urgent in heard[count:] if not is_urgent] == []


async def test_what_happens_behind_another_tab_is_not_announced(
    fixture: ViewFixture, heard: list[tuple[str, bool]]
) -> None:
    await allow(fixture, heard)
    fixture.view.hide()
    count = len(heard)
    await until(lambda: fixture.task.outcome.ended_at is not None)
    assert len(heard) == count
