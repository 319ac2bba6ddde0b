"""The process in which litellm runs: the engine never imports it. The only user of litellm.

Standard input is a socket with frames both ways: a head (`_HEAD`: size of the payload, number of the stream, kind) and
the payload. The arguments are the folders in which the package and the app lie. The engine sends

    r   a request: the arguments of a completion, as JSON      x   leave the stream
    t   that it has taken this many bytes of chunks            p   a request to practise with, which is never sent
    a   the setting ca_file, before the first request with it

Of each stream it gets `c` with one chunk as JSON in OpenAI's format, and at the end `e`, with a JSON of what went wrong
if something did. `i` says once that the library is there, or why not. The process ends with the socket, and imports
of the app only the routes that requests take.
"""

import ast
import asyncio
import ctypes
import gc
import importlib
import json
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, cast

_HEAD = struct.Struct(">IIc")
_COUNT = struct.Struct(">I")
_PREFIXES = re.compile(r"^(litellm\.)?\w*(Error|Exception)( \w+Error)?(: | - )")
# Some of its errors contain a body as the repr of its bytes.
_BODY = re.compile(r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\"""")
_READ_LIMIT_S = 600  # the engine's timeouts are shorter
# Bytes of chunks that the engine may have untaken, for each stream.
_WINDOW = 1024 * 1024
_MAX_CHUNK_BYTES = 4 * 1024 * 1024
# What the library keeps of a stream is looked at once in so many chunks.
_FORGET_EVERY = 500
_MAX_ERROR_LENGTH = 30_000
_MAX_CAUSES = 20
# Of the body of a refusal, in bytes.
_BODY_START = 64 * 1024
_PR_SET_DUMPABLE = 4  # linux/prctl.h

_practises: ContextVar[bool] = ContextVar("practises", default=False)


class _Failure(Exception):
    """`kind` is the name of the error class, or one of ours; `status` the provider's HTTP status (0: none)."""

    def __init__(self, kind: str, status: int, text: str, headers: Mapping[str, str], is_raw: bool = False) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status
        self.text = text
        self.headers = headers
        self.is_raw = is_raw

    def encoded(self) -> bytes:
        fields = {
            "kind": self.kind,
            "status": self.status,
            "text": self.text[:_BODY_START],
            "headers": dict(self.headers),
            "isRaw": self.is_raw,
        }
        return json.dumps(fields).encode(errors="replace")


class _Outbox:
    """Joins the frames of one turn of the event loop: many streams send small ones."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._frames = bytearray()

    def send(self, number: int, kind: bytes, data: bytes) -> None:
        if not self._frames:
            asyncio.get_running_loop().call_soon(self._flush)
        self._frames += _HEAD.pack(len(data), number, kind)
        self._frames += data

    def _flush(self) -> None:
        frames, self._frames = self._frames, bytearray()
        self._writer.write(frames)


class _Stream:
    """One completion. No more than `_WINDOW` bytes of it are on their way to the engine."""

    def __init__(self, number: int, outbox: _Outbox) -> None:
        self._number = number
        self._outbox = outbox
        self._untaken = 0
        self._has_room = asyncio.Event()

    def take(self, count: int) -> None:
        self._untaken -= count
        if self._untaken < _WINDOW:
            self._has_room.set()

    async def run(self, arguments: dict[str, Any]) -> None:
        end = b""
        try:
            await self._complete(arguments)
        except asyncio.CancelledError:
            pass  # the engine has left
        except Exception as error:  # noqa: BLE001 -- whatever the library raises is told to the engine
            end = _failure(error).encoded()
        self._outbox.send(self._number, b"e", end)

    async def _complete(self, arguments: dict[str, Any]) -> None:
        library = _library()
        _check_tools(library, arguments)
        stream = await _opened(library, arguments)
        count = 0
        try:
            async for chunk in stream:
                await self._send(chunk.model_dump_json(exclude_none=True).encode(errors="replace"))
                count += 1
                if count % _FORGET_EVERY == 0:
                    _forget(stream)
        finally:
            await stream.aclose()  # breaking out of the loop would not close the socket

    async def _send(self, chunk: bytes) -> None:
        if len(chunk) > _MAX_CHUNK_BYTES:
            raise _Failure("TooLarge", 0, "", {})
        while self._untaken >= _WINDOW:
            self._has_room.clear()
            await self._has_room.wait()
        self._untaken += len(chunk)
        self._outbox.send(self._number, b"c", chunk)


class _Routes:
    """Proxies and certificates as for all requests of the engine: the library reads them otherwise by itself.

    It is pinned to one version, a private function of which is replaced.
    """

    def __init__(self) -> None:
        self.ca_file = ""

    def install(self) -> None:
        outgoing = importlib.import_module("errand.engine.core.outgoing")
        module = cast(Any, importlib.import_module("litellm.llms.custom_httpx.aiohttp_transport"))
        transport = module.LiteLLMAiohttpTransport
        send = transport._make_aiohttp_request

        async def send_so(
            self_: object,
            client_session: object,
            request: Any,
            timeout: object,
            proxy: object,
            sni_hostname: object,
            ssl_verify: object = None,
        ) -> Any:
            try:
                proxy_url, tls = outgoing.proxy_of(str(request.url)), outgoing.tls_context(self.ca_file)
            except outgoing.UnusableRoute as error:
                raise _Failure("UnusableRoute", 0, str(error), {}) from error
            return await send(self_, client_session, request, timeout, proxy_url, sni_hostname, tls)

        transport._make_aiohttp_request = send_so


_routes = _Routes()


def main(arguments: Sequence[str]) -> int:
    packages, app = arguments
    if app not in sys.path:
        sys.path.append(app)
    if packages not in sys.path:  # before other packages, as in the engine, and after Python's own modules
        others = (number for number, path in enumerate(sys.path) if path.endswith("-packages"))
        sys.path.insert(next(others, len(sys.path)), packages)
    if sys.platform == "linux":  # it holds keys: no core dumps, and no look into its memory
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket(fileno=0) as connection:
        try:
            load()
        except Exception as error:  # noqa: BLE001 -- see above
            text = json.dumps(f"{type(error).__name__}: {error}"[:2_000]).encode()
            connection.sendall(_HEAD.pack(len(text), 0, b"i") + text)
            return 1
        asyncio.run(serve(connection))
    return 0


def load() -> None:
    """Import the library, without garbage collection, which would look at 100,000 new objects again and again."""
    gc.disable()
    _library()
    gc.freeze()
    gc.enable()


async def serve(connection: socket.socket) -> None:
    """Answer until the socket ends, and the process with it."""
    reader, writer = await asyncio.open_connection(sock=connection)
    outbox = _Outbox(writer)
    streams: dict[int, tuple[_Stream, asyncio.Task[None]]] = {}
    practice: asyncio.Task[None] | None = None
    outbox.send(0, b"i", b"")
    try:
        while True:
            size, number, kind = _HEAD.unpack(await reader.readexactly(_HEAD.size))
            data = await reader.readexactly(size)
            match kind:
                case b"r":
                    stream = _Stream(number, outbox)
                    task = asyncio.create_task(stream.run(json.loads(data)))
                    streams[number] = stream, task
                    task.add_done_callback(lambda _, number=number: streams.pop(number, None))
                case b"t" if number in streams:
                    streams[number][0].take(*_COUNT.unpack(data))
                case b"x" if number in streams:
                    streams[number][1].cancel()
                case b"a":
                    _routes.ca_file = data.decode()
                case b"p" if practice is None or practice.done():
                    practice = asyncio.create_task(practise(json.loads(data)))
                case _:
                    pass  # a stream that has just ended
    except (ConnectionError, asyncio.IncompleteReadError):
        os._exit(0)  # threads of the library would wait for their end


async def _opened(library: Any, arguments: dict[str, Any]) -> Any:
    return await library.acompletion(
        **arguments, stream=True, stream_options={"include_usage": True}, max_retries=0, timeout=_READ_LIMIT_S
    )


async def practise(arguments: dict[str, Any]) -> None:
    """Ask without sending anything: the library imports and builds most of what it needs with the first request."""
    _practises.set(True)
    for more in ({}, {"mock_response": "Hello."}):  # the way there, which ends before the network, and the way back
        with suppress(Exception):
            stream = await _opened(_library(), arguments | more)
            async for chunk in stream:
                chunk.model_dump_json(exclude_none=True)


def _library() -> Any:
    """litellm, imported on first use, without network access or telemetry."""
    if "litellm" not in sys.modules:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # for some names, counting tokens would query the hub for 24 s
        os.environ.setdefault("REPEATED_STREAMING_CHUNK_LIMIT", "1000000000")  # the engine has limits of its own
        library = cast(Any, importlib.import_module("litellm"))
        _send_through_ours()
        _routes.install()
        library.suppress_debug_info = True
        library.telemetry = False
        library.drop_params = True  # drop parameters that a model does not support
        library.modify_params = True  # drop thinking if the reasoning of an earlier call is missing
    return cast(Any, sys.modules["litellm"])


def _send_through_ours() -> None:
    """Raise refusals as they came, before the library rewords them; do not follow redirects.

    The library's clients follow redirects and resend headers such as `x-api-key`, which no setting prevents. They send
    everything through `send` of httpx, which nothing else here uses.
    """
    httpx = cast(Any, importlib.import_module("httpx"))
    client = httpx.AsyncClient
    send = client.send

    async def send_once(self: object, request: object, *, follow_redirects: object = None, **options: Any) -> Any:
        if _practises.get():
            raise _Failure("Practised", 0, "", {})
        try:
            response = await send(self, request, follow_redirects=False, **options)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.ProtocolError) as error:
            reason = _reason(error)
            if isinstance(error, httpx.ProtocolError) and not reason:
                raise
            raise _Failure("CannotConnect", 0, reason, {}) from error
        if response.status_code < 300:
            return response
        try:
            body = await _start_of(response)
        finally:
            await response.aclose()
        raise _Failure("Refused", response.status_code, body, dict(response.headers))

    client.send = send_once


def _reason(error: BaseException) -> str:
    """ "certificate" if the server's certificate is at fault."""
    named = (f"{type(cause).__name__} {cause}" for cause in _causes(error))
    return "certificate" if any("ertificate" in name or "CERTIFICATE" in name for name in named) else ""


async def _start_of(response: Any) -> str:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) >= _BODY_START:
            break
    return body[:_BODY_START].decode("utf-8", "replace")


