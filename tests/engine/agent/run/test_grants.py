"""What answers to approvals leave behind: grants, rules that deny, and the asks that they settle."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.tasks.grant_rules import covered_calls, draft_grant, made_grants
from errand.engine.core.errors import InvalidParams
from errand.engine.storage.records import executions
from errand.engine.storage.records.executions import ExecutionStart
from errand.protocol.asks import Ask, AskAnswerParams, Grant, GrantDecision, GrantDraft, GrantedCall, Remember
from errand.protocol.base import JsonObject
from errand.protocol.events import GrantUpdate
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, results, shell
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.sandboxes import set_sandbox

_BROKEN = '{"id":"g2","tool":"shell","decision":"yes","call":{"prefix":["touch"]},"scope":"user","scopeId":""}'


def write(path: str, content: str) -> Reply:
    return Reply(calls=(Call("code", {"action": "write", "path": path, "content": content}),))


def both(*lines: str) -> Reply:
    """One reply with several commands."""
    return Reply(calls=tuple(Call("shell", {"command": line}) for line in lines))


def index(ask: Ask, kind: str) -> int:
    assert ask.approval is not None
    return [offer.kind for offer in ask.approval.offers].index(kind)


async def allow(
    engine: EngineParts, ask: Ask, kind: str, remember: Remember = "workspace", expires_s: float | None = None
) -> None:
    params = AskAnswerParams(ask_id=ask.id, allow=True, remember=remember, offer=index(ask, kind), expires_s=expires_s)
    await engine.services.asks.answer(params, "me")


async def asked_about(engine: EngineParts, task_id: str) -> list[str]:
    """The commands and texts of all asks of a task, in order."""
    asks = await engine.services.database.asks.page(100, (task_id,))
    return [ask.approval.command or ask.text for ask in reversed(asks) if ask.approval is not None]


async def settled_or_done(engine: EngineParts, task_id: str) -> bool:
    """True if the task ended without a further ask."""
    task = await engine.watcher.task(
        task_id, lambda task: task.outcome.ended_at is not None or task.activity.status == "waiting_user"
    )
    return task.outcome.ended_at is not None


def rule(decision: GrantDecision, call: GrantedCall, tool: str = "") -> GrantDraft:
    return GrantDraft(decision=decision, call=call, scope="user", tool=tool or ("shell" if decision == "allow" else ""))


async def add(engine: EngineParts, *drafts: GrantDraft) -> tuple[Grant, ...]:
    services = engine.services
    new_grants = await made_grants(drafts, "me", services.grants, services.database)
    for grant in new_grants:
        services.grants.add(grant)
        services.log.publish(GrantUpdate(grant=grant))
    return new_grants


async def test_a_kind_that_was_allowed_is_not_asked_about_again_and_another_is(tmp_path: Path) -> None:
    turns = [shell("touch a"), shell("touch b c"), shell("touch d > e"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        first = await engine.watcher.ask(started.id)
        assert first.approval is not None and "rule    program" in first.approval.explained
        await allow(engine, first, "prefix")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 2)
        second = await engine.watcher.ask(started.id)
        assert second.approval is not None and second.approval.command == "touch d > e"
        await engine.services.asks.answer(AskAnswerParams(ask_id=second.id, allow=False), "me")
        await engine.watcher.end(started.id)
        assert await asked_about(engine, started.id) == ["touch a", "touch d > e"]
        (grant,) = engine.services.grants.all()
        assert grant.call == GrantedCall(operation="run", prefix=("touch",), working_dir=str(engine.workspace))
        assert grant.last_used_at is not None and grant.exact == f"in {engine.workspace}, whatever begins with: touch"


async def test_a_grant_of_one_conversation_or_workspace_does_not_hold_in_another(tmp_path: Path) -> None:
    replies = [shell("touch a"), DONE, shell("touch b")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        first = await engine.start(approve="ask")
        await allow(engine, await engine.watcher.ask(first.id), "prefix", "conversation")
        await engine.watcher.end(first.id)
        second = await engine.start(approve="ask")
        assert not await settled_or_done(engine, second.id)


async def test_an_expired_grant_covers_nothing_and_is_still_listed(tmp_path: Path) -> None:
    turns = [shell("touch a"), shell("touch b"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        await allow(engine, await engine.watcher.ask(started.id), "prefix", expires_s=1e-6)
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        await engine.watcher.task(started.id, lambda task: task.activity.status == "waiting_user")
        assert await asked_about(engine, started.id) == ["touch a", "touch b"]
        (grant,) = await engine.services.database.grants.valid()
        assert grant.expires_at is not None and grant.expires_at <= datetime.now(UTC)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
async def test_a_denied_folder_is_hidden_from_commands_that_do_not_name_it(tmp_path: Path) -> None:
    turns = [shell("cp -r . /tmp/copy; cat /tmp/copy/*/a"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        set_sandbox(engine.services.settings, is_on=True)
        (engine.workspace / "keys").mkdir()
        (engine.workspace / "keys" / "a").write_text("planted")
        (engine.workspace / "src").mkdir()
        (engine.workspace / "src" / "a").write_text("one")
        await add(engine, rule("deny", GrantedCall(folder=str(engine.workspace / "keys"))))
        started = await engine.start(approve="all")
        await engine.watcher.end(started.id)
        output = results(engine.watcher.nodes())[0].text
        assert "one" in output and "planted" not in output


async def test_a_new_grant_settles_the_waiting_asks_that_it_covers(tmp_path: Path) -> None:
    replies = [shell("touch a"), shell("touch b"), shell("mkdir c"), DONE, DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        tasks, asks = list[Task](), list[Ask]()
        for _ in range(3):
            tasks.append(await engine.start(approve="ask"))
            asks.append(await engine.watcher.ask(tasks[-1].id))
        await allow(engine, asks[0], "prefix")
        for task in tasks[:2]:
            assert (await engine.watcher.end(task.id)).activity.status == "completed"
        second = await engine.services.database.asks.get(asks[1].id)
        assert second is not None
        assert (second.allowed, second.remember, second.answered_by, second.settled_by) == (True, "once", "me", "rule")
        third = await engine.services.database.asks.get(asks[2].id)
        assert third is not None and third.status == "waiting"


async def test_a_deny_rule_settles_what_waits_and_beats_what_is_allowed(tmp_path: Path) -> None:
    turns = [shell("touch a"), shell("touch b"), shell("mkdir c"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        await add(engine, rule("allow", GrantedCall(operation="run", prefix=("mkdir",))))
        await add(engine, rule("deny", GrantedCall(operation="run", prefix=("touch",))))
        await engine.watcher.end(started.id)
        first, second, third = results(engine.watcher.nodes())[:3]
        assert "you denied `touch`" in first.text and "you denied `touch`" in second.text and not third.is_error
        settled = await engine.services.database.asks.get(ask.id)
        assert settled is not None and (settled.allowed, settled.settled_by) == (False, "rule")
        assert not (engine.workspace / "a").exists() and (engine.workspace / "c").is_dir()


async def test_a_deny_rule_holds_in_a_task_that_may_do_everything(tmp_path: Path) -> None:
    turns = [shell("touch a"), write("b", "x"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await add(engine, rule("deny", GrantedCall(operation="run", prefix=("touch",))))
        await add(engine, rule("deny", GrantedCall(operation="write", folder=str(engine.workspace))))
        await engine.watcher.end((await engine.start(approve="all")).id)
        assert all("Not allowed: you denied" in result.text for result in results(engine.watcher.nodes())[:2])
        assert list(engine.workspace.iterdir()) == []


async def test_a_deny_rule_holds_for_words_that_are_known_only_when_the_line_runs(tmp_path: Path) -> None:
    turns = [shell("$(echo touch) a"), shell('run() { "$@"; }; run touch a'), shell('echo "$(date)"'), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await add(engine, rule("deny", GrantedCall(operation="run", prefix=("touch",))))
        await engine.watcher.end((await engine.start(approve="all")).id)
        first, second, last, *_ = results(engine.watcher.nodes())
        assert all("it could be `touch`, which you denied" in result.text for result in (first, second))
        assert not last.is_error and list(engine.workspace.iterdir()) == []


async def test_a_revoked_grant_is_asked_about_at_the_next_call(tmp_path: Path) -> None:
    turns = [shell("touch a"), shell("mkdir b"), shell("touch c"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        await allow(engine, await engine.watcher.ask(started.id), "prefix")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 1)
        second = await engine.watcher.ask(started.id)
        (grant,) = engine.services.grants.all()
        engine.services.grants.add(msgspec.structs.replace(grant, revoked_at=datetime.now(UTC)))
        await allow(engine, second, "exact")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 2)
        third = await engine.watcher.ask(started.id)
        assert third.approval is not None and third.approval.command == "touch c"


async def test_a_rule_written_between_the_answer_and_the_call_holds(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch a"), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        services, call = engine.services, GrantedCall(operation="run", prefix=("touch",))
        (denial,) = await made_grants((rule("deny", call),), "me", services.grants, services.database)
        answering = asyncio.create_task(services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me"))
        await asyncio.sleep(0)  # the ask is settled, and its task has not gone on yet
        services.grants.add(denial)
        await answering
        await engine.watcher.end(started.id)
        assert not (engine.workspace / "a").exists()


async def test_after_a_denial_the_other_calls_of_the_turn_are_not_asked_about(tmp_path: Path) -> None:
    turns = [both("touch a", "touch b", "ls"), shell("touch b"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=False, text="not now"), "me")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 3)
        denied, skipped, looked = results(engine.watcher.nodes())
        assert "not now" in denied.text
        assert "not asked about: the person denied an earlier call of this turn" in skipped.text
        assert not looked.is_error, "what only looks needs no person"
        again = await engine.watcher.ask(started.id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=again.id, allow=True), "me")
        await engine.watcher.end(started.id)
        assert await asked_about(engine, started.id) == ["touch a", "touch b"]


async def test_of_two_clients_that_answer_at_once_one_gives_the_grant(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch a"), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        answers = (
            AskAnswerParams(ask_id=ask.id, allow=True, remember="workspace", offer=index(ask, "prefix")),
            AskAnswerParams(ask_id=ask.id, allow=True, remember="user", offer=index(ask, "prefix")),
        )
        window, phone = await asyncio.gather(
            *(engine.services.asks.answer(params, by) for params, by in zip(answers, ("window", "phone"), strict=True))
        )
        assert (window.won, phone.won) == (True, False)
        await engine.watcher.end(started.id)
        assert [(grant.scope, grant.created_by) for grant in engine.services.grants.all()] == [("workspace", "window")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"offer": 7},
        {"offer": -1},
        {"offer": 0, "remember": "user"},
        {"expiresS": 0},
        {"expiresS": -5},
        {"expiresS": 1e12},
        {"allow": False},
        {"remember": "once", "expiresS": 60},
    ],
)
async def test_an_answer_that_was_not_offered_is_refused_and_the_ask_waits_on(
    tmp_path: Path, wrong: JsonObject
) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("touch a"), DONE])) as engine:
        started = await engine.start(approve="ask")
        ask = await engine.watcher.ask(started.id)
        fields: JsonObject = {"askId": ask.id, "allow": True, "remember": "workspace"}
        with pytest.raises(InvalidParams):
            await engine.services.asks.answer(msgspec.convert(fields | wrong, AskAnswerParams), "me")
        still = await engine.services.database.asks.get(ask.id)
        assert still is not None and still.status == "waiting"
        assert engine.services.grants.all() == ()


async def test_edits_in_a_folder_are_allowed_with_any_content_but_not_of_secrets(tmp_path: Path) -> None:
    turns = [write("src/a.py", "1"), write("src/b.py", "2"), write("src/.env", "3"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        await allow(engine, await engine.watcher.ask(started.id), "folder", "conversation")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 2)
        last = await engine.watcher.ask(started.id)
        assert last.approval is not None and last.approval.writes == (str(engine.workspace / "src" / ".env"),)
        assert last.approval.offers == () and (engine.workspace / "src" / "b.py").read_text() == "2"


async def test_a_file_with_a_name_that_cannot_be_seen_is_asked_about_where_edits_are_allowed(tmp_path: Path) -> None:
    turns = [write("a.py", "x"), write("invoice\u202efdp.py", "x"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        ask = await engine.watcher.ask((await engine.start(approve="edits")).id)
        assert ask.approval is not None and "invoice\\u202efdp.py" in ask.approval.rule
        assert [path.name for path in engine.workspace.iterdir()] == ["a.py"]


async def test_a_grant_of_the_content_shown_covers_no_other_content(tmp_path: Path) -> None:
    turns = [write("a", "1"), write("a", "1"), write("a", "2"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        started = await engine.start(approve="ask")
        await allow(engine, await engine.watcher.ask(started.id), "content")
        await engine.watcher.until(lambda: len(results(engine.watcher.nodes())) == 2)
        third = await engine.watcher.ask(started.id)
        assert third.approval is not None and "+2" in third.approval.preview


async def test_rules_are_added_all_or_none_and_once(tmp_path: Path) -> None:
    good = rule("allow", GrantedCall(operation="run", prefix=("pytest",)))
    bad = rule("allow", GrantedCall(operation="run", prefix=("bash",)))
    async with engine_parts(tmp_path, ModelServer()) as engine:
        with pytest.raises(InvalidParams, match=r"Rule 2 is not accepted, so none was added: `bash …` would allow"):
            await add(engine, good, bad)
        assert engine.services.grants.all() == ()
        (first,) = await add(engine, good)
        assert await add(engine, good) == (first,)
        past = msgspec.structs.replace(good, expires_at=datetime.now(UTC) - timedelta(seconds=1))
        with pytest.raises(InvalidParams, match="expired"):
            await add(engine, past)
        with pytest.raises(InvalidParams, match="no task could end"):
            await add(engine, rule("deny", GrantedCall(), "task_complete"))


async def test_rules_that_several_clients_add_at_once_are_one_grant_each(tmp_path: Path) -> None:
    rules = [rule("allow", GrantedCall(operation="run", prefix=(name,))) for name in ("pytest", "ruff", "make")]
    async with engine_parts(tmp_path, ModelServer()) as engine:
        several = await asyncio.gather(*(add(engine, *rules) for _ in range(5)))
        assert len({grant.id for batch in several for grant in batch}) == len(rules)
        assert len(engine.services.grants.all()) == len(rules)


@pytest.fixture
def linked(tmp_path: Path) -> tuple[str, str]:
    """A link and the folder that it leads to."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    return str(link), os.path.realpath(tmp_path)


