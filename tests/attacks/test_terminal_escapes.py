"""Text from a model, a server, a file or another client reaches the terminal only as text."""

import asyncio
import io
import logging
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, get_args

import msgspec
import pytest

from errand.cli.main import main
from errand.cli.rendering.screen import JsonScreen, TextScreen
from errand.cli.terminal.terminal import Terminal
from errand.engine.server.dispatcher import ROUTES
from errand.engine.server.endpoint_file import take_engine_lock, write_endpoint
from errand.engine.server.route import ServedMethod
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import Wire
from errand.protocol.engine import Condition
from errand.protocol.events import Delta, Event, EventRecord, TextDelta, ToolOutput
from errand.protocol.methods import METHODS
from errand.system import log as logs
from errand.system.local_trust import process_start
from errand.system.paths import Paths
from errand.text.redaction import Redactor
from tests.attacks.campaign import Campaign
from tests.support.command_line import Errand
from tests.support.engine_server import engine_server
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.records import samples

# Titles, clipboard, cleared screen, hidden and coloured text, links, C1 controls, overwritten lines, bidi.
HOSTILE = (
    "evil\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[8m\x1b[1;32m\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\"
    "\x9b31m\x90q\x9c\x85\rover\x08\x7f\x00\x1b(0\u202e\u2066\u200f\u2028end"
)
FILE_NAME = HOSTILE.replace("\x00", "").replace("/", "")
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_OUR_COLOURS = re.compile(r"\x1b\[(?:[0-9;]{1,5})m")
S = TypeVar("S", bound=Wire)
_SAMPLE = 'q" \\ \u2028 é 🙂'


def steering(text: str) -> list[str]:
    """The control sequences in a program's output."""
    return [
        f"{match.group()!r} in {text[max(0, match.start() - 60) : match.end() + 20]!r}"
        for match in _STEERS.finditer(text)
    ]


def hostile_samples(struct: type[S]) -> list[S]:
    """Instances with the hostile text in every text field, escaped as in JSON."""
    texts = [msgspec.json.encode(sample).decode() for sample in samples(struct)]
    return [msgspec.json.decode(text.replace(in_json(_SAMPLE), in_json(HOSTILE)), type=struct) for text in texts]


def in_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


@dataclass(slots=True)
class HostileRoute:
    """Answers a method with its result, with hostile text in every field."""

    name: str
    changes: bool
    answers: Sequence[bytes]
    asked: int = 0

    async def serve(self, services: Services, session: ClientSession, params: msgspec.Raw, name: str) -> bytes:
        self.asked += 1
        return self.answers[self.asked % len(self.answers)]


def hostile_routes() -> tuple[ServedMethod, ...]:
    engine_routes = {route.name: route for route in ROUTES if "/" not in route.name}
    routes = [
        HostileRoute(method.name, False, [msgspec.json.encode(sample) for sample in hostile_samples(method.result)])
        for method in METHODS
        if method.name not in engine_routes and method.name not in ("challenge", "initialize")
    ]
    return (*engine_routes.values(), *routes)


@asynccontextmanager
async def served(home: Path) -> AsyncGenerator[None]:
    paths = Paths(home)
    async with engine_server(home, routes=hostile_routes()) as engine:
        lock = take_engine_lock(paths)
        here = msgspec.structs.replace(engine.endpoint(), pid=os.getpid(), process_start=process_start(os.getpid()))
        write_endpoint(paths.endpoint, here)
        try:
            yield
        finally:
            lock.release()


@pytest.fixture
def hostile_home(tmp_path: Path) -> Generator[Path]:
    """An engine in a separate thread, since the commands need the main one."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    ready, ends = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with served(home):
            ready.set()
            await ends.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    yield home
    loop.call_soon_threadsafe(ends.set)
    thread.join(30)
    loop.close()


class Output(io.TextIOWrapper):
    """Standard output or error that is, or is not, a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def text(self) -> str:
        self.flush()
        self.seek(0)
        return self.read()


