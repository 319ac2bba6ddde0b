"""Settings, keys and personalities from the terminal."""

import msgspec
import pytest

from errand.protocol.agents import Personality
from errand.protocol.settings import Provider, Setting
from tests.support.command_line import Errand


async def test_a_setting_is_set_by_its_kind_listed_and_reset(own_errand: Errand) -> None:
    done = await own_errand.run("settings", "set", "max-turns", "7")
    listed = await own_errand.run("settings", "--changed", "--json")
    details = await own_errand.run("settings", "get", "max_turns")
    reset = await own_errand.run("settings", "reset", "max_turns")
    none = await own_errand.run("settings", "--changed")
    (setting,) = (msgspec.json.decode(line, type=Setting) for line in listed.out.splitlines())
    assert done.out == "max_turns is 7 (was: 50)\n"
    assert (setting.name, setting.value, setting.default) == ("max_turns", 7, 50)
    assert "default: 50" in details.out and "whole number of at least 1" in details.out
    assert reset.out == "max_turns is 50 (was: 7)\n"
    assert "at their defaults" in none.err


async def test_a_password_in_a_setting_is_not_shown(own_errand: Errand) -> None:
    address = "postgresql://me:hushhush@host/db"
    done = await own_errand.run("settings", "set", "database_url", address)
    outputs = [await own_errand.run("settings", *more) for more in ((), ("--json",), ("get", "database_url"))]
    assert all("hushhush" not in run.out + run.err and "me:***@host" in run.out for run in (done, *outputs))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("set", "default_model", "gpt"), "takes the id of a model, provider/model"),
        (("set", "max_tuns", "3"), "Did you mean max_turns"),
        (("set", "max_turns", "0"), "whole number of at least 1"),
        (("set", "command_sandbox", "atuo"), "one of auto, required, off, not 'atuo'. Did you mean auto?"),
        (("set", "max_turns"), "errand settings set NAME VALUE"),
        (("gett",), "Did you mean get?"),
    ],
)
async def test_a_wrong_setting_is_answered_with_what_would_be_right(
    errand: Errand, arguments: tuple[str, ...], error: str
) -> None:
    done = await errand.run("settings", *arguments)
    assert (done.code, error in done.err) == (2, True), done.err


async def test_a_key_comes_from_standard_input_and_is_never_shown(own_errand: Errand) -> None:
    stored = await own_errand.run("keys", "set", "openai", typed="my-secret-0123456789\n")
    listed = await own_errand.run("keys")
    in_json = await own_errand.run("keys", "--json")
    from_environment = await own_errand.run("keys", variables={"OPENAI_API_KEY": "another-secret-987654"})
    removed = await own_errand.run("keys", "remove", "openai")
    providers = [msgspec.json.decode(line, type=Provider) for line in in_json.out.splitlines()]
    assert (stored.code, "encrypted file" in stored.out) == (0, True)
    assert "openai" in listed.out.splitlines()[0] and "encrypted file" in listed.out.splitlines()[0]
    assert {provider.name: provider.key_source for provider in providers}["openai"] == "file"
    assert "from the variable OPENAI_API_KEY" in from_environment.out
    assert "was removed" in removed.out
    every = (stored, listed, in_json, from_environment, removed)
    assert not any("secret" in run.out + run.err for run in every)


async def test_a_key_as_an_argument_and_an_unknown_provider_are_refused(own_errand: Errand) -> None:
    as_argument = await own_errand.run("keys", "set", "openai", "sk-0123456789")
    unknown = await own_errand.run("keys", "set", "opnai", typed="x")
    empty = await own_errand.run("keys", "set", "openai")
    assert (as_argument.code, "Do not give a key as an argument" in as_argument.err) == (2, True)
    assert "sk-0123456789" not in as_argument.err
    assert (unknown.code, "Did you mean openai?" in unknown.err) == (2, True)
    assert (empty.code, "nothing was stored" in empty.err) == (2, True)


async def test_a_personality_is_made_edited_as_a_text_and_deleted(own_errand: Errand) -> None:
    created = await own_errand.run("personalities", "new", "Poet", "--prompt", "You write verses.", "--color", "teal")
    text = (await own_errand.run("personalities", "show", "poet")).out
    changed = text.replace("verses", "long verses").replace("thinking: off", "thinking: high")
    edited = await own_errand.run("personalities", "edit", "Poet", "--json", typed=changed)
    refused = await own_errand.run("personalities", "delete", "Poet")
    deleted = await own_errand.run("personalities", "delete", "Poet", "--yes")
    poet = msgspec.json.decode(edited.out, type=Personality)
    assert (created.code, created.out) == (0, "Saved Poet.\n")
    assert (poet.system_prompt, poet.thinking_level, poet.color) == ("You write long verses.", "high", "teal")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert (deleted.code, deleted.out) == (0, "Deleted Poet.\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("edit", "assistant", "--color", "bleu"), "color: Invalid enum value 'bleu'"),
        (("edit", "assistant", "--tools", "shell,codd"), "There is no tool 'codd'"),
        (("edit", "assistant", "--temperature", "9"), "a number from 0 to 2"),
        (("edit", "assistant", "--prompt-file", "none.md"), "none.md cannot be read: No such file"),
        (("new", "Assistant", "--prompt", "x"), "The personality 'Assistant' already"),
        (("edit", "assistant"), "There is no terminal for an editor"),
    ],
)
async def test_a_personality_that_cannot_be_is_refused_in_a_sentence(
    errand: Errand, arguments: tuple[str, ...], error: str
) -> None:
    done = await errand.run("personalities", *arguments)
    assert (done.code, error in done.err) == (2, True), done.err
