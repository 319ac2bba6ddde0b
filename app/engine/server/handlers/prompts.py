"""System prompts, of tasks and of those to come."""

from pathlib import Path

from app.engine.agent.prompt.briefing import parts_now
from app.engine.errors import InvalidParams, NotFound
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.engine.storage.personalities import ASSISTANT
from app.engine.tools.plain_text import is_text
from app.engine.workspace_threads import in_workspace
from app.protocol.prompts import PromptGetParams, PromptGetResult
from app.protocol.wire import PROMPT_GET


async def get(services: Services, session: Session, params: PromptGetParams) -> PromptGetResult:
    if params.task_id is not None:
        if await services.database.tasks.get(params.task_id) is None:
            raise NotFound(f"There is no task {params.task_id!r}.")
        return PromptGetResult(parts=await services.database.prompts.of_task(params.task_id))
    personality = await services.database.personalities.get(params.personality_id or ASSISTANT.id)
    if personality is None:
        raise NotFound(f"There is no personality {params.personality_id!r}.")
    given = params.workspace or ""
    workspace = await in_workspace(Path(given), lambda: _workspace(given))
    mode = "chat" if params.chat else "auto"
    return PromptGetResult(parts=await parts_now(personality.system_prompt, workspace, mode))


def _workspace(given: str) -> Path:
    folder = Path(given)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidParams(f"workspace: {given!r} is no folder. Name the one to work in by its absolute path.")
    real = folder.resolve()
    if not is_text(str(real)):
        raise InvalidParams(f"workspace: {given!r} leads to a folder whose name is not UTF-8. Rename that folder.")
    return real


HANDLERS = (Route(PROMPT_GET, get),)