async def test_a_rule_for_a_folder_named_by_a_link_is_for_the_folder(tmp_path: Path, linked: tuple[str, str]) -> None:
    link, real = linked
    call = GrantedCall(operation="run", prefix=("pytest",))
    draft = GrantDraft(decision="allow", call=call, scope="workspace", scope_id=link, tool="shell")
    async with engine_parts(tmp_path, ModelServer()) as engine:
        (grant,) = await add(engine, draft)
    assert (grant.scope_id, grant.call) == (real, msgspec.structs.replace(call, working_dir=real))


async def test_a_rule_says_which_recorded_calls_it_would_have_decided(tmp_path: Path) -> None:
    turns = [shell("touch a"), shell("ls"), shell("mkdir b"), write("c", "1"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await engine.watcher.end((await engine.start(approve="all")).id)
        services = engine.services

        async def covered(draft: GrantDraft) -> tuple[int, list[tuple[str, str, str]]]:
            grant = await draft_grant(draft, services.database)
            coverage = await covered_calls(grant, 100, services.database, services.paths)
            return coverage.judged, [(call.text.split("`")[1], call.without, call.verdict) for call in coverage.calls]

        touch = GrantedCall(operation="run", prefix=("touch",))
        judged = len(turns) - 1  # the end of the task is no call that is judged
        assert await covered(rule("allow", touch)) == (judged, [("touch a", "ask", "allow")])
        assert await covered(rule("deny", touch)) == (judged, [("touch a", "ask", "deny")])
        assert await covered(rule("deny", GrantedCall(operation="run", prefix=("ls",)))) == (
            judged,
            [("ls", "allow", "deny")],
        )
        assert await covered(rule("allow", GrantedCall(operation="run", prefix=("cargo", "test")))) == (judged, [])


async def test_recorded_calls_of_pages_code_and_other_programs_are_judged_as_they_were(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[DONE])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        services = engine.services
        row = partial(ExecutionStart, task_id=task.id, turn=1, node_id="n", call_id="c", at=task.started_at)
        services.database.journal.put(
            *map(
                executions.started,
                (
                    row(execution_id="1", tool="gone", arguments={}, text="Open", address="https://example.org/a"),
                    row(execution_id="2", tool="mcp", arguments={"a": 1}, text="Call", service="s/t", operation="call"),
                    row(execution_id="3", tool="gone", arguments={}, text="Run", language="python", operation="code"),
                ),
            )
        )
        await services.database.journal.flush()

        async def covered(draft: GrantDraft) -> list[tuple[str, str, str]]:
            grant = await draft_grant(draft, services.database)
            coverage = await covered_calls(grant, 100, services.database, services.paths)
            return [(call.text, call.without, call.verdict) for call in coverage.calls]

        def user(decision: GrantDecision, call: GrantedCall) -> GrantDraft:
            return GrantDraft(decision=decision, call=call, scope="user")

        assert await covered(user("allow", GrantedCall(host="example.org"))) == [("Open", "ask", "allow")]
        assert await covered(user("deny", GrantedCall(host="org"))) == [("Open", "ask", "deny")]
        assert await covered(user("allow", GrantedCall(service="s/*"))) == [("Call", "ask", "allow")]
        assert await covered(user("allow", GrantedCall(service="s/other"))) == []
        assert await covered(user("deny", GrantedCall(operation="code"))) == [("Run", "ask", "deny")]


async def test_a_stored_grant_that_cannot_be_read_covers_nothing_and_is_counted(tmp_path: Path) -> None:
    turns = [shell("touch a"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        await add(engine, rule("allow", GrantedCall(operation="run", prefix=("mkdir",))))
        await engine.services.log.flush()
        with closing(sqlite3.connect(engine.services.paths.database)) as connection, connection:
            for grant_id, body in (("g2", _BROKEN), ("g3", "{")):
                values = (grant_id, "given", body)
                connection.execute("INSERT INTO grants (grant_id, action, body) VALUES (?, ?, ?)", values)
        valid_grants = await engine.services.database.grants.valid()
        assert [grant.exact for grant in valid_grants] == ["anywhere, whatever begins with: mkdir"]
        assert await engine.services.database.grants.count_unreadable() == 2


def port_of(engine: EngineParts) -> int:
    return int(engine.model.url.split(":")[2].split("/")[0])


def change_stored_ask(engine: EngineParts, change: Callable[[JsonObject], None]) -> None:
    """Change the approval of the only stored ask in the database."""
    with closing(sqlite3.connect(engine.services.paths.database)) as connection, connection:
        (body,) = connection.execute("SELECT body FROM asks").fetchone()
        ask = msgspec.json.decode(body, type=JsonObject)
        approval = ask["approval"]
        assert isinstance(approval, dict)
        change(approval)
        connection.execute("UPDATE asks SET body = ?", (msgspec.json.encode(ask).decode(),))


async def test_an_answer_to_the_ask_of_an_earlier_engine_gives_what_it_offered(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch a")])) as engine:
        started = await engine.start(approve="ask")
        await engine.watcher.ask(started.id)
        port = port_of(engine)
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch b"), DONE], port=port)) as engine:
        (ask,) = await engine.services.database.asks.waiting()
        await allow(engine, ask, "prefix")
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert (engine.workspace / "a").exists() and (engine.workspace / "b").exists()
        (grant,) = engine.services.grants.all()
        assert (grant.ask_id, grant.call) == (
            ask.id,
            GrantedCall(operation="run", prefix=("touch",), working_dir=str(engine.workspace)),
        )


async def test_a_stored_ask_from_before_offers_is_loaded_and_answered(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch a")])) as engine:
        started = await engine.start(approve="ask")
        await engine.watcher.ask(started.id)
        port = port_of(engine)

    def older(approval: JsonObject) -> None:
        for name in ("offers", "explained", "modes"):
            del approval[name]
        approval |= {"remembered": "in /w: touch a", "grantable": {"operation": "run", "command": "touch a"}}

    change_stored_ask(engine, older)
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        (ask,) = await engine.services.database.asks.waiting()
        with pytest.raises(InvalidParams, match="cannot be remembered"):
            remember = AskAnswerParams(ask_id=ask.id, allow=True, remember="workspace")
            await engine.services.asks.answer(remember, "me")
        await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=True), "me")
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert await asked_about(engine, started.id) == ["touch a"]


async def test_an_offer_that_the_policy_does_not_make_is_not_remembered(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("touch a")])) as engine:
        started = await engine.start(approve="ask")
        await engine.watcher.ask(started.id)
        port = port_of(engine)

    def forged(approval: JsonObject) -> None:
        offers = '[{"kind":"prefix","calls":[{"prefix":["git","push"]}],"scopes":["user"],"covers":"Everything."}]'
        approval["offers"] = msgspec.json.decode(offers)

    change_stored_ask(engine, forged)
    async with engine_parts(tmp_path, ModelServer(replies=[DONE], port=port)) as engine:
        (ask,) = await engine.services.database.asks.waiting()
        await allow(engine, ask, "prefix", "user")
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert (engine.workspace / "a").exists(), "the call itself was allowed"
        assert await engine.services.database.grants.all() == ()
