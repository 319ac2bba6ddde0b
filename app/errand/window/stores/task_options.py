"""The options of the next task, their labels, and the defaults of unset options."""

from dataclasses import dataclass
from uuid import uuid4

from errand.protocol.agents import Agent, Personality, ThinkingLevel
from errand.protocol.settings import Model
from errand.protocol.tasks.groups import ApproveMode, NetworkMode, TaskMode
from errand.protocol.tasks.methods import TaskStartParams

DEFAULT = "assistant"
_CUSTOM_SERVER = "openai_compatible/"


def new_task_id() -> str:
    """Make the id of a task that the window starts, so that a repeated request starts none twice."""
    return f"task_{uuid4().hex}"


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """None means the engine's default. `workspace` and `approve` apply to a new conversation, `network` becomes that of
    the conversation; `budget_usd` None is no limit.

    `model_if_none`, chosen for another agent, applies to an agent without its own model. `api_base` belongs to a model
    of `openai_compatible`.
    """

    model: str | None = None
    workspace: str | None = None
    mode: TaskMode = "auto"
    approve: ApproveMode = "ask"
    network: NetworkMode = "asked"
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
        """Return the params of `task/start`. `sibling_of` is the message that this one is a sibling of.

        With `is_for_another` the options were chosen for another agent: this one keeps its model, personality and
        thinking level.
        """
        model = self.model or self.model_if_none
        is_chosen = self.model is not None and not is_for_another
        return TaskStartParams(
            prompt=prompt,
            task_id=new_task_id(),
            conversation_id=conversation_id,
            agent_id=agent_id,
            sibling_of=sibling_of,
            attachments=attachments,
            model=model if is_chosen else None,
            model_if_none=None if is_chosen else model,
            api_base=self.api_base if (model or "").startswith(_CUSTOM_SERVER) else None,
            workspace=self.workspace if conversation_id is None else None,
            mode=self.mode,
            approve=self.approve if conversation_id is None else None,
            network=self.network,
            thinking_level=None if is_for_another else self.thinking_level,
            budget_usd=self.budget_usd,
            personality_id=None if is_for_another else self.personality_id,
        )


@dataclass(frozen=True, slots=True)
class TaskOptionDefaults:
    """`model` is the default model, `agent` the selected agent, None in a new conversation.

    `providers` are the ready providers: id, which is the prefix of their model ids, and title. `favourites` and
    `recent` are ids of models. `has_sandbox`: commands run in a sandbox on this machine.
    """

    models: tuple[Model, ...] = ()
    model: str = ""
    personalities: tuple[Personality, ...] = ()
    agent: Agent | None = None
    providers: tuple[tuple[str, str], ...] = ()
    has_sandbox: bool = False
    favourites: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()

    @property
    def personality_id(self) -> str:
        """The personality if none is chosen."""
        return self.agent.personality_id if self.agent is not None else DEFAULT

    def personality(self, options: TaskOptions) -> Personality | None:
        personality_id = options.personality_id or self.personality_id
        return next((each for each in self.personalities if each.id == personality_id), None)

    def model_of(self, options: TaskOptions) -> str:
        """Return the model of the next task."""
        personality = self.personality(options)
        own = self.agent.model if self.agent is not None else ""
        own = own or (personality.model if personality is not None else "")
        return options.model or own or options.model_if_none or self.model
