"""The pages of one conversation, and what a tool does with them.

Playwright is known in this package alone, and loaded with the first page.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from errand.engine.sandbox.http_proxy import PROXY_HEADER
from errand.engine.tools.browser.runaway_pages import (
    MAX_RESTING_MOVES,
    MAX_RESTING_SHARE,
    RunawayPages,
    busy_share,
    lost_pages,
)
from errand.engine.tools.browser.selectors import located
from errand.protocol.base import JsonObject, JsonValue

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Page, Worker

Wait: TypeAlias = Literal["load", "domcontentloaded", "networkidle", "commit"]

CLOSE_S = 1.5
_LOAD_MS, _SETTLED_MS, _ACTION_MS, _SCRIPT_S = 30_000, 8_000, 8_000, 15.0
_SETTLE_MS = 100
_MAX_PAGES = 5
_MAX_NOTES = 20
# Larger pictures are scaled down by the models' providers.
_MAX_PICTURE_SIDE_PX = 1_568
_MAX_PICTURE_BYTES = 1_500_000
BUSY = "A script keeps the page busy without end, or its dialogs do."


class PageFailed(Exception):
    """An action did not succeed; the text is for the model. `kind` is `gone` if the page or the browser is lost."""

    def __init__(self, kind: Literal["failed", "late", "crashed", "gone"], text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Picture:
    data: str
    media_type: str
    width: int
    height: int
    is_cut: bool = False


@dataclass(eq=False)  # without slots: Playwright adds an attribute
class BrowserWindow:
    """The pages of one conversation; actions go to the newest. `notes` are the newest of what happened meanwhile.

    `fault` says why the pages cannot be used any more, until they are dropped.
    """

    _context: "BrowserContext"
    notes: deque[str] = field(default_factory=lambda: deque[str](maxlen=_MAX_NOTES))
    url: str = ""
    fault: str = ""
    is_closed: bool = False
    _pages: list["Page"] = field(default_factory=list["Page"])
    _last: "Page | None" = None
    runaway: RunawayPages = field(default_factory=RunawayPages)

    def __post_init__(self) -> None:
        self._context.on("page", self._on_page)
        self._context.on("close", self._on_close)

    @property
    def has_another_page(self) -> bool:
        """True if the page of the last action was closed, and the one before it is the page again."""
        return bool(self._pages) and not self.is_closed and self._pages[-1] is not self._last

    async def close(self) -> None:
        self.is_closed = True
        with suppress(*errors()):  # the browser may be gone, or hang: its end follows
            async with asyncio.timeout(CLOSE_S):
                await self._context.close()

    async def go_to(self, url: str, wait: Wait) -> tuple[int, str]:
        """Return the HTTP status, 0 if there is none, and the proxy's word if the answer is its own."""
        async with self._page() as page:
            first = "commit" if wait == "commit" else "domcontentloaded"
            response = await page.goto(url, wait_until=first, timeout=_LOAD_MS)
            if wait in ("load", "networkidle"):
                # Many pages never load the last of their parts; a headless Chromium may even forget one.
                try:
                    await page.wait_for_load_state(wait, timeout=_SETTLED_MS)
                except _late():
                    left = "its network was not idle" if wait == "networkidle" else "not all of it had loaded"
                    self.notes.append(f"{left} within {_SETTLED_MS / 1000:g} s")
            status = response.status if response is not None else 0
            return status, response.headers.get(PROXY_HEADER, "") if response is not None else ""

    async def wait_for(self, selector: str) -> None:
        async with self._page() as page:
            await page.locator(selector).first.wait_for(timeout=_ACTION_MS)

    async def title(self) -> str:
        async with self._page() as page:
            return await page.title()

    async def text(self, selector: str) -> str:
        async with self._page() as page:
            element = await located(page, selector or "body", is_field=False)
            return await element.inner_text(timeout=_ACTION_MS) if element is not None else _missing(selector)

    async def html(self, selector: str) -> str:
        async with self._page() as page:
            if not selector:
                return await page.content()
            element = await located(page, selector, is_field=False)
            if element is None:
                return _missing(selector)
            return str(await element.evaluate("element => element.outerHTML", timeout=_ACTION_MS))

    async def tree(self) -> str:
        """Return the accessibility tree as text, with a reference for each element."""
        async with self._page() as page:
            return await page.aria_snapshot(mode="ai", timeout=_ACTION_MS)

    async def click(self, selector: str) -> None:
        async with self._page() as page:
            element = await located(page, selector, is_field=False)
            if element is None:
                _missing(selector)
            else:
                await element.click(timeout=_ACTION_MS)
                with suppress(_late()):  # a click may open a window, and need not load anything
                    await self._context.wait_for_event("page", timeout=_SETTLE_MS)
                if self._pages:
                    with suppress(*errors()):  # it may have closed its window
                        await self._pages[-1].wait_for_load_state("load", timeout=_ACTION_MS)

    async def fill(self, selector: str, text: str) -> None:
        async with self._page() as page:
            element = await located(page, selector, is_field=True)
            if element is None:
                _missing(selector)
            else:
                await element.fill(text, timeout=_ACTION_MS)

    async def evaluate(self, script: str) -> JsonValue:
        async with self._page() as page, asyncio.timeout(_SCRIPT_S):
            return await page.evaluate(script)

    async def picture(self, *, is_whole: bool) -> Picture:
        async with self._page() as page:
            size = await page.evaluate(
                "() => [innerWidth, innerHeight, document.documentElement.scrollWidth, "
                "document.documentElement.scrollHeight, scrollX, scrollY]"
            )
            width, height, whole_width, whole_height, x, y = (max(0, int(number)) for number in size)
            if is_whole:
                x, y, width, height = 0, 0, whole_width, whole_height
            longest = 2 * _MAX_PICTURE_SIDE_PX
            visible_size = max(1, min(width, longest)), max(1, min(height, longest))
            scale = min(1.0, _MAX_PICTURE_SIDE_PX / max(visible_size))
            session = await page.context.new_cdp_session(page)
            clip: JsonObject = {"x": x, "y": y, "width": visible_size[0], "height": visible_size[1], "scale": scale}
            options: JsonObject = {"captureBeyondViewport": is_whole, "clip": clip}
            async with asyncio.timeout(_SCRIPT_S):
                data, kind = await _captured(session, {"format": "png", **options}), "image/png"
                if len(data) > _MAX_PICTURE_BYTES:
                    small: JsonObject = {"format": "jpeg", "quality": 80, **options}
                    data, kind = await _captured(session, small), "image/jpeg"
            await session.detach()
            is_cut = visible_size != (width, height)
            return Picture(data, kind, round(visible_size[0] * scale), round(visible_size[1] * scale), is_cut)

    async def answers(self) -> bool:
        """Return True unless a script keeps a page busy without end, or its dialogs do.

        Raises `PageFailed` without a page.
        """
        return await self._answer(self._pages)

    async def _answer(self, pages: "Sequence[Page | Worker]") -> bool:
        try:
            lost = await lost_pages(pages)
        except TimeoutError:
            return False
        if not self.fault and any(page in self._pages for page in lost):  # nobody has noticed yet
            raise PageFailed("gone", "The page was closed, or the browser ended.")
        return True

    async def is_at_rest(self) -> bool:
        """Return True unless a page or a worker is busy although nothing is asked of it."""
        workers = [worker for page in self._pages for worker in page.workers]
        if self.fault or not await self._answer([*self._pages, *workers]):
            return False
        runaway, before = self.runaway, self.runaway.moves
        shares = await asyncio.gather(*map(self._busy_share, self._pages))
        return max(shares, default=0.0) < MAX_RESTING_SHARE and runaway.moves - before <= MAX_RESTING_MOVES

    async def _busy_share(self, page: "Page") -> float:
        with suppress(*errors()):  # it was closed just now
            return await busy_share(await self._context.new_cdp_session(page))
        return 0.0

    async def end_busy(self) -> None:
        """Close the pages if a script keeps one busy without end: what waits for it fails then."""
        with suppress(PageFailed):
            if not await self.answers():
                self.fault = self.fault or BUSY
                await self._close_pages()

    async def drop(self) -> None:
        """Close all pages at once, whatever runs in them; the next action finds a new one.

        A page that cannot be closed in time would block others of its site: then the window counts as closed.
        """
        pages, self._pages, self.url, self.fault = self._pages, [], "", ""
        self.runaway = RunawayPages()
        try:
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*(page.close() for page in pages), return_exceptions=True)
        except TimeoutError:
            self.is_closed = True

    @asynccontextmanager
    async def _page(self) -> AsyncGenerator["Page"]:
        async with translated(self):
            if not self._pages:
                await self._context.new_page()
                if not self._pages:
                    raise PageFailed("gone", "The page was closed.")
            self._last = self._pages[-1]
            try:
                yield self._last
            finally:
                if self._pages:
                    self.url = self._pages[-1].url

    def _on_page(self, page: "Page") -> None:
        if len(self._pages) >= _MAX_PAGES:
            self.notes.append("a new window was closed: there were too many")
            asyncio.ensure_future(page.close()).add_done_callback(_forget)
            self._check(self.runaway.is_over_by_window())
            return
        if self._pages:
            self.notes.append("a new window opened, which is now the page")
        self._pages.append(page)
        page.on("dialog", self._on_dialog)
        page.on("download", self._on_download)
        page.on("crash", self._on_crash)
        page.on("close", self._on_page_closed)
        page.on("framenavigated", lambda frame: self._on_moved(page, is_whole=frame.parent_frame is None))

    def _on_moved(self, page: "Page", *, is_whole: bool) -> None:
        self._check(is_whole and self.runaway.is_over_by_move())
        if self._pages and self._pages[-1] is page:
            self.url = page.url

    def _on_page_closed(self, page: "Page") -> None:
        if page in self._pages:
            self._pages.remove(page)
            self.url = self._pages[-1].url if self._pages else ""

    def _on_dialog(self, dialog: "Dialog") -> None:
        """Dismiss it, except the question whether to leave the page: that would hold every navigation up."""
        leaves = dialog.type == "beforeunload"
        done = "accepted" if leaves else "dismissed"
        self.notes.append(f"a dialog ({dialog.type}) was {done}: {dialog.message[:500]}")
        asyncio.ensure_future(dialog.accept() if leaves else dialog.dismiss()).add_done_callback(_forget)
        self._check(self.runaway.is_over_by_dialog())

    def _check(self, is_over: bool) -> None:
        if is_over and not self.fault:
            self.fault = "The page opened dialogs or windows, or went on to other pages, without end."
            asyncio.ensure_future(self._close_pages()).add_done_callback(_forget)

    async def _close_pages(self) -> None:
        """Make everything that waits for a page fail with the fault."""
        await asyncio.gather(*(page.close() for page in self._pages), return_exceptions=True)

    def _on_download(self, download: "Download") -> None:
        self.notes.append(f"a download was refused: {download.suggested_filename[:200]} from {download.url[:500]}")

    def _on_crash(self, page: "Page") -> None:
        self.fault = "The page crashed."

    def _on_close(self, context: "BrowserContext") -> None:
        self.is_closed = True


