"""A browser ends with the engine, also with one that was killed."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from errand.engine.tools.browser.installed import find_browser
from tests.support.command_line import Errand, rest
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.processes import below, until
from tests.support.web_site import web_site

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the watchdog reads /proc"),
    pytest.mark.skipif(
        find_browser("", os.environ["PATH"]) is None,
        reason="no Chromium, and packaging/system.sh could not install one",
    ),
]
MODEL = ("--model", "openai_compatible/test-model", "--api-base")


def open_and_wait(url: str) -> tuple[Reply, Reply]:
    return (
        Reply(calls=(Call("browser", {"action": "navigate", "url": url}),)),
        Reply(calls=(Call("shell", {"command": "touch ready; sleep 60"}),)),
    )


async def test_a_killed_engine_leaves_no_process_of_a_browser_behind(own_errand: Errand, workspace: Path) -> None:
    async with web_site({"/": "<h1>Hello</h1>"}) as site, ModelServer(replies=[*open_and_wait(site.url())]) as server:
        process = await own_errand.start("run", "--approve", "all", *MODEL, server.url, "look")
        await until((workspace / "ready").exists)
        left = below("chrom", "run-driver", of=own_errand.engine_pid())
        assert any("run-driver" in process.cmdline() for process in left) and len(left) > 2
        own_errand.kill_engine()
        process.kill()
        await until(
            lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)
        )
        await rest(process)


async def test_an_engine_that_ends_in_order_ends_its_browser(own_errand: Errand) -> None:
    async with web_site({"/": "<h1>Hello</h1>"}) as site:
        replies = [open_and_wait(site.url())[0], Reply(text="Done.")]
        async with ModelServer(replies=replies) as server:
            done = await rest(await own_errand.start("run", "--approve", "all", *MODEL, server.url, "look"))
            assert done.code == 0, done.err
            left = below("chrom", "run-driver", of=own_errand.engine_pid())
            assert left
            await own_errand.close()
            assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)
