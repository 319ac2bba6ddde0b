"""What can be chosen for a task, and what it comes to where nothing was chosen."""

from dataclasses import dataclass

from app.protocol.agents import Agent, Personality
from app.window.stores.personalities import DEFAULT
from app.window.stores.task_options import TaskOptions


@dataclass(frozen=True, slots=True)
class Offer:
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
