"""The process of a Python session: runs one piece of code after another in one namespace.

It runs without the rest of the app and imports none of it, with any Python from 3.8 on: the workspace's own. Standard
input is a socket: 4 bytes of length, then JSON. The engine sends `{"run": ID, "code": TEXT}` and `{"interrupt": ID}`.
The answers are `{"ready": VERSION}` and `{"done": ID, "value", "error", "trace", "pictures", "remarks"}`; what the
code prints goes to standard output and standard error.
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import io
import json
import linecache
import os
import queue
import re
import signal
import socket
import struct
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn, Protocol, cast

_MAX_VALUE_LENGTH = 20_000
_MAX_TRACEBACK_LENGTH = 12_000
# Progress in the text of an error, of which only the last state counts.
_OVERWRITTEN = re.compile(r"^[^\n]*(?:\r|\x1b\[2K)(?=[^\r\n])", re.MULTILINE)
_LIBRARY_FRAMES = 3
_MAX_FRAMES = 12
_MAX_PICTURES = 20
_PICTURE_BYTES = 10 * 1024 * 1024
_ALL_PICTURE_BYTES = 30 * 1024 * 1024
_MAX_PICTURE_SIDE_PX = 3000
_SHARPNESS = 144
# Of the machine's memory, for data of this process.
_MEMORY_SHARE = 0.75
_NOBODY_TYPES = "There is nobody to type: input() does not work here. Put the value in the code, or ask the person."


class _Figure(Protocol):
    def get_size_inches(self) -> Sequence[float]: ...
    def savefig(self, target: io.BytesIO, *, format: str, dpi: float, bbox_inches: str) -> None: ...


class _Pyplot(Protocol):
    def get_fignums(self) -> list[int]: ...
    def figure(self, number: int) -> _Figure: ...
    def close(self, number: str) -> None: ...


class Session:
    def __init__(self, engine: socket.socket) -> None:
        self._engine = engine
        # A module of its own, so that pickle finds the classes of the code. The script's own one is kept alive.
        self._own_module, module = sys.modules["__main__"], ModuleType("__main__")
        sys.modules["__main__"] = module
        self._namespace = module.__dict__
        self._waiting: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
        self._running = 0
        self._number = 0

    def serve(self) -> NoReturn:
        self._send({"ready": ".".join(map(str, sys.version_info[:3]))})
        threading.Thread(target=self._receive, daemon=True).start()
        while True:
            try:
                request = self._waiting.get()
                self._run(int(cast(int, request["run"])), str(request["code"]))
            except KeyboardInterrupt:
                pass  # it came too late for its code

    def _receive(self) -> None:
        """Ends the process with the engine, whatever its code does."""
        while True:
            head = _read(self._engine, 4)
            request = json.loads(_read(self._engine, struct.unpack(">I", head)[0]))
            if "interrupt" in request:
                if self._running == request["interrupt"]:
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                self._waiting.put(request)

    def _send(self, answer: dict[str, object]) -> None:
        data = json.dumps(answer).encode("utf-8", "backslashreplace")
        self._engine.sendall(struct.pack(">I", len(data)) + data)

    def _run(self, number: int, code: str) -> None:
        answer: dict[str, object] = {"done": number}
        self._number += 1
        name = f"<cell {self._number}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        pictures: list[tuple[str, bytes]] = []
        try:
            self._running = number
            value = self._evaluate(code, name)
            if value is not None:
                self._namespace["_"] = value
                answer["value"] = _shown(value)
                pictures += _picture_of(value)
            pictures += _figures()
        except BaseException as error:  # noqa: BLE001 -- also SystemExit, and whatever the code derives from it
            self._running = 0
            answer["error"], answer["trace"] = _error_texts(error, name)
            with contextlib.suppress(Exception):
                pictures += _figures()
        finally:
            self._running = 0
        answer["pictures"], answer["remarks"] = _bounded(pictures)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        self._send(answer)

    def _evaluate(self, code: str, name: str) -> object:
        """Run the code; the value of a last expression, as in a notebook."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(code, name)
        last = tree.body[-1] if tree.body else None
        is_shown = isinstance(last, ast.Expr) and not code.rstrip().endswith(";")
        body = tree.body[:-1] if is_shown else tree.body
        if body:
            exec(_compiled(ast.Module(body=body, type_ignores=[]), name, "exec"), self._namespace)
        if is_shown and isinstance(last, ast.Expr):
            return eval(_compiled(ast.Expression(body=last.value), name, "eval"), self._namespace)
        return None


