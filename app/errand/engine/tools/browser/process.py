"""The browser process.

Playwright runs a program of its own that starts the browser. Both carry our marks, so that a sweep, or the watchdog
after the engine's death, finds all their processes.
"""

import asyncio
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errand.engine.core.ids import new_id
from errand.engine.tools.browser.installed import has_own_sandbox
from errand.engine.tools.browser.playwright_start import load_playwright, start_playwright
from errand.engine.tools.browser.window import CLOSE_S, BrowserWindow, PageFailed, errors, first_line, translated
from errand.engine.tools.processes import marks
from errand.engine.tools.processes.termination import ProcessSweep, adopt_orphans
from errand.engine.tools.results import ToolError
from errand.system.environment import without_secrets

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

_START_S = 20.0
_SIZE = {"width": 1280, "height": 800}
_FOLDER = "errand-browser-"
# Nothing listens there: what belongs to no window has no network.
_NOWHERE = "http://127.0.0.1:9"
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-pings",
    "--disable-domain-reliability",
    "--disable-breakpad",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class BrowserProcess:
    """The engine's one browser: it starts with the first window and ends with the last."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._running: _Running | None = None
        self._windows: set[BrowserWindow] = set()

    @property
    def is_empty(self) -> bool:
        """True without a page; it belongs to no conversation, and stays for the next one."""
        return not self._windows

    async def open(self, program: Path, proxy_port: int) -> BrowserWindow:
        """Return a window with nothing in common with others. Raises `ToolError` if the browser does not start."""
        async with self._lock:
            try:
                window = await self._open(program, proxy_port)
            except PageFailed:  # it was killed, which nobody has noticed yet
                await self._end()
                window = await self._open(program, proxy_port)
            self._windows.add(window)
            return window

    async def release(self, window: BrowserWindow) -> None:
        """Close a window; the browser ends with the last one."""
        self._windows.discard(window)
        async with self._lock:
            if self._windows:
                await window.close()
            else:
                await self._end()

    async def close(self) -> None:
        async with self._lock:
            self._windows.clear()
            await self._end()

    async def _open(self, program: Path, proxy_port: int) -> BrowserWindow:
        if self._running is None or not self._running.browser.is_connected():
            await self._end()
            self._running = await _start(program)
        async with translated(None):
            context = await self._running.browser.new_context(
                proxy={"server": f"http://127.0.0.1:{proxy_port}", "bypass": "<-loopback>"},
                service_workers="block",
                accept_downloads=False,
                viewport={"width": _SIZE["width"], "height": _SIZE["height"]},
            )
            return BrowserWindow(context)

    async def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.end()


@dataclass(frozen=True, slots=True)
class _Running:
    playwright: "Playwright"
    browser: "Browser"
    sweep: ProcessSweep
    folder: Path

    async def end(self) -> None:
        """Orderly if it answers, and in any case."""
        with suppress(*errors()):  # it may be gone, or hang
            async with asyncio.timeout(CLOSE_S):
                await self.browser.close()
                await self.playwright.stop()
        await self.sweep.end()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def _start(program: Path) -> _Running:
    adopt_orphans()
    await asyncio.to_thread(load_playwright)  # 0.3 s and more
    owner = new_id("browser")
    mark, sweep = marks.new_mark(owner), ProcessSweep(owner)
    folder = await asyncio.to_thread(_new_folder)
    folders = {name: str(folder) for name in ("TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    environment = {**without_secrets(os.environ), **folders, **mark.variables}
    try:
        async with asyncio.timeout(_START_S):
            playwright = await start_playwright(mark, environment, folder)
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=_ARGUMENTS,
                chromium_sandbox=has_own_sandbox(),
                env={**environment},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                proxy={"server": _NOWHERE},
            )
    except BaseException as error:
        await sweep.end()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if isinstance(error, Exception):
            raise ToolError(f"The browser {program} did not start: {first_line(error)}", "no browser") from error
        raise
    return _Running(playwright, browser, sweep, folder)


def _new_folder() -> Path:
    """Return a folder for profiles; those of engines that were killed are removed."""
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_FOLDER}*"):
        with suppress(OSError, ValueError, IndexError):
            pid = int(old.name.split("-")[2])
            if old.stat().st_uid == os.getuid() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
                shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
