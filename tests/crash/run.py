"""Successive engines on one data directory, killed before and after commits and at random instants."""

import random
from pathlib import Path

from errand.engine.core.settings import Settings
from errand.paths import Paths
from tests.crash.lives import Lives
from tests.crash.verdict import Counts, judge
from tests.crash.work import WINDOW, Work
from tests.support.model_server import ModelServer

# Of an engine's commits, the first ones belong to its start; each step of five tasks makes about three.
_COMMITS = 60
_LONGEST_LIFE_S = 1.5


async def crash(count: int, seed: int, folder: Path) -> Counts:
    """Kill `count` engines, let the last one finish the rest, and judge the result."""
    chance = random.Random(seed)
    stride = max(1, 3 * _COMMITS // count)  # a short run covers the same range as a long one, with gaps
    async with ModelServer(answer=Work().answer) as model:
        lives = Lives(folder, model.url, chance)
        Paths(lives.home).prepare()
        Settings(Paths(lives.home).settings).set("context_tokens", WINDOW)
        for number in range(count):
            if number % 3 == 2:
                await lives.live(kill_after_s=chance.uniform(0.0, _LONGEST_LIFE_S))
            else:
                commit = number // 3 * stride % _COMMITS + stride
                await lives.live("before" if number % 3 == 0 else "after", str(commit))
        await lives.live()
    return judge(lives)
