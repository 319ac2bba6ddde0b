"""The tool `browser`: pages in a real browser, in one window for each conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, assert_never
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Image, Text
from errand.engine.tools.arguments import decode, renamed, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.browser.installed import find_browser, has_own_sandbox, problem
from errand.engine.tools.browser.process import BrowserProcess
from errand.engine.tools.browser.session import TOOL, BrowserSession, same_place
from errand.engine.tools.browser.window import BrowserWindow, PageFailed, Picture, Wait
from errand.engine.tools.cancellation import until_cancelled
from errand.engine.tools.context import ToolContext
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, hidden
from errand.engine.tools.web.fetch import PAGE_LENGTH, completed, data_notice, shared_localhost
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay, ToolKind
from errand.text.translation import marked

Action = Literal[
    "navigate", "extract_text", "extract_html", "snapshot", "screenshot", "click", "fill", "evaluate", "close"
]

# A value of a script up to this length is shown in the line of the call.
_SHORT_VALUE = 60
# Of the text that navigate shows.
_BEGINNING = 3_000
_OTHER_NAMES = {
    "expression": "script",
    "javascript": "script",
    "code": "script",
    "value": "text",
    "ref": "selector",
    "element": "selector",
    "waitFor": "wait_for",
    "wait_until": "wait_for",
    "fullPage": "full_page",
}
_OTHER_ACTIONS = {"goto": "navigate", "open": "navigate", "type": "fill", "accessibility_tree": "snapshot"}
_WAITS: dict[str, Wait] = {
    "load": "load",
    "domcontentloaded": "domcontentloaded",
    "networkidle": "networkidle",
    "networkidle0": "networkidle",
    "networkidle2": "networkidle",
    "commit": "commit",
    "none": "commit",
}
_DISPLAYS: dict[str, tuple[str, str, ToolKind]] = {
    "navigate": (marked("opening"), marked("opened"), "fetch"),
    "extract_text": (marked("reading the page"), marked("read the page"), "read"),
    "extract_html": (marked("reading the source of the page"), marked("read the source of the page"), "read"),
    "snapshot": (marked("looking at the elements of the page"), marked("looked at the elements of the page"), "read"),
    "screenshot": (marked("taking a picture of the page"), marked("took a picture of the page"), "read"),
    "click": (marked("clicking"), marked("clicked"), "execute"),
    "fill": (marked("filling in"), marked("filled in"), "execute"),
    "evaluate": (marked("running a script in the page"), marked("ran a script in the page"), "execute"),
    "close": (marked("closing the page"), marked("closed the page"), "other"),
}


class BrowserArguments(Struct, frozen=True):
    action: Annotated[
        Action,
        Meta(
            description="navigate: open url. extract_text, extract_html: what the page shows, or its source. snapshot: "
            "the accessibility tree, with references such as e5. screenshot: a picture. click, fill: use an element. "
            "evaluate: the value of a script. close: close the page."
        ),
    ]
    url: Annotated[str, Meta(description="navigate: http or https.")] = ""
    wait_for: Annotated[
        str,
        Meta(description="navigate: load, domcontentloaded, networkidle, or a CSS selector that must appear."),
    ] = "load"
    selector: Annotated[
        str,
        Meta(
            description="click, fill: a reference (e5), a CSS selector, or the text or label of the element. "
            "extract_*: only this element."
        ),
    ] = ""
    text: Annotated[str, Meta(description="fill: it may be empty.")] | UnsetType = UNSET
    script: Annotated[str, Meta(description="evaluate: a JavaScript expression, or a function to call.")] = ""
    full_page: Annotated[bool, Meta(description="screenshot: the whole page.")] = False
    start: Annotated[int, Meta(ge=0, description="extract_*, snapshot: character to begin at.")] = 0


class Browser:
    name = TOOL
    label = "Browser"
    description = (
        "Use web pages in a real browser, with scripts: for pages that need them, and to try out what you build. One "
        "page stays open between calls. Pages of this machine are open; for other hosts the person is asked, and what "
        "a page loads from hosts that are not open is left out. Downloads are refused."
    )
    parameters = schema_of(BrowserArguments)
    tier: PermissionTier = "run"
    activity = marked("using the browser")
    execution_mode: ExecutionMode = "sequential"

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._allowed: dict[str, Access] = {}

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared = renamed({key: value for key, value in arguments.items() if value is not None}, _OTHER_NAMES)
        action = prepared.get("action")
        if isinstance(action, str):
            prepared["action"] = _OTHER_ACTIONS.get(action, action)
        if isinstance(url := prepared.get("url"), str):
            prepared["url"] = completed(url)
        return prepared

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        action = text_argument(arguments, "action")
        running, done, kind = _DISPLAYS.get(action, (f"browser {action}", f"browser {action}", "other"))
        target = text_argument(arguments, "url" if action == "navigate" else "selector")
        content = "script" if action == "evaluate" else ""
        return CallDisplay(kind=kind, running=running, done=done, target=target, icon="globe", content=content)

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, BrowserArguments)
        match request.action:
            case "navigate":
                return Access("read", f"Open {request.url}", address=request.url, operation="navigate")
            case "click" | "fill":
                url = self._page_url()
                return Access("write", _text_of(request, url), address=url, operation=request.action)
            case "evaluate":
                if not request.script.strip():
                    raise ToolError("evaluate needs `script`, a JavaScript expression.")
                url = self._page_url()
                return Access(
                    "run",
                    _text_of(request, url),
                    address=url,
                    code=request.script,
                    language="JavaScript",
                    preview=request.script,
                    operation=request.action,
                )
            case "extract_text" | "extract_html" | "snapshot" | "screenshot" | "close":
                return Access("free", f"{request.action} of the page")
            case _:
                assert_never(request.action)

    def allow(self, call_id: str, access: Access) -> None:
        self._allowed[call_id] = access

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, BrowserArguments)
        allowed = self._allowed.pop(call_id, None)
        if cancel.is_set:
            raise ToolError("Operation aborted")
        if request.action == "close":
            await self._context.sessions.close(BrowserSession)
            return ToolResult((Text("The page is closed."),))
        program = find_browser(
            self._context.environment.get("ERRAND_BROWSER", ""), self._context.environment.get("PATH", "")
        )
        missing = problem(program)
        if missing is not None or program is None:
            raise ToolError(missing or "", "no browser")
        session = self._session(request)
        begin = partial(self._judge, request, session, allowed)
        needs_page = request.action != "navigate"
        work = session.use(program, begin, partial(self._act, request, session), needs_page=needs_page)
        return hidden(await until_cancelled(work, cancel), self._context.redactor)

    def _judge(self, request: BrowserArguments, session: BrowserSession, allowed: Access | None) -> None:
        """The page may have gone elsewhere since the call was allowed, by itself or by a call of another agent."""
        approved = allowed.address if allowed is not None else ""
        session.follow(self._context.addresses, approved, request.action == "navigate")
        if request.action == "navigate":
            url = request.url
        elif request.action in ("click", "fill", "evaluate"):
            url = session.url
            if allowed is not None and not same_place(allowed.address, url):
                raise ToolError(f"The page has gone to {url[:500]} meanwhile. Look at it, and decide again.")
        else:
            return
        if (refused := session.refusal(url)) is not None:
            raise ToolError(f"{url[:500]} is not open: {refused}.", "not open")

    def _page_url(self) -> str:
        session = self._context.sessions.find(BrowserSession)
        if session is None or not session.url:
            raise ToolError("No page is open. Navigate to one first.", "no page")
        return session.url

    def _session(self, request: BrowserArguments) -> BrowserSession:
        sessions = self._context.sessions
        if request.action != "navigate":
            self._page_url()
        process = sessions.of_engine(BrowserProcess, BrowserProcess)

        def close_idle() -> None:
            closing = asyncio.ensure_future(sessions.close(BrowserSession))
            _closing.add(closing)
            closing.add_done_callback(_closing.discard)

        return sessions.get(BrowserSession, lambda: BrowserSession(process, shared_localhost(sessions), close_idle))

    async def _act(self, request: BrowserArguments, session: BrowserSession, window: BrowserWindow) -> ToolResult:
        match request.action:
            case "navigate":
                return await _navigate(request, session, window)
            case "extract_text":
                return _part(request, await self._found(session, request, window.text), session, window)
            case "extract_html":
                return _part(request, await self._found(session, request, window.html), session, window)
            case "snapshot":
                return _part(request, await window.tree(), session, window)
            case "screenshot":
                return _pictured(await window.picture(is_whole=request.full_page), session, window)
            case "click" | "fill":
                return await self._use_element(request, session, window)
            case "evaluate":
                value = await window.evaluate(request.script)
                return _part(request, _as_text(value), session, window)
            case "close":
                raise AssertionError("it needs no window")
            case _:
                assert_never(request.action)

    async def _use_element(
        self, request: BrowserArguments, session: BrowserSession, window: BrowserWindow
    ) -> ToolResult:
        if not request.selector.strip():
            raise ToolError(f"{request.action} needs `selector`.")
        before = window.url
        if request.action == "click":
            await self._found(session, request, window.click)
            done = "Clicked"
        else:
            if request.text is UNSET:
                raise ToolError("fill needs `text`; it may be empty.")
            await self._found(session, request, partial(window.fill, text=request.text))
            done = "Filled in"
        moved = f" The page is now {window.url}." if window.url != before else ""
        return _result(f"{done} {request.selector[:200]}.{moved}", session, window)

    async def _found(
        self, session: BrowserSession, request: BrowserArguments, use: Callable[[str], Awaitable[str | None]]
    ) -> str:
        try:
            return await use(request.selector) or ""
        except PageFailed as failed:
            if failed.kind != "failed" or not request.selector:
                raise
            similar = await session.similar(request.selector)
            listed = "\n".join(f"- {line}" for line in similar) or "(no buttons, links or fields)"
            raise ToolError(f"{failed}\nWhat there is:\n{listed}", "element not found") from failed


# Idle sessions that are being closed.
_closing: set["asyncio.Future[None]"] = set()


async def _navigate(request: BrowserArguments, session: BrowserSession, window: BrowserWindow) -> ToolResult:
    session.take_notes()
    wait = _WAITS.get(request.wait_for.strip().lower() or "load")
    try:
        status, answer_of_proxy = await window.go_to(request.url, wait or "load")
    except PageFailed as failed:
        if failed.kind != "failed":
            raise
        await window.drop()
        raise _not_opened(request.url, str(failed), session) from failed
    if answer_of_proxy:
        text = await window.text("")
        await window.drop()
        raise (
            _led_away(request.url, session) if answer_of_proxy == "refused" else ToolError(text.strip(), "not reached")
        )
    if wait is None:
        await window.wait_for(request.wait_for)
    title, text = await window.title(), await window.text("")
    beginning = text[:_BEGINNING]
    more = f"\n[{len(text) - _BEGINNING:,} more characters: extract_text]" if len(text) > _BEGINNING else ""
    head = f"HTTP {status}. " if status >= 400 else ""
    host = urlsplit(window.url).netloc
    return _result(
        f"{head}Title: {title[:500]}\n\n{beginning}{more}", session, window, title[:80] or host, status >= 400
    )


def _not_opened(url: str, text: str, session: BrowserSession) -> ToolError:
    if "ERR_TUNNEL_CONNECTION_FAILED" in text:
        return _led_away(url, session)
    if "Download is starting" in text:
        return ToolError(
            f"{url} is a file to download, which the browser does not do. Use web_fetch for text, or a command "
            "(curl -fLO).",
            "a download",
        )
    reason = text.partition("net::")[2].partition(" ")[0] or text
    return ToolError(f"{url} was not opened: {reason}.", reason[:80])


def _led_away(url: str, session: BrowserSession) -> ToolError:
    blocked_host = session.last_blocked
    if not blocked_host:
        return ToolError(f"{url} was not opened: the server does not answer.", "not reached")
    host = blocked_host.rpartition(":")[0]
    reason = session.blocked_reason(host) or "the connection was refused"
    if host == urlsplit(url).hostname:
        return ToolError(f"{url} was not opened: {reason}.", "not open")
    return ToolError(
        f"{url} leads to {blocked_host}, which is not open: {reason}. If it should be opened, navigate to that "
        "address: then the person is asked.",
        f"leads to {host}",
    )


def _text_of(request: BrowserArguments, url: str) -> str:
    host = urlsplit(url).netloc
    match request.action:
        case "click":
            return f"Click {request.selector[:200]} on {host}"
        case "fill":
            return f"Fill in {request.selector[:200]} on {host}"
        case _:
            return f"Run a script in the page of {host}"


def _part(request: BrowserArguments, text: str, session: BrowserSession, window: BrowserWindow) -> ToolResult:
    total, part = len(text), text[request.start : request.start + PAGE_LENGTH]
    if request.start and request.start >= total:
        raise ToolError(f"start {request.start:,} is past the end: there are {total:,} characters.")
    end = request.start + len(part)
    more = f"\n[characters {request.start:,} to {end:,} of {total:,}; for more use start {end}]" if end < total else ""
    is_short = request.action == "evaluate" and total <= _SHORT_VALUE and "\n" not in text
    summary = text or "nothing" if is_short else f"{total:,} characters"
    return _result(f"{part or '(nothing)'}{more}", session, window, summary)


def _pictured(picture: Picture, session: BrowserSession, window: BrowserWindow) -> ToolResult:
    cut = " Only the beginning of the page is in it." if picture.is_cut else ""
    host = urlsplit(window.url).netloc
    size = f"{picture.width} × {picture.height}"
    result = _result(f"A picture of the page, {size} pixels.{cut}", session, window, size)
    image = Image(picture.media_type, picture.data, name=f"{host or 'page'}.{picture.media_type.rpartition('/')[2]}")
    return replace(result, content=(*result.content, image))


def _result(
    text: str, session: BrowserSession, window: BrowserWindow, summary: str = "", is_error: bool = False
) -> ToolResult:
    notes = [f"[{note}]" for note in session.take_notes()]
    combined = "\n".join([data_notice(window.url or "no page"), text, *notes])
    cleaned = without_hidden(clean_output(combined.encode("utf-8", "replace")))
    details: JsonObject = {"url": window.url, "sandbox": has_own_sandbox()}
    return ToolResult((Text(cleaned),), details, summary, is_error=is_error)


def _as_text(value: object) -> str:
    try:
        return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (TypeError, ValueError, RecursionError):  # dates and the like
        return str(value)
