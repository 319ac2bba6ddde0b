"""The litellm library in a thread with its own event loop; only bytes and our errors leave it."""

import ast
import asyncio
import concurrent.futures
import importlib
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, cast

from errand.engine.core.large_imports import import_large
from errand.engine.models.deadline import Deadline
from errand.protocol.base import JsonObject

_PREFIXES = re.compile(r"^(litellm\.)?\w*(Error|Exception)( \w+Error)?(: | - )")
# Some of its errors contain a body as the repr of its bytes.
_BODY = re.compile(r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\"""")
_READ_LIMIT_S = 600  # our timeouts are shorter
_IMPORT_LIMIT_S = 120
_CLOSE_LIMIT_S = 5
# Maximum number of chunks that wait for the engine, and of chunks per stream that the library keeps.
_MOST_WAITING = 500
_MOST_KEPT = 30_000
_LONGEST_CHAIN = 20
_importing = threading.Lock()  # two threads that import it at once see it half initialized


class LibraryFailure(Exception):
    """An error of litellm: `kind` is the name of its error class, `status` the provider's HTTP status (0: none)."""

    def __init__(self, kind: str, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status
        self.text = text
        self.headers = headers


class LibraryThread:
    """A thread with an event loop for the library; started by the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def chunks(
        self, arguments: JsonObject, watch: Deadline, limit_s: Callable[[], float]
    ) -> AsyncGenerator[bytes, None]:
        """Stream one completion: each chunk as JSON in OpenAI's format.

        Raises `LibraryFailure`, and the exceptions of the deadline; the request is closed whenever the generator is
        left.
        """
        async with watch.within(_IMPORT_LIMIT_S):
            await self._load()
        engine_loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[bytes | concurrent.futures.Future[None]] = asyncio.Queue()

        def put(item: bytes | concurrent.futures.Future[None]) -> None:
            if not engine_loop.is_closed():
                engine_loop.call_soon_threadsafe(inbox.put_nowait, item)

        async def drained() -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(inbox.join(), engine_loop))

        call = asyncio.run_coroutine_threadsafe(_complete(arguments, put, drained), self._running_loop())
        call.add_done_callback(put)
        try:
            while True:
                async with watch.within(limit_s()):
                    item = await inbox.get()
                if not isinstance(item, bytes):
                    break
                yield item
                inbox.task_done()
            error = item.exception()
            if error is not None:
                raise _failure(error) from error
        finally:
            call.cancel()

    async def close(self) -> None:
        """End the thread; active calls are cancelled."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        closing = asyncio.run_coroutine_threadsafe(_close_library(), loop)
        closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        await asyncio.to_thread(thread.join, _CLOSE_LIMIT_S)

    async def _load(self) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_import(), self._running_loop()))

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="litellm", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def _library() -> Any:
    """litellm, imported on first use, without network access or telemetry."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # for some names, counting tokens would query the model hub for 24 s
    with _importing:
        if "litellm" not in sys.modules:
            import_large("litellm")
        library = cast(Any, sys.modules["litellm"])
        _follow_no_redirects()
    library.suppress_debug_info = True
    library.telemetry = False
    library.drop_params = True  # drop parameters that a model does not support
    library.modify_params = True  # drop thinking if the reasoning of an earlier call is missing
    return library


def _follow_no_redirects() -> None:
    """Disable redirects: the library's clients follow them and resend headers such as `x-api-key`.

    It has no setting for that. No other HTTP client here uses httpx, which sends everything through `send`.
    """
    client = cast(Any, importlib.import_module("httpx")).AsyncClient
    send = client.send
    if getattr(send, "follows_no_redirects", False):
        return

    async def send_once(self: object, request: object, *, follow_redirects: object = None, **options: Any) -> Any:
        response = await send(self, request, follow_redirects=False, **options)
        if response.has_redirect_location:
            await response.aclose()
            raise LibraryFailure("Redirect", response.status_code, "", {"Location": response.headers["location"]})
        return response

    send_once.follows_no_redirects = True  # pyright: ignore[reportFunctionMemberAccess]
    client.send = send_once


async def _import() -> None:
    _library()


async def _complete(
    arguments: JsonObject, put: Callable[[bytes], None], drained: Callable[[], Awaitable[None]]
) -> None:
    library = _library()
    _check_tools(library, arguments)
    stream = await library.acompletion(
        **arguments, stream=True, stream_options={"include_usage": True}, max_retries=0, timeout=_READ_LIMIT_S
    )
    number = 0
    try:
        async for chunk in stream:
            put(chunk.model_dump_json(exclude_none=True).encode())
            number += 1
            if number % _MOST_WAITING == 0:
                _forget(stream)
                await drained()
    finally:
        await stream.aclose()  # breaking out of the loop would not close the socket


def _forget(stream: Any) -> None:
    """Drop the middle of the chunks that the library keeps, 3 KB each: it reads only the first and the last ones."""
    kept = cast("list[Any] | None", getattr(stream, "chunks", None))
    if kept is not None and len(kept) > _MOST_KEPT:
        del kept[_MOST_KEPT // 2 : -_MOST_KEPT // 2]
    if hasattr(stream, "response_uptil_now"):
        stream.response_uptil_now = ""


class _ToolsNotTaken(Exception):
    status_code = 400


def _check_tools(library: Any, arguments: JsonObject) -> None:
    """Raise if the library knows that the model has no tools: it would drop them silently."""
    if "tools" not in arguments:
        return
    provider, _, name = str(arguments["model"]).partition("/")
    taken = cast("list[str] | None", library.get_supported_openai_params(model=name, custom_llm_provider=provider))
    if taken is not None and "tools" not in taken:
        raise _ToolsNotTaken(f"{name} does not support tools")


async def _close_library() -> None:
    """Close the library's connections and forget them: they belong to the event loop of this thread."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    library = _library()
    await library.close_litellm_async_clients()
    library.in_memory_llm_clients_cache.flush_cache()
    # The library's close function omits this client; the library creates a new one on demand.
    shared = cast("dict[str, Any]", vars(library)).pop("module_level_aclient", None)
    if shared is not None:
        await shared.close()


def _failure(error: BaseException) -> LibraryFailure:
    if (own := _own_failure(error)) is not None:
        return own
    raw = cast(Any, error)
    status = getattr(raw, "status_code", None)
    headers = cast("Mapping[str, str] | None", getattr(raw, "litellm_response_headers", None))
    text = str(error)
    while (shorter := _PREFIXES.sub("", text)) != text:
        text = shorter
    if body := _BODY.fullmatch(text.strip()):
        text = cast(bytes, ast.literal_eval(body.group())).decode("utf-8", "replace")
    return LibraryFailure(type(error).__name__, status if isinstance(status, int) else 0, text, dict(headers or {}))


def _own_failure(error: BaseException | None) -> LibraryFailure | None:
    """Our own exception, if the library has wrapped it."""
    for _ in range(_LONGEST_CHAIN):
        if error is None or isinstance(error, LibraryFailure):
            return error
        error = error.__cause__ or error.__context__
    return None