@contextmanager
def standard_streams(*, is_terminal: bool) -> Generator[Output]:
    original_streams = sys.stdin, sys.stdout, sys.stderr
    out = Output(is_terminal=is_terminal)
    sys.stdin, sys.stdout, sys.stderr = Output(is_terminal=False), out, out
    try:
        yield out
    finally:
        sys.stdin, sys.stdout, sys.stderr = original_streams


COMMANDS = (
    ("tasks",),
    ("tasks", "--json"),
    ("agents",),
    ("agents", HOSTILE),
    ("agents", "turns", HOSTILE),
    ("personalities",),
    ("personalities", "--json"),
    ("grants",),
    ("grants", "--json"),
    ("grants", "revoke", "all"),
    ("grants", "revoke", HOSTILE),
    ("prompt",),
    ("prompt", HOSTILE),
    ("context", HOSTILE),
    ("context", HOSTILE, "--json"),
    ("output", HOSTILE),
    ("search", HOSTILE),
    ("search", HOSTILE, "--json"),
    ("models",),
    ("models", "--json"),
    ("models", "--test", HOSTILE),
    ("usage", "--by", "conversation"),
    ("usage", "--by", "model", "--json"),
    ("compare", HOSTILE, HOSTILE),
    ("orphans",),
    ("prune", "--days", "1"),
    ("delete", HOSTILE),
    ("delete", HOSTILE, "--yes", "--json"),
    ("memory", "forget", HOSTILE),
    ("agents", "remove", HOSTILE),
    ("pause", HOSTILE),
    ("mode", HOSTILE, "chat"),
    ("import", HOSTILE),
    ("fly" + HOSTILE,),
    ("tasks", "--" + HOSTILE),
)


def run_command(arguments: Sequence[str], *, is_terminal: bool) -> str:
    with standard_streams(is_terminal=is_terminal) as out:
        with suppress(SystemExit):
            main(list(arguments))
        return out.text


