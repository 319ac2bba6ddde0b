"""The real window in a separate process, driven through one scenario; prints its measurements as one JSON object.

`python -m tests.benchmarks.window_process STORY [ARGUMENT …]` on the data directory in ERRAND_HOME.
"""

# First, as in the command: PySide's own `__import__` costs memory.
import errand.window  # noqa: F401, I001  # pyright: ignore[reportUnusedImport] -- for its effect
import asyncio
import itertools
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import psutil
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from errand.client.launch import read_endpoint
from errand.system.paths import Paths
from errand.protocol.settings import Model
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.window.event_loop import run_event_loop
from errand.window.stores.task_options import TaskOptionDefaults
from tests.benchmarks.bench import median, p99
from tests.benchmarks.process_memory import also_mapping, pss_mb
from tests.support.open_window import OpenWindow, open_window

Measured = dict[str, float]

_STREAMS = 20
_WATCH_S = 10.0
# A hidden tab gives its rows back after ten seconds.
_SETTLES_S = 12.0
_BEAT_MS = 4
_SWITCHES = 6
_TASK_TIMEOUT_S = 40.0
_OPENINGS = 8
_PAUSE_S = 0.1
# Where CPU time is measured, the wait should take little of it.
_SELDOM_S = 0.01
# The window loads some modules ahead once it has been idle for a moment.
_PREPARES_S = 6.0
_MODELS, _MAKERS = 2_000, 12
# The watchdog also checks an idle engine for some time before it sleeps.
_COMES_TO_REST_S = 15.0


async def usable(open: OpenWindow) -> Measured:
    """The time until the conversations are listed and painted and a message can be sent."""
    await _until(lambda: open.stores.conversations.count() > 0)
    open.window.grab()
    return {"at": time.time()}


async def memory(open: OpenWindow, *ids: str) -> Measured:
    """Memory with these conversations in tabs, each shown once; one marked with + is read to its beginning."""
    for name in ids:
        open.window.tabs.open(name.rstrip("+"))
        await _until(lambda: open.front.store.count() > 0)
        while name.endswith("+") and open.front.store.has_older:
            before = open.front.store.count()
            open.front.store.load_older()
            await _until(lambda before=before: open.front.store.count() > before)
        open.window.grab()
    await asyncio.sleep(_SETTLES_S)
    return {"mb": pss_mb(), "rows": open.front.store.count(), "sharing": also_mapping("libQt6Core")}


