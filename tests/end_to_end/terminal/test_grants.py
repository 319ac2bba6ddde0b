"""`errand grants`: what a person allowed in a terminal is listed there, and can be taken back."""

import sys
from pathlib import Path

import pytest

from tests.support.command_line import Errand
from tests.support.model_server import Call, ModelServer, Reply

if sys.platform == "win32":
    pytest.skip("pseudo-terminals of POSIX", allow_module_level=True)

from tests.support.screens import PseudoTerminal

MODEL = ("--model", "openai_compatible/test-model", "--api-base")


async def test_a_grant_is_listed_revoked_and_asked_about_again(own_errand: Errand, workspace: Path) -> None:
    replies = [Reply(calls=(Call("shell", {"command": "touch first"}),)), Reply(text="Done.")]
    assert "No saved permissions" in (await own_errand.run("grants")).err
    async with (
        ModelServer(turns=replies) as server,
        PseudoTerminal(("run", *MODEL, server.url, "make"), own_errand.folder, own_errand.environment) as screen,
    ):
        await screen.shows("allow? a c w p u d r >", then="w\r")
        assert await screen.ended() == 0
        (workspace / "first").unlink()
        again = await own_errand.run("run", *MODEL, server.url, "make")
        assert again.code == 0 and (workspace / "first").exists(), "it is allowed in this folder"

        listed = await own_errand.run("grants")
        assert "touch first" in listed.out and f"In {workspace}" in listed.out and "last used" in listed.out
        (grant,) = (await own_errand.run("grants", "--json")).lines
        revoked = await own_errand.run("grants", "revoke", str(grant["id"])[-8:])
        assert "revoked" in revoked.out
        assert (await own_errand.run("grants")).out == ""
        assert "touch first" in (await own_errand.run("grants", "--revoked")).out

        (workspace / "first").unlink()
        denied = await own_errand.run("run", *MODEL, server.url, "make")
    assert denied.code != 0
    assert not (workspace / "first").exists()


async def test_all_grants_are_revoked_at_once_and_an_unknown_one_is_named(own_errand: Errand) -> None:
    unknown = await own_errand.run("grants", "revoke", "nothing-like-it")
    assert unknown.code == 2
    assert "No permission has the id 'nothing-like-it'. List them: errand grants" in unknown.err
    assert (await own_errand.run("grants", "revoke", "all")).code == 0
    assert (await own_errand.run("grants", "forget")).code == 2


async def test_a_kind_is_allowed_at_the_prompt_for_a_time_after_it_was_explained(
    own_errand: Errand, workspace: Path
) -> None:
    replies = [Reply(calls=(Call("shell", {"command": f"touch {name}"}),)) for name in ("first", "second")]
    async with (
        ModelServer(turns=[*replies, Reply(text="Done.")]) as server,
        PseudoTerminal(("run", *MODEL, server.url, "make"), own_errand.folder, own_errand.environment) as screen,
    ):
        await screen.shows("Commands that begin with `touch …`")
        await screen.shows("for example: touch other.txt")
        await screen.shows("allow? a c w p u d r >", then="v\r")
        await screen.shows("rule    program")
        await screen.shows("allow? a c w p u d r >", then="p 8h\r")
        assert await screen.ended() == 0
    assert (workspace / "second").exists()
    listed = await own_errand.run("grants")
    assert f"in {workspace}, whatever begins with: touch" in listed.out and "until" in listed.out


async def test_rules_are_written_judged_exported_and_imported(own_errand: Errand, workspace: Path) -> None:
    (workspace / "src").mkdir()
    allowed = await own_errand.run("grants", "allow", "touch …")
    assert (allowed.code, f"in {workspace}, whatever begins with: touch" in allowed.out) == (0, True)
    denied = await own_errand.run("grants", "deny", "git push", "--scope", "user", "--expires", "7d")
    assert "denied  anywhere, whatever begins with: git push" in denied.out and "Everywhere" in denied.out
    closed = await own_errand.run("grants", "deny", "--path", "src", "--writes")
    assert f"any change of files in {workspace / 'src'} and below" in closed.out

    replies = [Reply(calls=(Call("shell", {"command": line}),)) for line in ("touch a", "touch src/b", "git push")]
    async with ModelServer(turns=[*replies, Reply(text="Done.")]) as server:
        ran = await own_errand.run("run", "--approve", "all", *MODEL, server.url, "make")
    assert "you denied what is in" in ran.out + ran.err and "you denied `git push`" in ran.out + ran.err
    assert (workspace / "a").exists() and not (workspace / "src" / "b").exists()

    covered = await own_errand.run("grants", "covered", "deny", "touch")
    assert "ask → deny" in covered.out and "1 of the last call." in covered.err

    file = str(own_errand.folder / "rules.jsonl")
    assert (await own_errand.run("grants", "export", file)).code == 0
    assert (await own_errand.run("grants", "export", file)).code == 2, "no file is replaced"
    before = (await own_errand.run("grants", "--json")).lines
    (push,) = (rule["call"] for rule in before if "git push" in str(rule["exact"]))
    assert isinstance(push, dict) and push["operation"] == "", "as the window writes it"
    assert (await own_errand.run("grants", "import", file)).code == 0
    assert (await own_errand.run("grants", "--json")).lines == before, "what is there already is not added again"
    assert (await own_errand.run("grants", "revoke", "all")).code == 0
    assert (await own_errand.run("grants", "import", file)).code == 0
    fields = ("tool", "decision", "call", "scope", "scopeId", "expiresAt")
    after = (await own_errand.run("grants", "--json")).lines
    assert [[grant[name] for name in fields] for grant in after] == [
        [grant[name] for name in fields] for grant in before
    ]