def test_no_field_of_any_answer_steers_the_terminal(
    hostile_home: Path, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    monkeypatch.setenv("ERRAND_HOME", str(hostile_home))
    monkeypatch.setenv("NO_COLOR", "1")
    for _ in range(campaign.rounds(2, 12)):
        outputs = {arguments: run_command(arguments, is_terminal=False) for arguments in COMMANDS}
        assert {arguments: steering(text) for arguments, text in outputs.items() if steering(text)} == {}
        campaign.count("hostile answers printed", len(outputs))


def test_with_colours_nothing_but_our_own_ones_reaches_the_terminal(
    hostile_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ERRAND_HOME", str(hostile_home))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for arguments in (("tasks",), ("models",)):
        output = run_command(arguments, is_terminal=True).replace("\r\x1b[2K", "")
        assert "\x1b[" in output and "\x1b[8m" not in output
        assert steering(_OUR_COLOURS.sub("", output)) == []


def shown_terminal() -> tuple[Terminal, Output]:
    out = Output(is_terminal=True)
    return Terminal(Output(is_terminal=False), out, out), out


def hostile_messages() -> list[EventRecord | Delta]:
    deltas: list[Delta] = [*hostile_samples(TextDelta), *hostile_samples(ToolOutput)]
    events = [
        msgspec.convert(sample, Event, from_attributes=True) for kind in get_args(Event) for sample in hostile_of(kind)
    ]
    records = [EventRecord(sequence=number, epoch="", event=event) for number, event in enumerate(events, 1)]
    return [*deltas, *records]


def hostile_of(kind: type[Wire]) -> list[Wire]:
    return hostile_samples(kind)


@pytest.mark.parametrize("as_json", [True, False])
def test_no_field_of_any_event_steers_the_terminal_that_follows_it(
    monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, out = shown_terminal()
    people = TextScreen(terminal)
    people.add(HOSTILE, HOSTILE)
    screen = JsonScreen(terminal) if as_json else people
    for message in hostile_messages():
        screen.show(HOSTILE, message)
        screen.tick()
    screen.health(tuple(hostile_samples(Condition)))
    output = out.text.replace("\r\x1b[2K", "")
    assert steering(_OUR_COLOURS.sub("", output)) == [] and "evil" in output


def test_an_escape_sequence_cut_in_two_by_pieces_of_a_reply_steers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, out = shown_terminal()
    screen = TextScreen(terminal)
    screen.add("c1")
    offset = 0
    for piece in HOSTILE:
        delta = TextDelta(
            conversation_id="c1", task_id="t1", node_id="n1", block=0, kind="text", offset=offset, text=piece
        )
        screen.show("c1", delta)
        offset += len(piece)
    assert steering(_OUR_COLOURS.sub("", out.text.replace("\r\x1b[2K", ""))) == []


def test_text_from_elsewhere_cannot_borrow_our_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, out = shown_terminal()
    terminal.line(terminal.style.red("ours") + "\x1b[32mtheirs\x1b[0;32mtheirs")
    assert out.text == "\x1b[31mours\x1b[0m\\u001b[32mtheirs\\u001b[0;32mtheirs\n"


def test_json_written_out_is_the_same_json() -> None:
    terminal, out = shown_terminal()
    terminal.line(msgspec.json.encode({"text": HOSTILE}).decode())
    assert steering(out.text) == []
    assert msgspec.json.decode(out.text) == {"text": HOSTILE}


async def test_tools_commands_and_file_names_of_a_model_steer_nothing(errand: Errand, workspace: Path) -> None:
    (workspace / FILE_NAME).write_text("x")
    replies = [
        Reply(calls=(Call(HOSTILE, {}), Call("code", {"action": HOSTILE, "path": HOSTILE}, id="b"))),
        Reply(calls=(Call("code", {"action": "list"}), Call("shell", {"command": f"false {HOSTILE}"}, id="c"))),
        Reply(text=HOSTILE, thinking=HOSTILE),
    ]
    async with ModelServer(replies=replies) as server:
        run = ("run", "--approve", "all", "--mode", "chat", "--model", "openai_compatible/m", "--api-base", server.url)
        done = await errand.run(*run, f"go {FILE_NAME}")
        task = await errand.task("completed")
    assert "link" in done.out
    recorded = await errand.run("record", task.id, "--to", "record.jsonl")
    assert steering(done.out + done.err + recorded.out + recorded.err) == []
    record = workspace / "record.jsonl"
    other = workspace / "other.jsonl"
    other.write_text(record.read_text().replace("over", "changed", 1))
    for file in (record, other, workspace / FILE_NAME, workspace / f"missing{FILE_NAME}"):
        replayed = await errand.run("replay", str(file))
        output = replayed.out + replayed.err
        assert output and steering(output) == []


async def test_what_is_said_of_a_data_directory_that_cannot_be_used_steers_nothing(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / FILE_NAME
    home.write_text("in the way")
    done = await Errand(home, workspace).run("engine")
    assert done.code != 0 and steering(done.out + done.err) == []
    monkeypatch.setenv("ERRAND_HOME", str(home))
    for command in ("doctor", "tasks"):
        output = await asyncio.to_thread(run_command, (command,), is_terminal=False)
        assert "in the way" in output or "annot" in output
        assert steering(output) == []


def test_a_line_of_the_log_is_text_and_no_other_entry(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.prepare()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        logs.configure(paths, "engine", Redactor())
        logging.getLogger("app").warning("%s", f"{HOSTILE}\n2026-11-22 10:00:00,000 INFO app all is well")
        root.handlers[0].close()
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    written = (paths.logs / "engine.log").read_text(encoding="utf-8")
    assert steering(written) == []
    assert [line for line in written.splitlines() if line.startswith("2026-11-22 10:00:00,000")] == []
