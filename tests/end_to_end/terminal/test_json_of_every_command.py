"""Each command of the table, and each of its actions, prints JSON alone on standard output if `--json` is given."""

import asyncio
import io
import shlex
import sys
from collections.abc import Iterator

import msgspec
import pytest

from errand.cli.command import Entry
from errand.cli.main import main
from errand.cli.options import Action, Described
from errand.cli.table import TABLE
from errand.protocol.base import JsonObject
from tests.support.command_line import Errand, Finished
from tests.support.model_server import ModelServer, Reply

# What a command needs besides its arguments, to do something.
_OPTIONS = {
    "ask-models": ("-m", "none/a", "-m", "none/b"),
    "record": ("--to", "record.jsonl"),
    "fork": ("--at", "MESSAGE"),
    "export": ("--to", "export.jsonl"),
    "prune": ("--days", "1"),
    "delete": ("--yes",),
    "usage": ("--by", "model"),
    "engine": ("--rotate-token",),
    "backup": ("--to", "backup.tar"),
}
# What takes Ctrl+C, or is started by `errand.__main__`; the others run in this process, which is faster.
_PROCESSES = ("run", "edit", "retry", "ask-models", "attach", "resume", "fork", "replay", "explain")
# What a placeholder stands for; other placeholders are names of nothing.
_WORDS = {
    "RULE": "round_robin",
    "PROVIDER": "openai",
    "SKILL": "nothing",
    "FILE": "record.jsonl",
    "FOLDER": ".",
    "COMMAND": "true",
    "PATH": "export.jsonl",
    "PROMPT": "greet me",
    "TEXT": "greet",
    "VARIABLE": "HOME",
}


async def test_every_command_prints_json_alone(own_errand: Errand, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer(replies=[Reply(text="Hello.")] * 9) as server:
        model = ("--model", "openai_compatible/test-model", "--api-base", server.url)
        task = (await own_errand.run("run", "--json", *model, "greet me")).lines[-1]
        messages = (await own_errand.run("show", str(task["conversationId"]), "--json")).lines
        named = {
            "task": str(task["id"]),
            "conversation": str(task["conversationId"]),
            "message": str(messages[-1]["id"]),
            "personality": "writer",
            "setting": "default_model",
        }
        monkeypatch.setenv("ERRAND_HOME", str(own_errand.home))
        monkeypatch.chdir(own_errand.folder)
        for entry in TABLE.entries:
            for command_line in _command_lines(entry, named, model):
                arguments = (entry.name, "--json", *command_line)
                if entry.name in _PROCESSES:
                    _check(entry, command_line, await own_errand.run(*arguments))
                else:
                    _check(entry, command_line, await asyncio.to_thread(_run_here, arguments))


async def test_nothing_is_printed_for_an_empty_list(own_errand: Errand) -> None:
    for command in ("list", "tasks", "answer", "grants", "skills", "mcp", "background", "memory"):
        assert await own_errand.run(command, "--json") == Finished(0, "", ""), command


async def test_wrong_usage_is_reported_as_json_too(own_errand: Errand) -> None:
    for arguments in (("fly", "--json"), ("list", "--jsn", "--json"), ("show", "--json"), ("mcp", "fly", "--json")):
        wrong = await own_errand.run(*arguments)
        (error,) = wrong.lines
        assert (wrong.code, error["exitCode"]) == (2, 2)
        assert f"errand: {error['error']}\n" in wrong.err


def _run_here(arguments: tuple[str, ...]) -> Finished:
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = io.StringIO(), io.StringIO()
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), out, err
    try:
        code = main([*arguments])
    except SystemExit as end:
        assert isinstance(end.code, int)
        code = end.code
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    return Finished(code, out.getvalue(), err.getvalue())


def _check(entry: Entry, arguments: tuple[str, ...], finished: Finished) -> None:
    line = f"{shlex.join((entry.name, *arguments))}: {finished.code} {finished.err}"
    try:
        values = [msgspec.json.decode(text) for text in finished.out.splitlines()]
    except msgspec.DecodeError:
        pytest.fail(f"{line}\n{finished.out}")
    assert "Traceback" not in line
    assert values or finished.code == 0, line
    if entry.without_json:
        assert finished.code == 2 and entry.without_json in finished.err, line
    if finished.code == 2:
        assert msgspec.convert(values[-1], JsonObject)["error"], line


def _command_lines(entry: Entry, named: dict[str, str], model: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    command = entry.load()
    options = tuple(named["message"] if word == "MESSAGE" else word for word in _OPTIONS.get(entry.name, ()))
    if entry.name in ("run", "edit", "fork"):
        options = (*options, *model)
    for action in command.actions:
        for name in action.names:
            yield name, *_words_of_action(action, named), *options
    if not command.actions:
        yield *(_word(part, named) for part in entry.described() if not part.is_option), *options


def _words_of_action(action: Action, named: dict[str, str]) -> Iterator[str]:
    """Yield the words after the name of the action, as its usage has them, without those that may be left out."""
    tokens = shlex.split(action.usage.replace("…", " ").replace("...", " "))[1:]
    for number, word in enumerate(word for word in tokens if not word.startswith("[") and not word.endswith("]")):
        first = named.get(action.first or "") if number == 0 else None
        yield first or _WORDS.get(word, word.partition("|")[0].lower() if word.isupper() else word.partition("|")[0])


def _word(part: Described, named: dict[str, str]) -> str:
    return (part.choices or (named.get(part.named or "") or _WORDS.get(part.metavar, "nothing"),))[0]
