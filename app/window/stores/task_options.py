"""What a task is started with, and the words that start it so."""

from dataclasses import dataclass
from uuid import uuid4

from app.protocol.agents import ThinkingLevel
from app.protocol.tasks import ApproveMode, TaskMode, TaskStartParams

_WITH_ADDRESS = "openai_compatible/"


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """None leaves it to the engine. `workspace` counts for a new conversation; `budget_usd` None is no limit.

    `api_base` goes with a `model` of `openai_compatible`.
    """

    model: str | None = None
    workspace: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"
    thinking_level: ThinkingLevel | None = None
    budget_usd: float | None = None
    personality_id: str | None = None
    api_base: str | None = None

    def start(
        self,
        prompt: str,
        conversation_id: str | None,
        sibling_of: str | None = None,
        attachments: tuple[str, ...] = (),
        agent_id: str | None = None,
    ) -> TaskStartParams:
        """`sibling_of` is the message that this one stands beside: see `TaskStartParams`."""
        return TaskStartParams(
            prompt=prompt,
            task_id=f"task_{uuid4().hex}",
            conversation_id=conversation_id,
            agent_id=agent_id,
            sibling_of=sibling_of,
            attachments=attachments,
            model=self.model,
            api_base=self.api_base if (self.model or "").startswith(_WITH_ADDRESS) else None,
            workspace=self.workspace if conversation_id is None else None,
            mode=self.mode,
            approve=self.approve,
            thinking_level=self.thinking_level,
            budget_usd=self.budget_usd,
            personality_id=self.personality_id,
        )
