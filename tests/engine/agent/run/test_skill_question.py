"""Skills that a workspace brings: told to an agent after a person has trusted them as they are, asked about once."""

from pathlib import Path

from errand.protocol.asks import Ask, AskAnswerParams
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, Reply

HIDDEN = "".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "\u202e\u200b"


def skill(engine: EngineParts, description: str, body: str = "Run make.") -> Path:
    file = engine.workspace / ".agents" / "skills" / "release" / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: release\ndescription: {description}\n---\n{body}\n")
    return file


def model() -> ModelServer:
    return ModelServer(answer=lambda request: Reply(text="Done."))


async def asked(engine: EngineParts, task: Task, *, allow: bool) -> Ask:
    ask = await engine.watcher.ask(task.id)
    assert ask.approval is not None and ask.approval.tool == "skills"
    await engine.services.asks.answer(AskAnswerParams(ask_id=ask.id, allow=allow), "me")
    await engine.watcher.end(task.id)
    return ask


def told(engine: EngineParts) -> str:
    """Return the system prompt of the newest request."""
    return str(engine.model.requests[-1].messages[0]["content"])


async def test_skills_of_a_workspace_are_asked_about_once_and_again_when_they_change(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        skill(engine, "How to release.")
        ask = await asked(engine, await engine.start(approve="ask"), allow=True)
        assert ask.approval is not None and "Run make." in ask.approval.preview
        assert "How to release." in told(engine)
        await engine.watcher.end((await engine.start(approve="ask")).id)
        assert "How to release." in told(engine)

        skill(engine, "How to release.", "Run something else.")
        ask = await asked(engine, await engine.start(approve="ask"), allow=False)
        assert "have changed" in ask.text and ask.approval is not None
        assert "Run something else." in ask.approval.preview
        assert "How to release." not in told(engine)
        await engine.watcher.end((await engine.start(approve="ask")).id)
        assert "How to release." not in told(engine)


async def test_where_nobody_can_be_asked_skills_of_a_workspace_are_left_out_with_a_remark(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        skill(engine, "How to release.")
        await engine.watcher.end((await engine.start(approve="never")).id)
        assert "How to release." not in told(engine)
        assert any("untrusted_skills" in str(node.blocks) for node in engine.watcher.nodes())


async def test_what_is_hidden_in_a_skill_is_spelled_out_for_the_person_and_does_not_reach_the_prompt(
    tmp_path: Path,
) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        skill(engine, f"How to{HIDDEN} release.", f"Run make.{HIDDEN}")
        (engine.workspace / "AGENTS.md").write_text(f"Be kind.{HIDDEN[:4]}")
        ask = await asked(engine, await engine.start(approve="ask"), allow=True)
        assert ask.approval is not None and "\\U000e006f" in ask.approval.preview and "\\u202e" in ask.approval.preview
        assert not set(HIDDEN) & set(ask.approval.preview + told(engine))
        assert "How to\\u202e release." in told(engine) and "Be kind." in told(engine)


async def test_tasks_that_ask_the_same_about_skills_are_settled_by_one_answer(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, model()) as engine:
        skill(engine, "How to release.")
        first, second = await engine.start(approve="ask"), await engine.start(approve="ask")
        other = await engine.watcher.ask(second.id)
        await asked(engine, first, allow=True)
        await engine.watcher.end(second.id)
        settled = await engine.services.database.asks.get(other.id)
        assert settled is not None and (settled.allowed, settled.settled_by) == (True, "rule")
        assert all("How to release." in str(request.messages[0]["content"]) for request in engine.model.requests)