def _forget(stream: Any) -> None:
    """Drop the middle of the chunks that the library keeps, 3 KB each: it reads only the first and the last ones."""
    chunks = cast("list[Any] | None", getattr(stream, "chunks", None))
    if chunks is not None and len(chunks) > _MAX_ERROR_LENGTH:
        del chunks[_MAX_ERROR_LENGTH // 2 : -_MAX_ERROR_LENGTH // 2]
    if hasattr(stream, "response_uptil_now"):
        stream.response_uptil_now = ""


def _check_tools(library: Any, arguments: dict[str, Any]) -> None:
    """Raise if the library knows that the model has no tools: it would drop them silently."""
    if "tools" not in arguments:
        return
    provider, _, name = str(arguments["model"]).partition("/")
    taken = cast("list[str] | None", library.get_supported_openai_params(model=name, custom_llm_provider=provider))
    if taken is not None and "tools" not in taken:
        raise _Failure("Refused", 400, f"{name} does not support tools", {})


def _failure(error: BaseException) -> _Failure:
    for cause in _causes(error):
        if isinstance(cause, _Failure):
            return cause
        if isinstance(cause, ImportError):
            return _Failure("PackageMissing", 0, cause.name or str(cause), {})
    raw = cast(Any, error)
    status = getattr(raw, "status_code", None)
    headers = cast("Mapping[str, str] | None", getattr(raw, "litellm_response_headers", None))
    text = str(error)
    while (shorter := _PREFIXES.sub("", text)) != text:
        text = shorter
    if body := _BODY.fullmatch(text.strip()):
        text = cast(bytes, ast.literal_eval(body.group())).decode("utf-8", "replace")
    kind = type(error).__name__
    return _Failure(kind, status if isinstance(status, int) else 0, text, dict(headers or {}), is_raw=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that the library has wrapped."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