async def theme(open: OpenWindow, *ids: str) -> Measured:
    """CPU of a switch between light and dark with these tabs, each shown once; the median of six."""
    for name in ids:
        open.window.tabs.open(name)
        await _until(lambda: open.front.store.count() > 0)
        open.window.grab()
    await asyncio.sleep(1.0)
    durations: list[float] = []
    for _ in range(_SWITCHES):
        started = time.process_time()
        open.window.commands.trigger("theme")
        durations.append((time.process_time() - started) * 1000)
        await asyncio.sleep(0.2)
    return {"ms": sorted(durations)[_SWITCHES // 2]}


async def idle(open: OpenWindow, *ids: str) -> Measured:
    """CPU in percent of one core with these tabs, once everything is idle."""
    for name in ids:
        open.window.tabs.open(name)
        await _until(lambda: open.front.store.count() > 0)
    await asyncio.sleep(_SETTLES_S)  # it loads modules ahead meanwhile
    before, started = time.process_time(), time.perf_counter()
    await asyncio.sleep(_WATCH_S)
    return {"percent": (time.process_time() - before) / (time.perf_counter() - started) * 100}


async def wakes(open: OpenWindow, url: str, workspace: str) -> Measured:
    """Wake-ups per second of window, engine and watchdog while a task waits for a person, with its tab active."""
    await _begin(open, url, workspace, approve="ask")
    open.window.tabs.open(open.stores.tasks.running()[0].conversation_id)
    open.front.composer.setFocus()
    await _until(lambda: open.front.store.task is not None and open.front.store.task.activity.status == "waiting_user")
    await asyncio.sleep(_COMES_TO_REST_S)
    engine = psutil.Process(read_endpoint(Paths(Path(os.environ["ERRAND_HOME"]))).pid)
    theirs = [engine, *engine.children()]
    before = [sum(map(_switches, theirs)), _switches(psutil.Process())]
    await asyncio.sleep(_WATCH_S)
    after = [sum(map(_switches, theirs)), _switches(psutil.Process())]
    engine_s, window_s = ((late - early) / _WATCH_S for early, late in zip(before, after, strict=True))
    return {"engine": engine_s, "window": window_s}


def _switches(process: psutil.Process) -> int:
    """The number of times its threads went to sleep, which equals the number of wake-ups."""
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    lines = [line for thread in threads for line in (thread / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


async def streams(open: OpenWindow, url: str, workspace: str) -> Measured:
    """The delay of a 4 ms timer while 20 tasks stream."""
    for _ in range(_STREAMS):
        await _begin(open, url, workspace)
    open.window.tabs.open(open.stores.tasks.running()[0].conversation_id)
    await _until(lambda: open.front.store.count() > 1)
    beats: list[float] = []
    timer = QTimer(timerType=Qt.TimerType.PreciseTimer, interval=_BEAT_MS)
    timer.timeout.connect(lambda: beats.append(time.perf_counter()))
    await asyncio.sleep(1.0)
    before = time.process_time()
    timer.start()
    await asyncio.sleep(_WATCH_S)
    timer.stop()
    late = [(later - sooner) * 1000 - _BEAT_MS for sooner, later in itertools.pairwise(beats)]
    cpu = (time.process_time() - before) / _WATCH_S * 100
    return {"p99": p99(late), "max": max(late), "cpu": cpu, "running": len(open.stores.tasks.running())}


async def stop(open: OpenWindow, url: str, workspace: str) -> Measured:
    """The time from the click until button and status line show the stop."""
    await _begin(open, url, workspace)
    open.window.tabs.open(open.stores.tasks.running()[0].conversation_id)
    await _until(lambda: open.front.composer.mode == "stop" and _runs_a_tool(open))
    started = time.perf_counter()
    QTest.mouseClick(open.front.composer.button, Qt.MouseButton.LeftButton)
    await _until(lambda: open.front.composer.mode != "stop")
    stopping = time.perf_counter() - started
    await _until(lambda: not open.stores.tasks.running() and open.front.composer.mode == "send")
    return {"stopping": stopping * 1000, "stopped": (time.perf_counter() - started) * 1000}


async def opens(open: OpenWindow) -> Measured:
    """The time until settings are painted with their values, and until the picker of 2,000 models is painted.

    The first time, the median of the times after it, and the CPU time of the first. Its modules are not imported here:
    the window does that.
    """
    await asyncio.sleep(_PREPARES_S)
    settings, pickers, busy = list[float](), list[float](), list[float]()
    for _ in range(_OPENINGS):
        started, used = time.perf_counter(), time.process_time()
        open.window.commands.trigger("settings")
        from errand.window.views.settings.engine_settings_page import EngineSettingsPageView  # it is loaded by now

        dialog = open.window.dialogs.settings
        (page,) = dialog.findChildren(EngineSettingsPageView)
        await _until(lambda page=page: page.is_loaded, every_s=_SELDOM_S)
        dialog.grab()
        busy.append((time.process_time() - used) * 1000)
        settings.append((time.perf_counter() - started) * 1000)
        dialog.close()
        await asyncio.sleep(_PAUSE_S)
    models = tuple(_model(number) for number in range(_MODELS))
    providers = tuple((f"maker{number}", f"Maker {number}") for number in range(_MAKERS))
    options = open.front.input_panel.task_options
    offered = TaskOptionDefaults(models=models, model=models[_MODELS // 2].id, providers=providers)
    for _ in range(_OPENINGS):
        options.set_defaults(offered)  # what the engine has told meanwhile is replaced
        started = time.perf_counter()
        options.pick_model()
        picker = next(dialog for dialog in options.findChildren(QDialog) if dialog.isVisible())
        picker.grab()
        pickers.append((time.perf_counter() - started) * 1000)
        picker.close()
        await asyncio.sleep(_PAUSE_S)
    return {
        "settings_first": settings[0],
        "settings_first_cpu": busy[0],
        "settings": median(settings[1:]),
        "picker_first": pickers[0],
        "picker": median(pickers[1:]),
    }


def _model(number: int) -> Model:
    name, provider = f"family-{number // 20}-{number % 20}b", f"maker{number % _MAKERS}"
    return Model(id=f"{provider}/{name}", provider=provider, context_tokens=128_000, input_price=0.5, output_price=2.0)


def _runs_a_tool(open: OpenWindow) -> bool:
    task = open.front.store.task
    return task is not None and task.activity.status == "tool_executing"


async def _until(holds: Callable[[], bool], every_s: float = 0.001) -> None:
    """Qt and asyncio share a loop here, as in the real window."""
    async with asyncio.timeout(_TASK_TIMEOUT_S):
        while not holds():  # noqa: ASYNC110 - Qt's signals set no event of ours
            await asyncio.sleep(every_s)


async def _begin(open: OpenWindow, url: str, workspace: str, approve: ApproveMode = "all") -> None:
    many = len(open.stores.tasks.running())
    params = TaskStartParams(
        prompt="go",
        model="openai_compatible/bench",
        api_base=url,
        api_key="none",
        workspace=workspace,
        approve=approve,
    )
    await open.stores.session.call(TASK_START, params)
    await _until(lambda: len(open.stores.tasks.running()) > many)


_STORIES: dict[str, Callable[..., Awaitable[Measured]]] = {
    "usable": usable,
    "memory": memory,
    "theme": theme,
    "idle": idle,
    "wakes": wakes,
    "streams": streams,
    "stop": stop,
    "opens": opens,
}


async def _run(application: QApplication, story: str, arguments: list[str]) -> None:
    async with open_window(application, Path(os.environ["ERRAND_HOME"])) as opened:
        listed: list[bool] = []
        opened.stores.conversations.reset.connect(lambda: listed.append(True))
        await _until(lambda: bool(listed) and opened.stores.session.state == "ready")
        measured = await _STORIES[story](opened, *arguments)
    sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")


def main() -> None:
    application = QApplication(["errand"])
    application.setQuitOnLastWindowClosed(False)
    run_event_loop(application, _run(application, sys.argv[1], sys.argv[2:]))


if __name__ == "__main__":
    main()
