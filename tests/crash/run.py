"""Successive engines on one data directory, killed before, in and after commits and at random instants."""

import random
from pathlib import Path

from errand.engine.core.settings import Settings
from errand.system.paths import Paths
from tests.crash.killed_at_commit import SIDES, SIDES_ON_SERVER
from tests.crash.killed_engines import KilledEngines
from tests.crash.verdict import Counts, judge
from tests.crash.work import WINDOW, Work
from tests.support.model_server import ModelServer
from tests.support.stored_records import StoredRecords

# Of an engine's commits, the first ones belong to its start; each step of five tasks makes about three.
_COMMITS = 60
_MAX_LIFE_S = 1.5
# Enough to save what waited for the server of the database, and to go on.
_MAX_LIFE_AFTER_SERVER_S = 3.0


def data_directory(folder: Path) -> Path:
    """Return where the engines of a run in this folder keep their data."""
    return folder / "data"


async def crash(count: int, seed: int, folder: Path, stored: StoredRecords) -> Counts:
    """Kill `count` engines, let the last one finish the rest, and judge the result.

    Of three engines, the last one ends at a random instant: every other time the database's server, if it has one,
    is killed before.
    """
    chance = random.Random(seed)
    stride = max(1, 3 * _COMMITS // count)  # a short run covers the same range as a long one, with gaps
    async with ModelServer(answer=Work().answer) as model:
        engines = KilledEngines(folder, data_directory(folder), stored, model.url, chance)
        paths = Paths(engines.home)
        paths.prepare()
        settings = Settings(paths.settings)
        settings.set("context_tokens", WINDOW)
        settings.set("database_url", stored.url)
        sides = SIDES if engines.server is None else SIDES_ON_SERVER
        for number in range(count):
            turn, kind = divmod(number, 3)
            if kind < 2:
                commit = turn * stride % _COMMITS + (stride + 1) // 2
                await engines.run_engine(sides[(2 * turn + kind) % len(sides)], str(commit))
            elif engines.server is not None and turn % 2 == 0:
                await engines.run_engine(kill_after_s=chance.uniform(0.0, _MAX_LIFE_AFTER_SERVER_S), server_dies=True)
            else:
                await engines.run_engine(kill_after_s=chance.uniform(0.0, _MAX_LIFE_S))
        await engines.run_engine()
    return judge(engines)