def _compiled(tree: ast.AST, name: str, mode: str) -> CodeType:
    return compile(tree, name, mode, dont_inherit=True)  # type: ignore[arg-type]


def _read(engine: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = engine.recv(size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def _shown(value: object) -> str:
    return _cut(repr(value), _MAX_VALUE_LENGTH)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def _error_texts(error: BaseException, name: str) -> tuple[str, str]:
    """Return the error in one line, and where it was raised."""
    try:
        line = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
        lines = _trace(error, name)
    except BaseException:  # noqa: BLE001 -- its own __str__ may raise anything
        return type(error).__name__, type(error).__name__
    return _OVERWRITTEN.sub("", line)[:500], _cut(_OVERWRITTEN.sub("", lines), _MAX_TRACEBACK_LENGTH)


def _trace(error: BaseException, name: str, depth: int = 0) -> str:
    """Return the traceback without frames of this file, and with only the last frames of libraries."""
    causes = ""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and depth < 3:
        link = "This was the cause of:" if error.__cause__ is not None else "While it was handled:"
        causes = f"{_trace(before, name, depth + 1)}\n{link}\n\n"
    here = _trace.__code__.co_filename
    frames = [entry for entry in traceback.extract_tb(_inside(error.__traceback__, name)) if entry.filename != here]
    own = [frame for frame in frames if frame.filename.startswith("<cell ")]
    chosen = [frame for frame in frames if frame in own or frame in frames[-_LIBRARY_FRAMES:]]
    if len(chosen) > _MAX_FRAMES:
        chosen = chosen[: _MAX_FRAMES // 2] + chosen[-_MAX_FRAMES // 2 :]
    parts = ["Traceback (most recent call last):\n"] if chosen else []
    if len(chosen) < len(frames):
        parts.append(f"  [{len(frames) - len(chosen)} frames left out]\n")
    parts += traceback.format_list(chosen)
    return causes + "".join(parts + traceback.format_exception_only(type(error), error)).rstrip("\n")


def _inside(trace: TracebackType | None, name: str) -> TracebackType | None:
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename != name:
        first = first.tb_next
    return first


def _picture_of(value: object) -> list[tuple[str, bytes]]:
    """Return the PNG of a value that draws itself, such as an image of Pillow."""
    draw = getattr(type(value), "_repr_png_", None)
    data = draw(value) if callable(draw) else None
    return [("Picture", data)] if isinstance(data, bytes) else []


def _figures() -> list[tuple[str, bytes]]:
    """Return all open figures of matplotlib as PNG; closes them."""
    pyplot_module = sys.modules.get("matplotlib.pyplot")
    if pyplot_module is None:
        return []
    pyplot = cast(_Pyplot, pyplot_module)
    drawn: list[tuple[str, bytes]] = []
    try:
        for number in pyplot.get_fignums()[:_MAX_PICTURES]:
            figure, data = pyplot.figure(number), io.BytesIO()
            longest = max(1.0, *(float(inches) for inches in figure.get_size_inches()))
            figure.savefig(data, format="png", dpi=min(_SHARPNESS, _MAX_PICTURE_SIDE_PX / longest), bbox_inches="tight")
            drawn.append((f"Figure {len(drawn) + 1}", data.getvalue()))
    finally:
        pyplot.close("all")
    return drawn


def _bounded(pictures: list[tuple[str, bytes]]) -> tuple[list[dict[str, str]], list[str]]:
    encoded_pictures: list[dict[str, str]] = []
    remarks: list[str] = []
    total = 0
    for name, data in pictures:
        total += len(data)
        if len(data) > _PICTURE_BYTES or total > _ALL_PICTURE_BYTES or len(encoded_pictures) == _MAX_PICTURES:
            remarks.append(f"{name} is left out: it has {len(data) / 1e6:.1f} MB, or there are too many")
        else:
            encoded_pictures.append({"name": name, "data": base64.b64encode(data).decode()})
    return encoded_pictures, remarks


def _no_input(prompt: object = "") -> NoReturn:
    raise RuntimeError(_NOBODY_TYPES)


def _limit_memory() -> None:
    """A list that grows for ever ends with a MemoryError instead of the machine."""
    with contextlib.suppress(Exception):
        import resource

        most = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _prepare_environment() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache:
        os.environ.setdefault("MPLCONFIGDIR", os.path.join(cache, "matplotlib"))
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    builtins.input = _no_input  # type: ignore[assignment]


def main() -> NoReturn:
    engine = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the workspace
    _limit_memory()
    _prepare_environment()
    Session(engine).serve()


if __name__ == "__main__":
    main()
