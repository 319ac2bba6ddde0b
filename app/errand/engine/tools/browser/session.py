"""The browser of one conversation: its window, its proxy, and what is open to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from errand.engine.sandbox.http_proxy import Dial, HttpProxy
from errand.engine.tools.browser.process import BrowserProcess
from errand.engine.tools.browser.selectors import similar_elements
from errand.engine.tools.browser.window import BUSY, BrowserWindow, PageFailed
from errand.engine.tools.context import AddressGuard
from errand.engine.tools.results import ToolError
from errand.engine.tools.sessions import RestingSession

T = TypeVar("T")

TOOL = "browser"
_IDLE_S = 600.0
# Of one call, whatever hangs.
_CALL_TIMEOUT_S = 90.0
# After so long it is looked whether the page still answers.
LOOK_S = 10.0
_SILENT = f"The page did not answer within {_CALL_TIMEOUT_S:g} s. It was closed; navigate again."
_MAX_LISTED, _MAX_BLOCKED = 5, 200
# Of a name in the domain name system.
_MAX_HOST_LENGTH = 253
_MAX_CONNECTIONS = 128
# What it would tell its maker, which is refused like the rest.
_OF_THE_BROWSER = frozenset(
    f"{name}.googleapis.com"
    for name in ("content-autofill", "optimizationguide-pa", "update", "safebrowsing", "chromewebstore")
) | {"clients2.google.com", "redirector.gvt1.com"}
_CLOSED = "The page was closed meanwhile. Navigate again."
_DROPPED = "It was closed; navigate again."
_GONE = "The page was closed, or the browser has ended. It starts again with the next call: navigate again."


class BrowserSession(RestingSession):
    """Made at the first call; `url` is that of the page, empty if there is none. May be read from any thread.

    `on_idle` is called when nothing was asked of it for some minutes.
    """

    def __init__(self, process: BrowserProcess, dial: Dial, on_idle: Callable[[], None]) -> None:
        self._process = process
        self._proxy = HttpProxy(self._judge, _MAX_CONNECTIONS, dial)
        self._port = 0
        self._on_idle = on_idle
        self._window: BrowserWindow | None = None
        self._guard: AddressGuard | None = None
        self._approved: tuple[str, ...] = ()
        self._blocked: dict[str, str] = {}
        self._lock = asyncio.Lock()
        self._user: asyncio.Task[object] | None = None
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_empty(self) -> bool:
        """Never: it closes itself when it is idle."""
        return False

    @property
    def url(self) -> str:
        url = self._window.url if self._window is not None and not self._window.is_closed else ""
        return url if url.startswith("http") else ""  # else it is empty, or shows an error

    async def close(self) -> None:
        """Break off what uses the page, and close it."""
        self._is_closed = True
        if self._user is not None:
            self._user.cancel()
        async with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            window, self._window = self._window, None
            await self._proxy.close()
            if window is not None:
                await self._process.release(window)

    async def rest(self) -> None:
        """Close a page that keeps the processor busy without end, or opens dialogs or windows without end."""
        async with self._lock:
            window = self._window
            with suppress(PageFailed):  # the next call finds it lost, too
                if window is not None and not await window.is_at_rest():
                    window.notes.append(window.fault or "the page was closed, as it kept the processor busy")
                    await self._drop()

    def follow(self, guard: AddressGuard, approved: str, is_elsewhere: bool) -> None:
        """The rules of the call that begins; an approval holds for the page until the next navigation.

        `approved` is the call's address, if the call was allowed. What a rule opens needs no approval.
        """
        self._guard = guard
        needs_approval = bool(approved) and guard.refusal(TOOL, approved) is not None
        if is_elsewhere or needs_approval:
            self._approved = (approved,) if needs_approval else ()

    def refusal(self, url: str) -> str | None:
        assert self._guard is not None
        return self._guard.refusal(TOOL, url, self._approved)

    async def use(
        self,
        program: Path,
        begin: Callable[[], None],
        action: Callable[[BrowserWindow], Awaitable[T]],
        *,
        needs_page: bool,
    ) -> T:
        """Run an action in the window, one at a time. If it is broken off, all that it began ends with the page.

        `begin` is called when nothing else uses the page any more; what it raises is raised. `needs_page`: the action
        is one in the page that is open, and is not run if that is gone or busy without end.
        """
        async with self._lock:
            if self._is_closed:
                raise ToolError(_CLOSED, "the page was closed")
            begin()
            self._user = asyncio.current_task()
            self._wait_for_idle()
            try:
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    window = await self._opened(program)
                    window.runaway.begin_call()
                    await self._drop_broken(window, needs_page=needs_page)
                    return await _watched(action, await self._opened(program))
            except TimeoutError as error:
                await self._drop()
                raise ToolError(_SILENT, "no answer in time") from error
            except PageFailed as failed:
                raise await self._explained(failed) from failed
            except asyncio.CancelledError:
                await self._drop()
                raise
            finally:
                self._user = None
                self._wait_for_idle()

    def take_notes(self) -> list[str]:
        """Return what happened since the last call, for the model."""
        notes = [
            f"not loaded from {blocked_host}: {reason}"
            for blocked_host, reason in [*self._blocked.items()][:_MAX_LISTED]
        ]
        if len(self._blocked) > _MAX_LISTED:
            notes.append(f"nor from {len(self._blocked) - _MAX_LISTED} other hosts")
        self._blocked.clear()
        if self._window is not None:
            notes = [*self._window.notes, *notes]
            self._window.notes.clear()
        return notes

    def blocked_reason(self, host: str) -> str | None:
        """Why the last connection to this host was refused, if it was."""
        return next((reason for address, reason in self._blocked.items() if address.rpartition(":")[0] == host), None)

    @property
    def last_blocked(self) -> str:
        return next(reversed(self._blocked), "")

    async def similar(self, named: str) -> list[str]:
        """Elements of the page that resemble what was not found."""
        with suppress(PageFailed):
            if self._window is not None:
                return await asyncio.to_thread(similar_elements, await self._window.tree(), named)
        return []

    def _wait_for_idle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._on_idle)

    async def _opened(self, program: Path) -> BrowserWindow:
        if self._window is not None and not self._window.is_closed:
            return self._window
        if self._window is not None:
            await self._process.release(self._window)
            self._window = None
        self._port = self._port or self._proxy.open()
        self._window = await self._process.open(program, self._port)
        return self._window

    async def _drop_broken(self, window: BrowserWindow, *, needs_page: bool) -> None:
        """Close the pages if they cannot be used. Raises `PageFailed` then, if the call needs one."""
        if not window.fault and await window.answers():
            if needs_page and not self.url:
                raise PageFailed("gone", _GONE)
            return
        fault = window.fault or BUSY
        await self._drop()
        if needs_page:
            raise PageFailed("failed", f"{fault} {_DROPPED}")

    async def _drop(self) -> None:
        """Close the pages, and the window with them if they do not end."""
        window = self._window
        if window is None:
            return
        await window.drop()
        if window.is_closed:
            self._window = None
            await self._process.release(window)

    async def _explained(self, failed: PageFailed) -> ToolError:
        window = self._window
        if failed.kind == "crashed" and window is not None:
            await self._drop()
            return ToolError(f"{failed} {_DROPPED}", "the page crashed" if "crashed" in str(failed) else "page closed")
        if failed.kind == "gone":
            if window is not None:
                self._window = None
                await self._process.release(window)
            return ToolError(_GONE, "the page was closed")
        if failed.kind == "late" and window is not None:
            await window.end_busy()
            if window.fault:
                await self._drop()
                return ToolError(f"{failed} {BUSY} {_DROPPED}", "took too long")
        return ToolError(str(failed), "took too long" if failed.kind == "late" else "")

    def _judge(self, host: str, port: int, addresses: Sequence[str]) -> str | None:
        if self._guard is None:
            return "no address is open"
        if len(host) > _MAX_HOST_LENGTH:
            return "its host is too long for a name"
        reason = self._guard.connection_refusal(TOOL, host, port, addresses, self._approved)
        if reason is not None and host not in _OF_THE_BROWSER:
            self._blocked.pop(f"{host}:{port}", None)
            self._blocked[f"{host}:{port}"] = reason
            if len(self._blocked) > _MAX_BLOCKED:
                del self._blocked[next(iter(self._blocked))]
        return reason


async def _watched(action: Callable[[BrowserWindow], Awaitable[T]], window: BrowserWindow) -> T:
    """Run an action; it fails if its page does not answer any more."""

    async def watch() -> None:
        while not window.fault:
            await asyncio.sleep(LOOK_S)
            await window.end_busy()

    watching = asyncio.create_task(watch(), name="watch of a page")
    try:
        return await action(window)
    finally:
        watching.cancel()


def same_place(url: str, other: str) -> bool:
    """Return True for two pages of one host and port."""
    first, second = urlsplit(url), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)
