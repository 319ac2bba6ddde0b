"""A virtual X display with real keys and clicks, by Xvfb and xdotool."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.x_close import ask_to_close

_LONGEST_S = 10.0
_PAUSE_S = 0.02

HAS_SCREEN = shutil.which("Xvfb") is not None and shutil.which("xdotool") is not None


@dataclass(frozen=True, slots=True)
class Screen:
    """`display` is for the environment of what is to be shown there."""

    display: str

    async def window(self, title: str) -> None:
        """Wait until a window of that title is there, and give it the keyboard: no window manager does."""
        await self._do("search", "--sync", "--onlyvisible", "--name", f"^{title}$", "windowfocus", "--sync")

    async def close(self, title: str) -> None:
        """As the button in a window's frame does; until it is not to be seen any more."""
        search = ("search", "--onlyvisible", "--name", f"^{title}$")
        ask_to_close(self.display, int((await self._do(*search)).split()[0]))
        async with asyncio.timeout(_LONGEST_S):
            while (await self._run(*search))[0] == 0:  # noqa: ASYNC110 -- the display sets no asyncio event
                await asyncio.sleep(_PAUSE_S)

    async def keys(self, *keys: str) -> None:
        await self._do("key", *keys)

    async def type(self, text: str) -> None:
        await self._do("type", text)

    async def click(self, x: int, y: int) -> None:
        await self._do("mousemove", str(x), str(y), "click", "1")

    async def _do(self, *words: str) -> str:
        code, said = await self._run(*words)
        assert code == 0
        return said

    async def _run(self, *words: str) -> tuple[int, str]:
        environment = os.environ | {"DISPLAY": self.display}
        process = await asyncio.create_subprocess_exec(
            "xdotool", *words, env=environment, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode()


@asynccontextmanager
async def screen() -> AsyncGenerator[Screen]:
    """One screen of 1280 by 900; the server chooses a free number."""
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *("Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x900x24", "-nolisten", "tcp"),
        pass_fds=(writing,),
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as numbers:
            number = await asyncio.to_thread(numbers.readline)
        yield Screen(f":{number.strip()}")
    finally:
        process.terminate()
        await process.wait()
