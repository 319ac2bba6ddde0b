"""A server on the web, by streamable HTTP: each message is a POST; answers come as JSON or as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from errand.engine.core.errors import EngineError
from errand.engine.core.json_input.foreign_json import size_text
from errand.engine.core.outgoing import UnusableRoute, proxy_of, tls_context
from errand.engine.tools.mcp.json_rpc import McpError, RpcPeer
from errand.engine.tools.mcp.lines import MAX_MESSAGE_BYTES, EndlessLine, LineBuffer, LongLine
from errand.engine.tools.mcp.login.discovery import Challenge, parse_challenge
from errand.engine.tools.mcp.server_log import ServerLog
from errand.engine.tools.web.download import cause_of

if TYPE_CHECKING:
    import aiohttp

_CONNECT_S = 15.0
_NOTICE_S = 10.0
_LAST_S = 1.0
# Before the stream of the server's own messages is opened again.
_LISTEN_AGAIN_S = 5.0
_MAX_EXCERPT_LENGTH = 300
_BOTH = "application/json, text/event-stream"
_EVENTS = "text/event-stream"
_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"


class LoginNeeded(McpError):
    """The server wants a sign-in (`status` 401), or one with more rights. `challenge` says where and for what."""

    def __init__(self, text: str, challenge: Challenge, status: int) -> None:
        super().__init__(text)
        self.challenge = challenge
        self.status = status


class HttpTransport:
    """One session with a server. `ended` is called once, if the session is over.

    `token_of` gives the token of the person's sign-in, empty without one; it is called with a token that the server
    refused, for another one.
    """

    pid: int | None = None

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        failed: Callable[[McpError, int | None], None],
        ended: Callable[[str], None],
        log: ServerLog,
        token_of: Callable[[str], Awaitable[str]],
        ca_file: str,
    ) -> None:
        self._url = url
        self._ca_file = ca_file
        self._token_of = token_of
        # The newest one; the end of the session is told with it.
        self._token = ""
        self._headers = dict(headers)
        self._peer: RpcPeer | None = None
        self._failed = failed
        self._ended = ended
        self._log = log
        self._session: aiohttp.ClientSession | None = None
        self._session_id = ""
        self._version = ""
        self._posts: dict[int, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        # A request must not overtake a notification.
        self._notice: asyncio.Task[None] | None = None
        self._is_over = False

    def deliver_to(self, peer: RpcPeer) -> None:
        """Must be called before `open`."""
        self._peer = peer

    def open(self) -> None:
        """Must be called in the event loop, before the first message. Raises `McpError` if no request can leave."""
        import aiohttp

        try:
            tls, proxy = tls_context(self._ca_file), proxy_of(self._url)
        except UnusableRoute as error:
            raise McpError(str(error)) from error
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(ssl=tls),
            proxy=proxy,
        )

    def use_version(self, version: str) -> None:
        """After the handshake: name the version in each request, and listen to the server's own messages."""
        self._version = version
        self._spawn(self._listen())

    def send(self, data: bytes, request_id: int | None) -> None:
        if self._session is None or self._is_over:
            return
        task = self._spawn(self._post(data, request_id))
        if request_id is None:
            self._notice = task
        else:
            self._posts[request_id] = task
            task.add_done_callback(lambda _: self._posts.pop(request_id, None))

    def forget(self, request_id: int) -> None:
        if (task := self._posts.pop(request_id, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        """End the session at the server too."""
        self._is_over = True
        for task in tuple(self._others):
            task.cancel()
        if self._others:
            await asyncio.wait(tuple(self._others))
        session, self._session = self._session, None
        if session is None:
            return
        if self._session_id:
            with suppress(OSError, TimeoutError, *_client_errors()):
                async with asyncio.timeout(_LAST_S), session.delete(self._url, headers=self._all_headers(self._token)):
                    pass
        await session.close()

    async def _post(self, data: bytes, request_id: int | None) -> None:
        assert self._session is not None
        notice = self._notice
        if request_id is not None and notice is not None and not notice.done():
            await asyncio.wait((notice,), timeout=_NOTICE_S)
        try:
            token = self._token = await self._token_of("")
            refusal = await self._posted(data, request_id, token)
            if refusal is not None and refusal.status == 401 and token and (renewed := await self._token_of(token)):
                self._token = renewed
                refusal = await self._posted(data, request_id, renewed)
            if refusal is not None:
                raise refusal
        except McpError as error:
            self._failed(error, request_id)
        except EngineError as error:
            self._failed(McpError(str(error)), request_id)
        except (OSError, TimeoutError, ValueError, *_client_errors()) as error:
            self._failed(McpError(f"It could not be reached: {cause_of(error)}."), request_id)

    async def _posted(self, data: bytes, request_id: int | None, token: str) -> LoginNeeded | None:
        """Send a message and take the answer; returns the refusal of a server that wants a sign-in."""
        assert self._session is not None
        headers = {**self._all_headers(token), "Content-Type": "application/json", "Accept": _BOTH}
        async with self._session.post(self._url, data=data, headers=headers, allow_redirects=False) as response:
            if response.status in (401, 403):
                return _refusal(response, has_token=bool(token))
            await self._answered(response, request_id)
            return None

    async def _answered(self, response: "aiohttp.ClientResponse", request_id: int | None) -> None:
        if response.status == 404 and self._session_id:
            self._end("its session is over")
            return
        if response.status >= 300:
            text = (await _body(response, 4_096)).decode("utf-8", "replace")
            raise McpError(
                f"It answered with {response.status} {response.reason}: {text[:_MAX_EXCERPT_LENGTH]}".rstrip(": ")
            )
        self._session_id = response.headers.get(_SESSION, "")[:500] or self._session_id
        if response.content_type == _EVENTS:
            async for event in _events(response):
                await self._take(event)
        elif body := await _body(response, MAX_MESSAGE_BYTES):
            await self._take(body)
        if request_id is not None:  # an answer that came has settled it already
            self._failed(McpError("It ended its answer without the result."), request_id)

    async def _listen(self) -> None:
        """Receive the server's own messages, if it has a stream for them."""
        while self._session is not None and not self._is_over:
            try:
                token = await self._token_of("")
                headers = {**self._all_headers(token), "Accept": _EVENTS}
                async with self._session.get(self._url, headers=headers, allow_redirects=False) as response:
                    if response.status != 200 or response.content_type != _EVENTS:
                        return
                    async for event in _events(response):
                        await self._take(event)
            except (OSError, TimeoutError, ValueError, EngineError, *_client_errors()) as error:
                self._log.note(f"the stream of its own messages was cut: {error or type(error).__name__}")
            await asyncio.sleep(_LISTEN_AGAIN_S)

    async def _take(self, message: bytes | LongLine) -> None:
        if self._is_over or self._peer is None:
            return
        if isinstance(message, LongLine):
            self._peer.refuse(message.head, message.tail, size_text(MAX_MESSAGE_BYTES))
        else:
            await self._peer.receive(message)

    def _end(self, why: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._ended(why)

    def _all_headers(self, token: str) -> dict[str, str]:
        session = {_SESSION: self._session_id} if self._session_id else {}
        login = {"Authorization": f"Bearer {token}"} if token else {}
        return {**self._headers, **login, **session, **({_VERSION: self._version} if self._version else {})}

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=f"MCP request to {self._url}")
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task


def _refusal(response: "aiohttp.ClientResponse", *, has_token: bool) -> LoginNeeded:
    """Return what a refusal means. Raises `McpError` if another sign-in would not help."""
    challenge = parse_challenge(response.headers.getall("WWW-Authenticate", []))
    if response.status == 403 and has_token and challenge.error != "insufficient_scope":
        raise McpError("It refused with 403: what you signed in as has no right to this there.")
    return LoginNeeded(f"It refused with {response.status}.", challenge, response.status)


def _client_errors() -> tuple[type[Exception], ...]:
    import aiohttp

    return (aiohttp.ClientError,)


async def _body(response: "aiohttp.ClientResponse", most: int) -> bytes:
    body = bytearray()
    while piece := await response.content.readany():
        body += piece
        if len(body) > most:
            raise McpError(f"It sent more than {most:,} bytes.")
    return bytes(body)


async def _events(response: "aiohttp.ClientResponse") -> AsyncGenerator[bytes | LongLine]:
    """Yield the data of each server-sent event."""
    lines, event = LineBuffer(), _Event()
    while piece := await response.content.readany():
        try:
            for line in lines.feed(piece):
                if (data := event.add(line)) is not None:
                    yield data
        except EndlessLine as problem:
            raise McpError(f"{str(problem).capitalize()}.") from problem


class _Event:
    """Joins the lines of an event, within the bounds of a message."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_empty = True
        self._long: LongLine | None = None

    def add(self, line: bytes | LongLine) -> bytes | LongLine | None:
        """Take a line; returns the data of the event that it ends."""
        if isinstance(line, LongLine):
            self._long = LongLine(_data_of(line.head), line.tail)
            return None
        text = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
        if text.startswith(b"data:"):
            self._put(_data_of(text))
            return None
        return None if text else self._completed()

    def _put(self, data: bytes) -> None:
        self._data += data if self._is_empty else b"\n" + data
        self._is_empty = False
        if len(self._data) > MAX_MESSAGE_BYTES:
            self._long = self._long or LongLine(bytes(self._data[:_MAX_EXCERPT_LENGTH]), b"")
            self._data = bytearray()

    def _completed(self) -> bytes | LongLine | None:
        result = self._long or (None if self._is_empty else bytes(self._data))
        self._data, self._is_empty, self._long = bytearray(), True, None
        return result


def _data_of(line: bytes) -> bytes:
    return line.removeprefix(b"data:").removeprefix(b" ")
