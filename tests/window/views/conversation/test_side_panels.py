"""Widths of the panels at the right of a conversation."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from errand.window.theme.theme import Theme
from tests.support.window import until
from tests.window.accessibility.full_window import WindowFixture, window_fixture


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[WindowFixture]:
    async with window_fixture(qapp, theme, tmp_path) as fixture:
        yield fixture


async def test_the_review_has_half_of_a_window_that_became_wide(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    fixture.window.resize(1000, 700)
    view.review.open()
    await until(lambda: 0 < view.review.panel.width() < 520)
    assert view.review.open_width == 520, "what is kept for the next start is not the squeezed width"
    fixture.window.resize(1900, 1000)
    await until(lambda: view.review.panel.width() > 700)
    assert abs(view.review.panel.width() - view.panels.width() / 2) < 10


async def test_a_width_that_a_person_chose_stays(fixture: WindowFixture) -> None:
    view = await fixture.open(fixture.branched)
    fixture.window.resize(1900, 1000)
    view.review.open()
    await until(lambda: view.review.panel.width() > 700)
    view.panels.moveSplitter(view.panels.width() - 600, view.panels.indexOf(view.review.panel))
    chosen = view.review.panel.width()
    assert 590 < chosen < 610
    fixture.window.resize(1300, 1000)
    fixture.window.resize(1900, 1000)
    await until(lambda: view.panels.width() > 1400)
    view.review.close()
    view.review.open()
    assert (view.review.panel.width(), view.review.open_width) == (chosen, chosen)