async def test_rules_about_hosts_services_and_code_are_written_listed_exported_and_explained(
    own_errand: Errand,
) -> None:
    host = await own_errand.run("grants", "allow", "--host", "*.example.org", "--scope", "user")
    assert (host.code, "addresses of *.example.org" in host.out, "Everywhere · every tool" in host.out) == (
        0,
        True,
        True,
    )
    assert "any tool of the server github" in (await own_errand.run("grants", "allow", "--service", "github/*")).out
    assert "denied  any code" in (await own_errand.run("grants", "deny", "--code", "--scope", "user")).out
    assert (await own_errand.run("grants", "deny", "--host", "evil.example.org", "--scope", "user")).code == 0

    for url, decision, detail in (
        ("https://docs.example.org/a", "allow", "grant   addresses of *.example.org"),
        ("https://evil.example.org/", "deny", "you denied evil.example.org"),
        ("https://example.org/", "ask", "no rule opens example.org"),
    ):
        explained = await own_errand.run("explain", "--address", url)
        assert explained.out.startswith(f"{decision}: ") and detail in explained.out, explained.out

    file = str(own_errand.folder / "rules.jsonl")
    assert (await own_errand.run("grants", "export", file)).code == 0
    before = (await own_errand.run("grants", "--json")).lines
    assert (await own_errand.run("grants", "import", file)).code == 0
    assert (await own_errand.run("grants", "--json")).lines == before


GOOD = '{"decision":"deny","call":{"prefix":["git","push"]},"scope":"user"}'
WRONG = [
    "{",
    "",
    "# a comment",
    '{"call":{"prefix":["make"]},"scope":"user","tool":"shell"}',
    '{"decision":"maybe","call":{"prefix":["make"]},"scope":"user","tool":"shell"}',
    '{"decision":"allow","call":{"prefix":"make"},"scope":"user","tool":"shell"}',
    '{"decision":"allow","call":{"prefix":["make"]},"scope":"user","tool":"shell","more":1}',
    '{"decision":"deny","decision":"allow","call":{"prefix":["make"]},"scope":"user","tool":"shell"}',
    '{"decision":"allow","call":{"prefix":["bash"]},"scope":"user","tool":"shell"}',
    '{"decision":"allow","call":{},"scope":"user","tool":"shell"}',
    '{"decision":"allow","call":{"host":"*"},"scope":"user"}',
    '{"decision":"allow","call":{"host":"*.co.uk"},"scope":"user"}',
    '{"decision":"allow","call":{"host":"example.org","service":"a/b"},"scope":"user"}',
    '{"decision":"allow","call":{"operation":"code"},"scope":"user"}',
    '{"decision":"allow","call":{"prefix":["make"]},"scope":"workspace","scopeId":"/no/such","tool":"shell"}',
    '{"decision":"allow","call":{"prefix":["make"]},"scope":"conversation","scopeId":"conv_x","tool":"shell"}',
]


async def test_a_file_with_one_broken_rule_is_refused_whole_with_its_line_named(own_errand: Errand) -> None:
    file = own_errand.folder / "rules.jsonl"
    for wrong in WRONG:
        file.write_text(f"{GOOD}\n{wrong}\n{GOOD}\n")
        refused = await own_errand.run("grants", "import", str(file))
        assert refused.code == 2, wrong
        assert "line 2" in refused.err or "Rule 2" in refused.err
    assert (await own_errand.run("grants", "--json")).out == ""


async def test_a_rule_that_cannot_be_is_refused_in_a_sentence(own_errand: Errand) -> None:
    for arguments, why in (
        (("allow", "bash -c"), "bash is a shell"),
        (("allow", "git"), "Name the subcommand too"),
        (("allow", "make && rm x"), "not the beginning of one command"),
        (("allow", "pytest '"), "is not one command"),
        (("allow",), "Usage:"),
        (("allow", "--host", "*"), "a star stands for names below one"),
        (("allow", "--host", "exam\u0440le.org"), "mixes scripts"),
        (("deny", "--host", "example.org/x"), "without a path"),
        (("allow", "--service", "*/*"), "is no tool of another program"),
        (("allow", "--host", "example.org", "--code"), "Usage:"),
        (("deny", "--tool", "ask_user"), "no task could end without it"),
        (("allow", "pytest", "--expires", "soon"), "is not a time"),
        (("allow", "pytest", "--expires", "2020-01-01"), "expired"),
        (("covered", "nothing-like-it"), "No permission has the id"),
    ):
        refused = await own_errand.run("grants", *arguments)
        assert (refused.code, why in refused.err) == (2, True), refused.err
