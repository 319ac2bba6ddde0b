"""The question whether agents may be told of the skills that a workspace brings, before a task's prompt is read."""

import logging
from pathlib import Path

from errand.engine.agent.prompt.skills import FoundSkills, Skill, find_skills
from errand.engine.agent.prompt.workspace import read_inside, workspace_folders
from errand.engine.agent.run.pending_asks import ask_for_trust, can_be_asked
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.skill_state import skill_state, write_skill_state
from errand.engine.core.workspace_threads import in_workspace
from errand.protocol.asks import Approval
from errand.protocol.base import Trust
from errand.text.visible_text import argument_text, escape_hidden

_MAX_PREVIEW_CHARACTERS = 20_000
_MAX_FILE_BYTES = 16_384
_TOOL = "skills"
_log = logging.getLogger(__name__)


class SkillQuestion:
    """Asks once about the skills of a task's workspace, and again when one of them has changed."""

    def __init__(self, context: TaskContext, state_file: Path) -> None:
        self._context = context
        self._file = state_file

    async def ask_if_new(self, cancel: CancelSignal) -> None:
        """Return when the skills of the workspace are decided about, or nobody can be asked."""
        task = self._context.state.task
        if not can_be_asked(task) or cancel.is_set:
            return
        workspace = Path(task.request.workspace)
        state = skill_state(self._file)
        skills = await in_workspace(workspace, lambda: find_skills(workspace, Path.home(), state.disabled))
        if state.trust_of(workspace, skills.fingerprint) != "unknown":
            return
        root = workspace_folders(workspace, Path.home())[0]
        preview = await in_workspace(workspace, lambda: skills_text(skills, root))
        approval = _approval(skills, preview, task.request.workspace, has_changed=str(workspace) in state.trust)

        def trust_now() -> Trust:
            return skill_state(self._file).trust_of(workspace, skills.fingerprint)

        def decide(is_trusted: bool) -> None:
            try:
                write_skill_state(
                    self._file, skill_state(self._file).decided(workspace, skills.fingerprint, is_trusted=is_trusted)
                )
            except OSError as error:
                _log.warning("The decision about skills was not saved: %s", error)

        await ask_for_trust(self._context.asks, self._context.state, approval, trust_now, decide, cancel)


def skills_text(skills: FoundSkills, root: Path) -> str:
    """Return the skills of a workspace with their texts, for the person who decides. Reads the files below `root`."""
    text = "\n\n".join(_skill_text(skill, root) for skill in skills.of_workspace)
    if len(text) <= _MAX_PREVIEW_CHARACTERS:
        return text
    left_out = len(text) - _MAX_PREVIEW_CHARACTERS
    return f"{text[:_MAX_PREVIEW_CHARACTERS]}\n… {left_out:,} more characters. All of a skill: errand skills show NAME"


def _skill_text(skill: Skill, root: Path) -> str:
    content = (read_inside(skill.file, root, _MAX_FILE_BYTES) or b"").decode("utf-8", "replace")
    more = "\n…" if len(content) > _MAX_FILE_BYTES else ""
    lines = "\n".join(f"  {line}" for line in f"{escape_hidden(content[:_MAX_FILE_BYTES])}{more}".splitlines())
    return f"{skill.name}: {argument_text(str(skill.file))}\n{lines}"


def _approval(skills: FoundSkills, preview: str, workspace: str, *, has_changed: bool) -> Approval:
    names = ", ".join(skill.name for skill in skills.of_workspace)
    began = "The skills of this workspace have changed" if has_changed else "This workspace brings skills"
    text = (
        f"{began}: {names}. Trust them? Allowing tells agents of them, in this task and in later ones here, until one "
        "changes. Their scripts run only if you allow them."
    )
    return Approval(
        tool=_TOOL,
        call_id="",
        text=text,
        rule="files of the workspace give instructions to agents",
        risk="medium",
        working_dir=workspace,
        preview=preview,
        basis=skills.fingerprint,
    )
