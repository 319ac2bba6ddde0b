"""The system prompt: role, rules, AGENTS.md, skills, facts; stable parts first for the provider's cache.

Where the agent works changes more often: environment.py. Built once for each task and stored with it.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from string import Template

import msgspec

from errand.engine.agent.prompt.skills import skills_part
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.prompt.workspace import PromptContext, read_inside, workspace_folders
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.skill_state import skill_state
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.memory.facts import Facts
from errand.engine.models.base import CallForm
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN
from errand.engine.storage.database import Database
from errand.engine.storage.records import tasks
from errand.engine.tools.plain_text import clean_name, without_hidden
from errand.protocol.context import PromptPart
from errand.protocol.memory import Fact
from errand.protocol.notices import PromptRemark, Remark
from errand.protocol.tasks.groups import TaskMode
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths

NAME = "AGENTS.md"
OWN_FOLDER = Path(".config/errand")

# For all files together. The same limit as in Codex, which defined AGENTS.md (project_doc_max_bytes).
MAX_INSTRUCTION_BYTES = 32_768
# For all facts together, by length. A hundred facts of usual length take less.
MAX_FACT_TOKENS = 4_000
_RULES = "rules"
# Of small models, which call tools as JSON (decision 82).
_SHORT_RULES = "short_rules"


def role_part(context: PromptContext) -> PromptPart:
    return PromptPart(name="role", text=context.role or prompt_text("assistant"))


def rules_part(context: PromptContext) -> PromptPart:
    return PromptPart(name=_RULES, text=rules_text(context.mode))


def rules_text(mode: TaskMode) -> str:
    return prompt_text("chat_rules" if mode == "chat" else "task_rules")


def instructions_part(context: PromptContext) -> PromptPart | None:
    """Return the instructions, the user's own file first, the nearest last.

    Over the limit, nearer files take precedence.
    """
    own = context.home / OWN_FOLDER
    ground = workspace_folders(context.workspace, context.home)
    folders = ((own, own), *((folder, ground[0]) for folder in ground))
    room, instructions = MAX_INSTRUCTION_BYTES, list[tuple[Path, str]]()
    remarks: list[PromptRemark] = []
    for folder, within in reversed(folders):
        file = folder / NAME
        data = read_inside(file, within, room)
        if data is None or b"\0" in data:
            remarks += _unread_remarks(file, data)
        elif data.strip():
            if len(data) > room:
                remarks.append(PromptRemark(code="too_long", path=str(file), count=room, most=MAX_INSTRUCTION_BYTES))
            instructions.insert(0, (file, without_hidden(data[:room].decode("utf-8", "replace")).strip()))
            room -= len(data[:room])
    if not instructions and not remarks:
        return None
    files = "\n\n".join(f"### {file}\n\n{content}" for file, content in instructions)
    return PromptPart(
        name="instructions",
        text=Template(prompt_text("instructions")).safe_substitute(files=files) if instructions else "",
        sources=tuple(str(file) for file, _ in instructions),
        remarks=tuple(remarks),
    )


def _unread_remarks(file: Path, found: bytes | None) -> tuple[PromptRemark, ...]:
    if found is None and not os.path.lexists(file):
        return ()
    return (PromptRemark(code="unreadable" if found is None else "no_text", path=str(file)),)


def facts_part(context: PromptContext) -> PromptPart | None:
    """Return the facts that a person pinned; over the limit without the oldest."""
    room, chosen = MAX_FACT_TOKENS * CHARACTERS_A_TOKEN, list[Fact]()
    for fact in reversed(context.facts):
        room -= len(fact.text)
        if room < 0:
            break
        chosen.insert(0, fact)
    if not chosen:
        return None
    headings = {"always": "Always:", "me": "About the person:"}
    groups: dict[str, list[str]] = {heading: [] for heading in headings.values()}
    for fact in chosen:
        heading = headings.get(fact.scope, f"About the folder `{clean_name(fact.folder)}` and what is below it:")
        groups.setdefault(heading, []).append(f"- {fact.text}")
    texts = ["\n".join((heading, *lines)) for heading, lines in groups.items() if lines]
    left_out = len(context.facts) - len(chosen)
    remark = PromptRemark(code="too_many_facts", path="", count=left_out, most=MAX_FACT_TOKENS)
    return PromptPart(
        name="facts",
        text=Template(prompt_text("facts")).safe_substitute(facts="\n\n".join(texts)),
        remarks=(remark,) if left_out else (),
    )


PARTS = (role_part, rules_part, instructions_part, skills_part, facts_part)


def read_parts(context: PromptContext) -> tuple[PromptPart, ...]:
    """Read all parts. Blocking: call it in a thread."""
    parts = (part(context) for part in PARTS)
    return tuple(part for part in parts if part is not None)


def join_parts(parts: tuple[PromptPart, ...]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)


def has_short_rules(parts: Iterable[PromptPart]) -> bool:
    """Return True for the prompt of a small model, which is told of its folder in brief."""
    return any(part.name == _RULES and part.text == prompt_text(_SHORT_RULES) for part in parts)


def remarks_of(parts: Iterable[PromptPart]) -> Iterator[PromptRemark | Remark]:
    """Yield the notices about a prompt. Those of older prompts are sentences."""
    for remark in (remark for part in parts for remark in part.remarks):
        yield Remark(text=remark) if isinstance(remark, str) else remark


class TaskSystemPrompt:
    """The system prompt of one task. `role` is the personality's own prompt.

    `ask_about_skills` is awaited before new parts are read.
    """

    def __init__(
        self,
        task: Task,
        role: str,
        facts: Facts,
        database: Database,
        paths: Paths,
        ask_about_skills: Callable[[CancelSignal], Awaitable[None]],
    ) -> None:
        self._parts: tuple[PromptPart, ...] = ()
        self._task = task
        self._role = role
        self._facts = facts
        self._paths = paths
        self._database = database
        self._ask_about_skills = ask_about_skills

    async def parts(self, cancel: CancelSignal) -> tuple[PromptPart, ...]:
        """Return the stored parts, also after a restart; otherwise new ones, committed with the next write."""
        self._parts = await self._database.prompts.of_task(self._task.id)
        if self._parts:
            return self._parts
        task = self._task
        workspace = Path(task.request.workspace)
        await self._ask_about_skills(cancel)
        facts = await self._facts.for_task(workspace)
        parts = await current_parts(self._role, workspace, task.options.mode, self._paths, facts)
        self._store(parts)
        return parts

    def text(self, call_form: CallForm) -> str:
        """Return the prompt with the rules for a model that calls tools so; the parts are stored if these change."""
        stored = next((part.text for part in self._parts if part.name == _RULES), None)
        short = prompt_text(_SHORT_RULES)
        if stored is not None and (stored == short) != (call_form == "json"):
            rules = short if call_form == "json" else rules_text(self._task.options.mode)
            self._store(
                tuple(
                    msgspec.structs.replace(part, text=rules) if part.name == _RULES else part for part in self._parts
                )
            )
        return join_parts(self._parts)

    def _store(self, parts: tuple[PromptPart, ...]) -> None:
        self._parts = parts
        self._database.journal.put(tasks.save_prompt(self._task.id, parts))


async def current_parts(
    role: str,
    workspace: Path,
    mode: TaskMode,
    paths: Paths,
    facts: tuple[Fact, ...],
) -> tuple[PromptPart, ...]:
    """Return the parts that a task would get if it started now. Raises `FolderNotAnswering` if they cannot be read."""

    def read() -> tuple[PromptPart, ...]:
        skills = skill_state(paths.skills)
        return read_parts(PromptContext(role, workspace, mode, Path.home(), skills, facts))

    return await in_workspace(workspace, read)
