"""Prompts of commands: a key, which sessions to take, a personality in an editor."""

import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.command_line import Errand

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal


async def test_a_key_is_typed_without_being_shown(own_errand: Errand) -> None:
    typed = PseudoTerminal(("keys", "set", "openai"), own_errand.folder, own_errand.environment)
    async with typed as screen:
        await screen.shows("not shown):", then="my-secret-0123456789\r")
        await screen.shows("encrypted file")
    assert "my-secret" not in screen.seen and "*" not in screen.seen
    left = PseudoTerminal(("keys", "set", "anthropic"), own_errand.folder, own_errand.environment)
    async with left as screen:
        await screen.shows("not shown):", then="\x04")
        await screen.shows("Nothing was stored.")


async def test_a_conversation_is_shown_and_deleted_when_the_person_says_so(own_errand: Errand) -> None:
    await own_errand.run("run", "--model", "scripted/note", "greet me")
    assert (await own_errand.run("archive", "greet me")).code == 0
    for typed, answer in (
        ("\r", "Nothing was deleted."),
        ("\x03", "Nothing was deleted."),
        ("y\r", ": greet me"),
    ):
        prompt = PseudoTerminal(("delete", "greet"), own_errand.folder, own_errand.environment)
        async with prompt as screen:
            await screen.shows("greet me  last changed")
            await screen.shows("y for yes, Enter for no:", then=typed)
            await screen.shows(answer)
    assert (await own_errand.run("list", "--archived", "--json")).out == ""


async def test_only_the_chosen_program_is_taken(own_errand: Errand, tmp_path: Path) -> None:
    sessions = tmp_path / ".pi" / "agent" / "sessions" / "--x--"
    sessions.mkdir(parents=True)
    at = "2026-11-23T19:06:41.000Z"
    message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    records = (
        {"type": "session", "version": 3, "id": "one", "timestamp": at, "cwd": "/"},
        {"type": "message", "id": "m1", "parentId": None, "timestamp": at, "message": message},
    )
    (sessions / "one.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    environment = own_errand.environment | {"HOME": str(tmp_path)}
    async with PseudoTerminal(("import",), own_errand.folder, environment) as screen:
        await screen.shows("1 session", then="")
        await screen.shows("or n >", then="codex\r")
        await screen.shows("'codex' is not in the list.")
        await screen.shows("or n >", then="pi\r")
        await screen.shows("Imported from pi: 1 conversation, 1 message.")


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("sed -i s/^thinking:.*/thinking:high/", "Saved Writer."),
        ("sed -i s/^thinking:.*/thinking:hihi/", "Your text is kept in"),
        ("true", "Nothing was changed."),
        ("false", "false ended with 1, so nothing was changed."),
        ("no-such-editor", "cannot be used as an editor"),
    ],
)
async def test_a_personality_is_changed_in_an_editor(
    errand: Errand, editor: str, expected: str, tmp_path: Path
) -> None:
    environment = errand.environment | {"EDITOR": editor, "VISUAL": "", "TMPDIR": str(tmp_path)}
    arguments = ("personalities", "edit", "writer")
    async with PseudoTerminal(arguments, errand.folder, environment) as screen:
        await screen.shows(expected)
