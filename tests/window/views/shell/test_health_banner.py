"""The health banner, on a real engine whose disk is full."""

import asyncio
from pathlib import Path

import pytest

from errand.client.errors import CallError
from errand.protocol.tasks import TASK_START, TaskStartParams
from errand.window.theme.theme import Theme
from errand.window.views.shell.banners import HealthBannerView
from tests.support.disks import full_disk
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until
from tests.support.store_engine import store_engine


async def test_a_full_disk_is_shown_with_the_tasks_that_wait_for_space(tmp_path: Path, theme: Theme) -> None:
    gate = asyncio.Event()
    async with store_engine(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        banner = HealthBannerView(engine.stores.session, theme)
        task = await engine.parts.start()
        await engine.parts.model.request(0)
        assert banner.isHidden()
        with full_disk(engine.parts.services.paths.database):
            gate.set()
            await until(lambda: not banner.isHidden())
            assert "The disk is full" in banner.accessibleName()
            assert "1 task waits meanwhile" in banner.accessibleName()
            shown = engine.stores.tasks.get(task.id)
            assert shown is not None
            assert (shown.status, "Make at least 100 MB free" in shown.activity) == ("paused", True)
            with pytest.raises(CallError, match="Not saved: The disk is full"):
                await engine.stores.session.call(TASK_START, TaskStartParams(prompt="another"))
        await until(banner.isHidden)
        await engine.parts.watcher.end(task.id)
        banner.deleteLater()
