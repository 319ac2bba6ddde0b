"""A data directory whose engine, if one was started, is killed at the end."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from app.client.errors import NoEngine
from app.client.launch import read_endpoint
from app.paths import Paths


@contextmanager
def engine_home(folder: Path) -> Generator[Paths]:
    paths = Paths(folder)
    yield paths
    try:
        engine = psutil.Process(read_endpoint(paths).pid)
    except (NoEngine, psutil.NoSuchProcess):
        return
    engine.kill()
    engine.wait(10)
