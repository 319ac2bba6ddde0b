"""The simulated clock of the scripts."""

import asyncio

_TURNS = 30
"""More than anything scripted needs from waking up to waiting again."""


class Clock:
    """Wakes one sleeper at a time, like the timers of the recordings: the next when the first waits again."""

    def __init__(self) -> None:
        self._waking = asyncio.Lock()

    async def sleep(self, milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1000)
        await self.take_turn()

    async def take_turn(self) -> None:
        await self._waking.acquire()
        self._release_after(_TURNS)

    def _release_after(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._release_after, turns - 1)
        else:
            self._waking.release()
