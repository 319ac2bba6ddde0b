"""The options a task is started with, their labels, and the defaults that apply where nothing is chosen."""

from dataclasses import dataclass
from uuid import uuid4

from app.protocol.agents import Agent, Personality, ThinkingLevel
from app.protocol.tasks import ApproveMode, TaskMode, TaskStartParams
from app.window.stores.catalog import DEFAULT

_WITH_ADDRESS = "openai_compatible/"


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """None leaves it to the engine. `workspace` counts for a new conversation; `budget_usd` None is no limit.

    `model_if_none` was another agent's: it is for one without a model of its own. `api_base` goes with one of them that
    is of `openai_compatible`.
    """

    model: str | None = None
    workspace: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"
    thinking_level: ThinkingLevel | None = None
    budget_usd: float | None = None
    personality_id: str | None = None
    api_base: str | None = None
    model_if_none: str | None = None

    def start(
        self,
        prompt: str,
        conversation_id: str | None,
        sibling_of: str | None = None,
        attachments: tuple[str, ...] = (),
        agent_id: str | None = None,
        *,
        is_for_another: bool = False,
    ) -> TaskStartParams:
        """`sibling_of` is the message that this one stands beside: see `TaskStartParams`.

        For another agent than the one that they were chosen for: it keeps its own model, personality and thinking.
        """
        model = self.model or self.model_if_none
        is_chosen = self.model is not None and not is_for_another
        return TaskStartParams(
            prompt=prompt,
            task_id=f"task_{uuid4().hex}",
            conversation_id=conversation_id,
            agent_id=agent_id,
            sibling_of=sibling_of,
            attachments=attachments,
            model=model if is_chosen else None,
            model_if_none=None if is_chosen else model,
            api_base=self.api_base if (model or "").startswith(_WITH_ADDRESS) else None,
            workspace=self.workspace if conversation_id is None else None,
            mode=self.mode,
            approve=self.approve,
            thinking_level=None if is_for_another else self.thinking_level,
            budget_usd=self.budget_usd,
            personality_id=None if is_for_another else self.personality_id,
        )


@dataclass(frozen=True, slots=True)
class TaskOptionDefaults:
    """`model` is the default one. `agent` is the one that is looked at, None before the conversation began.

    `servers` are the person's own: what the ids of their models begin with, and their names.
    """

    models: tuple[str, ...] = ()
    model: str = ""
    personalities: tuple[Personality, ...] = ()
    agent: Agent | None = None
    servers: tuple[tuple[str, str], ...] = ()

    @property
    def personality_id(self) -> str:
        """What it is where nothing was chosen."""
        return self.agent.personality_id if self.agent is not None else DEFAULT

    def personality(self, options: TaskOptions) -> Personality | None:
        wanted = options.personality_id or self.personality_id
        return next((each for each in self.personalities if each.id == wanted), None)

    def model_of(self, options: TaskOptions) -> str:
        """The model that the next task is started with."""
        personality = self.personality(options)
        own = self.agent.model if self.agent is not None else ""
        own = own or (personality.model if personality is not None else "")
        return options.model or own or options.model_if_none or self.model
