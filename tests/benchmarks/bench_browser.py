"""The time of the browser: from no process, or from a running one, to the text of a page, and to its end."""

import asyncio
import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from errand.engine.tools.browser.installed import find_browser
from tests.benchmarks.row import Row
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.web_site import Rules, web_site, with_rules

_PAGE = "<title>Page</title><h1>Hello</h1>" + "<p>Some text of a page.</p>" * 200
_WARM = 5


async def browser() -> list[Row]:
    """No rows without an installed browser."""
    program = find_browser(os.environ.get("ERRAND_BROWSER", ""), os.environ["PATH"])
    if program is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        first = with_rules(make_tool_context(Path(folder)), Rules())
        async with web_site({"/": _PAGE}) as site:
            arguments = {"action": "navigate", "url": site.url()}

            async def opened(conversation: str) -> float:
                context = replace(first, sessions=replace(first.sessions, conversation_id=conversation))
                started = time.perf_counter()
                await run(tool_of(context, "browser"), {**arguments})
                return 1000 * (time.perf_counter() - started)

            alone = await asyncio.to_thread(_alone, program, site.url())
            cold = await opened("conversation_0")
            warm = min([await opened(f"conversation_{number}") for number in range(1, 1 + _WARM)])
            for number in range(_WARM):
                await first.sessions.all.close_conversation(f"conversation_{number}")
            started = time.perf_counter()
            await first.sessions.all.close_conversation(f"conversation_{_WARM}")
            closed = 1000 * (time.perf_counter() - started)
            await first.sessions.all.close()
    return [
        Row("browser: start to first page text, cold", cold, "ms", 2_000, alone),
        Row("browser: start to first page text, warm", warm, "ms", 300),
        Row("browser: closed after its last conversation", closed, "ms", 2_000),
    ]


def _alone(program: Path, url: str) -> float:
    """The time in milliseconds in which the program alone starts, prints the page and ends."""
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--no-sandbox", f"--user-data-dir={profile}", "--dump-dom", url]
        started = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        return 1000 * (time.perf_counter() - started)
