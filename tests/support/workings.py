"""What the engine's tasks do, as the command line tells it."""

import asyncio

from tests.support.errand import LONGEST_S, Errand


async def statuses(errand: Errand, expected: list[str]) -> None:
    """Wait until the tasks' statuses are these, in alphabetical order."""
    async with asyncio.timeout(LONGEST_S):
        while True:
            told = await errand.run("tasks", "--json")
            if sorted(str(task["status"]) for task in told.lines) == expected:
                return