async def _captured(session: "CDPSession", options: JsonObject) -> str:
    """Return a picture of the page, in base64."""
    send = session.send  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- a bare Dict
    return str((await send("Page.captureScreenshot", options))["data"])  # pyright: ignore[reportUnknownArgumentType] -- a bare Dict


def _forget(done: "asyncio.Future[None]") -> None:
    if not done.cancelled():
        done.exception()


def _missing(selector: str) -> str:
    raise PageFailed("failed", f"Nothing on the page matches {selector[:200]}.")


@asynccontextmanager
async def translated(window: BrowserWindow | None) -> AsyncGenerator[None]:
    """Raises `PageFailed` for what Playwright raises."""
    try:
        yield
    except errors() as error:
        if window is not None and window.fault:
            raise PageFailed("crashed", window.fault) from error
        if window is None or window.is_closed or "closed" in type(error).__name__.lower():
            if window is not None and window.has_another_page:
                raise PageFailed("failed", f"The window was closed. The page is now {window.url}.") from error
            raise PageFailed("gone", "The page was closed, or the browser ended.") from error
        late = isinstance(error, (_late(), TimeoutError))
        raise PageFailed("late" if late else "failed", first_line(error)) from error


def errors() -> tuple[type[Exception], ...]:
    """Return what Playwright raises; this loads it."""
    from playwright.async_api import Error

    return Error, TimeoutError


def _late() -> type[Exception]:
    from playwright.async_api import TimeoutError as Late

    return Late


def first_line(error: BaseException) -> str:
    """Return what an error of Playwright says, without its log of calls."""
    text = str(error) or "it did not answer in time"
    lines = [line for line in text.partition("Call log:")[0].splitlines() if line.strip()]
    return " ".join(lines[:3])[:600]
